-- Triggers of a sheetlog table: before and after, of rows and statements, deferred, with transition tables, with long values.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_triggers;
SET search_path = am_triggers, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int PRIMARY KEY, body text, n int DEFAULT 0) USING sheetlog;
CREATE TABLE told (no serial, what text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told (what) VALUES (concat_ws(' ', TG_WHEN, TG_LEVEL, TG_OP, CASE WHEN TG_LEVEL = 'ROW' THEN coalesce(NEW.id, OLD.id) || ':' || md5(coalesce(NEW.body, OLD.body)) END));
	RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER a_before BEFORE INSERT OR DELETE ON l FOR EACH STATEMENT EXECUTE FUNCTION tell();
CREATE TRIGGER b_before BEFORE INSERT ON l FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER c_after AFTER INSERT OR DELETE ON l FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER d_after AFTER INSERT OR DELETE ON l FOR EACH STATEMENT EXECUTE FUNCTION tell();
INSERT INTO l VALUES (1, 'a'), (2, repeat('long', 100000));
COPY l (id, body) FROM stdin;
3	c
4	d
\.
SET pg_sheet.allow_log_delete = on;
DELETE FROM l WHERE id IN (2, 3);
SELECT what FROM told ORDER BY no;
-- a row's trigger before its deletion would have to lock the row
CREATE TRIGGER b_delete BEFORE DELETE ON l FOR EACH ROW EXECUTE FUNCTION tell();
DELETE FROM l WHERE id = 1;
DROP TRIGGER b_delete ON l;
-- one that changes rows, one that leaves rows out
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n < 0 THEN RETURN NULL; END IF; NEW.n := NEW.n + 1; NEW.body := NEW.body || '!'; RETURN NEW; END $$;
CREATE TRIGGER e_before BEFORE INSERT ON l FOR EACH ROW EXECUTE FUNCTION change();
INSERT INTO l VALUES (10, 'x', 5), (11, 'x', -5), (12, 'x', 6) RETURNING *;
SELECT * FROM l WHERE id >= 10 ORDER BY id;
-- one that appends to the same table
CREATE FUNCTION echo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id BETWEEN 20 AND 29 THEN INSERT INTO l VALUES (NEW.id + 10, 'echo of ' || NEW.id || ' of ' || (SELECT count(*) FROM l WHERE id BETWEEN 20 AND 29)); END IF; RETURN NULL; END $$;
CREATE TRIGGER f_after AFTER INSERT ON l FOR EACH ROW EXECUTE FUNCTION echo();
INSERT INTO l VALUES (20, 'x'), (21, 'x');
SELECT id, body FROM l WHERE id BETWEEN 20 AND 39 ORDER BY id;
DROP TRIGGER f_after ON l;
-- transition tables
CREATE FUNCTION sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	IF TG_OP = 'INSERT' THEN SELECT count(*) || ' new, ' || sum(length(body)) INTO line FROM new_rows; ELSE SELECT count(*) || ' old, ' || sum(length(body)) INTO line FROM old_rows; END IF;
	RAISE WARNING '%', line;
	RETURN NULL;
END $$;
CREATE TRIGGER g_new AFTER INSERT ON l REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sums();
CREATE TRIGGER g_old AFTER DELETE ON l REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION sums();
INSERT INTO l SELECT g, repeat('y', g) FROM generate_series(40, 49) g;
INSERT INTO l VALUES (50, repeat('z', 100000));
INSERT INTO l VALUES (50, 'conflict'), (51, 'none') ON CONFLICT DO NOTHING;
COPY l (id, body) FROM stdin;
60	sixty
\.
DELETE FROM l WHERE id >= 45;
-- deferred, over savepoints, and with rows that are gone by then
DROP TRIGGER a_before ON l;
DROP TRIGGER b_before ON l;
DROP TRIGGER c_after ON l;
DROP TRIGGER d_after ON l;
DROP TRIGGER g_new ON l;
DROP TRIGGER g_old ON l;
CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'at the end: % % %', TG_OP, coalesce(NEW.id, OLD.id), length(coalesce(NEW.body, OLD.body)); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER h_end AFTER INSERT OR DELETE ON l DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION warn();
BEGIN;
INSERT INTO l VALUES (70, repeat('k', 5000));
SAVEPOINT s;
INSERT INTO l VALUES (71, 'undone');
ROLLBACK TO s;
INSERT INTO l VALUES (72, 'kept');
DELETE FROM l WHERE id = 72;
COMMIT;
-- an error in a trigger takes the row back
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 81 THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NULL; END $$;
CREATE TRIGGER i_after AFTER INSERT ON l FOR EACH ROW EXECUTE FUNCTION fail();
INSERT INTO l VALUES (80, ''), (81, '');
SELECT count(*) FROM l WHERE id >= 80;
INSERT INTO l VALUES (80, '');
-- for UPDATE there can be triggers, but no updates
CREATE TRIGGER j_update BEFORE UPDATE ON l FOR EACH ROW EXECUTE FUNCTION tell();
UPDATE l SET body = 'x' WHERE id = 1;
TRUNCATE told;
CREATE TRIGGER k_truncate BEFORE TRUNCATE ON l FOR EACH STATEMENT EXECUTE FUNCTION tell();
TRUNCATE l;
SELECT what FROM told;
DROP SCHEMA am_triggers CASCADE;
