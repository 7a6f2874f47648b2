-- Conditions on the log are used while it is read: the answers are those of a plain table, with less work.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
\set ECHO none
-- A plan, with sheet ids as N, as PostgreSQL 15 writes it: later versions write rows=1.00, and other names of results.
CREATE FUNCTION log_plan(query text, id bigint, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		line := regexp_replace(regexp_replace(line, '(actual rows=\d+)\.00', '\1'), '\(InitPlan 1\)\.col1', '$0');
		line := replace(line, 'InitPlan 1 (returns $0)', 'InitPlan 1');
		RETURN NEXT regexp_replace(line, '((?:Sheet:|sheet_id =) (?:= )?''?)' || id || '\M', '\1N');
	END LOOP;
END $$;
CREATE FUNCTION log_work(query text, id bigint) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT * FROM log_plan(query, id, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF')
$$;
\set ECHO all
-- Two accounts, a sheet of three logs with batches of 40 edits, a second one beside it.
SELECT sheet.account_create('log ann', NULL, NULL) AS ann, sheet.account_create('log bob', NULL, NULL) AS bob, sheet.account_create('log stranger', NULL, NULL) AS stranger \gset
CREATE ROLE log_ann;
CREATE ROLE log_bob;
CREATE ROLE log_eve;
SELECT sheet.link_account('log ann', 'log_ann'), sheet.link_account('log bob', 'log_bob');
SET ROLE log_ann;
SELECT sheet.create('log one', 100, 26) AS one, sheet.create('log two', 100, 26) AS two \gset
RESET ROLE;
CREATE FUNCTION log_fill(id bigint, batches int, ann bigint, bob bigint) RETURNS bigint LANGUAGE sql AS $$
	SELECT max(last_seq) FROM generate_series(1, batches) b, LATERAL (SELECT j_batch(VARIADIC array_agg(
			CASE WHEN i % 20 = 19 THEN j_edit(2, ann, i, b % 7, '', '{"n":' || b || '}')
				ELSE j_edit(1, CASE WHEN (b + i) % 3 = 0 THEN ann ELSE bob END, (i * b) % 50, i % 7, 'é' || b || '.' || i) END
			ORDER BY i)) AS edits FROM generate_series(1, 40) i) e,
		LATERAL sheet.apply(id, e.edits, origin => b % 3)
$$;
SELECT log_fill(:one, 10, :ann, :bob) > 300 AS filled;
SELECT sheet.commit(:one, 'first');
SELECT log_fill(:one, 5, :ann, :bob) > 400 AS filled, log_fill(:two, 4, :ann, :bob) > 100 AS filled;
SELECT sheet.rollback(:one, 1);
SELECT sheet.set(:one, 'A200', 'below') > 0 AS set, sheet.set(:one, 'B7', 'by SQL') > 0 AS set;

-- A copy by the plain function (a scan numbers no rows).
SELECT log_plan(format('SELECT * FROM sheet.log_edits(%s) WITH ORDINALITY', :one), :one);
CREATE TABLE log_copy AS SELECT e.* FROM unnest(ARRAY[:one, :two]) s(id), sheet.log_edits(s.id) WITH ORDINALITY e;
SELECT count(*) AS differ, (SELECT count(DISTINCT username) FROM log_copy) AS usernames
	FROM log_copy c LEFT JOIN sheet.account a USING (uid) WHERE a.name IS DISTINCT FROM c.username;
SELECT count(*) > 700 AS many, count(DISTINCT kind), count(style) > 0 AS styles, count(DISTINCT segment_id), count(DISTINCT origin) FROM log_copy;

-- The same conditions on the view, on the function, and on the copy.
CREATE TABLE log_predicate (predicate text);
INSERT INTO log_predicate VALUES
	('true'), ('false'), ('seq > 300'), ('seq >= 300'), ('300 > seq'), ('seq = 77'), ('seq = 77::smallint'), ('seq < 1'), ('seq <= 1'),
	('seq BETWEEN 41 AND 43'), ('seq BETWEEN 100 AND 90'), ('seq > 9223372036854775807'), ('seq < -9223372036854775808'),
	('seq > 100 AND seq < 120 AND seq <> 110'), ('seq IN (5, 300, 301)'), ('seq = ANY (ARRAY[NULL, 7]::bigint[])'), ('seq = ANY (''{}''::int[])'),
	('seq <> ALL (ARRAY[1, 2])'), ('seq > NULL'), ('seq > 100.5'), ('seq % 100 = 7'), ('NOT seq > 5'), ('seq = 3 OR seq = 5'), ('seq IS NOT NULL'),
	('segment_id = 1'), ('segment_id = 2'), ('segment_id > 1'), ('segment_id < 3'), ('segment_id BETWEEN 2 AND 3'), ('segment_id = 0'), ('segment_id = 9'), ('segment_id = 2 AND seq > 350'),
	('at >= (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 200)'), ('at > (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 200)'),
	('at < (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 200)'), ('at = (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 95)'),
	('at BETWEEN (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 30) AND (SELECT at FROM log_copy WHERE sheet_id = # AND seq = 130)'),
	('at > now() + interval ''1 day'''), ('at < ''infinity'''), ('at > ''-infinity'''), ('at = ''infinity'''), ('at > ''infinity'''), ('at < current_date + 1'),
	('at > (SELECT at - interval ''1 microsecond'' FROM log_copy WHERE sheet_id = # AND seq = 60) AND seq < 99 AND segment_id = 1'),
	('uid = (SELECT min(uid) FROM log_copy WHERE username LIKE ''log %'')'), ('uid = 0'), ('uid > 0'), ('uid = -1'), ('username = ''log bob'''), ('username = ''log nobody'''), ('username = NULL'), ('username = ''log bob'' AND username = ''log ann'''), ('username = ''log bob'' AND seq > 300'), ('username > ''log'''), ('username IS NULL'), ('username LIKE ''%ann'''),
	('"row" = 3'), ('"row" = 3 AND col = 5'), ('"row" = 3::bigint'), ('"row" < 0'), ('"row" = -1'), ('col BETWEEN 2 AND 3'), ('"row" >= 40 AND col = 1 AND seq > 200'), ('"row" = col'),
	('a1 = ''D4'''), ('a1 = ''d4'''), ('a1 = ''$D$4'''), ('a1 = ''nonsense'''), ('a1 = '''''), ('a1 = ''D4'' AND seq > 100'), ('a1 = ''D4'' AND a1 = ''D5'''), ('a1 IN (''D4'', ''E5'')'), ('a1 IS NULL'), ('a1 = ''A200'''),
	('kind = ''set'''), ('kind = ''style'''), ('kind = ''commit'''), ('kind = ''rollback'''), ('kind = ''resize'''), ('kind = ''SET'''), ('kind <> ''set'''), ('kind = ''style'' AND col = 3'),
	('origin = 2'), ('origin > 0'), ('origin = 2 AND seq > 200'), ('new LIKE ''%9'''), ('old = '''''), ('old IS NULL'), ('style IS NOT NULL AND "row" = 19'), ('length(new) > 5 AND seq > 222');
CREATE FUNCTION log_digest(source text, predicate text, id bigint, tail text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	digest text;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, ''|'')), ''none'') FROM
		(SELECT sheet_id, seq, segment_id, at, uid, username, origin, kind, "row", col, a1, old, new, style FROM %s WHERE %s %s) t',
		source, replace(predicate, '#', id::text), tail) INTO digest;
	RETURN digest;
END $$;
SELECT count(*) AS predicates FROM log_predicate;
-- this one remains a query of its own inside the query that selects from it
CREATE VIEW log_barrier WITH (security_barrier) AS SELECT * FROM sheet.log_edits() WHERE true;
SELECT predicate AS differs, source, tail
	FROM log_predicate, (VALUES ('sheet.log'), (format('sheet.log_edits(%s)', :one)), ('sheet.log_edits()'), ('log_barrier')) s(source),
		(VALUES (' ORDER BY seq'), (' ORDER BY seq DESC'), (' ORDER BY at DESC LIMIT 13'), (' ORDER BY at LIMIT 1')) o(tail)
	WHERE log_digest(source, 'sheet_id = # AND (' || predicate || ')', :one, tail)
			<> log_digest('log_copy', 'sheet_id = # AND (' || predicate || ')', :one, tail);
-- counts alone, without columns to be formed
CREATE FUNCTION log_count(source text, predicate text, id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM %s WHERE sheet_id = %s AND (%s)', source, id, replace(predicate, '#', id::text)) INTO n;
	RETURN n;
END $$;
SELECT predicate AS differs FROM log_predicate WHERE log_count('sheet.log', predicate, :one) <> log_count('log_copy', predicate, :one);
-- over several sheets
SELECT predicate AS differs FROM log_predicate,
		(VALUES (' ORDER BY sheet_id, seq'), (' ORDER BY sheet_id DESC, at DESC'), (' ORDER BY sheet_id, seq DESC'), (' ORDER BY at, sheet_id LIMIT 20')) o(tail)
	WHERE log_digest('sheet.log', format('sheet_id IN (%s, %s) AND (', :one, :two) || predicate || ')', :one, tail)
		<> log_digest('log_copy', format('sheet_id IN (%s, %s) AND (', :one, :two) || predicate || ')', :one, tail);
SELECT count(*) = (SELECT count(*) FROM log_copy) AS same FROM sheet.log WHERE sheet_id BETWEEN :one AND :two;
SELECT count(*) FROM sheet.log WHERE sheet_id = :one AND sheet_id = :two;
SELECT count(*) FROM sheet.log_edits(:one) WHERE sheet_id = :two;
SELECT count(*) FROM sheet.log_edits(NULL);

-- What plans look like, and what they read.
SELECT log_plan(format('SELECT sheet_id, a1, new FROM sheet.log WHERE sheet_id = %s AND seq > 100 AND seq <= 200 AND new LIKE ''x%%''', :one), :one);
SELECT log_work(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s', :one), :one);
SELECT log_work(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s AND seq BETWEEN 50 AND 130', :one), :one);
SELECT log_work(format('SELECT seq, username, new FROM sheet.log WHERE sheet_id = %s ORDER BY seq DESC LIMIT 10', :one), :one);
SELECT log_work(format('SELECT at FROM sheet.log WHERE sheet_id = %s ORDER BY at LIMIT 10', :one), :one);
SELECT log_work(format('SELECT new FROM sheet.log WHERE sheet_id = %s AND a1 = ''D4''', :one), :one);
SELECT log_work(format('SELECT new FROM sheet.log WHERE sheet_id = %s AND segment_id = 2 AND kind = ''style''', :one), :one);
SELECT log_work(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s AND at < (SELECT at FROM log_copy WHERE sheet_id = %1$s AND seq = 60)', :one), :one);
SELECT log_work(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s AND origin = 2', :two), :two);
-- a sheet's batches are bisected for the beginning of a time, not read
SELECT count(*) FILTER (WHERE line ~ 'Batches Read: 1$') AS read, count(*) FILTER (WHERE line ~ 'Batches Skipped: [1-9][0-9]?$') AS skipped
	FROM log_work(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s AND at BETWEEN (SELECT at FROM log_copy WHERE sheet_id = %1$s AND seq = 250)
		AND (SELECT at FROM log_copy WHERE sheet_id = %1$s AND seq = 260)', :one), :one) line;
SELECT log_work(format('SELECT seq FROM sheet.log WHERE sheet_id = %s AND seq < 0', :one), :one);
-- nothing is looked at that was not asked for
SELECT log_plan(format('SELECT sum(seq) FROM sheet.log_edits(%s) WHERE "row" = 3', :one), :one, 'COSTS OFF, VERBOSE');
SELECT new, new AS again, seq + 1 AS next FROM sheet.log_edits(:one) WHERE seq = 77;

-- Joins: the other relation's columns are conditions.
CREATE TABLE log_wanted AS SELECT :one::bigint AS sheet_id, s AS seq, s + 1 AS upto FROM generate_series(3, 363, 90) s;
ANALYZE log_wanted;
SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT log_work(format('SELECT e.new FROM log_wanted w JOIN sheet.log_edits(%s) e USING (seq)', :one), :one);
SET enable_material = off;
SELECT log_work(format('SELECT count(e.seq) FROM log_wanted w LEFT JOIN sheet.log_edits(%s) e ON e.seq BETWEEN w.seq AND w.upto AND e.kind = ''set''', :one), :one);
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;
SELECT count(*), count(DISTINCT e.seq) FROM log_wanted w, LATERAL sheet.log_edits(w.sheet_id) e WHERE e.seq <= w.seq;
SELECT count(*), count(DISTINCT e.seq) FROM log_wanted w, log_copy e WHERE e.sheet_id = w.sheet_id AND e.seq <= w.seq;
SELECT log_plan(format('SELECT l.seq FROM sheet.log l WHERE sheet_id = %s AND username = ''log ann'' AND seq > 450', :one), :one);
SELECT count(*) FROM sheet.log_edits(:one) a JOIN sheet.log_edits(:one) b ON b.seq = a.seq - 1 AND b.col = a.col;
SELECT count(*) FROM log_copy a JOIN log_copy b ON b.seq = a.seq - 1 AND b.col = a.col AND a.sheet_id = b.sheet_id WHERE a.sheet_id = :one;
SELECT w.seq, (SELECT count(*) FROM sheet.log l WHERE l.sheet_id = w.sheet_id AND l.seq > w.seq AND l.seq <= w.upto) FROM log_wanted w;
SELECT w.seq, e.seq FROM log_wanted w, LATERAL (SELECT seq FROM sheet.log WHERE sheet_id = w.sheet_id AND seq < w.seq ORDER BY seq DESC LIMIT 2) e;
-- the view uses them as well; in a statement that may look again at its rows it stays a subquery, which uses constants
SELECT log_plan('SELECT l.new FROM log_wanted w JOIN sheet.log l USING (sheet_id, seq)', :one);
SELECT log_plan(format('UPDATE log_wanted w SET upto = 0 FROM sheet.log l WHERE l.sheet_id = %s AND l.seq = w.seq AND l.seq < 300', :one), :one);
SELECT log_plan(format('SELECT l.new FROM log_wanted w, (SELECT * FROM sheet.log) l WHERE l.sheet_id = %s AND l.seq = w.seq AND l.seq < 300 FOR UPDATE OF w', :one), :one);
SELECT log_plan(format('INSERT INTO log_wanted SELECT sheet_id, seq FROM sheet.log WHERE sheet_id = %s AND seq IN (SELECT max(seq) FROM sheet.log WHERE sheet_id = %1$s)', :one), :one);
SELECT log_plan(format('SELECT seq, new FROM log_barrier WHERE sheet_id = %s ORDER BY seq DESC LIMIT 10', :one), :one);
-- rows as a whole are left to the function
SELECT log_plan(format('SELECT e FROM sheet.log_edits(%s) e', :one), :one);
SELECT count(e) = count(*) AS whole FROM sheet.log_edits(:one) e;
UPDATE log_wanted w SET upto = length(e.new) FROM sheet.log_edits(:one) e WHERE e.seq = w.seq;
SELECT count(*) FROM log_wanted w JOIN log_copy c USING (sheet_id, seq) WHERE upto = length(new);

-- Prepared statements with generic plans, again with other values.
SET plan_cache_mode = force_generic_plan;
PREPARE log_of(bigint, bigint, text) AS SELECT seq, a1 FROM sheet.log WHERE sheet_id = $1 AND seq < $2 AND a1 = $3 ORDER BY seq DESC;
EXPLAIN (COSTS OFF) EXECUTE log_of(:one, 100, 'D4');
EXECUTE log_of(:one, 100, 'D4');
EXECUTE log_of(:one, 300, 'F6');
EXECUTE log_of(:one, 300, 'd4');
EXECUTE log_of(:one, NULL, 'D4');
EXECUTE log_of(NULL, 100, 'D4');
PREPARE log_in(bigint, bigint[]) AS SELECT seq FROM sheet.log_edits($1) WHERE uid = 0 AND seq = ANY ($2);
EXECUTE log_in(:one, '{1,2,NULL,3}');
RESET plan_cache_mode;

-- Cursors; edits of the own transaction, and of its subtransactions.
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT seq FROM sheet.log WHERE sheet_id = :one AND segment_id = 1;
FETCH 3 FROM back;
SELECT sheet.set(:one, 'C9', 'meanwhile') > 0 AS set;
FETCH BACKWARD 2 FROM back;
FETCH LAST FROM back;
FETCH RELATIVE -1 FROM back;
DECLARE plain NO SCROLL CURSOR FOR SELECT new FROM sheet.log_edits(:one) WHERE a1 = 'C9' ORDER BY seq DESC;
FETCH 1 FROM plain;
SAVEPOINT s;
SELECT sheet.set(:one, 'C9', 'gone') > 0 AS set;
SELECT new FROM sheet.log WHERE sheet_id = :one AND a1 = 'C9' ORDER BY seq DESC LIMIT 1;
ROLLBACK TO s;
SELECT new FROM sheet.log WHERE sheet_id = :one AND a1 = 'C9' ORDER BY seq DESC LIMIT 1;
SELECT new FROM sheet.history(:one, 'c9') LIMIT 2;
DECLARE held CURSOR WITH HOLD FOR SELECT count(*) FROM sheet.log WHERE sheet_id = :one AND new = 'meanwhile';
COMMIT;
FETCH ALL FROM held;
CLOSE held;
-- an error while a scan is open
SELECT 1 / (seq - 5) FROM sheet.log_edits(:one) WHERE seq < 9;

-- Who may read what. The estimate of a plan does not tell the size of somebody else's sheet either.
\set VERBOSITY terse
SELECT sheet.share(:two, 'log bob', 'viewer');
CREATE FUNCTION log_leak(bigint, text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN
	IF $1 NOT IN (SELECT unnest(ARRAY[two, mine]) FROM log_ids) THEN RAISE NOTICE 'leaked %', $2; END IF;
	RETURN true;
END $$;
CREATE FUNCTION log_leak_name(text) RETURNS boolean LANGUAGE plpgsql STRICT COST 0.0001 AS $$ BEGIN
	IF $1 NOT IN ('log ann', 'log bob') THEN RAISE NOTICE 'leaked %', $1; END IF;
	RETURN true;
END $$;
CREATE VIEW log_of_bob WITH (security_barrier) AS SELECT * FROM sheet.log WHERE username LIKE '%bob';
GRANT SELECT ON log_of_bob TO log_bob;
SET ROLE log_bob;
SELECT DISTINCT sheet_id = :two AS two FROM sheet.log;
SELECT count(*) FROM sheet.log WHERE sheet_id = :one;
SELECT count(*) > 0 AS some FROM sheet.log_edits(:two);
SELECT DISTINCT sheet_id = :two AS two FROM sheet.log_edits();
CREATE TEMP TABLE log_ids AS SELECT :one::bigint AS one, :two::bigint AS two, sheet.create('log bob''s') AS mine;
DO $$ BEGIN PERFORM count(*) FROM sheet.log_edits((SELECT one FROM log_ids)); EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE 'denied'; END $$;
DO $$ BEGIN PERFORM count(*) FROM sheet.log_edits((SELECT one FROM log_ids)) WITH ORDINALITY; EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE 'denied'; END $$;
DO $$ BEGIN PERFORM count(*) FROM sheet.log_edits((SELECT one FROM log_ids)) WHERE seq < 0; EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE 'denied'; END $$;
DO $$ BEGIN PERFORM sheet.history((SELECT one FROM log_ids), 'A1'); EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE 'denied'; END $$;
SELECT count(*) FROM log_plan(format('SELECT * FROM sheet.log WHERE sheet_id = %s', :one), :one, 'COSTS ON') line WHERE line ~ 'rows=1000 ';
SELECT count(*) FROM log_ids i, LATERAL (SELECT * FROM sheet.log l WHERE l.sheet_id = i.one) l;
-- a leaky function sees no more rows than the view gives
SELECT count(*) > 0 AS some FROM sheet.log WHERE log_leak(sheet_id, new) AND seq > 0;
SELECT count(*) > 0 AS some FROM sheet.log WHERE log_leak_name(username);
-- nor more than another view leaves of them
SELECT count(*) > 0 AS some FROM log_of_bob WHERE log_leak_name(CASE username WHEN 'log bob' THEN 'log ann' ELSE 'row of ' || username END);
SET ROLE log_eve;
SELECT count(*) FROM sheet.log;
SELECT count(*) FROM sheet.log_edits();
-- in the trash: for owners; open by its id: by the function only
SET ROLE log_ann;
SELECT sheet.trash(:two);
RESET ROLE;
UPDATE sheet.sheet SET link_role = 'viewer' WHERE sheet_id = :one;
SET ROLE log_ann;
SELECT count(DISTINCT sheet_id) FROM sheet.log WHERE sheet_id IN (:one, :two);
SELECT count(*) > 0 AS some FROM sheet.log_edits(:two);
SET ROLE log_bob;
SELECT count(*) FROM sheet.log WHERE sheet_id IN (:one, :two);
SELECT count(*) > 400 AS some FROM sheet.log_edits(:one);
DO $$ BEGIN PERFORM count(*) FROM sheet.log_edits((SELECT two FROM log_ids)); EXCEPTION WHEN SQLSTATE 'ST001' THEN RAISE NOTICE 'in the trash'; END $$;
-- the same plan for another role; without the right to execute the function
RESET ROLE;
PREPARE log_count AS SELECT count(*) > 0 FROM sheet.log_edits() WHERE seq = 2;
EXECUTE log_count;
SET ROLE log_eve;
EXECUTE log_count;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION sheet.log_edits() FROM PUBLIC;
SET ROLE log_eve;
EXECUTE log_count;
SELECT count(*) FROM sheet.log;
RESET ROLE;
GRANT EXECUTE ON FUNCTION sheet.log_edits() TO PUBLIC;
SELECT count(*) FROM sheet.log_edits(-1);
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT count(*) > 400 AS some FROM sheet.log WHERE sheet_id = :one;
COMMIT;

-- A trimmed log begins later.
DELETE FROM log_copy;
INSERT INTO log_copy SELECT e.* FROM sheet.log_edits(:one) WITH ORDINALITY e
	WHERE e.seq > (SELECT seq FROM sheet.versions(:one) WHERE version_id = 1);
SELECT sheet.trim(:one, 1) > 300 AS trimmed;
SELECT min(c.seq) = min(l.seq) AS same, count(l.seq) > 100 AS some, min(l.seq) > 300 AS later
	FROM log_copy c LEFT JOIN LATERAL (SELECT * FROM sheet.log l WHERE l.sheet_id = c.sheet_id AND l.seq = c.seq) l ON true WHERE c.sheet_id = :one;
SELECT predicate AS differs, tail
	FROM (SELECT * FROM log_predicate UNION ALL SELECT 'seq ' || op || ' ' || s FROM (VALUES ('<'), ('<='), ('='), ('>='), ('>')) o(op), generate_series(398, 406, 2) s
			UNION ALL SELECT 'at ' || op || ' (SELECT at FROM log_copy WHERE sheet_id = # AND seq = ' || s || ')' FROM (VALUES ('<'), ('<='), ('='), ('>='), ('>')) o(op),
				(SELECT min(seq) + 41 * i AS s FROM log_copy, generate_series(0, 4) i WHERE sheet_id = :one GROUP BY i) s) p(predicate),
		(VALUES (' ORDER BY seq'), (' ORDER BY at DESC')) o(tail)
	WHERE log_digest('sheet.log', 'sheet_id = # AND (' || predicate || ')', :one, tail)
			<> log_digest('log_copy', 'sheet_id = # AND (' || predicate || ')', :one, tail);

-- what only counts gets no rows; with anything more it is an aggregate as always
SELECT * FROM log_plan(format('SELECT count(*), count(*) + 1 FROM sheet.log WHERE sheet_id = %s AND "row" < 5', :one), :one);
SELECT * FROM log_plan(format('SELECT count(*) FROM sheet.log WHERE sheet_id = %s HAVING count(*) > 1', :one), :one);
SELECT * FROM log_plan(format('SELECT count(new) FROM sheet.log WHERE sheet_id = %s', :one), :one);
SELECT * FROM log_plan(format('SELECT count(*) FILTER (WHERE "row" < 5) FROM sheet.log WHERE sheet_id = %s', :one), :one);
SELECT * FROM log_plan(format('SELECT count(*) FROM (SELECT 1 FROM sheet.log WHERE sheet_id = %s LIMIT 10) l', :one), :one);
SELECT count(*) FROM (SELECT 1 FROM sheet.log WHERE sheet_id = :one LIMIT 10) l;
-- again and again, with other sheets and none
SELECT i, (SELECT count(*) FROM sheet.log l WHERE l.sheet_id = s AND l.seq > i) = (SELECT count(seq) FROM sheet.log l WHERE l.sheet_id = s AND l.seq > i) AS right
	FROM (VALUES (1, :one), (2, :two), (3, NULL), (4, :one)) v(i, s);
PREPARE log_counted(bigint, text) AS SELECT count(*) FROM sheet.log WHERE sheet_id = $1 AND kind = $2;
SET plan_cache_mode = force_generic_plan;
EXECUTE log_counted(:one, 'commit');
EXECUTE log_counted(NULL, 'commit');
EXECUTE log_counted(:one, 'commit');
DEALLOCATE log_counted;
RESET plan_cache_mode;

-- accounts of one place in the memory of names
SELECT last_seq > 0 AS applied FROM sheet.apply(:one, j_batch(j_edit(1, :ann, 1, 1, 'a'), j_edit(1, :ann + 256, 1, 1, 'b'), j_edit(1, :ann, 1, 1, 'c'), j_edit(1, 0, 1, 1, 'd')));
SELECT new, username FROM sheet.log WHERE sheet_id = :one AND a1 = 'B2' ORDER BY seq DESC LIMIT 4;

SELECT sheet.purge(s) FROM unnest(ARRAY[:one, :two]) s;
SELECT count(*) FROM sheet.log WHERE sheet_id IN (:one, :two);
SELECT sheet.purge(mine) FROM log_ids;
DROP VIEW log_barrier, log_of_bob;
DROP TABLE log_ids, log_copy, log_predicate, log_wanted;
DROP FUNCTION log_plan, log_work, log_fill, log_digest, log_count, log_leak, log_leak_name;
SELECT sheet.link_account('log ann', NULL), sheet.link_account('log bob', NULL);
DROP ROLE log_ann, log_bob, log_eve;
