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
COMMENT ON COLUMN sheet.calendar_edit.sheet_id IS '0: an account has got the name, which any calendar may have';
COMMENT ON COLUMN sheet.calendar_edit.names IS 'unknown names of tasks that accounts may have now';
COMMENT ON TABLE sheet.calendar_edit IS
	'Commits of edits of calendars that the worker has not seen. Rows are only added, so that no commit waits for the worker.';

CREATE FUNCTION sheet.account_named() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	WITH e AS (INSERT INTO sheet.calendar_edit (sheet_id, names) VALUES (0, ARRAY[NEW.name]) RETURNING edit_id)
		INSERT INTO sheet.timer (kind, id, at) SELECT 'calendar edit', e.edit_id, now() FROM e;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION sheet.account_named() IS 'Internal: has calendars whose tasks name the account find it.';
CREATE TRIGGER account_named AFTER INSERT OR UPDATE OF name ON sheet.account FOR EACH ROW EXECUTE FUNCTION sheet.account_named();

-- Of an account and a task that names it, the one that is committed later has an entry that is served when both are visible.
CREATE FUNCTION sheet.expire_names(ids bigint[]) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH named AS (DELETE FROM sheet.calendar_edit e WHERE e.edit_id = ANY (ids) AND e.sheet_id = 0 RETURNING e.names),
		e AS (INSERT INTO sheet.calendar_edit (sheet_id, names)
			SELECT t.sheet_id, array_agg(DISTINCT n.name) FROM named d, unnest(d.names) n (name) JOIN sheet.task t ON t.unknown @> ARRAY[n.name]
			GROUP BY t.sheet_id RETURNING edit_id)
		INSERT INTO sheet.timer (kind, id, at) SELECT 'calendar edit', e.edit_id, now() FROM e
$$;
COMMENT ON FUNCTION sheet.expire_names(bigint[]) IS 'Internal: tells names that accounts have got to the calendars whose tasks have them.';

-- Each of these functions serves calendars for 200 ms, and leaves the others to a later batch of the worker.
CREATE FUNCTION sheet.expire_calendar_edits(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	edited bigint;
	next_at timestamptz;
	failed boolean;
	began timestamptz := clock_timestamp();
BEGIN
	PERFORM sheet.expire_names(ids);
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
		at := CASE WHEN clock_timestamp() < began + interval '200 ms' THEN sheet.serve_calendar(id) END;
		-- Behind serve_calendar(), which may wait for the sheet lock: see Lock order.
		IF at < 'infinity' AND sheet.follow_zones(id) THEN
			at := NULL;
		END IF;
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
	all_day boolean NOT NULL,
	zone text NOT NULL,
	title text NOT NULL,
	place text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE sheet.notice (LIKE sheet.outbox, PRIMARY KEY (outbox_id));
CREATE INDEX notice_account_idx ON sheet.notice (uid, outbox_id);
COMMENT ON TABLE sheet.notice IS 'Reminders that pages show until they are dismissed, for a week; see reminders().';
ALTER TABLE sheet.outbox ADD mail_at timestamptz DEFAULT clock_timestamp(), ADD failures integer NOT NULL DEFAULT 0;
CREATE INDEX outbox_mail_idx ON sheet.outbox (mail_at);
COMMENT ON TABLE sheet.outbox IS
	'Reminders that are to be delivered by mail or by a program, for a week; see take_reminders().';
COMMENT ON COLUMN sheet.outbox.mail_at IS 'when a gateway that sends mail tries next; null: never';
COMMENT ON COLUMN sheet.outbox.failures IS 'attempts to send mail that have failed';

CREATE TABLE sheet.mailed (
	uid bigint PRIMARY KEY,
	day date NOT NULL,
	mails integer NOT NULL
);
COMMENT ON TABLE sheet.mailed IS 'How many reminders an account was sent by mail on the last day, in UTC, with any.';

CREATE TABLE sheet.reminded (
	sheet_id bigint NOT NULL,
	task_uid text COLLATE "C" NOT NULL,
	starts_at timestamptz NOT NULL,
	PRIMARY KEY (sheet_id, task_uid, starts_at)
);
COMMENT ON TABLE sheet.reminded IS
	'Occurrences of the last days whose reminders are or were in the outbox, whatever has become of their rows.';

-- An event that has only a start counts as one of a quarter of an hour: what is due at its start is raised.
CREATE FUNCTION sheet.is_over(starts_at timestamptz, ends_at timestamptz) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT greatest(ends_at, starts_at + interval '15 minutes') <= now();
	END;
COMMENT ON FUNCTION sheet.is_over(timestamptz, timestamptz) IS 'Internal: whether an occurrence has ended; not before 15 minutes after its start.';

-- An occurrence that has ended, or began more than a day ago, is not reminded of. If those that are known have passed, there may be others
-- when the series has been expanded further.
CREATE FUNCTION sheet.next_reminder(task sheet.task) RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(
		(SELECT o.starts_at - (task).remind FROM sheet.occurrence o
			WHERE o.series_id = s.series_id AND o.starts_at > now() - interval '1 day' AND o.starts_at < s.until_at
				AND NOT sheet.is_over(o.starts_at, o.ends_at)
				AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
				AND NOT EXISTS (SELECT FROM sheet.reminded m WHERE m.sheet_id = (task).sheet_id AND m.task_uid = (task).task_uid
					AND m.starts_at = o.starts_at)
			ORDER BY o.starts_at LIMIT 1),
		CASE WHEN s.expanded_to < 'infinity' THEN greatest(now() + interval '1 s', s.expanded_to - (task).remind - interval '1 day') END)
	FROM sheet.series s JOIN sheet.sheet h ON h.sheet_id = s.sheet_id
	WHERE s.series_id = (task).series_id AND h.calendar AND h.trashed_at IS NULL
$$;
COMMENT ON FUNCTION sheet.next_reminder(sheet.task) IS 'Internal: when to look for reminders of a task next; null: never.';

CREATE FUNCTION sheet.publish_reminders(uid bigint) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_publish_reminders';
COMMENT ON FUNCTION sheet.publish_reminders(bigint) IS
	'Internal: tells gateways of reminders of the account when the transaction commits, which waits for the disk.';

-- An address of other characters is none, or is several.
CREATE FUNCTION sheet.has_mail_address(person bigint) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT FROM sheet.account a WHERE a.uid = person
		AND a.email ~ '^[a-zA-Z0-9.!#$%&''*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9.-]{1,255}$')
$$;
COMMENT ON FUNCTION sheet.has_mail_address(bigint) IS 'Internal: whether an account has an e-mail address to which mail can be sent.';

-- Only accounts that have a role in the calendar, or have accepted, get reminders. Others have not asked for them.
CREATE FUNCTION sheet.put_reminders(task sheet.task) RETURNS bigint[]
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	most CONSTANT integer := 10; -- occurrences at a time
	due_until timestamptz := clock_timestamp() + task.remind;
	due timestamptz[];
	persons bigint[];
BEGIN
	WITH noted AS (INSERT INTO sheet.reminded (sheet_id, task_uid, starts_at)
		SELECT task.sheet_id, task.task_uid, o.starts_at
		FROM sheet.series s JOIN sheet.occurrence o ON o.series_id = s.series_id JOIN sheet.sheet h ON h.sheet_id = task.sheet_id
		WHERE s.series_id = task.series_id AND h.calendar AND h.trashed_at IS NULL AND o.starts_at < s.until_at
			AND o.starts_at > now() - interval '1 day' AND o.starts_at <= due_until AND NOT sheet.is_over(o.starts_at, o.ends_at)
			AND NOT EXISTS (SELECT FROM sheet.series_except e WHERE e.series_id = o.series_id AND e.starts_at = o.starts_at OFFSET 0)
			AND NOT EXISTS (SELECT FROM sheet.reminded m WHERE m.sheet_id = task.sheet_id AND m.task_uid = task.task_uid AND m.starts_at = o.starts_at)
		ORDER BY o.starts_at LIMIT most ON CONFLICT DO NOTHING RETURNING starts_at)
		SELECT array_agg(n.starts_at) INTO due FROM noted n;
	WITH put AS (INSERT INTO sheet.outbox (uid, sheet_id, task_uid, starts_at, ends_at, all_day, zone, title, place, mail_at)
		SELECT p.uid, task.sheet_id, task.task_uid, o.starts_at, o.ends_at, s.all_day, s.zone, left(task.title, 500), left(task.place, 500),
			CASE WHEN sheet.has_mail_address(p.uid) THEN clock_timestamp() END
		FROM sheet.series s JOIN sheet.occurrence o ON o.series_id = s.series_id JOIN sheet.guest_list l ON l.list_id = s.list_id,
			unnest(l.uids) p (uid), LATERAL (SELECT sheet.answer_of(task.sheet_id, task.task_uid, p.uid,
				coalesce(task.instance, o.starts_at AT TIME ZONE s.zone)) AS answer) a
		WHERE s.series_id = task.series_id AND o.starts_at = ANY (due) AND (a.answer IN ('accepted', 'tentative')
			OR a.answer <> 'declined' AND EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = task.sheet_id AND m.uid = p.uid AND m.role IS NOT NULL))
		RETURNING *),
	noticed AS (INSERT INTO sheet.notice
		SELECT p.outbox_id, p.uid, p.sheet_id, p.task_uid, p.starts_at, p.ends_at, p.all_day, p.zone, p.title, p.place, p.created_at FROM put p
		RETURNING uid)
		SELECT array_agg(DISTINCT n.uid) INTO persons FROM noticed n;
	DELETE FROM sheet.reminded m WHERE m.sheet_id = task.sheet_id AND m.task_uid = task.task_uid AND m.starts_at < now() - interval '3 days';
	RETURN persons;
END
$$;
COMMENT ON FUNCTION sheet.put_reminders(sheet.task) IS
	'Internal: puts the reminders of a task that are due into sheet.outbox and sheet.notice, of some occurrences at a time. Returns the '
	'accounts that get some; null: none.';

CREATE FUNCTION sheet.expire_reminders(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	task sheet.task;
	seen bigint[] := '{}';
	persons bigint[] := '{}';
	old bigint[];
	began timestamptz := clock_timestamp();
	later timestamptz := now(); -- of tasks whose rows are locked
BEGIN
	FOR task IN SELECT t.* FROM sheet.task t WHERE t.task_id = ANY (ids) AND t.remind IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED LOOP
		persons := persons || sheet.put_reminders(task);
		seen := seen || task.task_id;
		id := task.task_id;
		at := sheet.next_reminder(task);
		IF at IS NOT NULL THEN
			at := CASE WHEN at > now() THEN at END; -- null: there are more
			RETURN NEXT;
		END IF;
		IF clock_timestamp() > began + interval '200 ms' THEN
			later := NULL; -- those that are left come next
			EXIT;
		END IF;
	END LOOP;
	RETURN QUERY SELECT t.task_id, later FROM sheet.task t WHERE t.task_id = ANY (ids) AND t.remind IS NOT NULL AND t.task_id <> ALL (seen);
	-- Reminders that no program has taken, and those that were not dismissed. What others have locked is removed later.
	old := ARRAY(SELECT f.outbox_id FROM (SELECT o.outbox_id, o.created_at FROM sheet.outbox o ORDER BY o.outbox_id LIMIT 1000) f
		WHERE f.created_at < now() - interval '7 days');
	DELETE FROM sheet.outbox o WHERE o.outbox_id = ANY (ARRAY(SELECT d.outbox_id FROM sheet.outbox d WHERE d.outbox_id = ANY (old) FOR UPDATE SKIP LOCKED));
	old := ARRAY(SELECT f.outbox_id FROM (SELECT n.outbox_id, n.created_at FROM sheet.notice n ORDER BY n.outbox_id LIMIT 1000) f
		WHERE f.created_at < now() - interval '7 days');
	DELETE FROM sheet.notice n WHERE n.outbox_id = ANY (ARRAY(SELECT d.outbox_id FROM sheet.notice d WHERE d.outbox_id = ANY (old) FOR UPDATE SKIP LOCKED));
	IF persons <> '{}' THEN
		-- The ring of sheet.follow has 16384 events. Pages of accounts beyond these ask within a minute.
		PERFORM sheet.publish_reminders(p.uid) FROM (SELECT DISTINCT unnest(persons) LIMIT 1000) p (uid);
		PERFORM pg_notify('sheet_outbox', '');
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.expire_reminders(bigint[]) IS
	'Internal: puts the reminders of these tasks that are due into sheet.outbox and sheet.notice, and returns when each is due next.';

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

-- ---- pages ----

CREATE FUNCTION sheet.reminders(as_uid bigint DEFAULT NULL)
	RETURNS TABLE (reminder_id bigint, sheet_id bigint, task_uid text, starts_at timestamptz, ends_at timestamptz, all_day boolean, zone text,
		title text, place text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_reminders';
COMMENT ON FUNCTION sheet.reminders(bigint) IS
	'The reminders of the account that were due in the last week and are not dismissed, the newest 100 of them first.';

CREATE FUNCTION sheet.dismiss_reminders(ids bigint[], as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_dismiss_reminders';
COMMENT ON FUNCTION sheet.dismiss_reminders(bigint[], bigint) IS
	'Has reminders() of the account not return these any more. Ids that it does not return are passed over.';

-- ---- mail ----

-- A header's text in encoded words (RFC 2047). 9 characters have at most 36 bytes, so that a line is shorter than 76 characters.
CREATE FUNCTION sheet.mail_words(value text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT string_agg('=?UTF-8?B?' || encode(convert_to(substr(value, i, 9), 'UTF8'), 'base64') || '?=', E'\n ' ORDER BY i)
	FROM generate_series(1, length(value), 9) i
$$;
COMMENT ON FUNCTION sheet.mail_words(text) IS 'Internal: a text for the header of a mail.';

-- Title and place are written by others, so both are encoded in base64. Lines end with LF, as sendmail expects.
CREATE FUNCTION sheet.reminder_mail(reminder sheet.outbox, address text, sender text, site text) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format(E'From: %s\nTo: %s\nSubject: %s\nDate: %s\nMessage-ID: <reminder-%s.%s@%s>\nAuto-Submitted: auto-generated\n'
		'MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: base64\n\n%s\n',
		sender, address, sheet.mail_words(coalesce(nullif(regexp_replace(r.title, '[[:cntrl:]]+', ' ', 'g'), ''), 'Reminder')),
		to_char(now() AT TIME ZONE 'UTC', 'Dy, DD Mon YYYY HH24:MI:SS "+0000"'), r.outbox_id, extract(epoch FROM r.created_at),
		substring(sender FROM '@([^@> ]+)'), encode(convert_to(concat_ws(E'\n', r.title, CASE
			WHEN r.all_day THEN to_char(l.starts, 'YYYY-MM-DD') || CASE WHEN l.ends > l.starts + interval '1 day' THEN
				to_char(l.ends - interval '1 day', '" - "YYYY-MM-DD') ELSE '' END
			ELSE to_char(l.starts, 'YYYY-MM-DD HH24:MI') || CASE WHEN l.ends = l.starts THEN '' WHEN l.ends::date = l.starts::date THEN
				to_char(l.ends, '" - "HH24:MI') ELSE to_char(l.ends, '" - "YYYY-MM-DD HH24:MI') END || format(' (%s)', r.zone) END,
			nullif(r.place, ''), '', format('%s/?calendar=%s&day=%s', site, r.sheet_id, to_char(l.starts, 'YYYY-MM-DD')), ''), 'UTF8'), 'base64'))
	FROM (SELECT (reminder).*) r, LATERAL (SELECT r.starts_at AT TIME ZONE r.zone AS starts, r.ends_at AT TIME ZONE r.zone AS ends) l
$$;
COMMENT ON FUNCTION sheet.reminder_mail(sheet.outbox, text, text, text) IS 'Internal: the mail of a reminder (RFC 5322).';

-- While a reminder is being sent, other gateways pass over it: mail_at is later, also after a restart of the server, and lock_mail() has
-- it locked, also after a step of the clock. If the mail cannot be sent at all, mail_at becomes null, so that nobody looks at it again.
CREATE FUNCTION sheet.take_mail(sender text, site text, except_ids bigint[]) RETURNS TABLE (outbox_id bigint, message text)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	reminder sheet.outbox;
	address text;
	due timestamptz := clock_timestamp();
BEGIN
	FOR i IN 1 .. 1000 LOOP
		SELECT o.* INTO reminder FROM sheet.outbox o WHERE o.mail_at <= due AND o.outbox_id <> ALL (except_ids)
			ORDER BY o.mail_at LIMIT 1 FOR UPDATE SKIP LOCKED;
		EXIT WHEN NOT FOUND;
		-- Reminders of events that began more than a day ago are not sent.
		SELECT a.email INTO address FROM sheet.account a WHERE a.uid = reminder.uid AND reminder.starts_at > now() - interval '1 day'
			AND sheet.has_mail_address(a.uid)
			AND NOT EXISTS (SELECT FROM sheet.mailed m WHERE m.uid = a.uid AND m.day = (now() AT TIME ZONE 'UTC')::date AND m.mails >= 100);
		UPDATE sheet.outbox o SET mail_at = CASE WHEN address IS NOT NULL THEN clock_timestamp() + interval '40 s' END
			WHERE o.outbox_id = reminder.outbox_id;
		IF address IS NOT NULL THEN
			outbox_id := reminder.outbox_id;
			message := sheet.reminder_mail(reminder, address, sender, site);
			RETURN NEXT;
			EXIT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.take_mail(text, text, bigint[]) IS
	'Returns the mail of a reminder that is to be sent, if there is one, and postpones the reminder by 40 seconds. The next transaction calls '
	'lock_mail(), sends it in at most 30 seconds, calls end_mail(), and commits. For gateways.';

CREATE FUNCTION sheet.lock_mail(id bigint) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM FROM sheet.outbox o WHERE o.outbox_id = id FOR UPDATE SKIP LOCKED;
	RETURN FOUND;
END
$$;
COMMENT ON FUNCTION sheet.lock_mail(bigint) IS
	'Locks a reminder that is being sent by mail until the end of the transaction. False: another transaction has it. For gateways.';

CREATE FUNCTION sheet.end_mail(id bigint, sent boolean) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	account bigint;
BEGIN
	IF sent THEN
		DELETE FROM sheet.outbox o WHERE o.outbox_id = id RETURNING o.uid INTO account;
		INSERT INTO sheet.mailed AS m (uid, day, mails) SELECT account, (now() AT TIME ZONE 'UTC')::date, 1 WHERE FOUND
			ON CONFLICT ON CONSTRAINT mailed_pkey DO UPDATE SET day = excluded.day, mails = CASE WHEN m.day = excluded.day THEN m.mails ELSE 0 END + 1;
	ELSE
		UPDATE sheet.outbox o SET failures = o.failures + 1, mail_at = clock_timestamp() + least(3600, 2.0 ^ least(o.failures, 12)) * interval '1 s'
			WHERE o.outbox_id = id;
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.end_mail(bigint, boolean) IS
	'Removes a reminder that was sent by mail from the outbox; or has it tried again after a second, doubled up to an hour. For gateways.';

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
			'occurrence', 'series_except', 'answer', 'calendar_edit_id_seq', 'calendar_edit', 'outbox_id_seq', 'outbox', 'notice', 'mailed', 'reminded'] LOOP
		PERFORM pg_catalog.pg_extension_config_dump(('sheet.' || name)::regclass, '');
	END LOOP;
END
$$;
