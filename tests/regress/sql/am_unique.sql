-- Unique indexes of a sheetlog table: a key that was rolled back is free again, one that is there is not, in every order of events.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_unique;
SET search_path = am_unique, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, a int, b text, UNIQUE (a, b)) USING AM');
-- retries: after ROLLBACK, after ROLLBACK TO, after an error, within one transaction
BEGIN;
INSERT INTO l VALUES (1, 1, 'first');
ROLLBACK;
INSERT INTO l VALUES (1, 1, 'second');
INSERT INTO l VALUES (1, 2, 'third');
INSERT INTO l VALUES (2, 1, 'second');
BEGIN;
SAVEPOINT s;
INSERT INTO l VALUES (2, 2, 'x');
ROLLBACK TO s;
INSERT INTO l VALUES (2, 2, 'x');
SAVEPOINT t;
INSERT INTO l VALUES (2, 3, 'x');
ROLLBACK TO t;
INSERT INTO l VALUES (3, 2, 'y');
COMMIT;
SELECT * FROM l ORDER BY id;
-- thousands of retries of few keys: the index splits among dead entries and works afterwards
DO $$
BEGIN
	FOR i IN 1 .. 3000 LOOP
		BEGIN
			INSERT INTO l VALUES (100 + i % 3, i % 3, 'retried ' || repeat('x', 50));
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END LOOP;
END $$;
INSERT INTO l VALUES (100, 0, 'at last'), (101, 1, 'at last'), (102, 2, 'at last');
INSERT INTO l VALUES (101, 5, 'twice');
SELECT id, a, b FROM l WHERE id >= 100 ORDER BY id;
-- many keys of one aborted statement, then the same keys again, half of them twice
BEGIN;
INSERT INTO l SELECT g, g, 'many' FROM generate_series(1001, 3000) g;
ROLLBACK;
INSERT INTO l SELECT g, g, 'many' FROM generate_series(1001, 3000) g;
INSERT INTO l SELECT g, g, 'many' FROM generate_series(2900, 3100) g;
SELECT count(*), count(DISTINCT id), max(id) FROM l;
-- twice in one statement
INSERT INTO l VALUES (4000, 1, 'a'), (4001, 1, 'b'), (4000, 1, 'c');
SELECT count(*) FROM l WHERE id >= 4000;
COPY l FROM stdin;
4000	1	a
4001	1	b
4000	1	c
\.
SELECT count(*) FROM l WHERE id >= 4000;
-- nulls are distinct, or are not
INSERT INTO l VALUES (4000, NULL, 'n'), (4001, NULL, 'n');
CREATE TABLE l2 (a int, UNIQUE NULLS NOT DISTINCT (a)) USING sheetlog;
INSERT INTO l2 VALUES (1), (NULL);
INSERT INTO l2 VALUES (NULL);
-- after VACUUM has taken the dead ones: the key is free, and one that is there is not
VACUUM l;
INSERT INTO l VALUES (1001, 0, 'x');
INSERT INTO l VALUES (5000, 0, 'x');
-- a deleted key is free
SET pg_sheet.allow_log_delete = on;
DELETE FROM l WHERE id = 1001;
INSERT INTO l VALUES (1001, 1001, 'again');
BEGIN;
DELETE FROM l WHERE id = 1002;
INSERT INTO l VALUES (1002, 1002, 'again');
ROLLBACK;
INSERT INTO l VALUES (1002, 0, 'y');
BEGIN;
DELETE FROM l WHERE id = 1002;
INSERT INTO l VALUES (1002, 1002, 'again');
COMMIT;
SELECT id, b FROM l WHERE id IN (1001, 1002) ORDER BY id;
-- deferred to the end of the transaction
CREATE TABLE l3 (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, body text) USING sheetlog;
BEGIN;
INSERT INTO l3 VALUES (1, 'a'), (1, 'b');
SELECT count(*) FROM l3;
COMMIT;
BEGIN;
INSERT INTO l3 VALUES (1, 'a'), (1, 'b');
DELETE FROM l3 WHERE body = 'a';
COMMIT;
BEGIN;
INSERT INTO l3 VALUES (2, 'a');
SAVEPOINT s;
INSERT INTO l3 VALUES (2, 'b');
ROLLBACK TO s;
COMMIT;
SELECT * FROM l3 ORDER BY id;
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO l3 VALUES (2, 'c');
COMMIT;
-- exclusion
CREATE TABLE l4 (id int, during int4range, EXCLUDE USING gist (during WITH &&)) USING sheetlog;
INSERT INTO l4 VALUES (1, '[1,5)'), (2, '[5,9)');
INSERT INTO l4 VALUES (3, '[4,6)');
BEGIN;
INSERT INTO l4 VALUES (3, '[20,30)');
ROLLBACK;
INSERT INTO l4 VALUES (3, '[25,26)');
INSERT INTO l4 VALUES (4, '[9,10)'), (5, '[9,11)');
SELECT * FROM l4 ORDER BY id;
ALTER TABLE l4 ADD EXCLUDE USING hash (id WITH =);
INSERT INTO l4 VALUES (3, '[100,101)');
-- a unique index on what is there already
CREATE TABLE l5 (id int) USING sheetlog;
INSERT INTO l5 VALUES (1), (2);
BEGIN;
INSERT INTO l5 VALUES (2);
ROLLBACK;
CREATE UNIQUE INDEX l5_id ON l5 (id);
DROP INDEX l5_id;
INSERT INTO l5 VALUES (2);
CREATE UNIQUE INDEX l5_id ON l5 (id);
CREATE UNIQUE INDEX CONCURRENTLY l5_id ON l5 (id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'l5_id'::regclass;
DELETE FROM l5 WHERE ctid = (SELECT max(ctid) FROM l5);
REINDEX INDEX CONCURRENTLY l5_id;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'l5_id'::regclass;
INSERT INTO l5 VALUES (2);
DROP SCHEMA am_unique CASCADE;
