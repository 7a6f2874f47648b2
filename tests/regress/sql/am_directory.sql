-- The invariant of a directory, which sheet.am_check verifies, with rows that do not come in the order of their positions.
CREATE SCHEMA am_directory;
SET search_path = am_directory;
SET client_min_messages = warning;
CREATE TABLE log (key bigint, position bigint, body text) USING sheetlog;
CREATE INDEX log_directory ON log USING sheetlog_directory (key, position);
CREATE FUNCTION next_page() RETURNS void LANGUAGE sql AS
	$$ INSERT INTO log SELECT 99, g, repeat(md5(g::text), 30) FROM generate_series(1, 10) g $$;
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
DROP SCHEMA am_directory CASCADE;
