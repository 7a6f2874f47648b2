-- CREATE EXTENSION: what it grants, whatever default privileges say; schemas and publications with which it is refused.
SELECT current_database() AS here \gset
CREATE ROLE install_reader;
CREATE ROLE install_other;
CREATE DATABASE install_database TEMPLATE template0;
\c install_database
SET client_min_messages = warning;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO install_reader WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO install_reader;
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON ROUTINES TO install_reader;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON ROUTINES FROM PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO install_reader;
ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC;
CREATE EXTENSION pg_sheet;
SELECT * FROM sheet.privileges_changed();
SELECT sheet.create('installed') AS id \gset
SET ROLE install_reader;
SELECT password_hash FROM sheet.account;
SELECT nextval('sheet.account_uid_seq');
SELECT sheet.account_find('ann');
CREATE FUNCTION sheet.mine() RETURNS integer LANGUAGE sql RETURN 1;
SELECT count(*) FROM sheet.list;
SELECT sheet.get(:id, 'A1');
RESET ROLE;
-- every function is for somebody, or internal; and every name in the list is something
SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace
	AND p.proname NOT IN (SELECT g.name FROM sheet.granted() g WHERE g.kind = 'ROUTINE') ORDER BY 1;
SELECT g.* FROM sheet.granted() g WHERE NOT CASE g.kind WHEN 'ROUTINE' THEN EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace AND p.proname = g.name)
	WHEN 'TABLE' THEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'sheet'::regnamespace AND c.relname = g.name)
	WHEN 'TYPE' THEN to_regtype('sheet.' || g.name) IS NOT NULL ELSE to_regnamespace(g.name) IS NOT NULL END;
-- what was granted later is found, and taken back
GRANT SELECT, INSERT ON sheet.account TO install_other WITH GRANT OPTION;
SET ROLE install_other;
GRANT SELECT ON sheet.account TO install_reader;
RESET ROLE;
GRANT SELECT (password_hash) ON sheet.account TO install_reader;
GRANT EXECUTE ON FUNCTION sheet.account_find(text) TO install_reader;
GRANT USAGE ON SEQUENCE sheet.account_uid_seq TO PUBLIC;
GRANT CREATE ON SCHEMA sheet TO install_reader;
REVOKE EXECUTE ON FUNCTION sheet.role_of(bigint, bigint) FROM PUBLIC;
REVOKE SELECT ON sheet.list FROM PUBLIC;
SELECT * FROM sheet.privileges_changed() ORDER BY extra, object, grantee, privilege;
SET ROLE install_other;
SELECT sheet.reset_privileges();
RESET ROLE;
SELECT sheet.reset_privileges();
SELECT * FROM sheet.privileges_changed();
-- default privileges of the schema, which stays
DROP EXTENSION pg_sheet;
ALTER DEFAULT PRIVILEGES IN SCHEMA sheet GRANT ALL ON TABLES TO install_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA sheet GRANT ALL ON SEQUENCES TO install_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA sheet GRANT ALL ON FUNCTIONS TO install_reader;
CREATE EXTENSION pg_sheet;
SELECT * FROM sheet.privileges_changed();
DROP EXTENSION pg_sheet;
DROP SCHEMA sheet;
-- the role of gateways, which another database has made, or somebody who wants to be one
BEGIN;
ALTER ROLE sheet_gateway LOGIN CREATEROLE;
\set SHOW_CONTEXT never
CREATE EXTENSION pg_sheet;
ROLLBACK;
CREATE EXTENSION pg_sheet;
DROP EXTENSION pg_sheet;
DROP SCHEMA sheet;
-- where backslashes are escapes in literals
ALTER DATABASE install_database SET escape_string_warning = off;
ALTER DATABASE install_database SET standard_conforming_strings = off;
\c install_database
SET client_min_messages = warning;
CREATE EXTENSION pg_sheet;
SELECT count(*) > 0 AS granted, count(*) FILTER (WHERE g.name ~ '[[:space:]]') AS with_spaces FROM sheet.granted() g;
SELECT sheet.reset_privileges();
SELECT * FROM sheet.privileges_changed();
SELECT what FROM sheet.doctor() WHERE what !~ '^fsync';
DROP EXTENSION pg_sheet;
DROP SCHEMA sheet;
ALTER DATABASE install_database RESET ALL;
\c install_database
SET client_min_messages = warning;
-- a schema that somebody else has made or may use
\set SHOW_CONTEXT never
CREATE SCHEMA sheet AUTHORIZATION install_other;
CREATE EXTENSION pg_sheet;
ALTER SCHEMA sheet OWNER TO CURRENT_USER;
GRANT ALL ON SCHEMA sheet TO install_other;
CREATE EXTENSION pg_sheet;
SET ROLE install_other;
CREATE FUNCTION sheet.get(integer, text) RETURNS text LANGUAGE sql RETURN 'planted';
CREATE FUNCTION sheet.planted(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'called'; RETURN true; END $$;
CREATE OPERATOR sheet.<> (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = sheet.planted);
CREATE OPERATOR sheet.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = sheet.planted);
RESET ROLE;
REVOKE ALL ON SCHEMA sheet FROM install_other, install_reader;
SET client_min_messages = notice;
CREATE EXTENSION pg_sheet;
SET client_min_messages = warning;
DROP SCHEMA sheet CASCADE;
-- an empty one, as pg_dump makes it
CREATE SCHEMA sheet;
REVOKE ALL ON SCHEMA sheet FROM install_reader;
CREATE EXTENSION pg_sheet;
DROP EXTENSION pg_sheet;
-- publications
SET client_min_messages = error; -- wal_level
CREATE PUBLICATION install_all FOR ALL TABLES;
CREATE EXTENSION pg_sheet;
DROP PUBLICATION install_all;
CREATE PUBLICATION install_schema FOR TABLES IN SCHEMA sheet, public;
CREATE EXTENSION pg_sheet;
DROP PUBLICATION install_schema;
CREATE PUBLICATION install_public FOR TABLES IN SCHEMA public;
CREATE EXTENSION pg_sheet;
SELECT sheet.create('published not') > 0 AS created;
-- what a restore has left of sheets that are gone is reported
INSERT INTO sheet.ownership VALUES (4711, 1, '');
INSERT INTO sheet.log_trim VALUES (4711, 1, 1, now(), 0), (4712, 1, 1, now(), 0);
SELECT sheet_id, severity, what, place FROM sheet.fsck(NULL);
\c :here
DROP DATABASE install_database;
DROP ROLE install_reader, install_other;
