-- Calendars that programs make, and what an account has chosen for a calendar: its address in programs, and its colour.

CREATE TABLE sheet.calendar_choice (
	uid bigint NOT NULL,
	sheet_id bigint NOT NULL,
	address text COLLATE "C",
	colour text,
	PRIMARY KEY (uid, sheet_id),
	CONSTRAINT calendar_choice_address_key UNIQUE (uid, address)
);
CREATE INDEX calendar_choice_sheet_idx ON sheet.calendar_choice (sheet_id);
COMMENT ON TABLE sheet.calendar_choice IS 'What accounts have chosen for calendars.';
COMMENT ON COLUMN sheet.calendar_choice.address IS 'the name that a program has given it in its address; null: the number of the sheet';
COMMENT ON COLUMN sheet.calendar_choice.colour IS 'as #rrggbb; null: none was chosen';

CREATE FUNCTION sheet.put_choice(calendar bigint, person bigint, colour text, address text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
	IF colour !~ '^(#[0-9A-Fa-f]{6}([0-9A-Fa-f]{2})?)?$' THEN
		RAISE EXCEPTION '"%" is not a colour', left(regexp_replace(colour, '[[:cntrl:]]', '', 'g'), 40) USING ERRCODE = '22023', HINT = 'Write it as #1d5fbf.';
	ELSIF address ~ '^([0-9]*|\.\.?)$' OR address ~ '[[:cntrl:]/]' OR octet_length(address) > 255 THEN
		RAISE EXCEPTION 'a calendar cannot have this address' USING ERRCODE = '22023', CONSTRAINT = 'calendar-collection-location-ok',
			DETAIL = 'It has 1 to 255 bytes, not only digits, is not . or .., and has no slash and no control characters.';
	END IF;
	-- A calendar in the trash loses this address.
	UPDATE sheet.calendar_choice c SET address = NULL FROM sheet.sheet s
		WHERE c.uid = person AND c.address = put_choice.address AND s.sheet_id = c.sheet_id AND (s.trashed_at IS NOT NULL OR NOT s.calendar);
	INSERT INTO sheet.calendar_choice AS c (uid, sheet_id, address, colour) VALUES (person, calendar, address, lower(nullif(left(colour, 7), '')))
		ON CONFLICT ON CONSTRAINT calendar_choice_pkey DO UPDATE SET address = coalesce(excluded.address, c.address),
			colour = CASE WHEN put_choice.colour IS NULL THEN c.colour ELSE excluded.colour END;
EXCEPTION WHEN unique_violation THEN
	RAISE EXCEPTION 'the account has a calendar at this address' USING ERRCODE = '42710', CONSTRAINT = 'resource-must-be-null';
END
$$;
COMMENT ON FUNCTION sheet.put_choice(bigint, bigint, text, text) IS 'Internal: see sheet.choose_calendar().';

CREATE FUNCTION sheet.choose_calendar(sheet_id bigint, colour text, address text DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_choose_calendar';
COMMENT ON FUNCTION sheet.choose_calendar(bigint, text, text, bigint) IS
	'Chooses for the caller''s account the colour of a calendar, as #rrggbb (empty: none), and its address in calendar programs; null: as it '
	'was. 22023: neither a colour nor an address can be that. 42710: another calendar of the account has the address. Viewers.';

CREATE FUNCTION sheet.caldav_find(address text, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_find';
COMMENT ON FUNCTION sheet.caldav_find(text, bigint) IS
	'The calendar to which the caller''s account has given an address; null: there is none. Who may read it is not asked.';

CREATE FUNCTION sheet.caldav_email(as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_email';
COMMENT ON FUNCTION sheet.caldav_email(bigint) IS 'The e-mail address of the caller''s account; null: it has none.';

CREATE FUNCTION sheet.ics_zone(data text) RETURNS text
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_ics_zone';
COMMENT ON FUNCTION sheet.ics_zone(text) IS
	'Internal: the name of the time zone that an iCalendar text has. 22023: it has not exactly one, or one that is not known.';

CREATE FUNCTION sheet.caldav_make(address text, name text DEFAULT NULL, zone text DEFAULT NULL, colour text DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	id bigint;
	known boolean;
	usual text;
BEGIN
	SELECT bool_or(caldav_make.address IN (c.address, c.sheet_id::text)), (array_agg(c.zone ORDER BY c.sheet_id DESC) FILTER (WHERE c.role = 'owner'))[1]
		INTO known, usual FROM sheet.calendars(as_uid) c;
	IF address IS NULL THEN
		RAISE EXCEPTION 'the address must not be null' USING ERRCODE = '22004';
	ELSIF known THEN
		RAISE EXCEPTION 'the account has a calendar at this address' USING ERRCODE = '42710', CONSTRAINT = 'resource-must-be-null';
	END IF;
	zone := coalesce(CASE WHEN zone ~ 'BEGIN:' THEN sheet.ics_zone(zone) ELSE zone END, usual, 'UTC');
	id := sheet.create_calendar(coalesce(nullif(btrim(name), ''), address), zone, as_uid);
	PERFORM sheet.choose_calendar(id, colour, address, as_uid);
	RETURN id;
END
$$;
COMMENT ON FUNCTION sheet.caldav_make(text, text, text, text, bigint) IS
	'Creates a calendar for a program of the caller''s account, at the address that it has chosen. zone: a name, or an iCalendar text with '
	'one; null: that of the account''s last calendar. Errors as choose_calendar() and create_calendar(). Returns its id.';

-- ---- when a calendar is busy ----

CREATE FUNCTION sheet.ics_periods(periods tstzmultirange, kind text) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT coalesce(string_agg(format(E'FREEBUSY;FBTYPE=%s:%s/%s\r\n', kind, sheet.until_text(lower(p)), sheet.until_text(upper(p))), '' ORDER BY p), '')
		FROM unnest(periods) p;
	END;
COMMENT ON FUNCTION sheet.ics_periods(tstzmultirange, text) IS 'Internal: periods as lines of a VFREEBUSY.';

-- Events without length occupy nobody, as in read_busy().
CREATE FUNCTION sheet.read_free_busy(calendar bigint, since timestamptz, upto timestamptz) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
DECLARE
	most CONSTANT integer := 20000; -- occurrences
	found bigint;
	busy tstzmultirange;
	tentative tstzmultirange;
BEGIN
	IF NOT isfinite(since) OR NOT isfinite(upto) OR since >= upto THEN
		RAISE EXCEPTION 'the span of time must be finite, and end behind its start' USING ERRCODE = '22023';
	END IF;
	SELECT count(*), coalesce(range_agg(n.at) FILTER (WHERE n.extra !~ E'(^|\n)STATUS:TENTATIVE'), '{}'),
			coalesce(range_agg(n.at) FILTER (WHERE n.extra ~ E'(^|\n)STATUS:TENTATIVE'), '{}') INTO found, busy, tentative
		FROM (SELECT tstzrange(e.starts_at, e.ends_at) * tstzrange(since, upto) AS at, coalesce(o.extra->>e.instance::text, o.extra->>'', '') AS extra
			FROM sheet.read_entries(calendar, since, upto) e LEFT JOIN sheet.calendar_object o ON o.sheet_id = calendar AND o.task_uid = e.task_uid
			WHERE e.ends_at > e.starts_at LIMIT most + 1) n
		WHERE n.extra !~ E'(^|\n)(TRANSP:TRANSPARENT|STATUS:CANCELLED)';
	IF found > most THEN
		RAISE EXCEPTION 'the span of time has more than % occurrences', most USING ERRCODE = '54000', CONSTRAINT = 'number-of-matches-within-limits';
	END IF;
	RETURN sheet.ics_object(NULL, format(E'BEGIN:VFREEBUSY\r\nDTSTAMP:%s\r\nDTSTART:%s\r\nDTEND:%s\r\n%s%sEND:VFREEBUSY\r\n', sheet.until_text(now()),
		sheet.until_text(since), sheet.until_text(upto), sheet.ics_periods(busy, 'BUSY'), sheet.ics_periods(tentative - busy, 'BUSY-TENTATIVE')));
END
$$;
COMMENT ON FUNCTION sheet.read_free_busy(bigint, timestamptz, timestamptz) IS 'Internal: see sheet.caldav_busy().';

CREATE FUNCTION sheet.caldav_busy(sheet_id bigint, "from" timestamptz, "to" timestamptz, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_caldav_busy';
COMMENT ON FUNCTION sheet.caldav_busy(bigint, timestamptz, timestamptz, bigint) IS
	'When a calendar has events, as an iCalendar text with one VFREEBUSY; without those that are cancelled or transparent. 54000: more than '
	'20,000. Viewers.';

SELECT pg_catalog.pg_extension_config_dump('sheet.calendar_choice', '');
