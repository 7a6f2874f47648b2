-- Cells, tables, CSV, log and versions by SQL. Errors are shown by their SQLSTATE: the texts name sheet ids.
SELECT sheet.create('api cells') AS id \gset
SELECT sheet.set(:id, 'A1', 'name'), sheet.set(:id, 0, 1, 'height'), sheet.set(:id, 'A2', 'tree'), sheet.set(:id, 'B2', '12.5'), sheet.set(:id, 'B4', 'x');
SELECT sheet.set(:id, 'A1', 'name') AS unchanged;
SELECT sheet.get(:id, 'b2'), sheet.get(:id, '$A$1'), sheet.get(:id, 'C9') IS NULL AS empty;
SELECT * FROM sheet.range(:id);
SELECT a1 FROM sheet.range(:id, 'B2:A4');
SELECT * FROM sheet.as_table(:id) AS t(name text, height text);
SELECT * FROM sheet.as_table(:id, false) AS t(name varchar);
\set VERBOSITY terse
SELECT * FROM sheet.as_table(:id) AS t(name text, height numeric);
SELECT sheet.set(:id, 'D1', 'name'), sheet.set(:id, 'E1', 'an "odd" one');
SELECT sheet.create_view(:id, 'api trees');
SELECT * FROM "api trees";
SELECT sheet.commit(:id, 'first');
SELECT sheet.set_range(:id, 'A3', ARRAY[['p', '1'], ['q', NULL]]);
SELECT count(*) FROM sheet.at(:id, 1);
SELECT * FROM sheet.diff(:id, 1);
SELECT * FROM sheet.diff(:id, 1, 1);
SELECT seq, segment_id, uid, username, origin, kind, "row", col, a1, old, new, style FROM sheet.log WHERE sheet_id = :id ORDER BY seq;
SELECT seq, kind, old, new FROM sheet.history(:id, 'b4');
SELECT count(*) FROM sheet.cells WHERE sheet_id = :id;
SELECT sheet.set(:id, 'B4', NULL) AS cleared_already;

-- CSV
SELECT sheet.import_csv('api csv', E'\uFEFFa,"b ""x"", y"\r\n1,"li\nne"\n,,=A1+1', formulas => true) AS csv \gset
SELECT a1, content FROM sheet.range(:csv);
SELECT sheet.export_csv(:csv, formulas => true) = E'a,"b ""x"", y",\r\n1,"li\nne",\r\n,,=A1+1\r\n' AS exported;
SELECT sheet.import_csv('api csv 2', sheet.export_csv(:csv, formulas => true), formulas => true) AS csv2 \gset
SELECT sheet.export_csv(:csv, formulas => true) = sheet.export_csv(:csv2, formulas => true) AS round_trip;
SELECT sheet.import_csv_into(:csv, 'B2', 'z,w') IS NOT NULL AS imported;
SELECT sheet.export_csv(:csv, 'B2:C2') = E'z,w\r\n' AS part;
-- a content far from the others: not a field for each cell between them
SELECT sheet.create('api sparse', 10, 10) AS sparse \gset
SELECT sheet.set(:sparse, 'A1', 'first') < sheet.set(:sparse, 'XFD16777216', 'last') AS set;
\set VERBOSITY default
SELECT sheet.export_csv(:sparse);
\set VERBOSITY sqlstate
SELECT count(*) FROM sheet.read_csv(:sparse, 1000);
\set VERBOSITY terse
SELECT sheet.export_csv(:sparse, 'A1:B2');
SELECT sheet.export_csv(:sparse, 'XFC16777215:XFD16777216');
SELECT sheet.export_csv(:sparse, 'B1:XFD16777215') = '' AS nothing;
SELECT length(sheet.export_csv(:sparse, 'XEU16777210:XFD16777216'));
SELECT sheet.set(:sparse, 'XFD16777216', '') < sheet.set(:sparse, 'XFD6103', 'last') AS at_the_limit;
SET statement_timeout = '1ms';
SELECT sheet.export_csv(:sparse);
SELECT count(*) FROM sheet.read_csv(:sparse, 1000);
RESET statement_timeout;
SELECT sheet.set(:sparse, 'XFD6104', 'beyond') > 0 AS beyond_it;
SELECT sheet.export_csv(:sparse);
SELECT sheet.purge(:sparse);
-- for those who open it in a spreadsheet program: what begins as a formula does, is none there
SELECT sheet.create('formulas', 10, 10) AS formulas \gset
SELECT count(sheet.set_range(:formulas, 'A1', ARRAY[ARRAY['=HYPERLINK("x","y")', '+1', '-1', '@SUM(A1)'], ARRAY[E'\t=1', E'\r=1', '''=1', 'a=1'], ARRAY['1', ' =1', '', '=']])) > 0 AS set;
SELECT sheet.export_csv(:formulas, NULL, true, formulas => true);
SELECT sheet.export_csv(:formulas, 'A1:B1', NULL) = sheet.export_csv(:formulas, 'A1:B1') AS off_by_default;
SELECT sheet.export_csv(:formulas, 'A1:B2', true, 'tsv', true) = E'"''=HYPERLINK(""x"",""y"")"\t''+1\r\n"''\t=1"\t"''\r=1"\r\n' AS tsv;
-- as TSV and as JSON Lines: the same rows and columns; an empty cell is null
SELECT sheet.create('formats', 10, 10) AS formats \gset
SELECT count(sheet.set_range(:formats, 'B1', ARRAY[['a,b', E'c\td'], [E'e "f"\\', ''], ['', E'g\r\nh\u0001\uFEFFä']])) > 0 AS set;
SELECT sheet.export_csv(:formats) = E',"a,b","c\td"\r\n,"e ""f""\\",\r\n,,"g\r\nh\u0001\uFEFFä"\r\n' AS csv,
	sheet.export_csv(:formats, format => 'csv') = sheet.export_csv(:formats, format => NULL) AS csv_by_default,
	sheet.export_csv(:formats, format => 'tsv') = E'\ta,b\t"c\td"\r\n\t"e ""f""\\"\t\r\n\t\t"g\r\nh\u0001\uFEFFä"\r\n' AS tsv;
-- psql from 17 on counts no column for a byte order mark
SELECT line, line::json FROM string_to_table(replace(rtrim(sheet.export_csv(:formats, format => 'jsonl'), E'\n'), E'\uFEFF', '<mark>'), E'\n') line;
SELECT array_agg(line::json ->> 2) = ARRAY[E'c\td', NULL, E'g\r\nh\u0001\uFEFFä'] AS contents
	FROM string_to_table(rtrim(sheet.export_csv(:formats, format => 'jsonl'), E'\n'), E'\n') line;
SELECT sheet.export_csv(:formats, 'D1:E9', format => 'jsonl') = '' AS nothing, replace(sheet.export_csv(:formats, 'C2:C3', format => 'jsonl'), E'\uFEFF', '<mark>') AS marked;
SELECT f.format, count(p) > 1 AS pieces, string_agg(p, '') = sheet.export_csv(:formats, 'B1:C9', format => f.format) AS whole
	FROM (VALUES ('csv'), ('tsv'), ('jsonl')) f(format), sheet.read_csv(:formats, 1, 'B1:C9', format => f.format) p GROUP BY 1 ORDER BY 1;
SELECT string_agg(p, '') = sheet.export_csv(:formulas, 'A1:B2', true, 'tsv', true) AS escaped FROM sheet.read_csv(:formulas, 9, 'A1:B2', true, 'tsv', true) p;
SELECT sheet.read_csv(:formulas, 9, 'A0');
SELECT sheet.read_csv(:formulas, 9, escape_formulas => true, format => 'jsonl');
\set VERBOSITY default
SELECT sheet.export_csv(:formulas, format => 'TSV');
\set VERBOSITY terse
\set VERBOSITY default
SELECT sheet.import_csv('bad', E'a,"b');
SELECT sheet.import_csv('bad', E'a\nb"c');
SELECT sheet.import_csv('bad', E'a\n"b\nc",' || repeat('x', 32768));
\set VERBOSITY terse
SELECT sheet.account_create('api importer', NULL, 'x') AS importer \gset
-- CSV in parts: fields, line ends and characters are divided
SELECT sheet.import_begin('api parts', 'viewer', :importer) AS import \gset
SELECT sheet.import_put(:import, 0, convert_to(E'\uFEFFä,"b', 'UTF8')), sheet.import_put(:import, 1, '"'), sheet.import_put(:import, 2, E'" c\r\nd"\r'),
	sheet.import_put(:import, 3, E'\n,\\303'), sheet.import_put(:import, 4, E'\\266');
SELECT sheet.import_put(:import, 4, 'again');
SELECT sheet_id AS parts FROM sheet.import_end(:import) \gset
SELECT name, owner, link_role FROM sheet.info(:parts);
SELECT a1, content FROM sheet.range(:parts);
SELECT sheet.import_end(:import) IS NULL;
SELECT count(*) AS parts_left FROM sheet.import_part;
-- in pieces; a sheet without content has none
SELECT count(*) AS pieces, max(length(p)) AS longest, string_agg(p, '') = E'ä,"b"" c\r\nd"\r\n,ö\r\n' AS whole FROM sheet.read_csv(:parts, 1) p;
SELECT string_agg(p, '') = sheet.export_csv(:parts) AS whole FROM sheet.read_csv(:parts, 1000) p;
SELECT sheet.create('api empty', as_uid => :importer) AS empty \gset
SELECT count(*) FROM sheet.read_csv(:empty, 1000);
-- a field that is longer than a content, in one part and in many: too long if it has an end, malformed otherwise
CREATE FUNCTION import_long(begins text, middle text, ends text, parts int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id bigint := sheet.import_begin('api long', NULL, (SELECT uid FROM sheet.account WHERE name = 'api importer'));
	context text;
BEGIN
	PERFORM sheet.import_put(id, 0, convert_to(begins, 'UTF8'));
	FOR i IN 1 .. parts LOOP
		PERFORM sheet.import_put(id, i, convert_to(repeat(middle, 200000 / length(middle)), 'UTF8'));
	END LOOP;
	PERFORM sheet.import_put(id, parts + 1, convert_to(ends, 'UTF8'));
	RETURN sheet.import_end(id);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN sqlstate || ' ' || split_part(context, E'\n', 1);
END $$;
SELECT parts, import_long(E'a\nb,', 'x', E'\n', parts) AS plain, import_long(E'a\nb,"', 'x,', E'"\n', parts) AS quoted,
	import_long(E'a\nb,"', '""', '",c', parts) AS pairs, import_long(E'a\nb,"', E'\n', '"', parts) AS last,
	import_long(E'a\nb,"', 'x', E'\n', parts) AS unclosed, import_long(E'a\nb,"', '""', '""', parts) AS unclosed_pairs
FROM unnest(ARRAY[1, 2, 4]) parts;
DROP FUNCTION import_long;
SELECT sheet.import_begin('api bad', NULL, :importer) AS import \gset
SELECT sheet.import_put(:import, 0, E'a,b\n\\377\\376x');
SELECT sheet.import_end(:import) IS NULL;
SELECT sheet.import_abort(:import);
SELECT count(*) AS parts_left FROM sheet.import_part;
SELECT sheet.import_begin(E'a\nb', NULL, :importer) IS NULL;
SELECT sheet.purge(:parts), sheet.purge(:empty);

-- errors
\set VERBOSITY sqlstate
SELECT sheet.set(:id, '1A', 'x');
SELECT sheet.set(:id, NULL, 'x');
SELECT sheet.set(:id, 16777216, 0, 'x');
SELECT sheet.set(:id, 0, 16384, 'x');
SELECT sheet.set(:id, -1, 0, 'x');
SELECT sheet.set(:id, 'A1', repeat('x', 32768));
SELECT sheet.set(-1, 'A1', 'x');
SELECT sheet.range(:id, 'A0');
SELECT sheet.at(:id, 99);
SELECT sheet.diff(:id, NULL);
SELECT sheet.set_range(:id, 'XFD1', ARRAY['a', 'b']);
SELECT sheet.history(:id, 'A1:B2');

-- everything that users see is described
SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'sheet'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL;
SELECT c.oid::regclass FROM pg_class c WHERE relnamespace = 'sheet'::regnamespace AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL;
DROP VIEW "api trees";
SELECT sheet.purge(:id), sheet.purge(:csv), sheet.purge(:csv2);

-- An apostrophe makes a text, of which it is no part.
SELECT sheet.create('api texts') AS texts \gset
SELECT sheet.set_range(:texts, 'A1', ARRAY[['''size', ''''], ['''12', '''=A1'], ['''''x', ''''], ['10:30:00', '1900-01-01']]);
SELECT * FROM sheet.as_table(:texts, false) AS t(a text, b text);
SELECT sheet.column_names(:texts, true);
SELECT sheet.set(:texts, 'A3', ''), sheet.set(:texts, 'A4', '''0.5');
SELECT * FROM sheet.as_table(:texts) AS t(size numeric);
SELECT sheet.purge(:texts);
