-- Sequential scans of a sheetlog table, alone, in parallel, synchronised with each other, forwards and from the middle.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_scan_seq;
SET search_path = am_scan_seq, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, k int, body text) USING AM');
SELECT same(); -- an empty table
SELECT twin('INSERT INTO T SELECT g, g % 10, repeat(md5(g::text), g % 12) FROM generate_series(1, 3000) g');
-- rows of aborted transactions before, between and after others
BEGIN;
SELECT twin('INSERT INTO T SELECT g, g % 10, ''aborted'' FROM generate_series(1, 2000) g');
ROLLBACK;
SELECT twin('INSERT INTO T SELECT g, g % 10, repeat(''y'', g) FROM generate_series(3001, 3500) g');
BEGIN;
SELECT twin('INSERT INTO T SELECT g, g % 10, ''aborted'' FROM generate_series(1, 500) g');
ROLLBACK;
SELECT ways('seq');
SELECT way('SELECT * FROM T');
SELECT way('SELECT k, count(*), sum(length(body)) FROM T WHERE id % 3 = 0 GROUP BY k');

-- by parallel workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT way('SELECT k, count(*), sum(length(body)) FROM T GROUP BY k');
SET parallel_leader_participation = off;
SELECT way('SELECT count(*), sum(id) FROM T WHERE body LIKE ''y%''');
RESET parallel_leader_participation;
-- rows of this transaction, and of its subtransactions, are seen by the workers
BEGIN;
SELECT twin('INSERT INTO T SELECT g, 1, ''own'' FROM generate_series(4001, 4100) g');
SAVEPOINT s;
SELECT twin('INSERT INTO T SELECT g, 2, ''own'' FROM generate_series(4101, 4200) g');
SAVEPOINT gone;
SELECT twin('INSERT INTO T SELECT g, 3, ''own'' FROM generate_series(4201, 4300) g');
ROLLBACK TO gone;
SELECT way('SELECT k, count(*) FROM T WHERE body = ''own'' GROUP BY k');
ROLLBACK;
-- a parallel scan that is started again for each outer row
SET enable_material = off;
SELECT way('SELECT g, (SELECT count(*) FROM T WHERE k = g) FROM generate_series(1, 3) g');
RESET enable_material;
SELECT CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'debug_parallel_query' ELSE 'force_parallel_mode' END AS always_parallel \gset
SET :always_parallel = on;
SELECT same('SELECT * FROM T WHERE id BETWEEN 100 AND 150');
RESET :always_parallel;
SET max_parallel_workers_per_gather = 0;

-- scans that begin where another one is; synchronize_seqscans is for tables of more than a quarter of the shared buffers
SET synchronize_seqscans = on;
SELECT twin('CREATE TABLE T2 (id int, body text) USING AM');
ALTER TABLE l2 ALTER body SET STORAGE PLAIN;
ALTER TABLE h2 ALTER body SET STORAGE PLAIN;
SELECT twin('INSERT INTO T2 SELECT g, repeat(''x'', 7000) FROM generate_series(1, 6000) g');
SELECT pg_relation_size('l2') > (SELECT setting::bigint * 8192 / 4 FROM pg_settings WHERE name = 'shared_buffers') AS large;
BEGIN;
DECLARE a CURSOR FOR SELECT id FROM l2;
MOVE 4000 FROM a;
DECLARE b CURSOR FOR SELECT id FROM l2;
MOVE 10 FROM b;
SELECT count(*), count(DISTINCT id), sum(id) FROM l2; -- every row once, wherever it began
FETCH a;
MOVE FORWARD ALL IN a;
MOVE FORWARD ALL IN b;
COMMIT;
SELECT way('SELECT count(*), count(DISTINCT id), sum(id) FROM T2');
RESET synchronize_seqscans;

-- a scan that is not read to its end, and one that is rescanned
SELECT count(*) FROM (SELECT * FROM l LIMIT 5) x;
SELECT way('SELECT * FROM generate_series(1, 4) g, LATERAL (SELECT count(*) FROM T WHERE k = g OFFSET 0) x');
-- in another transaction's snapshot
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT same('SELECT count(*), sum(id) FROM T');
COMMIT;
DROP SCHEMA am_scan_seq CASCADE;
