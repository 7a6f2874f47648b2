-- sheet.fsck and what is noted of clients of protocol v2: rows of nobody go, times to come are now, numbers that cannot be stay.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SET timezone = 'UTC';
SELECT sheet.account_create('fsck_anna', 'x', 'hash') AS anna \gset
SELECT sheet.account_create('fsck_ben', 'x', 'hash') AS ben \gset
SELECT sheet.create('fsck clients', 10, 5) AS id \gset
SELECT sheet.create('fsck other clients', 10, 5) AS other \gset
SELECT duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a')), clients => ARRAY[:anna, 7, 1, 2, :anna, 8, 1, 1, :ben, 7, 5, 5]);
SELECT duplicate FROM sheet.apply(:other, j_batch(j_set(0, 0, 'a')), clients => ARRAY[:anna, 7, 1, 2]);
SELECT what FROM sheet.fsck(:id);
-- as old as it may be, and clocks that differ a little: nothing to find
UPDATE sheet.client SET at = now() - interval '400 days' WHERE sheet_id = :id AND client = 8;
UPDATE sheet.client SET at = now() + interval '30 seconds' WHERE sheet_id = :id AND uid = :ben;
SELECT what FROM sheet.fsck(:id, true);
-- what can be wrong
UPDATE sheet.client SET at = '2100-01-01' WHERE sheet_id = :id AND uid = :anna AND client = 7;
UPDATE sheet.client SET acknowledged = 9007199254740992 WHERE sheet_id = :id AND client = 8;
INSERT INTO sheet.client VALUES (:id, :anna, -3, 4, now()), (:id, :anna, 12, 0, now()), (:id, :ben, 9, 1, 'infinity');
INSERT INTO sheet.client VALUES (:id, 8888888, 1, 1, now()), (:id, 8888888, 2, 1, now()), (:id, 8888889, 1, 1, '2100-01-01');
INSERT INTO sheet.client VALUES (:other, 8888888, 1, 1, now()), (7777777, 8888888, 1, 1, now()), (7777777, :anna, 1, 1, now()), (7777778, :anna, 1, 1, now());
CREATE TEMPORARY VIEW here AS SELECT CASE sheet_id WHEN :id THEN 'id' WHEN :other THEN 'other' ELSE sheet_id::text END AS sheet,
	CASE uid WHEN :anna THEN 'anna' WHEN :ben THEN 'ben' ELSE uid::text END AS account, client, acknowledged,
	CASE WHEN at = 'infinity' THEN 'never' WHEN at > now() + interval '1 minute' THEN 'later' WHEN at < now() - interval '1 day' THEN 'old' ELSE 'now' END AS at
	FROM sheet.client WHERE sheet_id IN (:id, :other, 7777777, 7777778) ORDER BY sheet_id, uid, client;
CREATE FUNCTION pg_temp.look(sheet bigint, repair boolean) RETURNS TABLE (severity text, what text, place text, repaired boolean) LANGUAGE sql AS $$
	SELECT f.severity, f.what, coalesce((SELECT regexp_replace(f.place, '\m' || a.uid || '$', replace(a.name, 'fsck_', '')) FROM sheet.account a
		WHERE a.name IN ('fsck_anna', 'fsck_ben') AND f.place LIKE '% account ' || a.uid), f.place), f.repaired FROM sheet.fsck(sheet, false, repair) f $$;
SELECT * FROM here;
-- looking changes nothing
SELECT * FROM pg_temp.look(:id, false);
SELECT count(*), count(*) FILTER (WHERE at = 'later') AS later FROM here;
-- versions and edits are sound: a trim goes on
SELECT sheet.commit(:id) AS version_id \gset
SELECT sheet.trim(:id, :version_id) > 0 AS trimmed;
-- repair: what is safe, and a second run finds what is left
SELECT * FROM pg_temp.look(:id, true);
SELECT * FROM pg_temp.look(:id, true);
SELECT * FROM here;
-- all sheets: those that are gone, too
SELECT nullif(sheet_id, :other) AS sheet_id, severity, what, place, repaired FROM sheet.fsck(NULL, false, false) WHERE sheet_id IN (:other, 7777777, 7777778);
SELECT what, repaired FROM sheet.fsck(NULL) WHERE sheet_id IN (:other, 7777777, 7777778);
SELECT * FROM here WHERE sheet <> 'id';
SELECT what FROM sheet.fsck(NULL) WHERE sheet_id IN (:other, 7777777, 7777778);
-- what was repaired holds: the operation of anna's client 7 is still acknowledged, and the row goes a week from now
SELECT duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'b')), clients => ARRAY[:anna, 7, 2, 2]);
-- a transaction that may not write
BEGIN READ ONLY;
SELECT what FROM sheet.fsck(:id, false, false);
ROLLBACK;
UPDATE sheet.client SET at = 'infinity' WHERE sheet_id = :id AND uid = :ben;
BEGIN READ ONLY;
SELECT what FROM sheet.fsck(:id, false, false);
SELECT what FROM sheet.fsck(:id, false, true);
ROLLBACK;
SELECT what, repaired FROM sheet.fsck(:id) WHERE severity <> 'error';
SELECT count(sheet.trash(s)) FROM unnest(ARRAY[:id, :other]) s;
SELECT count(sheet.purge(s)) FROM unnest(ARRAY[:id, :other]) s;
DELETE FROM sheet.account WHERE name LIKE 'fsck\_%';
