-- Calendars: rows of a sheet are tasks. The worker expands them too, so what is shown is asked for by dates of the near months or
-- after a complete expansion (serve_calendar). Seqs depend on when the worker has written UIDs.
SET timezone = 'UTC';
\set SHOW_CONTEXT never
-- ---- times of series ----
-- clocks that skip an hour, and that show one twice
SELECT * FROM sheet.occurrences('2026-03-28 02:30', 'FREQ=DAILY;COUNT=4', 'Europe/Berlin');
SELECT * FROM sheet.occurrences('2026-10-24 02:30', 'FREQ=DAILY;COUNT=3', 'Europe/Berlin');
SELECT * FROM sheet.occurrences('2026-10-24 02:30', 'FREQ=DAILY;COUNT=3', 'Europe/Berlin', dates => '{2026-10-30 02:30, 2026-10-25 02:30}',
	"except" => '{2026-10-26 02:30}');
-- leap days, behind 2033 and 2038
SELECT array_agg(instance::date) FROM sheet.occurrences('2028-02-29', 'FREQ=YEARLY', max_rows => 4);
SELECT array_agg(starts_at) FROM sheet.occurrences('2033-05-18 03:33:20', 'FREQ=YEARLY;INTERVAL=5', max_rows => 3);
-- a span, a start that the rule does not have, a rule with its name
SELECT * FROM sheet.occurrences('2026-11-30', 'rrule:freq=weekly;byday=tu', "from" => '2026-12-05', "to" => '2026-12-20');
SELECT array_agg(instance::date) FROM sheet.occurrences('2026-11-30', 'FREQ=WEEKLY;BYDAY=TU;COUNT=2');
-- UNTIL as a date, a local time and a time in UTC
SELECT u, count(*) FROM unnest('{20261204,20261204T090000,20261204T080000Z,20261204T075959Z}'::text[]) u,
	sheet.occurrences('2026-12-01 09:00', 'FREQ=DAILY;UNTIL=' || u, 'Europe/Berlin') GROUP BY u ORDER BY u;
-- what is no rule
CREATE FUNCTION refused(rule text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM sheet.occurrences('2026-12-01 09:00', rule, max_rows => 1);
	RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ': ' || detail;
END
$$;
SELECT left(rule, 40) AS rule, refused(rule) FROM unnest(ARRAY['', 'X', 'FREQ=DAILY;', 'COUNT=3', 'FREQ=HOURLY', 'FREQ=DAILY;BYHOUR=9', 'FREQ=DAILY;COUNT=0',
	'FREQ=DAILY;COUNT=3;UNTIL=20270101', 'FREQ=DAILY;COUNT=3;COUNT=4', 'FREQ=DAILY;INTERVAL=-1', 'FREQ=DAILY;INTERVAL=1.5', 'FREQ=DAILY;BYDAY=2MO',
	'FREQ=MONTHLY;BYDAY=XX', 'FREQ=MONTHLY;BYDAY=54MO', 'FREQ=WEEKLY;BYMONTHDAY=3', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', 'FREQ=MONTHLY;BYSETPOS=1',
	'FREQ=DAILY;UNTIL=20270229', 'FREQ=DAILY;UNTIL=2027', 'FREQ=DAILY;UNTIL=20270101T250000Z', 'FREQ=DAILY;RSCALE=CHINESE', 'FREQ=DAILY;X-A=1',
	'FREQ=DAILY;WKST=MO,TU', E'FREQ=DAILY;\nCOUNT=3', 'FREQ=DAILY;COUNT=99999999999999999999', repeat('FREQ=DAILY;', 200)]) rule;
SELECT * FROM sheet.occurrences('2026-12-01', 'FREQ=DAILY', 'Mars/Phobos');
SELECT * FROM sheet.occurrences('2026-12-01', 'FREQ=DAILY', 'FOO+3');
SELECT * FROM sheet.occurrences('infinity', 'FREQ=DAILY');
SELECT * FROM sheet.occurrences(NULL, 'FREQ=DAILY');
SELECT count(*) FROM sheet.occurrences('2026-12-01', 'FREQ=DAILY', "to" => '2099-01-01');

-- ---- tasks, agendas, changes ----
-- until nothing is left to do, as the worker does
CREATE FUNCTION serve(id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	at timestamptz;
BEGIN
	LOOP
		at := sheet.serve_calendar(id);
		EXIT WHEN at IS NOT NULL;
	END LOOP;
	RETURN at > now();
END
$$;
SELECT sheet.account_create('cal_ann', NULL, 'x') AS ann, sheet.account_create('cal_bob', NULL, 'x') AS bob, sheet.account_create('cal_eve', NULL, 'x') AS eve \gset
SELECT sheet.create_calendar('Team', 'Europe/Berlin', :ann) AS id \gset
SELECT a1, content FROM sheet.range(:id);
-- twenty persons, daily, ten times, would be 10 occurrences and 200 events
SELECT sheet.add_task(:id, '{"Title": "Standup", "Start": "2030-12-30 09:00", "End": "15 min", "Repeats": "FREQ=DAILY;COUNT=10", "Who": "cal_ann, cal_bob",
	"Place": "Hall"}', :ann) AS standup \gset
SELECT serve(:id);
SELECT count(*) FROM sheet.occurrence o JOIN sheet.series s USING (series_id) WHERE s.sheet_id = :id;
SELECT title, place, instance, starts_at, ends_at, all_day, zone, answer FROM sheet.agenda(:bob, '2031-01-05', '2031-01-07');
SELECT title, persons, starts_at FROM sheet.calendar_entries(:id, '2031-01-05', '2031-01-06', :ann);
-- this and following; this; without this
SELECT sheet.change_task(:id, :'standup', '{"Start": "2031-01-03 10:00", "End": "30 min"}', 'following', '2031-01-03 09:00', '{"Title": "Standup"}', :ann) AS later \gset
SELECT sheet.change_task(:id, :'standup', '{"Title": "Late", "Start": "2030-12-31 11:00"}', 'this', '2030-12-31 09:00', NULL, :ann) = :'standup' AS same;
SELECT sheet.delete_task(:id, :'later', 'this', '2031-01-05 10:00', :ann);
SELECT serve(:id);
SELECT title, instance, starts_at, ends_at FROM sheet.agenda(:bob, '2030-12-01', '2031-02-01');
SELECT title, starts, lasts, rule, until_at, cells->>'except' AS "except", problem FROM sheet.tasks(:id, as_uid => :ann);
-- answers, of all and of one
SELECT sheet.answer(:id, :'later', 'declined', NULL, :bob);
SELECT sheet.answer(:id, :'later', 'accepted', '2031-01-06 10:00', :bob);
SELECT sheet_id = :id AS same, name, owner, role, zone FROM sheet.calendars(:ann);
SELECT seq > 0 AS seq, expanded_to FROM sheet.calendar_state(:id, :ann);
SELECT count(*) FROM sheet.calendars(:eve);
SELECT starts, all_day, zone, repeats, cells->>'title' AS title, own_cells, problem, persons FROM sheet.task_info(:id, :'later', '2031-01-06 10:00', :ann);
SELECT starts, own_cells->>'title' AS own, persons FROM sheet.task_info(:id, :'standup', '2030-12-31 09:00', :ann);
SELECT count(*) FROM sheet.task_info(:id, 'none', NULL, :ann);
SELECT starts_at, answer FROM sheet.agenda(:bob, '2031-01-03', '2031-02-01');
SELECT sheet.answer(:id, :'later', NULL, NULL, :bob);
SELECT DISTINCT answer FROM sheet.agenda(:bob, '2031-01-03', '2031-02-01') ORDER BY 1;
SELECT * FROM sheet.month_dots(:bob, '2031-01-20', 'Europe/Berlin');
SELECT uid = :ann AS ann, busy FROM sheet.busy(ARRAY[:bob, :ann]::bigint[], '2030-12-30', '2031-01-01');
SELECT sheet.common_gap(ARRAY[:bob, :ann]::bigint[], '2030-12-30 08:00', '2031-01-01', '1 h');
SELECT sheet.common_gap(ARRAY[:bob, :ann]::bigint[], '2030-12-30 08:00', '2030-12-30 08:30', '1 h');
-- cells that people edit: a title, a person, a date, and a row that is deleted
SELECT sheet.set(:id, 'A2', 'Daily') > 0 AS done;
SELECT sheet.set(:id, 'E2', 'cal_ann; cal_eve') > 0 AS done;
SELECT sheet.refresh_calendar(:id);
SELECT serve(:id);
SELECT title, starts_at FROM sheet.agenda(:eve, '2030-12-01', '2031-02-01');
SELECT title, starts_at FROM sheet.agenda(:bob, '2030-12-01', '2031-01-02');
SELECT sheet.delete_rows(:id, 1, 1) > 0 AS done;
SELECT sheet.refresh_calendar(:id);
SELECT title, starts_at FROM sheet.agenda(:eve, '2030-12-01', '2031-02-01');
SELECT "row", title FROM sheet.tasks(:id);
-- a copied row gets a UID of its own; a row without one too
SELECT sheet.set_range(:id, 'A10', '{{Copy,2031-02-03 10:00,"","",cal_bob}}') > 0 AS done;
SELECT sheet.set(:id, 'L10', :'later') > 0 AS done;
SELECT sheet.set_range(:id, 'A11', '{{Day off,2031-02-03,2031-02-04,"",cal_bob}}') > 0 AS done;
SELECT sheet.refresh_calendar(:id);
SELECT serve(:id);
SELECT title, starts_at, ends_at, all_day FROM sheet.agenda(:bob, '2031-02-01', '2031-03-01');
SELECT count(DISTINCT task_uid), count(*) FROM sheet.tasks(:id);
-- rollback of the sheet brings the tasks back
SELECT sheet.commit(:id) AS version \gset
SELECT sheet.delete_rows(:id, 1, 20) > 0 AS done;
SELECT sheet.refresh_calendar(:id);
SELECT count(*) FROM sheet.tasks(:id);
SELECT sheet.rollback(:id, :version) > :version AS restored;
SELECT sheet.refresh_calendar(:id);
SELECT serve(:id);
SELECT count(*) FROM sheet.tasks(:id);
SELECT title, starts_at FROM sheet.agenda(:bob, '2031-02-01', '2031-03-01');
-- the end moves with the start, unless both are given; exceptions, dates and the end of the rule too
SELECT sheet.add_task(:id, '{"Title": "Trip", "Start": "2031-04-01 09:00", "End": "2031-04-01 11:00", "Repeats": "FREQ=WEEKLY;UNTIL=20310415T070000Z",
	"Except": "2031-04-08 09:00", "Dates": "2031-04-20 09:00"}') AS trip \gset
SELECT sheet.change_task(:id, :'trip', '{"Start": "2031-04-01 13:30"}') = :'trip' AS same;
SELECT sheet.change_task(:id, :'trip', '{"Title": "Short", "Start": "2031-04-15 15:00", "End": "15:30"}', 'this', '2031-04-15 13:30') = :'trip' AS same;
SELECT sheet.change_task(:id, :'trip', '{"Start": "2031-04-15 16:00"}', 'this', '2031-04-15 13:30') = :'trip' AS same;
SELECT sheet.change_task(:id, :'trip', '{"Start": "soon"}', 'this', '2031-04-15 13:30');
SELECT sheet.add_task(:id, '{"Title": "Walk", "Start": "2031-04-02 08:00", "End": "09:00", "Repeats": "daily"}') AS walk \gset
SELECT sheet.change_task(:id, :'walk', '{"Start": "2031-04-04 22:30"}', 'following', '2031-04-04 08:00') <> :'walk' AS another;
SELECT title, cells->>'start' AS starts, cells->>'end' AS ends, lasts, rule, cells->>'except' AS "except", cells->>'dates' AS dates FROM sheet.tasks(:id)
	WHERE title IN ('Trip', 'Short', 'Walk');
SELECT serve(:id);
SELECT title, starts_at, ends_at FROM sheet.calendar_entries(:id, '2031-04-01', '2031-04-22') WHERE title IN ('Trip', 'Short');
-- nothing of a sheet in the trash, or that is no calendar any more; what was edited before is served when it is back
SELECT sheet.set_range(:id, 'A60', '{{Last,2031-05-05 10:00,1 h}}') > 0 AS done;
SELECT sheet.trash(:id);
SELECT sheet.serve_calendar(:id);
SELECT count(*) FROM sheet.agenda(:bob, '2030-01-01', '2032-01-01');
SELECT count(*) FROM sheet.month_dots(:bob, '2031-02-01', 'UTC');
SELECT sheet.recover(:id);
SELECT count(*) > 0 AS some FROM sheet.agenda(:bob, '2030-01-01', '2032-01-01');
SELECT sheet.refresh_calendar(:id);
SELECT title, problem, task_uid <> '' AS named FROM sheet.tasks(:id) WHERE title = 'Last';

-- ---- problems of cells ----
SELECT sheet.set_range(:id, 'A20', ARRAY[['a', 'tomorrow', '', '', ''], ['b', '2031-02-30', '', '', ''], ['c', '2031-03-01 10:00', '2031-03-01 09:00', '', ''],
	['d', '2031-03-01', '10:00', '', ''], ['e', '2031-03-01 10:00', '90', '', ''], ['f', '2031-03-01 10:00', '5 years', '', ''],
	['g', '2031-03-01 10:00', '', 'sometimes', ''], ['h', '2031-03-01 10:00', '', 'FREQ=DAILY;COUNT=100000', ''], ['i', '2031-03-01 10:00', '1 h', '', 'cal_ann, cal_nobody'],
	['j', '2031-03-01 23:00', '01:00', 'weekly', 'someone@example.org'], ['k', '', '', '', ''], ['l', '=A1', '', '', '']]) > 0 AS done;
SELECT sheet.set(:id, 'H31', 'Mars/Phobos') > 0 AS done;
SELECT sheet.set(:id, 'B31', '2031-03-01') > 0 AS done;
SELECT sheet.refresh_calendar(:id);
SELECT title, starts, lasts, rule, problem FROM sheet.tasks(:id) WHERE "row" >= 19;
-- a column without a name keeps its contents when the sheet gets a column UID
SELECT sheet.create('unnamed', 5, 5, NULL, :ann) AS unnamed \gset
SELECT sheet.set_range(:unnamed, 'A1', '{{Title,Start,""},{Alone,2031-01-01 10:00,note},{Both,2031-01-02 10:00,note}}') > 0 AS done;
SELECT sheet.set_calendar(:unnamed);
SELECT sheet.refresh_calendar(:unnamed);
SELECT a1, CASE WHEN col < 3 OR "row" = 0 THEN content END AS content FROM sheet.range(:unnamed);
SELECT count(DISTINCT task_uid) FROM sheet.tasks(:unnamed);
\set VERBOSITY sqlstate
SELECT sheet.add_task(:id, '{"Title": "x", "Start": "2031-03-01 10:00", "Repeats": "FREQ=DAILY;BYDAY=2MO"}');
SELECT sheet.add_task(:id, '{"Title": "x", "Begin": "2031-03-01 10:00"}');
SELECT sheet.change_task(:id, 'none', '{}');
\set VERBOSITY default
SELECT sheet.change_task(:id, :'later', '{"Title": "x"}', 'this');
SELECT sheet.change_task(:id, :'later', '{"Title": "x"}', 'that', '2031-01-04 10:00');
SELECT sheet.change_task(:id, :'later', '{"Title": "x"}', 'this', '2031-01-04 10:30');
-- what others have changed since it was read
SELECT sheet.change_task(:id, :'later', '{"Title": "x", "Place": "y"}', seen => '{"title": "Another", "Place": "There", "Start": null}', as_uid => :ann);
SELECT sheet.change_task(:id, :'later', '{"Title": "x"}', seen => '["x"]', as_uid => :ann);
SELECT sheet.answer(:id, :'later', 'maybe', NULL, :bob);
\set VERBOSITY terse
SELECT sheet.answer(:id, :'later', 'accepted', NULL, :eve);
\set VERBOSITY default

-- ---- who may ----
CREATE ROLE cal_ann; CREATE ROLE cal_eve;
SELECT sheet.link_account('cal_ann', 'cal_ann');
SELECT sheet.link_account('cal_eve', 'cal_eve');
SET ROLE cal_eve;
\set VERBOSITY sqlstate
SELECT count(*) FROM sheet.tasks(:id);
SELECT count(*) FROM sheet.calendar_entries(:id, '2031-01-01', '2031-02-01');
SELECT sheet.refresh_calendar(:id);
SELECT sheet.add_task(:id, '{"Title": "x", "Start": "2031-03-01 10:00"}');
SELECT count(*) FROM sheet.agenda(:bob, '2031-01-01', '2031-02-01');
SELECT count(*) FROM sheet.month_dots(:bob, '2031-01-01', 'UTC');
SELECT count(*) FROM sheet.busy(ARRAY[:bob]::bigint[], '2031-01-01', '2031-02-01');
SELECT count(*) FROM sheet.agenda(NULL, '2031-01-01', '2031-02-01');
SELECT sheet.set_calendar(:id, false);
SELECT count(*) FROM sheet.take_reminders();
SELECT count(*) FROM sheet.occurrence;
SET ROLE cal_ann;
SELECT count(*) > 0 AS some FROM sheet.tasks(:id);
SELECT sheet.create('plain') AS plain \gset
SELECT sheet.set_calendar(:plain);
SELECT sheet.refresh_calendar(:plain);
SELECT sheet.create_calendar('Mine', 'UTC') AS mine \gset
SELECT sheet.add_task(:mine, '{"Title": "Alone", "Start": "2026-12-01 10:00", "End": "1 h"}') IS NOT NULL AS added;
RESET ROLE;
-- gateways act for accounts and for guests
CREATE ROLE cal_gateway IN ROLE sheet_gateway;
SELECT link_id AS link FROM sheet.create_link(:id, 'editor') \gset
SELECT link_id AS reader FROM sheet.create_link(:id) \gset
SET ROLE cal_gateway;
SELECT sheet.add_task(:id, '{"Title": "By a gateway", "Start": "2031-03-01 10:00", "Repeats": "daily"}', :ann) AS by_gateway \gset
SELECT sheet.change_task(:id, :'by_gateway', '{"Title": "By a guest"}', 'this', '2031-03-02 10:00', NULL, -:link) = :'by_gateway' AS same;
SELECT sheet.delete_task(:id, :'by_gateway', 'following', '2031-03-03 10:00', -:link);
SELECT title, starts, rule FROM sheet.tasks(:id, as_uid => -:link) WHERE task_uid = :'by_gateway';
SELECT sheet.change_task(:id, :'by_gateway', '{"Title": "x"}', as_uid => :eve);
SELECT sheet.change_task(:id, :'by_gateway', '{"Title": "x"}', as_uid => -:reader);
SELECT sheet.calendar_end(:id, :eve);
SELECT count(*) FROM sheet.calendar_columns(:id, :eve);
RESET ROLE;
DROP ROLE cal_gateway;
SELECT serve(:mine);
SET ROLE cal_ann;
SELECT title, answer FROM sheet.agenda(NULL, '2026-12-01', '2026-12-02');
\set VERBOSITY default
RESET ROLE;
SELECT sheet.set_calendar(:mine, false);
SELECT count(*) FROM sheet.task WHERE sheet_id = :mine;
-- texts that would be something else as contents; a column that calendars do not know has contents, such as numbers
SELECT sheet.create_calendar('Texts', 'UTC', :ann) AS texts \gset
SELECT sheet.set(:texts, 0, 13, 'Cost') > 0 AS set;
SELECT sheet.add_task(:texts, jsonb_build_object('Title', t, 'Place', t, 'Who', t || '@example.org', 'Notes', t, 'Cost', t, 'Start', '2030-01-01')) <> '' AS added
	FROM unnest(ARRAY['''s-Hertogenbosch', '=2+3', '12', '007', 'TRUE', '2027-01-31', 'plain']) t;
SELECT sheet.change_task(:texts, t.task_uid, jsonb_build_object('Title', t.title || '''')) = t.task_uid AS same FROM sheet.tasks(:texts) t WHERE t.title ~ '^[=1]' ORDER BY 1;
SELECT t.title, t.place, t.cells->>'who' AS who, t.cells->>'notes' AS notes, t.cells->>'cost' AS cost FROM sheet.tasks(:texts) t ORDER BY t."row";
SELECT r.a1, r.content FROM sheet.range(:texts, 'A2:N8') r WHERE r.a1 ~ '^[AEFKN]' ORDER BY r."row", r.col;
-- its contents go unchanged into the row of an occurrence and of the later ones, and back
SELECT sheet.create_calendar('Refs', 'UTC', :ann) AS refs \gset
SELECT sheet.set(:refs, 0, 13, 'Ref') > 0 AS set;
SELECT sheet.add_task(:refs, jsonb_build_object('Title', 'daily', 'Ref', t, 'Start', '2031-01-01', 'Repeats', 'FREQ=DAILY;COUNT=9')) AS uid, t AS ref
	INTO TEMP refs FROM unnest(ARRAY['''=1+1', '''12', '''2027-01-04', '=1+1', '12', ' two ', '''''x']) t;
SELECT count(sheet.change_task(:refs, uid, '{"Place": "one"}', 'this', '2031-01-02')), count(sheet.change_task(:refs, uid, '{"Place": "later"}', 'following', '2031-01-05')),
	count(sheet.change_task(:refs, uid, jsonb_build_object('Ref', (SELECT t.cells->>'ref' FROM sheet.tasks(:refs, uid) t WHERE t.instance IS NULL)))) FROM refs;
SELECT format('[%s]', r.content) AS content, count(*) FROM sheet.range(:refs, 'N2:N99') r GROUP BY r.content ORDER BY r.content COLLATE "C";
-- persons who have no account; those of before stay
SELECT sheet.add_task(:texts, '{"Title": "x", "Start": "2030-01-01", "Who": "cal_ann; cal_nobody, \"a, b\""}');
SELECT task_uid AS plain FROM sheet.tasks(:texts) WHERE title = 'plain' \gset
SELECT sheet.change_task(:texts, :'plain', '{"WHO": "cal_nobody"}');
SELECT sheet.set_range(:texts, 'E8', '{{"cal_before, cal_ann"}}') > 0 AS set;
SELECT sheet.change_task(:texts, :'plain', '{"Who": "cal_before, cal_bob", "Place": "here"}') = :'plain' AS same;
SELECT sheet.change_task(:texts, :'plain', '{"Who": "cal_before, cal_after"}');
SELECT place, cells->>'who' AS who, problem FROM sheet.tasks(:texts) WHERE title = 'plain';
-- an event that is over is not reminded of, and is not looked at again; one that is under way is, and one that has no end
SELECT sheet.add_task(:texts, jsonb_build_object('Title', e.title, 'Start', to_char(now() + e.starts, 'YYYY-MM-DD HH24:MI:SS'), 'End', e.lasts, 'Reminder', '1 h')) <> '' AS added
	FROM (VALUES ('over', interval '-3 hours', '1 h'), ('under way', '-3 hours', '5 h'), ('now', '-1 minute', ''), ('soon', '30 minutes', '1 h')) e (title, starts, lasts);
SELECT serve(:texts) IS NOT NULL AS served;
SELECT t.title, sheet.next_reminder(t) IS NOT NULL AS looked_at FROM sheet.task t WHERE t.sheet_id = :texts AND t.remind IS NOT NULL
	AND NOT EXISTS (SELECT FROM sheet.reminded m WHERE m.sheet_id = :texts AND m.task_uid = t.task_uid) AND t.title = 'over';
SELECT count(*) >= 0 AS done FROM sheet.task t CROSS JOIN LATERAL sheet.put_reminders(t) WHERE t.sheet_id = :texts AND t.remind IS NOT NULL;
SELECT DISTINCT title FROM sheet.outbox WHERE sheet_id = :texts ORDER BY 1;
SELECT sheet.purge(:texts);
SELECT sheet.purge(:id);
SELECT count(*) FROM sheet.series s WHERE s.sheet_id = :id;
SELECT count(*) FROM sheet.occurrence o WHERE NOT EXISTS (SELECT FROM sheet.series s WHERE s.series_id = o.series_id);
DROP FUNCTION refused(text);
DROP FUNCTION serve(bigint);
SELECT sheet.link_account('cal_ann', NULL);
SELECT sheet.link_account('cal_eve', NULL);
DROP ROLE cal_ann; DROP ROLE cal_eve;
