-- One call with many structure edits gives what as many calls give: formulas, their authors, properties; and its cost.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('one call', 100, 40) AS id \gset
SELECT sheet.create('many calls', 100, 40) AS other \gset
-- Texts that grow and shrink, and stay as they are between two changes that rewrite them.
CREATE TEMP TABLE calls (n serial, kind int, "row" int, lines text);
INSERT INTO calls (kind, "row", lines) VALUES (6, 5, '1'), (8, 0, '1'), (6, 5, '1000'), (7, 5, '990'), (8, 0, '1'), (7, 4, '3');
SELECT count(*) FROM (VALUES (:id), (:other)) s(id), LATERAL sheet.apply(s.id, j_batch(
	j_set(0, 0, '=A9+A9+A9+A9+B20'), j_set(0, 1, '=SUM(A99:B100)+LEN("hello world")+C999+D9'), j_set(9, 2, '=A1&A9')));
SELECT count(*) FROM sheet.apply(:id,
	(SELECT '\x010000'::bytea || j_varint(count(*)) || string_agg(j_edit(kind, 7, CASE WHEN kind = 8 THEN 0 ELSE "row" END, CASE WHEN kind = 8 THEN 30 ELSE 0 END, lines), '' ORDER BY n) FROM calls));
DO $$
DECLARE c record;
BEGIN
	FOR c IN SELECT * FROM calls ORDER BY n LOOP
		PERFORM sheet.apply((SELECT max(sheet_id) FROM sheet.sheet), j_batch(j_edit(c.kind, 7, CASE WHEN c.kind = 8 THEN 0 ELSE c."row" END, CASE WHEN c.kind = 8 THEN 30 ELSE 0 END, c.lines)));
	END LOOP;
END
$$;
SELECT * FROM j_cells(:id) ORDER BY 1, 2;
SELECT count(*) FROM (SELECT * FROM j_cells(:id) EXCEPT SELECT * FROM j_cells(:other)) differ;

-- A rewritten formula is an edit of the author whose structure edit changed it.
SELECT sheet.create('authors', 100, 40) AS id \gset
SELECT count(*) FROM sheet.apply(:id, j_batch(j_set(0, 0, '=A9'), j_set(1, 0, '=A50')));
SELECT count(*) FROM sheet.apply(:id, j_batch(j_edit(6, 7, 5, 0, '1'), j_edit(7, 8, 5000, 0, '1'), j_edit(6, 9, 20, 0, '1')));
SELECT uid, kind, a1, new FROM sheet.log WHERE sheet_id = :id AND uid <> 0 ORDER BY seq;

-- Properties are stored once for each call.
SELECT sheet.create('properties', 100, 40) AS id \gset
SELECT count(sheet.set_property(:id, n || ':' || n, 'note', (SELECT to_jsonb(string_agg(md5(n * 1000 + i || ''), '')) FROM generate_series(1, 900) i)))
	FROM generate_series(901, 910) n;
CHECKPOINT;
SELECT pg_current_wal_insert_lsn() AS lsn \gset
SELECT count(*) FROM sheet.apply(:id, (SELECT '\x010000'::bytea || j_varint(100) || string_agg(j_edit(6, 7, 5, 0, '1'), '') FROM generate_series(1, 100)));
SELECT pg_current_wal_insert_lsn() - :'lsn' < 2000000 AS little;
SELECT min(target), max(target), count(*) FROM sheet.properties(:id);
-- A property in the last row is in the way of an insertion, as a cell is; a range that reaches the end is cut.
SELECT sheet.set_property(:id, 'A16777216', 'note', '"last"') > 0, sheet.set_property(:id, 'A16777000:A16777216', 'range', '1') > 0;
SELECT sheet.insert_rows(:id, 0, 1);
SELECT sheet.insert_rows(:id, 16777215, 1);
SELECT sheet.set_property(:id, 'A16777216', 'note', NULL) > 0, sheet.insert_rows(:id, 0, 1) > 0;
SELECT target FROM sheet.properties(:id) WHERE key = 'range';
SELECT what FROM sheet.fsck(:id, true);
