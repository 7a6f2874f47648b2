-- Calendars for other programs (docs/design/caldav.md): the tasks of one UID are a calendar object, which iCalendar texts describe.
--
-- extension/api/programs/caldav.c checks who may do what, and calls the internal functions here as the owner of the tables.
-- Refused objects have the SQLSTATE 22023, and as constraint name the precondition of CalDAV that they break.

CREATE TYPE sheet.calendar_event AS (task_uid text, instance timestamp, cells jsonb, extra text, answers jsonb, rest text);
COMMENT ON TYPE sheet.calendar_event IS
	'An event of a calendar object as cells of a row; extra: what no column has; answers: by person; rest: the properties that an attendee may not change.';

CREATE FUNCTION sheet.ics_read(data text, zone text) RETURNS SETOF sheet.calendar_event
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_ics_read';
COMMENT ON FUNCTION sheet.ics_read(text, text) IS
	'Internal: the rows that a calendar object (VCALENDAR) means. zone: of times without one. 22023: it is none that a calendar can have.';

CREATE FUNCTION sheet.ics_event(task_uid text, stamp timestamptz, instance timestamp, instance_zone text, starts timestamp, lasts interval,
	zone text, rule text, dates timestamp[], "except" timestamp[], title text, place text, notes text, who text[], answers text[],
	remind interval, extra text) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_ics_event';
COMMENT ON FUNCTION sheet.ics_event(text, timestamptz, timestamp, text, timestamp, interval, text, text, timestamp[], timestamp[], text, text, text,
	text[], text[], interval, text) IS 'Internal: a VEVENT. zone null: of whole days. answers: of who; null: no account.';

CREATE FUNCTION sheet.ics_timezone(zone text, since timestamp) RETURNS text
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_ics_timezone';
COMMENT ON FUNCTION sheet.ics_timezone(text, timestamp) IS
	'Internal: the VTIMEZONE of a zone, without what ended before a time; empty for UTC.';

-- ---- objects ----

CREATE TABLE sheet.calendar_object (
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	name text COLLATE "C" NOT NULL,
	change_no bigint NOT NULL,
	changed_at timestamptz NOT NULL DEFAULT now(),
	gone boolean NOT NULL,
	extra jsonb,
	PRIMARY KEY (sheet_id, task_uid),
	CONSTRAINT calendar_object_name_key UNIQUE (sheet_id, name)
);
CREATE INDEX calendar_object_live_idx ON sheet.calendar_object (sheet_id) WHERE NOT gone;
CREATE INDEX calendar_object_change_idx ON sheet.calendar_object (sheet_id, change_no);
ALTER TABLE sheet.calendar_object ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.calendar_object IS 'The tasks of one UID, as programs see them.';
COMMENT ON COLUMN sheet.calendar_object.name IS 'the end of its address, as the program that has made it has chosen';
COMMENT ON COLUMN sheet.calendar_object.change_no IS
	'of its last change: the ETag. Whoever takes a number has locked the row of sheet.calendar, so they become visible in their order';
COMMENT ON COLUMN sheet.calendar_object.gone IS 'no row has occurrences';
COMMENT ON COLUMN sheet.calendar_object.extra IS 'properties that no column has, by the instance of the row (empty: the task)';

-- Rows of an older dump may have such names.
CREATE FUNCTION sheet.rename_object() RETURNS trigger
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	NEW.name := gen_random_uuid() || '.ics';
	RETURN NEW;
END
$$;
COMMENT ON FUNCTION sheet.rename_object() IS 'Internal: gives an object a name that can be the end of an address.';
CREATE TRIGGER rename_object BEFORE INSERT OR UPDATE OF name ON sheet.calendar_object FOR EACH ROW
	WHEN (NEW.name IN ('.', '..') OR strpos(NEW.name, '/') > 0) EXECUTE FUNCTION sheet.rename_object();

CREATE FUNCTION sheet.object_name(sheet bigint, uid text) RETURNS text
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT n.plain || CASE WHEN EXISTS (SELECT FROM sheet.calendar_object o WHERE o.sheet_id = sheet AND o.name = n.plain || '.ics' AND o.task_uid <> uid)
		THEN '-' || gen_random_uuid() ELSE '' END || '.ics'
	FROM (SELECT CASE WHEN uid ~ '^[A-Za-z0-9@._+-]+$' THEN uid ELSE encode(sha256(convert_to(uid, 'UTF8')), 'hex') END) n (plain)
$$;
COMMENT ON FUNCTION sheet.object_name(bigint, text) IS 'Internal: the name of an object that comes from the sheet.';

CREATE FUNCTION sheet.objects_changed(sheet bigint, uids text[]) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO sheet.calendar_object AS o (sheet_id, task_uid, name, change_no, gone)
		SELECT sheet, u.uid, coalesce((SELECT k.name FROM sheet.calendar_object k WHERE k.sheet_id = sheet AND k.task_uid = u.uid),
				sheet.object_name(sheet, u.uid)), nextval('sheet.change_no_seq'),
			NOT EXISTS (SELECT FROM sheet.task t WHERE t.sheet_id = sheet AND t.task_uid = u.uid AND t.series_id IS NOT NULL OFFSET 0)
		FROM (SELECT DISTINCT unnest(uids)) u (uid)
		ON CONFLICT ON CONSTRAINT calendar_object_pkey
			DO UPDATE SET change_no = excluded.change_no, gone = excluded.gone, changed_at = excluded.changed_at
$$;
COMMENT ON FUNCTION sheet.objects_changed(bigint, text[]) IS
	'Internal: the tasks with these UIDs have changed. Caller has locked the row of sheet.calendar.';

CREATE FUNCTION sheet.object_etag(change_no bigint) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT format('"%s"', change_no);
	END;
COMMENT ON FUNCTION sheet.object_etag(bigint) IS 'Internal: the ETag of an object.';

-- UNTIL as RFC 5545 wants it: a date with dates, and UTC with times.
CREATE FUNCTION sheet.ics_rule(rule text, zone text, all_day boolean) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN rule ~ 'UNTIL=' THEN regexp_replace(rule, 'UNTIL=[^;]*', 'UNTIL=' || CASE WHEN all_day
			THEN to_char(sheet.rule_until(rule, zone) AT TIME ZONE zone, 'YYYYMMDD') ELSE sheet.until_text(sheet.rule_until(rule, zone)) END)
			ELSE rule END;
	END;
COMMENT ON FUNCTION sheet.ics_rule(text, text, boolean) IS 'Internal: a rule for a VEVENT.';

CREATE FUNCTION sheet.ics_object(zones text, events text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT E'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//pg_sheet//calendar//EN\r\n' || coalesce(zones, '') || coalesce(events, '') || E'END:VCALENDAR\r\n';
	END;
COMMENT ON FUNCTION sheet.ics_object(text, text) IS 'Internal: a VCALENDAR.';

-- The persons of a task, and what they have answered for an occurrence; null: for all.
CREATE FUNCTION sheet.task_persons(task sheet.task, local timestamp, OUT who text[], OUT answers text[])
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT array_agg(w.name ORDER BY w.name), array_agg(CASE WHEN a.uid IS NOT NULL
			THEN sheet.answer_of((task).sheet_id, (task).task_uid, a.uid, coalesce(local, '-infinity')) END ORDER BY w.name)
	FROM (SELECT DISTINCT i.item FROM unnest(sheet.persons_of((task).cells->>'who')) i (item) WHERE i.item <> '') w (name)
		LEFT JOIN sheet.account a ON a.name = w.name
	WHERE coalesce((task).cells->>'who', '') <> ''
$$;
COMMENT ON FUNCTION sheet.task_persons(sheet.task, timestamp) IS 'Internal: the persons of a task, with their answers.';

CREATE TYPE sheet.calendar_part AS (name text, change_no bigint, instance timestamp, zone text, starts timestamp, event text);
COMMENT ON TYPE sheet.calendar_part IS 'An event of an object, and the time zone that it needs.';

-- Occurrences without a row that somebody has answered: only the latest ones, since an object has at most 1 MB. OFFSET 0 keeps
-- the order of joins, as in read_agenda().
CREATE FUNCTION sheet.answered_parts(calendar bigint, names text[]) RETURNS SETOF sheet.calendar_part
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
	SET enable_mergejoin = off AS $$
	SELECT o.name, o.change_no, a.instance, z.zone, a.instance, sheet.ics_event(o.task_uid, o.changed_at, a.instance, z.zone, a.instance, s.lasts, z.zone,
		NULL, NULL, NULL, t.title, t.place, t.cells->>'notes', p.who, p.answers, t.remind, o.extra->>'')
	FROM (SELECT DISTINCT n.task_uid FROM sheet.answer n WHERE (names IS NULL OR cardinality(names) > 100) AND n.sheet_id = calendar
				AND n.instance > '-infinity'
			UNION ALL SELECT k.task_uid FROM (SELECT DISTINCT unnest(names)) w (name)
				CROSS JOIN LATERAL (SELECT o.task_uid FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.name = w.name OFFSET 0) k
				WHERE cardinality(names) <= 100) u
		CROSS JOIN LATERAL (SELECT k.* FROM sheet.calendar_object k WHERE k.sheet_id = calendar AND k.task_uid = u.task_uid AND NOT k.gone
			AND (names IS NULL OR k.name = ANY (names)) OFFSET 0) o
		CROSS JOIN LATERAL (SELECT k.* FROM sheet.task k WHERE k.sheet_id = calendar AND k.task_uid = u.task_uid AND k.instance IS NULL
			AND k.cells->>'who' <> '' LIMIT 1) t
		CROSS JOIN LATERAL (SELECT n.* FROM sheet.series n WHERE n.series_id = t.series_id AND (n.rule IS NOT NULL OR n.dates IS NOT NULL) OFFSET 0) s
		CROSS JOIN LATERAL (SELECT CASE WHEN NOT s.all_day THEN s.zone END) z (zone)
		CROSS JOIN LATERAL (SELECT DISTINCT n.instance FROM sheet.answer n WHERE n.sheet_id = calendar AND n.task_uid = u.task_uid
			AND n.instance > '-infinity' ORDER BY 1 DESC LIMIT 5000 / greatest(cardinality(regexp_split_to_array(t.cells->>'who', '[,;]')), 20)) a
		CROSS JOIN LATERAL (SELECT FROM sheet.occurrence n WHERE n.series_id = s.series_id AND n.starts_at = sheet.zone_time(a.instance, s.zone)
			AND n.starts_at < s.until_at AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = n.series_id AND e.starts_at = n.starts_at)
			OFFSET 0) c
		CROSS JOIN LATERAL sheet.task_persons(t, a.instance) p
$$;
COMMENT ON FUNCTION sheet.answered_parts(bigint, text[]) IS 'Internal: the events of answered occurrences of these objects; names null: of all.';

-- names null: all.
CREATE FUNCTION sheet.object_parts(calendar bigint, names text[]) RETURNS SETOF sheet.calendar_part
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT o.name, o.change_no, t.instance, CASE WHEN NOT s.all_day THEN s.zone END, s.starts,
		sheet.ics_event(o.task_uid, o.changed_at, t.instance, CASE WHEN NOT m.all_day THEN m.zone END, s.starts, s.lasts,
			CASE WHEN NOT s.all_day THEN s.zone END, sheet.ics_rule(s.rule, s.zone, s.all_day), s.dates, t.except_at, t.title, t.place,
			t.cells->>'notes', p.who, p.answers, t.remind, o.extra->>coalesce(t.instance::text, ''))
	FROM sheet.calendar_object o JOIN sheet.task t ON t.sheet_id = o.sheet_id AND t.task_uid = o.task_uid
		JOIN sheet.series s ON s.series_id = t.series_id
		LEFT JOIN LATERAL (SELECT k.zone, k.all_day FROM sheet.task u JOIN sheet.series k ON k.series_id = u.series_id
			WHERE t.instance IS NOT NULL AND u.sheet_id = o.sheet_id AND u.task_uid = o.task_uid ORDER BY u.instance IS NOT NULL LIMIT 1) m ON true
		LEFT JOIN LATERAL sheet.task_persons(t, t.instance) p ON coalesce(t.cells->>'who', '') <> ''
	WHERE o.sheet_id = calendar AND NOT o.gone AND (names IS NULL OR o.name = ANY (names))
	UNION ALL SELECT a.* FROM (SELECT FROM sheet.answer n WHERE n.sheet_id = calendar AND n.instance > '-infinity' LIMIT 1) any_answer
		CROSS JOIN LATERAL sheet.answered_parts(calendar, names) a
$$;
COMMENT ON FUNCTION sheet.object_parts(bigint, text[]) IS 'Internal: the events of objects of a calendar.';

CREATE FUNCTION sheet.join_parts(parts sheet.calendar_part[]) RETURNS TABLE (name text, etag text, data text)
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
	WITH part AS MATERIALIZED (SELECT p.*, CASE WHEN p.starts >= '1990-01-01' THEN '1990-01-01' ELSE '-infinity' END::timestamp AS since FROM unnest(parts) p),
	zone AS MATERIALIZED (SELECT z.zone, z.since, sheet.ics_timezone(z.zone, z.since) AS data
		FROM (SELECT DISTINCT p.zone, p.since FROM part p WHERE p.zone <> 'UTC') z)
	SELECT p.name, sheet.object_etag(min(p.change_no)),
		sheet.ics_object(string_agg(DISTINCT z.data, ''), string_agg(p.event, '' ORDER BY p.instance NULLS FIRST))
	FROM part p LEFT JOIN zone z ON z.zone = p.zone AND z.since = p.since GROUP BY p.name
$$;
COMMENT ON FUNCTION sheet.join_parts(sheet.calendar_part[]) IS 'Internal: the objects that these events make.';

-- With many names, reading all objects costs less than comparing each with each name.
CREATE FUNCTION sheet.read_objects(calendar bigint, names text[]) RETURNS TABLE (name text, etag text, data text)
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
	SELECT * FROM sheet.join_parts(ARRAY(SELECT p FROM sheet.object_parts(calendar, CASE WHEN cardinality(names) <= 3000 THEN names END) p
		WHERE (cardinality(names) > 3000) IS NOT TRUE OR p.name IN (SELECT unnest(names))))
$$;
COMMENT ON FUNCTION sheet.read_objects(bigint, text[]) IS 'Internal: see sheet.caldav_get().';

-- ---- times ----

-- Rules without an end are not expanded for ever: behind that, each of them matches.
CREATE FUNCTION sheet.objects_between(calendar bigint, since timestamptz, upto timestamptz) RETURNS TABLE (name text, etag text)
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT o.name, sheet.object_etag(o.change_no) FROM sheet.calendar_object o
	WHERE o.sheet_id = calendar AND NOT o.gone AND EXISTS (SELECT FROM sheet.task t JOIN sheet.series s ON s.series_id = t.series_id
		WHERE t.sheet_id = calendar AND t.task_uid = o.task_uid AND (
			EXISTS (SELECT FROM sheet.occurrence c WHERE c.series_id = s.series_id AND c.starts_at < upto AND c.starts_at < s.until_at
				AND (c.ends_at > since OR c.starts_at >= since)
				AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = c.series_id AND e.starts_at = c.starts_at))
			OR s.rule !~ 'COUNT=|UNTIL=' AND upto > sheet.calendar_horizon(s.rule)))
$$;
COMMENT ON FUNCTION sheet.objects_between(bigint, timestamptz, timestamptz) IS
	'Internal: the objects that have occurrences in a span of time.';

-- Each occurrence is an event of its own, without a rule, in UTC.
CREATE FUNCTION sheet.expand_objects(calendar bigint, since timestamptz, upto timestamptz) RETURNS TABLE (name text, etag text, data text)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
DECLARE
	most CONSTANT integer := 20000; -- occurrences
	parts sheet.calendar_part[];
BEGIN
	parts := ARRAY(SELECT (o.name, o.change_no, c.starts_at AT TIME ZONE 'UTC', NULL, s.starts,
			sheet.ics_event(o.task_uid, o.changed_at,
				CASE WHEN t.instance IS NOT NULL THEN CASE WHEN s.all_day THEN t.instance ELSE sheet.zone_time(t.instance, m.zone) AT TIME ZONE 'UTC' END
					WHEN s.rule IS NOT NULL OR s.dates IS NOT NULL THEN c.starts_at AT TIME ZONE z.zone END, CASE WHEN NOT s.all_day THEN 'UTC' END,
				c.starts_at AT TIME ZONE z.zone, s.lasts, CASE WHEN NOT s.all_day THEN 'UTC' END, NULL, NULL, NULL, t.title, t.place,
				t.cells->>'notes', p.who, p.answers, t.remind, o.extra->>coalesce(t.instance::text, '')))::sheet.calendar_part
		FROM sheet.calendar_object o JOIN sheet.task t ON t.sheet_id = o.sheet_id AND t.task_uid = o.task_uid
			JOIN sheet.series s ON s.series_id = t.series_id JOIN sheet.occurrence c ON c.series_id = s.series_id
			CROSS JOIN LATERAL (SELECT CASE WHEN s.all_day THEN s.zone ELSE 'UTC' END) z (zone)
			LEFT JOIN LATERAL (SELECT k.zone FROM sheet.task u JOIN sheet.series k ON k.series_id = u.series_id
				WHERE t.instance IS NOT NULL AND u.sheet_id = o.sheet_id AND u.task_uid = o.task_uid ORDER BY u.instance IS NOT NULL LIMIT 1) m ON true
			LEFT JOIN LATERAL sheet.task_persons(t, coalesce(t.instance, c.starts_at AT TIME ZONE s.zone)) p ON coalesce(t.cells->>'who', '') <> ''
		WHERE o.sheet_id = calendar AND NOT o.gone AND c.starts_at < upto AND c.starts_at < s.until_at AND (c.ends_at > since OR c.starts_at >= since)
			AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = c.series_id AND e.starts_at = c.starts_at)
		LIMIT most + 1);
	IF cardinality(parts) > most THEN
		RAISE EXCEPTION 'the span of time has more than % occurrences', most USING ERRCODE = '54000', CONSTRAINT = 'number-of-matches-within-limits';
	END IF;
	RETURN QUERY SELECT * FROM sheet.join_parts(parts);
END
$$;
COMMENT ON FUNCTION sheet.expand_objects(bigint, timestamptz, timestamptz) IS 'Internal: see sheet.caldav_query().';

-- ---- changes ----

CREATE FUNCTION sheet.calendar_token(calendar bigint) RETURNS bigint
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT greatest((SELECT max(o.change_no) FROM sheet.calendar_object o WHERE o.sheet_id = calendar),
		(SELECT c.began_no FROM sheet.calendar c WHERE c.sheet_id = calendar), 0)
$$;
COMMENT ON FUNCTION sheet.calendar_token(bigint) IS 'Internal: the number of the last change of a calendar.';

-- ---- writing ----

-- Of new cells, those that mean what the old ones do stay as they are.
CREATE FUNCTION sheet.kept_cells(old jsonb, fresh jsonb, zone text) RETURNS jsonb
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	wanted sheet.task_fields := sheet.read_task(fresh, zone);
	cell text;
BEGIN
	FOREACH cell IN ARRAY ARRAY['start', 'end', 'time zone', 'repeats', 'dates', 'except', 'who', 'reminder'] LOOP
		BEGIN
			IF coalesce(old->>cell, '') <> fresh->>cell
					AND sheet.read_task(fresh || jsonb_build_object(cell, coalesce(old->>cell, '')), zone) IS NOT DISTINCT FROM wanted THEN
				fresh := fresh || jsonb_build_object(cell, coalesce(old->>cell, ''));
			END IF;
		EXCEPTION WHEN data_exception THEN
			NULL;
		END;
	END LOOP;
	RETURN (SELECT coalesce(jsonb_object_agg(f.key, f.value), '{}') FROM jsonb_each_text(fresh) f
		WHERE coalesce(old->>f.key, '') <> f.value);
END
$$;
COMMENT ON FUNCTION sheet.kept_cells(jsonb, jsonb, text) IS 'Internal: the cells of a row that must be written.';

CREATE FUNCTION sheet.add_missing_columns(calendar bigint, cells jsonb, as_uid bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	title text;
BEGIN
	FOR title IN SELECT n.name FROM unnest(ARRAY['End', 'Repeats', 'Who', 'Place', 'Reminder', 'Time zone', 'Except', 'Dates', 'Notes', 'UID',
			'Instance']) WITH ORDINALITY n (name, at) WHERE cells->>lower(n.name) <> ''
			AND NOT EXISTS (SELECT FROM sheet.calendar_header(calendar) h WHERE h.name = lower(n.name)) ORDER BY n.at LOOP
		PERFORM sheet.set_range(calendar, sheet.column_letters((SELECT max(h.col) + 1 FROM sheet.calendar_header(calendar) h)) || '1',
			ARRAY[[title]], as_uid);
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.add_missing_columns(bigint, jsonb, bigint) IS 'Internal: adds the columns that a calendar lacks for these cells.';

CREATE FUNCTION sheet.column_letters(col integer) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN col >= 702 THEN chr(64 + (col - 702) / 676 + 1) ELSE '' END
			|| CASE WHEN col >= 26 THEN chr(65 + (col / 26 - 1) % 26) ELSE '' END || chr(65 + col % 26);
	END;
COMMENT ON FUNCTION sheet.column_letters(integer) IS 'Internal: the name of a column (from 0).';

-- Behind the last task, unless other content is there.
CREATE FUNCTION sheet.new_row(calendar bigint) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	row_no integer := (SELECT coalesce(max(t.row_no), 0) + 1 FROM sheet.task t WHERE t.sheet_id + 0 = calendar);
BEGIN
	IF EXISTS (SELECT FROM sheet.range(calendar, format('%s:%s', row_no + 1, row_no + 1)) r WHERE r.content <> '') THEN
		row_no := (SELECT max(r."row") + 1 FROM sheet.range(calendar, formulas => true) r);
	END IF;
	RETURN row_no;
END
$$;
COMMENT ON FUNCTION sheet.new_row(bigint) IS 'Internal: the row for a new task.';

CREATE FUNCTION sheet.put_event(calendar bigint, event sheet.calendar_event, zone text, as_uid bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	known sheet.task;
	row_no integer;
	cells jsonb := event.cells;
	header text[];
BEGIN
	SELECT * INTO known FROM sheet.task t WHERE t.sheet_id = calendar AND t.task_uid = event.task_uid
		AND t.instance IS NOT DISTINCT FROM event.instance AND t.row_no >= 0;
	IF FOUND THEN
		cells := sheet.kept_cells(known.cells, cells, zone);
		PERFORM sheet.add_missing_columns(calendar, cells, as_uid);
		PERFORM sheet.put_cells(calendar, known.row_no, cells, as_uid);
		RETURN;
	END IF;
	PERFORM sheet.read_task(cells, zone);
	cells := cells || jsonb_build_object('uid', event.task_uid, 'instance', coalesce(sheet.time_text(event.instance, false), ''));
	PERFORM sheet.add_missing_columns(calendar, cells, as_uid);
	header := ARRAY(SELECT h.name FROM generate_series(0, (SELECT max(k.col) FROM sheet.calendar_header(calendar) k)) g (col)
		LEFT JOIN sheet.calendar_header(calendar) h USING (col) ORDER BY g.col);
	row_no := sheet.new_row(calendar);
	PERFORM sheet.set_range(calendar, 'A' || row_no + 1, ARRAY[ARRAY(SELECT coalesce(sheet.task_content(n.name, cells->>n.name), '') FROM unnest(header) WITH ORDINALITY n (name, no)
		ORDER BY n.no)], as_uid);
	-- the next event of the object is put behind it
	INSERT INTO sheet.task (sheet_id, row_no, task_uid, instance, cells) VALUES (calendar, row_no, event.task_uid, event.instance, '{}');
END
$$;
COMMENT ON FUNCTION sheet.put_event(bigint, sheet.calendar_event, text, bigint) IS 'Internal: writes the row of an event.';

CREATE FUNCTION sheet.check_etag(known boolean, etag text, if_match text, if_none_match text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF if_match IS NOT NULL AND NOT (known AND (if_match = '*' OR etag = ANY (regexp_split_to_array(if_match, '\s*,\s*'))))
			OR known AND (if_none_match = '*' OR etag = ANY (regexp_split_to_array(if_none_match, '\s*,\s*'))) THEN
		RAISE EXCEPTION 'the calendar object has changed' USING ERRCODE = 'SE001', HINT = 'Read it again.';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.check_etag(boolean, text, text, text) IS 'Internal: SE001 unless the conditions of a request hold.';

-- answers_only: the account may only answer. created is null if the object would change anything else.
CREATE FUNCTION sheet.put_object(calendar bigint, object text, data text, if_match text, if_none_match text, as_uid bigint, answers_only boolean,
	OUT etag text, OUT created boolean)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
#variable_conflict use_variable
DECLARE
	zone text := sheet.calendar_zone(calendar);
	known sheet.calendar_object;
	events sheet.calendar_event[];
	sent sheet.calendar_event[];
	rows timestamp[];
	fresh_extra jsonb;
	uid text;
	lost integer;
	problem text;
BEGIN
	IF NOT answers_only THEN
		PERFORM sheet.refresh_calendar(calendar, as_uid);
	END IF;
	SELECT * INTO known FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.name = object;
	created := NOT FOUND OR known.gone;
	PERFORM sheet.check_etag(NOT created, sheet.object_etag(known.change_no), if_match, if_none_match);
	sent := sheet.with_account(calendar, ARRAY(SELECT e FROM sheet.ics_read(data, zone) e ORDER BY e.instance NULLS FIRST), as_uid);
	uid := sent[1].task_uid;
	IF answers_only THEN
		created := CASE WHEN NOT created AND sheet.is_same_object(sent, ARRAY(SELECT e FROM sheet.read_objects(calendar, ARRAY[object]) o,
			sheet.ics_read(o.data, zone) e ORDER BY e.instance NULLS FIRST), zone) THEN false END;
		IF NOT created THEN
			-- after what takes long, so that editors do not wait for it
			PERFORM FROM sheet.calendar c WHERE c.sheet_id = calendar FOR UPDATE;
			PERFORM sheet.check_etag(true, (SELECT sheet.object_etag(o.change_no) FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.task_uid = uid),
				if_match, NULL);
			PERFORM sheet.take_answers(calendar, sent, as_uid);
			SELECT sheet.object_etag(o.change_no) INTO etag FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.task_uid = uid;
		END IF;
		RETURN;
	END IF;
	rows := ARRAY(SELECT t.instance FROM sheet.task t WHERE t.sheet_id = calendar AND t.task_uid = uid AND t.row_no >= 0);
	events := sheet.without_read(calendar, object, sheet.own_events(sent, zone, rows), zone, rows);
	IF NOT created AND known.task_uid <> uid OR EXISTS (SELECT FROM sheet.calendar_object o
			WHERE o.sheet_id = calendar AND o.task_uid = uid AND o.name <> object AND NOT o.gone) THEN
		RAISE EXCEPTION 'the UID is that of another calendar object' USING ERRCODE = '22023', CONSTRAINT = 'no-uid-conflict';
	ELSIF (SELECT count(DISTINCT coalesce(e.instance, '-infinity')) FROM unnest(events) e) < cardinality(events) THEN
		RAISE EXCEPTION 'two events of the calendar object have one RECURRENCE-ID' USING ERRCODE = '22023', CONSTRAINT = 'valid-calendar-object-resource';
	END IF;
	FOR lost IN SELECT t.row_no FROM sheet.task t WHERE t.sheet_id = calendar AND t.task_uid = uid AND t.row_no >= 0
			AND NOT EXISTS (SELECT FROM unnest(events) e WHERE e.instance IS NOT DISTINCT FROM t.instance) ORDER BY 1 DESC LOOP
		PERFORM sheet.delete_rows(calendar, lost, 1, as_uid);
		UPDATE sheet.task t SET row_no = CASE WHEN t.row_no > lost THEN t.row_no - 1 ELSE -1 END WHERE t.sheet_id + 0 = calendar AND t.row_no >= lost;
	END LOOP;
	fresh_extra := (SELECT jsonb_object_agg(coalesce(e.instance::text, ''), e.extra) FROM unnest(events) e WHERE e.extra IS NOT NULL);
	IF created THEN
		DELETE FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.name = object;
		DELETE FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.task_uid = uid;
		INSERT INTO sheet.calendar_object (sheet_id, task_uid, name, change_no, gone, extra)
			VALUES (calendar, uid, object, nextval('sheet.change_no_seq'), true, fresh_extra);
	ELSIF known.extra IS DISTINCT FROM fresh_extra THEN
		UPDATE sheet.calendar_object o SET extra = fresh_extra, change_no = nextval('sheet.change_no_seq'), changed_at = now()
			WHERE o.sheet_id = calendar AND o.task_uid = uid;
	END IF;
	FOR n IN 1 .. cardinality(events) LOOP
		PERFORM sheet.put_event(calendar, events[n], zone, as_uid);
	END LOOP;
	PERFORM sheet.refresh_calendar(calendar, as_uid);
	SELECT t.problem INTO problem FROM sheet.task t WHERE t.sheet_id = calendar AND t.task_uid = uid AND t.series_id IS NULL;
	IF FOUND THEN
		RAISE EXCEPTION '%', coalesce(problem, 'the event is not understood') USING ERRCODE = '22023', CONSTRAINT = 'valid-calendar-data';
	END IF;
	-- the program may ask for any time at once
	PERFORM sheet.expand_series(s, 'infinity') FROM sheet.task t JOIN sheet.series s ON s.series_id = t.series_id
		WHERE t.sheet_id = calendar AND t.task_uid = uid;
	PERFORM sheet.take_answers(calendar, sent, as_uid);
	SELECT sheet.object_etag(o.change_no) INTO etag FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.task_uid = uid AND NOT o.gone;
END
$$;
COMMENT ON FUNCTION sheet.put_object(bigint, text, text, text, text, bigint, boolean) IS 'Internal: see sheet.caldav_put().';

CREATE FUNCTION sheet.delete_object(calendar bigint, object text, if_match text, as_uid bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	known sheet.calendar_object;
	row_no integer;
BEGIN
	PERFORM sheet.refresh_calendar(calendar, as_uid);
	SELECT * INTO known FROM sheet.calendar_object o WHERE o.sheet_id = calendar AND o.name = object AND NOT o.gone;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the calendar has no object of that name' USING ERRCODE = '42704';
	END IF;
	PERFORM sheet.check_etag(true, sheet.object_etag(known.change_no), if_match, NULL);
	FOR row_no IN SELECT t.row_no FROM sheet.task t WHERE t.sheet_id = calendar AND t.task_uid = known.task_uid AND t.row_no >= 0 ORDER BY 1 DESC LOOP
		PERFORM sheet.delete_rows(calendar, row_no, 1, as_uid);
	END LOOP;
	PERFORM sheet.refresh_calendar(calendar, as_uid);
END
$$;
COMMENT ON FUNCTION sheet.delete_object(bigint, text, text, bigint) IS 'Internal: see sheet.caldav_delete().';

-- ---- for programs ----

CREATE FUNCTION sheet.caldav_calendar(sheet_id bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (sheet_id bigint, name text, role text, zone text, token bigint, colour text)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_caldav_calendar';
COMMENT ON FUNCTION sheet.caldav_calendar(bigint, bigint) IS
	'A calendar, as sheet.calendars() lists it. token: grows with each change. 42809: the sheet is none. Viewers.';

CREATE FUNCTION sheet.caldav_name(sheet_id bigint, task_uid text, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_name';
COMMENT ON FUNCTION sheet.caldav_name(bigint, text, bigint) IS 'The name of the object with a UID; null: there is none. Viewers.';

CREATE FUNCTION sheet.caldav_list(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS TABLE (name text, etag text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_list';
COMMENT ON FUNCTION sheet.caldav_list(bigint, bigint) IS
	'The objects of a calendar: the tasks of one UID are one. The ETag changes with each change of the object. Viewers.';

CREATE FUNCTION sheet.caldav_get(sheet_id bigint, names text[] DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (name text, etag text, data text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_get';
COMMENT ON FUNCTION sheet.caldav_get(bigint, text[], bigint) IS
	'Objects of a calendar (null: all) as iCalendar texts. A row with a problem is in none. Viewers.';

CREATE FUNCTION sheet.caldav_query(sheet_id bigint, "from" timestamptz, "to" timestamptz, expand boolean DEFAULT false, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (name text, etag text, data text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_query';
COMMENT ON FUNCTION sheet.caldav_query(bigint, timestamptz, timestamptz, boolean, bigint) IS
	'The objects that have occurrences between "from" and "to". expand: with an event for each of these occurrences, instead of rules. Viewers.';

CREATE FUNCTION sheet.caldav_changes(sheet_id bigint, since bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (name text, etag text, gone boolean, token bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_changes';
COMMENT ON FUNCTION sheet.caldav_changes(bigint, bigint, bigint) IS
	'The objects that have changed since a token (null: all there are), and a row without a name that has the token of now. gone: it is '
	'deleted. 22023: the token is none of this calendar. Viewers.';

CREATE FUNCTION sheet.caldav_put(sheet_id bigint, name text, data text, if_match text DEFAULT NULL, if_none_match text DEFAULT NULL,
	as_uid bigint DEFAULT NULL, OUT etag text, OUT created boolean)
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_put';
COMMENT ON FUNCTION sheet.caldav_put(bigint, text, text, text, text, bigint) IS
	'Makes or replaces an object: its events become rows, and what the caller''s account says about itself (PARTSTAT) its answer. if_match, '
	'if_none_match: as in HTTP; SE001 if they do not hold. 22023 with the precondition of CalDAV as constraint name: the calendar cannot have '
	'it, and nothing is changed. Editors; viewers, if only answers of theirs differ.';

CREATE FUNCTION sheet.caldav_delete(sheet_id bigint, name text, if_match text DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_delete';
COMMENT ON FUNCTION sheet.caldav_delete(bigint, text, text, bigint) IS
	'Deletes an object, with its rows. SE001: if_match does not hold. 42704: there is none. Editors.';

CREATE FUNCTION sheet.changes_since(calendar bigint, since bigint) RETURNS TABLE (name text, etag text, gone boolean, token bigint)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	last bigint := sheet.calendar_token(calendar);
BEGIN
	IF since > last OR since < (SELECT c.began_no FROM sheet.calendar c WHERE c.sheet_id = calendar) THEN
		RAISE EXCEPTION 'the token is none of this calendar' USING ERRCODE = '22023', CONSTRAINT = 'valid-sync-token';
	END IF;
	RETURN QUERY SELECT o.name, sheet.object_etag(o.change_no), o.gone, NULL::bigint FROM sheet.calendar_object o
		WHERE o.sheet_id = calendar AND o.change_no > coalesce(since, -1) AND (since IS NOT NULL OR NOT o.gone);
	RETURN QUERY SELECT NULL::text, NULL::text, NULL::boolean, last;
END
$$;
COMMENT ON FUNCTION sheet.changes_since(bigint, bigint) IS 'Internal: see sheet.caldav_changes().';

-- ---- feeds ----

CREATE FUNCTION sheet.calendar_feed(digest bytea, known text) RETURNS TABLE (link_id bigint, etag text, data text)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
DECLARE
	f record;
BEGIN
	SELECT p.link_id, p.sheet_id, format('"%s-%s"', p.link_id, sheet.calendar_token(p.sheet_id)) AS etag INTO f FROM sheet.published(digest) p
		JOIN sheet.sheet s ON s.sheet_id = p.sheet_id WHERE s.calendar AND NOT p.rectangle;
	IF NOT FOUND THEN
		RETURN;
	ELSIF f.etag = known THEN
		RETURN QUERY SELECT f.link_id, f.etag, NULL::text;
		RETURN;
	END IF;
	RETURN QUERY WITH part AS MATERIALIZED (SELECT p.*, CASE WHEN p.starts >= '1990-01-01' THEN '1990-01-01' ELSE '-infinity' END::timestamp AS since
			FROM sheet.object_parts(f.sheet_id, NULL) p)
		SELECT f.link_id, f.etag, sheet.ics_object((SELECT string_agg(sheet.ics_timezone(z.zone, z.since), '' ORDER BY z.zone)
				FROM (SELECT p.zone, min(p.since) AS since FROM part p WHERE p.zone <> 'UTC' GROUP BY p.zone) z),
			(SELECT string_agg(p.event, '' ORDER BY p.name, p.instance NULLS FIRST) FROM part p));
END
$$;
COMMENT ON FUNCTION sheet.calendar_feed(bytea, text) IS
	'A calendar as one iCalendar text, for everybody who has the key of a link with this SHA-256: 0 or 1 row; none as published(), for a '
	'rectangle, and for other sheets. data null: the ETag is the one that is known. For gateways.';

SELECT pg_catalog.pg_extension_config_dump('sheet.change_no_seq', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.calendar_object', '');
