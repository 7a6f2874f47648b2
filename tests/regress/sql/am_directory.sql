-- The invariant of a directory, which sheet.am_check verifies, with rows that do not come in the order of their positions.
CREATE SCHEMA am_directory;
SET search_path = am_directory;
SET client_min_messages = warning;
CREATE TABLE log (key bigint, position bigint, body text) USING sheetlog;
CREATE INDEX log_directory ON log USING sheetlog_directory (key, position);
-- 960 bytes that cannot be compressed
CREATE FUNCTION noise(g integer) RETURNS text LANGUAGE sql AS
	$$ SELECT string_agg(md5(g || ' ' || i), '') FROM generate_series(1, 30) i $$;
CREATE FUNCTION next_page() RETURNS void LANGUAGE sql AS
	$$ INSERT INTO log SELECT 99, g, noise(g) FROM generate_series(1, 10) g $$;
-- behind the last entry of the key, whose page has rows before and behind the new one
INSERT INTO log SELECT 1, g FROM generate_series(1, 10) g;
SELECT next_page();
INSERT INTO log VALUES (1, 5, 'late');
SELECT * FROM sheet.am_check('log');
SELECT next_page();
INSERT INTO log VALUES (1, 7, 'later'), (1, 0, 'first'), (1, 20, 'last');
SELECT next_page();
INSERT INTO log VALUES (1, 21, 'last'), (1, 15, 'between');
SELECT * FROM sheet.am_check('log');
-- a position that is on several pages, when the index is built
INSERT INTO log VALUES (1, 21, 'twice'), (2, 1, 'one');
SELECT next_page();
INSERT INTO log VALUES (2, 1, 'one'), (2, 2, 'two');
SELECT next_page();
INSERT INTO log VALUES (2, 1, 'one'), (2, 2, 'two');
SELECT * FROM sheet.am_check('log');
REINDEX INDEX log_directory;
SELECT * FROM sheet.am_check('log');
REINDEX INDEX CONCURRENTLY log_directory;
SELECT * FROM sheet.am_check('log');
-- in any order, with aborted rows, and after VACUUM
BEGIN;
INSERT INTO log SELECT 3, g FROM generate_series(1, 100) g;
ROLLBACK;
INSERT INTO log SELECT 3 + g % 3, g * 7919 % 1009, repeat('x', 50) FROM generate_series(1, 2000) g;
SELECT * FROM sheet.am_check('log');
SET pg_sheet.allow_log_delete = on;
DELETE FROM log WHERE ctid < '(8,0)' AND key > 3;
VACUUM FREEZE log;
INSERT INTO log SELECT 3 + g % 3, g * 7919 % 1009, repeat('x', 50) FROM generate_series(1, 2000) g;
SELECT * FROM sheet.am_check('log');
-- what is remembered of a key's last entry: those of aborted rows count
INSERT INTO log VALUES (6, 1);
BEGIN;
SELECT next_page();
INSERT INTO log VALUES (6, 10);
ROLLBACK;
INSERT INTO log VALUES (6, 2), (6, 3);
SELECT next_page();
INSERT INTO log VALUES (6, 4), (6, 11);
SELECT * FROM sheet.am_check('log');
-- rows behind the new one, on the page of the last entry, and on others
INSERT INTO log VALUES (7, 1), (7, 100);
SELECT next_page();
INSERT INTO log VALUES (7, 50), (7, 120);
SELECT next_page();
INSERT INTO log VALUES (7, 110);
REINDEX INDEX log_directory;
INSERT INTO log VALUES (7, 55);
SELECT next_page();
INSERT INTO log VALUES (8, 1), (8, 100);
SELECT next_page();
REINDEX INDEX log_directory;
INSERT INTO log VALUES (8, 50);
SELECT next_page();
INSERT INTO log VALUES (8, 70);
SELECT * FROM sheet.am_check('log');
-- the page of the last entry is given back, and used again
CREATE TABLE reused (key bigint, position bigint, body text) USING sheetlog;
CREATE INDEX reused_directory ON reused USING sheetlog_directory (key, position);
BEGIN;
INSERT INTO reused VALUES (1, 1);
ROLLBACK;
VACUUM reused;
INSERT INTO reused SELECT 1, g FROM generate_series(2, 10) g;
SELECT * FROM sheet.am_check('reused');
-- and so is the index's file
BEGIN;
CREATE TABLE emptied (key bigint, position bigint) USING sheetlog;
CREATE INDEX emptied_directory ON emptied USING sheetlog_directory (key, position);
INSERT INTO emptied VALUES (1, 1);
TRUNCATE emptied;
INSERT INTO emptied VALUES (1, 2);
COMMIT;
SELECT * FROM sheet.am_check('emptied');
-- any number of conditions, on keys and on positions, also in scans that begin again and again
CREATE TABLE asked (key bigint, position bigint) USING sheetlog;
CREATE INDEX asked_directory ON asked USING sheetlog_directory (key, position);
INSERT INTO asked SELECT g % 5, g FROM generate_series(1, 2000) g;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
\set ECHO none
SELECT 'SELECT count(*) FROM asked WHERE ' || string_agg('key > ' || 2 - g, ' AND ') FROM generate_series(1, 60) g \gexec
SELECT 'SELECT count(*) FROM asked WHERE key = 1 AND ' || string_agg('position > ' || 1000 - g, ' AND ') FROM generate_series(1, 60) g \gexec
\set ECHO all
SET enable_hashagg = off;
EXPLAIN (COSTS OFF) SELECT v.key, count(*) FROM (VALUES (1, 1990), (4, 0), (9, 0)) v(key, since) JOIN asked a ON a.key = v.key AND a.position > v.since GROUP BY 1 ORDER BY 1;
RESET enable_hashagg;
SELECT v.key, count(*) FROM (VALUES (1, 1990), (4, 0), (9, 0)) v(key, since) JOIN asked a ON a.key = v.key AND a.position > v.since GROUP BY 1 ORDER BY 1;
SELECT v.key, count(*) FROM (VALUES (1, 1990), (4, 0), (3, 1999)) v(key, since) JOIN asked a ON a.key >= v.key AND (a.key, a.position) > (v.key, v.since) GROUP BY 1 ORDER BY 1;
SELECT v.key, (SELECT count(*) FROM asked b WHERE b.key >= v.key AND (b.key, b.position) > (v.key, v.since) AND b.ctid IS NOT NULL) FROM (VALUES (1, 1990), (4, 0), (3, 1999)) v(key, since) ORDER BY 1;
RESET enable_seqscan;
SET enable_bitmapscan = off;
SELECT v.key, (SELECT count(*) FROM asked b WHERE (b.key, b.position) > (v.key, v.since)) FROM (VALUES (1, 1990), (4, 0), (3, 1999)) v(key, since) ORDER BY 1;
RESET enable_bitmapscan;
-- what cannot be a directory is refused when it is made, and when its table would become another
\set VERBOSITY default
CREATE INDEX ON asked USING sheetlog_directory (key);
CREATE TABLE asked_heap (key bigint, position bigint);
CREATE INDEX ON asked_heap USING sheetlog_directory (key, position);
\set VERBOSITY terse
CREATE INDEX ON asked USING sheetlog_directory (key, position, key);
CREATE INDEX ON asked USING sheetlog_directory (key, position) WHERE key > 2;
CREATE UNIQUE INDEX ON asked USING sheetlog_directory (key, position);
CREATE INDEX ON asked USING sheetlog_directory (key) INCLUDE (position);
CREATE INDEX asked_made ON asked USING sheetlog_directory ((key + 1), (position + 1));
ALTER TABLE asked SET ACCESS METHOD heap;
DROP INDEX asked_directory, asked_made;
ALTER TABLE asked SET ACCESS METHOD heap;
SELECT count(*) FROM asked;
CREATE TABLE asked_parent (key bigint, position bigint) PARTITION BY LIST (key);
CREATE TABLE asked_log PARTITION OF asked_parent FOR VALUES IN (1) USING sheetlog;
CREATE INDEX ON asked_parent USING sheetlog_directory (key, position);
CREATE TABLE asked_other PARTITION OF asked_parent FOR VALUES IN (2) USING heap;
DROP SCHEMA am_directory CASCADE;
