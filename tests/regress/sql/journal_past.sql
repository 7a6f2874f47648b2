-- A sheet as it was at a time: held against what its log says in plain SQL, and against its versions.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('past', 100, 10) AS id \gset
-- the last edit of each cell up to a time; a null style leaves the one before
CREATE FUNCTION p_model(id bigint, until timestamptz) RETURNS TABLE ("row" int, col int, content text, style text) LANGUAGE sql AS $$
	SELECT c."row", c.col, coalesce(c.content, ''), c.style FROM (
		SELECT e."row", e.col,
			(array_agg(e.new ORDER BY e.seq DESC) FILTER (WHERE e.kind = 'set'))[1] AS content,
			nullif((array_agg(e.style ORDER BY e.seq DESC) FILTER (WHERE e.style IS NOT NULL))[1], '') AS style
		FROM sheet.log_edits(id) e WHERE e.kind IN ('set', 'style') AND e.at <= until GROUP BY 1, 2) c
	WHERE coalesce(c.content, '') <> '' OR c.style IS NOT NULL
$$;
CREATE FUNCTION p_differences(id bigint, until timestamptz) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM (SELECT "row", col, content, style FROM sheet.at(id, until)) a
		FULL JOIN p_model(id, until) m USING ("row", col)
		WHERE (a.content, a.style) IS DISTINCT FROM (m.content, m.style)
$$;
-- batches of many edits and single ones, cells that are emptied, styles, versions in between
DO $$
DECLARE
	id bigint := (SELECT max(sheet_id) FROM sheet.list WHERE name = 'past');
BEGIN
	FOR i IN 1 .. 60 LOOP
		IF i % 3 = 0 THEN
			PERFORM sheet.apply(id, (SELECT j_batch(VARIADIC array_agg(j_set((i * 7 + k) % 90, k % 9, CASE WHEN (i + k) % 4 = 0 THEN '' ELSE 'b' || i || '-' || k END, CASE WHEN k % 5 = 0 THEN '{"i":' || i || '}' END))) FROM generate_series(0, 30) k));
		ELSE
			PERFORM sheet.set(id, i % 20, i % 5, 'single ' || i);
		END IF;
		IF i % 13 = 0 THEN
			PERFORM sheet.commit(id, 'v' || i);
		END IF;
	END LOOP;
END $$;
SELECT count(*) AS times, sum(p_differences(:id, at)) AS differences, sum(p_differences(:id, at - interval '1 microsecond')) AS just_before FROM sheet.log_edits(:id) WHERE seq % 3 = 0;
SELECT count(*) AS versions, sum((SELECT count(*) FROM (SELECT * FROM sheet.at(:id, v.at) EXCEPT ALL SELECT * FROM sheet.at(:id, v.version_id)) t)) AS differences,
	bool_and((SELECT count(*) FROM sheet.at(:id, v.at)) = (SELECT count(*) FROM sheet.at(:id, v.version_id))) AS same_number FROM sheet.versions(:id) v;
-- now and always, before there was anything, nothing
SELECT count(*) > 0 AS cells FROM sheet.at(:id, 'infinity'::timestamptz);
SELECT count(*) AS differences FROM ((SELECT * FROM sheet.at(:id, 'infinity'::timestamptz) EXCEPT ALL SELECT "row", col, a1, content, style FROM sheet.range(:id)) UNION ALL (SELECT "row", col, a1, content, style FROM sheet.range(:id) EXCEPT ALL SELECT * FROM sheet.at(:id, 'infinity'::timestamptz))) t;
SELECT count(*) = (SELECT count(*) FROM sheet.range(:id)) AS present FROM sheet.at(:id, clock_timestamp());
SELECT count(*) FROM sheet.at(:id, '-infinity'::timestamptz);
SELECT count(*) FROM sheet.at(:id, (SELECT min(at) - interval '1 microsecond' FROM sheet.log_edits(:id)));
SELECT j_error(format('SELECT * FROM sheet.at(%s, "time" => NULL)', :id));
SELECT j_error('SELECT * FROM sheet.at(987654321, now())');
-- a scan like that of the others, which makes its window smaller
EXPLAIN (COSTS OFF) SELECT content FROM sheet.at(7, '2020-01-01 00:00:00+00'::timestamptz) WHERE "row" = 3 ORDER BY "row", col;
SELECT count(*) = (SELECT count(*) FROM sheet.at(:id, 'infinity'::timestamptz) WHERE a1 = 'C3') AS same FROM (SELECT * FROM sheet.at(:id, 'infinity'::timestamptz) OFFSET 0) a WHERE a1 = 'C3';
-- rows and columns that come and go: the cells are where they were
SELECT sheet.create('past structure', 30, 10) AS s \gset
SELECT sheet.set_range(:s, 'A1', '{{a,b,c},{d,e,f},{g,h,i}}') > 0, sheet.commit(:s);
SELECT sheet.insert_rows(:s, 1, 2) > 0, sheet.set(:s, 'A2', 'new') > 0, sheet.commit(:s);
SELECT sheet.delete_columns(:s, 1) > 0, sheet.insert_columns(:s, 0) > 0, sheet.commit(:s);
SELECT sheet.delete_rows(:s, 0, 2) > 0, sheet.rollback(:s, 1);
SELECT v.version_id, string_agg(a.a1 || '=' || a.content, ' ' ORDER BY a."row", a.col) = (SELECT string_agg(b.a1 || '=' || b.content, ' ' ORDER BY b."row", b.col) FROM sheet.at(:s, v.version_id) b) AS same
	FROM sheet.versions(:s) v, sheet.at(:s, v.at) a GROUP BY 1 ORDER BY 1;
SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.at(:s, (SELECT at FROM sheet.log_edits(:s) WHERE kind = 'insert_rows' LIMIT 1));
-- own edits, taken back and not; others' snapshots
BEGIN;
SELECT sheet.set(:s, 'A1', 'mine') > 0;
SELECT content FROM sheet.at(:s, 'infinity'::timestamptz) WHERE a1 = 'A1';
SAVEPOINT one;
SELECT sheet.set(:s, 'A1', 'not mine') > 0;
ROLLBACK TO one;
SELECT content FROM sheet.at(:s, 'infinity'::timestamptz) WHERE a1 = 'A1';
ROLLBACK;
-- what has been trimmed is not known, and is not taken for an empty sheet
SELECT at AS second FROM sheet.versions(:s) WHERE version_id = 2 \gset
SELECT sheet.trim(:s, 2) > 0;
SELECT count(*) = (SELECT count(*) FROM sheet.at(:s, 2)) AS same FROM sheet.at(:s, :'second'::timestamptz);
\set VERBOSITY sqlstate
SELECT * FROM sheet.at(:s, :'second'::timestamptz - interval '1 microsecond');
\set VERBOSITY default
SELECT created_at AS made FROM sheet.sheet WHERE sheet_id = :s \gset
SELECT j_error(format('SELECT * FROM sheet.at(%s, %L::timestamptz)', :s, :'made')) ~ 'is not known as it was at' AS says_so;
-- before the sheet was made it had no cells, trimmed or not
SELECT count(*) FROM sheet.at(:s, :'made'::timestamptz - interval '1 microsecond');
SELECT count(*) FROM sheet.at(:s, '-infinity'::timestamptz);
-- the clock was two hours fast, and was set back: edits have times to come, and the present has them nevertheless
SELECT sheet.create('past clock', 10, 10) AS c \gset
SELECT sheet.set(:c, 'A1', 'before') > 0 AS set;
SELECT sheet.set(:c, 'A1', 'fast') > 0 AS set;
SELECT sheet.set(:c, 'A1', 'before') > 0 AS set, pg_sleep(0.01) IS NOT NULL AS slept;
INSERT INTO sheet.log_batch SELECT sheet_id, 5, 5, segment_id, at + interval '2 hours', epoch, origin, batch_no, data
	FROM sheet.log_batch WHERE sheet_id = :c AND first_seq = 3;
SELECT sheet.trash(:c), sheet.recover(:c); -- reads the end of the log again
SELECT sheet.set(:c, 'B1', 'after') > 0 AS set, sheet.set_property(:c, NULL, 'p', '1') > 0 AS property;
SELECT seq, at > now() + interval '1 hour' AS to_come FROM sheet.log_edits(:c) ORDER BY seq;
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, now());
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, clock_timestamp());
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, now() + interval '1 minute');
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, now() - interval '5 milliseconds');
SELECT key FROM sheet.properties(:c, now());
SELECT key FROM sheet.properties(:c, now() - interval '5 milliseconds');
SELECT sheet.commit(:c) > 0 AS committed, sheet.set(:c, 'C1', 'last') > 0 AS set;
BEGIN;
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, now());
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, now() - interval '1 microsecond');
SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.at(:c, statement_timestamp());
COMMIT;
SELECT what FROM sheet.fsck(:c, true);
-- who may not read the sheet
CREATE ROLE past_eve;
SET ROLE past_eve;
SELECT j_error(format('SELECT * FROM sheet.at(%s, now())', :s));
RESET ROLE;
DROP ROLE past_eve;
SELECT sheet.trash(:s), j_error(format('SELECT * FROM sheet.at(%s, now())', :s));
DROP FUNCTION p_differences, p_model;
