-- TABLESAMPLE of a sheetlog table: repeatable, within the table, of about the size that is asked for.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_sample;
SET search_path = am_sample, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, body text) USING AM');
SELECT count(*) FROM l TABLESAMPLE SYSTEM (50); -- of an empty table
INSERT INTO l SELECT g, repeat('x', g % 200) FROM generate_series(1, 20000) g;
BEGIN;
INSERT INTO l SELECT -g, 'aborted' FROM generate_series(1, 5000) g;
ROLLBACK;
INSERT INTO l SELECT g, repeat(md5(g::text), 300) FROM generate_series(20001, 20050) g;
SELECT count(*), count(DISTINCT id) FROM l TABLESAMPLE SYSTEM (100);
SELECT count(*), count(DISTINCT id) FROM l TABLESAMPLE BERNOULLI (100);
SELECT count(*) FROM l TABLESAMPLE SYSTEM (0);
SELECT count(*) FROM l TABLESAMPLE BERNOULLI (0);
SELECT count(*) = count(DISTINCT id) AND min(id) > 0 AND count(*) BETWEEN 9000 AND 11000 FROM l TABLESAMPLE BERNOULLI (50) REPEATABLE (7);
SELECT count(*) = count(DISTINCT id) AND min(id) > 0 AND count(*) BETWEEN 4000 AND 16000 FROM l TABLESAMPLE SYSTEM (50) REPEATABLE (7);
-- the same again, and another one with another seed
CREATE TEMP TABLE first AS SELECT id FROM l TABLESAMPLE SYSTEM (30) REPEATABLE (3);
SELECT count(*) FROM ((SELECT id FROM l TABLESAMPLE SYSTEM (30) REPEATABLE (3)) EXCEPT (SELECT id FROM first)) d;
SELECT count(*) > 0 FROM ((SELECT id FROM l TABLESAMPLE BERNOULLI (30) REPEATABLE (4)) EXCEPT (SELECT id FROM l TABLESAMPLE BERNOULLI (30) REPEATABLE (5))) d;
-- long values in the sample are whole
SELECT count(*), bool_and(body = repeat(md5(id::text), 300)) FROM l TABLESAMPLE BERNOULLI (100) WHERE id > 20000;
-- rescanned with another share
SELECT g, n BETWEEN g * 25 AND g * 75 OR g = 2 AND n = 100 FROM generate_series(0, 2) g, LATERAL (SELECT count(*) AS n FROM l TABLESAMPLE BERNOULLI (g * 50) REPEATABLE (1) WHERE id <= 100) x;
-- rows of this transaction
BEGIN;
INSERT INTO l SELECT g, 'own' FROM generate_series(30001, 30100) g;
SELECT count(*) FROM l TABLESAMPLE SYSTEM (100) WHERE body = 'own';
SELECT count(*) FROM l TABLESAMPLE BERNOULLI (100) WHERE body = 'own';
ROLLBACK;
SELECT count(*) FROM l TABLESAMPLE BERNOULLI (100) WHERE body = 'own';
DROP SCHEMA am_sample CASCADE;
