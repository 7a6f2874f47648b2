-- What the database must be, and a schema in which nobody else could have made anything. This script is ASCII, so it
-- can be read in every encoding. It has backslashes in literals E'...' only, so it means the same whatever
-- standard_conforming_strings is.

-- Nothing is looked up in a schema in which others may have created something. All other names are qualified.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
	problem text;
	published name;
BEGIN
	-- Cells are UTF-8. A database with another encoding would misread these bytes, except SQL_ASCII, which does not
	-- convert.
	IF pg_catalog.getdatabaseencoding() NOT IN ('UTF8', 'SQL_ASCII') THEN
		RAISE EXCEPTION 'pg_sheet needs a database whose encoding is UTF8' USING ERRCODE = 'feature_not_supported',
			DETAIL = pg_catalog.format('The encoding of database "%s" is %s.', pg_catalog.current_database(), pg_catalog.getdatabaseencoding()),
			HINT = 'Make one with CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0.';
	END IF;
	SELECT p.pubname INTO published FROM pg_catalog.pg_publication p WHERE p.puballtables
		OR EXISTS (SELECT FROM pg_catalog.pg_publication_namespace n WHERE n.pnpubid = p.oid AND n.pnnspid = 'sheet'::pg_catalog.regnamespace)
		ORDER BY 1 LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'pg_sheet cannot be in a publication' USING ERRCODE = 'feature_not_supported',
			DETAIL = pg_catalog.format('Publication "%s" publishes all tables of the database, or of schema "sheet". The log of sheets is not decoded logically.', published),
			HINT = pg_catalog.format('Drop publication "%s", create the extension, and create the publication again with the tables or schemas that it needs: FOR TABLES IN SCHEMA public, for example.', published);
	END IF;
	-- A function or an operator in the schema would be called by this script and by queries of the extension, as a
	-- superuser. pg_dump makes the schema before the extension, so an empty one in which only superusers can create
	-- anything is as good as a new one. CREATE EXTENSION has made the schema if both rows are of the same transaction:
	-- what default privileges permit in it nobody has used.
	SELECT CASE
			WHEN EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
				AND d.refobjid = n.oid AND d.classid NOT IN ('pg_catalog.pg_extension'::pg_catalog.regclass, 'pg_catalog.pg_default_acl'::pg_catalog.regclass))
				THEN 'It contains objects that do not belong to the extension.'
			WHEN NOT o.rolsuper THEN pg_catalog.format('It belongs to role "%s", which is not a superuser.', o.rolname)
			WHEN n.xmin <> e.xmin AND EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
				WHERE a.privilege_type = 'CREATE' AND r.rolsuper IS NOT TRUE)
				THEN 'Roles that are not superusers may create objects in it.'
		END INTO problem
	FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner, pg_catalog.pg_extension e
	WHERE n.nspname = 'sheet' AND e.extname = 'pg_sheet';
	IF problem IS NOT NULL THEN
		RAISE EXCEPTION 'schema "sheet" exists already' USING ERRCODE = 'duplicate_schema', DETAIL = problem,
			HINT = 'Drop or rename it: CREATE EXTENSION makes a schema that nobody else can create objects in.';
	END IF;
END
$$;
