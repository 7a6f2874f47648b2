-- Values of formulas beside their texts: stored by a program, here by this test.
\set VERBOSITY terse
SELECT sheet.create('values') AS id \gset

-- a sheet without formulas has no values, and takes none
SELECT sheet.set_range(:id, 'A1', '{{Name,Price,Count},{pen,2,10},{ink,5,3}}') > 0 AS set;
SELECT count(*) FROM sheet.computed WHERE sheet_id = :id;
SELECT sheet.put_values(:id, 3, '{0}', '{3}', '{1}');
SELECT * FROM sheet.range(:id, 'A2:C2');

-- the first formula
SELECT sheet.set_range(:id, 'D1', '{{Total},{=B2*C2},{=B3*C3},{=SUM(D2:D3)}}') AS seq \gset
SELECT computed, seq - :seq AS behind FROM sheet.to_compute(ARRAY[:id, :id + 1]);
SELECT a1, content, value, stale FROM sheet.range(:id, 'D:D');
SELECT a1, value FROM sheet.range(:id, 'D:D', formulas => true);
SELECT sheet.put_values(:id, :seq, '{1,2,3}', '{3,3,3}', '{20,15,35}');
SELECT a1, content, value, stale FROM sheet.range(:id, 'D:D');
SELECT * FROM sheet.to_compute(ARRAY[:id]);
SELECT * FROM sheet.as_table(:id) AS t(name text, price int, count int, total numeric);
SELECT * FROM sheet.as_table(:id, formulas => true) AS t(name text, price int, count int, total text);
SELECT sheet.export_csv(:id);
SELECT sheet.export_csv(:id, formulas => true);
SELECT sheet.export_csv(:id, 'C3:D4', format => 'jsonl');
SELECT sheet.create_view(:id, 'value_view');
SELECT "Total" FROM value_view;
SELECT a1, value, stale FROM sheet.cells WHERE sheet_id = :id AND col = 3 AND "row" > 1;

-- the sheet changes: the values are old until others come; of an older seq, none is taken
SELECT sheet.set(:id, 'B2', '3') AS seq2 \gset
SELECT a1, value, stale FROM sheet.range(:id, 'B2:D2');
SELECT sheet.put_values(:id, :seq2, '{1,3}', '{3,3}', '{30,45}');
SELECT sheet.put_values(:id, :seq, '{1}', '{3}', '{20}');
\set VERBOSITY sqlstate
SELECT sheet.put_values(:id, :seq2 + 1, '{}', '{}', '{}');
\set VERBOSITY terse
SELECT a1, value, stale FROM sheet.range(:id, 'D:D') WHERE "row" > 0;

-- rows and columns that are inserted: values go with their cells
SELECT sheet.insert_rows(:id, 1, 2) AS seq3 \gset
SELECT sheet.insert_columns(:id, 0) AS seq3 \gset
SELECT a1, content, value, stale FROM sheet.range(:id, 'E:E');
SELECT a1, value FROM sheet.range(:id, 'E4:E5');
SELECT a1, value FROM sheet.range(:id) WHERE a1 = 'E6';
-- places of before are moved
SELECT sheet.put_values(:id, :seq2, '{1,0}', '{3,25}', '{31,9}');
SELECT a1, value, stale FROM sheet.range(:id, 'E4');
SELECT sheet.put_values(:id, :seq3, '{3}', '{4}', '{32}');
SELECT a1, value, stale FROM sheet.range(:id, 'E:E');
SELECT sheet.delete_rows(:id, 0, 3) AS seq4 \gset
SELECT a1, content, value FROM sheet.range(:id, 'E:E');

-- also of rows that are gone, but not after very many insertions
SELECT sheet.put_values(:id, :seq3, '{1,3}', '{4,4}', '{lost,33}');
SELECT a1, value FROM sheet.range(:id, 'E:E');
SELECT count(sheet.insert_rows(:id, 900 + i)) FROM generate_series(1, 101) i;
SELECT sheet.put_values(:id, :seq3, '{3}', '{4}', '{34}') AS too_many;

-- followers hear of values, of nothing else
SELECT "cursor" FROM sheet.follow(9, NULL, 0) \gset
SELECT sheet.put_values(:id, sheet.last_seq(:id), '{0}', '{4}', '{33}'), sheet.put_values(:id, sheet.last_seq(:id), '{}', '{}', '{}');
SELECT lost, sheet_ids = ARRAY[:id::bigint] AS of_the_sheet, seqs FROM sheet.follow(9, :cursor, 0);

-- a formula in place of another one keeps its value until it is computed; a content does not
SELECT sheet.set(:id, 'E1', '=1+1'), sheet.set(:id, 'E2', 'text') AS seq5 \gset
SELECT a1, content, value, stale FROM sheet.range(:id, 'E:E');

-- texts, errors, and what arrays fill
SELECT sheet.set_range(:id, 'G1', ARRAY[['="12"'],['=1/0'],['=""'],['="#NOTE"'],['=SEQUENCE(2,2)'],[NULL],['''7']]) AS seq6 \gset
SELECT sheet.put_values(:id, :seq6, '{0,1,2,3,4,4,5,5,6}', '{6,6,6,6,6,7,6,7,6}', '{''12,#DIV/0!,'',''#NOTE,1,2,3,4,9}', '{f,f,f,f,f,t,t,t,t}');
SELECT a1, content, value, value IS NULL AS null, stale FROM sheet.range(:id, 'G:H');
SELECT a1 FROM sheet.range(:id, 'G:H', formulas => true);
SELECT count(*) FROM sheet.range(:id, 'G:H');
SELECT count(*) FROM sheet.range(:id, 'G:H', formulas => true);
SELECT sheet.export_csv(:id, 'G:H'), sheet.export_csv(:id, 'G:H', format => 'jsonl');
SELECT * FROM sheet.as_table(:id, false) AS t(a text, b text, c text, d text, e text, f text, g text, h int);
\set VERBOSITY default
SELECT * FROM sheet.as_table(:id, false) AS t(a text, b text, c text, d text, e text, f text, g int, h int);
\set VERBOSITY terse
SELECT g, h FROM sheet.as_table(:id, false, errors_as_null => true) AS t(a text, b text, c text, d text, e text, f text, g text, h int);
SELECT sheet.set(:id, 'G4', NULL) AS seq7 \gset
SELECT g, h FROM sheet.as_table(:id, false, errors_as_null => true) AS t(a text, b text, c text, d text, e text, f text, g int, h int);
-- a content in a cell that an array fills
SELECT sheet.set(:id, 'H5', 'mine') AS seq8 \gset
SELECT a1, content, value FROM sheet.range(:id, 'G5:H6');

-- all at once; values that are not named go
SELECT sheet.put_values(:id, :seq8, '{0}', '{6}', '{''12}', whole => true, again_at => '2000-01-01');
SELECT a1, value, stale FROM sheet.range(:id, 'G:H');
SELECT count(*) FROM sheet.value WHERE sheet_id = :id;
SELECT count(*) FROM sheet.to_compute_again() WHERE sheet_id = :id;
SELECT sheet.put_values(:id, :seq8, '{0}', '{6}', '{NULL}');
SELECT count(*) FROM sheet.value WHERE sheet_id = :id;
SELECT count(*) FROM sheet.to_compute_again() WHERE sheet_id = :id;

-- of two values for a cell the later one counts
SELECT sheet.put_values(:id, :seq8, '{0,1,0}', '{6,6,6}', '{1,2,3}');
SELECT a1, value FROM sheet.range(:id, 'G1:G2');

-- what is refused
SELECT sheet.put_values(:id, :seq8, '{0,1}', '{6}', '{1,2}');
SELECT sheet.put_values(:id, :seq8, '{0}', '{6}', '{1}', '{}');
SELECT sheet.put_values(:id, :seq8, '{NULL}', '{6}', '{1}');
SELECT sheet.put_values(:id, :seq8, '{-1}', '{6}', '{1}');
SELECT sheet.put_values(:id, :seq8, '{0}', '{16384}', '{1}');
SELECT sheet.put_values(:id, :seq8, '{0}', '{0}', ARRAY[repeat('x', 140000)]);
SELECT sheet.put_values(:id, :seq8, NULL, NULL, NULL);
SELECT sheet.put_values(-5, 1, '{0}', '{6}', '{1}');
SELECT sheet.merge_tile('\x05', NULL), 1;
SELECT sheet.merge_tile('\x0504313105043232', NULL), 1;

-- ROLLBACK TO, and a purge
BEGIN;
SELECT sheet.create('none') AS none \gset
SAVEPOINT s;
SELECT sheet.set(:none, 'A1', '=1') > 0 AS set;
ROLLBACK TO s;
SELECT count(*) FROM sheet.computed WHERE sheet_id = :none;
COMMIT;
SELECT sheet.purge(:id);
SELECT count(*) FROM sheet.computed WHERE sheet_id = :id;
SELECT count(*) FROM sheet.value WHERE sheet_id = :id;
DROP VIEW value_view;
SELECT sheet.purge(:none);
