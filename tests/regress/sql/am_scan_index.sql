-- Index scans of a sheetlog table: forwards, backwards, rescanned, with marks, index-only, by distance.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_scan_index;
SET search_path = am_scan_index, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, k int, body text, p point) USING AM');
SELECT twin('CREATE INDEX T_k ON T (k, id) INCLUDE (body)');
SELECT twin('CREATE INDEX T_p ON T USING gist (p)');
SELECT twin('INSERT INTO T SELECT g, g % 20, ''b'' || g, point(g % 40, g / 40) FROM generate_series(1, 4000) g');
BEGIN;
SELECT twin('INSERT INTO T SELECT g, g % 20, ''aborted'', point(g % 40, g / 40) FROM generate_series(4001, 5000) g');
ROLLBACK;
SELECT twin('INSERT INTO T SELECT g, g % 20, ''c'' || g, point(g % 40, g / 40) FROM generate_series(4501, 4600) g');
SELECT ways('index');
SELECT way('SELECT * FROM T WHERE id BETWEEN 10 AND 4550');
SELECT way('SELECT * FROM T WHERE k = 3 AND id < 1000');
SELECT way('SELECT * FROM T WHERE k IN (3, 5, 7)');
-- in the order of the index, in both directions
SELECT way('SELECT array_agg(id) FROM (SELECT id, body FROM T ORDER BY id) x');
SELECT way('SELECT array_agg(body) FROM (SELECT id, body FROM T ORDER BY id DESC LIMIT 200) x');
SELECT way('SELECT max(id), min(id) FROM T WHERE body IS NOT NULL');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, body FROM l WHERE id >= 3998 ORDER BY id;
FETCH 4 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH LAST FROM c;
FETCH RELATIVE -2 FROM c;
FETCH FORWARD ALL FROM c;
COMMIT;
-- with rows that this transaction adds while it reads
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l WHERE id > 4598 ORDER BY id;
FETCH c;
INSERT INTO l VALUES (4605, 5, 'later'), (4599 + 10, 5, 'later');
FETCH ALL FROM c;
SELECT id FROM l WHERE id > 4598 ORDER BY id;
ROLLBACK;
-- rescanned, and merged with marks
SELECT way('SELECT g, x.* FROM generate_series(0, 30) g, LATERAL (SELECT id, body FROM T WHERE k = g AND id > g * 100 ORDER BY id LIMIT 3) x');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SELECT way('SELECT count(*), sum(a.id * b.id) FROM T a JOIN T b ON a.k = b.k WHERE a.id < 100 AND b.body < ''b2''');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
-- nearest first
SELECT way('SELECT id FROM (SELECT id FROM T ORDER BY p <-> point(20.2, 50.1) LIMIT 9) x');
SELECT way('SELECT * FROM T WHERE p <@ box(point(3, 3), point(9, 9))');
-- index only, before and after VACUUM
SELECT ways('indexonly', 'index');
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
SELECT way('SELECT count(*) FROM T WHERE k BETWEEN 4 AND 6');
VACUUM l;
VACUUM h;
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
BEGIN;
SELECT twin('INSERT INTO T VALUES (6001, 11, ''own'')');
SAVEPOINT s;
SELECT twin('INSERT INTO T VALUES (6002, 11, ''undone'')');
ROLLBACK TO s;
SELECT way('SELECT k, id, body FROM T WHERE k = 11 AND id > 3900');
ROLLBACK;
SELECT way('SELECT k, id, body FROM T WHERE k = 11 AND id > 3900');
SET pg_sheet.allow_log_delete = on;
BEGIN;
SELECT twin('DELETE FROM T WHERE id % 3 = 0');
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
ROLLBACK;
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
SELECT twin('DELETE FROM T WHERE id % 3 = 0');
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
VACUUM l;
VACUUM h;
SELECT way('SELECT k, id, body FROM T WHERE k = 11');
-- by parallel workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SELECT way('SELECT k, count(*), sum(length(body)), min(p[0]) FROM T WHERE id BETWEEN 100 AND 4400 GROUP BY k');
-- the planner looks at the ends of an index whose newest rows are dead
BEGIN;
SELECT twin('INSERT INTO T SELECT g, 1, ''aborted'' FROM generate_series(100001, 100100) g');
ROLLBACK;
ANALYZE l;
SELECT way('SELECT * FROM T WHERE id > 4590');
DROP SCHEMA am_scan_index CASCADE;
