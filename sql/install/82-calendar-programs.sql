-- Calendars: what programs and the page need besides sheet.tasks() and sheet.calendar_entries().

-- Few sheets are calendars: an account with many sheets finds those among them by this.
CREATE INDEX sheet_calendar_idx ON sheet.sheet (sheet_id) WHERE calendar;

CREATE FUNCTION sheet.calendars(as_uid bigint DEFAULT NULL)
	RETURNS TABLE (sheet_id bigint, name text, owner text, role text, zone text, token bigint, address text, colour text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_calendars';
COMMENT ON FUNCTION sheet.calendars(bigint) IS
	'The calendars in the list of sheets of the caller''s account, by their names; at most 1000. zone: in which times without a zone of '
	'their own are meant. token: grows with each change. address: its name in calendar programs. colour: as the account has chosen it.';

CREATE FUNCTION sheet.calendar_state(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS TABLE (seq bigint, expanded_to timestamptz)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_calendar_state';
COMMENT ON FUNCTION sheet.calendar_state(bigint, bigint) IS
	'How far agendas follow a calendar: the edits up to seq are in them, and all occurrences before expanded_to. Viewers.';

CREATE FUNCTION sheet.task_info(sheet_id bigint, task_uid text, instance timestamp DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (starts timestamp, all_day boolean, zone text, repeats boolean, cells jsonb, own_cells jsonb, problem text, persons jsonb)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_task_info';
COMMENT ON FUNCTION sheet.task_info(bigint, text, timestamp, bigint) IS
	'A task, as tasks() has it. own_cells: of the row that replaces the occurrence `instance`. persons: a list of {name, answer} of that '
	'occurrence, or of the task. No row: there is no such task. Viewers.';
