-- Calendars: the tables of tasks follow the cells.
--
-- refresh_calendar() reads the rows that have changed since done_seq and gives each task its series. A series is a version
-- of a task: it is never changed. If the times or the persons of a task change, its series ends (until_at), and another one
-- begins. If only its rule ends earlier, until_at alone becomes earlier. Readers pass over what begins at until_at or later.
--
-- Occurrences are made for some months at once and by the timer's worker for the rest, in portions.

CREATE FUNCTION sheet.lock_calendar(sheet_id bigint, nowait boolean) RETURNS boolean
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_lock_calendar';
COMMENT ON FUNCTION sheet.lock_calendar(bigint, boolean) IS
	'Internal: takes the sheet lock until the end of the transaction. nowait: returns false if another transaction has it.';

CREATE TYPE sheet.calendar_row AS (row_no integer, cells jsonb);
COMMENT ON TYPE sheet.calendar_row IS 'The cells of a row by the names of the header, in lower case.';

CREATE FUNCTION sheet.calendar_header(sheet bigint) RETURNS TABLE (col integer, name text, letters text)
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT DISTINCT ON (2) r.col, lower(btrim(r.content)), rtrim(r.a1, '1') FROM sheet.range(sheet, '1:1') r ORDER BY 2, 1
$$;
COMMENT ON FUNCTION sheet.calendar_header(bigint) IS 'Internal: the columns of a calendar, by their names in lower case.';

CREATE FUNCTION sheet.calendar_uid_column(sheet bigint) RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	letters text := (SELECT h.letters FROM sheet.calendar_header(sheet) h WHERE h.name = 'uid');
BEGIN
	IF letters IS NULL THEN
		-- behind all contents, since a column without a name may have some
		PERFORM sheet.set(sheet, 0, (SELECT coalesce(max(r.col), -1) + 1 FROM sheet.range(sheet, formulas => true) r), 'UID');
		letters := (SELECT h.letters FROM sheet.calendar_header(sheet) h WHERE h.name = 'uid');
	END IF;
	RETURN letters;
END
$$;
COMMENT ON FUNCTION sheet.calendar_uid_column(bigint) IS
	'Internal: the letters of the column UID, which is added if somebody has removed it.';

CREATE FUNCTION sheet.calendar_zone(sheet bigint) RETURNS text
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce((SELECT p.value #>> '{}' FROM sheet.properties(sheet) p WHERE p.target IS NULL AND p.key = 'timezone'), 'UTC')
$$;
COMMENT ON FUNCTION sheet.calendar_zone(bigint) IS 'Internal: the time zone of the sheet.';

CREATE FUNCTION sheet.row_runs(row_nos integer[]) RETURNS TABLE (low integer, high integer)
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT min(n.row_no), max(n.row_no)
			FROM (SELECT u.row_no, u.row_no - row_number() OVER (ORDER BY u.row_no) AS run FROM unnest(row_nos) u (row_no)) n
			GROUP BY n.run;
	END;
COMMENT ON FUNCTION sheet.row_runs(integer[]) IS 'Internal: these rows, which are distinct, as runs of adjacent ones.';

CREATE FUNCTION sheet.is_task_column(name text) RETURNS boolean
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT name IN ('title', 'start', 'end', 'repeats', 'who', 'place', 'reminder', 'time zone', 'except', 'dates', 'notes', 'uid', 'instance');
	END;
COMMENT ON FUNCTION sheet.is_task_column(text) IS 'Internal: whether calendars know the column of this name. Others have contents of any kind.';

-- An apostrophe before a text is not a part of it, but in columns that calendars do not know. A row without title and start is no task. A
-- content that cannot be a UID counts as empty.
CREATE FUNCTION sheet.calendar_rows(sheet bigint, row_nos integer[]) RETURNS SETOF sheet.calendar_row
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	columns jsonb := (SELECT jsonb_object_agg(h.col, h.name) FROM sheet.calendar_header(sheet) h);
BEGIN
	-- adjacent rows are read at once
	RETURN QUERY SELECT c."row", coalesce(jsonb_object_agg(columns->>c.col::text, t.text)
			FILTER (WHERE columns->>c.col::text <> 'uid' OR octet_length(t.text) <= 255 AND t.text !~ '[[:cntrl:]]'), '{}')
		FROM sheet.row_runs(array_remove(row_nos, 0)) r,
			sheet.range(sheet, format('%s:%s', r.low + 1, r.high + 1)) c, LATERAL (SELECT CASE WHEN sheet.is_task_column(columns->>c.col::text)
				THEN btrim(regexp_replace(c.content, '^''', '')) ELSE c.content END) t (text)
		WHERE columns ? c.col::text AND c.content <> ''
		GROUP BY c."row" HAVING bool_or(columns->>c.col::text IN ('title', 'start')) ORDER BY c."row";
END
$$;
COMMENT ON FUNCTION sheet.calendar_rows(bigint, integer[]) IS
	'Internal: the tasks of these rows of a calendar (from 0), in the order of rows.';

-- ---- persons ----

CREATE FUNCTION sheet.find_guest_list(persons bigint[], owner bigint) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sorted bigint[] := ARRAY(SELECT DISTINCT p.uid FROM unnest(persons) p (uid) ORDER BY 1);
	-- Calendars of one owner share lists: nobody waits for somebody else.
	name bytea := sha256(format('%s:%s', owner, array_to_string(sorted, ','))::bytea);
	list bigint;
BEGIN
	-- Until the end of the transaction the worker does not remove it. One that the worker is removing is passed over.
	SELECT l.list_id INTO list FROM sheet.guest_list l WHERE l.digest = name ORDER BY l.list_id LIMIT 1 FOR KEY SHARE SKIP LOCKED;
	IF list IS NULL THEN
		INSERT INTO sheet.guest_list (uids, digest) VALUES (sorted, name) RETURNING list_id INTO list;
		INSERT INTO sheet.guest (uid, list_id) SELECT p.uid, list FROM unnest(sorted) p (uid);
	END IF;
	RETURN list;
END
$$;
COMMENT ON FUNCTION sheet.find_guest_list(bigint[], bigint) IS 'Internal: the list of these accounts, which is made if there is none.';

-- ---- series ----

CREATE FUNCTION sheet.end_series(ended bigint[]) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	UPDATE sheet.series s SET until_at = '-infinity', expanded_to = 'infinity', garbage = true
		WHERE s.series_id = ANY (ended) AND s.until_at > '-infinity'
$$;
COMMENT ON FUNCTION sheet.end_series(bigint[]) IS 'Internal: nothing of these series is valid any more.';

CREATE FUNCTION sheet.rule_without_end(rule text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT string_agg(p.part, ';' ORDER BY p.part) FROM string_to_table(rule, ';') p (part)
		WHERE p.part NOT LIKE 'UNTIL=%' AND p.part NOT LIKE 'COUNT=%';
	END;
COMMENT ON FUNCTION sheet.rule_without_end(text) IS 'Internal: the parts of a rule but for UNTIL and COUNT, sorted.';

CREATE FUNCTION sheet.rule_until(rule text, zone text) RETURNS timestamptz
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
	until text := substring(rule FROM '(?:^|;)UNTIL=([^;]*)');
BEGIN
	RETURN CASE WHEN until ~ 'Z$' THEN to_timestamp(until, 'YYYYMMDD"T"HH24MISS"Z"')
		WHEN until ~ 'T' THEN sheet.zone_time(to_timestamp(until, 'YYYYMMDD"T"HH24MISS')::timestamp, zone)
		ELSE sheet.zone_time(to_date(until, 'YYYYMMDD') + time '23:59:59', zone) END;
END
$$;
COMMENT ON FUNCTION sheet.rule_until(text, text) IS 'Internal: the last moment of UNTIL; null: the rule has none.';

CREATE FUNCTION sheet.calendar_horizon(rule text) RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT date_trunc('month', now(), 'UTC') + CASE WHEN rule ~ 'FREQ=(MONTHLY|YEARLY)' THEN interval '10 years' ELSE interval '2 years' END;
	END;
COMMENT ON FUNCTION sheet.calendar_horizon(text) IS
	'Internal: until when a rule without an end is expanded: ten years if it is monthly or yearly, otherwise two.';

CREATE FUNCTION sheet.last_possible(rule text, starts timestamp, zone text) RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN NOT sheet.check_rule(rule, starts, zone) THEN sheet.calendar_horizon(rule)
			ELSE coalesce(sheet.rule_until(rule, zone), 'infinity') END;
	END;
COMMENT ON FUNCTION sheet.last_possible(text, timestamp, text) IS
	'Internal: a time behind the occurrences of a rule that are made. One with COUNT may have any.';

CREATE FUNCTION sheet.put_series(task sheet.task, f sheet.task_fields, persons bigint) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	most CONSTANT integer := 20000; -- occurrences of a task
	s sheet.series;
	cut_at timestamptz;
BEGIN
	SELECT * INTO s FROM sheet.series o WHERE o.series_id = task.series_id;
	IF FOUND AND (s.starts, s.lasts, s.all_day, s.zone, s.list_id) = (f.starts, f.lasts, f.all_day, f.zone, persons)
			AND s.dates IS NOT DISTINCT FROM f.dates AND s.until_at > '-infinity' THEN
		IF s.rule IS NOT DISTINCT FROM f.rule THEN
			RETURN s.series_id;
		END IF;
		-- Of rules that differ in their end, the shorter one has the first occurrences of the other.
		cut_at := sheet.rule_until(f.rule, f.zone) + interval '1 s';
		IF sheet.rule_without_end(s.rule) = sheet.rule_without_end(f.rule) AND s.dates IS NULL AND cut_at <= s.until_at
				AND (NOT sheet.check_rule(s.rule, s.starts, s.zone) OR
					(SELECT count(*) FROM sheet.occurrences(f.starts, f.rule, f.zone, max_rows => most + 1))
					<= (SELECT count(*) FROM sheet.occurrences(s.starts, s.rule, s.zone, max_rows => most))) THEN
			UPDATE sheet.series o SET until_at = cut_at, rule = f.rule, garbage = true,
					last_end = least(o.last_end, cut_at + o.lasts + interval '1 day'), -- a day may have 25 hours
					expanded_to = CASE WHEN o.expanded_to >= cut_at THEN 'infinity' ELSE o.expanded_to END
				WHERE o.series_id = s.series_id;
			RETURN s.series_id;
		END IF;
	END IF;
	IF f.rule IS NOT NULL AND sheet.last_possible(f.rule, f.starts, f.zone) > f.starts + most * interval '1 day'
			AND (SELECT count(*) FROM sheet.occurrences(f.starts, f.rule, f.zone, NULL, sheet.last_possible(f.rule, f.starts, f.zone),
				max_rows => most + 1)) > most THEN
		RAISE EXCEPTION 'Repeats: the task has more than % occurrences', most USING ERRCODE = '22023';
	END IF;
	PERFORM sheet.end_series(ARRAY[task.series_id]);
	INSERT INTO sheet.series (sheet_id, task_id, list_id, starts, lasts, all_day, zone, zone_rules, rule, dates)
		VALUES (task.sheet_id, task.task_id, persons, f.starts, f.lasts, f.all_day, f.zone, sheet.zone_rules(f.zone), f.rule, f.dates)
		RETURNING series_id INTO s.series_id;
	RETURN s.series_id;
END
$$;
COMMENT ON FUNCTION sheet.put_series(sheet.task, sheet.task_fields, bigint) IS
	'Internal: the valid series of a task, which ends an earlier one if they differ. 22023: too many occurrences.';

-- ---- occurrences ----

-- Returns the number of occurrences that were added.
CREATE FUNCTION sheet.expand_series(s sheet.series, upto timestamptz) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	ends boolean := s.rule IS NULL OR sheet.check_rule(s.rule, s.starts, s.zone);
	target timestamptz := CASE WHEN ends AND upto >= sheet.calendar_horizon(s.rule) THEN 'infinity'
		ELSE least(upto, sheet.calendar_horizon(s.rule)) END;
	added bigint;
BEGIN
	IF target <= s.expanded_to THEN
		RETURN 0;
	END IF;
	INSERT INTO sheet.occurrence (series_id, starts_at, ends_at, list_id)
		SELECT s.series_id, o.starts_at,
			CASE WHEN s.all_day THEN sheet.zone_time(o.instance + s.lasts, s.zone) ELSE o.starts_at + s.lasts END, s.list_id
		FROM sheet.occurrences(s.starts, s.rule, s.zone, s.expanded_to, target, s.dates) o
		WHERE o.starts_at < s.until_at ON CONFLICT DO NOTHING;
	GET DIAGNOSTICS added = ROW_COUNT;
	UPDATE sheet.series o SET expanded_to = CASE WHEN target >= o.until_at THEN 'infinity' ELSE target END,
			last_end = CASE WHEN target >= o.until_at THEN coalesce((SELECT max(n.ends_at) FROM sheet.occurrence n
				WHERE n.series_id = o.series_id AND n.starts_at < o.until_at), '-infinity') ELSE o.last_end END
		WHERE o.series_id = s.series_id;
	RETURN added;
END
$$;
COMMENT ON FUNCTION sheet.expand_series(sheet.series, timestamptz) IS
	'Internal: adds the occurrences of a series that begin before upto, and before the horizon of its rule; all of one that ends, '
	'if upto is behind that.';

-- Returns true if there is more to do.
CREATE FUNCTION sheet.expand_calendar(sheet bigint, upto timestamptz, most bigint) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s sheet.series;
	added bigint := 0;
BEGIN
	FOR s IN SELECT o.* FROM sheet.series o WHERE o.sheet_id = sheet AND o.expanded_to < upto ORDER BY o.expanded_to LOOP
		IF added >= most THEN
			RETURN true;
		END IF;
		added := added + sheet.expand_series(s, upto) + 1;
	END LOOP;
	RETURN false;
END
$$;
COMMENT ON FUNCTION sheet.expand_calendar(bigint, timestamptz, bigint) IS
	'Internal: expands the series of a calendar; about `most` occurrences. Whether there is more to do.';

CREATE FUNCTION sheet.collect_guest_lists(lists bigint[]) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	unused bigint[];
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RETURN; -- there is no new snapshot, and the lists may be in use; the next series with these persons has them again
	END IF;
	-- Lists that no transaction is about to use. One that looks for such a list now does not find it.
	unused := ARRAY(SELECT l.list_id FROM sheet.guest_list l WHERE l.list_id = ANY (lists)
		AND NOT EXISTS (SELECT FROM sheet.series s WHERE s.list_id = l.list_id) FOR UPDATE SKIP LOCKED);
	-- A new snapshot sees series that were committed before the lists were locked.
	unused := ARRAY(SELECT u.list_id FROM unnest(unused) u (list_id) WHERE NOT EXISTS (SELECT FROM sheet.series s WHERE s.list_id = u.list_id));
	DELETE FROM sheet.guest g USING sheet.guest_list l, unnest(l.uids) p (uid)
		WHERE l.list_id = ANY (unused) AND g.uid = p.uid AND g.list_id = l.list_id;
	DELETE FROM sheet.guest_list l WHERE l.list_id = ANY (unused);
END
$$;
COMMENT ON FUNCTION sheet.collect_guest_lists(bigint[]) IS 'Internal: removes those of the lists that no series has.';

CREATE FUNCTION sheet.collect_occurrences(sheet bigint, most integer) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s sheet.series;
	removed bigint := 0;
	n bigint;
	lists bigint[] := '{}';
	more boolean := false;
BEGIN
	FOR s IN SELECT o.* FROM sheet.series o WHERE o.sheet_id = sheet AND o.garbage LOOP
		IF removed >= most THEN
			more := true;
			EXIT;
		END IF;
		DELETE FROM sheet.occurrence o WHERE o.series_id = s.series_id AND o.starts_at >= s.until_at;
		GET DIAGNOSTICS n = ROW_COUNT;
		removed := removed + n + 1;
		IF s.until_at = '-infinity' THEN
			DELETE FROM sheet.series_except e WHERE e.series_id = s.series_id;
			DELETE FROM sheet.series o WHERE o.series_id = s.series_id;
			lists := lists || s.list_id;
		ELSE
			UPDATE sheet.series o SET garbage = false WHERE o.series_id = s.series_id;
		END IF;
	END LOOP;
	PERFORM sheet.collect_guest_lists(lists);
	RETURN more;
END
$$;
COMMENT ON FUNCTION sheet.collect_occurrences(bigint, integer) IS
	'Internal: removes occurrences that are not valid; about `most`. Whether there is more to do.';

-- ---- rows ----

-- The occurrences of a task that do not take place: those of its column Except, and those that rows of their own replace.
CREATE FUNCTION sheet.put_exceptions(tasks bigint[]) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH wanted AS (
		SELECT s.series_id, sheet.zone_time(e.local, s.zone) AS starts_at
		FROM sheet.task t JOIN sheet.series s ON s.series_id = t.series_id,
			LATERAL (SELECT unnest(t.except_at) UNION SELECT o.instance FROM sheet.task o
				WHERE o.sheet_id = t.sheet_id AND o.task_uid = t.task_uid AND o.instance IS NOT NULL) e (local)
		WHERE t.task_id = ANY (tasks) AND t.instance IS NULL),
	removed AS (DELETE FROM sheet.series_except e USING sheet.task t
		WHERE t.task_id = ANY (tasks) AND t.instance IS NULL AND e.series_id = t.series_id
			AND NOT EXISTS (SELECT FROM wanted w WHERE w.series_id = e.series_id AND w.starts_at = e.starts_at))
	INSERT INTO sheet.series_except SELECT w.series_id, w.starts_at FROM wanted w ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION sheet.put_exceptions(bigint[]) IS 'Internal: makes the exceptions of these tasks.';

-- `known`: the row of sheet.task with the same UID, or one without task_id.
CREATE FUNCTION sheet.put_task(known sheet.task, fresh sheet.calendar_row, zone text, owner bigint) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	task sheet.task := known;
	f sheet.task_fields;
	persons bigint[];
	detail text;
BEGIN
	task.row_no := fresh.row_no;
	task.cells := fresh.cells;
	task.problem := NULL;
	task.unknown := NULL;
	task.title := coalesce(fresh.cells->>'title', '');
	task.place := coalesce(fresh.cells->>'place', '');
	IF task.task_id IS NULL THEN
		task.task_id := nextval('sheet.task_id_seq');
		INSERT INTO sheet.task SELECT task.*;
	END IF;
	BEGIN
		IF coalesce(fresh.cells->>'instance', '') <> '' AND coalesce(fresh.cells->>'repeats', '') <> '' THEN
			RAISE EXCEPTION 'Repeats: a row that replaces an occurrence has no rule' USING ERRCODE = '22023';
		END IF;
		f := sheet.read_task(fresh.cells, zone);
		persons := ARRAY(SELECT a.uid FROM sheet.account a WHERE a.name = ANY (f.who));
		task.unknown := (SELECT array_agg(w.name) FROM unnest(f.who) w (name)
			WHERE w.name !~ '@' AND NOT EXISTS (SELECT FROM sheet.account a WHERE a.name = w.name));
		IF task.unknown IS NOT NULL THEN
			task.problem := format('Who: there is no account %s', (SELECT string_agg(format('"%s"', left(u.name, 40)), ', ') FROM unnest(task.unknown) u (name)));
		END IF;
		task.series_id := sheet.put_series(task, f, sheet.find_guest_list(CASE WHEN cardinality(f.who) = 0 THEN array_remove(ARRAY[owner], NULL) ELSE persons END, owner));
		task.except_at := f.except;
		task.remind := f.remind;
	EXCEPTION WHEN data_exception THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		task.problem := concat_ws('. ', SQLERRM, nullif(detail, ''));
		PERFORM sheet.end_series(ARRAY[task.series_id]);
		task.series_id := NULL;
	END;
	UPDATE sheet.task t SET row_no = task.row_no, cells = task.cells, title = task.title, place = task.place, problem = task.problem,
			unknown = task.unknown, series_id = task.series_id, except_at = task.except_at, remind = task.remind
		WHERE t.task_id = task.task_id;
	RETURN task.task_id;
END
$$;
COMMENT ON FUNCTION sheet.put_task(sheet.task, sheet.calendar_row, text, bigint) IS
	'Internal: makes a row of a calendar a task, with its series or with the problem of its cells.';

-- The rows that have changed since a seq; null: all may have.
CREATE FUNCTION sheet.changed_rows(sheet bigint, since bigint) RETURNS integer[]
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	few CONSTANT integer := 1000; -- edits
	changed integer[];
	edits bigint;
	other boolean;
BEGIN
	IF since = 0 OR sheet.last_seq(sheet) - since > few THEN
		RETURN NULL;
	END IF;
	SELECT count(*), coalesce(bool_or(l.kind NOT IN ('set', 'style', 'commit', 'resize') OR l.kind = 'set' AND l."row" = 0), false),
			array_agg(DISTINCT l."row") FILTER (WHERE l.kind = 'set')
		INTO edits, other, changed FROM sheet.log_edits(sheet) l WHERE l.seq > since;
	IF other OR edits < sheet.last_seq(sheet) - since THEN
		RETURN NULL; -- rows have moved, or the history was trimmed
	END IF;
	RETURN coalesce(changed, '{}');
END
$$;
COMMENT ON FUNCTION sheet.changed_rows(bigint, bigint) IS 'Internal: the rows of edits after a seq; null: any row.';

CREATE FUNCTION sheet.row_instance(cells jsonb) RETURNS timestamp
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN CASE WHEN coalesce(cells->>'instance', '') <> '' THEN (sheet.read_time(cells->>'instance', 'Instance')).local END;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION sheet.row_instance(jsonb) IS 'Internal: the occurrence that a row replaces; null: none.';

-- Exceptions and reminders follow from several rows.
CREATE FUNCTION sheet.tasks_changed(sheet bigint, uids text[]) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	-- OFFSET 0: each UID is looked up in its index, whatever statistics say; other plans read all tasks of the calendar.
	tasks bigint[] := ARRAY(SELECT k.task_id FROM (SELECT DISTINCT unnest(uids)) u (uid)
		CROSS JOIN LATERAL (SELECT t.task_id FROM sheet.task t WHERE t.sheet_id = sheet AND t.task_uid = u.uid OFFSET 0) k);
BEGIN
	PERFORM sheet.put_exceptions(tasks);
	PERFORM sheet.objects_changed(sheet, uids);
	INSERT INTO sheet.timer AS m (kind, id, at) SELECT 'reminder', t.task_id, now() FROM sheet.task t
		WHERE t.task_id = ANY (tasks) AND t.remind IS NOT NULL
		ON CONFLICT ON CONSTRAINT timer_pkey DO UPDATE SET at = excluded.at;
END
$$;
COMMENT ON FUNCTION sheet.tasks_changed(bigint, text[]) IS 'Internal: what follows from changes of the tasks with these UIDs.';

-- A task is found by its UID, wherever its row has moved. Rows are read in ascending order: of rows with one UID, the first
-- one has the task, and others are copies. below: this pass has read all rows before that one, so tasks of later rows may have moved;
-- null: only these rows have changed. locked: the caller has the sheet lock. Returns the row to go on with; null: all are done; -1: a row
-- needs a UID, which is written under the sheet lock, since it must not move.
CREATE FUNCTION sheet.refresh_tasks(sheet bigint, row_nos integer[], below integer, owner bigint, locked boolean) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	most CONSTANT integer := 500; -- changes
	zone text := sheet.calendar_zone(sheet);
	fresh sheet.calendar_row[] := ARRAY(SELECT n FROM sheet.calendar_rows(sheet, row_nos) n);
	r record;
	known sheet.task;
	named_rows integer[] := '{}'; -- rows that get a UID
	named_uids text[] := '{}';
	uids text[] := '{}';
	next_row integer;
	began timestamptz := clock_timestamp();
BEGIN
	-- OFFSET 0: see tasks_changed().
	UPDATE sheet.task t SET row_no = -1 WHERE t.task_id = ANY (ARRAY(SELECT k.task_id FROM sheet.row_runs(row_nos) u
		CROSS JOIN LATERAL (SELECT o.* FROM sheet.task o WHERE o.sheet_id + 0 = sheet AND o.row_no BETWEEN u.low AND u.high OFFSET 0) k
		WHERE NOT EXISTS (SELECT FROM unnest(fresh) n WHERE n.row_no = k.row_no AND n.cells->>'uid' = k.task_uid
			AND sheet.row_instance(n.cells) IS NOT DISTINCT FROM k.instance)));
	FOR r IN SELECT n.row_no, n.cells, n.instance, t.task_id, k.is_new, t.cells = n.cells AS is_same, bool_or(k.is_new) OVER () AS some_new
		FROM (SELECT f.*, i.instance, row_number() OVER (PARTITION BY f.cells->>'uid', i.instance ORDER BY f.row_no) AS nth
			FROM unnest(fresh) f, sheet.row_instance(f.cells) i (instance)) n
		LEFT JOIN LATERAL (SELECT o.* FROM sheet.task o WHERE o.sheet_id = sheet AND o.task_uid = n.cells->>'uid'
			AND o.instance IS NOT DISTINCT FROM n.instance OFFSET 0) t ON true
		CROSS JOIN LATERAL (SELECT coalesce(n.cells->>'uid' IS NULL OR n.nth > 1
			OR t.row_no >= 0 AND t.row_no <> n.row_no AND (below IS NULL OR t.row_no < below), false) AS is_new) k
		WHERE t.cells IS DISTINCT FROM n.cells OR n.nth > 1 OR t.row_no <> n.row_no ORDER BY n.row_no
	LOOP
		IF r.some_new AND NOT locked THEN
			-- before anything else: who has the lock may wait for the calendar since it was locked
			next_row := -1;
			EXIT;
		ELSIF (cardinality(uids) >= most OR clock_timestamp() > began + interval '200 ms') AND cardinality(uids) > 0 THEN
			next_row := r.row_no;
			EXIT;
		END IF;
		known := NULL;
		IF r.is_new THEN
			r.cells := r.cells || jsonb_build_object('uid', gen_random_uuid());
			named_rows := named_rows || r.row_no;
			named_uids := named_uids || (r.cells->>'uid');
		ELSIF r.is_same THEN
			UPDATE sheet.task t SET row_no = r.row_no WHERE t.task_id = r.task_id;
			CONTINUE;
		ELSE
			SELECT * INTO known FROM sheet.task t WHERE t.task_id = r.task_id;
		END IF;
		known.sheet_id := sheet;
		known.task_uid := r.cells->>'uid';
		known.instance := r.instance;
		PERFORM sheet.put_task(known, (r.row_no, r.cells)::sheet.calendar_row, zone, owner);
		uids := uids || known.task_uid;
	END LOOP;
	IF cardinality(named_rows) > 0 THEN
		-- adjacent rows at once
		PERFORM sheet.set_range(sheet, c.letters || min(n.row_no) + 1, array_agg(ARRAY[n.uid] ORDER BY n.row_no), owner)
			FROM (SELECT u.row_no, u.uid, u.row_no - row_number() OVER (ORDER BY u.row_no) AS run FROM unnest(named_rows, named_uids) u (row_no, uid)) n,
				(SELECT sheet.calendar_uid_column(sheet) AS letters) c
			GROUP BY n.run, c.letters;
	END IF;
	PERFORM sheet.tasks_changed(sheet, uids);
	-- This transaction does not see an account that is being created now. A later one looks again.
	WITH e AS (INSERT INTO sheet.calendar_edit (sheet_id, names)
			SELECT sheet, array_agg(DISTINCT n.name) FROM sheet.task t, unnest(t.unknown) n (name)
			WHERE t.sheet_id = sheet AND t.task_uid = ANY (uids) AND t.unknown IS NOT NULL HAVING count(*) > 0 RETURNING edit_id)
		INSERT INTO sheet.timer (kind, id, at) SELECT 'calendar edit', e.edit_id, now() FROM e;
	RETURN next_row;
END
$$;
COMMENT ON FUNCTION sheet.refresh_tasks(bigint, integer[], integer, bigint, boolean) IS
	'Internal: makes these rows of a calendar its tasks. Rows without a UID, and copies of rows, get one.';

CREATE FUNCTION sheet.remove_lost_tasks(sheet bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	ended bigint[];
	uids text[];
BEGIN
	WITH removed AS (DELETE FROM sheet.task t WHERE t.sheet_id + 0 = sheet AND t.row_no = -1 RETURNING t.series_id, t.task_uid)
		SELECT array_agg(d.series_id), array_agg(d.task_uid) INTO ended, uids FROM removed d;
	IF uids IS NOT NULL THEN
		PERFORM sheet.end_series(ended);
		PERFORM sheet.tasks_changed(sheet, uids);
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.remove_lost_tasks(bigint) IS 'Internal: removes the tasks whose rows are gone.';

-- Whoever has the sheet lock waits for the row of sheet.calendar, which is locked here, and others wait for the sheet lock.
CREATE FUNCTION sheet.follow_calendar_locked(sheet bigint, owner bigint) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT sheet.lock_calendar(sheet, true) THEN
		RAISE EXCEPTION 'another transaction has the lock of the calendar' USING ERRCODE = '55P03';
	END IF;
	RETURN sheet.follow_calendar(sheet, owner, true);
END
$$;
COMMENT ON FUNCTION sheet.follow_calendar_locked(bigint, bigint) IS
	'Internal: takes the sheet lock for follow_calendar(). 55P03: another transaction has it. Nobody waits for it here, which would be '
	'a deadlock.';

-- "IS TRUE": by the index of names, tasks of other calendars would be read.
CREATE FUNCTION sheet.forget_named_tasks(sheet bigint, most integer) RETURNS integer[]
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	names text[] := ARRAY(SELECT DISTINCT a.name FROM sheet.calendar_edit e JOIN sheet.account a ON a.name = ANY (e.names)
		WHERE e.sheet_id = sheet AND e.names IS NOT NULL);
	again integer[] := '{}';
BEGIN
	IF names <> '{}' THEN
		again := ARRAY(SELECT t.row_no FROM sheet.task t WHERE t.sheet_id + 0 = sheet AND t.row_no >= 0 AND (t.unknown && names) IS TRUE
			ORDER BY t.row_no LIMIT most);
		UPDATE sheet.task t SET cells = '{}' WHERE t.sheet_id + 0 = sheet AND t.row_no = ANY (again) AND t.cells <> '{}';
	END IF;
	RETURN again;
END
$$;
COMMENT ON FUNCTION sheet.forget_named_tasks(bigint, integer) IS
	'Internal: the rows of tasks whose unknown names accounts have now, which are to be read again.';

CREATE FUNCTION sheet.follow_calendar(sheet bigint, owner bigint, locked boolean DEFAULT false) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	portion CONSTANT integer := 500; -- rows
	c sheet.calendar;
	last bigint := sheet.last_seq(sheet);
	changed integer[];
	again integer[];
	next_row integer;
	present text := sheet.calendar_zone(sheet);
BEGIN
	SELECT * INTO c FROM sheet.calendar k WHERE k.sheet_id = sheet;
	IF (c.zone, c.owner) IS DISTINCT FROM (present, owner) THEN
		-- all tasks are made again
		UPDATE sheet.task t SET cells = '{}' WHERE t.sheet_id = sheet;
		UPDATE sheet.calendar k SET zone = present, owner = follow_calendar.owner WHERE k.sheet_id = sheet;
		c.done_seq := 0;
		c.all_seq := NULL;
	END IF;
	IF c.all_seq IS NULL THEN
		again := sheet.forget_named_tasks(sheet, portion);
		IF last = c.done_seq AND again = '{}' THEN
			-- also after a time in the trash
			INSERT INTO sheet.timer (kind, id, at) SELECT 'reminder', t.task_id, now() FROM sheet.task t
				WHERE t.sheet_id = sheet AND t.remind IS NOT NULL ON CONFLICT DO NOTHING;
			RETURN false;
		END IF;
		changed := sheet.changed_rows(sheet, c.done_seq);
		IF changed IS NOT NULL THEN
			next_row := sheet.refresh_tasks(sheet, ARRAY(SELECT unnest(changed) UNION SELECT unnest(again)), NULL, owner, locked);
			IF next_row = -1 THEN
				RETURN sheet.follow_calendar_locked(sheet, owner);
			ELSIF next_row IS NOT NULL THEN
				RETURN true; -- what is done is found unchanged
			END IF;
			PERFORM sheet.remove_lost_tasks(sheet);
			-- UIDs that were given are edits behind `last`: they are read once more.
			UPDATE sheet.calendar k SET done_seq = last WHERE k.sheet_id = sheet;
			RETURN cardinality(again) >= portion;
		END IF;
		c.all_seq := last;
		c.next_row := 1;
	END IF;
	next_row := sheet.refresh_tasks(sheet, ARRAY(SELECT generate_series(c.next_row, c.next_row + portion - 1)), c.next_row, owner, locked);
	IF next_row = -1 THEN
		RETURN sheet.follow_calendar_locked(sheet, owner);
	END IF;
	c.next_row := coalesce(next_row, c.next_row + portion);
	IF c.next_row < (SELECT p.rows FROM sheet.read_properties(sheet) p) THEN
		UPDATE sheet.calendar k SET all_seq = c.all_seq, next_row = c.next_row WHERE k.sheet_id = sheet;
		RETURN true;
	END IF;
	IF c.all_seq < last AND sheet.changed_rows(sheet, c.all_seq) IS NULL THEN
		-- rows have moved meanwhile, perhaps to where was read already
		UPDATE sheet.calendar k SET all_seq = last, next_row = 1 WHERE k.sheet_id = sheet;
		RETURN true;
	END IF;
	UPDATE sheet.task t SET row_no = -1 WHERE t.sheet_id + 0 = sheet AND t.row_no >= c.next_row;
	PERFORM sheet.remove_lost_tasks(sheet);
	UPDATE sheet.calendar k SET done_seq = c.all_seq, all_seq = NULL, next_row = NULL WHERE k.sheet_id = sheet;
	-- Names were not looked up while all rows were read.
	RETURN sheet.last_seq(sheet) > c.all_seq OR EXISTS (SELECT FROM sheet.calendar_edit e WHERE e.sheet_id = sheet AND e.names IS NOT NULL);
END
$$;
COMMENT ON FUNCTION sheet.follow_calendar(bigint, bigint, boolean) IS
	'Internal: has the tasks follow the rows that have changed, or the next ones of all. Whether there is more to do. Caller has locked '
	'the calendar.';

CREATE FUNCTION sheet.refresh_calendar_now(sheet bigint, upto timestamptz, most bigint) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET jit = off SET enable_seqscan = off AS $$
DECLARE
	s record;
	more boolean;
BEGIN
	INSERT INTO sheet.calendar (sheet_id) VALUES (sheet) ON CONFLICT DO NOTHING;
	PERFORM FROM sheet.calendar c WHERE c.sheet_id = sheet FOR UPDATE;
	SELECT h.owner, h.trashed_at INTO s FROM sheet.sheet h WHERE h.sheet_id = sheet AND h.calendar;
	IF NOT FOUND THEN
		DELETE FROM sheet.calendar c WHERE c.sheet_id = sheet;
		RETURN 'infinity';
	ELSIF s.trashed_at IS NOT NULL THEN
		RETURN 'infinity'; -- recover() is a commit that is served again
	END IF;
	more := upto < 'infinity' AND sheet.follow_calendar(sheet, s.owner);
	more := sheet.expand_calendar(sheet, upto, most) OR more;
	more := sheet.collect_occurrences(sheet, most::integer) OR more;
	RETURN CASE WHEN NOT more THEN date_trunc('month', now()) + interval '1 month' + (sheet % 86400) * interval '1 s' END;
END
$$;
COMMENT ON FUNCTION sheet.refresh_calendar_now(bigint, timestamptz, bigint) IS
	'Internal: has the tables of tasks follow the calendar, unless upto is infinity, and expands its series as far as upto; about '
	'`most` occurrences. Returns when it is to be looked at next: null: at once, there is more to do; infinity: it is no calendar, '
	'or in the trash.';

-- All future occurrences of a series are replaced in one transaction, so readers see those by the old rules or those by the new ones.
CREATE FUNCTION sheet.follow_zones(sheet bigint) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET jit = off AS $$
DECLARE
	old sheet.series;
	fresh sheet.series;
	uids text[] := '{}';
	more boolean := false;
	began timestamptz := clock_timestamp();
BEGIN
	PERFORM FROM sheet.calendar c WHERE c.sheet_id = sheet FOR UPDATE;
	FOR old IN SELECT s.* FROM (SELECT DISTINCT o.zone, o.zone_rules FROM sheet.series o WHERE o.sheet_id = sheet AND o.last_end >= now()) z
			JOIN sheet.series s ON s.sheet_id = sheet AND s.last_end >= now() AND s.zone = z.zone AND s.zone_rules = z.zone_rules
			WHERE z.zone_rules <> sheet.zone_rules(z.zone) AND s.until_at > now() LOOP
		IF clock_timestamp() > began + interval '200 ms' THEN
			more := true;
			EXIT;
		END IF;
		DELETE FROM sheet.occurrence o WHERE o.series_id = old.series_id AND o.starts_at > now();
		UPDATE sheet.series s SET zone_rules = sheet.zone_rules(s.zone), expanded_to = least(s.expanded_to, now()), last_end = 'infinity',
				until_at = CASE WHEN s.until_at < 'infinity' THEN sheet.rule_until(s.rule, s.zone) + interval '1 s' ELSE s.until_at END
			WHERE s.series_id = old.series_id RETURNING * INTO fresh;
		PERFORM sheet.expand_series(fresh, old.expanded_to);
		uids := uids || ARRAY(SELECT t.task_uid FROM sheet.task t WHERE t.task_id = old.task_id);
	END LOOP;
	PERFORM sheet.tasks_changed(sheet, uids);
	RETURN more;
END
$$;
COMMENT ON FUNCTION sheet.follow_zones(bigint) IS
	'Internal: replaces the future occurrences of the calendar''s series whose zones have new rules. Whether there is more to do.';

CREATE FUNCTION sheet.calendar_soon() RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT date_trunc('month', now(), 'UTC') + interval '2 months';
	END;
COMMENT ON FUNCTION sheet.calendar_soon() IS 'Internal: the end of the next month: what begins before it is expanded at once.';

-- The months that are near come first. The worker serves what else is due between two portions.
CREATE FUNCTION sheet.serve_calendar(sheet bigint) RETURNS timestamptz
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	most CONSTANT bigint := 20000; -- occurrences at a time
	began timestamptz := clock_timestamp();
	at timestamptz;
BEGIN
	BEGIN
		at := sheet.refresh_calendar_now(sheet, sheet.calendar_soon(), most);
	EXCEPTION WHEN lock_not_available THEN
		-- The row of sheet.calendar is free again. The sheet lock comes first, as with others.
		PERFORM sheet.lock_calendar(sheet, false);
		at := sheet.refresh_calendar_now(sheet, sheet.calendar_soon(), most);
	END;
	IF at < 'infinity' THEN
		at := CASE WHEN clock_timestamp() < began + interval '100 ms' THEN sheet.refresh_calendar_now(sheet, 'infinity', most) END;
	END IF;
	RETURN at;
END
$$;
COMMENT ON FUNCTION sheet.serve_calendar(bigint) IS
	'Internal: has the tables of tasks follow the calendar, and returns when it is to be looked at next, as refresh_calendar_now().';
