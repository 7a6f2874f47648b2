-- Functions that write to a sheetlog table: exceptions, nested blocks, procedures with transactions of their own, prepared statements.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_functions;
SET search_path = am_functions, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, body text) USING AM');
-- what an exception block took back is not there, what it kept is
CREATE FUNCTION try(first int, fail bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO l VALUES (first, 'tried');
	BEGIN
		INSERT INTO l VALUES (first + 1, 'nested');
		IF fail THEN RAISE division_by_zero; END IF;
	EXCEPTION WHEN division_by_zero THEN
		INSERT INTO l VALUES (first + 2, 'handled ' || (SELECT count(*) FROM l WHERE id BETWEEN first AND first + 2));
	END;
	RETURN (SELECT string_agg(id || ' ' || body, ', ' ORDER BY id) FROM l WHERE id BETWEEN first AND first + 2);
END $$;
SELECT try(1, false);
SELECT try(11, true);
-- a unique violation is caught, and the key can be taken in other ways
DO $$
DECLARE n int := 0;
BEGIN
	FOR i IN 1 .. 100 LOOP
		BEGIN
			INSERT INTO l VALUES (100 + i % 10, 'round ' || i);
		EXCEPTION WHEN unique_violation THEN
			n := n + 1;
		END;
	END LOOP;
	RAISE WARNING '% times', n;
END $$;
SELECT count(*), bool_and(body = 'round ' || CASE WHEN id = 100 THEN 10 ELSE id - 100 END) FROM l WHERE id BETWEEN 100 AND 109;
-- many levels, each of which keeps or loses what it wrote
CREATE FUNCTION deep(level int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO l VALUES (200 + level, 'level');
	IF level < 40 THEN
		BEGIN
			PERFORM deep(level + 1);
			IF level % 7 = 0 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END IF;
END $$;
SELECT deep(1);
SELECT array_agg(id ORDER BY id) FROM l WHERE id BETWEEN 200 AND 250;
-- more subtransactions than a backend has room for in its entry, seen from here and from old cursors
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP BEGIN INSERT INTO l VALUES (1000 + i, 'sub'); IF i % 3 = 0 THEN RAISE division_by_zero; END IF; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
SELECT count(*) FROM l WHERE id > 1000;
SAVEPOINT s;
INSERT INTO l VALUES (2000, 'after');
SELECT count(*) FROM l WHERE id > 1000;
ROLLBACK TO s;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE (id - 1000) % 3 = 0) AS wrong FROM l WHERE id > 1000;
-- procedures that commit and roll back in between
CREATE PROCEDURE batches() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 30 LOOP
		INSERT INTO l VALUES (3000 + i, 'batch');
		IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
	END LOOP;
	INSERT INTO l VALUES (3000, 'open');
	ROLLBACK;
END $$;
CALL batches();
SELECT count(*), bool_and((id - 3000) % 3 <> 0) FROM l WHERE id >= 3000;
-- a loop over its own rows, with commits in between
CREATE PROCEDURE copy_rows() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
	FOR r IN SELECT id FROM l WHERE id > 3000 ORDER BY id LOOP
		INSERT INTO l VALUES (r.id + 1000, 'copy');
		COMMIT;
	END LOOP;
END $$;
CALL copy_rows();
SELECT count(*) FROM l WHERE body = 'copy';
-- SQL functions, prepared statements with generic plans, and a change of the table in between
CREATE FUNCTION add_row(int, text) RETURNS l LANGUAGE sql AS 'INSERT INTO l VALUES ($1, $2) RETURNING *';
SELECT * FROM add_row(5000, 'sql');
SELECT (add_row(5000 + g, 'set')).id FROM generate_series(1, 1) g;
PREPARE add (int, text) AS INSERT INTO l (id, body) VALUES ($1, $2) RETURNING id, body;
PREPARE find (int) AS SELECT * FROM l WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE add (6000, 'prepared');
EXECUTE find (6000);
ALTER TABLE l ADD COLUMN extra int DEFAULT 3;
EXECUTE add (6001, 'prepared again');
EXECUTE find (6001);
SELECT * FROM l WHERE id IN (5000, 6001) ORDER BY id;
RESET plan_cache_mode;
-- values that are not flat: rows, arrays and ranges that the function has in its variables
CREATE TYPE pair AS (a int, b text);
CREATE TABLE l2 (id int, p pair, a int[], ps pair[]) USING sheetlog;
DO $$
DECLARE a int[]; p pair; ps pair[];
BEGIN
	FOR i IN 1 .. 200 LOOP
		a := a || i;
		p.a := i;
		p.b := repeat('x', i * 50);
		ps := ps || p;
		INSERT INTO l2 VALUES (i, p, a, CASE WHEN i % 50 = 0 THEN ps END);
	END LOOP;
END $$;
SELECT count(*), bool_and((p).a = id AND length((p).b) = id * 50 AND array_length(a, 1) = id AND a[id] = id), sum(array_length(ps, 1)), bool_and(ps[id].b = (p).b) FROM l2;
DO $$
DECLARE r l2; x int[];
BEGIN
	SELECT * INTO r FROM l2 WHERE id = 200;
	SELECT a INTO x FROM l2 WHERE id = 100;
	x[5] := -5;
	INSERT INTO l2 (id, a) VALUES (1001, x);
	r.id := 1000;
	INSERT INTO l2 SELECT r.*;
END $$;
SELECT id, a[5], array_length(a, 1), (ps[200]).a FROM l2 WHERE id >= 1000 ORDER BY id;
-- an error in the middle of a statement, in a COPY, in the last row of many
INSERT INTO l (id) SELECT 7000 + 100 / (50 - g) FROM generate_series(1, 60) g;
INSERT INTO l (id, body) SELECT 8000 + g, CASE WHEN g = 999 THEN (1 / (g - 999))::text END FROM generate_series(1, 1000) g;
SELECT count(*) FROM l WHERE id > 7000;
SET statement_timeout = '50ms';
INSERT INTO l (id) SELECT 100000 + g FROM generate_series(1, 100000000) g;
RESET statement_timeout;
SELECT count(*) FROM l WHERE id > 7000;
INSERT INTO l (id) VALUES (100001);
SELECT id FROM l WHERE id > 7000;
DROP SCHEMA am_functions CASCADE;
