-- Foreign keys: a sheetlog table may refer to others, but cannot be referred to.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_foreign_keys;
SET search_path = am_foreign_keys, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE parent (id int PRIMARY KEY, name text);
INSERT INTO parent SELECT g, 'p' || g FROM generate_series(1, 10) g;
CREATE TABLE l (id int, parent_id int REFERENCES parent) USING sheetlog;
INSERT INTO l SELECT g, g % 10 + 1 FROM generate_series(1, 50) g;
INSERT INTO l VALUES (51, NULL);
INSERT INTO l VALUES (52, 11);
COPY l FROM stdin;
53	3
54	12
\.
SELECT count(*), count(parent_id) FROM l;
-- the parent of a row stays; others can go
DELETE FROM parent WHERE id = 3;
UPDATE parent SET id = 33 WHERE id = 3;
INSERT INTO parent VALUES (20, 'free');
UPDATE parent SET id = 21 WHERE id = 20;
UPDATE parent SET name = 'renamed' WHERE id = 3;
DELETE FROM parent WHERE id = 21;
SELECT count(*) FROM parent;
-- rows of this transaction, and undone ones
BEGIN;
INSERT INTO parent VALUES (30, 'new');
INSERT INTO l VALUES (60, 30);
SAVEPOINT s;
DELETE FROM parent WHERE id = 30;
ROLLBACK TO s;
ROLLBACK;
BEGIN;
INSERT INTO parent VALUES (30, 'new');
SAVEPOINT s;
INSERT INTO l VALUES (60, 30);
ROLLBACK TO s;
DELETE FROM parent WHERE id = 30;
COMMIT;
-- the error is that of any table; who asks for the lock himself does not get it
\set VERBOSITY default
DELETE FROM parent WHERE id = 3;
SELECT id FROM l WHERE id = 1 FOR KEY SHARE;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DELETE FROM parent WHERE id = 4;
ROLLBACK;
-- actions that would change the log are refused when the key is made, and so is what would lead to them
CREATE TABLE l2 (id int, parent_id int REFERENCES parent ON DELETE CASCADE) USING sheetlog;
\set VERBOSITY terse
CREATE TABLE l2 (id int, parent_id int REFERENCES parent ON UPDATE SET NULL) USING sheetlog;
CREATE TABLE l2 (id int, parent_id int) USING sheetlog;
ALTER TABLE l2 ADD FOREIGN KEY (parent_id) REFERENCES parent ON DELETE SET DEFAULT NOT VALID;
CREATE TABLE h2 (id int, parent_id int REFERENCES parent ON DELETE SET NULL (parent_id));
ALTER TABLE h2 SET ACCESS METHOD sheetlog;
CREATE TABLE p2 (id int, parent_id int REFERENCES parent ON DELETE CASCADE) PARTITION BY RANGE (id);
CREATE TABLE p2_1 PARTITION OF p2 FOR VALUES FROM (0) TO (10) USING sheetlog;
ALTER TABLE p2 ATTACH PARTITION l2 FOR VALUES FROM (0) TO (10);
CREATE TABLE p2_1 PARTITION OF p2 FOR VALUES FROM (0) TO (10);
ALTER TABLE p2_1 SET ACCESS METHOD sheetlog;
CREATE TABLE p3 (id int, parent_id int) PARTITION BY RANGE (id);
CREATE TABLE p3_1 PARTITION OF p3 FOR VALUES FROM (0) TO (10) USING sheetlog;
ALTER TABLE p3 ADD FOREIGN KEY (parent_id) REFERENCES parent ON UPDATE CASCADE;
-- RESTRICT changes nothing
ALTER TABLE l2 ADD FOREIGN KEY (parent_id) REFERENCES parent ON DELETE RESTRICT ON UPDATE RESTRICT;
INSERT INTO parent VALUES (40, 'restricts');
INSERT INTO l2 VALUES (1, 40);
DO $$ BEGIN DELETE FROM parent WHERE id = 40; EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN RAISE NOTICE 'refused'; END $$;
DO $$ BEGIN UPDATE parent SET id = 41 WHERE id = 40; EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN RAISE NOTICE 'refused'; END $$;
UPDATE parent SET name = 'still there' WHERE id = 40;
SELECT count(*) FROM l2 JOIN parent ON parent.id = l2.parent_id;
-- deferred, added later, not valid at first, of several columns
CREATE TABLE l3 (id int, a int, b text) USING sheetlog;
INSERT INTO l3 VALUES (1, 1, 'p1'), (2, 99, 'none');
ALTER TABLE parent ADD UNIQUE (id, name);
ALTER TABLE l3 ADD FOREIGN KEY (a, b) REFERENCES parent (id, name) MATCH FULL;
ALTER TABLE l3 ADD CONSTRAINT l3_fk FOREIGN KEY (a, b) REFERENCES parent (id, name) DEFERRABLE INITIALLY DEFERRED NOT VALID;
INSERT INTO l3 VALUES (3, 98, 'none');
ALTER TABLE l3 VALIDATE CONSTRAINT l3_fk;
SET pg_sheet.allow_log_delete = on;
DELETE FROM l3 WHERE a = 99;
ALTER TABLE l3 VALIDATE CONSTRAINT l3_fk;
BEGIN;
INSERT INTO l3 VALUES (4, 50, 'late');
INSERT INTO parent VALUES (50, 'late');
COMMIT;
SELECT count(*) FROM l3;
-- with an index on the column, in a partition, to a partitioned table
CREATE INDEX l_parent ON l (parent_id);
DELETE FROM parent WHERE id = 7;
CREATE TABLE lp (id int, parent_id int REFERENCES parent) PARTITION BY LIST (id);
CREATE TABLE lp_1 PARTITION OF lp FOR VALUES IN (1) USING sheetlog;
INSERT INTO lp VALUES (1, 1);
INSERT INTO lp VALUES (1, 1000);
-- a log is not referred to: refused when the constraint is made, and so is what would lead to it
\set VERBOSITY default
CREATE TABLE l4 (id int PRIMARY KEY) USING sheetlog;
CREATE TABLE child (id int REFERENCES l4);
\set VERBOSITY terse
CREATE TABLE child (id int);
ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES l4;
ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES l4 NOT VALID;
CREATE TABLE l5 (id int PRIMARY KEY, up int REFERENCES l5) USING sheetlog;
ALTER TABLE l4 ADD COLUMN up int REFERENCES l4;
ALTER TABLE parent SET ACCESS METHOD sheetlog;
CREATE TABLE pp (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE pp_1 PARTITION OF pp FOR VALUES FROM (0) TO (10);
CREATE TABLE pchild (id int REFERENCES pp);
INSERT INTO pp VALUES (1);
INSERT INTO pchild VALUES (1);
CREATE TABLE pp_2 PARTITION OF pp FOR VALUES FROM (10) TO (20) USING sheetlog;
CREATE TABLE pp_3 (id int PRIMARY KEY) USING sheetlog;
ALTER TABLE pp ATTACH PARTITION pp_3 FOR VALUES FROM (20) TO (30);
ALTER TABLE pp_1 SET ACCESS METHOD sheetlog;
CREATE TABLE pp2 (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE pp2_1 PARTITION OF pp2 FOR VALUES FROM (0) TO (10) USING sheetlog;
CREATE TABLE pchild2 (id int REFERENCES pp2);
SELECT conrelid::regclass, confrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid IN (SELECT c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'sheetlog');
DROP SCHEMA am_foreign_keys CASCADE;
