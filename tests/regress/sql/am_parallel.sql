-- Parallel plans beside writes to sheetlog tables in the same statement and transaction: nothing is refused, nothing is missed.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_parallel;
SET search_path = am_parallel, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, k int, body text) USING AM');
SELECT twin('INSERT INTO T SELECT g, g % 100, md5(g::text) FROM generate_series(1, 20000) g');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION launched(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text; result bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		result := result OR line ~ 'Workers Launched: [1-9]';
	END LOOP;
	RETURN result;
END $$;
SELECT launched('SELECT k, count(*), max(body) FROM l GROUP BY k');
-- after writes of the same transaction, in savepoints, after errors
BEGIN;
SELECT twin('INSERT INTO T SELECT g, -1, ''own'' FROM generate_series(30001, 31000) g');
SELECT same('SELECT k, count(*), max(body) FROM T GROUP BY k');
SAVEPOINT s;
SELECT twin('INSERT INTO T SELECT g, -2, ''own'' FROM generate_series(31001, 32000) g');
SELECT same('SELECT k, count(*), max(body) FROM T GROUP BY k');
INSERT INTO l VALUES (1);
ROLLBACK TO s;
SELECT same('SELECT k, count(*), max(body) FROM T GROUP BY k');
COMMIT;
-- a statement that reads in parallel and writes
SELECT twin('CREATE TABLE T2 (k int, n bigint, m text) USING AM');
SELECT twin('INSERT INTO T2 SELECT k, count(*), max(body) FROM T GROUP BY k');
SELECT twin('INSERT INTO T SELECT 100000 + k, k, max(body) FROM T GROUP BY k');
SELECT twin('CREATE TABLE T3 USING AM AS SELECT k, count(*) AS n, max(body) AS m FROM T GROUP BY k');
SELECT launched('CREATE TABLE l4 USING sheetlog AS SELECT k, count(*) AS n FROM l GROUP BY k');
SELECT same('SELECT * FROM T2');
SELECT same('SELECT * FROM T3');
WITH new AS (INSERT INTO l VALUES (200000, 5, 'with') RETURNING k) SELECT (SELECT count(*) FROM l WHERE k = 5) AS before, k FROM new;
INSERT INTO h VALUES (200000, 5, 'with');
SELECT same('SELECT count(*) FROM T WHERE k = 5');
-- a function that writes is not run by workers, one that reads is; a materialized view on top
CREATE FUNCTION reads(int) RETURNS bigint PARALLEL SAFE STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM l2 WHERE k <= $1); END $$;
SELECT sum(reads(k)) FROM (SELECT DISTINCT k FROM l WHERE k BETWEEN 0 AND 20) x;
CREATE FUNCTION writes(int) RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN INSERT INTO l2 VALUES ($1); RETURN 1; END $$;
SELECT CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'debug_parallel_query' ELSE 'force_parallel_mode' END AS always_parallel \gset
SET :always_parallel = on;
SELECT writes(1);
RESET :always_parallel;
SELECT count(*) FROM l2 WHERE n IS NULL;
CREATE MATERIALIZED VIEW m USING sheetlog AS SELECT k, count(*) AS n FROM l GROUP BY k;
REFRESH MATERIALIZED VIEW m;
SELECT sum(n) = (SELECT count(*) FROM l) FROM m;
-- index builds by workers, on rows of this transaction as well
SET max_parallel_maintenance_workers = 2;
BEGIN;
SELECT twin('INSERT INTO T SELECT g, -3, ''own'' FROM generate_series(300001, 301000) g');
SAVEPOINT s;
SELECT twin('INSERT INTO T SELECT g, -3, ''undone'' FROM generate_series(400001, 401000) g');
ROLLBACK TO s;
CREATE INDEX l_k ON l (k, id);
SET LOCAL enable_seqscan = off;
SELECT plan('SELECT count(*) FROM T WHERE k = -3');
SELECT same('SELECT count(*), sum(id) FROM T WHERE k = -3');
COMMIT;
CREATE UNIQUE INDEX l_unique ON l (id, body);
VACUUM (PARALLEL 2) l;
SELECT same('SELECT k, count(*), max(body) FROM T GROUP BY k');
-- cursors that are run in pieces
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM l GROUP BY k ORDER BY k;
FETCH 2 FROM c;
INSERT INTO l VALUES (500000, -3, 'later');
FETCH 1 FROM c;
ROLLBACK;
DROP SCHEMA am_parallel CASCADE;
