-- Sheetlog tables made of queries: CREATE TABLE AS, SELECT INTO, materialized views and their refreshes.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_made;
SET search_path = am_made, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE source AS SELECT g AS id, g % 10 AS k, repeat(md5(g::text), g % 60) AS body FROM generate_series(1, 3000) g;
CREATE FUNCTION method(rel regclass) RETURNS name LANGUAGE sql AS 'SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = rel';
SELECT twin('CREATE TABLE T USING AM AS SELECT * FROM source');
SELECT same(), method('l');
CREATE TABLE l2 USING sheetlog AS SELECT * FROM source WITH NO DATA;
SELECT count(*), method('l2') FROM l2;
CREATE TABLE IF NOT EXISTS l2 USING sheetlog AS SELECT * FROM source;
SELECT count(*) FROM l2;
SET default_table_access_method = sheetlog;
SELECT id, body INTO l3 FROM source WHERE k = 3;
CREATE TABLE l4 (LIKE source INCLUDING ALL);
RESET default_table_access_method;
SELECT count(*), method('l3'), method('l4') FROM l3;
-- of itself, of a query by parallel workers, of an aborted transaction
CREATE TABLE l5 USING sheetlog AS SELECT a.id, b.body FROM l a JOIN l b USING (id) WHERE a.k = 3;
SELECT count(*), bool_and(body = repeat(md5(id::text), id % 60)) FROM l5;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE l6 USING sheetlog AS SELECT k, count(*) AS n, sum(length(body)) AS s FROM l GROUP BY k;
CREATE TABLE h6 AS SELECT k, count(*) AS n, sum(length(body)) AS s FROM h GROUP BY k;
SELECT same('SELECT * FROM T6');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
BEGIN;
CREATE TABLE l7 USING sheetlog AS SELECT * FROM l;
SELECT count(*) FROM l7;
ROLLBACK;
SELECT to_regclass('l7');
DO $$ BEGIN EXECUTE 'EXPLAIN ANALYZE CREATE TABLE l7 USING sheetlog AS SELECT * FROM source WHERE id <= 10'; END $$;
SELECT count(*) FROM l7;
-- materialized views
CREATE MATERIALIZED VIEW m USING sheetlog AS SELECT id, k, body FROM source WHERE k < 5;
SELECT count(*), method('m') FROM m;
CREATE INDEX m_k ON m (k);
DELETE FROM source WHERE id <= 100;
INSERT INTO source SELECT g, 1, 'new' FROM generate_series(4001, 4020) g;
SELECT count(*) FROM m;
REFRESH MATERIALIZED VIEW m;
SELECT count(*), method('m') FROM m;
SET enable_seqscan = off;
SELECT count(*) FROM m WHERE k = 1;
RESET enable_seqscan;
BEGIN;
REFRESH MATERIALIZED VIEW m WITH NO DATA;
SELECT count(*) FROM m;
ROLLBACK;
SELECT count(*) FROM m;
-- CONCURRENTLY changes rows: without a difference there is nothing to do, else it is right or refused, and the view stays whole
CREATE UNIQUE INDEX m_id ON m (id);
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
CREATE TEMP TABLE before AS SELECT * FROM m;
INSERT INTO source VALUES (5001, 1, 'one more');
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
SELECT count(*) FROM m WHERE id = 5001;
UPDATE source SET body = 'changed' WHERE id = 5001;
SELECT refusal('REFRESH MATERIALIZED VIEW CONCURRENTLY m') ~ '^(accepted|0A000 cannot delete from table "m")$' AS clear;
SELECT count(*), count(*) FILTER (WHERE body IN ('one more', 'changed')) AS one FROM m WHERE id = 5001;
SELECT count(*) FROM before b WHERE NOT EXISTS (SELECT FROM m WHERE m.id = b.id AND m.body = b.body);
REFRESH MATERIALIZED VIEW m;
SELECT count(*) FROM m WHERE body = 'changed';
ALTER MATERIALIZED VIEW m SET ACCESS METHOD heap;
SELECT count(*), method('m') FROM m;
ALTER MATERIALIZED VIEW m SET ACCESS METHOD sheetlog;
REFRESH MATERIALIZED VIEW m;
SELECT count(*), method('m') FROM m;
INSERT INTO m VALUES (1, 1, 'x');
DROP SCHEMA am_made CASCADE;
