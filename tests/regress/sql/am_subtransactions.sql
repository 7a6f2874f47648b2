-- Deletions from one page of a sheetlog table in many subtransactions: those that were released count as one, open ones are told apart.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_subtransactions;
SET search_path = am_subtransactions, public;
\set ECHO none
\i :helpers
\set ECHO all
SET pg_sheet.allow_log_delete = on;
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, body text) USING AM');
SELECT twin('INSERT INTO T SELECT g, ''row '' || g FROM generate_series(1, 200) g');
SELECT count(DISTINCT (ctid::text::point)[0]) = 1 AS one_page FROM l;
-- a loop of exception blocks: every third one fails, and its row stays
CREATE FUNCTION loop(first int, last int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		BEGIN
			PERFORM twin('DELETE FROM T WHERE id = ' || i);
			IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END LOOP;
	RETURN (SELECT count(*) FROM l WHERE id BETWEEN first AND last);
END $$;
SELECT loop(1, 40);
SELECT same();
-- the loop as a whole is taken back
BEGIN;
SAVEPOINT s;
SELECT loop(41, 80);
SELECT same();
ROLLBACK TO s;
SELECT count(*) FROM l WHERE id BETWEEN 41 AND 80;
SELECT twin('DELETE FROM T WHERE id = 41');
COMMIT;
SELECT same();
-- some of the loop is released into a savepoint that fails, some into one that stands
BEGIN;
SAVEPOINT stands;
SELECT loop(42, 50);
RELEASE stands;
SAVEPOINT fails;
SELECT loop(51, 60);
SAVEPOINT inner_one;
SELECT loop(61, 70);
RELEASE inner_one;
SELECT same();
ROLLBACK TO fails;
SELECT same();
SELECT loop(71, 75);
COMMIT;
SELECT same(), count(*) FROM l WHERE id BETWEEN 42 AND 75;
-- six savepoints are open, each of which has deleted a row: a seventh is refused, says why, and goes when one is released
BEGIN;
SAVEPOINT s1;
DELETE FROM l WHERE id = 101;
SAVEPOINT s2;
DELETE FROM l WHERE id = 102;
SAVEPOINT s3;
DELETE FROM l WHERE id = 103;
SAVEPOINT s4;
DELETE FROM l WHERE id = 104;
SAVEPOINT s5;
DELETE FROM l WHERE id = 105;
SAVEPOINT s6;
DELETE FROM l WHERE id = 106;
SAVEPOINT s7;
\set VERBOSITY default
SELECT refusal('DELETE FROM l WHERE id = 107');
DO $$
DECLARE detail text; hint text;
BEGIN
	DELETE FROM l WHERE id = 107;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RAISE WARNING USING MESSAGE = SQLERRM, DETAIL = detail, HINT = hint;
END $$;
\set VERBOSITY terse
RELEASE s6;
SAVEPOINT s7;
DELETE FROM l WHERE id IN (107, 108);
SELECT array_agg(id ORDER BY id) FROM l WHERE id BETWEEN 100 AND 110;
-- rows 105 and 106 stand and fall together now, with their savepoint
ROLLBACK TO s7;
SELECT array_agg(id ORDER BY id) FROM l WHERE id BETWEEN 100 AND 110;
ROLLBACK TO s5;
SELECT array_agg(id ORDER BY id) FROM l WHERE id BETWEEN 100 AND 110;
ROLLBACK TO s3;
SELECT array_agg(id ORDER BY id) FROM l WHERE id BETWEEN 100 AND 110;
COMMIT;
DELETE FROM h WHERE id IN (101, 102);
SELECT same();
-- a cursor that was opened before all of it sees what it saw
BEGIN;
DECLARE before CURSOR FOR SELECT count(*) FROM l WHERE id BETWEEN 111 AND 150;
SELECT loop(111, 150);
FETCH before;
SAVEPOINT s;
DECLARE between CURSOR FOR SELECT count(*) FROM l WHERE id BETWEEN 151 AND 170;
SELECT loop(151, 170);
FETCH between;
COMMIT;
SELECT same();
-- the rows that are gone go, the others stay, through a rewrite and through VACUUM
BEGIN;
SELECT loop(171, 190);
ALTER TABLE l ALTER body TYPE varchar;
ALTER TABLE h ALTER body TYPE varchar;
SELECT loop(191, 200);
SELECT same();
COMMIT;
SELECT same();
VACUUM l;
SELECT same();
SELECT * FROM sheet.am_check('l');
DROP SCHEMA am_subtransactions CASCADE;
