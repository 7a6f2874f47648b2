-- The access method sheetlog: what is done to tables works as with heap, and what could only fail later is refused at once.
\set VERBOSITY default
SET client_min_messages = warning;
CREATE SCHEMA am_ddl;
SET search_path = am_ddl, public;
CREATE FUNCTION method(rel regclass) RETURNS name LANGUAGE sql AS 'SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = rel';
CREATE TABLE log (id bigint PRIMARY KEY, body text) USING sheetlog;
INSERT INTO log SELECT g, repeat(g::text, 30) FROM generate_series(1, 2000) g;
CREATE TEMP TABLE expected AS SELECT id, md5(body) AS sum FROM log;
CREATE FUNCTION same() RETURNS bool LANGUAGE sql AS 'SELECT NOT EXISTS ((SELECT id, md5(body) FROM am_ddl.log EXCEPT SELECT * FROM expected) UNION ALL (SELECT * FROM expected EXCEPT SELECT id, md5(body) FROM am_ddl.log))';

-- refused when they are made
CREATE TABLE child (log_id bigint REFERENCES log);
CREATE TABLE child (log_id bigint);
ALTER TABLE child ADD FOREIGN KEY (log_id) REFERENCES log (id) NOT VALID;
CREATE TABLE parts (log_id bigint REFERENCES log) PARTITION BY LIST (log_id);
SET client_min_messages = error; -- wal_level
CREATE PUBLICATION p FOR TABLE log;
CREATE PUBLICATION p FOR TABLE child;
ALTER PUBLICATION p ADD TABLE log;
ALTER PUBLICATION p SET TABLE log;
ALTER PUBLICATION p SET TABLE child, log;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'p';
DROP PUBLICATION p;
SET client_min_messages = warning;
-- the other direction is fine: a log may reference a heap table
CREATE TABLE kind (kind int PRIMARY KEY);
INSERT INTO kind VALUES (1);
CREATE TABLE log2 (id int, kind int REFERENCES kind) USING sheetlog;
INSERT INTO log2 VALUES (1, 1);
INSERT INTO log2 VALUES (1, 2);
DELETE FROM kind; -- would lock the referencing row: refused either way
DROP TABLE log2, kind, child;

-- vacuum, analyze, rewrites
VACUUM log;
VACUUM (FREEZE, ANALYZE) log;
SELECT reltuples, relpages > 0 AS pages FROM pg_class WHERE oid = 'log'::regclass;
SELECT n_distinct FROM pg_stats WHERE schemaname = 'am_ddl' AND tablename = 'log' AND attname = 'id';
VACUUM FULL log;
SELECT same(), method('log');
CLUSTER log USING log_pkey;
SELECT same(), method('log');
REINDEX TABLE log;
REINDEX TABLE CONCURRENTLY log;
SELECT same();
-- aborted rows are vacuumed away
ALTER TABLE log SET (autovacuum_enabled = off);
BEGIN;
INSERT INTO log SELECT g, repeat('gone', 50) FROM generate_series(100001, 110000) g;
ROLLBACK;
CREATE TEMP TABLE sizes AS SELECT pg_relation_size('log') AS before;
VACUUM log;
SELECT same(), pg_relation_size('log') < before AS truncated FROM sizes;

-- columns
ALTER TABLE log ADD COLUMN n int DEFAULT 7;
ALTER TABLE log ADD COLUMN r float DEFAULT random();
ALTER TABLE log ALTER n TYPE bigint;
SELECT count(*), sum(n), count(DISTINCT r) > 1000 AS random FROM log;
ALTER TABLE log DROP COLUMN n, DROP COLUMN r;
ALTER TABLE log ADD CONSTRAINT positive CHECK (id > 0);
INSERT INTO log VALUES (-1, '');
SELECT same(), method('log');

-- storage
ALTER TABLE log SET UNLOGGED;
ALTER TABLE log SET LOGGED;
SELECT same(), method('log');
SELECT pg_total_relation_size('log') >= pg_relation_size('log') AND pg_relation_size('log') > 100000 AS sized;
CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY) USING sheetlog;
INSERT INTO unlogged SELECT generate_series(1, 10);
CREATE TEMP TABLE temporary (a int PRIMARY KEY) USING sheetlog;
INSERT INTO temporary SELECT generate_series(1, 10);
UPDATE temporary SET a = 0;
SELECT count(*) FROM unlogged JOIN temporary USING (a);
DROP TABLE unlogged, temporary;
CREATE MATERIALIZED VIEW summary USING sheetlog AS SELECT id % 10 AS digit, count(*) FROM log GROUP BY 1;
REFRESH MATERIALIZED VIEW summary;
SELECT count(*), sum(count), method('summary') FROM summary;
DROP MATERIALIZED VIEW summary;

-- the way out, and back
ALTER TABLE log SET ACCESS METHOD heap;
SELECT same(), method('log');
BEGIN;
UPDATE log SET body = '' WHERE id = 1;
DELETE FROM log WHERE id = 2;
ROLLBACK;
ALTER TABLE log SET ACCESS METHOD sheetlog;
SELECT same(), method('log');
DELETE FROM log WHERE id = 2;
-- a table that is referenced or published stays what it is
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int REFERENCES parent);
ALTER TABLE parent SET ACCESS METHOD sheetlog;
ALTER TABLE child SET ACCESS METHOD sheetlog;
ALTER TABLE child SET ACCESS METHOD heap;
DROP TABLE child;
SET client_min_messages = error; -- wal_level
CREATE PUBLICATION p FOR TABLE parent;
SET client_min_messages = warning;
ALTER TABLE parent SET ACCESS METHOD sheetlog;
DROP PUBLICATION p;
ALTER TABLE parent SET ACCESS METHOD sheetlog;
SELECT method('parent');
DROP TABLE parent;
-- truncation, dropping, default access method
BEGIN;
TRUNCATE log;
SELECT count(*) FROM log;
ROLLBACK;
SELECT same();
BEGIN;
CREATE TABLE fresh (a int PRIMARY KEY) USING sheetlog;
INSERT INTO fresh VALUES (1);
TRUNCATE fresh;
INSERT INTO fresh VALUES (1);
COMMIT;
SELECT * FROM fresh;
TRUNCATE log;
SELECT count(*) FROM log;
INSERT INTO log VALUES (1, 'anew');
SELECT * FROM log;
SET default_table_access_method = sheetlog;
CREATE TABLE by_default (a int);
RESET default_table_access_method;
SELECT method('by_default');

-- partitions, of both kinds in one table
CREATE TABLE parted (id int, body text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100) USING sheetlog;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200) USING heap;
INSERT INTO parted SELECT g, 'p' FROM generate_series(0, 199) g;
SELECT tableoid::regclass, count(*) FROM parted GROUP BY 1 ORDER BY 1;
UPDATE parted SET id = 150 WHERE id = 50;
DELETE FROM parted WHERE id = 150;
DELETE FROM parted WHERE id = 50;
SELECT count(*) FROM parted;
ALTER TABLE parted DETACH PARTITION parted_1;
ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES FROM (0) TO (100);
SELECT count(*) FROM parted;
CREATE TABLE inherited () INHERITS (log) USING sheetlog;
INSERT INTO inherited VALUES (5, 'child');
SELECT count(*) FROM log;

-- publications of a schema or of all tables, in either order
SET client_min_messages = error;
\set VERBOSITY terse
CREATE PUBLICATION every FOR ALL TABLES;
CREATE SCHEMA published;
CREATE TABLE published.plain (a int);
CREATE PUBLICATION few FOR TABLES IN SCHEMA published;
CREATE TABLE published.made (a int) USING sheetlog;
ALTER TABLE published.plain SET ACCESS METHOD sheetlog;
ALTER TABLE by_default SET SCHEMA published;
ALTER PUBLICATION few ADD TABLES IN SCHEMA am_ddl;
CREATE UNLOGGED TABLE published.unlogged (a int) USING sheetlog;
DROP SCHEMA published CASCADE;
DROP PUBLICATION few;
CREATE SCHEMA published;
CREATE TABLE published.made (a int) USING sheetlog;
CREATE PUBLICATION few FOR TABLES IN SCHEMA published;
CREATE PUBLICATION few FOR TABLES IN SCHEMA am_ddl;
DROP SCHEMA published CASCADE;
DROP SCHEMA am_ddl CASCADE;
