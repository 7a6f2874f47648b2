-- Versions: what they hold, what they cost, reading and bringing back old ones.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('journal versions', 100, 20) AS id \gset
SELECT last_seq FROM sheet.apply(:id, (SELECT j_batch(VARIADIC array_agg(j_set(i / 20, i % 20, 'v' || i))) FROM generate_series(0, 1999) i));
SELECT sheet.commit(:id, 'full');
SELECT version_id, seq, label, rows, cols, tiles FROM sheet.version WHERE sheet_id = :id;
SELECT j_error(format('SELECT sheet.commit(%s)', :id));
-- a version stores the tiles that its log touched
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(70, 17, 'changed'), j_set(71, 17, ''), j_edit(2, 7, 70, 18, '', '{"b":1}')));
SELECT sheet.commit(:id);
SELECT version_id, tile_row, tile_col FROM sheet.version_tile WHERE sheet_id = :id ORDER BY 1, 2, 3;
-- a tile that becomes empty
SELECT last_seq FROM sheet.apply(:id, (SELECT j_batch(VARIADIC array_agg(j_set(i / 20, i % 20, ''))) FROM generate_series(0, 1999) i WHERE i / 20 < 64 AND i % 20 >= 16));
SELECT sheet.commit(:id, 'corner emptied');
SELECT tile_row, tile_col, length(data) FROM sheet.version_tile WHERE sheet_id = :id AND version_id = 3;
SELECT version_id, seq, label, rows, cols FROM sheet.versions(:id);
-- each version as it was
CREATE FUNCTION j_version(id bigint, version_id bigint) RETURNS TABLE ("row" bigint, col bigint, content text, style text) LANGUAGE sql AS $$
	SELECT d."row", d.col, d.content, d.style FROM sheet.read_version(id, version_id) r, j_decode(r.cells) d
$$;
SELECT version_id, count(*), count(*) FILTER (WHERE content = 'changed') changed, count(*) FILTER (WHERE style IS NOT NULL) styled
	FROM generate_series(1, 3) version_id, j_version(:id, version_id) GROUP BY 1 ORDER BY 1;
-- in parts, and without the cells
SELECT count(DISTINCT p.cells) > 10 AS parts, count(*), count(*) FILTER (WHERE v.content IS NOT NULL) AS same, count(DISTINCT (p.seq, p.rows, p.cols))
	FROM sheet.read_version(:id, 1, 500) p, j_decode(p.cells) d LEFT JOIN j_version(:id, 1) v USING ("row", col, content);
SELECT seq, rows, cols, cells IS NULL AS empty FROM sheet.read_version(:id, 2, 0);
SELECT j_error(format('SELECT sheet.read_version(%s, 1, -1)', :id));
SELECT j_error(format('SELECT sheet.read_version(%s, 4)', :id));
SELECT count(*), min(seq), max(seq), (array_agg(kind ORDER BY seq DESC))[1] FROM sheet.log_edits(:id) WHERE segment_id = 2;
SELECT * FROM sheet.log_edits(:id) WHERE segment_id = 4;
SELECT segment_id, first_seq FROM sheet.segment WHERE sheet_id = :id ORDER BY 1;
-- back to the first, with an edit that was never committed
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'uncommitted'), j_set(99, 19, 'v1999', '{"x":1}'), j_set(120, 30, 'outside')));
SELECT sheet.rollback(:id, 1);
SELECT count(*) FROM (SELECT * FROM j_cells(:id) EXCEPT SELECT * FROM j_version(:id, 1)) t;
SELECT count(*) FROM (SELECT * FROM j_version(:id, 1) EXCEPT SELECT * FROM j_cells(:id)) t;
SELECT count(*) FROM (SELECT * FROM j_version(:id, 4) EXCEPT SELECT * FROM j_version(:id, 1)) t;
SELECT kind, count(*), min(seq) FROM sheet.log_edits(:id) WHERE segment_id = 4 GROUP BY 1 ORDER BY 3;
SELECT label, rows, cols FROM sheet.versions(:id) WHERE version_id = 4;
-- and forward again; to the present one, which changes nothing but is a version
SELECT sheet.rollback(:id, 3);
SELECT count(*) FROM (SELECT * FROM j_cells(:id) EXCEPT SELECT * FROM j_version(:id, 3)) t;
SELECT sheet.rollback(:id, 5);
SELECT kind, count(*) FROM sheet.log_edits(:id) WHERE segment_id = 6 GROUP BY 1 ORDER BY 1;
SELECT j_error(format('SELECT sheet.rollback(%s, 99)', :id));
SELECT sheet.claim(:id, 3, 'gateway');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'x')));
SELECT j_error(format('SELECT sheet.commit(%s, NULL, 2)', :id));
SELECT j_error(format('SELECT sheet.rollback(%s, 1, 2)', :id));
-- the same cells have the same digest, however they came about
SELECT count(DISTINCT digest) FROM sheet.version WHERE sheet_id = :id AND version_id IN (5, 6);
-- gapless over everything
SELECT count(*), min(first_seq), max(last_seq), bool_and(first_seq = 1 + coalesce(before, 0))
	FROM (SELECT first_seq, last_seq, lag(last_seq) OVER (ORDER BY first_seq) before FROM sheet.log_batch WHERE sheet_id = :id) t;
-- the end of a sheet leaves nothing
SELECT sheet.purge(:id);
SELECT (SELECT count(*) FROM sheet.log_batch WHERE sheet_id = :id) + (SELECT count(*) FROM sheet.segment WHERE sheet_id = :id)
	+ (SELECT count(*) FROM sheet.version WHERE sheet_id = :id) + (SELECT count(*) FROM sheet.version_tile WHERE sheet_id = :id)
	+ (SELECT count(*) FROM sheet.ownership WHERE sheet_id = :id) AS rows_left;
SELECT seq FROM sheet.read_cells(:id);
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''q'')))', :id));
