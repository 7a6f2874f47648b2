-- The published view of a link: what its key opens, in whose frames, and where the cells of a rectangle are.
CREATE FUNCTION cells_of(link bigint) RETURNS TABLE (same_seq boolean, rows integer, cols integer, "row" integer, col integer, texts text)
	LANGUAGE sql AS $$
	SELECT p.seq = (SELECT max(e.seq) FROM sheet.log_edits(l.sheet_id) e), p.rows, p.cols, p."row", p.col, regexp_replace(encode(p.cells, 'escape'), '[^a-z]+', ' ', 'g')
	FROM sheet.link l, LATERAL sheet.published_cells(l.sheet_id, l.link_id, 1000000) p WHERE l.link_id = link
$$;
SELECT sheet.create('published') AS id \gset
SELECT count(sheet.set(:id, ref, content)) FROM (VALUES ('A1', 'above'), ('B2', 'one'), ('C3', 'two'), ('D4', 'below')) v(ref, content);
SELECT link_id AS whole, key AS whole_key FROM sheet.create_link(:id, embed => 'https://example.org', index_ok => true) \gset
SELECT link_id AS part, key AS part_key FROM sheet.create_link(:id, expires => NULL, ref => 'B2:C3') \gset
SELECT sheet_id = :id AS this, title, rectangle, embed, index_ok, left_ms > 0 AS lasts FROM sheet.published(sha256(:'whole_key'));
SELECT sheet_id = :id AS this, title, rectangle, embed, index_ok, left_ms FROM sheet.published(sha256(:'part_key'));
SELECT count(*) FROM sheet.published(sha256('unknown'));

SELECT embed, index_ok FROM sheet.links(:id) WHERE link_id = :whole;
SELECT sheet.change_link(:whole, embed => 'https://a HTTP://*.B-c.example:81', index_ok => false);
SELECT sheet.change_link(:whole, label => 'Other');
SELECT embed, index_ok FROM sheet.links(:id) WHERE link_id = :whole;
SELECT sheet.change_link(:whole, embed => 'https://a; script-src *');
SELECT sheet.create_link(:id, embed => 'https://a/path');
\set VERBOSITY sqlstate
UPDATE sheet.link SET embed = '''self''' WHERE link_id = :whole;
\set VERBOSITY default
SELECT sheet.change_link(:whole, embed => '');
SELECT embed FROM sheet.links(:id) WHERE link_id = :whole;

SELECT * FROM cells_of(:part);
SELECT * FROM cells_of(:whole);
SELECT sheet.insert_rows(:id, 0, 3) > 0 AS inserted, sheet.insert_columns(:id, 2, 1) > 0 AS between;
SELECT * FROM cells_of(:part);
SELECT * FROM sheet.published_cells(:id, :part, 1);
SELECT sheet.delete_rows(:id, 0, 10) > 0 AS deleted;
SELECT * FROM cells_of(:part);
SELECT count(*) FROM sheet.published(sha256(:'part_key'));

SELECT sheet.change_link(:whole, 'commenter');
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
SELECT sheet.change_link(:whole, 'viewer', password => 'x');
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
SELECT sheet.change_link(:whole, password => '');
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
SELECT sheet.change_link(:whole, blocked => true);
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
SELECT sheet.change_link(:whole, blocked => false);
SELECT sheet.trash(:id);
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
SELECT sheet.purge(:id);
SELECT count(*) FROM sheet.published(sha256(:'whole_key'));
DROP FUNCTION cells_of;
