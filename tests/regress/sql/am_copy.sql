-- COPY of a sheetlog table: out and in, by every format, with FREEZE, with errors, with many and with long rows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_copy;
SET search_path = am_copy, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int, n numeric, body text, b bytea, at timestamptz, j jsonb, a int[]) USING AM');
SELECT twin($$INSERT INTO T SELECT g, CASE WHEN g % 4 <> 0 THEN g / 7.0 END, CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN E'tab\t "quote" \\ back\nline' WHEN 3 THEN repeat(md5(g::text), g % 100) ELSE 'x' END,
	CASE WHEN g % 3 = 0 THEN decode(md5(g::text), 'hex') END, '2026-01-01 00:00+00'::timestamptz + g * interval '1 hour', jsonb_build_object('g', g, 'n', NULL), ARRAY[g, NULL] FROM generate_series(1, 2500) g$$);
SELECT twin($$INSERT INTO T (id, body) SELECT g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 5000) i) FROM generate_series(3001, 3003) g$$);
\set file `mktemp /tmp/pg_sheet_copy.XXXXXX`
CREATE FUNCTION through(options text, file text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE l9 (LIKE l) USING sheetlog;
	CREATE TABLE h9 (LIKE h) USING heap;
	EXECUTE format('COPY l TO %L %s', file, options);
	EXECUTE format('COPY h9 FROM %L %s', file, options);
	EXECUTE format('COPY h TO %L %s', file, options);
	EXECUTE format('COPY l9 FROM %L %s', file, options);
	RETURN options || ' ' || same('SELECT * FROM T9') || ', ' || (SELECT count(*) FROM (SELECT l::text FROM l EXCEPT ALL SELECT l9::text FROM l9) d) || ' lost';
END $$;
BEGIN; SELECT through('(FORMAT text)', :'file'); ROLLBACK;
BEGIN; SELECT through('(FORMAT csv)', :'file'); ROLLBACK;
BEGIN; SELECT through('(FORMAT csv, HEADER, DELIMITER ''|'', QUOTE '''''''', NULL ''-'')', :'file'); ROLLBACK;
BEGIN; SELECT through('(FORMAT binary)', :'file'); ROLLBACK;
BEGIN; SELECT through('(FORMAT text, ENCODING ''LATIN1'')', :'file'); ROLLBACK;
-- with indexes, defaults, conditions and fewer columns
SELECT twin('CREATE TABLE T2 (id int PRIMARY KEY, body text DEFAULT ''d'', extra int DEFAULT 7, doubled int GENERATED ALWAYS AS (id * 2) STORED) USING AM');
COPY (SELECT id, body FROM l) TO :'file';
COPY l2 (id, body) FROM :'file' WHERE id % 2 = 0;
COPY h2 (id, body) FROM :'file' WHERE id % 2 = 0;
SELECT same('SELECT * FROM T2');
SET enable_seqscan = off;
SELECT same('SELECT id, extra, doubled FROM T2 WHERE id BETWEEN 100 AND 200');
RESET enable_seqscan;
-- an error at the last line takes all of it back; then it works
COPY l2 (id, body) FROM :'file';
SELECT same('SELECT * FROM T2');
COPY l2 (id, body) FROM :'file' WHERE id % 2 = 1;
COPY h2 (id, body) FROM :'file' WHERE id % 2 = 1;
SELECT same('SELECT * FROM T2');
COPY l2 (id) FROM stdin;
9001
9002
not a number
\.
SELECT count(*) FROM l2 WHERE id > 9000;
-- FREEZE: only where the table is new in the transaction; then all see the rows as frozen
TRUNCATE h2;
COPY l2 FROM stdin WITH (FREEZE);
\.
BEGIN;
TRUNCATE l2;
COPY l2 (id, body) FROM :'file' (FREEZE);
SELECT count(*) FROM l2;
COMMIT;
COPY h2 (id, body) FROM :'file';
SELECT same('SELECT id, body, extra FROM T2');
BEGIN;
CREATE TABLE l3 (id int, body text) USING sheetlog;
COPY l3 FROM :'file' (FREEZE);
SAVEPOINT s;
COPY l3 FROM :'file' (FREEZE);
ROLLBACK TO s;
COMMIT;
SELECT count(*), count(body) FROM l3;
BEGIN;
TRUNCATE l3;
COPY l3 FROM :'file' (FREEZE);
ROLLBACK;
SELECT count(*), count(body) FROM l3;
VACUUM l3;
SELECT count(*), count(body) FROM l3;
-- to a partitioned table, and from one
CREATE TABLE parts (id int, body text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000) USING sheetlog;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (10000) USING heap;
COPY parts FROM :'file';
SELECT tableoid::regclass, count(*), sum(length(body)) FROM parts GROUP BY 1 ORDER BY 1;
-- the rows of a COPY are in the table for the next statement, none are seen by a query that runs
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) FROM l3;
COPY l3 FROM :'file';
FETCH c;
SELECT count(*) FROM l3;
ROLLBACK;
\! rm -f /tmp/pg_sheet_copy.*
DROP SCHEMA am_copy CASCADE;
