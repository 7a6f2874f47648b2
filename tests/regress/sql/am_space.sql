-- Pages of a log: rows that come to pages which VACUUM is done with, free pages, and several deletions on one page.
CREATE SCHEMA am_space;
SET search_path = am_space;
SET client_min_messages = warning;
SET pg_sheet.allow_log_delete = on;
-- a row that comes behind frozen ones is frozen by the next VACUUM
CREATE TABLE log (id bigint, body text) USING sheetlog;
INSERT INTO log VALUES (1, 'first');
VACUUM FREEZE log;
INSERT INTO log VALUES (2, 'second');
SELECT * FROM sheet.am_check('log');
VACUUM FREEZE log;
SELECT xmin FROM log;
-- the same on a page that has been given back in part, and taken when VACUUM is done with it
INSERT INTO log SELECT g, repeat('x', 100) FROM generate_series(3, 200) g;
VACUUM FREEZE log;
DELETE FROM log WHERE id BETWEEN 2 AND 50;
VACUUM FREEZE log;
VACUUM FREEZE log;
INSERT INTO log SELECT g, repeat(md5(g::text), 30) FROM generate_series(201, 260) g;
SELECT count(*) > 0 FROM log WHERE ctid < '(2,0)' AND id > 200;
SELECT * FROM sheet.am_check('log');
VACUUM FREEZE log;
SELECT xmin, count(*) FROM log GROUP BY xmin;
-- the file was to be cut, but was not: free pages behind the used ones are not for long rows
CREATE TABLE cut (id bigint, body text) USING sheetlog;
ALTER TABLE cut ALTER body SET STORAGE EXTERNAL;
INSERT INTO cut VALUES (1, 'kept');
INSERT INTO cut SELECT g, repeat('x', 100000) FROM generate_series(2, 30) g;
DELETE FROM cut WHERE id > 1;
SET pg_sheet.stop_point = 'vacuum-cut:error';
VACUUM cut;
RESET pg_sheet.stop_point;
INSERT INTO cut VALUES (100, repeat('long', 10000));
INSERT INTO cut SELECT g, repeat('x', 4000) FROM generate_series(200, 240) g;
SELECT id, body = repeat('long', 10000) FROM cut WHERE id = 100;
SELECT * FROM sheet.am_check('cut');
-- more commands of a transaction delete on a page than it has slots
CREATE TABLE deleted (id int) USING sheetlog;
INSERT INTO deleted SELECT generate_series(1, 20);
BEGIN;
DELETE FROM deleted WHERE id = 1;
DELETE FROM deleted WHERE id = 2;
DELETE FROM deleted WHERE id = 3;
DELETE FROM deleted WHERE id = 4;
DELETE FROM deleted a USING deleted b WHERE a.id IN (5, 6) AND b.id IN (5, 6);
WITH gone AS (DELETE FROM deleted a WHERE id BETWEEN 10 AND 12
	RETURNING (SELECT count(*) FROM deleted b WHERE a.id > 0)) SELECT * FROM gone;
SELECT count(*), min(id) FROM deleted;
COMMIT;
SELECT count(*), min(id) FROM deleted;
DROP SCHEMA am_space CASCADE;
