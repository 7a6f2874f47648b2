-- Rows of every kind in a table that uses sheetlog: the same as in a heap table with the same statements.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_rows;
SET search_path = am_rows, public;
-- Runs the statement for both tables (T) and says whether they hold the same afterwards.
CREATE FUNCTION twin(statement text, key text DEFAULT 'T') RETURNS text LANGUAGE plpgsql AS $$
DECLARE differ bigint; l text; h text;
BEGIN
	EXECUTE regexp_replace(statement, '\mT\M', 'log', 'g');
	EXECUTE regexp_replace(statement, '\mT\M', 'heap', 'g');
	EXECUTE 'SELECT count(*) FROM ((SELECT log::text FROM log EXCEPT ALL SELECT heap::text FROM heap) UNION ALL (SELECT heap::text FROM heap EXCEPT ALL SELECT log::text FROM log)) d' INTO differ;
	EXECUTE 'SELECT count(*) FROM log' INTO l;
	RETURN CASE WHEN differ = 0 THEN 'same, ' || l ELSE 'DIFFERENT: ' || differ END;
END $$;
CREATE TYPE pair AS (a int, b text);
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE DOMAIN small AS int CHECK (VALUE < 1000);
CREATE TABLE log (id bigint, b bool, c "char", i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, t text, v varchar(20), ch char(5),
	by bytea, u uuid, iv interval, p point, ai int[], at text[], co pair, e colour, d small, j jsonb, nm name, ts timestamptz, dt date, tm timetz, m money,
	x xid8, o oid, ip inet, mac macaddr, r int4range, box box, bits bit(7), vb varbit, tsv tsvector) USING sheetlog;
CREATE TABLE heap (LIKE log INCLUDING ALL) USING heap;
SELECT twin($$INSERT INTO T (b, c, i2, i4, i8, f4, f8, n, t, v, ch, by, u, iv, p, ai, at, co, e, d, j, nm, ts, dt, tm, m, x, o, ip, mac, r, box, bits, vb, tsv)
	SELECT g % 2 = 0, 'x', g * 300, -g * 100000, g * (9223372036854775807 / 200), g / 7.0, -g / 3.0, g * 1.23456789, repeat('t', g), 'v' || g, 'ch',
	decode(md5(g::text), 'hex'), md5(g::text)::uuid, g * interval '1 day 2 hours', point(g, -g), ARRAY[g, NULL, -g], ARRAY['a', repeat('b', g * 10)], ROW(g, 'b')::pair, 'green', g, jsonb_build_object('k', g, 'l', repeat('z', g * 5)),
	'name' || g, '2026-01-01'::timestamptz + g * interval '1 second', '2026-01-01'::date - g, '10:00+02', g::text::money, g::text::xid8, 4294967195 - g, '10.0.0.1'::inet + g, '08:00:2b:01:02:03',
	int4range(g, g + 5), box(point(0, 0), point(g, g)), B'1010101', B'101', 'a fat cat'::tsvector FROM generate_series(-100, 100) g$$);
SELECT twin('INSERT INTO T (id) VALUES (NULL), (0), (-9223372036854775808), (9223372036854775807)');
SELECT twin($$INSERT INTO T (i8, f8, f4, i4, i2) VALUES (9223372036854775807, 'NaN', '-Infinity', 2147483647, 32767), (-9223372036854775808, 'Infinity', '-0', -2147483648, -32768), (0, 5e-324, 1e-45, 0, 0)$$);
SELECT twin($$INSERT INTO T (t, by, j) SELECT string_agg(md5((g * s)::text), ''), decode(string_agg(md5((g * s)::text), ''), 'hex'), jsonb_agg(s) FROM generate_series(1, 12) g, generate_series(1, 400) s GROUP BY g$$);
SELECT twin($$INSERT INTO T (t) SELECT left((SELECT string_agg(md5(s::text), '') FROM generate_series(1, 600) s), n) FROM generate_series(7600, 8400, 7) n$$);
SELECT twin($$INSERT INTO T (t) VALUES (repeat('compresses well', 1000000)), ((SELECT string_agg(md5(s::text), '') FROM generate_series(1, 100000) s))$$);
SELECT length(t) FROM log WHERE length(t) > 1000000 ORDER BY 1;
SELECT twin('INSERT INTO T SELECT * FROM T WHERE length(t) > 1000000');
SELECT twin('ALTER TABLE T ALTER t SET STORAGE EXTERNAL');
SELECT twin($$INSERT INTO T (t, v) VALUES (repeat('not compressed', 10000), 'after it')$$);
-- columns come and go
SELECT twin('ALTER TABLE T ADD COLUMN added int DEFAULT 42');
SELECT twin('ALTER TABLE T ADD COLUMN late text');
SELECT twin($$INSERT INTO T (added, late) VALUES (43, 'late'), (NULL, NULL)$$);
SELECT twin('ALTER TABLE T DROP COLUMN t');
SELECT twin($$INSERT INTO T (late) VALUES ('without t')$$);
SELECT twin('ALTER TABLE T ALTER i4 TYPE bigint');
SELECT twin('ALTER TABLE T ADD COLUMN doubled bigint GENERATED ALWAYS AS (i8 % 1000 * 2) STORED');
SELECT twin('INSERT INTO T (i8) VALUES (21)');
SELECT twin('ALTER TABLE T ADD CHECK (id IS DISTINCT FROM 1), ALTER added SET DEFAULT 7');
VACUUM FULL log;
SELECT twin('SELECT 1');
SELECT * FROM sheet.am_check('log');
DROP TABLE log, heap;

-- many columns, no columns
DO $$ BEGIN
	EXECUTE (SELECT 'CREATE TABLE log (' || string_agg('c' || g || CASE g % 3 WHEN 0 THEN ' int' WHEN 1 THEN ' text' ELSE ' float8' END, ', ') || ') USING sheetlog' FROM generate_series(1, 1600) g);
	CREATE TABLE heap (LIKE log) USING heap;
	EXECUTE (SELECT 'INSERT INTO log SELECT ' || string_agg(CASE WHEN g % 7 <> 3 AND g > 3 THEN 'NULL' ELSE g::text END || CASE g % 3 WHEN 0 THEN '' WHEN 1 THEN '::text' ELSE '::float8' END, ', ' ORDER BY g) || ' FROM generate_series(1, 20)' FROM generate_series(1, 1600) g);
	INSERT INTO heap SELECT * FROM log;
	-- and one that heap has no room for
	EXECUTE (SELECT 'INSERT INTO log SELECT ' || string_agg(g::text || CASE g % 3 WHEN 0 THEN '' WHEN 1 THEN '::text' ELSE '::float8' END, ', ' ORDER BY g) FROM generate_series(1, 1600) g);
END $$;
SELECT count(*) FROM (SELECT log::text FROM log EXCEPT ALL SELECT heap::text FROM heap) x;
SELECT length(log::text) FROM log ORDER BY 1 DESC LIMIT 1;
SELECT c1, c3, c1599, c1600 FROM log LIMIT 1;
DROP TABLE log, heap;
CREATE TABLE log () USING sheetlog;
INSERT INTO log DEFAULT VALUES;
INSERT INTO log SELECT FROM generate_series(1, 1000);
SELECT count(*) FROM log;
DROP TABLE log;

-- what a statement tells of its rows
CREATE TABLE log (id int PRIMARY KEY, body text) USING sheetlog;
INSERT INTO log VALUES (1, 'a'), (2, 'b') RETURNING ctid, tableoid::regclass, xmin = pg_current_xact_id()::xid AS mine, cmin, xmax, id, body;
INSERT INTO log VALUES (2, 'again'), (3, 'c'), (3, 'twice') ON CONFLICT DO NOTHING RETURNING ctid, id, body;
INSERT INTO log VALUES (2, 'again') ON CONFLICT (id) DO UPDATE SET body = 'updated';
MERGE INTO log USING (VALUES (4, 'd'), (2, 'b')) s(id, body) ON log.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.body);
MERGE INTO log USING (VALUES (2, 'x')) s(id, body) ON log.id = s.id WHEN MATCHED THEN UPDATE SET body = s.body;
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% %', TG_WHEN, NEW; RETURN NEW; END $$;
CREATE FUNCTION told_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'all: %', (SELECT string_agg(body, ',' ORDER BY id) FROM fresh); RETURN NULL; END $$;
CREATE TRIGGER before BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION told();
CREATE TRIGGER after AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION told();
CREATE TRIGGER all_of_them AFTER INSERT ON log REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION told_all();
INSERT INTO log SELECT g, repeat('x', g) FROM generate_series(5, 6) g;
DROP TRIGGER before ON log;
DROP TRIGGER after ON log;
DROP TRIGGER all_of_them ON log;
-- a constraint that is looked at in the end
CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED) USING sheetlog;
BEGIN; INSERT INTO deferred VALUES (1), (1); COMMIT;
BEGIN; INSERT INTO deferred VALUES (1), (2); COMMIT;
SELECT * FROM deferred;
-- INSERT of itself ends, also in small pieces
INSERT INTO log SELECT id + 1000, body FROM log;
SELECT count(*) FROM log;
-- errors in between leave nothing behind: no row, and no key that is taken
DO $$ BEGIN FOR i IN 1..50 LOOP BEGIN INSERT INTO log VALUES (2000 + i % 5, 'tried'); IF i <= 45 THEN RAISE division_by_zero; END IF; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
SELECT id, body FROM log WHERE id >= 2000 ORDER BY id;
-- COPY, all formats, and FREEZE
CREATE TABLE back (LIKE log) USING sheetlog;
\set file `mktemp -u /tmp/pg_sheet_rows.XXXXXX`
COPY log TO :'file' (FORMAT binary);
COPY back FROM :'file' (FORMAT binary);
COPY log TO :'file' (FORMAT csv, HEADER);
COPY back FROM :'file' (FORMAT csv, HEADER);
SELECT (SELECT count(*) FROM back) = 2 * (SELECT count(*) FROM log) AS twice;
BEGIN;
TRUNCATE back;
COPY back FROM :'file' (FORMAT csv, HEADER, FREEZE);
COMMIT;
SELECT count(*), max(xmin::text) FROM back;
\! rm -f /tmp/pg_sheet_rows.*
-- made of a query
CREATE TABLE made USING sheetlog AS SELECT * FROM log;
CREATE MATERIALIZED VIEW seen USING sheetlog AS SELECT id, body FROM log WHERE id < 1000;
CREATE UNIQUE INDEX ON seen (id);
INSERT INTO log VALUES (7, 'for the view');
REFRESH MATERIALIZED VIEW seen;
SELECT count(*) FROM seen;
REFRESH MATERIALIZED VIEW CONCURRENTLY seen;
INSERT INTO log VALUES (8, 'for the view');
REFRESH MATERIALIZED VIEW CONCURRENTLY seen;
SELECT count(*) FROM seen;
SELECT count(*) FROM made;
-- temporary and unlogged tables
CREATE TEMP TABLE brief (id int PRIMARY KEY, body text) USING sheetlog ON COMMIT DELETE ROWS;
BEGIN; INSERT INTO brief SELECT g, repeat('t', g * 10) FROM generate_series(1, 2000) g; SELECT count(*), sum(length(body)) FROM brief; COMMIT;
SELECT count(*) FROM brief;
CREATE UNLOGGED TABLE light (id int PRIMARY KEY, body text) USING sheetlog;
INSERT INTO light SELECT g, 'u' FROM generate_series(1, 1000) g;
ALTER TABLE light SET LOGGED;
INSERT INTO light VALUES (1001, 'logged');
ALTER TABLE light SET UNLOGGED;
SELECT count(*) FROM light;
SELECT * FROM sheet.am_check('log') UNION ALL SELECT * FROM sheet.am_check('light') UNION ALL SELECT * FROM sheet.am_check('made');
-- what does not work says so
UPDATE log SET body = 'x';
DELETE FROM log;
SELECT * FROM log FOR UPDATE;
SELECT * FROM log FOR KEY SHARE;
SET pg_sheet.allow_log_delete = on;
WITH gone AS (DELETE FROM log WHERE id > 6 RETURNING id) SELECT count(*) FROM gone;
SELECT id, body FROM log ORDER BY id;
DROP SCHEMA am_rows CASCADE;
