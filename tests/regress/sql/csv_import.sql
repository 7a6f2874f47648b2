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
	rows := rtrim(sheet.export_csv(id, format => 'jsonl', formulas => true), E'\n');
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
-- psql from 17 on counts no column for a byte order mark
SELECT replace(csv, E'\uFEFF', '<mark>') AS csv, pg_temp.read(csv, ', lenient => true') FROM unnest(ARRAY[
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
-- a first line that names the given separator is no row
SELECT pg_temp.became(E'sep=;\na;b', $$, separator => ';'$$), pg_temp.became(E'sep=\t\na\tb', $$, format => 'tsv'$$);
-- the quote is no separator
SELECT pg_temp.became('a|b', $$, quote => ';'$$), pg_temp.became('a;b', $$, quote => ','$$);
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

-- dates that end with the year, in the order that is asked for
SELECT pg_temp.read('31.01.2024,1/2/2024,2/13/2024,"3-4-2024 8:30",1.1.24,2024-01-31', $$, date_order => 'dmy'$$);
SELECT pg_temp.read('31.01.2024,1/2/2024,2/13/2024,"3-4-2024 8:30",1.1.24,2024-01-31', $$, date_order => 'mdy'$$), pg_temp.read('1/2/2024');

-- formulas, numbers with a plus sign and integers with an exponent without a sign stay texts; other numbers do not
SELECT pg_temp.read('=1+1,007,1234567890123456,1E5,-12e3,MAR1,+49301234567,+1.5,''x,''=1,12,-1.5,TRUE,2024-01-31,=,1.5e-3,1.5E+03,1.5e3,1e-05,-2E+10,1.e5,+,e5,1E5x');
-- unless fields are taken as contents
SELECT pg_temp.read('=1+1,007,1234567890123456,1E5,MAR1,+49301234567,''x,''=1,12,-1.5,TRUE,2024-01-31', ', formulas => true');

-- JSON Lines: strings, numbers, booleans and nulls
SELECT pg_temp.became(E'["a\\"b\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude42",1,-2.50e+3,true,false,null,""]\r\n\n[]\n [ "x" , "=A1" ] \n["last"]', $$, format => 'jsonl'$$);
SELECT pg_temp.became('[1E5,"1E5","=A1","''x"]', $$, format => 'jsonl'$$), pg_temp.became('[1E5,"1E5","=A1","''x"]', $$, format => 'jsonl', formulas => true$$);
SELECT json, pg_temp.refused(json, $$, format => 'jsonl'$$) FROM unnest(ARRAY['["a"', '["a', '["a",]', '[,1]', '[[1]]', '[{"a":1}]', '{"a":1}', E'["a\nb"]', '["\x"]',
	'["\u0000"]', '["\ud83d"]', '["\ude42"]', '["\ud83dx"]', '["\u12g4"]', '[01]', '[1.]', '[-]', '[+1]', '[1e]', '[NaN]', '[True]', '["a"] x', E'["ok"]\n\n["a", x]', 'a,b', '["a"]["b"]']) json;

-- what is kept: ragged rows, doubled and empty headers, mixed line ends
SELECT pg_temp.read(E'a,a,,b\r\n1\n2,3,4,5,6\r\r\n7,8\n'), pg_temp.read(E'\n\na,b');
-- what is refused, with its place
SELECT pg_temp.refused(E'a,b\n\n"x\ny",' || repeat('x', 32768)), pg_temp.refused('["' || repeat('\ud83d\ude42', 32767) || '"]', $$, format => 'jsonl'$$) ~ '🙂' AS longest,
	pg_temp.refused(E'[]\n["' || repeat('\ud83d\ude42', 32768) || '"]', $$, format => 'jsonl'$$);
SELECT options, pg_temp.refused('a', options) FROM unnest(ARRAY['separator => '''', lenient => false', $$separator => ',,'$$, $$separator => 'ä'$$, $$separator => E'\n'$$, $$quote => '""'$$,
	$$quote => ','$$, $$separator => '"'$$, $$format => 'xlsx'$$, $$format => 'CSV'$$, $$decimal_point => ';'$$, $$date_order => 'ymd'$$, $$format => 'jsonl', date_order => 'dmy'$$, $$format => 'jsonl', separator => ','$$, $$format => 'jsonl', lenient => true$$,
	$$format => 'jsonl', decimal_point => ','$$, $$format => 'jsonl', quote => ''$$, $$format => NULL, separator => NULL, quote => NULL, lenient => NULL, decimal_point => NULL, formulas => NULL, date_order => NULL$$]) o(o),
	LATERAL (SELECT ', ' || o) x(options);

-- an apostrophe of a file of others belongs to the text, and shows; one before what would be no text is an escape, and does not
SELECT sheet.import_csv('default', '''s-Hertogenbosch,'','''',''12,''''12,''=A1,''007,''MAR1,''TRUE,''2024-01-31,''10:30,''1E5,''+49') AS plain, sheet.import_csv('formulas', '''s-Hertogenbosch,'','''',''12,''''12,''=A1,''007,''MAR1,''TRUE,''2024-01-31,''10:30,''1E5,''+49', formulas => true) AS id \gset
SELECT a1, content, sheet.get(:id, a1) = content AS equal FROM sheet.range(:plain);
SELECT sheet.export_csv(:plain), sheet.purge(:id), sheet.purge(:plain);
-- an export has only the apostrophes that an import needs
SELECT sheet.create('apostrophes') AS id \gset
SELECT sheet.set_range(:id, 'A1', ARRAY[['''12', '''=A1', '''''12', '''007', '''MAR1', '''''s', '''', 's', '''@x', '''+49', '-1', '=1+1', '''12:30', '''']]) > 0 AS set;
SELECT sheet.export_csv(:id, formulas => true);
SELECT sheet.export_csv(:id, format => 'tsv', formulas => true, escape_formulas => true), sheet.export_csv(:id, format => 'jsonl');
SELECT sheet.purge(:id);

-- what export_csv writes is imported to cells that show the same texts and values, in each format, whatever the contents; and so
-- are single columns. By default formulas and codes become texts, which the next export and import keep.
SELECT setseed(0.5);
CREATE FUNCTION pg_temp.random_content() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT coalesce(string_agg((ARRAY['"', E'\t', E'\r', E'\n', '''', '''', ',', ';', '|', ' ', '=', 'sep=;', '0', '1', '5', ':', 'a', 'ä', '🙂', E'\\', '[', E'\uFEFF', '-', '.', E'\u0001', '+', 'E', 'TRUE', '2024-01-31'])[1 + floor(random() * 29)], ''), '')
	FROM generate_series(1, (random() * random() * 12)::int)
$$;
-- What a cell shows: a text, or something else. formulas: false if formulas and codes are texts, as after a default import.
CREATE FUNCTION pg_temp.shows(content text, formulas bool) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN content ~ '^''' THEN 'text ' || substr(content, 2)
		WHEN NOT formulas AND content ~ '^(=.|\+[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$|-?[0-9]+[eE][0-9]+$)' THEN 'text ' || content
		WHEN content ~ '^(=.|[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?([0-9]{1,2}|[01][0-9]{2}))?$|TRUE$|2024-01-31([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,3})?)?)?$|[0-9]{1,4}:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,3})?)?$)' THEN 'value ' || content
		ELSE 'text ' || content END
$$;
CREATE FUNCTION pg_temp.all_shows(id bigint, formulas bool DEFAULT true) RETURNS text[] LANGUAGE sql VOLATILE AS $$
	SELECT array_agg(a1 || ' ' || pg_temp.shows(content, formulas)) FROM sheet.range(id) WHERE content <> ''''
$$;
SET client_min_messages = warning;
DO $$
DECLARE
	cols int;
	id bigint;
	again bigint;
	plain bigint;
	twice bigint;
	format text;
	made text[];
	texts text[];
BEGIN
	FOR n IN 1 .. 100 LOOP
		cols := 1 + n % 4;
		id := sheet.create('trip');
		PERFORM sheet.set_range(id, 'A1', (SELECT array_agg(r) FROM (SELECT (SELECT array_agg(CASE WHEN random() < 0.3 THEN '''' ELSE '' END || pg_temp.random_content() || repeat('', c + i)) FROM generate_series(1, cols) c) r FROM generate_series(1, 8) i) x));
		made := pg_temp.all_shows(id);
		texts := pg_temp.all_shows(id, false);
		FOREACH format IN ARRAY ARRAY['csv', 'tsv', 'jsonl'] LOOP
			again := sheet.import_csv('again', sheet.export_csv(id, format => format, formulas => true), format, formulas => true);
			plain := sheet.import_csv('plain', sheet.export_csv(id, format => format, formulas => true), format);
			twice := sheet.import_csv('twice', sheet.export_csv(plain, format => format, formulas => true), format);
			IF pg_temp.all_shows(again) IS DISTINCT FROM made OR pg_temp.all_shows(plain) IS DISTINCT FROM texts
				OR pg_temp.all_shows(twice) IS DISTINCT FROM texts THEN
				RAISE '% % differs: %', n, format, sheet.export_csv(id, format => format, formulas => true);
			END IF;
			PERFORM sheet.purge(again), sheet.purge(plain), sheet.purge(twice);
		END LOOP;
		PERFORM sheet.purge(id);
	END LOOP;
END $$;
RESET client_min_messages;

-- into a sheet: an empty field clears its cell, and nothing is changed if it fails
SELECT sheet.import_csv('into', E'a,b\nc,d\n') AS id \gset
SELECT sheet.import_csv_into(:id, 'B1', E'x;\n;"y,z"\n', lenient => true) > 0 AS imported;
SELECT sheet.export_csv(:id, format => 'jsonl', formulas => true);
SELECT sheet.import_csv_into(:id, 'A1', E'q,r\ns,"t');
SELECT sheet.export_csv(:id, format => 'jsonl', formulas => true);
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
SELECT sheet.export_csv(:id, format => 'jsonl', formulas => true);
SELECT count(*) AS parts_left FROM sheet.import_part;
SELECT sheet.import_begin('json parts', NULL, :importer) AS import \gset
SELECT sheet.import_put(:import, 0, E'["a","\\\\u00'), sheet.import_put(:import, 1, E'e4\\\\ud83d'), sheet.import_put(:import, 2, E'\\\\ude42",tr'), sheet.import_put(:import, 3, E'ue,1'), sheet.import_put(:import, 4, E'2]\r'),
	sheet.import_put(:import, 5, E'\n['), sheet.import_put(:import, 6, E'null,"x"]');
SELECT sheet_id AS parts, coalesce(taken_separator, 'none') AS separator FROM sheet.import_end(:import, format => 'jsonl') \gset
SELECT sheet.export_csv(:parts, format => 'jsonl', formulas => true), :'separator' AS separator;
SELECT sheet.purge(:id), sheet.purge(:parts);
