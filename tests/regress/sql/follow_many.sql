-- Followers that are far behind: more events than are taken at once, and more sheets than one answer has.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
CREATE TABLE follow_sheets AS SELECT sheet.create('followed ' || n, 10, 10) AS sheet_id FROM generate_series(1, 1500) n;
SELECT f."cursor" AS before FROM sheet.follow(9, NULL, 0) f \gset
SELECT f."cursor" AS "cursor", lost, sheet_ids FROM sheet.follow(9, :before, 0) f \gset at_
SELECT :at_cursor = :before AS still, :'at_lost' AS lost, :'at_sheet_ids' AS sheet_ids;
-- each sheet is edited twice, and every tenth one renamed in between; of the edits one commit tells the last seq
SELECT count(sheet.set(sheet_id, 0, 0, 'x')) FROM follow_sheets;
SELECT count(*) FROM follow_sheets s, LATERAL sheet.rename(s.sheet_id, 'renamed ' || s.sheet_id) WHERE s.sheet_id % 10 = 0;
SELECT count(sheet.set(sheet_id, 0, 0, 'y')) FROM follow_sheets;
CREATE TABLE follow_answers (no int, "cursor" bigint, lost boolean, sheet_ids bigint[], seqs bigint[]);
CREATE FUNCTION follow_all("from" bigint) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 10 LOOP
		INSERT INTO follow_answers SELECT i, f.* FROM sheet.follow(9, "from", 0) f RETURNING "cursor" INTO "from";
		IF (SELECT sheet_ids = '{}' FROM follow_answers WHERE no = i) THEN RETURN i; END IF;
	END LOOP;
END
$$;
SELECT follow_all(:before);
SELECT no, lost, cardinality(sheet_ids) AS told, "cursor" - :before AS events FROM follow_answers ORDER BY no;
-- within an answer a sheet is told once; together they tell of all sheets, with their last seqs
SELECT no FROM follow_answers a, unnest(sheet_ids, seqs) t(sheet_id, seq) GROUP BY no, sheet_id, seq = -1 HAVING count(*) > 1;
SELECT count(*) AS sheets, count(*) FILTER (WHERE t.seq IS DISTINCT FROM 3) AS wrong
	FROM follow_sheets s LEFT JOIN (SELECT sheet_id, max(seq) AS seq FROM follow_answers a, unnest(sheet_ids, seqs) t(sheet_id, seq) WHERE seq > 0 GROUP BY 1) t USING (sheet_id);
SELECT count(DISTINCT sheet_id) AS renamed FROM follow_answers a, unnest(sheet_ids, seqs) t(sheet_id, seq) WHERE seq = -1;
-- what is behind the ring is lost
SELECT lost, sheet_ids, f."cursor" > :before AS further FROM sheet.follow(9, :before - 20000, 0) f;
SELECT lost, sheet_ids FROM sheet.follow(9, :before + 1000000000, 0);
