-- Rows and columns that are inserted and deleted: what the sheet, its log and its versions show, what is refused, and that
-- nothing is stored again but what changed.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
CREATE FUNCTION s_show(id bigint) RETURNS text LANGUAGE sql AS $$
	SELECT r.rows || ' x ' || r.cols || ': ' || coalesce((SELECT string_agg(a1 || '=' || content || coalesce(' ' || style, ''), ', ' ORDER BY "row", col) FROM sheet.range(id)), '')
		FROM sheet.read_cells(id) r
$$;
CREATE FUNCTION s_version(id bigint, version_id bigint) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(a1 || '=' || content || coalesce(' ' || style, ''), ', ' ORDER BY "row", col) FROM sheet.at(id, version_id)
$$;
SELECT sheet.create('structure', 10, 5) AS id \gset
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a'), j_set(1, 1, 'b', '{"bold":1}'), j_set(2, 2, 'c'), j_set(9, 4, 'end')));
SELECT sheet.insert_rows(:id, 1, 2), s_show(:id);
SELECT sheet.insert_columns(:id, 0), s_show(:id);
SELECT sheet.set(:id, 'A2', 'new'), s_show(:id);
SELECT sheet.delete_rows(:id, 3, 1), s_show(:id);
SELECT sheet.delete_columns(:id, 1, 2), s_show(:id);
SELECT seq, kind, "row", col, a1, old, new, style FROM sheet.log WHERE sheet_id = :id ORDER BY seq;
SELECT kind, "row", col, old, new FROM sheet.log_edits(:id) WHERE segment_id = 1 AND kind ~ '_';
-- the inverse of a change leaves no trace of it but in the log
SELECT sheet.insert_rows(:id, 5, 100), s_show(:id);
SELECT sheet.delete_rows(:id, 5, 100), s_show(:id);
-- at the end, behind the end, and all that there is
SELECT sheet.create('structure ends', 3, 2) AS ends \gset
SELECT sheet.insert_rows(:ends, 3), s_show(:ends);
SELECT sheet.insert_columns(:ends, 5), s_show(:ends);
SELECT sheet.set(:ends, 'B2', 'x') > 0, sheet.set(:ends, 'A4', 'y') > 0;
SELECT sheet.delete_rows(:ends, 100, 5) AS nothing, s_show(:ends);
SELECT sheet.delete_rows(:ends, 3, 16777213), s_show(:ends);
SELECT sheet.delete_rows(:ends, 0, 3), sheet.delete_columns(:ends, 0, 6), s_show(:ends);
SELECT kind, "row", col, old, new FROM sheet.log WHERE sheet_id = :ends AND seq > 3 ORDER BY seq;
SELECT severity, what FROM sheet.fsck(:ends, true);

-- ---- limits ----
SELECT stmt, j_error(replace(stmt, 'ID', :ends::text)) FROM (VALUES
	('SELECT sheet.insert_rows(ID, -1)'), ('SELECT sheet.insert_rows(ID, 0, 0)'), ('SELECT sheet.delete_columns(ID, 0, -1)'),
	('SELECT sheet.insert_rows(ID, 16777216)'), ('SELECT sheet.insert_rows(ID, 1, 16777216)'),
	('SELECT sheet.insert_columns(ID, 16384)'), ('SELECT sheet.delete_columns(ID, 16383, 2)'),
	('SELECT sheet.insert_rows(ID, NULL)'), ('SELECT sheet.insert_rows(0, 1)')) v(stmt);
SELECT sheet.set(:ends, 16777214, 16382, 'corner') > 0;
SELECT sheet.insert_rows(:ends, 5) > 0, s_show(:ends);
SELECT j_error(format('SELECT sheet.insert_rows(%s, 5)', :ends));
SELECT j_error(format('SELECT sheet.insert_columns(%s, 5, 2)', :ends));
SELECT sheet.insert_columns(:ends, 16383) > 0, s_show(:ends);
SELECT sheet.delete_rows(:ends, 16777215) > 0, sheet.insert_rows(:ends, 5) > 0, s_show(:ends);
SELECT severity, what FROM sheet.fsck(:ends, true);

-- in too many places: refused, and possible again when some of them have gone
SELECT sheet.create('structure places', 20000, 3) AS places \gset
SELECT last_seq FROM sheet.apply(:places, (SELECT j_batch(VARIADIC array_agg(j_edit(6, 7, 3 * i, 0, '1'))) FROM generate_series(0, 5460) i));
SELECT sheet.set(:places, 'A7', 'a row of its own') > 0;
SELECT j_error(format('SELECT sheet.insert_rows(%s, 2)', :places));
SELECT sheet.delete_rows(:places, 60, 60) > 0, sheet.insert_rows(:places, 2) > 0, s_show(:places);
SELECT severity, what FROM sheet.fsck(:places, true);
-- rows that are inserted below or above each other are as one
SELECT sheet.create('structure runs', 100, 3) AS runs \gset
SELECT last_seq FROM sheet.apply(:runs, (SELECT j_batch(VARIADIC array_agg(j_edit(6, 7, CASE WHEN i < 50 THEN 20 + i ELSE 90 END, 0, '1'))) FROM generate_series(0, 99) i));
SELECT sheet.commit(:runs);
SELECT length(line_maps) FROM sheet.version WHERE sheet_id = :runs;

-- ---- versions ----
SELECT sheet.create('structure versions', 1000, 30) AS v \gset
SELECT last_seq FROM sheet.apply(:v, (SELECT j_batch(VARIADIC array_agg(j_set(i / 30, i % 30, 'v' || i))) FROM generate_series(0, 29999) i));
SELECT sheet.commit(:v, 'full');
SELECT sheet.insert_rows(:v, 500) > 0, sheet.commit(:v, 'a row');
SELECT sheet.delete_columns(:v, 3) > 0, sheet.commit(:v, 'without a column');
SELECT sheet.set(:v, 'A501', 'in the row') > 0, sheet.commit(:v, 'one cell');
-- an insert stores no tile, a deletion those of the column, an edit one
SELECT version_id, label, rows, cols, tiles, length(line_maps) FROM sheet.version WHERE sheet_id = :v ORDER BY version_id;
SELECT version_id, count(*), min(content) FILTER (WHERE "row" = 499 AND col = 2), min(content) FILTER (WHERE "row" = 501 AND col = 3),
	min(content) FILTER (WHERE "row" = 500) FROM generate_series(1, 4) version_id, sheet.at(:v, version_id) GROUP BY version_id ORDER BY version_id;
SELECT count(*) FROM sheet.diff(:v, 1, 2) WHERE "row" < 500;
SELECT sheet.rollback(:v, 1);
SELECT count(*), count(*) FILTER (WHERE a.content IS DISTINCT FROM b.content) FROM sheet.at(:v, 1) a FULL JOIN sheet.range(:v) b USING ("row", col);
SELECT severity, what FROM sheet.fsck(:v, true);
-- maps that are lost or damaged are found, and written again
SET pg_sheet.allow_log_delete = on;
CREATE TEMP TABLE kept AS SELECT * FROM sheet.version WHERE sheet_id = :v;
DELETE FROM sheet.version WHERE sheet_id = :v AND version_id IN (3, 4);
INSERT INTO sheet.version SELECT sheet_id, version_id, seq, at, uid, label, rows, cols, tiles, digest, cause, NULL FROM kept WHERE version_id = 3;
INSERT INTO sheet.version SELECT sheet_id, version_id, seq, at, uid, label, rows, cols, tiles, digest, cause, '\x0300' FROM kept WHERE version_id = 4;
SELECT severity, what, place, repaired FROM sheet.fsck(:v, true, false);
SELECT j_error(format('SELECT * FROM sheet.at(%s, 4)', :v));
SELECT severity, what, place, repaired FROM sheet.fsck(:v, true);
SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM sheet.version) t;
-- a version with maps as the beginning of the history
SELECT sheet.trim(:v, 4) > 0;
SELECT count(*), min(content) FILTER (WHERE "row" = 501 AND col = 3) FROM sheet.at(:v, 4);
SELECT severity, what FROM sheet.fsck(:v, true);
SELECT sheet.insert_rows(:v, 0, 2) > 0, (SELECT content FROM sheet.range(:v, 'C3'));

-- ---- transactions ----
SELECT sheet.create('structure transactions', 10, 5) AS t \gset
SELECT sheet.set_range(:t, 'A1', '{{1,2},{3,4},{5,6}}') > 0;
BEGIN;
SELECT sheet.set(:t, 'A3', 'before') > 0, sheet.insert_rows(:t, 1) > 0, sheet.set(:t, 'A2', 'within') > 0, sheet.set(:t, 'A4', 'after') > 0;
SELECT s_show(:t);
SAVEPOINT one;
SELECT sheet.delete_rows(:t, 0, 2) > 0, sheet.delete_columns(:t, 0) > 0, s_show(:t);
SAVEPOINT two;
SELECT sheet.insert_columns(:t, 0, 3) > 0, s_show(:t);
ROLLBACK TO two;
SELECT sheet.set(:t, 'A1', 'one') > 0, s_show(:t);
RELEASE two;
ROLLBACK TO one;
SELECT s_show(:t);
SELECT sheet.insert_columns(:t, 1) > 0, sheet.set(:t, 'B1', 'last') > 0;
COMMIT;
SELECT s_show(:t);
BEGIN;
SELECT sheet.delete_rows(:t, 0, 10) > 0, sheet.set(:t, 'A1', 'gone') > 0, s_show(:t);
ROLLBACK;
SELECT s_show(:t);
BEGIN;
SELECT sheet.insert_rows(:t, 0) > 0;
SELECT sheet.commit(:t, 'in the same transaction');
SELECT sheet.delete_rows(:t, 0) > 0, sheet.commit(:t), s_show(:t);
COMMIT;
SELECT s_show(:t), s_version(:t, 1), s_version(:t, 2);
SELECT severity, what FROM sheet.fsck(:t, true);
-- what comes or goes at the end changes no cell, and where the others lie follows from it: the version in the same transaction has it
SELECT sheet.create('structure at the end', 1000, 10) AS e \gset
BEGIN;
SELECT sheet.delete_rows(:e, 50, 950) > 0, sheet.commit(:e);
COMMIT;
SELECT sheet.insert_rows(:e, 10) > 0;
SELECT sheet.set(:e, 'A11', 'kept') > 0;
SELECT sheet.commit(:e);
BEGIN;
SELECT sheet.insert_columns(:e, 10, 2) > 0, sheet.commit(:e);
COMMIT;
SELECT version_id, rows, cols, s_version(:e, version_id) FROM sheet.version WHERE sheet_id = :e ORDER BY version_id;
SELECT s_show(:e);
-- a rollback gives back rows and columns that have been deleted, empty ones, too
SELECT sheet.delete_columns(:e, 8, 4) > 0, sheet.delete_rows(:e, 5, 20) > 0, s_show(:e);
SELECT sheet.rollback(:e, 3), s_show(:e), s_version(:e, 4);
SELECT severity, what FROM sheet.fsck(:e, true);
-- the smallest sheet has a size, too, and keeps it
SELECT sheet.create('structure of one cell', 1, 1) AS one \gset
SELECT sheet.delete_rows(:one, 0) > 0, sheet.delete_columns(:one, 0) > 0, s_show(:one);
SELECT seq, kind, "row", col, new FROM sheet.log WHERE sheet_id = :one ORDER BY seq;
-- what a deletion tells of long contents is cut into batches that can be followed, also what the same transaction has set
SELECT sheet.create('structure of long contents', 400, 1) AS long \gset
SELECT last_seq FROM sheet.apply(:long, (SELECT j_batch(VARIADIC array_agg(j_set(i, 0, repeat('x', 30000)))) FROM generate_series(0, 199) i));
BEGIN;
SELECT last_seq FROM sheet.apply(:long, (SELECT j_batch(VARIADIC array_agg(j_set(i, 0, repeat('y', 30000)))) FROM generate_series(100, 399) i));
SELECT sheet.delete_rows(:long, 0, 400);
COMMIT;
SELECT first_seq, last_seq, length(data) FROM sheet.log_batch WHERE sheet_id = :long ORDER BY first_seq;
SELECT count(*), count(DISTINCT left(old, 1)) FROM sheet.log WHERE sheet_id = :long AND seq > 501 AND length(old) = 30000;
-- what is pushed beyond the end may have been emptied just now
SELECT sheet.create('structure pushed', 16777216, 2) AS p \gset
SELECT sheet.set(:p, 'A16777216', 'last') > 0;
BEGIN;
SELECT sheet.set(:p, 'A16777216', '') > 0, sheet.set(:p, 'B5', 'moves') > 0, sheet.insert_rows(:p, 1) > 0, s_show(:p);
SAVEPOINT s;
SELECT sheet.set(:p, 'A16777216', 'again') > 0;
SELECT sheet.insert_rows(:p, 1);
ROLLBACK TO s;
COMMIT;
SELECT s_show(:p);
SELECT severity, what FROM sheet.fsck(:p, true);

-- ---- batches ----
CREATE FUNCTION s_lines(kind int, at int, n text) RETURNS bytea LANGUAGE sql AS $$
	SELECT j_edit(kind, 7, CASE WHEN kind < 8 THEN at ELSE 0 END, CASE WHEN kind < 8 THEN 0 ELSE at END, n)
$$;
SELECT sheet.create('structure batches', 10, 5) AS b \gset
SELECT first_seq, last_seq FROM sheet.apply(:b, j_batch(j_set(0, 0, 'a'), j_set(1, 0, 'b'), s_lines(6, 1, '2'), j_set(1, 0, 'c'), s_lines(9, 3, '1'), s_lines(8, 0, '1'),
	j_set(0, 0, 'd')), 1, NULL, 77, 1);
SELECT s_show(:b);
SELECT first_seq, last_seq, kind, count(*) FROM (SELECT first_seq, last_seq FROM sheet.log_batch WHERE sheet_id = :b) x JOIN sheet.log l ON l.sheet_id = :b AND l.seq BETWEEN first_seq AND last_seq
	GROUP BY 1, 2, 3 ORDER BY 1, 3;
SELECT count(*) FILTER (WHERE l.at <= before) FROM (SELECT at, lag(at) OVER (ORDER BY seq) before FROM sheet.log WHERE sheet_id = :b) l;
-- sent again: all of its parts are found
SELECT first_seq, last_seq, duplicate FROM sheet.apply(:b, j_batch(j_set(0, 0, 'a'), s_lines(6, 1, '2')), 1, NULL, 77, 1);
-- what the caller has not seen moves what it means
SELECT j_error(format('SELECT sheet.apply(%s, %L, 1)', :b, j_batch(j_set(5, 5, 'x'))));
SELECT last_seq, duplicate, length(missed) > 0 AS missed FROM sheet.apply(:b, '\x01000000', 1);
SELECT last_seq FROM sheet.apply(:b, j_batch(j_set(5, 3, 'x')), 8);
SELECT e, j_error(format('SELECT sheet.apply(%s, %L)', :b, j_batch(e))) FROM (VALUES (s_lines(6, 1, '')), (s_lines(6, 1, '0')), (s_lines(6, 1, '01')), (s_lines(7, 1, '-1')),
	(s_lines(6, 0, '16777217')), (s_lines(6, 2, '16777215')), (s_lines(8, 0, '16385')), (s_lines(9, 16384, '1')), (s_lines(6, 0, '4294967297')), (s_lines(8, 0, '1x')),
	(j_edit(6, 7, 1, 1, '1')), (j_edit(11, 7, 1, 1, ''))) v(e);
SELECT s_show(:b);

-- ---- the log by conditions ----
SELECT count(*) FROM sheet.log WHERE sheet_id = :id AND "row" = 1;
SELECT seq, kind FROM sheet.log WHERE sheet_id = :id AND col = -1 ORDER BY seq;
SELECT seq, "row", col FROM sheet.log WHERE sheet_id = :id AND kind = 'insert_columns';
SELECT seq, kind FROM sheet.log_edits(:id) WHERE kind IN ('delete_rows', 'delete_columns') ORDER BY seq DESC;
EXPLAIN (COSTS OFF) SELECT seq FROM sheet.log_edits(1) WHERE kind = 'insert_rows' AND "row" = 5;

-- ---- a deletion of many cells is cancelled between two of them, and not when they are stored ----
SELECT sheet.create('structure many', 3000, 2) AS many \gset
SELECT (sheet.apply(:many, j_batch(VARIADIC array_agg(j_set(i, 1, 'x') ORDER BY i)))).last_seq FROM generate_series(0, 2999) i;
SET pg_sheet.stop_point = 'append-edits:cancel:2 append-store:error';
SELECT sheet.delete_rows(:many, 0, 3000);
RESET pg_sheet.stop_point;
SELECT rows, length(cells) > 0 AS cells FROM sheet.read_cells(:many);
-- ---- where rows are is found out behind a savepoint, and still known when that is taken back: of a sheet that cannot be loaded ----
SELECT sheet.create('structure drill') AS drill, sheet.create('structure found', 6, 2) AS found \gset
SELECT sheet.set_range(:found, 'A1', ARRAY[['a'],['b'],['c']]) > 0 AS set, sheet.insert_rows(:found, 1, 2) > 0 AS inserted;
SELECT sheet.trash(:found);
SELECT sheet.recover(:found);
BEGIN;
SET LOCAL pg_sheet.allow_log_delete = on;
DELETE FROM sheet.segment WHERE sheet_id = :drill;
SELECT sheet.claim(:found, 1, 'one') > 0 AS claimed;
SAVEPOINT a;
SELECT sheet.claim(:found, 2, 'two') > 0 AS claimed;
SELECT sheet.set(:found, 'A4', 'taken back') > 0 AS set;
ROLLBACK TO a;
SELECT sheet.set(:found, 'A4', 'stays') > 0 AS set;
COMMIT;
SELECT a1, content FROM sheet.range(:found);
SELECT severity, what FROM sheet.fsck(:found, true, false);
SELECT sheet.purge(:drill), sheet.purge(:found);
-- ---- who may ----
CREATE ROLE structure_viewer;
CREATE ROLE structure_editor;
SELECT sheet.account_create('structure viewer', NULL, 'x') > 0, sheet.account_create('structure editor', NULL, 'x') > 0;
SELECT sheet.link_account('structure viewer', 'structure_viewer'), sheet.link_account('structure editor', 'structure_editor');
SELECT sheet.share(:id, 'structure viewer', 'viewer'), sheet.share(:id, 'structure editor', 'editor');
\set VERBOSITY sqlstate
SET ROLE structure_viewer;
SELECT sheet.insert_rows(:id, 0);
SELECT sheet.delete_columns(:id, 0);
RESET ROLE;
SET ROLE structure_editor;
SELECT sheet.insert_rows(:id, 0) > 0, sheet.delete_rows(:id, 0) > 0;
SELECT sheet.insert_rows(:id, 0, 1, 1);
RESET ROLE;
SELECT username, kind FROM sheet.log WHERE sheet_id = :id ORDER BY seq DESC LIMIT 2;
SELECT sheet.trash(:id);
SELECT sheet.insert_rows(:id, 0);
\set VERBOSITY default
-- tables and CSV follow
SELECT sheet.import_csv('structure csv', E'name,age\r\nAnn,33\r\nBob,44\r\n') AS csv \gset
SELECT sheet.insert_rows(:csv, 2) > 0, sheet.set(:csv, 'A3', 'Between') > 0, sheet.insert_columns(:csv, 1) > 0, sheet.set(:csv, 'B1', 'town') > 0;
SELECT sheet.export_csv(:csv);
SELECT * FROM sheet.as_table(:csv) AS t(name text, town text, age int);
-- a sheet that the same statement has made
SELECT sheet.insert_rows(sheet.create('structure at once', 3, 3), 1) > 0;
SELECT sheet.purge(sheet.create('structure purged'));
SELECT count(*) FROM sheet.sheet WHERE name = 'structure purged';
DROP FUNCTION s_show, s_version, s_lines;
DROP ROLE structure_viewer, structure_editor;
