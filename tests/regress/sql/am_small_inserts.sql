-- Many small transactions cost a sheetlog table no more than a heap table: space, WAL, and what VACUUM makes of it.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_small_inserts;
SET search_path = am_small_inserts, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int, body text) USING sheetlog WITH (autovacuum_enabled = off);
CREATE TABLE h (id int, body text) USING heap WITH (autovacuum_enabled = off);
CREATE PROCEDURE one_by_one(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		INSERT INTO l VALUES (i, 'row ' || i);
		COMMIT;
		INSERT INTO h VALUES (i, 'row ' || i);
		COMMIT;
	END LOOP;
END $$;
CALL one_by_one(3000);
SELECT count(*), count(DISTINCT id), bool_and(body = 'row ' || id) FROM l;
SELECT pg_total_relation_size('l') <= 1.5 * pg_total_relation_size('h') + 65536 AS space FROM l LIMIT 1;
-- WAL of a single row, without full pages
CREATE FUNCTION wal_bytes(statement text, full_pages bool DEFAULT false) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json; total numeric := 0; n int := 0;
BEGIN
	FOR i IN 1 .. 200 LOOP
		EXECUTE 'EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT json) ' || statement INTO plan;
		CONTINUE WHEN NOT full_pages AND (plan->0->'Plan'->>'WAL FPI')::int > 0;
		total := total + (plan->0->'Plan'->>'WAL Bytes')::numeric;
		n := n + 1;
	END LOOP;
	RETURN total / n;
END $$;
CREATE TEMP TABLE wal AS SELECT wal_bytes('INSERT INTO l VALUES (1, ''one row'')') AS log, wal_bytes('INSERT INTO h VALUES (1, ''one row'')') AS heap;
SELECT log <= 2 * heap AS single FROM wal;
-- and of many
CREATE TEMP TABLE bulk AS SELECT wal_bytes('INSERT INTO l SELECT g, ''many'' FROM generate_series(1, 50) g') AS log, wal_bytes('INSERT INTO h SELECT g, ''many'' FROM generate_series(1, 50) g') AS heap;
SELECT log <= 2 * heap AS many FROM bulk;
-- a wide row costs about its width
SELECT wal_bytes('INSERT INTO l VALUES (1, (SELECT string_agg(md5(g::text || random()), '''') FROM generate_series(1, 1000) g))', true) BETWEEN 32000 AND 64000 AS wide;
-- space of aborted transactions is used again
CREATE TABLE l2 (id int, body text) USING sheetlog WITH (autovacuum_enabled = off);
CREATE PROCEDURE aborts(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		INSERT INTO l2 SELECT g, repeat('x', 500) FROM generate_series(1, 200) g;
		ROLLBACK;
	END LOOP;
END $$;
CALL aborts(10);
VACUUM l2;
INSERT INTO l2 VALUES (1, 'kept');
CREATE TEMP TABLE size AS SELECT pg_relation_size('l2') AS first;
CALL aborts(10);
VACUUM l2;
CALL aborts(10);
VACUUM l2;
SELECT pg_relation_size('l2') <= 2 * (10 * 200 * 550) + 200000 AS bounded, (SELECT count(*) FROM l2) AS rows;
DROP SCHEMA am_small_inserts CASCADE;
