-- Publications: a sheetlog table is in none, whatever the way, and a heap table beside it can be.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_publications;
SET search_path = am_publications, public;
\set ECHO none
\i :helpers
\set ECHO all
SET client_min_messages = error; -- wal_level
CREATE TABLE l (id int PRIMARY KEY) USING sheetlog;
CREATE TABLE plain (id int PRIMARY KEY);
\set VERBOSITY default
CREATE PUBLICATION am_publication FOR TABLE l;
\set VERBOSITY terse
CREATE PUBLICATION am_publication FOR TABLE plain, l;
CREATE PUBLICATION am_publication FOR TABLE plain;
ALTER PUBLICATION am_publication ADD TABLE l;
ALTER PUBLICATION am_publication SET TABLE l;
ALTER PUBLICATION am_publication SET TABLE plain, l (id);
ALTER PUBLICATION am_publication ADD TABLE l WHERE (id > 5);
ALTER TABLE plain SET ACCESS METHOD sheetlog;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'am_publication';
DROP PUBLICATION am_publication;
-- a schema with a log in it, and all tables of a database that has logs
CREATE PUBLICATION am_publication FOR TABLES IN SCHEMA am_publications;
CREATE PUBLICATION am_publication FOR ALL TABLES;
SELECT pubname FROM pg_publication WHERE pubname = 'am_publication';
DROP PUBLICATION IF EXISTS am_publication;
-- an unlogged log is in no publication anyway
CREATE UNLOGGED TABLE u (id int) USING sheetlog;
CREATE PUBLICATION am_publication FOR TABLE u;
INSERT INTO l VALUES (1);
SELECT * FROM l;
DROP SCHEMA am_publications CASCADE;
