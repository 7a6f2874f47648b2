-- What writes a sheetlog table anew keeps its rows: VACUUM FULL, CLUSTER, SET ACCESS METHOD, SET TABLESPACE, SET UNLOGGED.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_rewrite;
SET search_path = am_rewrite, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, k int, body text, c int DEFAULT 5) USING AM');
SELECT twin('CREATE INDEX T_k ON T (k)');
SELECT twin($$INSERT INTO T SELECT g, (g * 7919) % 1000, CASE WHEN g % 9 = 0 THEN NULL ELSE repeat(md5(g::text), g % 300) END FROM generate_series(1, 1500) g$$);
BEGIN;
SELECT twin('INSERT INTO T SELECT g, 0, repeat(''aborted'', 1000) FROM generate_series(2001, 2500) g');
ROLLBACK;
SELECT twin('ALTER TABLE T DROP COLUMN c');
SELECT twin('ALTER TABLE T ADD COLUMN d text DEFAULT ''dd''');
SET pg_sheet.allow_log_delete = on;
SELECT twin('DELETE FROM T WHERE id % 10 = 0');
CREATE FUNCTION method(rel regclass) RETURNS name LANGUAGE sql AS 'SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = rel';
-- all that is there, by the table and by its indexes
CREATE FUNCTION whole() RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	PERFORM ways('seq');
	result := method('l') || ', ' || same();
	PERFORM ways('index');
	result := result || ', ' || way('SELECT * FROM T WHERE id > 700') || ', ' || way('SELECT * FROM T WHERE k = 77');
	PERFORM ways('seq', 'index', 'bitmap', 'indexonly', 'tid');
	RETURN result;
END $$;
SELECT whole();
CREATE TEMP TABLE sizes AS SELECT pg_total_relation_size('l') AS before, pg_relation_filenode('l') AS file;
VACUUM FULL l;
SELECT whole(), pg_total_relation_size('l') < before AS smaller, pg_relation_filenode('l') <> file AS new FROM sizes;
CLUSTER l USING l_k;
SELECT whole();
SELECT bool_and(k >= before) FROM (SELECT k, lag(k, 1, 0) OVER () AS before FROM l) x;
CLUSTER l;
SELECT whole(), (SELECT indisclustered FROM pg_index WHERE indexrelid = 'l_k'::regclass);
VACUUM FULL l;
SELECT whole();
-- in a transaction with rows of its own, rolled back and committed
BEGIN;
SELECT twin('INSERT INTO T VALUES (3001, 1, ''own'')');
CLUSTER l USING l_pkey;
SELECT whole();
SAVEPOINT s;
SELECT twin('INSERT INTO T VALUES (3002, 1, ''own'')');
CLUSTER l USING l_k;
SELECT whole();
ROLLBACK TO s;
SELECT whole();
ROLLBACK;
SELECT whole();
-- the way out and back, in each case by a rewrite
ALTER TABLE l SET ACCESS METHOD heap;
SELECT whole();
UPDATE l SET body = 'changed' WHERE id < 10;
UPDATE h SET body = 'changed' WHERE id < 10;
ALTER TABLE l SET ACCESS METHOD sheetlog;
SELECT whole();
UPDATE l SET body = 'changed' WHERE id < 10;
BEGIN;
ALTER TABLE l SET ACCESS METHOD heap;
DELETE FROM l;
ROLLBACK;
SELECT whole();
BEGIN;
ALTER TABLE l SET ACCESS METHOD heap;
DELETE FROM l WHERE id < 100;
ALTER TABLE l SET ACCESS METHOD sheetlog;
COMMIT;
DELETE FROM h WHERE id < 100;
SELECT whole();
ALTER TABLE l SET ACCESS METHOD heap, ALTER k TYPE bigint;
ALTER TABLE l SET ACCESS METHOD sheetlog, ALTER k TYPE int;
SELECT whole();
-- to another tablespace, without a rewrite
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE am_rewrite_space LOCATION '';
ALTER TABLE l SET TABLESPACE am_rewrite_space;
SELECT whole();
SELECT twin('INSERT INTO T SELECT g, 0, ''there'' FROM generate_series(5001, 5100) g');
ALTER INDEX l_pkey SET TABLESPACE am_rewrite_space;
SELECT whole();
BEGIN;
ALTER TABLE l SET TABLESPACE pg_default;
INSERT INTO l VALUES (6000, 0, 'undone');
ROLLBACK;
SELECT whole();
VACUUM FULL l;
REINDEX (TABLESPACE pg_default) TABLE l;
ALTER TABLE l SET TABLESPACE pg_default;
SELECT whole();
DROP TABLESPACE am_rewrite_space;
-- what is not logged
ALTER TABLE l SET UNLOGGED;
SELECT whole();
SELECT twin('INSERT INTO T VALUES (7000, 0, ''unlogged'')');
ALTER TABLE l SET LOGGED;
SELECT whole();
-- an empty table
CREATE TABLE l2 (id int PRIMARY KEY) USING sheetlog;
VACUUM FULL l2;
CLUSTER l2 USING l2_pkey;
ALTER TABLE l2 SET ACCESS METHOD heap;
ALTER TABLE l2 SET ACCESS METHOD sheetlog;
SELECT count(*) FROM l2;
INSERT INTO l2 VALUES (1);
SELECT count(*) FROM l2;
DROP SCHEMA am_rewrite CASCADE;
