-- The access method sheetlog: every kind of index, built before and after the rows, answers like a sequential scan.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_indexes;
SET search_path = am_indexes, public;
CREATE TABLE log (id int, n int, body text, tags int[], at int4range) USING sheetlog;
CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO am_indexes.log SELECT g, g % 97, 'body ' || g, ARRAY[g % 5, g % 7], int4range(g, g + 1) FROM generate_series(first, last) g
$$;
SELECT fill(1, 3000);
-- rows of an aborted transaction must be in no index
BEGIN;
SELECT fill(1, 500);
ROLLBACK;
-- the query answered by the index, and by a sequential scan
CREATE FUNCTION both_ways(condition text) RETURNS TABLE (node text, rows bigint, agree bool) LANGUAGE plpgsql AS $$
DECLARE line text; want bigint;
BEGIN
	SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_seqscan = on;
	EXECUTE 'SELECT count(*) FROM am_indexes.log WHERE ' || condition INTO want;
	SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_seqscan = off;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT count(*) FROM am_indexes.log WHERE ' || condition LOOP
		IF line ~ 'Seq Scan| on log_' OR line ~ 'using log_' THEN node := substring(line FROM 'Seq Scan|log_\w+'); END IF;
	END LOOP;
	EXECUTE 'SELECT count(*) FROM am_indexes.log WHERE ' || condition INTO rows;
	agree := rows = want;
	RETURN NEXT;
END $$;
CREATE INDEX log_btree ON log (n);
CREATE UNIQUE INDEX log_unique ON log (id);
CREATE INDEX log_hash ON log USING hash (body);
CREATE INDEX log_gin ON log USING gin (tags);
CREATE INDEX log_gist ON log USING gist (at);
CREATE INDEX log_spgist ON log USING spgist (body);
CREATE INDEX log_partial ON log (id) WHERE n = 96;
CREATE INDEX log_expression ON log ((id * 2));
CREATE INDEX log_include ON log (n, id) INCLUDE (body);
CREATE FUNCTION all_ways() RETURNS TABLE (node text, rows bigint, agree bool) LANGUAGE sql AS $$
	SELECT (am_indexes.both_ways(c)).* FROM unnest(ARRAY['n = 5', 'id = 1234', 'id > 2990', 'body = ''body 77''', 'tags @> ARRAY[3, 6]', 'at && int4range(100, 120)',
		'body ^@ ''body 99''', 'n = 96 AND id < 500', 'id * 2 = 246']) c
$$;
SELECT * FROM all_ways();
SELECT fill(3001, 4000);
SELECT sum(rows), bool_and(agree) FROM all_ways();
REINDEX TABLE log;
SELECT sum(rows), bool_and(agree) FROM all_ways();
VACUUM log;
SELECT sum(rows), bool_and(agree) FROM all_ways();
DROP INDEX log_btree, log_unique, log_hash, log_gin, log_gist, log_spgist, log_partial, log_expression, log_include;
CREATE INDEX CONCURRENTLY log_btree ON log (n);
CREATE UNIQUE INDEX CONCURRENTLY log_unique ON log (id);
CREATE INDEX CONCURRENTLY log_gin ON log USING gin (tags);
CREATE INDEX CONCURRENTLY log_partial ON log (id) WHERE n = 96;
CREATE INDEX CONCURRENTLY log_expression ON log ((id * 2));
REINDEX INDEX CONCURRENTLY log_btree;
SELECT sum(rows), bool_and(agree) FROM all_ways();
DROP INDEX log_btree, log_unique, log_gin, log_partial, log_expression;
CREATE INDEX log_brin ON log USING brin (id) WITH (pages_per_range = 2);
SELECT * FROM both_ways('id BETWEEN 100 AND 120');
SELECT fill(4001, 6000);
SELECT brin_summarize_new_values('log_brin') > 0;
SELECT * FROM both_ways('id BETWEEN 5100 AND 5120');
DROP INDEX log_brin;
-- parallel builds
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
CREATE INDEX log_btree ON log (n);
CREATE UNIQUE INDEX log_unique ON log (id);
SELECT * FROM both_ways('n = 5');
SELECT * FROM both_ways('id BETWEEN 100 AND 120');
SELECT reltuples FROM pg_class WHERE oid = 'log_btree'::regclass;
RESET max_parallel_maintenance_workers;
RESET min_parallel_table_scan_size;
-- unique indexes and constraints
DROP INDEX log_unique;
SELECT fill(17, 17);
CREATE UNIQUE INDEX log_unique ON log (id);
CREATE UNIQUE INDEX CONCURRENTLY log_unique ON log (id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'log_unique'::regclass;
DROP INDEX log_unique;
CREATE TABLE once (id int, at int4range, EXCLUDE USING gist (at WITH &&)) USING sheetlog;
INSERT INTO once VALUES (1, '[1,5)');
INSERT INTO once VALUES (2, '[4,6)');
INSERT INTO once VALUES (2, '[4,6)') ON CONFLICT DO NOTHING;
ALTER TABLE once ADD CONSTRAINT once_id UNIQUE (id) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO once VALUES (1, '[10,11)');
COMMIT;
-- an index on rows of the same transaction
BEGIN;
CREATE TABLE mine (id int) USING sheetlog;
INSERT INTO mine SELECT generate_series(1, 100);
SAVEPOINT s;
INSERT INTO mine SELECT generate_series(1, 100);
ROLLBACK TO s;
CREATE UNIQUE INDEX ON mine (id);
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM mine WHERE id > 50;
COMMIT;
DROP SCHEMA am_indexes CASCADE;
