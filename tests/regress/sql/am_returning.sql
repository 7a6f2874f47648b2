-- What statements tell of the rows of a sheetlog table: RETURNING, system columns, whole rows, WITH.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_returning;
SET search_path = am_returning, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int PRIMARY KEY, body text, n int GENERATED ALWAYS AS (id * 2) STORED) USING sheetlog;
INSERT INTO l VALUES (1, 'a'), (2, repeat('b', 20)) RETURNING *, l, tableoid::regclass, ctid IS NOT NULL AS has_tid;
INSERT INTO l VALUES (3, 'c') RETURNING xmin = pg_current_xact_id()::xid AS mine, xmax, cmin, ctid = (SELECT ctid FROM l WHERE id = 3) AS not_yet;
SELECT id, ctid = (SELECT x.ctid FROM l x WHERE x.id = l.id) AS same_tid, tableoid::regclass, xmax FROM l ORDER BY id;
-- xmin is the transaction's or the subtransaction's, cmin counts its commands
BEGIN;
SELECT pg_current_xact_id()::xid AS top \gset
INSERT INTO l VALUES (10, 'x') RETURNING xmin = :'top' AS mine, cmin;
INSERT INTO l VALUES (11, 'x') RETURNING xmin = :'top' AS mine, cmin;
SAVEPOINT s;
INSERT INTO l VALUES (12, 'x') RETURNING xmin = :'top' AS mine, cmin;
RELEASE s;
INSERT INTO l VALUES (13, 'x') RETURNING xmin = :'top' AS mine, cmin;
SELECT id, xmin = :'top' AS mine, cmin FROM l WHERE id >= 10 ORDER BY id;
COMMIT;
SELECT count(*) FILTER (WHERE xmin = :'top'), count(DISTINCT xmin::text) FROM l WHERE id >= 10;
SELECT age(xmin) BETWEEN 0 AND 1000 AS young FROM l WHERE id = 1;
-- by an index and by TID, the same system columns
SET enable_seqscan = off;
SELECT id, xmin = :'top' AS mine, tableoid::regclass FROM l WHERE id = 11;
SELECT id FROM l WHERE ctid = (SELECT ctid FROM l WHERE id = 11) AND xmin = :'top';
RESET enable_seqscan;
-- a long value that is returned is the one that is stored
INSERT INTO l VALUES (20, (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 100000) g)) RETURNING length(body) AS n, md5(body) = md5((SELECT string_agg(md5(g::text), '') FROM generate_series(1, 100000) g)) AS whole;
-- parts of a statement do not see each other's rows
WITH new AS (INSERT INTO l VALUES (30, 'new') RETURNING id) SELECT (SELECT count(*) FROM l WHERE id = 30) AS before, (SELECT count(*) FROM new) AS returned;
WITH one AS (INSERT INTO l VALUES (31, 'one') RETURNING id), two AS (INSERT INTO l SELECT id + 1, 'two' FROM one RETURNING id) SELECT * FROM one UNION ALL SELECT * FROM two;
WITH new AS (INSERT INTO l SELECT count(*) + 1000, 'counted' FROM l RETURNING id) INSERT INTO l SELECT id + 1, 'after it' FROM new RETURNING id - (SELECT count(*) FROM l) - 1000;
SELECT id, body FROM l WHERE id BETWEEN 30 AND 39 OR id > 1000 ORDER BY id;
-- a function called in RETURNING sees the rows so far, if it is volatile
CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM l WHERE id >= 2000); END $$;
CREATE FUNCTION seen_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM l WHERE id >= 2000); END $$;
INSERT INTO l SELECT g FROM generate_series(2001, 2003) g RETURNING id, seen(), seen_stable();
-- through a view, and with RETURNING of deleted rows
CREATE VIEW v AS SELECT id, body FROM l WHERE id > 0 WITH CHECK OPTION;
INSERT INTO v VALUES (40, 'view') RETURNING *;
INSERT INTO v VALUES (-40, 'view');
UPDATE v SET body = '' WHERE id = 40;
SET pg_sheet.allow_log_delete = on;
DELETE FROM l WHERE id IN (40, 20) RETURNING id, length(body), n, tableoid::regclass;
DELETE FROM l WHERE id = 40 RETURNING id;
BEGIN;
DELETE FROM l WHERE id = 1;
SELECT count(*) FROM l WHERE id = 1;
ROLLBACK;
SELECT id, body, n FROM l WHERE id = 1;
DROP SCHEMA am_returning CASCADE;
