-- Lists in cells: their items, and in how many rows each is.
SELECT sheet.create('lists', 10, 4) AS id \gset
SELECT count(sheet.set(:id, r, 1, content)) FROM (VALUES (0, 'red, green'), (1, 'red,,blue'), (2, 'red'), (4, ' green ,red, red'), (5, ','),
	(6, '"red, dark" ,green'), (7, 'say ""x"", "a ""b"" c","",'), (8, '5" disk,3" disk'), (9, '"open, to the end'), (10, ' ')) v (r, content);
SELECT "row", ordinal, '[' || item || ']' AS item FROM sheet.split(:id, 'B');
SELECT * FROM sheet.tag_counts(:id, 'B');
SELECT count(*) FROM sheet.split(:id, 'A');
-- other columns and separators
SELECT count(sheet.set(:id, r, 3, content)) FROM (VALUES (0, E'a\nb, c\n\nA'), (1, E'a')) v (r, content);
SELECT "row", ordinal, item FROM sheet.split(:id, '$d', E'\n');
SELECT * FROM sheet.tag_counts(:id, 'D', ' and ');
-- not a column, not a separator
SELECT * FROM sheet.split(:id, 'B7');
SELECT * FROM sheet.split(:id, NULL);
SELECT * FROM sheet.split(:id, 'B', '');
SELECT * FROM sheet.split(:id, 'B', NULL);
SELECT * FROM sheet.split(:id, 'B', '"');
-- by the caller's role, whatever the caller's search_path has
CREATE ROLE lists_nobody;
SET ROLE lists_nobody;
\set VERBOSITY sqlstate
SELECT * FROM sheet.split(:id, 'B');
SELECT * FROM sheet.tag_counts(:id, 'B');
\set VERBOSITY default
RESET ROLE;
DROP ROLE lists_nobody;
-- many lists, compared with PostgreSQL's own functions
SELECT sheet.import_csv('many', (SELECT string_agg('"' || (n % 7) || ',' || (n % 3) || ',,t' || n || '"', E'\n' ORDER BY n) FROM generate_series(1, 5000) n)) AS many \gset
SELECT count(*) FROM sheet.split(:many, 'A');
SELECT count(*) FROM ((SELECT "row", item, ordinal FROM sheet.split(:many, 'A')) EXCEPT ALL
	SELECT r."row", i.item, i.ordinal FROM sheet.range(:many) r, string_to_table(r.content, ',') WITH ORDINALITY i (item, ordinal)) e;
SELECT * FROM sheet.tag_counts(:many, 'A') LIMIT 8;
