/*
 * ics_read.c - SQL function ics_read(): the rows of a calendar that a calendar object means; ics_zone(): the time zone
 * of an iCalendar text.
 *
 * libical reads the text. What a row has no column for stays in `extra`, an event of its own with these properties and
 * alarms, which ics_write.c gives back. Times become local times of the event's zone.
 */
#include "postgres.h"

#include "calendar/ics.h"
#include "calendar/zone.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_ics_read);
PG_FUNCTION_INFO_V1(sheet_ics_zone);

/* An event while it is read. */
typedef struct IcsEvent
{
	icalcomponent *event;
	icalcomponent *calendar;
	const char *calendar_zone; /* of times without a zone */
	const char *zone;
	pg_tz *tz;
	bool all_day;
	Timestamp starts;
	StringInfoData cells;
} IcsEvent;

void
ics_begin(void)
{
	icalerror_set_errors_are_fatal(false);
	/* keep properties and parameters that libical does not know */
	ical_set_unknown_token_handling_setting(ICAL_ASSUME_IANA_TOKEN);
}

/* ---- zones ---- */

/* The name in PostgreSQL's zones for a TZID: itself, what X-LIC-LOCATION says, or the end of a path that ends with it.
 */
static const char *
ics_zone_name(icalcomponent *calendar, const char *tzid)
{
	icaltimezone *zone = icalcomponent_get_timezone(calendar, tzid);
	const char *location = zone != NULL ? icaltimezone_get_location(zone) : NULL;

	if (location != NULL && zone_exists(location))
		return pstrdup(location);
	for (const char *name = tzid; name != NULL; name = strchr(name, '/'))
	{
		name += *name == '/';
		if (zone_exists(name))
			return pstrdup(name);
	}
	ICS_REFUSE("valid-calendar-data", "time zone \"%.100s\" is not known", tzid);
	return NULL;
}

static const char *
ics_zone_of(IcsEvent *e, icalproperty *property, icaltimetype time)
{
	icalparameter *tzid = icalproperty_get_first_parameter(property, ICAL_TZID_PARAMETER);

	if (icaltime_is_utc(time))
		return "UTC";
	return tzid != NULL ? ics_zone_name(e->calendar, icalparameter_get_tzid(tzid)) : e->calendar_zone;
}

/* ---- times ---- */

static Timestamp
ics_timestamp(icaltimetype time, const char *what)
{
	struct pg_tm tm = {0};
	Timestamp local;

	tm.tm_year = time.year;
	tm.tm_mon = time.month;
	tm.tm_mday = time.day;
	if (!time.is_date)
	{
		tm.tm_hour = time.hour;
		tm.tm_min = time.minute;
		tm.tm_sec = Min(time.second, 59);
	}
	if (icaltime_is_null_time(time) || time.year < 1 || time.month < 1 || time.month > 12 || time.day < 1 ||
		time.day > icaltime_days_in_month(time.month, time.year) || time.hour > 23 || time.minute > 59 ||
		tm2timestamp(&tm, 0, NULL, &local) != 0)
		ICS_REFUSE("valid-calendar-data", "%s is not a date or a time", what);
	return local;
}

/* A time in the zone of the event. */
static Timestamp
ics_local(IcsEvent *e, icalproperty *property, icaltimetype time, const char *what)
{
	Timestamp local = ics_timestamp(time, what);
	const char *zone;

	if (time.is_date)
		return local;
	zone = ics_zone_of(e, property, time);
	return strcmp(zone, e->zone) == 0 ? local : zone_local(zone_time(local, zone_find(zone)), e->tz);
}

/* As a cell has it: seconds only where there are some. */
static char *
ics_time_text(Timestamp local, bool is_date)
{
	struct pg_tm tm;
	fsec_t fsec;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0 || tm.tm_year < 1 || tm.tm_year > 9999)
		ICS_REFUSE("valid-calendar-data", "a time is out of range");
	if (is_date)
		return psprintf("%04d-%02d-%02d", tm.tm_year, tm.tm_mon, tm.tm_mday);
	if (tm.tm_sec == 0)
		return psprintf("%04d-%02d-%02d %02d:%02d", tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min);
	return psprintf("%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min,
					tm.tm_sec);
}

/* ---- cells ---- */

static void
ics_put_cell(IcsEvent *e, const char *name, const char *content)
{
	appendStringInfo(&e->cells, "%s\"%s\":", e->cells.len > 1 ? "," : "", name);
	escape_json(&e->cells, content != NULL ? content : "");
}

/* A length as a cell has it. */
static char *
ics_length_text(int64 seconds)
{
	if (seconds % 86400 == 0 && seconds > 0)
		return psprintf(INT64_FORMAT " days", seconds / 86400);
	return seconds % 60 == 0 ? psprintf(INT64_FORMAT " min", seconds / 60) : psprintf(INT64_FORMAT " sec", seconds);
}

static icalproperty *
ics_only(IcsEvent *e, icalproperty_kind kind, const char *name)
{
	icalproperty *property = icalcomponent_get_first_property(e->event, kind);

	if (property != NULL && icalcomponent_get_next_property(e->event, kind) != NULL)
		ICS_REFUSE("valid-calendar-data", "an event has more than one %s", name);
	return property;
}

static void
ics_read_start(IcsEvent *e)
{
	icalproperty *property = ics_only(e, ICAL_DTSTART_PROPERTY, "DTSTART");
	icaltimetype time;

	if (property == NULL)
		ICS_REFUSE("valid-calendar-data", "an event has no DTSTART");
	time = icalproperty_get_dtstart(property);
	e->all_day = time.is_date;
	e->zone = e->all_day ? e->calendar_zone : ics_zone_of(e, property, time);
	e->tz = zone_find(e->zone);
	e->starts = ics_timestamp(time, "DTSTART");
	ics_put_cell(e, "start", ics_time_text(e->starts, e->all_day));
	ics_put_cell(e, "time zone", strcmp(e->zone, e->calendar_zone) == 0 ? "" : e->zone);
}

/* The last day, or the time of day, or a date and time; a length if clocks show that time twice. */
static void
ics_put_end(IcsEvent *e, TimestampTz start, TimestampTz end)
{
	Timestamp local;

	if (e->all_day)
	{
		ics_put_cell(e, "end", end - start == USECS_PER_DAY ? "" : ics_time_text(end - USECS_PER_DAY, true));
		return;
	}
	local = zone_local(end, e->tz);
	if (end == start)
		ics_put_cell(e, "end", "");
	else if (zone_time(local, e->tz) != end)
		ics_put_cell(e, "end", ics_length_text((end - start) / USECS_PER_SEC));
	else if (local / USECS_PER_DAY == e->starts / USECS_PER_DAY && local > e->starts && e->starts >= 0)
		ics_put_cell(e, "end", ics_time_text(local, false) + strlen("2000-01-01 "));
	else
		ics_put_cell(e, "end", ics_time_text(local, false));
}

static void
ics_read_end(IcsEvent *e)
{
	icalproperty *ends = ics_only(e, ICAL_DTEND_PROPERTY, "DTEND");
	icalproperty *lasts = ics_only(e, ICAL_DURATION_PROPERTY, "DURATION");
	TimestampTz start = e->all_day ? e->starts : zone_time(e->starts, e->tz), end;

	if (ends != NULL)
	{
		icaltimetype time = icalproperty_get_dtend(ends);

		if ((time.is_date != 0) != e->all_day)
			ICS_REFUSE("valid-calendar-data", "DTSTART and DTEND must both be dates, or both have a time of day");
		end = ics_timestamp(time, "DTEND");
		if (!e->all_day)
			end = zone_time(end, zone_find(ics_zone_of(e, ends, time)));
	}
	else if (lasts != NULL)
		end = start + (int64) icaldurationtype_as_int(icalproperty_get_duration(lasts)) * USECS_PER_SEC;
	else
		end = start + (e->all_day ? USECS_PER_DAY : 0);
	if (end < start || (e->all_day && (end - start < USECS_PER_DAY || (end - start) % USECS_PER_DAY != 0)))
		ICS_REFUSE("valid-calendar-data", "the end of an event is not behind its start");
	ics_put_end(e, start, end);
}

/* The values of RDATE or EXDATE, each of which libical has made a property. */
static void
ics_read_times(IcsEvent *e, icalproperty_kind kind, const char *name, const char *cell)
{
	StringInfoData times;
	icalproperty *property = icalcomponent_get_first_property(e->event, kind);

	initStringInfo(&times);
	for (; property != NULL; property = icalcomponent_get_next_property(e->event, kind))
	{
		icaltimetype time;

		if (kind == ICAL_RDATE_PROPERTY)
		{
			struct icaldatetimeperiodtype value = icalproperty_get_rdate(property);

			if (icaltime_is_null_time(value.time))
				ICS_REFUSE("valid-calendar-data", "RDATE with periods is not supported");
			time = value.time;
		}
		else
			time = icalproperty_get_exdate(property);
		appendStringInfo(&times, "%s%s", times.len > 0 ? ", " : "",
						 ics_time_text(ics_local(e, property, time, name), time.is_date || e->all_day));
	}
	ics_put_cell(e, cell, times.data);
}

static void
ics_read_rule(IcsEvent *e)
{
	icalproperty *property = ics_only(e, ICAL_RRULE_PROPERTY, "RRULE");
	char *rule;

	if (icalcomponent_get_first_property(e->event, ICAL_EXRULE_PROPERTY) != NULL)
		ICS_REFUSE("valid-calendar-data", "EXRULE is not supported");
	if (property == NULL)
	{
		ics_put_cell(e, "repeats", "");
		return;
	}
	rule = icalproperty_get_value_as_string_r(property);
	ics_put_cell(e, "repeats", rule);
	icalmemory_free_buffer(rule);
}

/* The property of an alarm that is before the start by a length of time; NULL: the alarm is another one. */
static icalproperty *
ics_trigger(icalcomponent *alarm, int *seconds)
{
	icalproperty *trigger = icalcomponent_get_first_property(alarm, ICAL_TRIGGER_PROPERTY);
	struct icaltriggertype value;
	icalparameter *related;

	if (trigger == NULL)
		return NULL;
	value = icalproperty_get_trigger(trigger);
	related = icalproperty_get_first_parameter(trigger, ICAL_RELATED_PARAMETER);
	if (!icaltime_is_null_time(value.time) || icaldurationtype_is_bad_duration(value.duration) ||
		(related != NULL && icalparameter_get_related(related) == ICAL_RELATED_END))
		return NULL;
	*seconds = -icaldurationtype_as_int(value.duration);
	return *seconds >= 0 && *seconds <= 1000 * 86400 ? trigger : NULL;
}

icalcomponent *
ics_alarm(icalcomponent *event, icalproperty **trigger, int *seconds)
{
	icalcomponent *alarm = icalcomponent_get_first_component(event, ICAL_VALARM_COMPONENT);

	while (alarm != NULL && (*trigger = ics_trigger(alarm, seconds)) == NULL)
		alarm = icalcomponent_get_next_component(event, ICAL_VALARM_COMPONENT);
	return alarm;
}

static void
ics_read_alarm(IcsEvent *e)
{
	icalproperty *trigger;
	int seconds;

	ics_put_cell(e, "reminder", ics_alarm(e->event, &trigger, &seconds) != NULL ? ics_length_text(seconds) : "");
}

/* ---- what has no column ---- */

static bool
ics_has_column(icalproperty_kind kind)
{
	switch (kind)
	{
		case ICAL_UID_PROPERTY:
		case ICAL_DTSTAMP_PROPERTY:
		case ICAL_DTSTART_PROPERTY:
		case ICAL_DTEND_PROPERTY:
		case ICAL_DURATION_PROPERTY:
		case ICAL_RECURRENCEID_PROPERTY:
		case ICAL_RRULE_PROPERTY:
		case ICAL_RDATE_PROPERTY:
		case ICAL_EXDATE_PROPERTY:
		case ICAL_SUMMARY_PROPERTY:
		case ICAL_LOCATION_PROPERTY:
		case ICAL_DESCRIPTION_PROPERTY:
		case ICAL_XLICERROR_PROPERTY:
			return true;
		default:
			return false;
	}
}

/* Removes from the event what its row has; the rest is kept. NULL: nothing is left. */
static char *
ics_take_extra(icalcomponent *event)
{
	icalproperty *next = icalcomponent_get_first_property(event, ICAL_ANY_PROPERTY);
	char *text, *copy;

	while (next != NULL)
	{
		icalproperty *property = next;

		next = icalcomponent_get_next_property(event, ICAL_ANY_PROPERTY);
		if (!ics_has_column(icalproperty_isa(property)))
			continue;
		icalcomponent_remove_property(event, property);
		icalproperty_free(property);
	}
	if (icalcomponent_count_properties(event, ICAL_ANY_PROPERTY) == 0 &&
		icalcomponent_count_components(event, ICAL_ANY_COMPONENT) == 0)
		return NULL;
	text = icalcomponent_as_ical_string_r(event);
	copy = pstrdup(text);
	icalmemory_free_buffer(text);
	return copy;
}

/* ---- the object ---- */

static const char *
ics_uid(icalcomponent *event)
{
	const char *uid = icalcomponent_get_uid(event);

	if (uid == NULL || uid[0] == '\0' || strlen(uid) > 255 || uid[0] == ' ' || uid[strlen(uid) - 1] == ' ')
		ICS_REFUSE("valid-calendar-data", "an event needs a UID of 1 to 255 bytes");
	for (const char *c = uid; *c != '\0'; c++)
	{
		if ((unsigned char) *c < ' ' || *c == 0x7F)
			ICS_REFUSE("valid-calendar-data", "a UID has no control characters");
	}
	return uid;
}

static void
ics_read_event(IcsEvent *e, icalcomponent *master, ReturnSetInfo *result)
{
	icalproperty *replaces = ics_only(e, ICAL_RECURRENCEID_PROPERTY, "RECURRENCE-ID");
	Datum values[6];
	bool nulls[6] = {false};
	char *extra, *answers = ics_answers(e->event);

	initStringInfo(&e->cells);
	appendStringInfoChar(&e->cells, '{');
	values[0] = CStringGetTextDatum(ics_uid(e->event));
	ics_put_cell(e, "title", icalcomponent_get_summary(e->event));
	ics_put_cell(e, "place", icalcomponent_get_location(e->event));
	ics_put_cell(e, "notes", icalcomponent_get_description(e->event));
	ics_read_start(e);
	ics_read_end(e);
	ics_read_rule(e);
	ics_read_times(e, ICAL_RDATE_PROPERTY, "RDATE", "dates");
	ics_read_times(e, ICAL_EXDATE_PROPERTY, "EXDATE", "except");
	ics_put_cell(e, "who", ics_persons(e->event));
	ics_read_alarm(e);
	nulls[1] = replaces == NULL;
	if (replaces != NULL && icalproperty_get_first_parameter(replaces, ICAL_RANGE_PARAMETER) != NULL)
		ICS_REFUSE("valid-calendar-data", "RECURRENCE-ID with RANGE is not supported");
	if (replaces != NULL)
	{
		IcsEvent of = *e; /* the time is one of the task's zone */
		icalproperty *start = master != NULL ? icalcomponent_get_first_property(master, ICAL_DTSTART_PROPERTY) : NULL;

		if (start != NULL && !icalproperty_get_dtstart(start).is_date)
		{
			of.zone = ics_zone_of(e, start, icalproperty_get_dtstart(start));
			of.tz = zone_find(of.zone);
		}
		values[1] =
			TimestampGetDatum(ics_local(&of, replaces, icalproperty_get_recurrenceid(replaces), "RECURRENCE-ID"));
	}
	appendStringInfoChar(&e->cells, '}');
	values[2] = DirectFunctionCall1(jsonb_in, CStringGetDatum(e->cells.data));
	extra = ics_take_extra(e->event);
	nulls[3] = extra == NULL;
	values[3] = extra != NULL ? CStringGetTextDatum(extra) : (Datum) 0;
	values[4] = DirectFunctionCall1(jsonb_in, CStringGetDatum(answers));
	values[5] = CStringGetTextDatum(ics_rest(e->event));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * libical notes what it cannot read as properties. Those without a value are as good as absent, and those of a name
 * that it does not know are passed over.
 */
static void
ics_check_errors(icalcomponent *component, int depth)
{
	icalproperty *error = icalcomponent_get_first_property(component, ICAL_XLICERROR_PROPERTY);

	if (depth > ICS_MAX_DEPTH)
		ICS_REFUSE("valid-calendar-data", "the calendar object has more than %d levels of components", ICS_MAX_DEPTH);
	for (; error != NULL; error = icalcomponent_get_next_property(component, ICAL_XLICERROR_PROPERTY))
	{
		const char *text = icalproperty_get_xlicerror(error);

		if (text == NULL ||
			(strncmp(text, "No value for ", 13) != 0 && strncmp(text, "Parse error in property name", 28) != 0))
			ICS_REFUSE("valid-calendar-data", "the calendar object is not understood: %.200s",
					   text != NULL ? text : "");
	}
	for (icalcomponent *inner = icalcomponent_get_first_component(component, ICAL_ANY_COMPONENT); inner != NULL;
		 inner = icalcomponent_get_next_component(component, ICAL_ANY_COMPONENT))
		ics_check_errors(inner, depth + 1);
}

/* The event that is the task itself; NULL: the object has changed occurrences only. */
static icalcomponent *
ics_check_components(icalcomponent *calendar)
{
	icalcomponent *master = NULL, *first = NULL;
	int count = 0;

	for (icalcomponent *inner = icalcomponent_get_first_component(calendar, ICAL_ANY_COMPONENT); inner != NULL;
		 inner = icalcomponent_get_next_component(calendar, ICAL_ANY_COMPONENT))
	{
		if (icalcomponent_isa(inner) == ICAL_VTIMEZONE_COMPONENT)
			continue;
		if (icalcomponent_isa(inner) != ICAL_VEVENT_COMPONENT)
			ICS_REFUSE("supported-calendar-component", "a calendar has events (VEVENT) only");
		if (first == NULL)
			first = inner;
		if (strcmp(ics_uid(inner), ics_uid(first)) != 0)
			ICS_REFUSE("valid-calendar-object-resource", "the events of a calendar object have one UID");
		if (++count > ICS_MAX_EVENTS)
			ICS_REFUSE("max-resource-size", "a calendar object has at most %d events", ICS_MAX_EVENTS);
		if (icalcomponent_get_first_property(inner, ICAL_RECURRENCEID_PROPERTY) != NULL)
			continue;
		if (master != NULL)
			ICS_REFUSE("valid-calendar-object-resource", "a calendar object has one event without RECURRENCE-ID");
		master = inner;
	}
	if (first == NULL)
		ICS_REFUSE("valid-calendar-object-resource", "the calendar object has no event");
	return master;
}

static void
ics_check_text(const char *text, size_t len)
{
	if (len > ICS_MAX_BYTES)
		ICS_REFUSE("max-resource-size", "a calendar object has at most %d bytes", ICS_MAX_BYTES);
	for (size_t i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if ((c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7F)
			ICS_REFUSE("valid-calendar-data", "the calendar object has control characters");
	}
}

/* ics_read(data, zone) */
Datum
sheet_ics_read(PG_FUNCTION_ARGS)
{
	char *data = text_to_cstring(PG_GETARG_TEXT_PP(0)), *zone = text_to_cstring(PG_GETARG_TEXT_PP(1));
	icalcomponent *volatile calendar = NULL;

	ics_check_text(data, strlen(data));
	InitMaterializedSRF(fcinfo, 0);
	ics_begin();
	PG_TRY();
	{
		icalcomponent *master, *event;

		calendar = icalparser_parse_string(data);
		if (calendar == NULL || icalcomponent_isa(calendar) != ICAL_VCALENDAR_COMPONENT)
			ICS_REFUSE("valid-calendar-data", "the calendar object is not one VCALENDAR");
		ics_check_errors(calendar, 1);
		if (icalcomponent_get_first_property(calendar, ICAL_METHOD_PROPERTY) != NULL)
			ICS_REFUSE("valid-calendar-object-resource", "a calendar object has no METHOD");
		master = ics_check_components(calendar);
		/* the task last: the others need its start, which is taken away */
		for (int pass = 0; pass < 2; pass++)
		{
			for (event = icalcomponent_get_first_component(calendar, ICAL_VEVENT_COMPONENT); event != NULL;
				 event = icalcomponent_get_next_component(calendar, ICAL_VEVENT_COMPONENT))
			{
				IcsEvent e = {.event = event, .calendar = calendar, .calendar_zone = zone};

				CHECK_FOR_INTERRUPTS();
				if ((event == master) == (pass == 1))
					ics_read_event(&e, master, (ReturnSetInfo *) fcinfo->resultinfo);
			}
		}
	}
	PG_FINALLY();
	{
		if (calendar != NULL)
			icalcomponent_free(calendar);
	}
	PG_END_TRY();
	return (Datum) 0;
}

/* ics_zone(data) */
Datum
sheet_ics_zone(PG_FUNCTION_ARGS)
{
	char *data = text_to_cstring(PG_GETARG_TEXT_PP(0));
	icalcomponent *volatile calendar = NULL;
	const char *name = NULL;

	ics_check_text(data, strlen(data));
	ics_begin();
	PG_TRY();
	{
		icalcomponent *zone;
		icalproperty *tzid;

		calendar = icalparser_parse_string(data);
		if (calendar == NULL || icalcomponent_isa(calendar) != ICAL_VCALENDAR_COMPONENT ||
			icalcomponent_count_components(calendar, ICAL_ANY_COMPONENT) != 1 ||
			(zone = icalcomponent_get_first_component(calendar, ICAL_VTIMEZONE_COMPONENT)) == NULL ||
			(tzid = icalcomponent_get_first_property(zone, ICAL_TZID_PROPERTY)) == NULL)
			ICS_REFUSE("valid-calendar-data", "the time zone is not one VCALENDAR with one VTIMEZONE");
		name = ics_zone_name(calendar, icalproperty_get_tzid(tzid));
	}
	PG_FINALLY();
	{
		if (calendar != NULL)
			icalcomponent_free(calendar);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(cstring_to_text(name));
}
