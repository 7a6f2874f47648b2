-- sheet.doctor: nothing to say of a new database; a row for what is open, missing or set so that promises break.
SELECT current_database() AS here \gset
CREATE ROLE doctor_gateway IN ROLE sheet_gateway;
CREATE ROLE doctor_linked;
CREATE ROLE doctor_other;
SET client_min_messages = warning;
CREATE DATABASE doctor_database ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0;
\c doctor_database
SET client_min_messages = warning;
SET escape_string_warning = off;
SET standard_conforming_strings = off;
CREATE EXTENSION pg_sheet;
-- the server of this test does not sync, which is said; and may be asked by gateways, and by nobody else
CREATE VIEW public.findings AS SELECT severity, what, detail, advice FROM sheet.doctor() WHERE what !~ '^fsync';
SELECT * FROM findings;
RESET standard_conforming_strings;
-- what gateways tell of themselves is short, and has no characters that change the direction of text
\set VERBOSITY terse
SELECT sheet.report_gateway('users:80', 1, 'serving', 0, 0, 0, repeat('x', 300));
SELECT sheet.report_gateway('users' || chr(8238) || ':80', 1, 'serving', 0, 0, 0, '');
SELECT sheet.report_gateway('long:80', 1, 'serving', 0, 0, 0, repeat('x', 301));
SELECT sheet.report_gateway('long:80', 1, repeat('x', 301), 0, 0, 0, '');
\set VERBOSITY default
SET ROLE doctor_gateway;
SELECT count(*) FROM sheet.doctor() WHERE what !~ '^fsync';
SET ROLE doctor_linked;
SELECT count(*) FROM sheet.doctor();
RESET ROLE;
SET standard_conforming_strings = off;
SELECT * FROM findings;
RESET standard_conforming_strings;
SELECT count(sheet.set(sheet.create('doctor', as_uid => sheet.account_create('doctor ann', NULL, NULL)), 'A1', 'x'));
SELECT * FROM findings;
-- who may do what
GRANT SELECT ON sheet.account, sheet.log_batch TO doctor_other;
GRANT CREATE ON SCHEMA sheet TO doctor_other;
GRANT sheet_gateway TO doctor_other WITH ADMIN OPTION;
REVOKE SELECT ON sheet.list FROM PUBLIC;
ALTER TABLE sheet.file OWNER TO doctor_other;
CREATE FUNCTION sheet.get(integer, text) RETURNS text LANGUAGE sql RETURN 'x';
SELECT sheet.link_account('doctor ann', 'doctor_linked');
SELECT * FROM findings;
\c template1
DROP ROLE doctor_linked;
\c doctor_database
SET client_min_messages = warning;
SELECT what, detail, advice FROM findings WHERE what ~ 'linked';
DROP FUNCTION sheet.get(integer, text);
ALTER TABLE sheet.file OWNER TO CURRENT_USER;
REVOKE sheet_gateway FROM doctor_other;
SELECT sheet.reset_privileges(), sheet.link_account('doctor ann', NULL);
SELECT * FROM findings;
BEGIN;
ALTER ROLE sheet_gateway LOGIN CREATEDB;
SELECT * FROM findings;
ROLLBACK;
-- settings
ALTER DATABASE doctor_database SET synchronous_commit = off;
ALTER DATABASE doctor_database SET idle_session_timeout = '1min';
ALTER ROLE doctor_gateway SET default_transaction_read_only = on;
ALTER ROLE doctor_gateway IN DATABASE doctor_database SET statement_timeout = '3s';
ALTER ROLE doctor_gateway SET default_transaction_isolation = 'serializable';
ALTER ROLE doctor_gateway SET lock_timeout = 0;
ALTER ROLE doctor_other SET statement_timeout = '1s'; -- who edits nothing
ALTER DATABASE doctor_database SET search_path = public, pg_catalog;
ALTER ROLE doctor_gateway SET search_path = pg_catalog, public;
SELECT * FROM findings;
\c doctor_database
SET client_min_messages = warning;
SELECT count(*) FROM findings;
SET ROLE doctor_gateway;
SET synchronous_commit = on;
SELECT count(*) FROM sheet.doctor() WHERE what !~ '^fsync';
RESET ROLE;
ALTER DATABASE doctor_database RESET ALL;
ALTER ROLE doctor_gateway RESET ALL;
ALTER ROLE doctor_gateway IN DATABASE doctor_database RESET ALL;
\c doctor_database
SET client_min_messages = warning;
SELECT * FROM findings;
-- tables, indexes, sequences
ALTER TABLE sheet.file_use SET UNLOGGED;
ALTER TABLE sheet.segment SET ACCESS METHOD heap;
ALTER TABLE sheet.member DROP CONSTRAINT member_pkey;
ALTER TABLE sheet.sheet ADD CONSTRAINT doctor_check CHECK (name <> '') NOT VALID;
CREATE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER doctor_trigger AFTER INSERT ON sheet.log_batch FOR EACH ROW EXECUTE FUNCTION public.nothing();
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'sheet.file_use_uid_idx'::regclass;
SELECT setval('sheet.account_uid_seq', 1, false), setval('sheet.sheet_number_seq', 0, false);
SELECT * FROM findings;
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'sheet.file_use_uid_idx'::regclass;
DROP TRIGGER doctor_trigger ON sheet.log_batch;
ALTER TABLE sheet.sheet DROP CONSTRAINT doctor_check;
ALTER TABLE sheet.member ADD PRIMARY KEY (sheet_id, uid);
ALTER TABLE sheet.segment SET ACCESS METHOD sheetlog;
ALTER TABLE sheet.file_use SET LOGGED;
SELECT setval('sheet.account_uid_seq', 1), setval('sheet.sheet_number_seq', 0);
SELECT * FROM findings;
-- the timer: an entry is due for long, which the timer does not see before the commit
BEGIN;
INSERT INTO sheet.timer VALUES ('upload', 4711, now() - interval '1 hour');
SELECT severity, what, detail ~ '^kind "upload", id 4711, since ' AS detail, advice FROM findings;
ROLLBACK;
-- the clock: something is newer than the present
UPDATE sheet.sheet SET created_at = now() + interval '2 hours';
SELECT severity, what, advice FROM findings;
UPDATE sheet.sheet SET created_at = now();
INSERT INTO sheet.log_batch SELECT sheet_id, last_seq + 1, last_seq + 1, segment_id, now() + interval '2 hours', epoch, origin, batch_no, data
	FROM sheet.log_batch ORDER BY first_seq DESC LIMIT 1;
SELECT severity, what, advice FROM findings;
\c :here
DROP DATABASE doctor_database;
DROP ROLE doctor_gateway, doctor_other;
