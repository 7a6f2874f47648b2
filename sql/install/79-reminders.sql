-- Calendars: what the timer's worker does for them, and reminders.

CREATE SEQUENCE sheet.calendar_edit_id_seq;
CREATE TABLE sheet.calendar_edit (
	edit_id bigint PRIMARY KEY DEFAULT nextval('sheet.calendar_edit_id_seq'),
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C",
	names text[] COLLATE "C"
);
CREATE INDEX calendar_edit_names_idx ON sheet.calendar_edit (sheet_id) WHERE names IS NOT NULL;
COMMENT ON COLUMN sheet.calendar_edit.task_uid IS 'of a task that was answered';
COMMENT ON COLUMN sheet.calendar_edit.names IS 'unknown names of tasks that accounts may have now';
COMMENT ON TABLE sheet.calendar_edit IS
	'Commits of edits of calendars that the worker has not seen. Rows are only added, so that no commit waits for the worker.';

CREATE FUNCTION sheet.account_named() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	WITH e AS (INSERT INTO sheet.calendar_edit (sheet_id, names)
		SELECT DISTINCT t.sheet_id, ARRAY[NEW.name] FROM sheet.task t WHERE t.unknown @> ARRAY[NEW.name] RETURNING edit_id)
		INSERT INTO sheet.timer (kind, id, at) SELECT 'calendar edit', e.edit_id, now() FROM e;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION sheet.account_named() IS 'Internal: has calendars whose tasks name the account find it.';
-- Deferred: it sees what others have committed meanwhile.
CREATE CONSTRAINT TRIGGER account_named AFTER INSERT OR UPDATE OF name ON sheet.account DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION sheet.account_named();

-- Each of these functions serves calendars for 200 ms, and leaves the others to a later batch of the worker.
CREATE FUNCTION sheet.expire_calendar_edits(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	edited bigint;
	next_at timestamptz;
	failed boolean;
	began timestamptz := clock_timestamp();
BEGIN
	FOR edited IN SELECT DISTINCT e.sheet_id FROM sheet.calendar_edit e WHERE e.edit_id = ANY (ids) ORDER BY 1 LOOP
		EXIT WHEN clock_timestamp() > began + interval '200 ms';
		failed := false;
		BEGIN
			next_at := sheet.serve_calendar(edited);
		EXCEPTION WHEN OTHERS THEN
			IF left(SQLSTATE, 2) IN ('40', '53', '55', '57') THEN
				RAISE; -- it may succeed soon
			END IF;
			-- However often it is edited, one entry tries it again, later and later, and logs why.
			failed := true;
		END;
		IF failed THEN
			next_at := now();
			INSERT INTO sheet.timer AS t (kind, id, at) VALUES ('calendar', edited, next_at)
				ON CONFLICT ON CONSTRAINT timer_pkey DO UPDATE SET at = excluded.at WHERE t.failures = 0;
		ELSIF next_at < 'infinity' THEN
			INSERT INTO sheet.timer AS t (kind, id, at) VALUES ('calendar', edited, next_at)
				ON CONFLICT ON CONSTRAINT timer_pkey DO UPDATE SET at = excluded.at WHERE t.at <> excluded.at;
		END IF;
		IF next_at IS NOT NULL THEN
			PERFORM FROM sheet.calendar c WHERE c.sheet_id = edited FOR UPDATE;
			PERFORM sheet.objects_changed(edited, ARRAY(SELECT e.task_uid FROM sheet.calendar_edit e JOIN sheet.calendar_object o
				ON o.sheet_id = e.sheet_id AND o.task_uid = e.task_uid WHERE e.edit_id = ANY (ids) AND e.sheet_id = edited));
			DELETE FROM sheet.calendar_edit e WHERE e.edit_id = ANY (ids) AND e.sheet_id = edited;
		END IF;
	END LOOP;
	RETURN QUERY SELECT e.edit_id, NULL::timestamptz FROM sheet.calendar_edit e WHERE e.edit_id = ANY (ids);
END
$$;
COMMENT ON FUNCTION sheet.expire_calendar_edits(bigint[]) IS
	'Internal: has agendas follow the calendars of these commits, and removes their entries.';

CREATE FUNCTION sheet.expire_calendars(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	began timestamptz := clock_timestamp();
BEGIN
	FOR id IN SELECT i.sheet_id FROM unnest(ids) i (sheet_id) ORDER BY 1 LOOP
		-- null: at once again
		at := CASE WHEN clock_timestamp() < began + interval '200 ms' AND NOT sheet.follow_zones(id) THEN sheet.serve_calendar(id) END;
		IF at IS DISTINCT FROM 'infinity' THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.expire_calendars(bigint[]) IS
	'Internal: has these calendars follow new rules of their zones, expands their series by another month, and returns when each is to be '
	'looked at next.';

CREATE FUNCTION sheet.check_zones() RETURNS bigint
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH woken AS (INSERT INTO sheet.timer AS t (kind, id, at) SELECT 'calendar', c.sheet_id, now() FROM sheet.calendar c
		ON CONFLICT ON CONSTRAINT timer_pkey DO UPDATE SET at = least(t.at, excluded.at) RETURNING 1)
	SELECT count(*) FROM woken
$$;
COMMENT ON FUNCTION sheet.check_zones() IS
	'Has the worker look at once, and not at the beginning of the next month, whether the zones of calendars have new rules, as after an '
	'update of tzdata and a restart. Returns the number of calendars. For superusers.';

CREATE SEQUENCE sheet.outbox_id_seq;
CREATE TABLE sheet.outbox (
	outbox_id bigint PRIMARY KEY DEFAULT nextval('sheet.outbox_id_seq'),
	uid bigint NOT NULL,
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	starts_at timestamptz NOT NULL,
	ends_at timestamptz NOT NULL,
	title text NOT NULL,
	place text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE sheet.outbox IS 'Reminders that are to be delivered, for a week; see take_reminders().';

CREATE TABLE sheet.reminded (
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	starts_at timestamptz NOT NULL,
	PRIMARY KEY (sheet_id, task_uid, starts_at)
);
COMMENT ON TABLE sheet.reminded IS
	'Occurrences of the last days whose reminders are or were in the outbox, whatever has become of their rows.';

-- An occurrence that began more than a day ago is not reminded of. If those that are known have passed, there may be others
-- when the series has been expanded further.
CREATE FUNCTION sheet.next_reminder(task sheet.task) RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(
		(SELECT o.starts_at - (task).remind FROM sheet.occurrence o
			WHERE o.series_id = s.series_id AND o.starts_at > now() - interval '1 day' AND o.starts_at < s.until_at
				AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
				AND NOT EXISTS (SELECT FROM sheet.reminded m WHERE m.sheet_id = (task).sheet_id AND m.task_uid = (task).task_uid
					AND m.starts_at = o.starts_at)
			ORDER BY o.starts_at LIMIT 1),
		CASE WHEN s.expanded_to < 'infinity' THEN greatest(now() + interval '1 s', s.expanded_to - (task).remind - interval '1 day') END)
	FROM sheet.series s JOIN sheet.sheet h ON h.sheet_id = s.sheet_id
	WHERE s.series_id = (task).series_id AND h.calendar AND h.trashed_at IS NULL
$$;
COMMENT ON FUNCTION sheet.next_reminder(sheet.task) IS 'Internal: when to look for reminders of a task next; null: never.';

-- Only accounts that have a role in the calendar, or have accepted, get reminders. Others have not asked for them.
CREATE FUNCTION sheet.put_reminders(task sheet.task) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	most CONSTANT integer := 10; -- occurrences at a time
	due timestamptz[];
	added bigint;
BEGIN
	WITH noted AS (INSERT INTO sheet.reminded (sheet_id, task_uid, starts_at)
		SELECT task.sheet_id, task.task_uid, o.starts_at
		FROM sheet.series s JOIN sheet.occurrence o ON o.series_id = s.series_id JOIN sheet.sheet h ON h.sheet_id = task.sheet_id
		WHERE s.series_id = task.series_id AND h.calendar AND h.trashed_at IS NULL AND o.starts_at < s.until_at
			AND o.starts_at > now() - interval '1 day' AND o.starts_at <= clock_timestamp() + task.remind
			AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
			AND NOT EXISTS (SELECT FROM sheet.reminded m WHERE m.sheet_id = task.sheet_id AND m.task_uid = task.task_uid AND m.starts_at = o.starts_at)
		ORDER BY o.starts_at LIMIT most ON CONFLICT DO NOTHING RETURNING starts_at)
		SELECT array_agg(n.starts_at) INTO due FROM noted n;
	INSERT INTO sheet.outbox (uid, sheet_id, task_uid, starts_at, ends_at, title, place)
		SELECT p.uid, task.sheet_id, task.task_uid, o.starts_at, o.ends_at, left(task.title, 500), left(task.place, 500)
		FROM sheet.series s JOIN sheet.occurrence o ON o.series_id = s.series_id JOIN sheet.guest_list l ON l.list_id = s.list_id,
			unnest(l.uids) p (uid), LATERAL (SELECT sheet.answer_of(task.sheet_id, task.task_uid, p.uid,
				coalesce(task.instance, o.starts_at AT TIME ZONE s.zone)) AS answer) a
		WHERE s.series_id = task.series_id AND o.starts_at = ANY (due) AND (a.answer IN ('accepted', 'tentative')
			OR a.answer <> 'declined' AND EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = task.sheet_id AND m.uid = p.uid AND m.role IS NOT NULL));
	GET DIAGNOSTICS added = ROW_COUNT;
	DELETE FROM sheet.reminded m WHERE m.sheet_id = task.sheet_id AND m.task_uid = task.task_uid AND m.starts_at < now() - interval '3 days';
	RETURN added;
END
$$;
COMMENT ON FUNCTION sheet.put_reminders(sheet.task) IS
	'Internal: puts the reminders of a task that are due into sheet.outbox, of some occurrences at a time. Returns their number.';

CREATE FUNCTION sheet.expire_reminders(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET synchronous_commit = on AS $$
DECLARE
	task sheet.task;
	seen bigint[] := '{}';
	added bigint := 0;
	began timestamptz := clock_timestamp();
BEGIN
	FOR task IN SELECT t.* FROM sheet.task t WHERE t.task_id = ANY (ids) AND t.remind IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED LOOP
		EXIT WHEN clock_timestamp() > began + interval '200 ms';
		added := added + sheet.put_reminders(task);
		seen := seen || task.task_id;
		id := task.task_id;
		at := sheet.next_reminder(task);
		IF at IS NOT NULL THEN
			at := CASE WHEN at > now() THEN at END; -- null: there are more
			RETURN NEXT;
		END IF;
	END LOOP;
	-- tasks whose rows are locked are tried again, and those that are left
	RETURN QUERY SELECT t.task_id, now() FROM sheet.task t WHERE t.task_id = ANY (ids) AND t.remind IS NOT NULL AND t.task_id <> ALL (seen);
	-- reminders that no program has taken
	DELETE FROM sheet.outbox o WHERE o.outbox_id IN (SELECT d.outbox_id FROM sheet.outbox d ORDER BY d.outbox_id LIMIT 1000)
		AND o.created_at < now() - interval '7 days';
	IF added > 0 THEN
		PERFORM pg_notify('sheet_outbox', '');
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.expire_reminders(bigint[]) IS
	'Internal: puts the reminders of these tasks that are due into sheet.outbox, and returns when each is due next.';

CREATE FUNCTION sheet.take_reminders(max_rows integer DEFAULT 100)
	RETURNS TABLE (uid bigint, username text, email text, sheet_id bigint, task_uid text, starts_at timestamptz, ends_at timestamptz,
		title text, place text)
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH taken AS (DELETE FROM sheet.outbox o WHERE o.outbox_id IN (SELECT d.outbox_id FROM sheet.outbox d ORDER BY d.outbox_id
		LIMIT max_rows FOR UPDATE SKIP LOCKED) RETURNING o.*)
	SELECT t.uid, a.name, a.email, t.sheet_id, t.task_uid, t.starts_at, t.ends_at, t.title, t.place
	FROM taken t LEFT JOIN sheet.account a ON a.uid = t.uid ORDER BY t.outbox_id
$$;
COMMENT ON FUNCTION sheet.take_reminders(integer) IS
	'Takes reminders out of sheet.outbox, the oldest first. They are back if the transaction rolls back, so each is delivered once if the '
	'delivery is a part of it. NOTIFY sheet_outbox tells that there are some. For gateways and programs that deliver them.';

CREATE FUNCTION sheet.forget_calendar(sheet bigint) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	lists bigint[];
BEGIN
	-- What the worker is making is seen when it has ended.
	PERFORM FROM sheet.calendar c WHERE c.sheet_id = sheet FOR UPDATE;
	DELETE FROM sheet.occurrence o USING sheet.series s WHERE s.sheet_id = sheet AND o.series_id = s.series_id;
	DELETE FROM sheet.series_except e USING sheet.series s WHERE s.sheet_id = sheet AND e.series_id = s.series_id;
	WITH removed AS (DELETE FROM sheet.series s WHERE s.sheet_id = sheet RETURNING s.list_id)
		SELECT array_agg(DISTINCT d.list_id) INTO lists FROM removed d;
	PERFORM sheet.collect_guest_lists(lists);
	DELETE FROM sheet.task t WHERE t.sheet_id = sheet;
	DELETE FROM sheet.calendar_object o WHERE o.sheet_id = sheet;
	DELETE FROM sheet.answer a WHERE a.sheet_id = sheet;
	DELETE FROM sheet.reminded m WHERE m.sheet_id = sheet;
	DELETE FROM sheet.calendar_choice c WHERE c.sheet_id = sheet;
	DELETE FROM sheet.calendar c WHERE c.sheet_id = sheet;
	DELETE FROM sheet.timer m WHERE m.kind = 'calendar' AND m.id = sheet;
END
$$;
COMMENT ON FUNCTION sheet.forget_calendar(bigint) IS 'Internal: removes what follows from the rows of a calendar.';

DO $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['calendar', 'guest_list_id_seq', 'guest_list', 'guest', 'task_id_seq', 'task', 'series_id_seq', 'series',
			'occurrence', 'series_except', 'answer', 'calendar_edit_id_seq', 'calendar_edit', 'outbox_id_seq', 'outbox', 'reminded'] LOOP
		PERFORM pg_catalog.pg_extension_config_dump(('sheet.' || name)::regclass, '');
	END LOOP;
END
$$;
