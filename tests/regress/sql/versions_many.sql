-- Tiles with more versions than the reader of their keys passes one by one: each version, and the present, has the cells of its time.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('versions many', 200, 40) AS id \gset
-- version i writes i into one of three tiles: 300 versions of the last one, then 450 of the first, then both, and 250 of the middle one
CREATE FUNCTION j_tile(i int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN i <= 300 THEN 2 WHEN i <= 750 THEN 0 WHEN i <= 900 THEN i % 2 * 2 ELSE 1 END
$$;
DO $$
DECLARE
	id bigint := (SELECT sheet_id FROM sheet.sheet WHERE name = 'versions many');
BEGIN
	FOR i IN 1 .. 1150 LOOP
		PERFORM sheet.set(id, 70 * j_tile(i), 20 * j_tile(i) / 2, i::text);
		PERFORM sheet.commit(id);
	END LOOP;
END
$$;
CREATE FUNCTION j_expected(version_id int) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(newest::text, ' ' ORDER BY newest) FROM (SELECT max(i) newest FROM generate_series(1, version_id) i GROUP BY j_tile(i)) t
$$;
CREATE FUNCTION j_found(id bigint, version_id bigint) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(content, ' ' ORDER BY content::int) FROM sheet.at(id, version_id)
$$;
SELECT count(*), count(*) FILTER (WHERE j_found(:id, version_id) IS DISTINCT FROM j_expected(version_id)) AS wrong
	FROM (SELECT generate_series(1, 1150, 7) UNION SELECT generate_series(295, 305) UNION SELECT generate_series(495, 505) UNION SELECT generate_series(745, 755) UNION SELECT 1150) c(version_id);
-- a version of which an older snapshot does not know, and one that was rolled back
BEGIN ISOLATION LEVEL REPEATABLE READ;
SAVEPOINT before;
SELECT sheet.set(:id, 0, 0, 'never') AS seq \gset
SELECT sheet.commit(:id);
ROLLBACK TO before;
SELECT j_found(:id, 1150) = j_expected(1150) AS same;
COMMIT;
-- the present
SELECT string_agg(content, ' ' ORDER BY content::int) = j_expected(1150) AS same FROM sheet.range(:id);
SELECT severity, what FROM sheet.fsck(:id, true);
-- the version of one edited tile does not read the others, also when its transaction has edited the sheet before
SELECT sheet.create('large', 25600, 20) AS id \gset
SELECT count(sheet.set(:id, n * 64, 0, n::text)) FROM generate_series(0, 399) n;
SELECT sheet.commit(:id);
CREATE FUNCTION j_blocks(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || statement INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END
$$;
BEGIN;
SELECT sheet.set(:id, 5, 1, 'own') AS seq \gset
SELECT j_blocks(format('SELECT sheet.commit(%s)', :id)) < 200 AS few;
COMMIT;
SELECT version_id, tiles FROM sheet.version WHERE sheet_id = :id ORDER BY 1;
-- inserted and deleted rows and columns, before and within the log of a version
SELECT sheet.insert_rows(:id, 2, 3) > 0 AS done;
SELECT sheet.commit(:id);
SELECT sheet.set(:id, 8, 1, 'behind inserted rows') > 0 AS done;
SELECT sheet.commit(:id);
SELECT sheet.delete_columns(:id, 4, 2) > 0, sheet.set(:id, 8, 1, '') > 0 AS done;
SELECT sheet.commit(:id);
SELECT sheet.rollback(:id, 2);
SELECT sheet.rollback(:id, 1);
SELECT version_id, rows, cols, tiles FROM sheet.version WHERE sheet_id = :id ORDER BY 1;
SELECT severity, what FROM sheet.fsck(:id, true);
