-- Every way of reading a table that uses sheetlog, against a copy in heap; what EXPLAIN says is compared, too.
SET client_min_messages = warning;
CREATE SCHEMA am_scans;
SET search_path = am_scans, public;
CREATE TABLE log (id int, k int, body text, p point, r int4range, words tsvector) USING sheetlog;
INSERT INTO log SELECT g, g % 100, md5(g::text), point(g % 50, g / 50), int4range(g, g + 10), to_tsvector('simple', 'w' || g % 30 || ' common') FROM generate_series(1, 5000) g;
BEGIN; INSERT INTO log SELECT g, g % 100, 'aborted' FROM generate_series(1, 2000) g; ROLLBACK;
INSERT INTO log SELECT g, g % 100, repeat(md5(g::text), 400), point(g, g), int4range(g, g + 10), 'long' FROM generate_series(5001, 5040) g;
CREATE INDEX log_btree ON log (id);
CREATE INDEX log_hash ON log USING hash (k);
CREATE INDEX log_brin ON log USING brin (id) WITH (pages_per_range = 2);
CREATE INDEX log_gin ON log USING gin (words);
CREATE INDEX log_gist ON log USING gist (p);
CREATE INDEX log_spgist ON log USING spgist (r);
CREATE INDEX log_expr ON log (lower(body)) WHERE k < 50;
CREATE INDEX log_cover ON log (k, id) INCLUDE (body) WHERE length(body) < 100;
ANALYZE log;
SELECT reltuples, (SELECT n_distinct FROM pg_stats WHERE schemaname = 'am_scans' AND tablename = 'log' AND attname = 'k') FROM pg_class WHERE oid = 'log'::regclass;
CREATE TABLE heap AS SELECT * FROM log;
-- The rows by the plan that the settings leave, against the heap table's.
CREATE FUNCTION way(condition text, VARIADIC settings text[] DEFAULT '{}') RETURNS TABLE (plan text, rows bigint, same bool) LANGUAGE plpgsql AS $$
DECLARE setting text; line text;
BEGIN
	SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_tidscan = off;
	FOREACH setting IN ARRAY settings LOOP PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true); END LOOP;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT id, body FROM log WHERE ' || condition LOOP
		IF line ~ 'Scan' THEN plan := coalesce(plan || ' < ', '') || regexp_replace(line, '^[ >-]*', ''); END IF;
	END LOOP;
	EXECUTE 'CREATE TEMP TABLE got AS SELECT id, body FROM log WHERE ' || condition;
	SET LOCAL enable_seqscan = on;
	EXECUTE 'SELECT count(*) FROM got' INTO rows;
	EXECUTE 'SELECT NOT EXISTS ((SELECT * FROM got EXCEPT ALL SELECT id, body FROM heap WHERE ' || condition || ') UNION ALL (SELECT id, body FROM heap WHERE ' || condition || ' EXCEPT ALL SELECT * FROM got))' INTO same;
	DROP TABLE got;
	RETURN NEXT;
END $$;
SELECT * FROM way('true', 'enable_seqscan=on');
SELECT CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'debug_parallel_query' ELSE 'force_parallel_mode' END AS always_parallel \gset
SELECT * FROM way('k = 7', 'enable_seqscan=on', 'parallel_setup_cost=0', 'parallel_tuple_cost=0', 'min_parallel_table_scan_size=0', :'always_parallel' || '=on');
SELECT * FROM way('id BETWEEN 100 AND 300', 'enable_indexscan=on');
SELECT * FROM way('id BETWEEN 4990 AND 5010', 'enable_bitmapscan=on');
SELECT * FROM way('id < 4000 AND k <> 3', 'enable_bitmapscan=on', 'work_mem=64kB');
SELECT * FROM way('k = 7', 'enable_indexscan=on');
SELECT * FROM way('k = 7 AND id < 2500 OR id = 5005', 'enable_bitmapscan=on');
SELECT * FROM way($$words @@ 'w7 & common'$$, 'enable_bitmapscan=on');
SELECT * FROM way($$p <@ box(point(3, 3), point(9, 20))$$, 'enable_indexscan=on');
SELECT * FROM way('r @> 777', 'enable_indexscan=on');
SELECT * FROM way($$lower(body) < '2' AND k < 50$$, 'enable_indexscan=on');
DROP INDEX log_btree;
SELECT * FROM way('id BETWEEN 100 AND 120', 'enable_bitmapscan=on');
CREATE UNIQUE INDEX CONCURRENTLY log_btree ON log (id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT k, id FROM log WHERE k = 5 AND length(body) < 100 ORDER BY id;
SELECT count(*), sum(id) FROM (SELECT k, id FROM log WHERE k = 5 AND length(body) < 100 ORDER BY id) x;
SELECT id FROM log ORDER BY p <-> point(25, 50) LIMIT 3;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- TIDs: block 0 holds no rows, numbers begin at 1
SELECT count(*) FROM log WHERE ctid < '(1,1)';
SELECT id FROM log WHERE ctid = '(1,1)';
EXPLAIN (COSTS OFF) SELECT id FROM log WHERE ctid > '(1,5)' AND ctid <= '(1,9)';
SELECT id FROM log WHERE ctid > '(1,5)' AND ctid <= '(1,9)';
SELECT count(*) FROM log WHERE ctid >= '(100000,1)';
SELECT count(*) FROM log WHERE ctid = '(100000,1)';
SELECT count(*) = (SELECT count(*) FROM log) FROM log WHERE ctid >= '(0,0)';
SELECT id FROM log WHERE ctid = '(1,0)' OR ctid = '(1,300)' OR ctid = '(1,2)';
SELECT currtid2('log', '(1,1)'::tid);
-- cursors, both ways and across the end
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM log WHERE id <= 500 OR id > 5038;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 500 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
MOVE BACKWARD ALL IN c;
FETCH NEXT FROM c;
-- it does not see what comes later
DECLARE early CURSOR FOR SELECT count(*) FROM log;
INSERT INTO log (id) SELECT g FROM generate_series(10001, 10500) g;
FETCH early;
SELECT count(*) FROM log WHERE id > 10000;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM log WHERE id > 10498;
ROLLBACK;
SELECT count(*) FROM log WHERE id > 10000;
-- samples
SELECT count(*) BETWEEN 1 AND 5039 FROM log TABLESAMPLE SYSTEM (30) REPEATABLE (1);
SELECT count(*) BETWEEN 1500 AND 3500 FROM log TABLESAMPLE BERNOULLI (50) REPEATABLE (1);
SELECT count(*) = (SELECT count(*) FROM log) FROM log TABLESAMPLE SYSTEM (100);
-- scans that start in the middle meet every row once
SET synchronize_seqscans = on;
SELECT count(*), count(DISTINCT id) FROM log;
-- rescans
SELECT count(*), sum(n) FROM generate_series(1, 20) g, LATERAL (SELECT count(*) n FROM log WHERE k = g OFFSET 0) x;
SET enable_seqscan = off;
SELECT count(*), sum(n) FROM generate_series(1, 50) g, LATERAL (SELECT count(*) n FROM log WHERE id BETWEEN g * 100 AND g * 100 + 9 OFFSET 0) x;
RESET enable_seqscan;
-- indexes hold what the table holds
REINDEX TABLE log;
REINDEX TABLE CONCURRENTLY log;
CLUSTER log USING log_cover;
CLUSTER log USING log_btree;
SELECT id FROM log LIMIT 3;
SELECT * FROM way('id BETWEEN 4000 AND 4500', 'enable_indexscan=on');
SELECT * FROM way($$words @@ 'w7'$$, 'enable_bitmapscan=on');
CREATE INDEX CONCURRENTLY log_late ON log (body text_pattern_ops) WHERE id < 3000;
SELECT * FROM way($$body LIKE '00%' AND id < 3000$$, 'enable_indexscan=on');
CREATE UNIQUE INDEX CONCURRENTLY log_twice ON log (k);
ALTER TABLE log ADD EXCLUDE USING gist (r WITH =);
INSERT INTO log (id, r) VALUES (20001, int4range(1, 11));
-- the directory's index: pages of a key
CREATE TABLE keyed (key bigint NOT NULL, position bigint NOT NULL, body text) USING sheetlog;
INSERT INTO keyed SELECT g % 5, g / 5, 'b' || g FROM generate_series(1, 4000) g;
CREATE INDEX keyed_directory ON keyed USING sheetlog_directory (key, position);
INSERT INTO keyed SELECT g % 7, g / 5, 'b' || g FROM generate_series(4001, 8000) g;
INSERT INTO keyed SELECT 3, g, 'out of order' FROM generate_series(5000, 4000, -100) g;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM keyed WHERE key = 3 AND position > 700;
SELECT count(*) FROM keyed WHERE key = 3 AND position > 700;
SET enable_seqscan = on;
SET enable_bitmapscan = off;
SELECT count(*) FROM keyed WHERE key = 3 AND position > 700;
RESET enable_bitmapscan;
SELECT pg_relation_size('keyed_directory') <= 3 * 8192 AS "an entry a page and key";
SELECT * FROM sheet.am_check('keyed');
REINDEX INDEX CONCURRENTLY keyed_directory;
SELECT * FROM sheet.am_check('keyed');
INSERT INTO keyed VALUES (NULL, 1);
INSERT INTO keyed VALUES (1, NULL);
CREATE UNIQUE INDEX ON keyed USING sheetlog_directory (key, position);
CREATE INDEX ON keyed USING sheetlog_directory (body);
DROP SCHEMA am_scans CASCADE;
