-- Calendars: what the tables of tasks tell, for extension/api/programs/calendars.c, which checks who asks.
--
-- Plans look up each occurrence's series, task and sheet by their indexes, whatever statistics say: other plans read all tasks of
-- a calendar, or all calendars. OFFSET 0 keeps the order of joins. An occurrence of more than a day is found by its end, others by
-- their start. "starts_at + interval '0'" is in no index: the index of starts would give all that has ever begun.

CREATE FUNCTION sheet.answer_of(sheet bigint, task text, person bigint, local timestamp) RETURNS text
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce((SELECT a.answer FROM sheet.answer a WHERE a.sheet_id = sheet AND a.task_uid = task AND a.uid = person
		AND a.instance IN (local, '-infinity') ORDER BY a.instance DESC LIMIT 1), 'invited')
$$;
COMMENT ON FUNCTION sheet.answer_of(bigint, text, bigint, timestamp) IS 'Internal: what an account has answered.';

CREATE FUNCTION sheet.give_answer(sheet bigint, task text, person bigint, local timestamp, given text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM sheet.task t JOIN sheet.series s ON s.series_id = t.series_id
			JOIN sheet.guest g ON g.list_id = s.list_id AND g.uid = person JOIN sheet.sheet h ON h.sheet_id = t.sheet_id
			WHERE t.sheet_id = sheet AND t.task_uid = task AND h.calendar AND h.trashed_at IS NULL AND (local IS NULL OR t.instance = local
				OR t.instance IS NULL AND EXISTS (SELECT FROM sheet.occurrence o WHERE o.series_id = s.series_id
					AND o.starts_at = sheet.zone_time(local, s.zone) AND o.starts_at < s.until_at))) THEN
		RETURN NULL;
	ELSIF given IS NULL THEN
		DELETE FROM sheet.answer a WHERE a.sheet_id = sheet AND a.task_uid = task AND a.uid = person AND a.instance = coalesce(local, '-infinity');
	ELSE
		INSERT INTO sheet.answer (sheet_id, task_uid, uid, instance, answer) VALUES (sheet, task, person, coalesce(local, '-infinity'), given)
			ON CONFLICT ON CONSTRAINT answer_pkey DO UPDATE SET answer = excluded.answer, answered_at = clock_timestamp();
	END IF;
	RETURN FOUND;
END
$$;
COMMENT ON FUNCTION sheet.give_answer(bigint, text, bigint, timestamp, text) IS
	'Internal: stores an answer; null takes it back. False: there was none. Null: the account is not invited.';

CREATE FUNCTION sheet.read_agenda(person bigint, since timestamptz, upto timestamptz)
	RETURNS TABLE (sheet_id bigint, task_uid text, instance timestamp, starts_at timestamptz, ends_at timestamptz, all_day boolean,
		zone text, title text, place text, answer text)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET join_collapse_limit = 1 SET jit = off AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT t.sheet_id, t.task_uid, i.instance, o.starts_at, o.ends_at, s.all_day, s.zone, t.title, t.place,
			CASE WHEN h.owner = person AND coalesce(t.cells->>'who', '') = '' THEN 'accepted'
				ELSE coalesce((SELECT a.answer FROM sheet.answer a WHERE a.sheet_id = t.sheet_id AND a.task_uid = t.task_uid AND a.uid = person
					AND a.instance IN (i.instance, '-infinity') ORDER BY a.instance DESC LIMIT 1), 'invited') END
		FROM sheet.guest g CROSS JOIN LATERAL (
				SELECT n.* FROM sheet.occurrence n WHERE n.list_id = g.list_id AND n.starts_at >= since - interval '1 day' AND n.starts_at < upto
					AND n.ends_at - n.starts_at <= interval '1 day'
				UNION ALL
				SELECT n.* FROM sheet.occurrence n WHERE n.list_id = g.list_id AND n.ends_at > since AND n.starts_at + interval '0' < upto
					AND n.ends_at - n.starts_at > interval '1 day') o
			JOIN sheet.series s ON s.series_id = o.series_id JOIN sheet.task t ON t.task_id = s.task_id
			CROSS JOIN LATERAL (SELECT c.owner FROM sheet.sheet c WHERE c.sheet_id = t.sheet_id AND c.trashed_at IS NULL AND c.calendar OFFSET 0) h
			CROSS JOIN LATERAL (SELECT coalesce(t.instance, o.starts_at AT TIME ZONE s.zone)) i (instance)
		WHERE g.uid = person AND (o.ends_at > since OR o.starts_at >= since) AND o.starts_at < s.until_at
			AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
		ORDER BY o.starts_at, o.ends_at, t.title, t.task_uid;
END
$$;
COMMENT ON FUNCTION sheet.read_agenda(bigint, timestamptz, timestamptz) IS 'Internal: see sheet.agenda().';

CREATE FUNCTION sheet.read_entries(calendar bigint, since timestamptz, upto timestamptz)
	RETURNS TABLE (task_uid text, instance timestamp, starts_at timestamptz, ends_at timestamptz, all_day boolean, zone text,
		title text, place text, persons text[])
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET join_collapse_limit = 1 SET jit = off AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT t.task_uid, coalesce(t.instance, o.starts_at AT TIME ZONE s.zone), o.starts_at, o.ends_at, s.all_day, s.zone, t.title,
			t.place, (SELECT array_agg(a.name ORDER BY a.name) FROM sheet.guest_list l, sheet.account a
				WHERE l.list_id = s.list_id AND a.uid = ANY (l.uids) AND coalesce(t.cells->>'who', '') <> '')
		FROM sheet.series s JOIN sheet.occurrence o ON o.series_id = s.series_id JOIN sheet.task t ON t.task_id = s.task_id
		WHERE s.sheet_id = calendar AND s.last_end >= since AND o.starts_at < upto AND o.starts_at < s.until_at
			AND o.starts_at >= since - s.lasts - interval '1 day' AND (o.ends_at > since OR o.starts_at >= since)
			AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
		ORDER BY o.starts_at, o.ends_at, t.title, t.task_uid;
END
$$;
COMMENT ON FUNCTION sheet.read_entries(bigint, timestamptz, timestamptz) IS 'Internal: see sheet.calendar_entries().';

-- The search of a day ends with its first valid occurrence.
CREATE FUNCTION sheet.read_dots(person bigint, month date, zone text) RETURNS SETOF date
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET join_collapse_limit = 1 SET jit = off
	SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	lists bigint[] := ARRAY(SELECT g.list_id FROM sheet.guest g WHERE g.uid = person);
	first date := date_trunc('month', month);
	days integer := extract(day FROM first + interval '1 month' - interval '1 day');
BEGIN
	RETURN QUERY SELECT first + d.n
		FROM generate_series(0, days - 1) d (n) CROSS JOIN LATERAL (SELECT sheet.zone_time(first + d.n, zone) AS since, sheet.zone_time(first + d.n + 1, zone) AS upto) b
			CROSS JOIN LATERAL (SELECT FROM unnest(lists) l (list_id) CROSS JOIN LATERAL (
					SELECT n.series_id, n.starts_at FROM sheet.occurrence n WHERE n.list_id = l.list_id AND n.starts_at >= b.since AND n.starts_at < b.upto
					UNION ALL
					SELECT n.series_id, n.starts_at FROM sheet.occurrence n WHERE n.list_id = l.list_id
						AND n.starts_at >= b.since - interval '1 day' AND n.starts_at < b.since AND n.ends_at > b.since
					UNION ALL
					SELECT n.series_id, n.starts_at FROM sheet.occurrence n WHERE n.list_id = l.list_id
						AND n.ends_at > b.since AND n.starts_at + interval '0' < b.since AND n.ends_at - n.starts_at > interval '1 day') o
				JOIN sheet.series s ON s.series_id = o.series_id
				CROSS JOIN LATERAL (SELECT FROM sheet.sheet c WHERE c.sheet_id = s.sheet_id AND c.trashed_at IS NULL AND c.calendar OFFSET 0) h
				WHERE o.starts_at < s.until_at
					AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
				LIMIT 1) found;
END
$$;
COMMENT ON FUNCTION sheet.read_dots(bigint, date, text) IS 'Internal: see sheet.month_dots().';

-- Occurrences without length, and declined ones, occupy nobody.
CREATE FUNCTION sheet.read_busy(persons bigint[], since timestamptz, upto timestamptz)
	RETURNS TABLE (uid bigint, busy tstzmultirange)
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT p.uid, coalesce((SELECT range_agg(tstzrange(e.starts_at, e.ends_at) * tstzrange(since, upto))
		FROM sheet.read_agenda(p.uid, since, upto) e WHERE e.ends_at > e.starts_at AND e.answer <> 'declined'), '{}')
	FROM (SELECT DISTINCT unnest(persons)) p (uid) ORDER BY p.uid
$$;
COMMENT ON FUNCTION sheet.read_busy(bigint[], timestamptz, timestamptz) IS 'Internal: see sheet.busy().';
