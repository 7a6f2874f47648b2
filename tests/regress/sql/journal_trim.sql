-- Trimming a sheet: what is left, what is said of what is gone, and that nothing goes which cannot be read back.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SET timezone = 'UTC';
SELECT sheet.create('trim', 200, 40) AS id \gset
-- a tile that only the first version holds, one that becomes empty, one that changes in every version
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v1'), j_set(100, 0, 'old'), j_set(0, 20, 'right'), j_set(150, 30, 'soon gone')));
SELECT sheet.commit(:id, 'one');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v2'), j_set(150, 30, '')));
SELECT sheet.commit(:id, 'two');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v3'), j_set(0, 1, 'more', '{"b":1}')));
SELECT sheet.commit(:id, 'three');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v4')));
SELECT sheet.commit(:id, 'four');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 2, 'open')));
CREATE FUNCTION trim_rows(sheet bigint) RETURNS TABLE (relation text, rows text) LANGUAGE sql VOLATILE AS $$
	SELECT 'log_batch', string_agg(first_seq || '-' || last_seq, ' ' ORDER BY first_seq) FROM sheet.log_batch WHERE sheet_id = sheet
	UNION ALL SELECT 'segment', string_agg(segment_id || ' from ' || first_seq, ', ' ORDER BY segment_id) FROM sheet.segment WHERE sheet_id = sheet
	UNION ALL SELECT 'checkpoint', string_agg(version_id || ' at ' || seq, ', ' ORDER BY version_id) FROM sheet.version WHERE sheet_id = sheet
	UNION ALL SELECT 'version_tile', string_agg(tile_row || '/' || tile_col || ' of ' || version_id, ', ' ORDER BY tile_row, tile_col, version_id) FROM sheet.version_tile WHERE sheet_id = sheet
	UNION ALL SELECT 'log_trim', string_agg(version_id || ' at ' || seq, ', ' ORDER BY version_id) FROM sheet.log_trim WHERE sheet_id = sheet
$$;
CREATE FUNCTION trim_cells(sheet bigint, version_id bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT string_agg(d."row" || ',' || d.col || '=' || d.content || coalesce(d.style, ''), ' ' ORDER BY d."row", d.col) FROM sheet.read_version(sheet, version_id) r, j_decode(r.cells) d
$$;
CREATE FUNCTION trim_error(call text) RETURNS TABLE (code text, message text, detail text, hint text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE call;
	code := 'none';
	RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	message := regexp_replace(message, 'sheet \d+', 'sheet N');
	hint := regexp_replace(hint, '\(\d+', '(N');
	detail := regexp_replace(detail, 'on [-0-9:. ]+\+00', 'on some day');
	RETURN NEXT;
END $$;
SELECT * FROM trim_rows(:id);
SELECT trim_cells(:id, 2) AS v2, trim_cells(:id, 3) AS v3, trim_cells(:id, 4) AS v4 \gset
SELECT updated_at FROM sheet.info(:id) \gset

-- ---- who may, and what there is to trim ----
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 5)', :id));
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 0)', :id));
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, NULL)', :id));
SELECT * FROM trim_error('SELECT sheet.trim(NULL, 1)');
SELECT * FROM trim_error('SELECT sheet.trim(-1, 1)');
BEGIN;
SELECT sheet.set(:id, 'Z9', 'x') IS NOT NULL AS set;
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 2)', :id));
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 2)', :id));
ROLLBACK;
SELECT sheet.account_create('trim owner', 't@x', 'h') AS owner \gset
SELECT sheet.account_create('trim editor', 't@y', 'h') AS editor \gset
SELECT sheet.create('trim of an owner', 10, 10, NULL, :owner) AS owned \gset
SELECT sheet.share(:owned, 'trim editor', 'editor', :owner);
SELECT sheet.set(:owned, 'A1', 'x');
SELECT sheet.commit(:owned, as_uid => :editor);
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 1, %s)', :owned, :editor));
SELECT sheet.trim(:owned, 1, :owner);
SELECT version_id, seq, uid = :owner AS by_owner FROM sheet.log_trim WHERE sheet_id = :owned;

-- ---- the trim ----
SELECT sheet.trim(:id, 2);
SELECT * FROM trim_rows(:id);
SELECT trim_cells(:id, 2) = :'v2' AS v2, trim_cells(:id, 3) = :'v3' AS v3, trim_cells(:id, 4) = :'v4' AS v4;
SELECT a1, content FROM sheet.range(:id);
SELECT severity, what FROM sheet.fsck(:id, false);
SELECT severity, what FROM sheet.fsck(:id, true);
SELECT version_id, label FROM sheet.versions(:id);
SELECT min(seq), min(segment_id) FROM sheet.log WHERE sheet_id = :id;
SELECT sheet.trim(:id, 2) AS nothing_more;
-- what is gone is said to be
SELECT * FROM trim_error(format('SELECT * FROM sheet.at(%s, 1)', :id));
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 1)', :id));
SELECT * FROM trim_error(format('SELECT sheet.read_version(%s, 1)', :id));
SELECT * FROM trim_error(format('SELECT * FROM sheet.diff(%s, 1, 2)', :id));
SELECT * FROM trim_error(format('SELECT sheet.rollback(%s, 1)', :id));
SELECT * FROM trim_error(format('SELECT * FROM sheet.at(%s, 9)', :id));
SELECT * FROM trim_error(format('SELECT sheet.tail(%s, 7)', :id));
SELECT * FROM trim_error(format('SELECT sheet.tail(%s, 0)', :id));
SELECT last_seq FROM sheet.tail(:id, 9);
SELECT * FROM trim_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''late'')), 7)', :id));
SELECT first_seq, missed IS NULL AS nothing_missed FROM sheet.apply(:id, j_batch(j_set(0, 3, 'in time')), 14);
SELECT first_seq, (SELECT min(seq) FROM j_decode(missed)) AS missed_from FROM sheet.apply(:id, j_batch(j_set(0, 4, 'in time, too')), 9);
-- what is there can be brought back, and the log goes on
SELECT sheet.rollback(:id, 2);
SELECT trim_cells(:id, 5) = :'v2' AS rolled_back;
SELECT severity, what FROM sheet.fsck(:id, true);

-- ---- everything up to now, so that no edit is left ----
SELECT sheet.trim(:id, 5);
SELECT * FROM trim_rows(:id);
SELECT a1, content FROM sheet.range(:id);
SELECT updated_at > :'updated_at' AS updated FROM sheet.info(:id);
SELECT * FROM trim_error(format('SELECT sheet.commit(%s)', :id));
SELECT * FROM sheet.tail(:id, 24);
SELECT * FROM sheet.log_edits(:id) WHERE segment_id = 6;
SELECT severity, what FROM sheet.fsck(:id, true);
-- what a new server finds: seq and time go on, also without shared memory's knowledge
VACUUM FULL sheet.log_batch;
SELECT a1, content FROM sheet.range(:id);
SELECT sheet.claim(:id, 1, 'gateway');
SELECT first_seq, at > (SELECT at FROM sheet.version WHERE sheet_id = :id AND version_id = 5) AS later FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v6')));
SELECT sheet.commit(:id, 'six');
SELECT * FROM trim_rows(:id);
SELECT severity, what FROM sheet.fsck(:id, true);
-- trim and edit in one transaction; and taken back
BEGIN;
SELECT sheet.trim(:id, 6);
SELECT first_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v7')));
SELECT a1, content FROM sheet.range(:id);
ROLLBACK;
SELECT * FROM trim_rows(:id);
SELECT a1, content FROM sheet.range(:id);
BEGIN;
SELECT sheet.trim(:id, 6);
SELECT first_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'v7'), j_set(190, 39, 'corner')));
SELECT sheet.commit(:id, 'seven');
COMMIT;
SELECT a1, content FROM sheet.range(:id);
SELECT severity, what FROM sheet.fsck(:id, true);

-- ---- damage ----
-- what is not sound is not trimmed
SET pg_sheet.allow_log_delete = on;
BEGIN;
DELETE FROM sheet.version_tile WHERE sheet_id = :id AND version_id = 7;
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 7)', :id));
ROLLBACK;
BEGIN;
DELETE FROM sheet.version WHERE sheet_id = :id AND version_id = 7;
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 7)', :id));
ROLLBACK;
-- the oldest version is all that there is of what was before it: damage is told, and nothing is written in its place
BEGIN;
DELETE FROM sheet.version_tile WHERE sheet_id = :id AND version_id < 6 AND tile_row = 1;
SELECT severity, place, what, repaired FROM sheet.fsck(:id, true, false);
SELECT * FROM trim_error(format('SELECT sheet.trim(%s, 7)', :id));
ROLLBACK;
BEGIN;
DELETE FROM sheet.version WHERE sheet_id = :id AND version_id = 6;
SELECT severity, place, what, repaired FROM sheet.fsck(:id, false);
SELECT severity, place, what, repaired FROM sheet.fsck(:id, true);
ROLLBACK;
BEGIN;
CREATE TEMP TABLE t AS SELECT * FROM sheet.version_tile WHERE sheet_id = :id AND version_id = 6;
DELETE FROM sheet.version_tile WHERE sheet_id = :id AND version_id = 6;
INSERT INTO sheet.version_tile SELECT sheet_id, tile_row, tile_col, version_id, substr(data, 1, length(data) - 1) FROM t;
SELECT severity, place, what, repaired FROM sheet.fsck(:id, true);
ROLLBACK;
-- what follows from it is rebuilt
BEGIN;
DELETE FROM sheet.version_tile WHERE sheet_id = :id AND version_id = 7;
DELETE FROM sheet.version WHERE sheet_id = :id AND version_id = 7;
SELECT severity, place, what, repaired FROM sheet.fsck(:id, false);
SELECT severity, what FROM sheet.fsck(:id, true);
SELECT trim_cells(:id, 7);
ROLLBACK;
-- edits after it that are lost
BEGIN;
DELETE FROM sheet.log_batch WHERE sheet_id = :id AND first_seq = 27;
SELECT severity, place, what, repaired FROM sheet.fsck(:id, false);
ROLLBACK;
RESET pg_sheet.allow_log_delete;

-- ---- the end leaves nothing, in no relation that knows of sheets ----
SELECT sheet.purge(:id), sheet.purge(:owned);
CREATE FUNCTION trim_left(sheet bigint) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE rel regclass; n bigint;
BEGIN
	FOR rel IN SELECT a.attrelid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE c.relnamespace = 'sheet'::regnamespace AND c.relkind = 'r' AND a.attname = 'sheet_id' ORDER BY c.relname LOOP
		EXECUTE format('SELECT count(*) FROM %s WHERE sheet_id = $1', rel) INTO n USING sheet;
		RETURN NEXT rel || ': ' || n;
	END LOOP;
END $$;
SELECT * FROM trim_left(:id);
SELECT count(*) FROM trim_left(:owned) t(line) WHERE line NOT LIKE '%: 0';
DROP FUNCTION trim_rows, trim_cells, trim_error, trim_left;
