-- Selecting from sheet.range, sheet.at and sheet.read_cells: a scan in place of the call, with the same answers.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
\set ECHO none
-- A plan, with sheet ids as N.
CREATE FUNCTION scan_plan(query text, id bigint, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		RETURN NEXT regexp_replace(line, '(Sheet: ''?)' || id || '\M', '\1N');
	END LOOP;
END $$;
\set ECHO all
SELECT sheet.account_create('scan ann', NULL, NULL) AS ann, sheet.account_create('scan bob', NULL, NULL) AS bob \gset
CREATE ROLE scan_ann;
CREATE ROLE scan_bob;
SELECT sheet.link_account('scan ann', 'scan_ann'), sheet.link_account('scan bob', 'scan_bob');
SET ROLE scan_ann;
SELECT sheet.create('scan', 200, 60) AS id, sheet.create('scan empty', 10, 10) AS empty \gset
RESET ROLE;
-- Two thirds of 200 x 60 cells, some with a style, some with a style only, some long; and one in the last corner.
SELECT (sheet.apply(:id, j_batch(VARIADIC array_agg(j_set(r, c, CASE WHEN r % 10 = 9 THEN '' WHEN (r + c) % 50 = 0 THEN repeat('lang ', 60) ELSE 'é' || r || '.' || c END,
		CASE WHEN r % 10 = 9 OR c = 7 THEN '{"r":' || r || '}' END) ORDER BY r, c)))).last_seq > 0 AS applied
	FROM generate_series(0, 199) r, generate_series(0, 59) c WHERE (r * 60 + c) % 3 > 0;
SELECT sheet.commit(:id, 'first') AS version_id \gset
SELECT sheet.set(:id, 16777215, 16383, 'corner') > 0 AS set;
-- A copy by the plain function: a scan numbers no rows.
SELECT scan_plan(format('SELECT * FROM sheet.range(%s) WITH ORDINALITY', :id), :id);
CREATE TABLE scan_copy AS SELECT * FROM sheet.range(:id) WITH ORDINALITY;
CREATE TABLE scan_model AS SELECT * FROM j_cells(:id);
SELECT count(*), count(style) AS styles, count(*) FILTER (WHERE content = '') AS styled_only, max(length(content)) FROM scan_copy;
SELECT count(*) AS differ FROM scan_copy c FULL JOIN scan_model m USING ("row", col)
	WHERE c.content IS DISTINCT FROM m.content OR c.style IS DISTINCT FROM m.style;

-- Windows, conditions and columns: the same as from the copy.
CREATE FUNCTION scan_digest(source text, predicate text, columns text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	digest text;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, ''|'')), ''none'') FROM (SELECT %s FROM %s WHERE %s) t',
		columns, source, predicate) INTO digest;
	RETURN digest;
END $$;
CREATE TABLE scan_predicate (predicate text);
INSERT INTO scan_predicate VALUES
	('true'), ('false'), ('"row" = 7'), ('"row" = 7 AND col = 5'), ('7 = "row"'), ('"row" > 190'), ('"row" >= 190'), ('190 > "row" AND col < 3'), ('"row" BETWEEN 60 AND 70 AND col BETWEEN 10 AND 40'),
	('"row" BETWEEN 63 AND 64 AND col BETWEEN 15 AND 16'), ('"row" BETWEEN 70 AND 60'), ('"row" < 0'), ('"row" = -1'), ('col >= 16383'), ('col > 16383'), ('"row" > 16777215'), ('"row" <= 16777215 AND "row" > 199'),
	('"row" = 9223372036854775807'), ('"row" > 9223372036854775807'), ('"row" < -9223372036854775808'), ('"row" = 7::smallint'), ('"row" > NULL'), ('"row" > 100.5'), ('"row" IN (5, 99, 3)'), ('col = ANY (ARRAY[NULL, 7])'), ('col = ANY (''{}''::int[])'),
	('"row" <> ALL (ARRAY[1, 2])'), ('"row" = col'), ('"row" = 3 OR "row" = 5'), ('"row" % 7 = 1 AND "row" > 30'), ('"row" IS NULL'), ('a1 = ''D8'''), ('''d8'' = a1'), ('''D8'' = a1'), ('a1 = ''$D$8'''), ('a1 = ''D8'' AND a1 = ''D7'''), ('a1 = ''D8'' AND "row" > 6 AND col < 4'), ('a1 = NULL'), ('a1 = ''XFD16777216'''), ('a1 IN (''D8'', ''E8'')'), ('a1 > ''D8'''), ('a1 = ''nonsense'''), ('content LIKE ''é1%'' AND col = 8'), ('style IS NOT NULL'), ('style IS NOT NULL AND content = '''''), ('"row" > (SELECT 150) AND col = (SELECT 4)');
SELECT count(*) AS predicates FROM scan_predicate;
SELECT predicate AS differs, source, columns FROM scan_predicate,
		(VALUES ('sheet.range(%s)', 'scan_copy'), ('sheet.range(%s, ''B3:AA80'')', '(SELECT * FROM scan_copy WHERE "row" BETWEEN 2 AND 79 AND col BETWEEN 1 AND 26 ORDER BY ordinality) s'),
			('sheet.range(%s, ''C:E'')', '(SELECT * FROM scan_copy WHERE col BETWEEN 2 AND 4 ORDER BY ordinality) s'),
			('sheet.at(%s, ' || :version_id || ')', '(SELECT * FROM scan_copy WHERE "row" < 200 ORDER BY ordinality) s')) s(source, copy),
		(VALUES ('"row", col, a1, content, style'), ('content'), ('style, content, "row"'), ('a1, 1, NULL::text'), ('content AS a, content AS b'), ('col + 1, upper(content)'), ('1')) c(columns)
	WHERE scan_digest(format(source, :id), predicate, columns) <> scan_digest(copy, predicate, columns);
SELECT count(*) FROM sheet.range(:id);
SELECT count(*) FROM sheet.range(:id, 'C5:F9');
SELECT count(*) FROM sheet.range(:empty), sheet.range(:empty, 'A1:XFD16777216') r;

-- What plans look like.
SELECT scan_plan(format('SELECT content FROM sheet.range(%s, ''B7:F20'')', :id), :id, 'COSTS OFF, VERBOSE');
SELECT scan_plan(format('SELECT upper(content), a1 FROM sheet.range(%s) WHERE "row" BETWEEN 3 AND 9 AND col = ANY (ARRAY[1, 5]) AND content > '''' ', :id), :id, 'COSTS OFF, VERBOSE');
SELECT scan_plan(format('SELECT count(*) FROM sheet.at(%s, 1) WHERE 5 >= "row"', :id), :id);
SELECT scan_plan(format('SELECT seq, cells FROM sheet.read_cells(%s, 0, 0, 9, 9, max_bytes => 1000)', :id), :id);
SELECT scan_plan(format('SELECT content FROM sheet.range(%s) WHERE a1 = ''D8''', :id), :id);
-- it is in reading order
SELECT scan_plan(format('SELECT a1 FROM sheet.range(%s) ORDER BY "row", col', :id), :id);
SELECT scan_plan(format('SELECT a1 FROM sheet.range(%s) WHERE "row" = 7 ORDER BY col LIMIT 1', :id), :id);
SELECT scan_plan(format('SELECT a1 FROM sheet.range(%s) ORDER BY col', :id), :id);
SELECT bool_and(ordinality = n) AS ordered FROM (SELECT a1, row_number() OVER (ORDER BY "row", col) AS n FROM sheet.range(:id)) r JOIN scan_copy USING (a1);
-- rows as a whole are left to the function
SELECT scan_plan(format('SELECT r FROM sheet.range(%s) r', :id), :id);
SELECT r FROM sheet.range(:id, 'B1:C1') r;
SELECT (sheet.range(:id, 'B1:C1')).a1;
SELECT (sheet.read_cells(:id, 0, 1, 0, 1)).rows;

-- Constants of a result are those of the query in each row, also when who takes the rows keeps copies in the slot, or changes it.
CREATE TABLE scan_made AS SELECT 'a constant that is copied'::text AS fixed, a1 FROM sheet.range(:id, 'A1:F20');
SELECT fixed, count(*) FROM scan_made GROUP BY fixed;
CREATE TABLE scan_parted (fixed text, number numeric, i integer, a1 text) PARTITION BY LIST (i);
CREATE TABLE scan_parted_1 PARTITION OF scan_parted DEFAULT;
INSERT INTO scan_parted SELECT 'a constant that is copied', 12345.678, 1, a1 FROM sheet.range(:id, 'A1:F20');
INSERT INTO scan_parted SELECT 'of the log', 0.5, NULL, kind FROM sheet.log_edits(:id) WHERE seq <= 50;
SELECT fixed, number, i, count(*) FROM scan_parted GROUP BY fixed, number, i ORDER BY fixed;
CREATE FUNCTION scan_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.i := NEW.i + 1;
	NEW.fixed := NEW.fixed || '!';
	RETURN NEW;
END $$;
CREATE TRIGGER scan_change BEFORE INSERT ON scan_parted FOR EACH ROW EXECUTE FUNCTION scan_change();
TRUNCATE scan_parted;
INSERT INTO scan_parted SELECT 'changed', 2, 1, a1 FROM sheet.range(:id, 'A1:F20');
INSERT INTO scan_parted SELECT 'of the log', NULL, 5, kind FROM sheet.log_edits(:id) WHERE seq <= 50;
SELECT fixed, number, i, count(*) FROM scan_parted GROUP BY fixed, number, i ORDER BY fixed;
DROP TABLE scan_made, scan_parted;
DROP FUNCTION scan_change();

-- Rescans: with other arguments the cells are read again, with the same ones they are there.
CREATE TABLE scan_window AS SELECT n, :id::bigint AS id, format('%s%s:%s%s', chr(65 + n % 5), n, chr(70 + n % 9), n + n % 4) AS ref FROM generate_series(1, 40) n;
ANALYZE scan_window;
SELECT scan_plan('SELECT w.n, r.a1 FROM scan_window w, sheet.range(w.id, w.ref) r', :id);
SELECT count(*), count(DISTINCT n), md5(string_agg(n || a1 || content, ',' ORDER BY n, a1)) FROM scan_window w, sheet.range(w.id, w.ref) r;
SELECT count(*), count(DISTINCT n), md5(string_agg(n || a1 || content, ',' ORDER BY n, a1)) FROM scan_window w, sheet.range(w.id, w.ref) WITH ORDINALITY r;
SELECT count(*), md5(string_agg(n || a1 || content, ',' ORDER BY n, a1)) FROM scan_window w, sheet.range(w.id) r WHERE r."row" BETWEEN w.n AND w.n + 2 AND r.col = w.n % 5;
SELECT count(*), md5(string_agg(n || a1 || content, ',' ORDER BY n, a1)) FROM scan_window w, scan_copy r WHERE r."row" BETWEEN w.n AND w.n + 2 AND r.col = w.n % 5;
SELECT n, (SELECT string_agg(a1, ' ') FROM sheet.range(w.id, w.ref) WHERE "row" = w.n) FROM scan_window w WHERE n < 6;
SELECT n, (SELECT count(*) FROM sheet.read_cells(w.id, 0, 0, w.n, 5) s, j_decode(s.cells)) FROM scan_window w WHERE n < 6;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
SELECT scan_plan(format('SELECT * FROM scan_window w LEFT JOIN sheet.range(%s, ''A1:B9'') r ON r."row" = w.n', :id), :id);
SELECT count(*), count(r.a1), count(DISTINCT r.a1) FROM scan_window w LEFT JOIN sheet.range(:id, 'A1:B9') r ON r."row" = w.n;
SELECT count(*), count(r.a1), count(DISTINCT r.a1) FROM scan_window w LEFT JOIN (SELECT * FROM scan_copy WHERE "row" < 9 AND col < 2) r ON r."row" = w.n;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;
SELECT count(*) FROM sheet.range(:id) a JOIN sheet.range(:id) b ON b."row" = a."row" + 1 AND b.col = a.col;
SELECT count(*) FROM scan_copy a JOIN scan_copy b ON b."row" = a."row" + 1 AND b.col = a.col;
UPDATE scan_window w SET ref = r.content FROM sheet.range(:id, 'B1:B9') r WHERE r."row" = w.n RETURNING w.n, w.ref;
SELECT w.n, r.content FROM scan_window w JOIN sheet.range(:id, 'B1:B9') r ON r."row" = w.n ORDER BY 1 FOR UPDATE OF w;

-- Prepared, with parameters; null is the whole sheet.
PREPARE scan_one(bigint, text) AS SELECT count(*), min(a1) FROM sheet.range($1, $2);
PREPARE scan_two(bigint, int, int) AS SELECT count(*), min(a1) FROM sheet.range($1) WHERE "row" = $2 AND col >= $3;
SET plan_cache_mode = force_generic_plan;
EXECUTE scan_one(:id, 'B2:D4'); EXECUTE scan_one(:id, NULL); EXECUTE scan_one(:empty, NULL); EXECUTE scan_two(:id, 5, 50); EXECUTE scan_two(:id, 5, NULL);
SELECT j_error('EXECUTE scan_one(NULL, NULL)'), j_error('EXECUTE scan_one(1, ''nonsense'')'), j_error('EXECUTE scan_one(-1, NULL)'), j_error(format('SELECT count(*) FROM sheet.at(%s, 99)', :id)),
	j_error(format('SELECT count(*) FROM sheet.at(%s, 99) WHERE "row" < 0', :id)), j_error('SELECT count(*) FROM sheet.range(-1) WHERE "row" < 0');
RESET plan_cache_mode;

-- Cursors, back and forth, and edits while they are open: they show the sheet as it was.
BEGIN;
DECLARE c CURSOR FOR SELECT a1, content FROM sheet.range(:id, 'A1:F1');
DECLARE s SCROLL CURSOR FOR SELECT a1 || '!' AS a1 FROM sheet.range(:id, 'A1:F2') WHERE content LIKE 'é%';
DECLARE late CURSOR FOR SELECT content FROM sheet.range(:id, 'B1:B2');
DECLARE live NO SCROLL CURSOR FOR SELECT length(cells) FROM sheet.read_cells(:id, 0, 1, 0, 1);
FETCH 2 FROM c;
SELECT sheet.set(:id, 'B1', 'mine') > 0 AS set, sheet.set(:id, 'E1', '') > 0 AS cleared;
FETCH ALL FROM c; FETCH 1 FROM c; FETCH BACKWARD 2 FROM c; FETCH 1 FROM c; FETCH BACKWARD ALL FROM c; FETCH BACKWARD 1 FROM c; FETCH 1 FROM c;
FETCH LAST FROM s; FETCH PRIOR FROM s; FETCH FIRST FROM s; FETCH ABSOLUTE 3 FROM s; FETCH ABSOLUTE -2 FROM s; FETCH RELATIVE 0 FROM s; MOVE ABSOLUTE 0 IN s; FETCH 2 FROM s;
FETCH ALL FROM late;
FETCH ALL FROM live; -- volatile: what is there now
-- own edits are seen, those that were taken back are not
SELECT a1, content FROM sheet.range(:id, 'A1:F1') WHERE col < 5;
SAVEPOINT x;
SELECT sheet.set(:id, 'B1', 'in x') > 0 AS set;
DECLARE x CURSOR FOR SELECT content FROM sheet.range(:id, 'B1:D1');
FETCH 1 FROM x;
ROLLBACK TO x;
SELECT content FROM sheet.range(:id, 'B1');
ROLLBACK;
SELECT content FROM sheet.range(:id, 'B1');
-- held: read at the end of the transaction
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT a1 FROM sheet.range(:id, 'A2:D3');
COMMIT;
FETCH ALL FROM h; FETCH BACKWARD 1 FROM h;
CLOSE h;
-- LIMIT, and a function that stops early
SELECT a1 FROM sheet.range(:id) LIMIT 3;
SELECT a1 FROM sheet.range(:id) OFFSET 7997 LIMIT 9;
CREATE FUNCTION scan_third(id bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	n int := 0;
	cell record;
BEGIN
	FOR cell IN SELECT * FROM sheet.range(id, 'A1:Z9') LOOP
		n := n + 1;
		IF n = 3 THEN RETURN cell.a1; END IF;
	END LOOP;
	RETURN 'none';
END $$;
SELECT scan_third(:id), scan_third(:empty);
-- a loop over cells that edits them
DO $$
DECLARE
	cell record;
	n int := 0;
	sheet_id bigint := (SELECT id FROM scan_window LIMIT 1);
BEGIN
	FOR cell IN SELECT a1, content FROM sheet.range(sheet_id, 'A150:H151') LOOP
		PERFORM sheet.set(sheet_id, cell.a1, cell.content || '+');
		PERFORM sheet.set(sheet_id, 'Z151', cell.content);
		n := n + 1;
	END LOOP;
	RAISE NOTICE '% cells', n;
END $$;
SELECT a1, content, style FROM sheet.range(:id, 'A150:Z151') WHERE col < 8 OR col = 25 AND "row" = 150;

-- Streams: in one row or in several, the cells are the same.
SELECT count(*), max(octet_length(cells)) <= 2000 AS small, count(DISTINCT (seq, rows, cols)) AS states FROM sheet.read_cells(:id, max_bytes => 2000);
SELECT count(*) AS differ FROM (SELECT d."row", d.col, d.content, d.style FROM sheet.read_cells(:id, max_bytes => 2000) s, j_decode(s.cells) d) a
	FULL JOIN j_cells(:id) b USING ("row", col) WHERE a.content IS DISTINCT FROM b.content OR a.style IS DISTINCT FROM b.style;
SELECT count(*) AS rows, sum((SELECT count(*) FROM j_decode(cells))) AS cells FROM sheet.read_cells(:id, 0, 0, 1, 9, 1);
SELECT count(*) AS rows, count(cells) FROM sheet.read_cells(:id, 10, 10, 9, 9, 1);
SELECT rows, cols, encode(substring(cells FROM 3), 'hex') FROM sheet.read_cells(:empty, max_bytes => 10);
SELECT rows, cols FROM sheet.read_cells(:empty);
SELECT count(*) FROM sheet.read_cells(:empty);
SELECT j_error('SELECT sheet.read_cells(1, max_bytes => 0)'), j_error('SELECT * FROM sheet.read_cells(NULL)'), j_error('SELECT * FROM sheet.read_cells(1, -1)');

-- Who may: decided when rows are first asked for, by the role of then.
CREATE FUNCTION scan_leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'leaked %', $1; RETURN true; END $$;
SELECT sheet.set(:empty, 'A1', 'secret') > 0 AS set;
BEGIN;
SET ROLE scan_ann;
DECLARE c CURSOR FOR SELECT a1 FROM sheet.range(:id, 'A1:C3');
SET ROLE scan_bob;
\set VERBOSITY sqlstate
FETCH 1 FROM c;
\set VERBOSITY default
ROLLBACK;
SET ROLE scan_bob;
SELECT j_error(format('SELECT a1 FROM sheet.range(%s)', :id)), j_error(format('SELECT count(*) FROM sheet.at(%s, 1)', :id)), j_error(format('SELECT cells FROM sheet.read_cells(%s)', :id)),
	j_error(format('SELECT a1 FROM sheet.range(%s) WHERE "row" < 0', :id)), j_error(format('EXPLAIN SELECT a1 FROM sheet.range(%s)', :id));
SELECT count(*) FROM sheet.cells WHERE sheet_id = :id;
SET ROLE scan_ann;
SELECT count(*) FROM sheet.range(:id, 'A1:C3');
SELECT count(*), sum(octet_length(cells)) > 0 AS some FROM sheet.read_cells(:id, 0, 0, 9, 9);
SELECT sheet.share(:id, 'scan bob', 'viewer');
SET ROLE scan_bob;
SELECT count(*) FROM sheet.range(:id, 'A1:C3');
SELECT count(*) FROM sheet.cells WHERE sheet_id = :id AND "row" BETWEEN 0 AND 2 AND col <= 2;
SELECT count(*) FROM scan_plan(format('SELECT a1 FROM sheet.cells WHERE sheet_id = %s AND "row" BETWEEN 0 AND 2', :id), :id) l WHERE l ~ 'Row: >= 0 AND <= 2';
BEGIN;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION sheet.range(bigint, text, boolean) FROM PUBLIC;
SET ROLE scan_bob;
SELECT j_error(format('SELECT a1 FROM sheet.range(%s)', :id));
ROLLBACK;
-- a function that has been given rights or settings of its own is called with them
BEGIN;
RESET ROLE;
SELECT sheet.unshare(:id, 'scan bob');
ALTER FUNCTION sheet.range(bigint, text, boolean) SECURITY DEFINER;
SET ROLE scan_bob;
SELECT scan_plan(format('SELECT a1 FROM sheet.range(%s)', :id), :id);
SELECT count(*) FROM sheet.range(:id, 'A1:C3');
RESET ROLE;
ALTER FUNCTION sheet.range(bigint, text, boolean) SECURITY INVOKER SET lc_messages = 'C';
SELECT scan_plan(format('SELECT a1 FROM sheet.range(%s)', :id), :id);
ROLLBACK;
SET ROLE scan_bob;
-- of a sheet that is not his, a function of his sees nothing
SELECT count(*) FROM sheet.cells WHERE sheet_id = :empty AND scan_leak(content);
RESET ROLE;
DROP FUNCTION scan_leak(text), scan_third(bigint), scan_digest(text, text, text), scan_plan(text, bigint, text);
DROP TABLE scan_copy, scan_model, scan_window, scan_predicate;
SELECT sheet.purge(:id), sheet.purge(:empty);
DEALLOCATE scan_one; DEALLOCATE scan_two;
