-- Every kind of index on a sheetlog table, as built, built concurrently, reindexed, and with rows that come afterwards.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_index_kinds;
SET search_path = am_index_kinds, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin($$CREATE TABLE T (id int, k int, body text, tags int[], p point, r int4range, words tsvector, at timestamptz, ip inet, j jsonb) USING AM$$);
CREATE FUNCTION fill(a int, b int) RETURNS text LANGUAGE sql AS $f$
	SELECT twin(format($$INSERT INTO T SELECT g, g %% 23, 'body ' || g, ARRAY[g %% 5, g %% 7], point(g %% 50, g / 50), int4range(g, g + 3),
		to_tsvector('simple', 'w' || g %% 30 || ' common'), '2026-01-01'::timestamptz + g * interval '1 minute', '10.0.0.0'::inet + g, jsonb_build_object('k', g %% 11)
		FROM generate_series(%s, %s) g$$, a, b))
$f$;
SELECT fill(1, 1500);
BEGIN;
SELECT fill(1, 700);
ROLLBACK;
-- nulls, too
SELECT twin('INSERT INTO T (id) SELECT g FROM generate_series(5001, 5020) g');
CREATE TABLE kinds (no serial, name text, definition text, condition text);
INSERT INTO kinds (name, definition, condition) VALUES
	('btree', '(k)', 'k = 5'),
	('unique', '(id)', 'id BETWEEN 100 AND 200 OR id > 5010'),
	('hash', 'USING hash (body)', $$body = 'body 77'$$),
	('gin', 'USING gin (tags)', 'tags @> ARRAY[3, 6]'),
	('gin_words', 'USING gin (words)', $$words @@ 'w7 & common'$$),
	('gin_json', 'USING gin (j jsonb_path_ops)', $$j @> '{"k": 4}'$$),
	('gist', 'USING gist (r)', 'r && int4range(100, 120)'),
	('gist_point', 'USING gist (p)', 'p <@ box(point(2, 2), point(8, 8))'),
	('spgist', 'USING spgist (body)', $$body ^@ 'body 14'$$),
	('spgist_ip', 'USING spgist (ip)', $$ip << '10.0.0.0/26'$$),
	('brin', 'USING brin (at) WITH (pages_per_range = 1)', $$at < '2026-01-01 03:00'$$),
	('partial', '(id) WHERE k = 22', 'k = 22 AND id < 500'),
	('expression', '((id * 2))', 'id * 2 = 246'),
	('functional', '(lower(body) text_pattern_ops)', $$lower(body) LIKE 'body 99%'$$),
	('covering', '(k, id) INCLUDE (body)', 'k = 7'),
	('descending', '(k DESC NULLS LAST, id)', 'k IS NULL OR k > 21');
-- how the index answers, when there is no other
CREATE FUNCTION answers(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; used text; result text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT * FROM l WHERE ' || condition LOOP
		used := coalesce(used, substring(line FROM 'l_\w+'));
	END LOOP;
	result := same('SELECT * FROM T WHERE ' || condition);
	RETURN coalesce(used, 'no index') || ': ' || result;
END $$;
SET enable_seqscan = off;
CREATE FUNCTION every() RETURNS TABLE (name text, built text, then_filled text, aborted text, reindexed text) LANGUAGE plpgsql AS $$
DECLARE kind kinds; more int := 2000;
BEGIN
	FOR kind IN SELECT * FROM kinds ORDER BY no LOOP
		name := kind.name;
		EXECUTE 'CREATE ' || CASE WHEN name = 'unique' THEN 'UNIQUE ' ELSE '' END || 'INDEX l_' || name || ' ON l ' || kind.definition;
		built := answers(kind.condition);
		PERFORM fill(more, more + 9);
		then_filled := answers(kind.condition);
		BEGIN
			PERFORM fill(more + 10, more + 19);
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
		aborted := answers(kind.condition);
		EXECUTE 'REINDEX INDEX l_' || name;
		reindexed := answers(kind.condition);
		EXECUTE 'DROP INDEX l_' || name;
		more := more + 10;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM every();
CREATE VIEW summary AS SELECT count(*) FILTER (WHERE answer ~ '^l_\w+: same') AS right, string_agg(answer, ', ') FILTER (WHERE answer !~ '^l_\w+: same') AS wrong,
	sum(substring(answer FROM '\d+$')::int) AS rows FROM (SELECT answers(condition) AS answer FROM kinds OFFSET 0) x;
-- the same, concurrently: these statements are not allowed in functions
CREATE TABLE told (no serial, what text);
\set ECHO none
SELECT format('CREATE %s INDEX CONCURRENTLY l_%s ON l %s', CASE WHEN name = 'unique' THEN 'UNIQUE' END, name, definition) AS build,
	format('INSERT INTO told (what) SELECT answers(condition) FROM kinds WHERE name = %L', name) AS ask, format('REINDEX INDEX CONCURRENTLY l_%s', name) AS again,
	format('INSERT INTO told (what) SELECT ''reindexed '' || answers(condition) FROM kinds, pg_index WHERE name = %L AND indexrelid = %L::regclass AND indisvalid', name, 'l_' || name) AS ask_again,
	format('DROP INDEX CONCURRENTLY l_%s', name) AS gone FROM kinds ORDER BY no \gexec
\set ECHO all
SELECT what FROM told ORDER BY no;
-- all of them at once, and the whole table at once
\set ECHO none
SELECT format('CREATE INDEX l_%s ON l %s', name, definition) FROM kinds ORDER BY no \gexec
\set ECHO all
BEGIN;
SELECT fill(3001, 3100);
ROLLBACK;
SELECT fill(3001, 3100);
REINDEX TABLE l;
SELECT * FROM summary;
REINDEX TABLE CONCURRENTLY l;
SELECT * FROM summary;
SET pg_sheet.allow_log_delete = on;
SELECT twin('DELETE FROM T WHERE id % 4 = 1');
SELECT * FROM summary;
VACUUM l;
SELECT * FROM summary;
SELECT fill(4001, 4300); -- into the room of what is gone
SELECT * FROM summary;
SELECT count(*) FROM pg_index WHERE indrelid = 'l'::regclass AND indisvalid AND indisready AND indislive;
DROP SCHEMA am_index_kinds CASCADE;
