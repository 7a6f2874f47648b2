-- Cursors on a sheetlog table: both ways, held, sensitive to nothing that comes after them, open over savepoints and deletions.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_cursors;
SET search_path = am_cursors, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, body text) USING AM');
SELECT twin('INSERT INTO T SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g');
SELECT ways('seq');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM l;
FETCH BACKWARD 1 FROM c; -- before the first
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c; -- after the last
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 500 FROM c;
FETCH RELATIVE -499 FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE -1 FROM c;
MOVE ABSOLUTE 700 IN c;
FETCH 0 FROM c;
COMMIT;
-- every row, forwards and backwards
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, md5(body) FROM l;
CREATE FUNCTION walk(direction text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c refcursor := 'c'; id int; sum text; ids int[]; bad int := 0;
BEGIN
	LOOP
		IF direction = 'forward' THEN FETCH FORWARD FROM c INTO id, sum; ELSE FETCH BACKWARD FROM c INTO id, sum; END IF;
		EXIT WHEN NOT FOUND;
		ids := ids || id;
		bad := bad + (sum <> md5(repeat(md5(id::text), 10)))::int;
	END LOOP;
	RETURN array_length(ids, 1) || ' from ' || ids[1] || ' to ' || ids[array_length(ids, 1)] || ', wrong ' || bad;
END $$;
SELECT walk('forward');
SELECT walk('backward');
SELECT walk('forward');
COMMIT;
-- what comes after the cursor is not in it: rows of this transaction, of its subtransactions, aborted ones
BEGIN;
INSERT INTO l VALUES (2001, 'before');
DECLARE c SCROLL CURSOR FOR SELECT id FROM l WHERE id > 998;
INSERT INTO l VALUES (2002, 'after');
SAVEPOINT s;
INSERT INTO l VALUES (2003, 'after');
FETCH ALL FROM c;
ROLLBACK TO s;
FETCH BACKWARD ALL FROM c;
SELECT id FROM l WHERE id > 2000;
DECLARE d CURSOR FOR SELECT id FROM l WHERE id > 998;
FETCH ALL FROM d;
ROLLBACK;
-- a cursor that is opened in a savepoint goes with it; one from before goes on
BEGIN;
DECLARE outside CURSOR FOR SELECT id FROM l;
FETCH 1 FROM outside;
SAVEPOINT s;
DECLARE inside CURSOR FOR SELECT id FROM l;
FETCH 2 FROM inside;
FETCH 1 FROM outside;
ROLLBACK TO s;
FETCH 1 FROM outside;
FETCH 1 FROM inside;
ROLLBACK;
-- rows that are deleted under a cursor stay in it
SET pg_sheet.allow_log_delete = on;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM l WHERE id <= 6;
FETCH 2 FROM c;
DELETE FROM l WHERE id IN (1, 3, 5);
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
SELECT id FROM l WHERE id <= 6;
ROLLBACK;
SELECT count(*) FROM l WHERE id <= 6;
-- held over the end of the transaction, with long values
BEGIN;
INSERT INTO l VALUES (3001, repeat('held', 100000));
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT id, length(body) FROM l WHERE id > 997 ORDER BY id;
FETCH 1 FROM held;
COMMIT;
DELETE FROM l WHERE id = 3001;
FETCH ALL FROM held;
FETCH FIRST FROM held;
CLOSE held;
BEGIN;
DECLARE lost CURSOR WITH HOLD FOR SELECT id FROM l;
ROLLBACK;
FETCH 1 FROM lost;
-- a loop over a query whose body appends to the same table ends
DO $$
DECLARE r record; n int := 0;
BEGIN
	FOR r IN SELECT id FROM l WHERE id <= 50 LOOP
		INSERT INTO l VALUES (-r.id, 'in the loop');
		n := n + 1;
	END LOOP;
	RAISE WARNING '% turns', n;
END $$;
SELECT count(*) FROM l WHERE id < 0;
-- while a cursor is open, what would move rows is refused
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l;
FETCH 1 FROM c;
TRUNCATE l;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l;
FETCH 1 FROM c;
ALTER TABLE l ALTER id TYPE bigint;
ROLLBACK;
-- no lock for update
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM l FOR UPDATE;
FETCH 1 FROM c;
ROLLBACK;
DROP SCHEMA am_cursors CASCADE;
