-- TIDs of a sheetlog table suit every kind of index, and none is used again while an entry points at it.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_tids;
SET search_path = am_tids, public;
\set ECHO none
\i :helpers
\set ECHO all
-- very many small rows: as many on a page as there can be, found by the indexes that pack TIDs
SELECT twin('CREATE TABLE T (a int, b int[], p point, r int4range, t text) USING AM');
SELECT twin('INSERT INTO T (a) SELECT g % 100 FROM generate_series(1, 30000) g');
SELECT twin('INSERT INTO T SELECT g % 100, ARRAY[g % 10], point(g % 100, g % 7), int4range(g % 50, g % 50 + 2), (g % 30)::text FROM generate_series(1, 5000) g');
SELECT count(*) FILTER (WHERE (ctid::text::point)[1] BETWEEN 1 AND 291) = count(*) AS offsets FROM l;
CREATE FUNCTION reads() RETURNS TABLE (kind text, answer text) LANGUAGE plpgsql AS $$
DECLARE k record;
BEGIN
	FOR k IN SELECT * FROM (VALUES ('gin', 'USING gin (b)', 'b @> ARRAY[3]'), ('gist', 'USING gist (p)', 'p <@ box(point(0, 0), point(20, 3))'), ('gist', 'USING gist (r)', 'r @> 17'), ('brin', 'USING brin (a)', 'a = 7'), ('hash', 'USING hash (a)', 'a = 7'),
			('spgist', 'USING spgist (t)', 't = ''7'''), ('spgist', 'USING spgist (p)', 'p <@ box(point(0, 0), point(20, 3))'), ('btree', '(a)', 'a = 7')) v(kind, definition, condition) LOOP
		EXECUTE 'CREATE INDEX l_i ON l ' || k.definition;
		kind := k.kind;
		PERFORM set_config('enable_seqscan', 'off', true);
		answer := way('SELECT * FROM T WHERE ' || k.condition);
		EXECUTE 'DROP INDEX l_i';
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM reads();
-- rows that are aborted or deleted, vacuumed and replaced: each index entry finds its own row
SELECT twin('CREATE TABLE T2 (id int, k int, tags int[], p point, body text) USING AM WITH (autovacuum_enabled = off)');
CREATE INDEX l2_id ON l2 (id);
CREATE INDEX l2_k ON l2 USING hash (k);
CREATE INDEX l2_tags ON l2 USING gin (tags);
CREATE INDEX l2_p ON l2 USING gist (p);
CREATE INDEX l2_body ON l2 USING spgist (body);
CREATE FUNCTION fill(a int, b int) RETURNS text LANGUAGE sql AS $f$
	SELECT twin(format($$INSERT INTO T2 SELECT g, g %% 50, ARRAY[g %% 20], point(g %% 100, g), repeat(md5(g::text), g %% 4) FROM generate_series(%s, %s) g$$, a, b))
$f$;
CREATE FUNCTION agree() RETURNS text LANGUAGE plpgsql AS $$
DECLARE condition text; results text[] := '{}';
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true);
	FOREACH condition IN ARRAY '{id > 0,k = 7,"tags @> ARRAY[3]","p <@ box(point(0, 0), point(50, 5000))","body = md5(id::text)"}'::text[] LOOP
		results := results || same('SELECT * FROM T2 WHERE ' || condition);
	END LOOP;
	PERFORM set_config('enable_seqscan', 'on', true);
	RETURN array_to_string(results, ', ');
END $$;
SET pg_sheet.allow_log_delete = on;
SELECT fill(1, 1000);
BEGIN;
SELECT fill(1001, 3000);
ROLLBACK;
SELECT agree();
SELECT fill(3001, 3500);
SELECT agree();
VACUUM l2;
SELECT fill(4001, 5000);
SELECT agree();
SELECT twin('DELETE FROM T2 WHERE id % 3 = 0');
VACUUM l2;
SELECT fill(5001, 5500);
SELECT agree();
-- VACUUM without the indexes leaves their entries, so the rows' places are not free
SELECT twin('DELETE FROM T2 WHERE id % 3 = 1');
VACUUM (INDEX_CLEANUP off) l2;
SELECT fill(6001, 7000);
SELECT agree();
VACUUM l2;
SELECT fill(7001, 7500);
SELECT agree();
SELECT twin('DELETE FROM T2');
VACUUM (TRUNCATE off) l2;
SELECT fill(8001, 8100);
SELECT agree();
SELECT twin('DELETE FROM T2');
VACUUM l2;
SELECT fill(9001, 9100);
SELECT agree();
VACUUM (FREEZE, INDEX_CLEANUP on) l2;
REINDEX TABLE l2;
SELECT agree();
DROP SCHEMA am_tids CASCADE;
