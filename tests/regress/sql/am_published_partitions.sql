-- Publications of partitioned tables: none has a sheetlog table among its partitions, whichever of the two comes first.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_published;
CREATE SCHEMA am_published_logs;
SET search_path = am_published, am_published_logs, public;
\set ECHO none
\i :helpers
\set ECHO all
SET client_min_messages = error; -- wal_level
CREATE FUNCTION published() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = 'p' $$;
CREATE TABLE top (id int) PARTITION BY RANGE (id);
CREATE TABLE top_heap PARTITION OF top FOR VALUES FROM (0) TO (10);
CREATE TABLE top_mid PARTITION OF top FOR VALUES FROM (10) TO (50) PARTITION BY RANGE (id);
CREATE TABLE am_published_logs.leaf PARTITION OF top_mid FOR VALUES FROM (10) TO (20) USING sheetlog;
-- the log is there: the publication of what it is a partition of, at any depth and by any name, cannot be
\set VERBOSITY default
CREATE PUBLICATION p FOR TABLE top;
CREATE PUBLICATION p FOR TABLES IN SCHEMA am_published;
\set VERBOSITY terse
CREATE PUBLICATION p FOR TABLE top_mid WITH (publish_via_partition_root);
CREATE PUBLICATION p FOR TABLE top_heap, top_mid;
CREATE PUBLICATION p FOR ALL TABLES;
CREATE PUBLICATION p FOR TABLE top_heap;
ALTER PUBLICATION p ADD TABLE top;
ALTER PUBLICATION p SET TABLE top_mid;
ALTER PUBLICATION p ADD TABLES IN SCHEMA am_published;
SELECT published();
DROP PUBLICATION p;
-- the publication is there: no log becomes a partition below what is published
ALTER TABLE top_mid DETACH PARTITION leaf;
CREATE PUBLICATION p FOR TABLE top;
\set VERBOSITY default
ALTER TABLE top_mid ATTACH PARTITION leaf FOR VALUES FROM (10) TO (20);
CREATE TABLE made PARTITION OF top FOR VALUES FROM (60) TO (70) USING sheetlog;
ALTER TABLE top_heap SET ACCESS METHOD sheetlog;
\set VERBOSITY terse
CREATE TABLE made PARTITION OF top_mid DEFAULT USING sheetlog;
CREATE TABLE tree (id int) PARTITION BY RANGE (id);
CREATE TABLE branch PARTITION OF tree FOR VALUES FROM (60) TO (70) PARTITION BY RANGE (id);
ALTER TABLE branch ATTACH PARTITION leaf FOR VALUES FROM (60) TO (65);
ALTER TABLE top ATTACH PARTITION tree FOR VALUES FROM (60) TO (70);
ALTER TABLE branch DETACH PARTITION leaf;
ALTER TABLE top ATTACH PARTITION tree FOR VALUES FROM (60) TO (70);
ALTER TABLE branch ATTACH PARTITION leaf FOR VALUES FROM (60) TO (65);
CREATE UNLOGGED TABLE quiet PARTITION OF top FOR VALUES FROM (80) TO (90) USING sheetlog;
ALTER TABLE quiet SET LOGGED;
SELECT published();
-- what is detached again is free
ALTER TABLE top DETACH PARTITION tree;
ALTER TABLE branch ATTACH PARTITION leaf FOR VALUES FROM (60) TO (65);
ALTER TABLE top DETACH PARTITION top_heap;
ALTER TABLE top_heap SET ACCESS METHOD sheetlog;
DROP PUBLICATION p;
ALTER TABLE top ATTACH PARTITION tree FOR VALUES FROM (60) TO (70);
ALTER TABLE top ATTACH PARTITION top_heap FOR VALUES FROM (0) TO (10);
-- the schema of the partitioned table is published, that of the log is not
CREATE SCHEMA am_published_schema;
CREATE PUBLICATION p FOR TABLES IN SCHEMA am_published_schema;
ALTER TABLE top SET SCHEMA am_published_schema;
ALTER TABLE tree SET SCHEMA am_published_schema;
CREATE TABLE am_published_schema.root (id int) PARTITION BY RANGE (id);
CREATE TABLE am_published_logs.made PARTITION OF am_published_schema.root DEFAULT USING sheetlog;
SELECT published();
-- a parent by inheritance publishes its rows only: its children are named when the publication is made, and free afterwards
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent) USING sheetlog;
ALTER PUBLICATION p SET TABLE parent;
ALTER PUBLICATION p SET TABLE ONLY parent;
CREATE TABLE second () INHERITS (parent) USING sheetlog;
SELECT published();
DROP PUBLICATION p;
DROP SCHEMA am_published, am_published_logs, am_published_schema CASCADE;
