-- What the cache knows of a sheet through its life, as its views tell it.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('journal cache', 20, 10) AS id \gset
SELECT count(*), sum(budget) FROM sheet.cache_stats;
-- a new sheet is there, last used first, and nobody holds it
SELECT place, cached, bytes > 0 AS bytes, seq, pins, writing, loading, tiles_cached, tiles FROM sheet.cache_entries WHERE sheet_id = :id;
-- a read is served from it
SELECT hits, misses, loads FROM sheet.cache_stats \gset before_
SELECT seq FROM sheet.read_cells(:id);
SELECT hits - :before_hits AS hits, misses - :before_misses AS misses, loads - :before_loads AS loads FROM sheet.cache_stats;
-- an editing transaction holds it, and reads its own edits past it
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'own')));
SELECT seq, pins, writing FROM sheet.cache_entries WHERE sheet_id = :id;
SELECT private_own_edits AS own FROM sheet.cache_stats \gset before_
SELECT seq FROM sheet.read_cells(:id);
SELECT private_own_edits - :before_own AS own FROM sheet.cache_stats;
COMMIT;
SELECT seq, pins, writing FROM sheet.cache_entries WHERE sheet_id = :id;
-- an edit that changes nothing, and one that fails, hold nothing afterwards
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'own')));
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(1, 1, ''x'')), 99)', :id));
SELECT seq, pins, writing FROM sheet.cache_entries WHERE sheet_id = :id;
-- to the trash and back: forgotten, then loaded by the next reader, with the same cells
SELECT sheet.trash(:id);
SELECT sheet.recover(:id);
SELECT cached, bytes, pins FROM sheet.cache_entries WHERE sheet_id = :id;
SELECT hits, misses, loads FROM sheet.cache_stats \gset before_
SELECT * FROM j_cells(:id);
SELECT hits - :before_hits AS hits, misses - :before_misses AS misses, loads - :before_loads AS loads FROM sheet.cache_stats;
SELECT place, cached, seq, pins FROM sheet.cache_entries WHERE sheet_id = :id;
-- the bytes are those of the entries
SELECT sum(e.bytes) = max(s.bytes) AS exact FROM sheet.cache_entries e, sheet.cache_stats s;
-- SERIALIZABLE reads do not use it
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT private_serializable AS serializable FROM sheet.cache_stats \gset before_
SELECT seq FROM sheet.read_cells(:id);
SELECT private_serializable - :before_serializable AS serializable FROM sheet.cache_stats;
COMMIT;
-- TRUNCATE needs no telling: another file, another key (undone here)
BEGIN;
TRUNCATE sheet.log_batch;
SELECT seq FROM sheet.read_cells(:id);
ROLLBACK;
SELECT seq FROM sheet.read_cells(:id);
-- a rewrite in the transaction that edits: the edit is found under the new file
CREATE INDEX j_clustered ON sheet.log_batch (sheet_id, first_seq);
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'own')));
CLUSTER sheet.log_batch USING j_clustered;
SELECT * FROM j_cells(:id);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'clustered')));
COMMIT;
SELECT * FROM j_cells(:id);
SELECT seq, pins, writing FROM sheet.cache_entries WHERE sheet_id = :id AND cached ORDER BY place LIMIT 1;
-- a file that is not others' yet is not cached: a TRUNCATE empties it where it is
BEGIN;
CLUSTER sheet.log_batch;
SELECT seq FROM sheet.read_cells(:id);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'clustered')));
TRUNCATE sheet.log_batch;
SELECT seq FROM sheet.read_cells(:id);
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(1, 1, ''x'')), 3)', :id));
ROLLBACK;
SELECT seq FROM sheet.read_cells(:id);
DROP INDEX sheet.j_clustered;
-- what a superuser deletes or puts in past the journal, and takes back, nobody else gets to see
SELECT sheet.create('drill') AS drill, sheet.create('put in') AS put_in \gset
SELECT sheet.set(:drill, 'A1', 'kept') AS seq, sheet.commit(:drill) AS version;
VACUUM FULL sheet.log_batch;
BEGIN;
SET LOCAL pg_sheet.allow_log_delete = on;
DELETE FROM sheet.version_tile WHERE sheet_id = :drill;
SELECT content FROM sheet.range(:drill);
ROLLBACK;
SELECT content FROM sheet.range(:drill);
BEGIN;
INSERT INTO sheet.log_batch SELECT :put_in, first_seq, last_seq, segment_id, at, epoch, origin, batch_no, data
	FROM sheet.log_batch WHERE sheet_id = :drill AND first_seq = 2;
SELECT content FROM sheet.range(:put_in);
ROLLBACK;
SELECT content FROM sheet.range(:put_in);
-- fsck repairs nothing in a read-only transaction
SET pg_sheet.allow_log_delete = on;
DELETE FROM sheet.version WHERE sheet_id = :drill;
RESET pg_sheet.allow_log_delete;
BEGIN READ ONLY;
SELECT severity, what, repaired FROM sheet.fsck(:drill, true);
ROLLBACK;
SELECT severity, what, repaired FROM sheet.fsck(:drill, true);
-- an edit after a repair, in its transaction, goes into the log that was opened
SET pg_sheet.allow_log_delete = on;
DELETE FROM sheet.segment WHERE sheet_id = :drill AND segment_id = 2;
RESET pg_sheet.allow_log_delete;
VACUUM FULL sheet.log_batch;
SELECT sheet.set(:drill, 'A1', 'kept') AS nothing_new;
BEGIN;
SELECT severity, what, repaired FROM sheet.fsck(:drill);
SELECT sheet.set(:drill, 'A1', 'after') AS seq;
COMMIT;
SELECT severity, what FROM sheet.fsck(:drill, true, false);
-- of a large sheet that nobody has read since, a window brings its tile
SELECT sheet.create('journal cache, tiles', 1000, 100) AS wide \gset
SELECT last_seq FROM sheet.apply(:wide, j_batch(VARIADIC ARRAY(SELECT j_set(64 * i, 16 * i, 'x') FROM generate_series(0, 4) i)));
SELECT tiles_cached, tiles FROM sheet.cache_entries WHERE sheet_id = :wide;
SELECT sheet.commit(:wide);
SELECT sheet.trash(:wide);
SELECT sheet.recover(:wide);
SELECT content FROM sheet.range(:wide, 'A1:B2');
SELECT tiles_cached, tiles FROM sheet.cache_entries WHERE sheet_id = :wide;
-- loaded from its log or from a version, a sheet takes as much room: that of its cells
SELECT sheet.create('journal cache, room', 64, 16) AS room \gset
SELECT last_seq FROM sheet.apply(:room, j_batch(VARIADIC ARRAY(SELECT j_set(i, 0, repeat('x', i)) FROM generate_series(1, 60) i)));
SELECT last_seq FROM sheet.apply(:room, j_batch(VARIADIC ARRAY(SELECT j_set(i, 0, repeat('y', 70 - i)) FROM generate_series(1, 60) i)));
SELECT sheet.trash(:room);
SELECT sheet.recover(:room);
SELECT count(*) FROM sheet.range(:room);
SELECT bytes AS log_bytes FROM sheet.cache_entries WHERE sheet_id = :room \gset
SELECT sheet.commit(:room);
SELECT sheet.trash(:room);
SELECT sheet.recover(:room);
SELECT count(*) FROM sheet.range(:room);
SELECT bytes - :log_bytes AS more FROM sheet.cache_entries WHERE sheet_id = :room;
-- tiles of a version that was taken back are in the index only: they are empty
SELECT sheet.create('journal cache, taken back', 1000, 100) AS back \gset
SELECT last_seq FROM sheet.apply(:back, j_batch(j_set(0, 0, 'stays'), j_set(900, 90, 'goes')));
BEGIN;
SELECT sheet.commit(:back);
ROLLBACK;
SELECT last_seq FROM sheet.apply(:back, j_batch(j_set(900, 90, '')));
SELECT sheet.commit(:back);
SELECT sheet.trash(:back);
SELECT sheet.recover(:back);
SELECT content FROM sheet.range(:back, 'A1:B2');
SELECT tiles_cached, tiles FROM sheet.cache_entries WHERE sheet_id = :back;
SELECT last_seq FROM sheet.apply(:back, j_batch(j_set(901, 90, 'comes')));
SELECT a1, content FROM sheet.range(:back);
SELECT tiles_cached, tiles FROM sheet.cache_entries WHERE sheet_id = :back;
SELECT sheet.commit(:back);
SELECT severity, what FROM sheet.fsck(:back, true);
