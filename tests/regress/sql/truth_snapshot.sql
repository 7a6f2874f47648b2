-- Reads see what their snapshot sees, wherever they are: in parallel workers, in COPY, in triggers, in functions that catch
-- errors, after purges, and after the extension has gone and come again with the same sheet ids.
CREATE EXTENSION IF NOT EXISTS pg_sheet;
SELECT sheet.create('truth', 200, 26) AS id \gset
SET truth.id = :id;
SELECT sheet.set_range(:id, 'A1', (SELECT array_agg(ARRAY['a' || n, 'b' || n] ORDER BY n) FROM generate_series(1, 200) n)) > 0 AS set;
CREATE TABLE truth (n integer, a text);
INSERT INTO truth SELECT n, 'a' || n FROM generate_series(1, 200) n;
ALTER TABLE truth SET (parallel_workers = 2);
ANALYZE truth;
-- ---- parallel workers: the functions are not for them, but others may call them from their own
CREATE FUNCTION truth_get(ref text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS
	$$ BEGIN RETURN sheet.get(current_setting('truth.id')::bigint, ref); END $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM truth WHERE truth_get('A' || n) = a;
SELECT count(*) FROM truth WHERE truth_get('A' || n) = a;
-- own edits, and those that were taken back
BEGIN;
SELECT sheet.set(:id, 'A7', 'own') > 0 AS set;
SAVEPOINT x;
SELECT sheet.set(:id, 'A8', 'taken back') > 0 AS set;
ROLLBACK TO x;
SELECT n, truth_get('A' || n) FROM truth WHERE truth_get('A' || n) <> a;
ROLLBACK;
SELECT count(*) FROM truth WHERE truth_get('A' || n) = a;
-- a transaction's own snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT sheet.set(:id, 'A9', 'repeatable') > 0 AS set;
SELECT n, truth_get('A' || n) FROM truth WHERE truth_get('A' || n) <> a;
ROLLBACK;
-- without a grid in the cache
SELECT sheet.trash(:id), sheet.recover(:id);
SELECT cached FROM sheet.cache_entries WHERE sheet_id = :id;
SELECT count(*) FROM truth WHERE truth_get('A' || n) = a;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;
-- ---- COPY in a transaction that edits
BEGIN;
SELECT sheet.set(:id, 'B2', 'copied') > 0 AS set;
COPY (SELECT a1, content FROM sheet.range(:id, 'A2:B3')) TO STDOUT;
SAVEPOINT x;
SELECT sheet.set(:id, 'B3', 'not copied') > 0 AS set;
ROLLBACK TO x;
COPY (SELECT a1, content FROM sheet.cells WHERE sheet_id = :id AND "row" IN (1, 2)) TO STDOUT;
ROLLBACK;
COPY (SELECT a1, content FROM sheet.range(:id, 'B2')) TO STDOUT;
-- rows that are copied in write cells, and each sees those before it
CREATE TABLE truth_in (ref text, content text, before text);
CREATE FUNCTION truth_write() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE id bigint := current_setting('truth.id');
BEGIN
	new.before := sheet.get(id, 'C1');
	PERFORM sheet.set(id, 'C1', concat(new.before, new.content)), sheet.set(id, new.ref, new.content);
	RETURN new;
END $$;
CREATE TRIGGER truth_write BEFORE INSERT ON truth_in FOR EACH ROW EXECUTE FUNCTION truth_write();
BEGIN;
COPY truth_in (ref, content) FROM STDIN;
D1	x
D2	y
D3	z
\.
SELECT ref, before FROM truth_in ORDER BY ref;
SELECT a1, content FROM sheet.range(:id, 'C1:D3');
ROLLBACK;
SELECT a1, content FROM sheet.range(:id, 'C1:D3');
-- an error takes all of it back
COPY truth_in (ref, content) FROM STDIN;
D1	x
no cell	y
\.
SELECT a1, content FROM sheet.range(:id, 'C1:D3');
-- ---- a function that catches errors, in a loop
CREATE FUNCTION truth_catch(id bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE seen text := '';
BEGIN
	FOR i IN 1 .. 6 LOOP
		BEGIN
			PERFORM sheet.set(id, 'E1', concat(sheet.get(id, 'E1'), i));
			seen := seen || sheet.get(id, 'E1') || ' ';
			IF i % 2 = 0 THEN
				RAISE EXCEPTION 'undo %', i;
			END IF;
		EXCEPTION WHEN raise_exception THEN
			seen := seen || 'back to ' || sheet.get(id, 'E1') || ' ';
		END;
	END LOOP;
	RETURN seen;
END $$;
SELECT truth_catch(:id);
SELECT sheet.get(:id, 'E1');
-- ---- purged: nothing stays of it, for those who look afterwards
SELECT sheet.purge(:id);
\set VERBOSITY sqlstate
SELECT sheet.get(:id, 'A1');
SELECT seq, cells FROM sheet.read_cells(:id);
SELECT count(*) FROM sheet.cache_entries WHERE sheet_id = :id AND bytes > 0;
-- ---- the extension goes and comes again: the same ids, other sheets
\set before :DBNAME
CREATE DATABASE truth_again;
\c truth_again -
CREATE EXTENSION pg_sheet;
SELECT sheet.create('first') AS first \gset
SELECT sheet.set(:first, 'A1', 'first life') > 0 AS set;
SELECT sheet.get(:first, 'A1');
BEGIN;
DROP EXTENSION pg_sheet;
CREATE EXTENSION pg_sheet;
SELECT sheet.create('second') = :first AS same;
SELECT sheet.set(:first, 'A2', 'never') > 0 AS set;
SELECT a1, content FROM sheet.range(:first);
ROLLBACK;
SELECT a1, content FROM sheet.range(:first);
DROP EXTENSION pg_sheet;
CREATE EXTENSION pg_sheet;
SELECT sheet.create('second') = :first AS same;
SELECT a1, content FROM sheet.range(:first);
SELECT sheet.set(:first, 'A2', 'second life') > 0 AS set;
SELECT a1, content FROM sheet.range(:first);
-- TRUNCATE, by a superuser, of what is the journal's
SELECT sheet.commit(:first);
TRUNCATE sheet.log_batch, sheet.segment, sheet.version, sheet.version_tile;
SELECT count(*) FROM sheet.range(:first);
\c :before -
DROP DATABASE truth_again;
