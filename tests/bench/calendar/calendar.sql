-- What calendars cost: cuts of a series, agendas and dots of a month, expansion, reminders. The last line is JSON.
SET timezone = 'UTC';
SET client_min_messages = warning;
CREATE TEMP TABLE figure (name text, value numeric);
CREATE FUNCTION pg_temp.note(name text, value numeric) RETURNS void LANGUAGE sql AS 'INSERT INTO figure VALUES (name, round(value, 3))';
CREATE FUNCTION pg_temp.ms(since timestamptz) RETURNS numeric LANGUAGE sql AS
	'SELECT (extract(epoch FROM clock_timestamp() - since) * 1000)::numeric';
SELECT count(sheet.account_create('p' || i, NULL, 'x')) FROM generate_series(1, greatest(:persons, 100)) i \g /dev/null
SELECT uid AS first FROM sheet.account WHERE name = 'p1' \gset
SELECT count(pg_temp.note(split_part(l, ' ', 1), split_part(l, ' ', 2)::numeric)) FROM string_to_table(:'sync', E'\n') l \g /dev/null

-- ---- a cut of 100 persons x 200 repeats at 100: the longest of ten ----
SELECT sheet.create_calendar('cut', 'Europe/Berlin') AS cut \gset
SELECT set_config('bench.cut', :'cut', false), set_config('bench.first', :'first', false) \g /dev/null
DO $$
DECLARE
	calendar bigint := current_setting('bench.cut');
	who text := (SELECT string_agg('p' || i, ', ') FROM generate_series(1, 100) i);
	first date := date_trunc('month', now())::date;
	task text;
	began timestamptz;
	longest numeric := 0;
BEGIN
	FOR n IN 1 .. 10 LOOP
		task := sheet.add_task(calendar, jsonb_build_object('Title', 'Standup', 'Start', first || ' 09:00', 'End', '15 min',
			'Repeats', 'FREQ=DAILY;COUNT=200', 'Who', who));
		WHILE sheet.serve_calendar(calendar) IS NULL LOOP
		END LOOP;
		COMMIT;
		began := clock_timestamp();
		PERFORM sheet.change_task(calendar, task, jsonb_build_object('Start', first + 100 || ' 10:00'), 'following', first + 100 + time '09:00');
		COMMIT;
		longest := greatest(longest, pg_temp.ms(began));
	END LOOP;
	PERFORM pg_temp.note('cut_ms', longest);
END
$$;

-- ---- expansion: daily tasks without an end ----
SELECT sheet.create_calendar('expand', 'Europe/Berlin') AS expand \gset
SELECT sheet.set_range(:expand, 'A2', (SELECT array_agg(ARRAY['t' || i, date_trunc('month', now())::date || ' 09:00', '15 min', 'FREQ=DAILY', 'p100'])
	FROM generate_series(1, 1400) i)) \g /dev/null
CREATE PROCEDURE pg_temp.wait_until_followed(calendar bigint) LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		EXIT WHEN EXISTS (SELECT FROM sheet.calendar c WHERE c.sheet_id = calendar AND c.done_seq = sheet.last_seq(calendar))
			AND NOT EXISTS (SELECT FROM sheet.series s WHERE s.sheet_id = calendar AND s.expanded_to < now() + interval '20 months')
			AND NOT EXISTS (SELECT FROM sheet.calendar_edit);
		COMMIT;
		PERFORM pg_sleep(0.01);
	END LOOP;
END
$$;
SELECT clock_timestamp() AS began \gset
CALL pg_temp.wait_until_followed(:expand);
SELECT pg_temp.note('follow_1400_tasks_ms', pg_temp.ms(:'began')) \g /dev/null
SELECT count(*) AS made FROM sheet.occurrence o JOIN sheet.series s USING (series_id) WHERE s.sheet_id = :expand \gset
DELETE FROM sheet.occurrence o USING sheet.series s WHERE s.sheet_id = :expand AND o.series_id = s.series_id;
VACUUM sheet.occurrence;
UPDATE sheet.series SET expanded_to = '-infinity' WHERE sheet_id = :expand;
SELECT clock_timestamp() AS began \gset
SELECT sheet.expand_calendar(:expand, 'infinity', 100000000) \g /dev/null
SELECT pg_temp.note('expand_per_s', :made / pg_temp.ms(:'began') * 1000) \g /dev/null

-- ---- agendas: `events` of each person, in two years, of 50 tasks with rules and single ones ----
SELECT sheet.create_calendar('agenda', 'UTC') AS agenda \gset
SELECT sheet.set_range(:agenda, 'A2', (SELECT array_agg(ARRAY['t' || p || '-' || i,
		to_char(date_trunc('month', now()) + (i * 97 % 700) * interval '1 day' + (i % 600) * interval '1 min', 'YYYY-MM-DD HH24:MI'), '30 min', '', 'p' || p])
	FROM generate_series(1, :persons) p, generate_series(1, :events / 2) i)) \g /dev/null
SELECT sheet.set_range(:agenda, 'A' || 2 + :persons * (:events / 2), (SELECT array_agg(ARRAY['r' || p || '-' || i,
		to_char(date_trunc('month', now()) + i * interval '17 min', 'YYYY-MM-DD HH24:MI'), '30 min', 'FREQ=DAILY', 'p' || p])
	FROM generate_series(1, :persons) p, generate_series(1, greatest(:events / 2 / 730, 1)) i)) \g /dev/null
CALL pg_temp.wait_until_followed(:agenda);
VACUUM ANALYZE sheet.occurrence, sheet.series, sheet.task, sheet.guest, sheet.guest_list, sheet.series_except, sheet.answer;
CREATE TEMP TABLE took (what text, ms numeric);
SELECT set_config('bench.persons', :'persons', false) \g /dev/null
DO $$
DECLARE
	began timestamptz;
	rows bigint;
	month timestamptz;
	person bigint;
BEGIN
	FOR n IN 0 .. 999 LOOP
		person := current_setting('bench.first')::bigint + n % current_setting('bench.persons')::integer;
		month := date_trunc('month', now()) + (n / 20 % 22) * interval '1 month';
		began := clock_timestamp();
		SELECT count(*) INTO rows FROM sheet.agenda(person, month, month + interval '1 month');
		INSERT INTO took VALUES ('month', pg_temp.ms(began)), ('rows', rows);
		began := clock_timestamp();
		PERFORM count(*) FROM sheet.month_dots(person, month::date, 'UTC');
		INSERT INTO took VALUES ('dots', pg_temp.ms(began));
	END LOOP;
END
$$;
DO $$
DECLARE
	w text;
BEGIN
	FOREACH w IN ARRAY ARRAY['month', 'dots'] LOOP
		PERFORM pg_temp.note(w || '_p50_ms', (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t.ms) FROM took t WHERE t.what = w)::numeric);
		PERFORM pg_temp.note(w || '_p99_ms', (SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY t.ms) FROM took t WHERE t.what = w)::numeric);
	END LOOP;
	PERFORM pg_temp.note('month_events', (SELECT avg(t.ms) FROM took t WHERE t.what = 'rows'));
END
$$;

-- ---- reminders, of tasks within 20 s ----
SELECT sheet.create_calendar('remind', 'UTC') AS remind \gset
SELECT count(sheet.share(:remind, 'p' || i, 'viewer')) FROM generate_series(1, 20) i \g /dev/null
SELECT sheet.set_range(:remind, 'A2', (SELECT array_agg(ARRAY['t' || i, to_char(now() + interval '15 min' + (i % 20) * interval '1 s', 'YYYY-MM-DD HH24:MI:SS'),
	'5 min', '', 'p' || i % 20 + 1, '', '14 min 50 s']) FROM generate_series(1, :reminders) i)) \g /dev/null
CALL pg_temp.wait_until_followed(:remind);
DO $$
BEGIN
	LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM sheet.timer m WHERE m.kind = 'reminder') OR clock_timestamp() > now() + interval '60 s';
		COMMIT;
		PERFORM pg_sleep(0.1);
	END LOOP;
END
$$;
SELECT pg_temp.note('late_ms', (SELECT extract(epoch FROM max(o.created_at - (o.starts_at - interval '14 min 50 s'))) * 1000
	FROM sheet.outbox o WHERE o.sheet_id = :remind)::numeric) \g /dev/null
SELECT pg_temp.note('lost', :reminders - (SELECT count(DISTINCT o.title) FROM sheet.outbox o WHERE o.sheet_id = :remind)) \g /dev/null
SELECT pg_temp.note('doubled', (SELECT count(*) - count(DISTINCT o.title) FROM sheet.outbox o WHERE o.sheet_id = :remind)) \g /dev/null
SELECT json_object_agg(name, value) FROM figure;
