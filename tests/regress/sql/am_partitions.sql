-- Sheetlog tables as partitions and as children: routing, pruning, attaching, detaching, beside heap tables.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_partitions;
SET search_path = am_partitions, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE p (id int, k int, body text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) USING sheetlog;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) USING heap;
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300) PARTITION BY LIST (id);
CREATE TABLE p3_even PARTITION OF p3 FOR VALUES IN (200, 202, 204) USING sheetlog;
CREATE TABLE p3_rest PARTITION OF p3 DEFAULT USING sheetlog;
INSERT INTO p SELECT g, g % 7, repeat('b', g) FROM generate_series(0, 299) g;
INSERT INTO p VALUES (300);
SELECT tableoid::regclass, count(*), sum(length(body)) FROM p GROUP BY 1 ORDER BY 1;
INSERT INTO p VALUES (50, 0, ''), (150, 0, ''), (203, 0, '') ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO p VALUES (50);
INSERT INTO p1 VALUES (100);
-- pruned, and by the index of each
SET enable_seqscan = off;
SELECT id, k FROM p WHERE id IN (5, 105, 204, 205) ORDER BY id;
SELECT plan('SELECT * FROM p WHERE id = 203');
CREATE INDEX p_k ON p (k) INCLUDE (id);
SELECT count(*), sum(id) FROM p WHERE k = 3;
SET enable_partitionwise_aggregate = on;
SELECT k, count(*), sum(length(body)) FROM p GROUP BY k ORDER BY k;
RESET enable_partitionwise_aggregate;
RESET enable_seqscan;
-- in order, from several partitions
SELECT array_agg(id) FROM (SELECT id FROM p WHERE id > 195 ORDER BY id LIMIT 9) x;
-- rows cannot leave a log, nor be changed in it; those of the heap partition can
UPDATE p SET id = 101 WHERE id = 50;
UPDATE p SET body = 'x' WHERE id = 50;
UPDATE p SET body = 'x' WHERE id = 150;
SELECT id, body FROM p WHERE id = 150;
DELETE FROM p WHERE id = 199;
DELETE FROM p WHERE id = 99;
UPDATE p SET id = 301 WHERE id = 198;
SELECT count(*) FROM p;
-- detach, attach, with conditions that hold or do not
ALTER TABLE p DETACH PARTITION p1;
SELECT count(*) FROM p;
INSERT INTO p1 VALUES (500, 0, 'out of range');
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100);
SET pg_sheet.allow_log_delete = on;
DELETE FROM p1 WHERE id = 500;
RESET pg_sheet.allow_log_delete;
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100);
SELECT count(*), count(*) FILTER (WHERE k = 3) FROM p;
CREATE TABLE other (id int PRIMARY KEY, k int, body text) USING sheetlog;
INSERT INTO other SELECT g, g % 7, 'other' FROM generate_series(300, 399) g;
ALTER TABLE p ATTACH PARTITION other FOR VALUES FROM (300) TO (400);
SELECT count(*), sum(id) FROM p WHERE k = 3;
ALTER TABLE p DETACH PARTITION other CONCURRENTLY;
SELECT count(*) FROM p;
-- a default partition is looked into when another one is made
CREATE TABLE rest PARTITION OF p DEFAULT USING sheetlog;
INSERT INTO p VALUES (1000, 0, 'rest');
CREATE TABLE p10 PARTITION OF p FOR VALUES FROM (1000) TO (1100) USING sheetlog;
CREATE TABLE p11 PARTITION OF p FOR VALUES FROM (1100) TO (1200) USING sheetlog;
INSERT INTO p VALUES (1100, 0, 'p11');
SELECT tableoid::regclass FROM p WHERE id IN (1000, 1100) ORDER BY 1;
-- DDL on the parent reaches all
ALTER TABLE p ADD COLUMN added int DEFAULT 5;
ALTER TABLE p ADD CHECK (id < 5000);
ALTER TABLE p ALTER k TYPE bigint;
SELECT count(*), sum(added) FROM p;
BEGIN;
TRUNCATE p;
SELECT count(*) FROM p;
ROLLBACK;
VACUUM (ANALYZE) p;
SELECT count(*) FROM p;
-- triggers of the parent fire for rows of logs
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% %', TG_TABLE_NAME, NEW.id; RETURN NEW; END $$;
CREATE TRIGGER after_row AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO p VALUES (1101, 0, ''), (199, 0, '');
-- by hash
CREATE TABLE q (id int, body text) PARTITION BY HASH (id);
SELECT format('CREATE TABLE q%s PARTITION OF q FOR VALUES WITH (MODULUS 4, REMAINDER %s) USING sheetlog', g, g) FROM generate_series(0, 3) g \gexec
INSERT INTO q SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
SELECT count(*), count(DISTINCT tableoid), bool_and(body = md5(id::text)) FROM q;
SELECT body = md5('77') FROM q WHERE id = 77;
-- inheritance
CREATE TABLE base (id int, body text);
CREATE TABLE child (extra int) INHERITS (base) USING sheetlog;
INSERT INTO base VALUES (1, 'base');
INSERT INTO child VALUES (2, 'child', 3);
SELECT tableoid::regclass, * FROM base ORDER BY id;
SELECT * FROM ONLY base;
UPDATE base SET body = 'changed' WHERE id = 1;
UPDATE base SET body = 'changed' WHERE id = 2;
ALTER TABLE base ADD COLUMN late text DEFAULT 'late';
INSERT INTO child VALUES (4, 'child', 5, 'own');
SELECT * FROM base ORDER BY id;
ALTER TABLE child NO INHERIT base;
SELECT count(*) FROM base;
-- FOR UPDATE takes no lock in the log, and says so
SELECT * FROM p WHERE id = 150 FOR UPDATE;
SELECT * FROM p WHERE id = 50 FOR UPDATE;
DROP SCHEMA am_partitions CASCADE;
