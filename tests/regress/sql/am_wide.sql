-- Wide rows in a sheetlog table: long values of every storage, hundreds of columns and none, up to what cannot be.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_wide;
SET search_path = am_wide, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, p text, e text, x text, m text) USING AM');
SELECT twin('ALTER TABLE T ALTER p SET STORAGE PLAIN, ALTER e SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTENDED, ALTER m SET STORAGE MAIN');
CREATE FUNCTION noise(seed int, n int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT left(string_agg(md5(seed || ':' || i), ''), n) FROM generate_series(0, n / 32) i $$;
-- lengths around all the limits
SELECT twin('INSERT INTO T (id, p) SELECT g, noise(g, g) FROM generate_series(1, 7900, 113) g');
SELECT twin('INSERT INTO T (id, e) SELECT g + 10000, noise(g, g) FROM generate_series(1, 9000, 97) g');
SELECT twin('INSERT INTO T (id, x) SELECT g + 20000, noise(g, g) FROM generate_series(1, 9000, 97) g');
SELECT twin('INSERT INTO T (id, m) SELECT g + 30000, noise(g, g) FROM generate_series(1, 9000, 97) g');
SELECT twin('INSERT INTO T (id, x) SELECT g + 40000, repeat(chr(65 + g % 26), g * 37) FROM generate_series(1, 1000, 7) g');
SELECT twin('INSERT INTO T (id, p, e, x, m) SELECT g + 50000, noise(g, g), noise(g + 1, g * 11), noise(g + 2, g * 13), noise(g + 3, g * 2) FROM generate_series(1, 2000, 131) g');
SELECT same();
-- megabytes, compressible and not
SELECT twin('INSERT INTO T (id, e, x) VALUES (60001, noise(1, 800000), noise(2, 1500000)), (60002, repeat(''compressible '', 100000), repeat(''compressible '', 200000)), (60003, '''', noise(3, 100000))');
SELECT same('SELECT * FROM T WHERE id > 60000');
SELECT same('SELECT id, substr(e, 500001, 20), substr(x, 1200001, 20), left(x, 5), right(x, 5), length(e), octet_length(x) FROM T WHERE id > 60000');
BEGIN;
SELECT twin('INSERT INTO T (id, e, x) VALUES (60011, noise(1, 800000), noise(2, 800000))');
ROLLBACK;
SELECT twin('INSERT INTO T (id, x) SELECT id + 10000, x FROM T WHERE id > 60000');
SELECT twin('INSERT INTO T (id, e, m) SELECT id + 20000, x, e FROM T WHERE id IN (60001, 60003)');
SELECT same();
SELECT ways('index');
SELECT way('SELECT * FROM T WHERE id > 60000');
SELECT ways('seq', 'index', 'indexonly', 'bitmap', 'tid');
-- sorted, hashed, joined with their long values
SELECT same('SELECT md5(string_agg(x, '''' ORDER BY x DESC, id)) FROM T WHERE x IS NOT NULL');
SELECT same('SELECT length(x), count(*) FROM T GROUP BY x');
VACUUM (FREEZE) l;
VACUUM FULL l;
SELECT same();
SET pg_sheet.allow_log_delete = on;
SELECT twin('DELETE FROM T WHERE id % 2 = 1');
VACUUM l;
SELECT same();
SELECT twin('INSERT INTO T (id, e, x) SELECT g + 80000, noise(g, g * 100), noise(g + 2, g * 200) FROM generate_series(1, 100, 3) g');
SELECT same();
-- many columns: all, every third, the last alone, none
CREATE FUNCTION columns(n int, kind text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg('c' || g || ' ' || kind, ', ') FROM generate_series(1, n) g $$;
SELECT twin('CREATE TABLE T2 (' || columns(1600, 'int') || ') USING AM');
SELECT twin_refusal('ALTER TABLE T2 ADD COLUMN one_more int');
SELECT twin('INSERT INTO T2 SELECT ' || string_agg(g::text, ', ' ORDER BY g) || ' FROM generate_series(1, 5)') FROM generate_series(1, 1600) g;
SELECT twin('INSERT INTO T2 SELECT ' || string_agg(CASE WHEN g % 3 = 0 THEN 'n * ' || g ELSE 'NULL' END, ', ' ORDER BY g) || ' FROM generate_series(1, 100) n') FROM generate_series(1, 1600) g;
SELECT twin('INSERT INTO T2 (c1600) VALUES (7)');
SELECT twin('INSERT INTO T2 (c1, c800) VALUES (1, 2)');
SELECT twin('INSERT INTO T2 DEFAULT VALUES');
SELECT same('SELECT * FROM T2');
SELECT same('SELECT c1599, c3, c1600 FROM T2 WHERE c1598 IS NULL');
SELECT twin('CREATE TABLE T3 (' || columns(900, 'text') || ') USING AM');
SELECT twin('INSERT INTO T3 SELECT ' || string_agg(CASE WHEN g % 7 = 1 THEN 'repeat(chr(64 + n), ' || g % 40 || ')' ELSE 'NULL' END, ', ' ORDER BY g) || ' FROM generate_series(1, 20) n') FROM generate_series(1, 900) g;
SELECT same('SELECT * FROM T3');
-- a null bitmap that goes on in overflow pages, whatever remains of the row on its page; also of a row that was never committed
SELECT twin('CREATE TABLE T6 (' || columns(1500, 'int') || ', t text) USING AM');
SELECT twin('ALTER TABLE T6 ALTER t SET STORAGE EXTERNAL');
SELECT twin('INSERT INTO T6 (c1, c1500, t) SELECT g, -g, noise(g, g) FROM generate_series(7000, 25000, 307) g');
BEGIN;
INSERT INTO l6 SELECT * FROM l6;
ROLLBACK;
SELECT same('SELECT * FROM T6');
SELECT same('SELECT c1500, c2, t FROM T6 WHERE c1 > 9000');
VACUUM l6;
CREATE INDEX ON l6 (c1500);
SELECT same('SELECT * FROM T6');
SELECT * FROM sheet.am_check('l6');
-- a table of no columns has rows
SELECT twin('CREATE TABLE T4 () USING AM');
SELECT twin('INSERT INTO T4 SELECT FROM generate_series(1, 3000)');
SELECT twin('INSERT INTO T4 DEFAULT VALUES');
SELECT same('SELECT count(*) FROM T4');
SELECT twin('ALTER TABLE T4 ADD COLUMN a int');
SELECT twin('INSERT INTO T4 VALUES (1)');
SELECT same('SELECT * FROM T4');
-- a row that has no room is refused, clearly, and nothing of it stays; what heap takes is taken
CREATE TABLE l5 (a text, b text) USING sheetlog;
ALTER TABLE l5 ALTER a SET STORAGE PLAIN, ALTER b SET STORAGE PLAIN;
SELECT refusal('INSERT INTO l5 VALUES (noise(1, 8000), NULL)');
SELECT refusal('INSERT INTO l5 VALUES (noise(1, 1000000), noise(2, 1000000))') ~ '^(accepted$|54000 row is too big: size \d+, maximum size \d+)' AS clear;
SELECT bool_and(coalesce(a, '') = noise(1, length(a))) FROM l5;
SELECT count(*) IN (1, 2) FROM l5;
INSERT INTO l5 VALUES ('after', 'it');
SELECT count(*) FROM l5 WHERE a = 'after';
DROP SCHEMA am_wide CASCADE;
