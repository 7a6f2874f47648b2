-- Answers of calendar programs: what an object says about the account that writes it (docs/design/caldav.md).

-- Ignores the properties that an attendee may set for itself (RFC 6638 3.2.2.1).
CREATE FUNCTION sheet.is_same_event(a sheet.calendar_event, b sheet.calendar_event, zone text) RETURNS boolean
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	one sheet.task_fields := sheet.read_task(a.cells - 'reminder', zone);
	other sheet.task_fields := sheet.read_task(b.cells - 'reminder', zone);
BEGIN
	IF NOT (one.all_day OR other.all_day) AND coalesce(one.rule, other.rule) IS NULL AND coalesce(one.dates, other.dates) IS NULL
			AND sheet.zone_time(one.starts, one.zone) = sheet.zone_time(other.starts, other.zone) THEN
		other.starts := one.starts;
		other.zone := one.zone;
	END IF;
	RETURN one IS NOT DISTINCT FROM other AND a.cells->>'notes' IS NOT DISTINCT FROM b.cells->>'notes' AND a.rest = b.rest;
END
$$;
COMMENT ON FUNCTION sheet.is_same_event(sheet.calendar_event, sheet.calendar_event, text) IS
	'Internal: whether events of a calendar of that zone differ only in answers and alarms.';

-- A program answers one occurrence by sending an event for it. That event gets a row only if the occurrence has one already.
CREATE FUNCTION sheet.own_events(events sheet.calendar_event[], zone text, rows timestamp[]) RETURNS sheet.calendar_event[]
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
DECLARE
	task sheet.calendar_event := events[1];
	f sheet.task_fields;
	plain timestamp[];
BEGIN
	IF task.instance IS NOT NULL OR cardinality(events) = 1 THEN
		RETURN events;
	END IF;
	f := sheet.read_task(task.cells, zone);
	plain := ARRAY(SELECT e.instance FROM unnest(events) e WHERE e.instance IS NOT NULL AND e.instance <> ALL (array_remove(rows, NULL))
		AND sheet.is_same_event(e, (task.task_uid, e.instance, sheet.task_from(task.cells, f.starts, e.instance, '0') - 'repeats', NULL, NULL,
			task.rest)::sheet.calendar_event, zone) ORDER BY 1);
	IF cardinality(plain) > 0 THEN
		plain := ARRAY(SELECT o.instance FROM sheet.occurrences(f.starts, f.rule, f.zone, sheet.zone_time(plain[1], f.zone),
			sheet.zone_time(plain[cardinality(plain)], f.zone) + interval '1 s', f.dates, f.except) o WHERE o.instance = ANY (plain));
	END IF;
	RETURN ARRAY(SELECT e FROM unnest(events) e WHERE e.instance IS NULL OR e.instance <> ALL (plain) ORDER BY e.instance NULLS FIRST);
END
$$;
COMMENT ON FUNCTION sheet.own_events(sheet.calendar_event[], text, timestamp[]) IS
	'Internal: without events of occurrences that say, but for answers, what the task says, and are not among `rows`.';

-- A program that changes the task may send back, unchanged, the events of answered occurrences. They get no rows.
CREATE FUNCTION sheet.without_read(calendar bigint, object text, events sheet.calendar_event[], zone text, rows timestamp[])
	RETURNS sheet.calendar_event[] LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM unnest(events) e WHERE e.instance <> ALL (array_remove(rows, NULL))) THEN
		RETURN events;
	END IF;
	RETURN ARRAY(SELECT e FROM unnest(events) e LEFT JOIN (SELECT s.* FROM sheet.read_objects(calendar, ARRAY[object]) o, sheet.ics_read(o.data, zone) s
			WHERE s.instance <> ALL (array_remove(rows, NULL))) k ON k.instance = e.instance
		WHERE k.task_uid IS NULL OR NOT sheet.is_same_event(e, (k.*)::sheet.calendar_event, zone) ORDER BY e.instance NULLS FIRST);
END
$$;
COMMENT ON FUNCTION sheet.without_read(bigint, text, sheet.calendar_event[], text, timestamp[]) IS
	'Internal: without events of occurrences that have no row, not being among `rows`, and are as the object''s text has them.';

CREATE FUNCTION sheet.is_same_object(a sheet.calendar_event[], b sheet.calendar_event[], zone text) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT NOT EXISTS (SELECT FROM unnest(sheet.own_events(a, zone, '{}')) x FULL JOIN unnest(sheet.own_events(b, zone, '{}')) y
		ON coalesce(x.instance, '-infinity') = coalesce(y.instance, '-infinity') AND x.task_uid = y.task_uid
		WHERE x.task_uid IS NULL OR y.task_uid IS NULL OR NOT sheet.is_same_event(x, y, zone))
$$;
COMMENT ON FUNCTION sheet.is_same_object(sheet.calendar_event[], sheet.calendar_event[], text) IS
	'Internal: whether objects differ only in answers and alarms.';

-- Replaces the e-mail address of the account by its name, unless the cell Who has the address.
CREATE FUNCTION sheet.with_account(calendar bigint, events sheet.calendar_event[], as_uid bigint) RETURNS sheet.calendar_event[]
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me sheet.account;
	e sheet.calendar_event;
	result sheet.calendar_event[] := '{}';
	address text;
BEGIN
	SELECT * INTO me FROM sheet.account a WHERE a.uid = as_uid AND a.email ~ '@' AND NOT EXISTS (SELECT FROM sheet.task t, unnest((sheet.task_persons(t, NULL)).who) w
		WHERE t.sheet_id = calendar AND t.task_uid = events[1].task_uid AND lower(w) = lower(a.email));
	IF NOT FOUND THEN
		RETURN events;
	END IF;
	FOREACH e IN ARRAY events LOOP
		address := (SELECT k FROM jsonb_object_keys(e.answers) k WHERE lower(k) = lower(me.email) LIMIT 1);
		IF strpos(lower(e.cells->>'who'), lower(me.email)) > 0 THEN
			e.cells := e.cells || jsonb_build_object('who', (SELECT string_agg(DISTINCT sheet.person_item(CASE WHEN lower(i.item) = lower(me.email) THEN me.name ELSE i.item END), ', ')
				FROM unnest(sheet.persons_of(e.cells->>'who')) i (item)));
		END IF;
		IF address IS NOT NULL THEN
			e.answers := e.answers || jsonb_build_object(me.name, e.answers->>address);
		END IF;
		result := result || e;
	END LOOP;
	RETURN result;
END
$$;
COMMENT ON FUNCTION sheet.with_account(bigint, sheet.calendar_event[], bigint) IS
	'Internal: events that name the account instead of its e-mail address.';

-- Caller has locked the row of sheet.calendar.
CREATE FUNCTION sheet.take_answers(calendar bigint, events sheet.calendar_event[], as_uid bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	a record;
	changed boolean := false;
BEGIN
	FOR a IN SELECT e.instance, nullif(g.answer, 'invited') AS answer FROM sheet.account me, unnest(events) e, LATERAL (SELECT e.answers->>me.name) g (answer)
			WHERE me.uid = as_uid AND g.answer <> sheet.answer_of(calendar, e.task_uid, as_uid, coalesce(e.instance, '-infinity')) LOOP
		changed := changed OR coalesce(sheet.give_answer(calendar, events[1].task_uid, as_uid, a.instance, a.answer), false);
	END LOOP;
	IF changed THEN
		PERFORM sheet.objects_changed(calendar, ARRAY[events[1].task_uid]);
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.take_answers(bigint, sheet.calendar_event[], bigint) IS
	'Internal: what an account says in an object about itself is its answer, if it is a person of the task.';
