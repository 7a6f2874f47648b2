-- Rows of queries and files of the server become cells.
\set VERBOSITY terse
\set SHOW_CONTEXT never
CREATE FUNCTION pg_temp.refused(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	EXECUTE query;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN sqlstate || ' ' || regexp_replace(sqlerrm, 'sheet \d+', 'sheet N') || coalesce(', ' || substring(context FROM 'row \d+ of the query'), '');
END $$;
SELECT sheet.create('rows', 4, 4) AS rows \gset

-- each type has its content, and texts stay texts
SET datestyle = 'German';
SELECT sheet.import_rows(:rows, $$ VALUES
	(1::int2, 123456789012345678::int8, 1.50::numeric, 0.1::float8, 1e16::float8, true, '2026-02-28'::date, '12:30'::time, '2026-02-28 12:30'::timestamp),
	(NULL, -7, 'NaN', 'Infinity', 3, false, NULL, '00:00:01.5', 'infinity') $$);
SELECT a1, content FROM sheet.range(:rows, 'A1:I2');
SELECT sheet.import_rows(:rows, $$ SELECT t, t::varchar, t::name, ARRAY[t], to_jsonb(t)
	FROM unnest(ARRAY['12', '=A1', '''x', 'TRUE', '2026-01-01', 'plain', '', E'two\nlines', '+49301234']) t $$, 'A4', header => true);
SELECT a1, content FROM sheet.range(:rows, 'A4:E13');
SELECT sheet.import_rows(:rows, $$ SELECT '=1+1', '12', '''12' $$, 'A20', formulas => true);
SELECT a1, content FROM sheet.range(:rows, 'A20:C20', formulas => true);
RESET datestyle;
SHOW datestyle;
-- a domain is its base type; a composite value is a text
CREATE DOMAIN pg_temp.amount AS numeric;
SELECT sheet.import_rows(:rows, $$ SELECT 12.5::pg_temp.amount, ROW(1, 'x') $$, 'A22');
SELECT a1, content FROM sheet.range(:rows, 'A22:B22');

-- a null clears its cell; no rows change nothing
SELECT sheet.import_rows(:rows, 'SELECT NULL, 5', 'A1') AS last \gset
SELECT a1, content FROM sheet.range(:rows, 'A1:B1');
SELECT sheet.import_rows(:rows, 'SELECT 1 WHERE false') = :last AS same_seq;
SELECT sheet.import_rows(:rows, 'SELECT') = :last AS same_seq;
SELECT sheet.import_rows(:rows, 'SELECT FROM generate_series(1, 3)') = :last AS same_seq;

-- a query that reads the sheet, and one that changes it
SELECT sheet.create('self', 2, 2) AS self \gset
SELECT sheet.import_rows(:self, 'SELECT g, g * 2 FROM generate_series(1, 3) g') > 0 AS done;
SELECT sheet.import_rows(:self, format('SELECT a::int + 10, b::int FROM sheet.as_table(%s, false) AS t(a text, b text)', :self), 'A2') > 0 AS done;
SELECT a1, content FROM sheet.range(:self, 'A:B');
SELECT sheet.import_rows(:self, format('SELECT sheet.set(%s, ''A1'', ''set'') > 0', :self), 'C1') > 0 AS done;
SELECT a1, content FROM sheet.range(:self, 'A1:C1');
CREATE TEMP TABLE deleted AS SELECT g FROM generate_series(1, 3) g;
SELECT sheet.import_rows(:self, 'DELETE FROM deleted RETURNING g, g::text', 'D1') > 0 AS done;
SELECT a1, content FROM sheet.range(:self, 'D1:E3');

-- many rows, in one transaction that is undone as a whole
SELECT sheet.create('many', 1, 1) AS many \gset
BEGIN;
SAVEPOINT before;
SELECT sheet.import_rows(:many, 'SELECT g, ''row '' || g, g % 7 = 0 FROM generate_series(1, 50000) g') AS seq;
ROLLBACK TO before;
SELECT count(*) FROM sheet.range(:many);
SELECT sheet.import_rows(:many, 'SELECT g, ''row '' || g, g % 7 = 0 FROM generate_series(1, 50000) g') AS seq;
COMMIT;
SELECT count(*), sum(content::int) FILTER (WHERE col = 0) AS total, count(*) FILTER (WHERE content = 'TRUE') AS sevens FROM sheet.range(:many);

-- refused, and nothing is stored
SELECT max(seq) AS before FROM sheet.log WHERE sheet_id = :many \gset
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, %L)', :many, query)) FROM unnest(ARRAY[
	'SELECT 1; SELECT 2', '', 'CREATE TABLE x ()', 'SELECT $1', 'SELECT FROM', 'COMMIT', 'SET work_mem = 64',
	'SELECT g, repeat(''x'', 32767 + (g = 2)::int) FROM generate_series(1, 3) g',
	'SELECT ''=''  || repeat(''x'', 32766)', 'SELECT 1 / (g - 2) FROM generate_series(1, 3) g']) query;
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, %L, %L)', :many, query, ref)) FROM (VALUES
	('SELECT 1, 2', 'XFD1'), ('SELECT generate_series(1, 3)', 'A16777215'), ('SELECT 1', 'A0'), ('SELECT 1', 'A1:B2')) t(query, ref);
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, ''SELECT 1'')', id)) FROM unnest(ARRAY['NULL', '0', '99999999']) id;
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, NULL)', :many));
SELECT max(seq) = :before AS unchanged FROM sheet.log WHERE sheet_id = :many;
-- with the rights of the caller
CREATE ROLE regress_rows;
INSERT INTO sheet.account (name, db_role) VALUES ('regress_rows', 'regress_rows');
CREATE TABLE public.regress_secret (a int);
SET ROLE regress_rows;
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, ''SELECT 1'')', :many));
SELECT sheet.create('mine') AS mine \gset
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, ''SELECT * FROM public.regress_secret'')', :mine));
SELECT pg_temp.refused(format('SELECT sheet.import_rows(%s, ''SELECT * FROM sheet.sheet'')', :mine));
SELECT sheet.import_rows(:mine, 'SELECT current_user') > 0 AS done;
-- files and programs of the server: as COPY
SELECT pg_temp.refused('SELECT sheet.import_file(''/etc/hostname'', ''x'')');
SELECT pg_temp.refused('SELECT sheet.import_file(''echo 1'', ''x'', is_program => true)');
RESET ROLE;
GRANT pg_read_server_files TO regress_rows;
SELECT current_setting('data_directory') || '/regress_rows.csv' AS path \gset
COPY (SELECT g, 'größe; ' || g, CASE WHEN g < 5 THEN NULL ELSE g / 4.0 END FROM generate_series(1, 40000) g) TO :'path' (FORMAT csv, ENCODING 'UTF8');
SET ROLE regress_rows;
SELECT sheet_id AS file, seq FROM sheet.import_file(:'path', 'file') \gset
SELECT a1, content FROM sheet.range(:file, 'A40000:C40000');
SELECT count(*) FROM sheet.range(:file);
SELECT sheet_id = :mine AS same FROM sheet.import_file(:'path', into_sheet => :mine, ref => 'B3');
SELECT a1, content FROM sheet.range(:mine, 'A1:D5');
SELECT pg_temp.refused(format('SELECT sheet.import_file(%L %s)', :'path', arguments)) FROM unnest(ARRAY['', ', ''x'', 1', ', '''' ', ', into_sheet => 99999999', ', ''x'', is_program => true', ', ''x'', separator => ''ab''']) arguments;
SELECT pg_temp.refused('SELECT sheet.import_file(''/no/such/file'', ''x'')');
SELECT pg_temp.refused('SELECT sheet.import_file(''/'', ''x'')');
RESET ROLE;
SELECT sheet_id AS program FROM sheet.import_file('printf "a;1,5\nb;2,5\n"', 'program', is_program => true, decimal_point => ',') \gset
SELECT a1, content FROM sheet.range(:program);
SELECT sheet_id AS nothing FROM sheet.import_file('true', 'nothing', is_program => true) \gset
SELECT count(*) FROM sheet.range(:nothing);
SELECT pg_temp.refused(format('SELECT sheet.import_file(%L, ''x'', is_program => true)', program))
	FROM unnest(ARRAY['echo 1; exit 3', 'kill -9 $$', '/no/such/program 2> /dev/null', 'printf ''a,"b''', 'printf ''\377''']) program;
COPY (SELECT) TO PROGRAM 'rm regress_rows.csv';
DROP TABLE public.regress_secret;
REVOKE pg_read_server_files FROM regress_rows;
DROP ROLE regress_rows;
DELETE FROM sheet.account WHERE name = 'regress_rows';
SELECT count(sheet.purge(id)) FROM unnest(ARRAY[:rows, :self, :many, :mine, :file, :program, :nothing]::bigint[]) id;
