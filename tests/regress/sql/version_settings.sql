-- Settings of the versions that are made by themselves: units, ranges, who may change them; and the view that counts.
SELECT name, boot_val, unit, vartype, context, min_val, max_val FROM pg_settings WHERE name LIKE 'pg_sheet.version%' ORDER BY name;
SHOW pg_sheet.version_interval;
\set VERBOSITY terse
SET pg_sheet.version_edits = 10;
ALTER SYSTEM SET pg_sheet.version_edits = -1;
ALTER SYSTEM SET pg_sheet.version_bytes = '64 edits';
\set VERBOSITY sqlstate
ALTER SYSTEM SET pg_sheet.version_interval = '2d';
\set VERBOSITY default
-- versions by cause
SELECT by_commit, by_rollback FROM sheet.version_stats \gset
SELECT sheet.create('version settings', 10, 10) AS id \gset
SELECT sheet.set(:id, 'A1', 'one');
SELECT sheet.commit(:id, 'first');
SELECT sheet.set(:id, 'A1', 'two');
SELECT sheet.rollback(:id, 1);
SELECT version_id, label, cause FROM sheet.versions(:id);
SELECT version_id FROM sheet.versions(:id) WHERE cause IN ('commit', 'rollback');
SELECT version_id, cause FROM sheet.version WHERE sheet_id = :id;
SELECT by_commit - :by_commit AS commits, by_rollback - :by_rollback AS rollbacks FROM sheet.version_stats;
-- what is rolled back has not been made
BEGIN;
SELECT sheet.set(:id, 'A1', 'three');
SELECT sheet.commit(:id);
ROLLBACK;
SELECT by_commit - :by_commit AS commits FROM sheet.version_stats;
-- the commit record says why, so that a version that is lost can be written as it was
SET pg_sheet.allow_log_delete = on;
DELETE FROM sheet.version WHERE sheet_id = :id AND version_id = 2;
SELECT severity, what, repaired FROM sheet.fsck(:id, true, true);
SELECT version_id, label, cause FROM sheet.versions(:id);
-- a cause that is not the log's
CREATE TEMP TABLE t AS SELECT * FROM sheet.version WHERE sheet_id = :id AND version_id = 2;
DELETE FROM sheet.version WHERE sheet_id = :id AND version_id = 2;
INSERT INTO sheet.version SELECT sheet_id, version_id, seq, at, uid, label, rows, cols, tiles, digest, 0 FROM t;
SELECT severity, what, repaired FROM sheet.fsck(:id, true, true);
SELECT version_id, label, cause FROM sheet.versions(:id);
DROP TABLE t;
SELECT sheet.purge(:id);
