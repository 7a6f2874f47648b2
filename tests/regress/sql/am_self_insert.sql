-- A statement that appends to the table it reads ends, and sees the rows of before: by scans, indexes, functions, in many ways.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_self_insert;
SET search_path = am_self_insert, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id serial PRIMARY KEY, n int, body text) USING AM');
SELECT twin('CREATE INDEX T_n ON T (n)');
SELECT twin('INSERT INTO T (n, body) VALUES (1, repeat(''x'', 300))');
SELECT twin('INSERT INTO T (n, body) SELECT n + 1, body FROM T') FROM generate_series(1, 9);
SELECT count(*), min(n), max(n) FROM l;
SELECT same('SELECT n, count(*) FROM T GROUP BY n');
-- by an index whose order the new rows come after, and by a bitmap
SELECT ways('index');
SELECT plan('SELECT n FROM T WHERE n > 5');
SELECT twin('INSERT INTO T (n, body) SELECT n + 100, body FROM T WHERE n > 5');
SELECT ways('bitmap');
SELECT twin('INSERT INTO T (n, body) SELECT n + 100, body FROM T WHERE n > 5');
SELECT ways('tid');
SELECT twin('INSERT INTO T (n, body) SELECT n, body FROM T WHERE ctid >= ''(0,0)''');
SELECT ways('seq', 'index', 'indexonly', 'bitmap', 'tid');
SELECT same('SELECT n, count(*) FROM T GROUP BY n');
-- joined with itself, by COPY of its own rows, sampled, in a loop of WITH
SELECT twin('INSERT INTO T (n) SELECT a.n + b.n FROM T a JOIN T b ON a.id = b.id + 1');
SELECT twin('INSERT INTO T (n) SELECT n FROM T TABLESAMPLE BERNOULLI (100)');
SELECT twin('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3), x AS (INSERT INTO T (n) SELECT i FROM r, (SELECT count(*) FROM T) c RETURNING n) INSERT INTO T (n) SELECT n FROM x');
SELECT same('SELECT n, count(*) FROM T GROUP BY n');
-- a volatile function called for each row sees what was appended so far, a stable one does not; the statement ends
CREATE FUNCTION size_now() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM l); END $$;
CREATE FUNCTION size_then() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM l); END $$;
CREATE TABLE l2 (v bigint, s bigint) USING sheetlog;
TRUNCATE l;
INSERT INTO l (n) VALUES (1), (2), (3);
INSERT INTO l (n, body) SELECT n, size_now() || ' ' || size_then() FROM l;
SELECT n, body FROM l ORDER BY id;
-- a trigger, a default and a check that append to the same table
CREATE FUNCTION once_more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n BETWEEN 50 AND 52 THEN INSERT INTO l (n) SELECT NEW.n + 1 FROM l WHERE n = 1 LIMIT 1; END IF; RETURN NEW; END $$;
CREATE TRIGGER once_more BEFORE INSERT ON l FOR EACH ROW EXECUTE FUNCTION once_more();
INSERT INTO l (n) VALUES (50);
SELECT n FROM l WHERE n >= 50 ORDER BY id;
DROP TRIGGER once_more ON l;
-- deletions beside insertions, in one statement
SET pg_sheet.allow_log_delete = on;
WITH gone AS (DELETE FROM l WHERE n <= 3 RETURNING n) INSERT INTO l (n) SELECT n + 1000 FROM gone;
SELECT n FROM l WHERE n < 50 OR n > 1000 ORDER BY n;
WITH new AS (INSERT INTO l (n) VALUES (7) RETURNING n) DELETE FROM l WHERE n = 7;
SELECT count(*) FROM l WHERE n = 7;
DROP SCHEMA am_self_insert CASCADE;
