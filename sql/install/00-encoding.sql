-- Cells are UTF-8, whoever writes them. A database of another encoding would take these bytes for other characters. (SQL_ASCII takes
-- them as they are.) This script is ASCII, so that it comes this far everywhere.
DO $$
BEGIN
	IF pg_catalog.getdatabaseencoding() NOT IN ('UTF8', 'SQL_ASCII') THEN
		RAISE EXCEPTION 'pg_sheet needs a database whose encoding is UTF8' USING ERRCODE = 'feature_not_supported',
			DETAIL = pg_catalog.format('The encoding of database "%s" is %s.', pg_catalog.current_database(), pg_catalog.getdatabaseencoding()),
			HINT = 'Make one with CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0.';
	END IF;
END
$$;
