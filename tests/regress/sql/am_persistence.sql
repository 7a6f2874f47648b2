-- Unlogged and temporary sheetlog tables.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_persistence;
SET search_path = am_persistence, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE UNLOGGED TABLE l (id int PRIMARY KEY, body text) USING sheetlog;
INSERT INTO l SELECT g, repeat(md5(g::text), g) FROM generate_series(1, 500) g;
BEGIN;
INSERT INTO l VALUES (501, 'undone');
ROLLBACK;
SELECT count(*), sum(length(body)), bool_and(body = repeat(md5(id::text), id)) FROM l;
SELECT relpersistence FROM pg_class WHERE oid = 'l'::regclass;
SET enable_seqscan = off;
SELECT length(body) FROM l WHERE id = 77;
RESET enable_seqscan;
VACUUM (FREEZE) l;
TRUNCATE l;
INSERT INTO l VALUES (1, 'again');
ALTER TABLE l SET LOGGED;
INSERT INTO l VALUES (2, 'logged');
ALTER TABLE l SET UNLOGGED;
INSERT INTO l VALUES (1, 'twice');
SELECT * FROM l ORDER BY id;
-- temporary: rows, indexes, statistics; what is read in parallel is not
CREATE TEMP TABLE t (id int PRIMARY KEY, k int, body text) USING sheetlog;
CREATE INDEX t_k ON t (k);
INSERT INTO t SELECT g, g % 10, repeat(md5(g::text), g % 200) FROM generate_series(1, 2000) g;
ANALYZE t;
SELECT reltuples, relpersistence FROM pg_class WHERE oid = 't'::regclass;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan('SELECT count(*) FROM t WHERE k = 3');
SELECT count(*), sum(length(body)) FROM t WHERE k = 3;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
BEGIN;
INSERT INTO t VALUES (3000, 0, 'x');
SAVEPOINT s;
INSERT INTO t VALUES (3001, 0, 'x');
ROLLBACK TO s;
SELECT count(*) FROM t WHERE id >= 3000;
ROLLBACK;
INSERT INTO t VALUES (3000, 0, 'y'), (3000, 0, 'z') ON CONFLICT DO NOTHING;
UPDATE t SET k = 0 WHERE id = 3000;
SET pg_sheet.allow_log_delete = on;
DELETE FROM t WHERE id % 2 = 0;
VACUUM t;
VACUUM FULL t;
REINDEX TABLE t;
SELECT count(*), bool_and(body = repeat(md5(id::text), id % 200)) FROM t;
ALTER TABLE t ADD COLUMN late int DEFAULT 7;
SELECT sum(late) FROM t;
-- more than the session's buffers have room for
CREATE TEMP TABLE wide (id int, body text) USING sheetlog;
ALTER TABLE wide ALTER body SET STORAGE EXTERNAL;
INSERT INTO wide SELECT g, repeat(md5(g::text), 600) FROM generate_series(1, 1000) g;
SELECT count(*), bool_and(body = repeat(md5(id::text), 600)) FROM wide;
-- by the end of the transaction
CREATE TEMP TABLE brief (id int PRIMARY KEY) USING sheetlog ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO brief SELECT generate_series(1, 100);
SELECT count(*) FROM brief;
COMMIT;
SELECT count(*) FROM brief;
INSERT INTO brief VALUES (1);
BEGIN;
INSERT INTO brief VALUES (1);
COMMIT;
BEGIN;
CREATE TEMP TABLE gone (id int) USING sheetlog ON COMMIT DROP;
INSERT INTO gone VALUES (1);
SELECT * FROM gone;
COMMIT;
SELECT to_regclass('gone');
-- with another session's name for it, and not to be prepared
BEGIN;
INSERT INTO t VALUES (5000, 0, 'x');
PREPARE TRANSACTION 'am_persistence';
SELECT count(*) FROM t WHERE id = 5000;
DISCARD TEMP;
SELECT to_regclass('t');
DROP SCHEMA am_persistence CASCADE;
