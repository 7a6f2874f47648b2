-- TIDs of a sheetlog table: each row is found by the one that a scan gives for it, ranges are right, other TIDs are no rows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_scan_tid;
SET search_path = am_scan_tid, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, body text) USING AM');
INSERT INTO l SELECT g, repeat('b', g % 90) FROM generate_series(1, 2000) g;
BEGIN;
INSERT INTO l SELECT g, 'aborted' FROM generate_series(2001, 2300) g;
ROLLBACK;
INSERT INTO l SELECT g, repeat('c', g % 90) FROM generate_series(2001, 2500) g;
CREATE TEMP TABLE tids AS SELECT ctid AS tid, id FROM l;
SELECT count(*), count(DISTINCT tid) FROM tids;
SELECT ways('tid');
SELECT plan('SELECT id FROM T WHERE ctid = ''(1,1)''');
CREATE FUNCTION id_at(t tid) RETURNS int LANGUAGE plpgsql AS $$ DECLARE found int; BEGIN SELECT id INTO found FROM l WHERE ctid = t; RETURN found; END $$;
SELECT count(*) FILTER (WHERE id_at(tid) = id) AS found, count(*) FILTER (WHERE id_at(tid) IS DISTINCT FROM id) AS wrong FROM tids;
-- several at once, in any order, each once
SELECT plan('SELECT id FROM T WHERE ctid = ANY (ARRAY[''(1,1)'', ''(1,2)'']::tid[])');
SELECT (SELECT count(*) FROM l WHERE ctid = ANY ((SELECT array_agg(tid) FROM tids WHERE id % 100 = 0)::tid[] || (SELECT array_agg(tid) FROM tids WHERE id % 200 = 0))) AS "25";
-- joined by TID
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT plan('SELECT 1 FROM tids JOIN T ON T.ctid = tid');
SELECT count(*), bool_and(l.id = tids.id) FROM tids JOIN l ON l.ctid = tid;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- ranges: what is before, at and after a row in the table's order
SELECT plan('SELECT id FROM T WHERE ctid > ''(1,5)'' AND ctid <= ''(2,9)''');
CREATE FUNCTION between_tids(a int, b int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint; low tid := (SELECT tid FROM tids WHERE id = a); high tid := (SELECT tid FROM tids WHERE id = b);
BEGIN
	EXECUTE format('SELECT count(*) FROM l WHERE ctid >= %L AND ctid < %L', low, high) INTO n;
	RETURN n;
END $$;
SELECT a, b, between_tids(a, b) = (SELECT count(*) FROM tids WHERE tid >= (SELECT tid FROM tids WHERE id = a) AND tid < (SELECT tid FROM tids WHERE id = b)) AS right
	FROM (VALUES (1, 2500), (1, 2), (100, 2400), (700, 701), (1999, 2001), (5, 5), (9, 3)) v(a, b);
SELECT count(*) FROM l WHERE ctid >= '(0,0)';
SELECT count(*) FROM l WHERE ctid > '(4294967294,65535)';
SELECT count(*) FROM l WHERE ctid < '(0,1)';
SELECT count(*) FROM l WHERE ctid > '(100000,0)' AND ctid < '(1,1)';
-- both ways through a range
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM l WHERE ctid >= '(0,1)';
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 3 FROM c;
FETCH PRIOR FROM c;
COMMIT;
-- TIDs that are no row: of an aborted row, past the page's rows, past the table, of no page
SELECT count(*) FROM l WHERE ctid IN ('(1,0)', '(1,65535)', '(1,2000)', '(999999,1)', '(4294967295,0)');
BEGIN;
INSERT INTO l VALUES (3001, 'aborted') RETURNING ctid AS gone \gset
ROLLBACK;
SELECT count(*) FROM l WHERE ctid = :'gone';
-- a row of this transaction, a row that it takes back
BEGIN;
INSERT INTO l VALUES (3001, 'own') RETURNING ctid AS own \gset
SELECT id, body FROM l WHERE ctid = :'own';
SAVEPOINT s;
INSERT INTO l VALUES (3002, 'own') RETURNING ctid AS undone \gset
ROLLBACK TO s;
SELECT count(*) FROM l WHERE ctid = :'undone';
COMMIT;
SELECT currtid2('am_scan_tid.l', :'own') = :'own' AS latest;
-- a row stays where it is
SELECT count(*) FROM tids JOIN l USING (id) WHERE l.ctid <> tid;
-- where a cursor stands there can be neither update nor, without the setting, delete
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l WHERE id = 10;
FETCH c;
SAVEPOINT s;
UPDATE l SET body = '' WHERE CURRENT OF c;
ROLLBACK TO s;
DELETE FROM l WHERE CURRENT OF c;
ROLLBACK TO s;
SET LOCAL pg_sheet.allow_log_delete = on;
DELETE FROM l WHERE CURRENT OF c;
SELECT count(*) FROM l WHERE id = 10;
ROLLBACK;
DROP SCHEMA am_scan_tid CASCADE;
