-- CSV, TSV and JSON Lines as people have them: dialects, recognition of the separator, round trips, and what is refused.
\set VERBOSITY terse
\set SHOW_CONTEXT never
-- What a text becomes, as JSON Lines. options: further arguments of import_csv.
CREATE FUNCTION pg_temp.became(csv text, options text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id bigint;
	rows text;
BEGIN
	EXECUTE format('SELECT sheet.import_csv(%L, %L %s)', 'became', csv, options) INTO id;
	rows := rtrim(sheet.export_csv(id, format => 'jsonl'), E'\n');
	PERFORM sheet.purge(id);
	RETURN rows;
END $$;
-- The same, without saying what was recognised.
CREATE FUNCTION pg_temp.read(csv text, options text DEFAULT '') RETURNS text LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
	RETURN pg_temp.became(csv, options);
END $$;
-- An error, with its place.
CREATE FUNCTION pg_temp.refused(csv text, options text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	RETURN pg_temp.became(csv, options);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN sqlstate || ' ' || sqlerrm || coalesce(substring(context FROM '^CSV, [^\n]*'), '');
END $$;

-- the separator is recognised, and said if it is no comma
SELECT pg_temp.became('27.02.2018;Småsparing;-50,00');
SELECT pg_temp.became(E'a\tb\n1,5\t2,5\n');
SELECT csv, pg_temp.read(csv, ', lenient => true') FROM unnest(ARRAY[
	E'a,b\n1,2\n',
	E'a;b;c\n1,5;2;3\n',
	E'"a,b";c\n"d\n,;e";f',
	E'note\nfirst; second\n',
	E'1,5;2,5\n3,5;4\n',
	E'Name;Wert, EUR\nx;3,5',
	'a;b,c', 'a;b', 'a|b', '', E'only one\n', 'x,1.5', '1,2,3',
	E'a;b\n\n1;2\n',
	E'a;b\nragged\n1;2\n3;4;5\n6;7\n',
	E'id,tags\n1,a;b;c\n2,d;e;f\n',
	E'id,"a;b;c"\n1,"d;e;f"\n',
	E'x;"say ""a,b,c"""\ny;"say ""d,e,f"""\n',
	E'5" pipe;3\n6" pipe;4\n',
	E'sep=;\r\na,b;c\r\n', E'sep=|\na;b;c', E'sep=,\na;b,c', E'sep=;;\na', 'sep=;', E'\uFEFFsep=\t\na\tb',
	E'a,b\r1,2\r\n3,4\n5,6'
]) csv;
-- not if it is given, nor of TSV
SELECT pg_temp.became('a;b,c', $$, separator => ','$$), pg_temp.became('a;b,c', $$, separator => ';'$$), pg_temp.became('a b c', $$, separator => ' '$$),
	pg_temp.became(E'a;b;c,d', $$, format => 'tsv'$$), pg_temp.became(E'sep=;\na;b', $$, separator => ','$$);
SELECT pg_temp.became('''a,b'',c', $$, quote => ''''$$), pg_temp.became('"a,b",c', $$, quote => ''$$);

-- a lenient import takes misplaced quotes, and says how many fields have them
SELECT pg_temp.refused(E'a,b\n1, "x"\n'), pg_temp.refused(E'a,b\n1,5" pipe\n'), pg_temp.refused(E'a,b\n1,"x"y\n'), pg_temp.refused(E'a,b\n"x" ,1\n');
SELECT pg_temp.became(E'a,b\n1, "x ""y"", z"  ,5" pipe\n"x"y"z", "a" b , plain \n"",  ,""x', ', lenient => true');
SELECT pg_temp.refused(E'a,b\n1,"x\n2,3', ', lenient => true');
-- a well-formed text is the same by both
SELECT count(*), bool_and(pg_temp.read(csv, $$, separator => ','$$) = pg_temp.read(csv, $$, separator => ',', lenient => true$$)) AS equal
	FROM unnest(ARRAY['a,b', '"a""b",c', E'" x ",y z\n', E'"a\nb",""\n', ' a , b ', ',,', '"""",""""""']) csv;

-- a decimal comma, if it is asked for, where every character fits
SELECT pg_temp.read(E'a;-50,00;1.234,56;+1.234.567,8;0,5;1.234;12.345.678', $$, decimal_point => ','$$);
SELECT pg_temp.read(E'x;,5;5,;1,2,3;1.23,4;0.123,4;27.02.2018;1234.567;1,5 €;--1,5;1.234.56;0.123;-', $$, decimal_point => ','$$);
SELECT pg_temp.read(E'"1,5","2.500,00",3', $$, decimal_point => ','$$), pg_temp.read('-50,00;x;y');

-- contents are entered as they are, or so that each field shows its characters
SELECT pg_temp.read('=1+1,007,1234567890123456,1E5,MAR1,+49301234567,''x,12,-1.5,TRUE,2024-01-31');
SELECT pg_temp.read('=1+1,007,1234567890123456,1E5,MAR1,+49301234567,''x,12,-1.5,TRUE,2024-01-31,=,1.5e-3,1.e5,-2E+10,+,e5', ', formulas => false');

-- JSON Lines: strings, numbers, booleans and nulls
SELECT pg_temp.became(E'["a\\"b\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude42",1,-2.50e+3,true,false,null,""]\r\n\n[]\n [ "x" , "=A1" ] \n["last"]', $$, format => 'jsonl'$$);
SELECT pg_temp.became('[1E5,"1E5","=A1","''x"]', $$, format => 'jsonl', formulas => false$$);
SELECT json, pg_temp.refused(json, $$, format => 'jsonl'$$) FROM unnest(ARRAY['["a"', '["a', '["a",]', '[,1]', '[[1]]', '[{"a":1}]', '{"a":1}', E'["a\nb"]', '["\x"]',
	'["\u0000"]', '["\ud83d"]', '["\ude42"]', '["\ud83dx"]', '["\u12g4"]', '[01]', '[1.]', '[-]', '[+1]', '[1e]', '[NaN]', '[True]', '["a"] x', E'["ok"]\n\n["a", x]', 'a,b', '["a"]["b"]']) json;

-- what is kept: ragged rows, doubled and empty headers, mixed line ends
SELECT pg_temp.read(E'a,a,,b\r\n1\n2,3,4,5,6\r\r\n7,8\n'), pg_temp.read(E'\n\na,b');
-- what is refused, with its place
SELECT pg_temp.refused(E'a,b\n\n"x\ny",' || repeat('x', 32768)), pg_temp.refused('["' || repeat('\ud83d\ude42', 32767) || '"]', $$, format => 'jsonl'$$) ~ '🙂' AS longest,
	pg_temp.refused(E'[]\n["' || repeat('\ud83d\ude42', 32768) || '"]', $$, format => 'jsonl'$$);
SELECT options, pg_temp.refused('a', options) FROM unnest(ARRAY['separator => '''', lenient => false', $$separator => ',,'$$, $$separator => 'ä'$$, $$separator => E'\n'$$, $$quote => '""'$$,
	$$quote => ','$$, $$separator => '"'$$, $$format => 'xlsx'$$, $$format => 'CSV'$$, $$decimal_point => ';'$$, $$format => 'jsonl', separator => ','$$, $$format => 'jsonl', lenient => true$$,
	$$format => 'jsonl', decimal_point => ','$$, $$format => 'jsonl', quote => ''$$, $$format => NULL, separator => NULL, quote => NULL, lenient => NULL, decimal_point => NULL, formulas => NULL$$]) o(o),
	LATERAL (SELECT ', ' || o) x(options);

-- what export_csv writes is imported to equal cells, in each format, whatever the contents; and so are single columns
SELECT setseed(0.5);
CREATE FUNCTION pg_temp.random_content() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT coalesce(string_agg((ARRAY['"', E'\t', E'\r', E'\n', '''', ',', ';', '|', ' ', '=', 'sep=;', '1', '5', 'a', 'ä', '🙂', E'\\', '[', E'\uFEFF', '-', '.', E'\u0001'])[1 + floor(random() * 22)], ''), '')
	FROM generate_series(1, (random() * random() * 12)::int)
$$;
SET client_min_messages = warning;
DO $$
DECLARE
	cols int;
	id bigint;
	again bigint;
	format text;
	made text[];
BEGIN
	FOR n IN 1 .. 100 LOOP
		cols := 1 + n % 4;
		id := sheet.create('trip');
		PERFORM sheet.set_range(id, 'A1', (SELECT array_agg(r) FROM (SELECT (SELECT array_agg(pg_temp.random_content() || repeat('', c + i)) FROM generate_series(1, cols) c) r FROM generate_series(1, 8) i) x));
		SELECT array_agg(a1 || ' ' || content) INTO made FROM sheet.range(id);
		FOREACH format IN ARRAY ARRAY['csv', 'tsv', 'jsonl'] LOOP
			again := sheet.import_csv('again', sheet.export_csv(id, format => format), format);
			IF (SELECT array_agg(a1 || ' ' || content) FROM sheet.range(again)) IS DISTINCT FROM made THEN
				RAISE '% % differs: %', n, format, sheet.export_csv(id, format => format);
			END IF;
			PERFORM sheet.purge(again);
		END LOOP;
		PERFORM sheet.purge(id);
	END LOOP;
END $$;
RESET client_min_messages;

-- into a sheet: an empty field clears its cell, and nothing is changed if it fails
SELECT sheet.import_csv('into', E'a,b\nc,d\n') AS id \gset
SELECT sheet.import_csv_into(:id, 'B1', E'x;\n;"y,z"\n', lenient => true) > 0 AS imported;
SELECT sheet.export_csv(:id, format => 'jsonl');
SELECT sheet.import_csv_into(:id, 'A1', E'q,r\ns,"t');
SELECT sheet.export_csv(:id, format => 'jsonl');
-- in parts; the separator is recognised behind the first one
SELECT sheet.account_create('csv importer', NULL, 'x') AS importer \gset
SELECT sheet.import_begin(NULL, NULL, :importer) AS import \gset
SELECT sheet.import_put(:import, 0, 'a'), sheet.import_put(:import, 1, ';"b'), sheet.import_put(:import, 2, E'" c\n1,5;2,5');
\set VERBOSITY sqlstate
SELECT sheet.import_end(:import, :id, 'A1', lenient => true) IS NULL;
\set VERBOSITY terse
SELECT sheet.import_end(:import) IS NULL;
SELECT sheet.share(:id, 'csv importer', 'editor');
SELECT sheet_id = :id AS into_it, seq > 0 AS changed, taken_separator, forgiven, forgiven_line FROM sheet.import_end(:import, :id, 'A1', lenient => true);
SELECT sheet.export_csv(:id, format => 'jsonl');
SELECT count(*) AS parts_left FROM sheet.import_part;
SELECT sheet.import_begin('json parts', NULL, :importer) AS import \gset
SELECT sheet.import_put(:import, 0, E'["a","\\\\u00'), sheet.import_put(:import, 1, E'e4\\\\ud83d'), sheet.import_put(:import, 2, E'\\\\ude42",tr'), sheet.import_put(:import, 3, E'ue,1'), sheet.import_put(:import, 4, E'2]\r'),
	sheet.import_put(:import, 5, E'\n['), sheet.import_put(:import, 6, E'null,"x"]');
SELECT sheet_id AS parts, coalesce(taken_separator, 'none') AS separator FROM sheet.import_end(:import, format => 'jsonl') \gset
SELECT sheet.export_csv(:parts, format => 'jsonl'), :'separator' AS separator;
SELECT sheet.purge(:id), sheet.purge(:parts);
