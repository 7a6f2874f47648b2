-- Publications of partitioned tables: they would take their sheetlog partitions with them, so they are refused, in either order.
\set VERBOSITY sqlstate
SET client_min_messages = error; -- wal_level
CREATE SCHEMA am_publications_parts;
SET search_path = am_publications_parts, public;
CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING sheetlog;
CREATE PUBLICATION am_publication_p FOR TABLE p;
CREATE PUBLICATION am_publication_root FOR TABLE p WITH (publish_via_partition_root);
SELECT tablename FROM pg_publication_tables WHERE pubname IN ('am_publication_p', 'am_publication_root');
CREATE TABLE q (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (10) USING heap;
CREATE PUBLICATION am_publication_q FOR TABLE q;
CREATE TABLE q2 PARTITION OF q FOR VALUES FROM (10) TO (20) USING sheetlog;
CREATE TABLE q3 (id int PRIMARY KEY) USING sheetlog;
ALTER TABLE q ATTACH PARTITION q3 FOR VALUES FROM (20) TO (30);
ALTER TABLE q1 SET ACCESS METHOD sheetlog;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'am_publication_q';
INSERT INTO q VALUES (1);
SELECT count(*) FROM q;
DROP PUBLICATION IF EXISTS am_publication_p, am_publication_root;
DROP PUBLICATION IF EXISTS am_publication_q;
DROP SCHEMA am_publications_parts CASCADE;
