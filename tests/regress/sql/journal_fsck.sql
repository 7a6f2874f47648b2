-- What sheet.fsck says of every state that damage can leave, and what it makes of it. Rows are deleted and put in past the
-- journal, by the setting for repair drills.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SET timezone = 'UTC';
SELECT sheet.create('fsck', 200, 40) AS id \gset
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'one'), j_set(100, 0, 'far'), j_set(0, 20, 'right')));
SELECT sheet.commit(:id, 'first', NULL);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'two'), j_set(0, 1, 'more')));
SELECT sheet.commit(:id, 'second');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'three')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(100, 0, 'farther')));
SELECT sheet.commit(:id, 'third');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(5, 5, 'open')));
-- all rows of the sheet; the same before each drill and after each repair
CREATE FUNCTION fsck_all(sheet bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT md5(concat((SELECT string_agg(b::text, ' ' ORDER BY first_seq) FROM sheet.log_batch b WHERE sheet_id = sheet),
		 (SELECT string_agg(h::text, ' ' ORDER BY segment_id) FROM sheet.segment h WHERE sheet_id = sheet),
		(SELECT string_agg(c::text, ' ' ORDER BY version_id) FROM sheet.version c WHERE sheet_id = sheet),
		(SELECT string_agg(t::text, ' ' ORDER BY tile_row, tile_col, version_id) FROM sheet.version_tile t WHERE sheet_id = sheet)))
$$;
SELECT fsck_all(:id) AS sound \gset
-- Deletes and puts in as told, in one transaction; what the brief and the full look say, the repair, whether it is all as it was.
CREATE FUNCTION fsck_drill(sheet bigint, VARIADIC steps text[]) RETURNS TABLE (run text, severity text, place text, what text, repaired boolean)
	LANGUAGE plpgsql AS $$
DECLARE sound text := fsck_all(sheet); damaged text; step text;
BEGIN
	SET LOCAL pg_sheet.allow_log_delete = on;
	FOREACH step IN ARRAY steps LOOP
		EXECUTE replace(step, 'ID', sheet::text);
	END LOOP;
	damaged := fsck_all(sheet);
	RETURN QUERY SELECT 'brief', f.severity, f.place, f.what, f.repaired FROM sheet.fsck(sheet, false, false) f;
	RETURN QUERY SELECT 'full', f.severity, f.place, f.what, f.repaired FROM sheet.fsck(sheet, true, false) f;
	RETURN QUERY SELECT 'repair', f.severity, f.place, f.what, f.repaired FROM sheet.fsck(sheet, true, true) f;
	RETURN QUERY SELECT 'again', f.severity, f.place, f.what, f.repaired FROM sheet.fsck(sheet, true, true) f;
	run := 'rows'; severity := CASE fsck_all(sheet) WHEN sound THEN 'as they were' WHEN damaged THEN 'as damaged' ELSE 'written again' END;
	place := NULL; what := NULL; repaired := NULL;
	RETURN NEXT;
END $$;
SELECT * FROM fsck_drill(:id, 'SELECT 1');

-- all that a commit writes after its commit record
\set drop3 'DELETE FROM sheet.version WHERE sheet_id = ID AND version_id = 3'
\set drop3tiles 'DELETE FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 3'
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 4', 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id = 4', :'drop3', :'drop3tiles');
ROLLBACK;
-- only the head is missing, of the newest log, of one before it, of one that has edits
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 4', 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id = 4');
ROLLBACK;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id IN (2, 4)');
-- a head that lies
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id = 3', 'INSERT INTO sheet.segment SELECT sheet_id, 3, 4, at FROM sheet.segment WHERE sheet_id = ID AND segment_id = 2');
-- versions: the newest, all, one before others
SELECT * FROM fsck_drill(:id, :'drop3', :'drop3tiles');
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.version WHERE sheet_id = ID', 'DELETE FROM sheet.version_tile WHERE sheet_id = ID');
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.version WHERE sheet_id = ID AND version_id = 1');
-- its row without a tile, tiles without a row, a tile that does not belong to it
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 1 AND tile_row = 1');
SELECT * FROM fsck_drill(:id, :'drop3');
SELECT * FROM fsck_drill(:id, 'INSERT INTO sheet.version_tile SELECT sheet_id, 2, 2, version_id, data FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 2 LIMIT 1');
-- one byte of a tile; of a version's row
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 2', 'DELETE FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 2',
	'INSERT INTO sheet.version_tile SELECT sheet_id, tile_row, tile_col, version_id, set_byte(data, length(data) - 1, 120) FROM t', 'DROP TABLE t');
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 2', 'DELETE FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 2',
	'INSERT INTO sheet.version_tile SELECT sheet_id, tile_row, tile_col, version_id, substr(data, 1, length(data) - 1) FROM t', 'DROP TABLE t');
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.version WHERE sheet_id = ID AND version_id = 2', 'DELETE FROM sheet.version WHERE sheet_id = ID AND version_id = 2',
	'INSERT INTO sheet.version SELECT sheet_id, version_id, seq, at, uid, label, rows, cols, tiles, digest + 1 FROM t', 'DROP TABLE t');
-- a lost commit record is written again as the version tells it; without version, what is known of it
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 2 AND first_seq = (SELECT seq FROM sheet.version WHERE sheet_id = ID AND version_id = 2)');
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq >= (SELECT seq FROM sheet.version WHERE sheet_id = ID AND version_id = 3)', 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id = 4');
ROLLBACK;
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq >= (SELECT seq FROM sheet.version WHERE sheet_id = ID AND version_id = 3)', :'drop3', :'drop3tiles');
ROLLBACK;
SELECT fsck_all(:id) = :'sound' AS as_it_was;

-- ---- what cannot be repaired is left as it is ----
-- a hole: the version after it stands, and so does all that follows from it, also what is missing
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 2 AND first_seq = (SELECT first_seq FROM sheet.segment WHERE sheet_id = ID AND segment_id = 2)', :'drop3');
ROLLBACK;
-- the same, and the version after it is gone
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 2 AND first_seq = (SELECT first_seq FROM sheet.segment WHERE sheet_id = ID AND segment_id = 2)',
	'DELETE FROM sheet.version WHERE sheet_id = ID AND version_id = 2');
ROLLBACK;
-- whole logs: where they began is not made up
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id IN (1, 2)', 'DELETE FROM sheet.segment WHERE sheet_id = ID AND segment_id IN (1, 2)');
ROLLBACK;
-- a batch that does not decode
BEGIN;
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.log_batch WHERE sheet_id = ID AND first_seq = 2', 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq = 2',
	'INSERT INTO sheet.log_batch SELECT sheet_id, first_seq, last_seq, segment_id, at, epoch, origin, batch_no, substr(data, 1, length(data) - 1) FROM t', 'DROP TABLE t');
ROLLBACK;
-- a batch whose contents have changed: version and log disagree, and neither is written over
BEGIN;
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.log_batch WHERE sheet_id = ID AND first_seq = 2', 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq = 2',
	'INSERT INTO sheet.log_batch SELECT sheet_id, first_seq, last_seq, segment_id, at, epoch, origin, batch_no, decode(replace(encode(data, ''hex''), encode(''right'', ''hex''), encode(''wrong'', ''hex'')), ''hex'') FROM t', 'DROP TABLE t');
ROLLBACK;
-- a time that went back
BEGIN;
SELECT * FROM fsck_drill(:id, 'CREATE TEMP TABLE t AS SELECT * FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 4', 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND segment_id = 4',
	'INSERT INTO sheet.log_batch SELECT sheet_id, first_seq, last_seq, segment_id, at - interval ''1 day'', epoch, origin, batch_no, data FROM t', 'DROP TABLE t');
ROLLBACK;
-- a version and tiles without log; everything gone
BEGIN;
SELECT * FROM fsck_drill(:id, 'INSERT INTO sheet.version SELECT sheet_id, 9, seq, at, uid, label, rows, cols, tiles, digest FROM sheet.version WHERE sheet_id = ID AND version_id = 3');
ROLLBACK;
BEGIN;
SELECT * FROM fsck_drill(:id, 'INSERT INTO sheet.version_tile SELECT sheet_id, tile_row, tile_col, 4, data FROM sheet.version_tile WHERE sheet_id = ID AND version_id = 3');
ROLLBACK;
BEGIN;
SELECT * FROM fsck_drill(:id, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID', 'DELETE FROM sheet.segment WHERE sheet_id = ID', 'DELETE FROM sheet.version WHERE sheet_id = ID', 'DELETE FROM sheet.version_tile WHERE sheet_id = ID');
ROLLBACK;
SELECT fsck_all(:id) = :'sound' AS as_it_was;
SELECT severity, what FROM sheet.fsck(:id, true);
DROP FUNCTION fsck_drill, fsck_all;
SELECT sheet.purge(:id);
