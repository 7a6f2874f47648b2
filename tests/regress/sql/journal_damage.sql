-- Rows with numbers that cannot be, as a damaged page or a superuser may make them: an error, and never memory that is not there.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('damaged', 20, 10) AS id \gset
CREATE FUNCTION put_batch(id bigint, last bigint, edits bytea) RETURNS void LANGUAGE sql AS $$
	INSERT INTO sheet.log_batch VALUES (id, 1, last, 1, '2026-01-01', 0, 0, 0, edits)
$$;
-- a batch of 100 edits whose row says that it has 2^32 + 2, in both directions
BEGIN;
SELECT put_batch(:id, 4294967298, (SELECT string_agg(j_edit(1, 7, i, 0, 'text ' || i), ''::bytea) FROM generate_series(1, 100) i));
SELECT j_error(format('SELECT count(new) FROM (SELECT new FROM sheet.log WHERE sheet_id = %s ORDER BY seq DESC) l', :id));
SELECT j_error(format('SELECT count(new) FROM sheet.log WHERE sheet_id = %s', :id));
ROLLBACK;
-- an edit outside of sheets, and a content that is longer than one can be
BEGIN;
SELECT put_batch(:id, 2, j_edit(1, 7, 2000000000, 0, 'x') || j_edit(6, 7, 3, 0, '2'));
SELECT j_error(format('SELECT count(*) FROM sheet.at(%s, now())', :id));
ROLLBACK;
BEGIN;
SELECT put_batch(:id, 1, j_edit(1, 7, 0, 0, repeat('x', 200000)));
SELECT j_error(format('SELECT count(*) FROM sheet.at(%s, now())', :id));
ROLLBACK;
-- a version that is larger than sheets are
SELECT sheet.set(:id, 'A1', 'x') > 0, sheet.commit(:id);
ALTER TABLE sheet.version SET ACCESS METHOD heap;
UPDATE sheet.version SET rows = -2, cols = 2147483647 WHERE sheet_id = :id;
ALTER TABLE sheet.version SET ACCESS METHOD sheetlog;
SELECT j_error(format('SELECT sheet.read_version(%s, 1)', :id));
SELECT j_error(format('SELECT sheet.insert_rows(%s, 0, 1), sheet.delete_rows(%s, 0, 5), count(*) FROM sheet.at(%s, now())', :id, :id, :id));
SELECT severity, what, repaired FROM sheet.fsck(:id, true);
SELECT what FROM sheet.fsck(:id, true);
SELECT content FROM sheet.range(:id);
DROP FUNCTION put_batch;
