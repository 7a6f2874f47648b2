-- Calendar objects: rows of a calendar as iCalendar texts, and texts that become rows; what changes their ETags.
SET timezone = 'UTC';
\set SHOW_CONTEXT never
SELECT sheet.account_create('dav ann', 'a@example.org', 'x') AS ann, sheet.account_create('dav bob', 'b@example.org', 'x') AS bob,
	sheet.account_create('dav eve', 'c@example.org', 'x') AS eve \gset
SELECT sheet.create_calendar('Team', 'Europe/Berlin', :ann) AS cal \gset
SELECT sheet.share(:cal, 'dav bob', 'viewer', :ann);
CREATE FUNCTION object(VARIADIC lines text[]) RETURNS text LANGUAGE sql AS $$
	SELECT E'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\n' || array_to_string(lines, E'\r\n') || E'\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n'
$$;
-- The text without what differs from run to run, and without zones.
CREATE FUNCTION shown(data text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT l FROM string_to_table(replace(regexp_replace(regexp_replace(data, 'BEGIN:VTIMEZONE.*END:VTIMEZONE\s+', ''), '\r\n ', '', 'g'), E'\r', ''), E'\n') l
	WHERE l <> '' AND l NOT LIKE 'DTSTAMP:%'
$$;
CREATE FUNCTION etag(cal bigint, object text) RETURNS text LANGUAGE sql AS $$SELECT l.etag FROM sheet.caldav_list(cal) l WHERE l.name = object$$;
CREATE PROCEDURE wait_for_change(cal bigint, object text, known text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 3000 LOOP
		EXIT WHEN etag(cal, object) <> known;
		COMMIT;
		PERFORM pg_sleep(0.01);
	END LOOP;
END
$$;
-- A statement; its error with the name of the constraint.
CREATE FUNCTION refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	EXECUTE statement;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS name = CONSTRAINT_NAME;
	RETURN concat_ws(' ', SQLSTATE, nullif(name, ''), regexp_replace(SQLERRM, 'sheet [0-9]+', 'sheet N'));
END
$$;
-- ---- rows and texts ----
SELECT created FROM sheet.caldav_put(:cal, 'one.ics', object('UID:1', 'DTSTART;TZID=Europe/Berlin:20270104T090000', 'DTEND;TZID=Europe/London:20270104T090000',
	'SUMMARY:=1+1', 'RRULE:FREQ=WEEKLY;UNTIL=20270301T080000Z', 'EXDATE;TZID=Europe/Berlin:20270111T090000,20270118T090000', 'RDATE:20270105T080000Z',
	'ATTENDEE;RSVP=TRUE;PARTSTAT=ACCEPTED:urn:pg-sheet:account:dav%20bob', 'ATTENDEE:mailto:x@example.org', 'ORGANIZER:mailto:x@example.org',
	'X-A;X-B=c:d', 'BEGIN:VALARM', 'ACTION:AUDIO', 'TRIGGER:-PT1H30M', 'END:VALARM', 'BEGIN:VALARM', 'ACTION:DISPLAY', 'DESCRIPTION:x', 'TRIGGER;RELATED=END:PT0S',
	'END:VALARM'), as_uid => :ann);
SELECT jsonb_pretty(cells) AS cells, problem FROM sheet.tasks(:cal);
SELECT shown(data) FROM sheet.caldav_get(:cal, '{one.ics}');
SELECT position('TZID:Europe/Berlin' IN data) > 0 AS has_zone, position('1893' IN data) = 0 AS short FROM sheet.caldav_get(:cal);
-- whole days, UTC, times without a zone, a duration over a change of the clocks, folded lines
SELECT created FROM sheet.caldav_put(:cal, 'two.ics', object('UID:2', 'DTSTART;VALUE=DATE:20270104', 'DTEND;VALUE=DATE:20270107', 'RRULE:FREQ=YEARLY;UNTIL=20300104',
	'EXDATE;VALUE=DATE:20280104', 'SUMMARY:' || repeat('long ', 30)), as_uid => :ann);
SELECT created FROM sheet.caldav_put(:cal, 'three.ics', object('UID:3', 'DTSTART:20270104T080000Z', 'DURATION:P1D', 'SUMMARY:utc'), as_uid => :ann);
SELECT created FROM sheet.caldav_put(:cal, 'four.ics', object('UID:4', 'DTSTART:20271030T223000', 'DURATION:PT4H', 'SUMMARY:floats'), as_uid => :ann);
SELECT created FROM sheet.caldav_put(:cal, 'five.ics', object('UID:5', 'DTSTART:20271031T020000', 'DTEND:20271031T013000Z', 'SUMMARY:'''), as_uid => :ann);
SELECT cells - 'uid' FROM sheet.tasks(:cal) WHERE task_uid > '1' ORDER BY task_uid;
SELECT g.name, s FROM sheet.caldav_get(:cal) g, shown(g.data) s WHERE g.name <> 'one.ics' AND s ~ '^(DT|DUR|RRULE|EXDATE|SUMMARY)' ORDER BY g.name COLLATE "C", s COLLATE "C";
-- ---- ETags ----
SELECT etag(:cal, 'three.ics') AS three, etag(:cal, 'one.ics') AS one \gset
-- what was read is written: nothing changes, not even how the cells are written
SELECT sheet.change_task(:cal, '3', '{"End": "2 days", "Repeats": "weekly"}', as_uid => :ann);
SELECT etag(:cal, 'three.ics') AS next \gset
SELECT :'next' <> :'three' AS changed;
SELECT etag = :'next' AS same, created FROM sheet.caldav_put(:cal, 'three.ics', (SELECT data FROM sheet.caldav_get(:cal, '{three.ics}')), :'next', as_uid => :ann);
SELECT cells->>'end' AS "end", cells->>'repeats' AS repeats FROM sheet.tasks(:cal) WHERE task_uid = '3';
SELECT etag(:cal, 'one.ics') = :'one' AS same;
-- an answer, and properties that no column has
SELECT sheet.answer(:cal, '1', 'tentative', as_uid => :bob);
CALL wait_for_change(:cal, 'one.ics', :'one');
SELECT etag(:cal, 'one.ics') <> :'one' AS changed, (SELECT s FROM sheet.caldav_get(:cal, '{one.ics}') g, shown(g.data) s WHERE s LIKE 'ATTENDEE%bob');
SELECT etag <> :'next' AS changed FROM sheet.caldav_put(:cal, 'three.ics', (SELECT replace(data, 'SUMMARY', E'CLASS:PRIVATE\r\nSUMMARY') FROM sheet.caldav_get(:cal, '{three.ics}')), as_uid => :ann);
-- conditions
SELECT refused(format($$SELECT sheet.caldav_put(%s, 'three.ics', object('UID:3', 'DTSTART:20270104T080000Z'), %L, %L, as_uid => %s)$$, :cal, m, n, :ann))
	FROM (VALUES ('"1"', NULL), ('x', NULL), (NULL, '*')) c (m, n);
SELECT refused(format($$SELECT sheet.caldav_put(%s, 'new.ics', object('UID:9', 'DTSTART:20270104T080000Z'), '*', as_uid => %s)$$, :cal, :ann));
-- components in components: the calendar, the event and six more are allowed
SELECT n, refused(format($$SELECT sheet.caldav_put(%s, 'deep.ics', object(VARIADIC ARRAY['UID:deep', 'DTSTART:20270104T080000Z']
	|| array_fill('BEGIN:X-A'::text, ARRAY[%s]) || array_fill('END:X-A'::text, ARRAY[%s])), as_uid => %s)$$, :cal, n, n, :ann))
	FROM unnest(ARRAY[6, 7, 30000]) n;
SELECT sheet.caldav_delete(:cal, 'deep.ics', as_uid => :ann);
-- a reminder and a person that change in the sheet
SELECT sheet.change_task(:cal, '1', '{"Reminder": "5 min", "Who": "dav bob, dav ann"}', as_uid => :ann);
SELECT s FROM sheet.caldav_get(:cal, '{one.ics}') g, shown(g.data) s WHERE s ~ '^(ATTENDEE|TRIGGER|ACTION)';
-- ---- changed occurrences ----
SELECT created FROM sheet.caldav_put(:cal, 'six.ics', object('UID:6', 'DTSTART;TZID=Europe/Berlin:20270104T090000', 'RRULE:FREQ=DAILY;COUNT=5', 'SUMMARY:a', 'END:VEVENT', 'BEGIN:VEVENT',
	'UID:6', 'RECURRENCE-ID:20270105T080000Z', 'DTSTART:20270105T120000Z', 'SUMMARY:b', 'X-OWN:1', 'END:VEVENT', 'BEGIN:VEVENT', 'UID:6',
	'RECURRENCE-ID;TZID=Europe/Berlin:20270107T090000', 'DTSTART;TZID=Europe/Berlin:20270107T100000', 'SUMMARY:c'), as_uid => :ann);
SELECT title, instance, starts FROM sheet.tasks(:cal) WHERE task_uid = '6';
SELECT shown(data) FROM sheet.caldav_get(:cal, '{six.ics}');
SELECT title, starts_at FROM sheet.calendar_entries(:cal, '2027-01-04', '2027-01-10') WHERE task_uid = '6';
SELECT s FROM sheet.caldav_query(:cal, '2027-01-05', '2027-01-06', true) g, shown(g.data) s WHERE g.name = 'six.ics';
SELECT name FROM sheet.caldav_query(:cal, '2027-01-08', '2027-01-09') ORDER BY name COLLATE "C";
SELECT name FROM sheet.caldav_query(:cal, '2050-01-01', '2050-01-02');
-- one of them becomes as the others again
SELECT created FROM sheet.caldav_put(:cal, 'six.ics', object('UID:6', 'DTSTART;TZID=Europe/Berlin:20270104T090000', 'RRULE:FREQ=DAILY;COUNT=5', 'SUMMARY:a', 'END:VEVENT', 'BEGIN:VEVENT',
	'UID:6', 'RECURRENCE-ID;TZID=Europe/Berlin:20270107T090000', 'DTSTART;TZID=Europe/Berlin:20270107T110000', 'SUMMARY:c'), as_uid => :ann);
SELECT title, instance, starts FROM sheet.tasks(:cal) WHERE task_uid = '6';
-- ---- answers ----
CREATE FUNCTION meeting(ann text, bob text, VARIADIC more text[] DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
	SELECT object(VARIADIC ARRAY['UID:7', 'DTSTART;TZID=Europe/Berlin:20270104T090000', 'DTEND;TZID=Europe/Berlin:20270104T100000', 'RRULE:FREQ=DAILY;COUNT=5', 'SUMMARY:meeting',
		'STATUS:CONFIRMED', 'ATTENDEE;PARTSTAT=' || ann || ':urn:pg-sheet:account:dav%20ann', 'ATTENDEE;PARTSTAT=' || bob || ':urn:pg-sheet:account:dav%20bob'] || more)
$$;
CREATE FUNCTION answers() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT concat_ws(' ', c.name, nullif(a.instance, '-infinity'), a.answer) FROM sheet.answer a JOIN sheet.account c USING (uid) WHERE a.task_uid = '7' ORDER BY 1
$$;
-- a person answers for itself alone
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', meeting('ACCEPTED', 'ACCEPTED'), as_uid => :ann);
SELECT answers();
SELECT etag(:cal, 'seven.ics') AS seven, token AS before FROM sheet.calendars(:ann) WHERE sheet_id = :cal \gset
SELECT etag = :'seven' AS same FROM sheet.caldav_put(:cal, 'seven.ics', meeting('ACCEPTED', 'ACCEPTED'), as_uid => :ann);
-- a viewer answers; what it may set for itself is passed over
SELECT created, etag <> :'seven' AS changed FROM sheet.caldav_put(:cal, 'seven.ics', meeting('DECLINED', 'TENTATIVE', 'TRANSP:TRANSPARENT', 'LAST-MODIFIED:20270101T000000Z', 'X-A:1',
	'BEGIN:VALARM', 'ACTION:AUDIO', 'TRIGGER:-PT1H', 'END:VALARM'), :'seven', as_uid => :bob);
SELECT answers();
SELECT name, gone FROM sheet.caldav_changes(:cal, :before) WHERE name IS NOT NULL;
SELECT s FROM sheet.caldav_get(:cal, '{seven.ics}') g, shown(g.data) s WHERE s ~ 'ATTENDEE|ALARM|TRANSP';
-- and one occurrence, in another time zone; it gets no row
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', meeting('ACCEPTED', 'TENTATIVE', 'END:VEVENT', 'BEGIN:VEVENT', 'UID:7', 'RECURRENCE-ID;TZID=Europe/Berlin:20270106T090000',
	'DTSTART:20270106T080000Z', 'DTEND:20270106T090000Z', 'SUMMARY:meeting', 'STATUS:CONFIRMED', 'ATTENDEE:urn:pg-sheet:account:dav%20ann',
	'ATTENDEE;PARTSTAT=DECLINED:urn:pg-sheet:account:dav%20bob'), as_uid => :bob);
SELECT answers();
SELECT instance FROM sheet.tasks(:cal) WHERE task_uid = '7';
SELECT s FROM sheet.caldav_get(:cal, '{seven.ics}') g, shown(g.data) s WHERE s ~ 'ATTENDEE|RECURRENCE|RRULE|DTSTART|DTEND|SUMMARY';
SELECT s FROM sheet.caldav_query(:cal, '2027-01-06', '2027-01-07', true) g, shown(g.data) s WHERE g.name = 'seven.ics' AND s ~ 'ATTENDEE|RECURRENCE';
-- what was read is written, by an editor too: nothing changes, and no row is added
SELECT etag FROM sheet.caldav_put(:cal, 'seven.ics', (SELECT data FROM sheet.caldav_get(:cal, '{seven.ics}')), as_uid => :ann) \gset
SELECT etag = :'etag' AS same FROM sheet.caldav_put(:cal, 'seven.ics', (SELECT data FROM sheet.caldav_get(:cal, '{seven.ics}')), as_uid => :ann);
SELECT instance FROM sheet.tasks(:cal) WHERE task_uid = '7';
-- nor if the program has changed the task, but not the event of the answered occurrence
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', (SELECT replace(data, '20270104T090000', '20270104T093000') FROM sheet.caldav_get(:cal, '{seven.ics}')), as_uid => :ann);
SELECT instance, starts FROM sheet.tasks(:cal) WHERE task_uid = '7';
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', (SELECT replace(data, '20270104T093000', '20270104T090000') FROM sheet.caldav_get(:cal, '{seven.ics}')), as_uid => :ann);
-- an answer is taken back
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', meeting('ACCEPTED', 'NEEDS-ACTION'), as_uid => :bob);
SELECT answers();
-- a viewer that changes more
SELECT what, refused(format('SELECT sheet.caldav_put(%s, %L, %L, as_uid => %s)', :cal, name, data, :bob)) FROM (VALUES
	('title', 'seven.ics', replace(meeting('ACCEPTED', 'ACCEPTED'), 'SUMMARY:meeting', 'SUMMARY:mine')),
	('notes', 'seven.ics', meeting('ACCEPTED', 'ACCEPTED', 'DESCRIPTION:mine')),
	('status', 'seven.ics', replace(meeting('ACCEPTED', 'ACCEPTED'), 'CONFIRMED', 'CANCELLED')),
	('persons', 'seven.ics', meeting('ACCEPTED', 'ACCEPTED', 'ATTENDEE:mailto:x@example.org')),
	('exception', 'seven.ics', meeting('ACCEPTED', 'ACCEPTED', 'EXDATE;TZID=Europe/Berlin:20270106T090000')),
	('occurrence', 'seven.ics', meeting('ACCEPTED', 'ACCEPTED', 'END:VEVENT', 'BEGIN:VEVENT', 'UID:7', 'RECURRENCE-ID;TZID=Europe/Berlin:20270106T090000',
		'DTSTART;TZID=Europe/Berlin:20270106T100000', 'SUMMARY:meeting', 'ATTENDEE;PARTSTAT=DECLINED:urn:pg-sheet:account:dav%20bob')),
	('UID', 'seven.ics', replace(meeting('ACCEPTED', 'ACCEPTED'), 'UID:7', 'UID:8')),
	('new', 'eight.ics', meeting('ACCEPTED', 'ACCEPTED'))) c (what, name, data);
SELECT answers();
-- the account by its e-mail address
SELECT created FROM sheet.caldav_put(:cal, 'seven.ics', replace(meeting('ACCEPTED', 'ACCEPTED'), 'urn:pg-sheet:account:dav%20bob', 'MAILTO:B@example.org'), as_uid => :bob);
SELECT answers();
SELECT cells->>'who' AS who FROM sheet.tasks(:cal) WHERE task_uid = '7';
-- one occurrence that was not expanded before
SELECT created FROM sheet.caldav_put(:cal, 'far.ics', object('UID:far', 'DTSTART;TZID=Europe/Berlin:20400104T090000', 'RRULE:FREQ=DAILY;COUNT=5', 'SUMMARY:x',
	'ATTENDEE:urn:pg-sheet:account:dav%20ann', 'END:VEVENT', 'BEGIN:VEVENT', 'UID:far', 'RECURRENCE-ID;TZID=Europe/Berlin:20400106T090000',
	'DTSTART;TZID=Europe/Berlin:20400106T090000', 'SUMMARY:x', 'ATTENDEE;PARTSTAT=DECLINED:urn:pg-sheet:account:dav%20ann'), as_uid => :ann);
SELECT instance, answer FROM sheet.answer WHERE task_uid = 'far';
SELECT sheet.caldav_delete(:cal, 'far.ics', as_uid => :ann);
-- few names and many find the same
SELECT n, name, events FROM unnest(ARRAY[0, 200, 4000]) n, LATERAL (SELECT g.name, (SELECT count(*) FROM regexp_matches(g.data, 'BEGIN:VEVENT', 'g')) AS events
	FROM sheet.caldav_get(:cal, ARRAY(SELECT 'none ' || i FROM generate_series(1, n) i) || '{six.ics,seven.ics}'::text[]) g) g ORDER BY n, name COLLATE "C";
-- ---- what has changed ----
SELECT token FROM sheet.caldav_changes(:cal, NULL) WHERE name IS NULL \gset
SELECT name, gone FROM sheet.caldav_changes(:cal, :token);
SELECT sheet.caldav_delete(:cal, 'two.ics', as_uid => :ann);
SELECT sheet.set(:cal, (SELECT t."row" FROM sheet.tasks(:cal) t WHERE t.task_uid = '4'), 1, 'nonsense') > 0 AS set;
SELECT sheet.refresh_calendar(:cal, :ann);
SELECT name, gone FROM sheet.caldav_changes(:cal, :token) ORDER BY name COLLATE "C";
SELECT refused(format('SELECT sheet.caldav_changes(%s, %s)', :cal, t)) FROM unnest(ARRAY[0, :token + 1000000]) t;
SELECT refused(format($$SELECT sheet.caldav_delete(%s, %L, %L, %s)$$, :cal, n, m, :ann)) FROM (VALUES ('two.ics', NULL), ('one.ics', '"1"')) c (n, m);
-- a name is used again
SELECT created FROM sheet.caldav_put(:cal, 'two.ics', object('UID:other', 'DTSTART:20270104T080000Z'), NULL, '*', as_uid => :ann);
SELECT name, gone FROM sheet.caldav_changes(:cal, :token) ORDER BY name COLLATE "C";
-- ---- columns that are missing are added ----
SELECT sheet.create('Simple', as_uid => :ann) AS simple \gset
SELECT sheet.set_range(:simple, 'A1', '{{Start,Title}}', :ann) > 0 AS set;
SELECT sheet.set_calendar(:simple, true, :ann);
SELECT created FROM sheet.caldav_put(:simple, 'x.ics', object('UID:x', 'DTSTART:20270104T080000Z', 'SUMMARY:x', 'RRULE:FREQ=DAILY', 'LOCATION:here'), as_uid => :ann);
SELECT a1, content FROM sheet.range(:simple);
-- ---- names that stand in quotes ----
SELECT count(sheet.account_create(n, format('q%s@example.org', i), 'x')) FROM unnest(ARRAY['dav Smith, Jo', 'dav a;b', 'dav "c", d', 'dav o"x']) WITH ORDINALITY u (n, i);
SELECT sheet.add_task(:cal, '{"Title": "Quoted", "Start": "2027-06-01 09:00", "Who": "\"dav Smith, Jo\"; dav bob, \"dav a;b\", \"dav \"\"c\"\", d\", \"dav o\"\"x\""}', :ann) AS quoted \gset
SELECT unnest(who) FROM sheet.task t, sheet.task_persons(t, NULL) WHERE t.sheet_id = :cal AND t.task_uid = :'quoted';
SELECT created FROM sheet.caldav_put(:cal, :'quoted' || '.ics', (SELECT replace(data, 'SUMMARY:Quoted', 'SUMMARY:Changed') FROM sheet.caldav_get(:cal, ARRAY[:'quoted' || '.ics'])), as_uid => :ann);
SELECT title, cells->>'who' AS who, problem FROM sheet.tasks(:cal, :'quoted');
-- in another order, so that the cell is written
SELECT created FROM sheet.caldav_put(:cal, 'names.ics', object('UID:names', 'DTSTART:20270601T080000Z', 'SUMMARY:Names', 'ATTENDEE:urn:pg-sheet:account:dav%20Smith%2C%20Jo',
	'ATTENDEE:urn:pg-sheet:account:dav%20a%3Bb', 'ATTENDEE:urn:pg-sheet:account:dav%20%22c%22,%20d', 'ATTENDEE:urn:pg-sheet:account:dav%20bob'), as_uid => :ann);
SELECT cells->>'who' AS who, problem FROM sheet.tasks(:cal, 'names');
SELECT unnest(who) FROM sheet.task t, sheet.task_persons(t, NULL) WHERE t.sheet_id = :cal AND t.task_uid = 'names';
SELECT refused(format('SELECT sheet.change_task(%s, ''names'', ''{"Who": "dav Smith, Jo"}'')', :cal));
-- ---- who may ----
SELECT refused(format('SELECT count(*) FROM sheet.caldav_get(%s, as_uid => %s)', :cal, u)) FROM unnest(ARRAY[:bob, :eve]) u;
SELECT refused(format($$SELECT sheet.caldav_put(%s, 'bob.ics', object('UID:bob', 'DTSTART:20270104T080000Z'), as_uid => %s)$$, :cal, :bob));
SELECT refused(format($$SELECT sheet.caldav_delete(%s, 'one.ics', as_uid => %s)$$, :cal, :bob));
SELECT name, role, zone FROM sheet.calendars(:bob);
CREATE ROLE dav_ann;
SELECT sheet.link_account('dav ann', 'dav_ann');
SET ROLE dav_ann;
SELECT created FROM sheet.caldav_put(:cal, 'own.ics', object('UID:own', 'DTSTART:20270104T080000Z'));
SELECT sheet.caldav_delete(:cal, 'own.ics');
SELECT name FROM sheet.calendars() ORDER BY name;
SELECT refused(format('SELECT count(*) FROM sheet.caldav_get(%s, as_uid => %s)', :cal, :bob));
SELECT refused('SELECT sheet.calendar_feed(NULL, NULL)');
RESET ROLE;
SELECT sheet.link_account('dav ann', NULL);
DROP ROLE dav_ann;
SELECT sheet.create('No calendar', as_uid => :ann) AS plain \gset
SELECT refused(format('SELECT sheet.caldav_list(%s)', :plain));
-- the sheet is no calendar any more
SELECT sheet.set_calendar(:cal, false, :ann);
SELECT sheet.set_calendar(:cal, true, :ann);
SELECT sheet.refresh_calendar(:cal, :ann);
SELECT refused(format('SELECT sheet.caldav_changes(%s, %s)', :cal, :token));
DROP PROCEDURE wait_for_change(bigint, text, text);
DROP FUNCTION object(VARIADIC text[]), shown(text), etag(bigint, text), refused(text), answers(), meeting(text, text, VARIADIC text[]);
