-- Calendars: sheets whose rows are tasks (docs/design/calendar.md). refresh_calendar() derives the tables here from the cells,
-- except sheet.answer and sheet.outbox.

-- ---- times of series (extension/calendar) ----

CREATE FUNCTION sheet.occurrences(starts timestamp, rule text DEFAULT NULL, zone text DEFAULT 'UTC',
	"from" timestamptz DEFAULT NULL, "to" timestamptz DEFAULT NULL, dates timestamp[] DEFAULT NULL,
	"except" timestamp[] DEFAULT NULL, max_rows integer DEFAULT NULL)
	RETURNS TABLE (instance timestamp, starts_at timestamptz)
	LANGUAGE c STABLE PARALLEL SAFE ROWS 100 AS 'MODULE_PATHNAME', 'sheet_occurrences';
COMMENT ON FUNCTION sheet.occurrences(timestamp, text, text, timestamptz, timestamptz, timestamp[], timestamp[], integer) IS
	'The times of a series, in order: its start, those of a rule (RFC 5545, such as '
	'FREQ=WEEKLY;BYDAY=MO,TH;COUNT=10) and of dates, without those of except. All of them are local times in the zone; '
	'starts_at is the time at which its clocks show instance. Only those from "from" on and before "to", and at most '
	'max_rows (100000 if null). 22023: not a rule, or not a zone.';

CREATE FUNCTION sheet.check_rule(rule text, starts timestamp, zone text) RETURNS boolean
	LANGUAGE c STRICT STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_check_rule';
COMMENT ON FUNCTION sheet.check_rule(text, timestamp, text) IS
	'Internal: whether the rule ends by itself. 22023: not a rule.';

CREATE FUNCTION sheet.zone_time(local timestamp, zone text) RETURNS timestamptz
	LANGUAGE c STRICT STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_zone_time';
COMMENT ON FUNCTION sheet.zone_time(timestamp, text) IS
	'Internal: the time at which the clocks of the zone show the local time; of two, the first.';

CREATE FUNCTION sheet.zone_rules(zone text) RETURNS bigint
	LANGUAGE c STRICT STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_zone_rules';
COMMENT ON FUNCTION sheet.zone_rules(text) IS
	'Internal: a digest of the offsets of the zone from 2020 to 2060: another one if tzdata has new rules for it.';

-- ---- tables ----

CREATE SEQUENCE sheet.change_no_seq;
CREATE TABLE sheet.calendar (
	sheet_id bigint PRIMARY KEY,
	done_seq bigint NOT NULL DEFAULT 0,
	all_seq bigint,
	next_row integer,
	zone text,
	owner bigint,
	began_no bigint NOT NULL DEFAULT nextval('sheet.change_no_seq')
);
COMMENT ON TABLE sheet.calendar IS 'How far the tables of tasks follow each calendar. Without a row, all of its rows are read.';
COMMENT ON COLUMN sheet.calendar.done_seq IS 'all edits up to this seq are in sheet.task';
COMMENT ON COLUMN sheet.calendar.all_seq IS 'the seq at which reading all rows, in portions, began; null: this is not under way';
COMMENT ON COLUMN sheet.calendar.next_row IS 'the first row of the next portion';
COMMENT ON COLUMN sheet.calendar.zone IS 'of the sheet, when the tasks were made';
COMMENT ON COLUMN sheet.calendar.owner IS 'of the sheet, when the tasks were made';
COMMENT ON COLUMN sheet.calendar.began_no IS 'changes with greater numbers are all in sheet.calendar_object';

CREATE SEQUENCE sheet.guest_list_id_seq;
CREATE TABLE sheet.guest_list (
	list_id bigint PRIMARY KEY DEFAULT nextval('sheet.guest_list_id_seq'),
	uids bigint[] NOT NULL,
	digest bytea NOT NULL
);
-- Not unique: of two transactions that make the same list, none waits for the other.
CREATE INDEX guest_list_digest_idx ON sheet.guest_list (digest);
COMMENT ON TABLE sheet.guest_list IS 'The persons of a series. Series with the same persons usually share a list.';
COMMENT ON COLUMN sheet.guest_list.uids IS 'in ascending order';
COMMENT ON COLUMN sheet.guest_list.digest IS 'SHA-256 of the calendar''s owner and the uids';

CREATE TABLE sheet.guest (
	uid bigint NOT NULL,
	list_id bigint NOT NULL,
	PRIMARY KEY (uid, list_id)
);
COMMENT ON TABLE sheet.guest IS 'The lists in which an account is.';

CREATE SEQUENCE sheet.task_id_seq;
CREATE TABLE sheet.task (
	task_id bigint PRIMARY KEY DEFAULT nextval('sheet.task_id_seq'),
	sheet_id bigint NOT NULL,
	row_no integer NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	instance timestamp,
	cells jsonb NOT NULL,
	title text NOT NULL DEFAULT '',
	place text NOT NULL DEFAULT '',
	except_at timestamp[],
	remind interval,
	problem text,
	unknown text[] COLLATE "C",
	series_id bigint
);
-- A plan that was cached while the table was empty may use the wrong one of two indexes that begin with sheet_id, and read all tasks of a
-- calendar. This index is on an expression, so only queries by row use it: they write "sheet_id + 0".
CREATE INDEX task_row_idx ON sheet.task ((sheet_id + 0), row_no);
CREATE INDEX task_uid_idx ON sheet.task (sheet_id, task_uid);
CREATE INDEX task_unknown_idx ON sheet.task USING gin (unknown) WHERE unknown IS NOT NULL;
CREATE INDEX task_remind_idx ON sheet.task (sheet_id) WHERE remind IS NOT NULL;
ALTER TABLE sheet.task ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.task IS 'The rows of calendars.';
COMMENT ON COLUMN sheet.task.row_no IS 'from 0; -1: it was not found there, and may be found elsewhere';
COMMENT ON COLUMN sheet.task.task_uid IS 'UID of iCalendar; a task and the changes of its occurrences have the same';
COMMENT ON COLUMN sheet.task.instance IS 'the occurrence of the task that this row replaces; null: the task itself';
COMMENT ON COLUMN sheet.task.cells IS 'by the names of the header; none: the row is to be read again';
COMMENT ON COLUMN sheet.task.except_at IS 'local times that do not take place';
COMMENT ON COLUMN sheet.task.problem IS 'why the row has no occurrences, or not all of its persons; null: nothing is wrong';
COMMENT ON COLUMN sheet.task.unknown IS 'names of Who that no account has; null: none';
COMMENT ON COLUMN sheet.task.series_id IS 'the series that is valid now; null: none';

CREATE SEQUENCE sheet.series_id_seq;
CREATE TABLE sheet.series (
	series_id bigint PRIMARY KEY DEFAULT nextval('sheet.series_id_seq'),
	sheet_id bigint NOT NULL,
	task_id bigint NOT NULL,
	list_id bigint NOT NULL,
	starts timestamp NOT NULL,
	lasts interval NOT NULL,
	all_day boolean NOT NULL,
	zone text NOT NULL,
	zone_rules bigint NOT NULL,
	rule text,
	dates timestamp[],
	until_at timestamptz NOT NULL DEFAULT 'infinity',
	expanded_to timestamptz NOT NULL DEFAULT '-infinity',
	last_end timestamptz NOT NULL DEFAULT 'infinity',
	garbage boolean NOT NULL DEFAULT false
);
CREATE INDEX series_sheet_idx ON sheet.series (sheet_id, last_end);
CREATE INDEX series_list_idx ON sheet.series (list_id);
CREATE INDEX series_rest_idx ON sheet.series (sheet_id, expanded_to) WHERE expanded_to < 'infinity';
CREATE INDEX series_garbage_idx ON sheet.series (sheet_id) WHERE garbage;
ALTER TABLE sheet.series ALTER sheet_id SET (n_distinct = -0.05), ALTER list_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.series IS
	'Versions of tasks: a change of times or persons ends one and begins another. Only until_at ever becomes earlier, and '
	'expanded_to later, unless the zone has new rules: see follow_zones().';
COMMENT ON COLUMN sheet.series.lasts IS 'all_day: in days; otherwise exact time';
COMMENT ON COLUMN sheet.series.zone_rules IS 'zone_rules() of the zone when its future occurrences were made';
COMMENT ON COLUMN sheet.series.until_at IS 'occurrences that begin then or later are not valid; -infinity: none is';
COMMENT ON COLUMN sheet.series.expanded_to IS
	'all occurrences that begin earlier are in sheet.occurrence; infinity: all that are valid';
COMMENT ON COLUMN sheet.series.last_end IS 'no valid occurrence ends later; infinity: not known yet';
COMMENT ON COLUMN sheet.series.garbage IS 'it has occurrences that are not valid, which can be removed';

CREATE TABLE sheet.occurrence (
	series_id bigint NOT NULL,
	starts_at timestamptz NOT NULL,
	ends_at timestamptz NOT NULL,
	list_id bigint NOT NULL,
	PRIMARY KEY (series_id, starts_at)
);
CREATE INDEX occurrence_list_idx ON sheet.occurrence (list_id, starts_at);
-- Those that may have begun before the day that is asked for.
CREATE INDEX occurrence_long_idx ON sheet.occurrence (list_id, ends_at) WHERE ends_at - starts_at > interval '1 day';
COMMENT ON TABLE sheet.occurrence IS 'The times of series. Rows are only added, until their series is not valid.';

CREATE TABLE sheet.series_except (
	series_id bigint NOT NULL,
	starts_at timestamptz NOT NULL,
	PRIMARY KEY (series_id, starts_at)
);
COMMENT ON TABLE sheet.series_except IS 'Occurrences of a series that do not take place, or that a row of their own replaces.';

CREATE TABLE sheet.answer (
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	uid bigint NOT NULL,
	instance timestamp NOT NULL,
	answer text NOT NULL CHECK (answer IN ('accepted', 'declined', 'tentative')),
	answered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (sheet_id, task_uid, uid, instance)
);
CREATE INDEX answer_instance_idx ON sheet.answer (sheet_id, task_uid) WHERE instance > '-infinity';
COMMENT ON TABLE sheet.answer IS 'What invited accounts have answered.';
COMMENT ON COLUMN sheet.answer.instance IS 'of one occurrence; -infinity: of all that have no answer of their own';

-- ---- the cells of a row ----

-- The column Who: names of persons with commas or semicolons between them. A name that has one stands in quotes.
CREATE FUNCTION sheet.persons_of(who text) RETURNS text[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT coalesce(sheet.list_items(string_agg(CASE WHEN p.n % 2 = 1 THEN replace(p.part, ';', ',') ELSE p.part END, '"' ORDER BY p.n), ','), '{}')
			FROM unnest(string_to_array(who, '"')) WITH ORDINALITY p (part, n);
	END;
COMMENT ON FUNCTION sheet.persons_of(text) IS 'Internal: the names in a cell of the column Who; null and an empty text have none.';

CREATE FUNCTION sheet.person_item(name text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN name ~ '[,;"]' THEN '"' || replace(name, '"', '""') || '"' ELSE name END;
	END;
COMMENT ON FUNCTION sheet.person_item(text) IS 'Internal: a name as it stands in the column Who.';

CREATE TYPE sheet.task_fields AS (title text, place text, who text[], starts timestamp, lasts interval, all_day boolean, zone text,
	rule text, dates timestamp[], "except" timestamp[], remind interval);
COMMENT ON TYPE sheet.task_fields IS 'A row of a calendar, as it is understood.';

CREATE FUNCTION sheet.read_time(content text, what text, OUT local timestamp, OUT is_date boolean)
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
	IF content !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?$' THEN
		RAISE EXCEPTION '%: "%" is not a date or a time', what, left(content, 40) USING ERRCODE = '22023',
			HINT = 'Write it as 2027-01-31 or 2027-01-31 09:30.';
	END IF;
	is_date := length(content) = 10;
	local := content::timestamp;
EXCEPTION WHEN datetime_field_overflow THEN
	RAISE EXCEPTION '%: there is no time "%"', what, content USING ERRCODE = '22023';
END
$$;
COMMENT ON FUNCTION sheet.read_time(text, text) IS 'Internal: the time in a cell of a calendar. what: the name of its column.';

CREATE FUNCTION sheet.read_times(content text, what text, of_day interval) RETURNS timestamp[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT array_agg(t.local + CASE WHEN t.is_date THEN of_day ELSE '0'::interval END ORDER BY t.local)
		FROM unnest(sheet.list_items(content, ',')) i (item), sheet.read_time(i.item, what) t WHERE i.item <> '';
	END;
COMMENT ON FUNCTION sheet.read_times(text, text, interval) IS
	'Internal: a list of times in a cell of a calendar. A date means the time of day of_day.';

CREATE FUNCTION sheet.read_length(content text, what text) RETURNS interval
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF content ~ '^-|^[0-9.]*$' OR content ~* 'mon|year|y$|ago' OR content::interval > interval '1000 days' OR content::interval < '0' THEN
		RAISE EXCEPTION '%: "%" is not a length of time', what, left(content, 40) USING ERRCODE = '22023',
			HINT = 'Write it as 45 min, 1 h 30 min or 2 days; at most 1000 days.';
	END IF;
	RETURN content::interval;
EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow OR interval_field_overflow THEN
	RAISE EXCEPTION '%: "%" is not a length of time', what, left(content, 40) USING ERRCODE = '22023',
		HINT = 'Write it as 45 min, 1 h 30 min or 2 days.';
END
$$;
COMMENT ON FUNCTION sheet.read_length(text, text) IS 'Internal: the length of time in a cell of a calendar.';

CREATE FUNCTION sheet.read_end(content text, starts timestamp, all_day boolean, zone text) RETURNS interval
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	lasts interval;
BEGIN
	IF content = '' THEN
		RETURN CASE WHEN all_day THEN interval '1 day' ELSE interval '0' END;
	ELSIF content ~ '^[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?$' AND NOT all_day THEN
		-- a time of that day, or of the next one
		SELECT starts::date + content::time + CASE WHEN content::time < starts::time THEN interval '1 day' ELSE '0' END AS local,
			false AS is_date INTO t;
	ELSIF content ~ '^[0-9]{4}-' THEN
		t := sheet.read_time(content, 'End');
		IF t.is_date <> all_day THEN
			RAISE EXCEPTION 'End: Start and End must both be dates, or both have a time of day' USING ERRCODE = '22023';
		END IF;
	ELSE
		lasts := sheet.read_length(content, 'End');
		IF all_day AND lasts <> date_trunc('day', lasts) OR all_day AND lasts = '0' THEN
			RAISE EXCEPTION 'End: what begins with a date lasts whole days' USING ERRCODE = '22023';
		END IF;
		RETURN lasts;
	END IF;
	lasts := CASE WHEN all_day THEN t.local - starts + interval '1 day'
		ELSE sheet.zone_time(t.local, zone) - sheet.zone_time(starts, zone) END;
	IF lasts < '0' OR all_day AND lasts <= '0' THEN
		RAISE EXCEPTION 'End: the end is before the start' USING ERRCODE = '22023';
	ELSIF lasts > interval '1000 days' THEN
		RAISE EXCEPTION 'End: it lasts more than 1000 days' USING ERRCODE = '22023';
	END IF;
	RETURN lasts;
END
$$;
COMMENT ON FUNCTION sheet.read_end(text, timestamp, boolean, text) IS
	'Internal: how long a task lasts: until a time (of dates, with that day), or for a length of time.';

CREATE FUNCTION sheet.read_rule(content text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE lower(content) WHEN '' THEN NULL WHEN 'daily' THEN 'FREQ=DAILY' WHEN 'weekly' THEN 'FREQ=WEEKLY'
			WHEN 'monthly' THEN 'FREQ=MONTHLY' WHEN 'yearly' THEN 'FREQ=YEARLY'
			ELSE regexp_replace(upper(content), '^RRULE:', '') END;
	END;
COMMENT ON FUNCTION sheet.read_rule(text) IS 'Internal: the rule in a cell of a calendar; null: none.';

CREATE FUNCTION sheet.read_task(cells jsonb, zone text) RETURNS sheet.task_fields
	LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	f sheet.task_fields;
	t record;
BEGIN
	f.title := coalesce(cells->>'title', '');
	f.place := coalesce(cells->>'place', '');
	f.who := ARRAY(SELECT DISTINCT i.item FROM unnest(sheet.persons_of(cells->>'who')) i (item)
		WHERE i.item <> '' ORDER BY 1);
	IF cardinality(f.who) > 500 THEN
		RAISE EXCEPTION 'Who: more than 500 persons' USING ERRCODE = '22023';
	END IF;
	IF coalesce(cells->>'start', '') = '' THEN
		RAISE EXCEPTION 'Start: it is empty' USING ERRCODE = '22023';
	END IF;
	t := sheet.read_time(cells->>'start', 'Start');
	f.starts := t.local;
	f.all_day := t.is_date;
	f.zone := coalesce(nullif(cells->>'time zone', ''), zone);
	PERFORM sheet.zone_time(f.starts, f.zone);
	f.lasts := sheet.read_end(coalesce(cells->>'end', ''), f.starts, f.all_day, f.zone);
	f.rule := sheet.read_rule(coalesce(cells->>'repeats', ''));
	f.dates := sheet.read_times(coalesce(cells->>'dates', ''), 'Dates', f.starts::time::interval);
	f.except := sheet.read_times(coalesce(cells->>'except', ''), 'Except', f.starts::time::interval);
	f.remind := CASE WHEN coalesce(cells->>'reminder', '') <> '' THEN sheet.read_length(cells->>'reminder', 'Reminder') END;
	IF f.rule IS NOT NULL THEN
		PERFORM sheet.check_rule(f.rule, f.starts, f.zone);
	END IF;
	RETURN f;
END
$$;
COMMENT ON FUNCTION sheet.read_task(jsonb, text) IS
	'Internal: what the cells of a row of a calendar say, by the names of the header in lower case. zone: of the calendar. '
	'22023: with the name of the column.';
