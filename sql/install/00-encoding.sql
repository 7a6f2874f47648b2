-- Cells are UTF-8. A database with another encoding would misread these bytes, except SQL_ASCII, which
-- does not convert. This script is ASCII, so it can be read in every encoding.
DO $$
BEGIN
	IF pg_catalog.getdatabaseencoding() NOT IN ('UTF8', 'SQL_ASCII') THEN
		RAISE EXCEPTION 'pg_sheet needs a database whose encoding is UTF8' USING ERRCODE = 'feature_not_supported',
			DETAIL = pg_catalog.format('The encoding of database "%s" is %s.', pg_catalog.current_database(), pg_catalog.getdatabaseencoding()),
			HINT = 'Make one with CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0.';
	END IF;
END
$$;
