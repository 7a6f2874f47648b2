-- Bitmap scans of a sheetlog table: exact and lossy, combined, in parallel, with rows that come while the bitmap is there.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_scan_bitmap;
SET search_path = am_scan_bitmap, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, k int, n int, body text) USING AM');
SELECT twin('INSERT INTO T SELECT g, g % 50, g / 100, CASE WHEN g % 7 = 0 THEN repeat(md5(g::text), 20) ELSE md5(g::text) END FROM generate_series(1, 20000) g');
BEGIN;
SELECT twin('INSERT INTO T SELECT g, g % 50, g / 100, ''aborted'' FROM generate_series(1, 5000) g');
ROLLBACK;
SELECT twin('CREATE INDEX T_k ON T (k)');
SELECT twin('CREATE INDEX T_n ON T (n)');
SELECT twin('CREATE INDEX T_id ON T (id)');
BEGIN;
SELECT twin('INSERT INTO T SELECT g, g % 50, g / 100, ''aborted, indexed'' FROM generate_series(1, 5000) g');
ROLLBACK;
SELECT twin('INSERT INTO T SELECT g, g % 50, g / 100, ''late'' FROM generate_series(20001, 21000) g');
SELECT ways('bitmap');
SELECT way('SELECT * FROM T WHERE k = 7');
SELECT way('SELECT * FROM T WHERE k = 7 AND n BETWEEN 10 AND 30');
SELECT way('SELECT * FROM T WHERE k = 7 OR n = 30 OR id < 10');
SELECT way('SELECT * FROM T WHERE k IN (1, 2, 3) AND body = ''late''');
SELECT way('SELECT count(*) FROM T WHERE k > 40'); -- no column is needed
SELECT way('SELECT * FROM T WHERE k = -1');
-- more pages than the bitmap has room for: whole pages, rechecked
SELECT twin('CREATE TABLE T2 (id int, k int, pad text) USING AM');
ALTER TABLE l2 ALTER pad SET STORAGE PLAIN;
ALTER TABLE h2 ALTER pad SET STORAGE PLAIN;
SELECT twin('INSERT INTO T2 SELECT g, g % 3, repeat(''p'', 2500) FROM generate_series(1, 6000) g');
SELECT twin('CREATE INDEX T2_id ON T2 (id)');
SELECT twin('CREATE INDEX T2_k ON T2 (k)');
SET work_mem = '64kB';
CREATE FUNCTION lossy(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'lossy=[1-9]' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT lossy('SELECT * FROM l2 WHERE k = 1'), lossy('SELECT * FROM l2 WHERE id = 1');
SELECT way('SELECT * FROM T2 WHERE k = 1');
SELECT way('SELECT id FROM T2 WHERE k = 1 AND id > 100');
SELECT way('SELECT id FROM T2 WHERE k <= 1 OR id BETWEEN 500 AND 5000');
RESET work_mem;
-- by parallel workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SELECT way('SELECT k, count(*), sum(id) FROM T WHERE n BETWEEN 20 AND 150 GROUP BY k');
SET work_mem = '64kB';
SELECT way('SELECT k, count(*), sum(id) FROM T2 WHERE k < 2 GROUP BY k');
RESET work_mem;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
-- rows that this transaction adds, and those it takes back
BEGIN;
SELECT twin('INSERT INTO T VALUES (30001, 7, 0, ''own'')');
SAVEPOINT s;
SELECT twin('INSERT INTO T VALUES (30002, 7, 0, ''own'')');
ROLLBACK TO s;
SELECT way('SELECT id FROM T WHERE k = 7 AND body = ''own''');
ROLLBACK;
-- while a cursor has its bitmap, rows are added and the table is vacuumed of nothing it sees
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l WHERE k = 9;
FETCH 1 FROM c;
INSERT INTO l SELECT g, 9, 0, 'later' FROM generate_series(40001, 40500) g;
MOVE FORWARD ALL IN c;
ROLLBACK;
-- a bitmap of block ranges, and one of GIN
SELECT twin('CREATE INDEX T_brin ON T USING brin (n) WITH (pages_per_range = 4)');
SELECT twin('DROP INDEX T_n');
SELECT way('SELECT * FROM T WHERE n BETWEEN 50 AND 52');
SELECT way('SELECT id FROM T WHERE n BETWEEN 50 AND 52 AND k = 3');
-- rescanned for every outer row
SELECT way('SELECT v, (SELECT count(*) FROM T WHERE k = v) FROM generate_series(1, 5) v');
DROP SCHEMA am_scan_bitmap CASCADE;
