-- Calendars: making and changing them by SQL. These functions write cells as their caller, who needs the rights for that.

CREATE FUNCTION sheet.set_calendar(sheet_id bigint, calendar boolean DEFAULT true, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_set_calendar';
COMMENT ON FUNCTION sheet.set_calendar(bigint, boolean, bigint) IS
	'Makes a sheet with a header a calendar, or ends that: its cells stay. 22023: the first row lacks Title or Start. Owners.';

CREATE FUNCTION sheet.refresh_calendar(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_refresh_calendar';
COMMENT ON FUNCTION sheet.refresh_calendar(bigint, bigint) IS
	'Has agendas follow the calendar''s edits at once, those of this transaction too, for this month and the next one. A '
	'background worker does the rest, and does it after every commit of edits. Locks the sheet. Editors.';

CREATE FUNCTION sheet.tasks(sheet_id bigint, task text DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS TABLE ("row" integer, task_uid text, instance timestamp, title text, place text, starts timestamp, lasts interval,
		all_day boolean, zone text, rule text, until_at timestamptz, cells jsonb, problem text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_tasks';
COMMENT ON FUNCTION sheet.tasks(bigint, text, bigint) IS
	'The rows of a calendar, or those with the UID task, as they are understood, by row (from 0). problem: why a row has no '
	'occurrences, or not all of its persons. cells: by the names of the header, in lower case. Viewers.';

CREATE FUNCTION sheet.calendar_entries(sheet_id bigint, "from" timestamptz, "to" timestamptz, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (task_uid text, instance timestamp, starts_at timestamptz, ends_at timestamptz, all_day boolean, zone text,
		title text, place text, persons text[])
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_calendar_entries';
COMMENT ON FUNCTION sheet.calendar_entries(bigint, timestamptz, timestamptz, bigint) IS
	'The occurrences of all tasks of a calendar that touch the time between "from" and "to", by their start. Viewers.';

CREATE FUNCTION sheet.agenda(uid bigint, "from" timestamptz, "to" timestamptz)
	RETURNS TABLE (sheet_id bigint, task_uid text, instance timestamp, starts_at timestamptz, ends_at timestamptz, all_day boolean,
		zone text, title text, place text, answer text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_agenda';
COMMENT ON FUNCTION sheet.agenda(bigint, timestamptz, timestamptz) IS
	'The events of an account (null: one''s own) that touch the time between "from" and "to", by their start: the occurrences of tasks '
	'that name it, and of tasks without persons in its own calendars. answer: invited, accepted, declined or tentative. The account '
	'itself; superusers and gateways for all.';

CREATE FUNCTION sheet.month_dots(uid bigint, month date, zone text) RETURNS SETOF date
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_month_dots';
COMMENT ON FUNCTION sheet.month_dots(bigint, date, text) IS
	'The days of the month of a date, in a time zone, on which the account (null: one''s own) has events. As agenda().';

CREATE FUNCTION sheet.busy(uids bigint[], "from" timestamptz, "to" timestamptz) RETURNS TABLE (uid bigint, busy tstzmultirange)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_busy';
COMMENT ON FUNCTION sheet.busy(bigint[], timestamptz, timestamptz) IS
	'When accounts have events that they have not declined, between "from" and "to", without what these are. Of others than the caller, '
	'only if they share a calendar that they own with the caller; superusers and gateways for all.';

CREATE FUNCTION sheet.common_gap(uids bigint[], "from" timestamptz, "to" timestamptz, length interval) RETURNS tstzrange
	LANGUAGE sql STABLE PARALLEL UNSAFE
	BEGIN ATOMIC
		SELECT tstzrange(lower(g.gap), lower(g.gap) + length) FROM unnest(tstzmultirange(tstzrange("from", "to"))
			- (SELECT coalesce(range_agg(r.busy), '{}') FROM sheet.busy(uids, "from", "to") b, unnest(b.busy) r (busy))) g (gap)
		WHERE upper(g.gap) - lower(g.gap) >= length ORDER BY g.gap LIMIT 1;
	END;
COMMENT ON FUNCTION sheet.common_gap(bigint[], timestamptz, timestamptz, interval) IS
	'The first time of this length at which none of the accounts is busy, between "from" and "to"; null: there is none. As busy().';

CREATE FUNCTION sheet.answer(sheet_id bigint, task_uid text, answer text, instance timestamp DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_answer';
COMMENT ON FUNCTION sheet.answer(bigint, text, text, timestamp, bigint) IS
	'Answers an invitation: accepted, declined or tentative; null takes the answer back. instance: of one occurrence; null: of all '
	'that have no answer of their own. 42704: the caller is not invited to such a task.';

CREATE FUNCTION sheet.create_calendar(name text, zone text DEFAULT 'UTC', as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	id bigint;
BEGIN
	PERFORM sheet.zone_time('2000-01-01', zone);
	id := sheet.create(name, 100, 13, NULL, as_uid);
	PERFORM sheet.set_range(id, 'A1', ARRAY[['Title', 'Start', 'End', 'Repeats', 'Who', 'Place', 'Reminder', 'Time zone', 'Except', 'Dates', 'Notes',
		'UID', 'Instance']], as_uid);
	PERFORM sheet.set_property(id, NULL, 'timezone', to_jsonb(zone), as_uid);
	PERFORM sheet.set_property(id, NULL, 'freeze', '{"rows": 1, "cols": 0}', as_uid);
	PERFORM sheet.set_calendar(id, true, as_uid);
	PERFORM sheet.refresh_calendar(id, as_uid);
	RETURN id;
END
$$;
COMMENT ON FUNCTION sheet.create_calendar(text, text, bigint) IS
	'Creates a calendar: a sheet with the header of one, and a time zone. Returns its id.';

CREATE FUNCTION sheet.calendar_columns(sheet_id bigint, as_uid bigint) RETURNS TABLE (name text, letters text, zone text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_calendar_columns';
COMMENT ON FUNCTION sheet.calendar_columns(bigint, bigint) IS
	'Internal: the columns of a calendar, by their names in lower case, each with the zone of the calendar. Viewers.';

CREATE FUNCTION sheet.calendar_end(sheet_id bigint, as_uid bigint) RETURNS integer
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_calendar_end';
COMMENT ON FUNCTION sheet.calendar_end(bigint, bigint) IS 'Internal: the row behind the last content of a calendar. Viewers.';

CREATE FUNCTION sheet.is_text(content text) RETURNS boolean
	LANGUAGE c STRICT IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_is_text';
COMMENT ON FUNCTION sheet.is_text(text) IS
	'Internal: whether a text, as the content of a cell, is that text: no number, boolean, date, time or formula, and without an apostrophe in front.';

-- calendar_rows() reads the same text from this content. In a column that calendars do not know, the text is a content.
CREATE FUNCTION sheet.task_content(name text, value text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN sheet.is_task_column(name) AND starts_with(value, '''') OR name IN ('title', 'place', 'who', 'notes', 'uid') AND NOT sheet.is_text(value)
			THEN '''' ELSE '' END || value;
	END;
COMMENT ON FUNCTION sheet.task_content(text, text) IS
	'Internal: the content of a cell for the text of a task in the column of a name. Titles, places, persons, notes and UIDs are texts.';

-- Writes the cells of a row by the names of the header. row_no null: the row behind the last content. Returns the row.
CREATE FUNCTION sheet.put_cells(sheet_id bigint, row_no integer, cells jsonb, as_uid bigint) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
BEGIN
	row_no := coalesce(row_no, sheet.calendar_end(sheet_id, as_uid));
	FOR c IN SELECT h.name, h.letters, k.value FROM jsonb_each_text(cells) k JOIN sheet.calendar_columns(sheet_id, as_uid) h ON h.name = lower(k.key) LOOP
		PERFORM sheet.set_range(sheet_id, c.letters || row_no + 1, ARRAY[[sheet.task_content(c.name, c.value)]], as_uid);
	END LOOP;
	RETURN row_no;
END
$$;
COMMENT ON FUNCTION sheet.put_cells(bigint, integer, jsonb, bigint) IS 'Internal: writes cells of a row of a calendar, as the caller.';

CREATE FUNCTION sheet.check_object(cells jsonb) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF jsonb_typeof(cells) IS DISTINCT FROM 'object' THEN
		RAISE EXCEPTION 'the cells of a task must be a JSON object' USING ERRCODE = '22023',
			HINT = 'For example {"Title": "Lunch", "Start": "2027-01-31 12:00"}.';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.check_object(jsonb) IS 'Internal: raises 22023 unless the cells are a JSON object.';

CREATE FUNCTION sheet.check_cells(sheet_id bigint, cells jsonb, as_uid bigint) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	names text[];
	zone text;
	unknown text;
BEGIN
	SELECT array_agg(h.name), min(h.zone) INTO names, zone FROM sheet.calendar_columns(sheet_id, as_uid) h;
	unknown := (SELECT min(k.name) FROM jsonb_object_keys(cells) k (name) WHERE lower(k.name) <> ALL (coalesce(names, '{}')));
	IF unknown IS NOT NULL THEN
		RAISE EXCEPTION 'the calendar has no column "%"', left(unknown, 40) USING ERRCODE = '22023',
			DETAIL = 'The names of the columns are the contents of the first row.';
	END IF;
	PERFORM sheet.read_task((SELECT jsonb_object_agg(lower(k.key), coalesce(k.value, '')) FROM jsonb_each_text(cells) k), zone);
END
$$;
COMMENT ON FUNCTION sheet.check_cells(bigint, jsonb, bigint) IS 'Internal: raises 22023 unless the cells are a task.';

-- As for sheet.share(), whoever asks learns which accounts there are. Addresses of e-mail are of people without an account.
CREATE FUNCTION sheet.check_persons(who text, old text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	unknown text := (SELECT string_agg(format('"%s"', left(w.name, 40)), ', ' ORDER BY w.name COLLATE "C")
		FROM (SELECT unnest(sheet.persons_of(who)) EXCEPT SELECT unnest(sheet.persons_of(old))) w (name)
		WHERE w.name <> '' AND w.name !~ '@' AND NOT EXISTS (SELECT FROM sheet.account a WHERE a.name = w.name));
BEGIN
	IF unknown IS NOT NULL THEN
		RAISE EXCEPTION 'Who: there is no account %', left(unknown, 200) USING ERRCODE = '22023',
			HINT = 'Persons are names of accounts, with commas between them. A name that has a comma stands in quotes.';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.check_persons(text, text) IS
	'Internal: raises 22023 if a person is named that no account has as its name, and that old does not name.';

CREATE FUNCTION sheet.add_task(sheet_id bigint, cells jsonb, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	task_uid text := gen_random_uuid();
BEGIN
	PERFORM sheet.refresh_calendar(sheet_id, as_uid);
	PERFORM sheet.check_object(cells);
	PERFORM sheet.check_cells(sheet_id, cells, as_uid);
	PERFORM sheet.check_persons(k.value, '') FROM jsonb_each_text(cells) k WHERE lower(k.key) = 'who';
	PERFORM sheet.put_cells(sheet_id, NULL, (SELECT jsonb_object_agg(lower(k.key), coalesce(k.value, '')) FROM jsonb_each_text(cells) k)
		- 'uid' - 'instance' || jsonb_build_object('uid', task_uid), as_uid);
	PERFORM sheet.refresh_calendar(sheet_id, as_uid);
	RETURN task_uid;
END
$$;
COMMENT ON FUNCTION sheet.add_task(bigint, jsonb, bigint) IS
	'Adds a row to a calendar, from texts by the names of its header, such as {"Title": "Lunch", "Start": "2027-01-31 12:00", "End": "1 h", '
	'"Repeats": "FREQ=WEEKLY;COUNT=10", "Who": "ann, bob"}. Returns its UID. 22023: with the column that is not understood, or a person who has no account. Editors.';

CREATE FUNCTION sheet.until_text(at timestamptz) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT to_char(at AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISS"Z"');
	END;
COMMENT ON FUNCTION sheet.until_text(timestamptz) IS 'Internal: a time as UNTIL has it.';

-- The part of a rule before an occurrence, and the part from it on. If the rule ends, the second part counts the remaining
-- occurrences, since its time of day may differ.
CREATE FUNCTION sheet.cut_rule(rule text, starts timestamp, zone text, instance timestamp, OUT before text, OUT after text)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	bare text := sheet.rule_without_end(rule);
BEGIN
	before := bare || ';UNTIL=' || sheet.until_text(sheet.zone_time(instance, zone) - interval '1 s');
	after := bare;
	IF sheet.check_rule(rule, starts, zone) THEN
		after := after || ';COUNT=' || (SELECT count(*) FROM sheet.occurrences(starts, rule, zone, sheet.zone_time(instance, zone)) o);
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.cut_rule(text, timestamp, text, timestamp) IS
	'Internal: divides a rule before one of its occurrences.';

CREATE FUNCTION sheet.find_task(sheet_id bigint, task_uid text, scope text, instance timestamp, as_uid bigint,
	OUT "row" integer, OUT cells jsonb, OUT starts timestamp, OUT zone text, OUT rule text, OUT own_row integer)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sheet.refresh_calendar(sheet_id, as_uid);
	IF scope IS NULL OR scope NOT IN ('all', 'this', 'following') THEN
		RAISE EXCEPTION 'the scope is all, this or following' USING ERRCODE = '22023';
	ELSIF (scope = 'all') <> (instance IS NULL) THEN
		RAISE EXCEPTION 'the scope "%" % an instance', scope, CASE scope WHEN 'all' THEN 'has not' ELSE 'needs' END USING ERRCODE = '22023';
	END IF;
	SELECT t."row", t.cells, t.starts, t.zone, t.rule INTO "row", cells, starts, zone, rule FROM sheet.tasks(sheet_id, task_uid, as_uid) t
		WHERE t.instance IS NULL;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the calendar has no task "%"', left(task_uid, 100) USING ERRCODE = '42704';
	END IF;
	own_row := (SELECT t."row" FROM sheet.tasks(sheet_id, task_uid, as_uid) t
		WHERE t.instance = find_task.instance);
	IF instance IS NOT NULL AND NOT EXISTS (SELECT FROM sheet.occurrences(starts, rule, zone, sheet.zone_time(instance, zone),
			sheet.zone_time(instance, zone) + interval '1 s', (sheet.read_task(cells, zone)).dates)) THEN
		RAISE EXCEPTION 'the task has no occurrence at %', instance USING ERRCODE = '42704',
			HINT = 'instance is the local time of an occurrence of its rule, as agenda() returns it.';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.find_task(bigint, text, text, timestamp, bigint) IS
	'Internal: a task that is to be changed; own_row: of the row that replaces the occurrence.';

CREATE FUNCTION sheet.time_text(local timestamp, all_day boolean) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT to_char(local, CASE WHEN all_day THEN 'YYYY-MM-DD' ELSE 'YYYY-MM-DD HH24:MI:SS' END);
	END;
COMMENT ON FUNCTION sheet.time_text(timestamp, boolean) IS 'Internal: a time as it stands in a cell.';

-- The times of a list in a cell from `since` on and before `upto` (null: without bound), moved, as a cell has them.
CREATE FUNCTION sheet.times_between(times timestamp[], since timestamp, upto timestamp, moved interval) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT coalesce(string_agg(sheet.time_text(t.local + moved, false), ', ' ORDER BY t.local), '') FROM unnest(times) t (local)
		WHERE (since IS NULL OR t.local >= since) AND (upto IS NULL OR t.local < upto);
	END;
COMMENT ON FUNCTION sheet.times_between(timestamp[], timestamp, timestamp, interval) IS 'Internal: a part of a list of times, as a cell has it.';

-- What changes in a task that ends before an occurrence.
CREATE FUNCTION sheet.task_before(cells jsonb, rule text, starts timestamp, zone text, instance timestamp) RETURNS jsonb
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	f sheet.task_fields := sheet.read_task(cells, zone);
BEGIN
	RETURN CASE WHEN rule IS NOT NULL THEN jsonb_build_object('repeats', (sheet.cut_rule(rule, starts, zone, instance)).before) ELSE '{}' END
		|| CASE WHEN f.dates IS NOT NULL THEN jsonb_build_object('dates', sheet.times_between(f.dates, NULL, instance, '0')) ELSE '{}' END
		|| CASE WHEN f.except IS NOT NULL THEN jsonb_build_object('except', sheet.times_between(f.except, NULL, instance, '0')) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION sheet.task_before(jsonb, text, timestamp, text, timestamp) IS
	'Internal: the cells that change in a task which ends before an occurrence.';

-- The cell End of a task whose start has moved. A length stays.
CREATE FUNCTION sheet.moved_end(cells jsonb, moved interval) RETURNS jsonb
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	content text := coalesce(cells->>'end', '');
BEGIN
	IF content ~ '^[0-9]{4}-' THEN
		content := sheet.time_text((sheet.read_time(content, 'End')).local + moved, (sheet.read_time(content, 'End')).is_date);
	ELSIF content ~ '^[0-9]{1,2}:' THEN
		content := (content::time + moved)::text;
	END IF;
	RETURN CASE WHEN content <> '' THEN jsonb_build_object('end', content) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION sheet.moved_end(jsonb, interval) IS 'Internal: the end of a task that has moved, as its cell has it.';

-- The cells of a task that begins at an occurrence of another one, moved.
CREATE FUNCTION sheet.task_from(cells jsonb, starts timestamp, instance timestamp, moved interval) RETURNS jsonb
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	all_day boolean := (sheet.read_time(cells->>'start', 'Start')).is_date;
BEGIN
	RETURN cells - 'uid' - 'instance' - 'except' - 'dates' || jsonb_build_object('start', sheet.time_text(instance + moved, all_day))
		|| sheet.moved_end(cells, instance + moved - starts);
END
$$;
COMMENT ON FUNCTION sheet.task_from(jsonb, timestamp, timestamp, interval) IS
	'Internal: the cells of a task that begins at an occurrence of another one.';

CREATE FUNCTION sheet.moved_cells(cells jsonb, rule text, zone text, moved interval) RETURNS jsonb
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	f sheet.task_fields := sheet.read_task(cells, zone);
BEGIN
	RETURN sheet.moved_end(cells, moved) || CASE WHEN rule ~ 'UNTIL=' THEN jsonb_build_object('repeats', sheet.rule_without_end(rule) || ';UNTIL='
			|| sheet.until_text(sheet.rule_until(rule, zone) + moved)) ELSE '{}' END
		|| CASE WHEN f.dates IS NOT NULL THEN jsonb_build_object('dates', sheet.times_between(f.dates, NULL, NULL, moved)) ELSE '{}' END
		|| CASE WHEN f.except IS NOT NULL THEN jsonb_build_object('except', sheet.times_between(f.except, NULL, NULL, moved)) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION sheet.moved_cells(jsonb, text, text, interval) IS
	'Internal: the cells of a task that move with its start: its end, the end of the rule, dates and exceptions.';

CREATE FUNCTION sheet.move_instances(sheet_id bigint, task_uid text, result text, since timestamp, moved interval, as_uid bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	own record;
BEGIN
	FOR own IN SELECT k."row", k.instance FROM sheet.tasks(sheet_id, task_uid, as_uid) k WHERE k.instance >= since LOOP
		PERFORM sheet.put_cells(sheet_id, own."row", jsonb_build_object('uid', result, 'instance', sheet.time_text(own.instance + moved, false)), as_uid);
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.move_instances(bigint, text, text, timestamp, interval, bigint) IS
	'Internal: rows that replace occurrences from a time on become those of the task `result`, whose occurrences have moved.';

-- Divides a task before an occurrence. Rows of later occurrences go with the second part, and so do dates and exceptions; all move
-- as its start does.
CREATE FUNCTION sheet.cut_task(sheet_id bigint, task_uid text, t record, changed jsonb, instance timestamp, as_uid bigint) RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	result text := gen_random_uuid();
	f sheet.task_fields := sheet.read_task(t.cells, t.zone);
	moved interval := coalesce((sheet.read_time(changed->>'start', 'Start')).local - instance, '0');
BEGIN
	changed := sheet.task_from(t.cells, t.starts, instance, moved)
		|| CASE WHEN t.rule IS NOT NULL THEN jsonb_build_object('repeats', (sheet.cut_rule(t.rule, t.starts, t.zone, instance)).after) ELSE '{}' END
		|| CASE WHEN f.dates IS NOT NULL THEN jsonb_build_object('dates', sheet.times_between(f.dates, instance + interval '1 s', NULL, moved)) ELSE '{}' END
		|| CASE WHEN f.except IS NOT NULL THEN jsonb_build_object('except', sheet.times_between(f.except, instance, NULL, moved)) ELSE '{}' END
		|| changed || jsonb_build_object('uid', result);
	PERFORM sheet.check_cells(sheet_id, changed, as_uid);
	PERFORM sheet.put_cells(sheet_id, t."row", sheet.task_before(t.cells, t.rule, t.starts, t.zone, instance), as_uid);
	PERFORM sheet.move_instances(sheet_id, task_uid, result, instance, moved, as_uid);
	PERFORM sheet.put_cells(sheet_id, NULL, changed, as_uid);
	RETURN result;
END
$$;
COMMENT ON FUNCTION sheet.cut_task(bigint, text, record, jsonb, timestamp, bigint) IS
	'Internal: makes an occurrence and the later ones a task of their own, and returns its UID. t: of find_task().';

CREATE FUNCTION sheet.check_seen(cells jsonb, seen jsonb) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	other text;
BEGIN
	IF seen IS NULL THEN
		RETURN;
	END IF;
	PERFORM sheet.check_object(seen);
	other := (SELECT string_agg(k.key, ', ' ORDER BY k.key) FROM jsonb_each_text(seen) k WHERE coalesce(cells->>lower(k.key), '') <> coalesce(k.value, ''));
	IF other IS NOT NULL THEN
		RAISE EXCEPTION 'the task has changed: %', left(other, 100) USING ERRCODE = 'SM001', HINT = 'Read it again.';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.check_seen(jsonb, jsonb) IS 'Internal: raises SM001 if cells have other texts than the caller has seen.';

CREATE FUNCTION sheet.change_task(sheet_id bigint, task_uid text, cells jsonb, scope text DEFAULT 'all', instance timestamp DEFAULT NULL,
	seen jsonb DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	own record;
	changed jsonb;
	moved interval;
	old jsonb;
	result text := task_uid;
BEGIN
	SELECT * INTO t FROM sheet.find_task(sheet_id, task_uid, scope, instance, as_uid);
	old := t.cells;
	PERFORM sheet.check_object(cells);
	IF scope = 'this' AND t.own_row IS NOT NULL THEN
		SELECT k.cells, k.starts INTO own FROM sheet.tasks(sheet_id, task_uid, as_uid) k WHERE k."row" = t.own_row;
		old := own.cells;
	END IF;
	PERFORM sheet.check_seen(old, seen);
	changed := (SELECT coalesce(jsonb_object_agg(lower(k.key), coalesce(k.value, '')), '{}') FROM jsonb_each_text(cells) k) - 'uid' - 'instance';
	PERFORM sheet.check_persons(changed->>'who', coalesce(old->>'who', ''));
	IF scope = 'all' OR scope = 'following' AND instance = t.starts THEN
		moved := coalesce((sheet.read_time(changed->>'start', 'Start')).local - t.starts, '0');
		IF moved <> '0' THEN
			changed := sheet.moved_cells(t.cells, t.rule, t.zone, moved) || changed;
			PERFORM sheet.move_instances(sheet_id, task_uid, task_uid, '-infinity', moved, as_uid);
		END IF;
		PERFORM sheet.check_cells(sheet_id, t.cells || changed, as_uid);
		PERFORM sheet.put_cells(sheet_id, t."row", changed, as_uid);
	ELSIF scope = 'this' THEN
		IF t.own_row IS NULL THEN
			moved := coalesce((sheet.read_time(changed->>'start', 'Start')).local - instance, '0');
			changed := sheet.task_from(t.cells, t.starts, instance, moved) - 'repeats' || changed
				|| jsonb_build_object('uid', task_uid, 'instance', sheet.time_text(instance, false));
			PERFORM sheet.check_cells(sheet_id, changed, as_uid);
		ELSE
			moved := coalesce((sheet.read_time(changed->>'start', 'Start')).local - own.starts, '0');
			IF moved <> '0' THEN
				changed := sheet.moved_end(own.cells, moved) || changed;
			END IF;
			PERFORM sheet.check_cells(sheet_id, own.cells || changed, as_uid);
		END IF;
		PERFORM sheet.put_cells(sheet_id, t.own_row, changed, as_uid);
	ELSE
		result := sheet.cut_task(sheet_id, task_uid, t, changed, instance, as_uid);
	END IF;
	PERFORM sheet.refresh_calendar(sheet_id, as_uid);
	RETURN result;
END
$$;
COMMENT ON FUNCTION sheet.change_task(bigint, text, jsonb, text, timestamp, jsonb, bigint) IS
	'Changes the cells of a task (see add_task()), and returns its UID. scope all: of the task; this: of its occurrence at the local time '
	'`instance`, which gets a row of its own; following: of this and the later ones, which become a task of their own. If Start changes and End '
	'does not, the length stays. seen: the texts that the caller has read in the cells of the task, or of the row of the occurrence; SM001: one '
	'of them is another now. 42704: no such task or occurrence. Editors.';

CREATE FUNCTION sheet.delete_task(sheet_id bigint, task_uid text, scope text DEFAULT 'all', instance timestamp DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	row_no integer;
BEGIN
	SELECT * INTO t FROM sheet.find_task(sheet_id, task_uid, scope, instance, as_uid);
	IF scope = 'this' THEN
		PERFORM sheet.put_cells(sheet_id, t."row", jsonb_build_object('except',
			concat_ws(', ', nullif(t.cells->>'except', ''), sheet.time_text(instance, false))), as_uid);
		IF t.own_row IS NOT NULL THEN
			PERFORM sheet.delete_rows(sheet_id, t.own_row, 1, as_uid);
		END IF;
	ELSIF scope = 'following' AND instance > t.starts THEN
		PERFORM sheet.put_cells(sheet_id, t."row", sheet.task_before(t.cells, t.rule, t.starts, t.zone, instance), as_uid);
		FOR row_no IN SELECT k."row" FROM sheet.tasks(sheet_id, task_uid, as_uid) k
				WHERE k.instance >= delete_task.instance ORDER BY k."row" DESC LOOP
			PERFORM sheet.delete_rows(sheet_id, row_no, 1, as_uid);
		END LOOP;
	ELSE
		FOR row_no IN SELECT k."row" FROM sheet.tasks(sheet_id, task_uid, as_uid) k ORDER BY k."row" DESC LOOP
			PERFORM sheet.delete_rows(sheet_id, row_no, 1, as_uid);
		END LOOP;
	END IF;
	PERFORM sheet.refresh_calendar(sheet_id, as_uid);
END
$$;
COMMENT ON FUNCTION sheet.delete_task(bigint, text, text, timestamp, bigint) IS
	'Deletes a task; this: one of its occurrences; following: an occurrence and the later ones. As change_task(). Editors.';
