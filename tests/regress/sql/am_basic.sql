-- The access method sheetlog: rows are appended and read by every way there is, and never changed.
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE SCHEMA am_basic;
SET search_path = am_basic, public;
CREATE TABLE log (id bigint PRIMARY KEY, body text, at date DEFAULT '2026-01-01') USING sheetlog;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'log'::regclass;

-- ways in
INSERT INTO log VALUES (1, 'one'), (2, 'two') RETURNING id, body, at, tableoid::regclass;
INSERT INTO log SELECT g, 'row ' || g FROM generate_series(3, 1000) g;
COPY log (id, body) FROM stdin;
1001	copied
1002	\N
\.
CREATE TABLE copy USING sheetlog AS SELECT * FROM log;
INSERT INTO copy SELECT * FROM copy;
SELECT count(*), count(DISTINCT id) FROM copy;
INSERT INTO log VALUES (1, 'again');
INSERT INTO log VALUES (1, 'again'), (1003, 'new') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO log VALUES (1, 'again'), (1004, 'new') ON CONFLICT (id) DO NOTHING RETURNING id;
WITH new AS (INSERT INTO log VALUES (1005, 'with') RETURNING *) SELECT id, body FROM new;
MERGE INTO log USING (VALUES (1005, 'there'), (1006, 'merged')) v(id, body) ON log.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.body);

-- what is refused, each time in the same words; nothing is lost by it
UPDATE log SET body = 'x' WHERE id = 1;
DELETE FROM log WHERE id = 1;
SELECT * FROM log WHERE id = 1 FOR UPDATE;
SELECT * FROM log WHERE id = 1 FOR KEY SHARE;
INSERT INTO log VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = 'x';
MERGE INTO log USING (VALUES (1)) v(id) ON log.id = v.id WHEN MATCHED THEN DELETE;
MERGE INTO log USING (VALUES (1)) v(id) ON log.id = v.id WHEN MATCHED THEN UPDATE SET body = 'x';
UPDATE log SET body = 'x' WHERE id = -1; -- no row: nothing to refuse
SELECT count(*), sum(id), count(body) FROM log;

-- the setting for repair drills: superusers only
SET pg_sheet.allow_log_delete = on;
BEGIN;
DELETE FROM log WHERE id > 5;
SELECT count(*) FROM log;
UPDATE log SET body = 'x' WHERE id = 1;
ROLLBACK;
SELECT count(*) FROM log;
CREATE ROLE am_basic_user;
GRANT USAGE ON SCHEMA am_basic TO am_basic_user;
GRANT ALL ON log TO am_basic_user;
SET ROLE am_basic_user;
DELETE FROM log WHERE id = 1;
RESET pg_sheet.allow_log_delete;
SET pg_sheet.allow_log_delete = on;
RESET ROLE;
RESET pg_sheet.allow_log_delete;
REVOKE ALL ON log FROM am_basic_user;
REVOKE ALL ON SCHEMA am_basic FROM am_basic_user;
DROP ROLE am_basic_user;

-- transactions
BEGIN;
INSERT INTO log VALUES (2001, 'kept');
SAVEPOINT a;
INSERT INTO log VALUES (2002, 'undone');
SAVEPOINT b;
INSERT INTO log VALUES (2003, 'undone too');
RELEASE b;
SELECT array_agg(id ORDER BY id) FROM log WHERE id > 2000;
ROLLBACK TO a;
SELECT array_agg(id ORDER BY id) FROM log WHERE id > 2000;
INSERT INTO log VALUES (2002, 'second try');
COMMIT;
SELECT id, body FROM log WHERE id > 2000 ORDER BY id;
-- a key whose insertion was undone can be used again, many times
DO $$
BEGIN
	FOR i IN 1 .. 2000 LOOP
		BEGIN
			INSERT INTO log VALUES (3000, repeat('x', 20));
			RAISE EXCEPTION 'undo';
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END $$;
INSERT INTO log VALUES (3000, 'at last');
SELECT id, body FROM log WHERE id = 3000;
BEGIN;
INSERT INTO log VALUES (3001, 'prepared');
PREPARE TRANSACTION 'am_basic';
SELECT count(*) FROM log WHERE id = 3001;
COMMIT PREPARED 'am_basic';
SELECT count(*) FROM log WHERE id = 3001;
-- cursors see what was there when they were opened
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM log WHERE id > 3000 ORDER BY id;
INSERT INTO log VALUES (3002, 'later');
FETCH ALL FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;

-- ways out: the same rows by every kind of scan
CREATE FUNCTION shown(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Scan' THEN RETURN NEXT regexp_replace(trim(line), '^-> *', ''); END IF;
	END LOOP;
END $$;
CREATE INDEX log_at ON log (at);
ANALYZE log;
SET enable_seqscan = off;
SELECT shown('SELECT body FROM log WHERE id = 77');
SELECT body FROM log WHERE id = 77;
SET enable_indexscan = off;
SELECT shown('SELECT count(*) FROM log WHERE id BETWEEN 10 AND 500');
SELECT count(body), sum(id) FROM log WHERE id BETWEEN 10 AND 500;
SET enable_bitmapscan = off;
RESET enable_indexscan;
SELECT shown('SELECT count(*) FROM log WHERE id BETWEEN 10 AND 500');
SELECT count(*), sum(id) FROM log WHERE id BETWEEN 10 AND 500;
SET enable_indexonlyscan = off;
SELECT shown('SELECT * FROM log WHERE ctid = ''(1,3)''');
SELECT id FROM log WHERE ctid = '(1,3)';
SELECT shown('SELECT * FROM log WHERE ctid < ''(2,0)''');
SELECT count(*) > 10 FROM log WHERE ctid < '(2,0)';
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;
SELECT count(*) = (SELECT count(*) FROM log) FROM log TABLESAMPLE SYSTEM (100);
SELECT count(*) = (SELECT count(*) FROM log) FROM log TABLESAMPLE BERNOULLI (100);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT shown('SELECT sum(id) FROM log');
SELECT sum(id), count(*) FROM log;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- long values
INSERT INTO log SELECT 4000 + g, (SELECT string_agg(md5(g || ':' || i), '') FROM generate_series(1, 3000) i) FROM generate_series(1, 3) g;
SELECT id, length(body), md5(body) = md5((SELECT string_agg(md5((id - 4000) || ':' || i), '') FROM generate_series(1, 3000) i)) AS whole, substr(body, 90000, 10) = right(left(body, 90009), 10) AS slice
	FROM log WHERE id > 4000 ORDER BY id;
SELECT reltoastrelid FROM pg_class WHERE oid = 'log'::regclass;

-- triggers see the rows
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_WHEN, NEW.id; RETURN NEW; END $$;
CREATE TRIGGER before_row BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION told();
CREATE TRIGGER after_row AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION told();
CREATE CONSTRAINT TRIGGER at_end AFTER INSERT ON log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION told();
BEGIN;
INSERT INTO log VALUES (5000, 'seen');
COMMIT;
SET client_min_messages = warning;
DROP SCHEMA am_basic CASCADE;
