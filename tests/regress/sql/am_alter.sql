-- ALTER TABLE of a sheetlog table: columns come, go and change, with rows of before and after, as with heap.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_alter;
SET search_path = am_alter, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, a text, b numeric) USING AM');
SELECT twin($$INSERT INTO T SELECT g, repeat(md5(g::text), g % 50), g / 3.0 FROM generate_series(1, 1000) g$$);
-- columns with and without a default, constant and not
SELECT twin('ALTER TABLE T ADD COLUMN c int DEFAULT 42');
SELECT twin('ALTER TABLE T ADD COLUMN d text');
SELECT twin($$ALTER TABLE T ADD COLUMN e text NOT NULL DEFAULT 'constant' || repeat('x', 3000)$$);
SELECT twin('ALTER TABLE T ADD COLUMN f timestamptz DEFAULT ''2026-01-01''');
SELECT same();
SELECT twin($$INSERT INTO T (id, d, e) SELECT g, 'd', 'own' FROM generate_series(1001, 1100) g$$);
SELECT twin('INSERT INTO T (id, c, f) VALUES (1101, NULL, NULL)');
SELECT same();
SELECT same('SELECT id FROM T WHERE c = 42');
SELECT same('SELECT count(e), count(c), count(f), min(length(e)) FROM T');
SELECT twin('CREATE INDEX T_c ON T (c, d)');
SET enable_seqscan = off;
SELECT way('SELECT id FROM T WHERE c = 42 AND d = ''d''');
SELECT way('SELECT count(*) FROM T WHERE c IS NULL');
RESET enable_seqscan;
SELECT twin('ALTER TABLE T ALTER c SET DEFAULT 43');
SELECT twin('INSERT INTO T (id) VALUES (1102)');
SELECT same('SELECT c, count(*) FROM T GROUP BY c');
-- volatile defaults and generated columns rewrite
SELECT twin('ALTER TABLE T ADD COLUMN g int GENERATED ALWAYS AS (id * 2) STORED');
ALTER TABLE l ADD COLUMN s serial;
SELECT count(DISTINCT s) = count(*) FROM l;
ALTER TABLE l DROP COLUMN s;
SELECT twin('ALTER TABLE T ADD COLUMN hh int');
SELECT twin('INSERT INTO T (id, hh) VALUES (1104, 1)');
ALTER TABLE l ADD COLUMN r float DEFAULT random();
SELECT count(DISTINCT r) > 1000 FROM l;
ALTER TABLE l DROP COLUMN r;
SELECT same();
-- columns go, come again, and are not what they were
SELECT twin('ALTER TABLE T DROP COLUMN a');
SELECT same();
SELECT twin('ALTER TABLE T ADD COLUMN a int');
SELECT twin('INSERT INTO T (id, a) VALUES (1103, 7)');
SELECT same();
SELECT same('SELECT a, count(*) FROM T GROUP BY a');
SELECT twin('ALTER TABLE T DROP COLUMN c');
SELECT same();
VACUUM FULL l;
SELECT same();
-- types: with a rewrite, without one, with an expression, impossible
SELECT twin_refusal('ALTER TABLE T ALTER id TYPE bigint');
SELECT twin('ALTER TABLE T ALTER g DROP EXPRESSION');
SELECT twin('ALTER TABLE T ALTER id TYPE bigint');
SELECT twin('ALTER TABLE T ALTER b TYPE text USING b::text || ''!''');
SELECT twin('ALTER TABLE T ALTER d TYPE varchar(500)');
SELECT same();
SELECT twin_refusal('ALTER TABLE T ALTER d TYPE varchar(0)');
SELECT twin_refusal('ALTER TABLE T ALTER b TYPE int USING b::int');
SELECT same();
-- constraints look at what is there and at what comes
SELECT twin_refusal('ALTER TABLE T ADD CHECK (id < 1000)');
SELECT twin('ALTER TABLE T ADD CONSTRAINT T_small CHECK (id < 1000) NOT VALID');
SELECT twin_refusal('INSERT INTO T (id) VALUES (2000)');
SELECT twin_refusal('ALTER TABLE T VALIDATE CONSTRAINT T_small');
SELECT twin('ALTER TABLE T DROP CONSTRAINT T_small');
SELECT twin_refusal('ALTER TABLE T ALTER d SET NOT NULL');
SELECT twin('ALTER TABLE T ALTER id SET NOT NULL');
SELECT twin_refusal('INSERT INTO T (a) VALUES (1)');
SELECT twin_refusal('ALTER TABLE T ADD PRIMARY KEY (a)');
SELECT twin('ALTER TABLE T ADD PRIMARY KEY (id)');
SELECT twin_refusal('INSERT INTO T (id) VALUES (1103)');
CREATE UNIQUE INDEX l_hh ON l (hh);
CREATE UNIQUE INDEX h_hh ON h (hh);
SELECT twin('ALTER TABLE T ADD CONSTRAINT T_unique UNIQUE USING INDEX T_hh');
SELECT same();
-- statements that copy rows still do so
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% %', TG_WHEN, NEW.id; RETURN NEW; END $$;
CREATE TRIGGER before_row BEFORE INSERT ON l FOR EACH ROW EXECUTE FUNCTION tell();
CREATE CONSTRAINT TRIGGER in_the_end AFTER INSERT ON l DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.d IS NOT NULL) EXECUTE FUNCTION tell();
INSERT INTO l (id, d, e) VALUES (1110, 'd', 'e'), (1110, 'd', 'e') ON CONFLICT DO NOTHING RETURNING id, d, e, g, a;
INSERT INTO h (id, d, e) VALUES (1110, 'd', 'e');
DROP TRIGGER before_row ON l;
DROP TRIGGER in_the_end ON l;
SELECT same('SELECT x.* FROM T x JOIN (SELECT id, T AS r FROM T) y ON y.id = x.id AND (y.r).d = x.d');
SELECT same('SELECT * FROM (SELECT * FROM T ORDER BY b, id LIMIT 100 OFFSET 50) x');
SELECT twin('CREATE TABLE T6 USING AM AS SELECT * FROM T');
SELECT same('SELECT * FROM T6');
SELECT twin('CREATE INDEX T_g ON T (g)');
CLUSTER l USING l_g;
SELECT same();
-- names and storage
SELECT twin('ALTER TABLE T RENAME COLUMN d TO renamed');
SELECT twin('ALTER TABLE T ALTER e SET STORAGE EXTERNAL, ALTER e SET COMPRESSION pglz, ALTER e SET STATISTICS 500');
SELECT twin('INSERT INTO T (id, e) VALUES (3000, repeat(''stored'', 10000))');
SELECT same();
ALTER TABLE l SET (fillfactor = 50, autovacuum_enabled = off);
ALTER TABLE l RESET (fillfactor, autovacuum_enabled);
-- taken back
BEGIN;
ALTER TABLE l ADD COLUMN gone int DEFAULT 1;
INSERT INTO l (id, gone) VALUES (4000, 2);
ALTER TABLE l ALTER gone TYPE text;
CLUSTER l USING l_g;
ROLLBACK;
SELECT same();
BEGIN;
SAVEPOINT s;
ALTER TABLE l DROP COLUMN e, ALTER hh TYPE text;
SELECT count(*) FROM l;
ROLLBACK TO s;
COMMIT;
SELECT same();
-- rules, owners, comments and row types
CREATE TABLE l2 (id int) USING sheetlog;
COMMENT ON TABLE l2 IS 'a log';
CREATE TABLE l5 (id int) USING sheetlog;
CREATE RULE also AS ON INSERT TO l2 WHERE NEW.id > 10 DO ALSO INSERT INTO l5 VALUES (NEW.id);
CREATE RULE instead AS ON UPDATE TO l2 DO INSTEAD INSERT INTO l2 VALUES (NEW.id);
INSERT INTO l2 VALUES (1), (20);
UPDATE l2 SET id = 2 WHERE id = 1;
SELECT * FROM l2 ORDER BY id;
SELECT * FROM l5;
CREATE TYPE pair AS (x int, y text);
CREATE TABLE l3 OF pair USING sheetlog;
INSERT INTO l3 VALUES (1, 'typed');
ALTER TYPE pair ADD ATTRIBUTE z int CASCADE;
INSERT INTO l3 VALUES (2, 'typed', 3);
SELECT * FROM l3 ORDER BY x;
CREATE TABLE l4 (whole l3, id int) USING sheetlog;
INSERT INTO l4 SELECT l3, x FROM l3;
SELECT (whole).y, id FROM l4 ORDER BY id;
DROP SCHEMA am_alter CASCADE;
