-- A tour of sheets by SQL. Run it as a superuser: psql -f sql/examples/tour.sql
SELECT sheet.import_csv('trees', E'name,height\noak,30.5\nlime,22\n') AS id \gset

-- Read it as a table, while others edit it.
SELECT * FROM sheet.as_table(:id) AS t(name text, height numeric) WHERE height > 25;

-- Keep a version, change something, and see what is different.
SELECT sheet.commit(:id, 'as measured');
SELECT sheet.set(:id, 'B3', '23.5');
SELECT sheet.set_range(:id, 'A4', ARRAY[['beech', '28'], ['ash', '19']]);
SELECT * FROM sheet.diff(:id, 1);

-- Who changed this cell, and when?
SELECT seq, at, username, old, new FROM sheet.history(:id, 'B3');

-- Back to the version; the edits since stay in the log.
SELECT sheet.rollback(:id, 1);
SELECT sheet.export_csv(:id);
SELECT seq, kind, a1, old, new FROM sheet.log WHERE sheet_id = :id ORDER BY seq;
