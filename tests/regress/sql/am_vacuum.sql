-- VACUUM of a sheetlog table with all its options: rows stay, dead ones go, the ids of old transactions go.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_vacuum;
SET search_path = am_vacuum, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int PRIMARY KEY, body text) USING sheetlog WITH (autovacuum_enabled = off);
CREATE FUNCTION state() RETURNS text LANGUAGE sql AS $$ SELECT count(*) || ' rows, ' || count(*) FILTER (WHERE body <> repeat(md5(id::text), id % 30)) || ' wrong' FROM l $$;
INSERT INTO l SELECT g, repeat(md5(g::text), g % 30) FROM generate_series(1, 2000) g;
VACUUM l;
VACUUM (FREEZE) l;
SELECT state();
SELECT age(relfrozenxid) < 100 AS frozen FROM pg_class WHERE oid = 'l'::regclass;
BEGIN;
INSERT INTO l SELECT g, 'aborted' FROM generate_series(3001, 9000) g;
ROLLBACK;
CREATE TEMP TABLE sizes AS SELECT pg_relation_size('l') AS before;
VACUUM (TRUNCATE off) l;
SELECT pg_relation_size('l') = before AS kept FROM sizes;
VACUUM (TRUNCATE on) l;
SELECT pg_relation_size('l') < before AS given_back FROM sizes;
SELECT state();
SET pg_sheet.allow_log_delete = on;
DELETE FROM l WHERE id % 2 = 0;
VACUUM (INDEX_CLEANUP off, DISABLE_PAGE_SKIPPING) l;
SELECT state();
VACUUM (INDEX_CLEANUP on, PARALLEL 0, SKIP_LOCKED, PROCESS_TOAST off) l;
SELECT state();
INSERT INTO l SELECT g, repeat(md5(g::text), g % 30) FROM generate_series(2, 2000, 2) g;
VACUUM (VERBOSE false, ANALYZE, FREEZE, DISABLE_PAGE_SKIPPING) l;
SELECT state();
-- nothing to do, an empty table, one without indexes, one of nothing but dead rows
VACUUM l;
CREATE TABLE l2 (id int, body text) USING sheetlog;
VACUUM l2;
VACUUM (FREEZE) l2;
BEGIN;
INSERT INTO l2 SELECT g, repeat('x', g) FROM generate_series(1, 1000) g;
ROLLBACK;
VACUUM l2;
SELECT count(*), pg_relation_size('l2') <= 5 * 8192 AS small FROM l2;
INSERT INTO l2 SELECT g, repeat('x', g) FROM generate_series(1, 1000) g;
VACUUM (FREEZE) l2;
SELECT count(*), sum(length(body)) FROM l2;
-- long rows that are gone give their space back
INSERT INTO l2 SELECT 5000 + g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 20000) i) FROM generate_series(1, 5) g;
DELETE FROM l2 WHERE id > 5000;
VACUUM l2;
SELECT pg_total_relation_size('l2') < 1500000 AS small;
BEGIN;
INSERT INTO l2 SELECT 5000 + g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 20000) i) FROM generate_series(1, 5) g;
ROLLBACK;
VACUUM l2;
SELECT pg_total_relation_size('l2') < 1500000 AS small;
INSERT INTO l2 SELECT 5000 + g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 20000) i) FROM generate_series(1, 5) g;
SELECT count(*), count(DISTINCT md5(body)), min(length(body)) FROM l2 WHERE id > 5000;
-- relfrozenxid follows, also for tables that are not written any more, and of what a rewrite makes
BEGIN;
CREATE TABLE l3 (id int) USING sheetlog;
INSERT INTO l3 VALUES (1);
COMMIT;
DO $$ BEGIN FOR i IN 1 .. 300 LOOP BEGIN PERFORM pg_current_xact_id(); INSERT INTO l2 VALUES (-i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
SELECT age(relfrozenxid) > 250 AS old FROM pg_class WHERE oid = 'l3'::regclass;
VACUUM (FREEZE) l3;
SELECT age(relfrozenxid) < 50 AS frozen, mxid_age(relminmxid) >= 0 AS multi FROM pg_class WHERE oid = 'l3'::regclass;
SELECT * FROM l3;
CREATE TABLE l4 (id int) USING sheetlog;
INSERT INTO l4 VALUES (1);
DO $$ BEGIN FOR i IN 1 .. 300 LOOP BEGIN INSERT INTO l2 VALUES (-i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
VACUUM (FULL, FREEZE) l4;
SELECT age(relfrozenxid) < 50 AS frozen FROM pg_class WHERE oid = 'l4'::regclass;
SELECT * FROM l4;
-- pages of short rows are full when their row numbers are: VACUUM is done with them, and nobody goes back to them
CREATE TABLE l5 (id int) USING sheetlog;
INSERT INTO l5 SELECT g FROM generate_series(1, 2900) g;
VACUUM (FREEZE) l5;
VACUUM (FREEZE, VERBOSE) l5;
INSERT INTO l5 SELECT g FROM generate_series(1, 290) g;
VACUUM (FREEZE, VERBOSE) l5;
SELECT count(*), count(DISTINCT (ctid::text::point)[0]) AS pages FROM l5;
-- but when many of the numbers come free, it is gone back to
DELETE FROM l5 WHERE ctid > '(3,20)' AND ctid < '(4,1)';
VACUUM (FREEZE) l5;
INSERT INTO l5 SELECT g FROM generate_series(1, 500) g;
SELECT count(*), count(DISTINCT (ctid::text::point)[0]) AS pages FROM l5;
-- not in a transaction, and not by those who may not
BEGIN;
VACUUM l;
ROLLBACK;
SELECT state();
DROP SCHEMA am_vacuum CASCADE;
