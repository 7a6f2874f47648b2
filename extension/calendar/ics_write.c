/*
 * ics_write.c - SQL functions ics_event() and ics_timezone(): the parts of a calendar object (RFC 5545).
 *
 * libical escapes and folds. Properties and alarms that have no column come from `extra`, which ics_read.c has made.
 */
#include "postgres.h"

#include "calendar/ics.h"
#include "calendar/zone.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "permission/catalog.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_ics_event);
PG_FUNCTION_INFO_V1(sheet_ics_timezone);

/* Parameters of ics_event(). */
enum
{
	ARG_UID,
	ARG_STAMP,
	ARG_INSTANCE,
	ARG_INSTANCE_ZONE, /* null: of whole days */
	ARG_STARTS,
	ARG_LASTS,
	ARG_ZONE, /* null: of whole days */
	ARG_RULE,
	ARG_DATES,
	ARG_EXCEPT,
	ARG_TITLE,
	ARG_PLACE,
	ARG_NOTES,
	ARG_WHO,
	ARG_ANSWERS,
	ARG_REMIND,
	ARG_EXTRA
};

/* ---- times ---- */

static icaltimetype
ics_time(Timestamp local, const char *zone)
{
	icaltimetype time = icaltime_null_time();
	struct pg_tm tm;
	fsec_t fsec;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
	time.year = tm.tm_year;
	time.month = tm.tm_mon;
	time.day = tm.tm_mday;
	time.is_date = zone == NULL;
	if (zone != NULL)
	{
		time.hour = tm.tm_hour;
		time.minute = tm.tm_min;
		time.second = tm.tm_sec;
		if (strcmp(zone, "UTC") == 0)
			time.zone = icaltimezone_get_utc_timezone();
	}
	return time;
}

static void
ics_add(icalcomponent *event, icalproperty *property)
{
	icalcomponent_add_property(event, property);
}

/* A property that has a time. zone NULL: a date. */
static void
ics_add_time(icalcomponent *event, icalproperty *property, const char *zone)
{
	if (zone == NULL)
		icalproperty_add_parameter(property, icalparameter_new_value(ICAL_VALUE_DATE));
	else if (strcmp(zone, "UTC") != 0)
		icalproperty_add_parameter(property, icalparameter_new_tzid(zone));
	ics_add(event, property);
}

static void
ics_add_times(icalcomponent *event, FunctionCallInfo fcinfo, int arg, const char *zone)
{
	Datum *times;
	int count;

	if (PG_ARGISNULL(arg))
		return;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), TIMESTAMPOID, 8, true, TYPALIGN_DOUBLE, &times, NULL, &count);
	for (int i = 0; i < count; i++)
	{
		icaltimetype time = ics_time(DatumGetTimestamp(times[i]), zone);
		struct icaldatetimeperiodtype date = {.time = time, .period = icalperiodtype_null_period()};

		ics_add_time(event, arg == ARG_DATES ? icalproperty_new_rdate(date) : icalproperty_new_exdate(time), zone);
	}
}

static void
ics_add_span(icalcomponent *event, FunctionCallInfo fcinfo, const char *zone)
{
	Timestamp starts = PG_GETARG_TIMESTAMP(ARG_STARTS), ends;
	const Interval *lasts = PG_GETARG_INTERVAL_P(ARG_LASTS);
	int64 length = lasts->time + lasts->day * USECS_PER_DAY;

	if (zone == NULL)
		ends = starts + length;
	else
	{
		pg_tz *tz = zone_find(zone);

		ends = zone_local(zone_time(starts, tz) + length, tz);
	}
	ics_add_time(event, icalproperty_new_dtstart(ics_time(starts, zone)), zone);
	if (length > 0)
		ics_add_time(event, icalproperty_new_dtend(ics_time(ends, zone)), zone);
}

/* ---- persons ---- */

/* The address of an item of the column Who. */
static char *
ics_address(const char *person)
{
	StringInfoData address;

	if (strchr(person, '@') != NULL)
		return psprintf("mailto:%s", person);
	initStringInfo(&address);
	appendStringInfoString(&address, ICS_PERSON);
	for (const unsigned char *c = (const unsigned char *) person; *c != '\0'; c++)
	{
		if (*c > ' ' && *c < 0x7F && strchr("%\"<>\\^`{|}", *c) == NULL)
			appendStringInfoChar(&address, (char) *c);
		else
			appendStringInfo(&address, "%%%02X", *c);
	}
	return address.data;
}

/* The attendee that a client has put for the person; a new one if there is none. */
static icalproperty *
ics_attendee(icalcomponent *event, const char *person)
{
	icalproperty *attendee = icalcomponent_get_first_property(event, ICAL_ATTENDEE_PROPERTY);

	for (; attendee != NULL; attendee = icalcomponent_get_next_property(event, ICAL_ATTENDEE_PROPERTY))
	{
		char *name = ics_person(icalproperty_get_attendee(attendee));

		if (name != NULL && strcmp(name, person) == 0)
			return attendee;
	}
	attendee = icalproperty_new_attendee(ics_address(person));
	icalproperty_add_parameter(attendee, icalparameter_new_cn(person));
	ics_add(event, attendee);
	return attendee;
}

static bool
ics_is_named(Datum *persons, int count, const char *person)
{
	for (int i = 0; i < count; i++)
	{
		if (strcmp(TextDatumGetCString(persons[i]), person) == 0)
			return true;
	}
	return false;
}

/* Attendees that the column Who does not name any more. */
static void
ics_remove_attendees(icalcomponent *event, Datum *persons, int count)
{
	icalproperty *next = icalcomponent_get_first_property(event, ICAL_ATTENDEE_PROPERTY);

	while (next != NULL)
	{
		icalproperty *attendee = next;
		char *person = ics_person(icalproperty_get_attendee(attendee));

		next = icalcomponent_get_next_property(event, ICAL_ATTENDEE_PROPERTY);
		if (person == NULL || ics_is_named(persons, count, person))
			continue;
		icalcomponent_remove_property(event, attendee);
		icalproperty_free(attendee);
	}
}

/* answers: of each person, null of those that have no account. */
static void
ics_add_persons(icalcomponent *event, FunctionCallInfo fcinfo)
{
	Datum *persons = NULL, *answers;
	bool *unknown;
	int count = 0, answer_count = 0;

	if (!PG_ARGISNULL(ARG_WHO))
	{
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(ARG_WHO), TEXTOID, -1, false, TYPALIGN_INT, &persons, NULL, &count);
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(ARG_ANSWERS), TEXTOID, -1, false, TYPALIGN_INT, &answers, &unknown,
						  &answer_count);
	}
	ics_remove_attendees(event, persons, count);
	for (int i = 0; i < count && i < answer_count; i++)
	{
		icalproperty *attendee = ics_attendee(event, TextDatumGetCString(persons[i]));
		char *answer = unknown[i] ? NULL : TextDatumGetCString(answers[i]);
		icalparameter_partstat partstat = ICAL_PARTSTAT_NEEDSACTION;

		if (answer == NULL)
			continue;
		if (strcmp(answer, "accepted") == 0)
			partstat = ICAL_PARTSTAT_ACCEPTED;
		else if (strcmp(answer, "declined") == 0)
			partstat = ICAL_PARTSTAT_DECLINED;
		else if (strcmp(answer, "tentative") == 0)
			partstat = ICAL_PARTSTAT_TENTATIVE;
		icalproperty_set_parameter(attendee, icalparameter_new_partstat(partstat));
	}
}

/* ---- alarms ---- */

/* The client's own alarm at the time of the column Reminder; a plain one if there is none. */
static void
ics_add_alarm(icalcomponent *event, FunctionCallInfo fcinfo)
{
	icalproperty *trigger = NULL;
	int seconds, wanted;
	icalcomponent *alarm = ics_alarm(event, &trigger, &seconds);
	const Interval *remind;
	struct icaltriggertype at = {.time = icaltime_null_time()};

	if (PG_ARGISNULL(ARG_REMIND))
	{
		if (alarm != NULL)
		{
			icalcomponent_remove_component(event, alarm);
			icalcomponent_free(alarm);
		}
		return;
	}
	remind = PG_GETARG_INTERVAL_P(ARG_REMIND);
	wanted = (int) ((remind->time + remind->day * USECS_PER_DAY) / USECS_PER_SEC);
	if (alarm != NULL && seconds == wanted)
		return;
	at.duration = icaldurationtype_from_int(-wanted);
	if (alarm != NULL)
	{
		icalproperty_set_trigger(trigger, at);
		return;
	}
	alarm = icalcomponent_new_valarm();
	icalcomponent_add_property(alarm, icalproperty_new_action(ICAL_ACTION_DISPLAY));
	icalcomponent_add_property(
		alarm,
		icalproperty_new_description(PG_ARGISNULL(ARG_TITLE) ? "" : TextDatumGetCString(PG_GETARG_DATUM(ARG_TITLE))));
	icalcomponent_add_property(alarm, icalproperty_new_trigger(at));
	icalcomponent_add_component(event, alarm);
}

/* ---- the event ---- */

/* The text of a parameter; NULL: it is null or empty. */
static char *
ics_text(FunctionCallInfo fcinfo, int arg)
{
	char *value = PG_ARGISNULL(arg) ? "" : TextDatumGetCString(PG_GETARG_DATUM(arg));

	return value[0] != '\0' ? value : NULL;
}

static void
ics_fill(icalcomponent *event, FunctionCallInfo fcinfo)
{
	char *zone = ics_text(fcinfo, ARG_ZONE), *instance_zone = ics_text(fcinfo, ARG_INSTANCE_ZONE), *value;

	ics_add(event, icalproperty_new_uid(text_to_cstring(PG_GETARG_TEXT_PP(ARG_UID))));
	ics_add(event, icalproperty_new_dtstamp(ics_time(PG_GETARG_TIMESTAMPTZ(ARG_STAMP), "UTC")));
	if (!PG_ARGISNULL(ARG_INSTANCE))
		ics_add_time(event, icalproperty_new_recurrenceid(ics_time(PG_GETARG_TIMESTAMP(ARG_INSTANCE), instance_zone)),
					 instance_zone);
	ics_add_span(event, fcinfo, zone);
	if ((value = ics_text(fcinfo, ARG_RULE)) != NULL)
	{
		struct icalrecurrencetype rule = icalrecurrencetype_from_string(value);

		if (rule.freq != ICAL_NO_RECURRENCE)
			ics_add(event, icalproperty_new_rrule(rule));
	}
	ics_add_times(event, fcinfo, ARG_DATES, zone);
	ics_add_times(event, fcinfo, ARG_EXCEPT, zone);
	if ((value = ics_text(fcinfo, ARG_TITLE)) != NULL)
		ics_add(event, icalproperty_new_summary(value));
	if ((value = ics_text(fcinfo, ARG_PLACE)) != NULL)
		ics_add(event, icalproperty_new_location(value));
	if ((value = ics_text(fcinfo, ARG_NOTES)) != NULL)
		ics_add(event, icalproperty_new_description(value));
	ics_add_persons(event, fcinfo);
	ics_add_alarm(event, fcinfo);
}

/* The text of a component, which is freed. */
static text *
ics_component_text(icalcomponent *component)
{
	char *string = icalcomponent_as_ical_string_r(component);
	text *result = cstring_to_text(string);

	icalmemory_free_buffer(string);
	return result;
}

/* ics_event(uid, stamp, instance, instance_zone, starts, lasts, zone, rule, dates, except, title, place, notes, who,
 * answers, remind, extra) */
Datum
sheet_ics_event(PG_FUNCTION_ARGS)
{
	icalcomponent *volatile event = NULL;
	char *extra = ics_text(fcinfo, ARG_EXTRA);
	text *result = NULL;

	catalog_require_arg(fcinfo, ARG_UID, "UID");
	catalog_require_arg(fcinfo, ARG_STAMP, "stamp");
	catalog_require_arg(fcinfo, ARG_STARTS, "start");
	catalog_require_arg(fcinfo, ARG_LASTS, "length");
	if (!PG_ARGISNULL(ARG_WHO))
		catalog_require_arg(fcinfo, ARG_ANSWERS, "answers");
	ics_begin();
	PG_TRY();
	{
		if (extra != NULL)
			event = icalparser_parse_string(extra);
		if (event == NULL)
			event = icalcomponent_new_vevent();
		ics_fill(event, fcinfo);
		result = ics_component_text(event);
	}
	PG_FINALLY();
	{
		if (event != NULL)
			icalcomponent_free(event);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(result);
}

/* ---- zones ---- */

/* The last time at which a part of a VTIMEZONE begins, as YYYYMMDD; 99999999: it begins for ever. */
static int
ics_last_onset(icalcomponent *part)
{
	int last = 0;

	for (icalproperty *p = icalcomponent_get_first_property(part, ICAL_ANY_PROPERTY); p != NULL;
		 p = icalcomponent_get_next_property(part, ICAL_ANY_PROPERTY))
	{
		icaltimetype time = icaltime_null_time();

		if (icalproperty_isa(p) == ICAL_DTSTART_PROPERTY)
			time = icalproperty_get_dtstart(p);
		else if (icalproperty_isa(p) == ICAL_RDATE_PROPERTY)
			time = icalproperty_get_rdate(p).time;
		else if (icalproperty_isa(p) == ICAL_RRULE_PROPERTY)
		{
			time = icalproperty_get_rrule(p).until;
			if (icaltime_is_null_time(time))
				return 99999999;
		}
		last = Max(last, time.year * 10000 + time.month * 100 + time.day);
	}
	return last;
}

/* Removes parts that ended before a day, but for the last of them, which may still hold on it. */
static void
ics_shorten_zone(icalcomponent *zone, int since)
{
	icalcomponent *part, *next, *last = NULL;

	for (part = icalcomponent_get_first_component(zone, ICAL_ANY_COMPONENT); part != NULL;
		 part = icalcomponent_get_next_component(zone, ICAL_ANY_COMPONENT))
	{
		if (ics_last_onset(part) < since && (last == NULL || ics_last_onset(part) > ics_last_onset(last)))
			last = part;
	}
	for (part = icalcomponent_get_first_component(zone, ICAL_ANY_COMPONENT); part != NULL; part = next)
	{
		next = icalcomponent_get_next_component(zone, ICAL_ANY_COMPONENT);
		if (part == last || ics_last_onset(part) >= since)
			continue;
		icalcomponent_remove_component(zone, part);
		icalcomponent_free(part);
	}
}

/* ics_timezone(zone, since): the component; empty: none is needed. */
Datum
sheet_ics_timezone(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Timestamp since = PG_GETARG_TIMESTAMP(1);
	icaltimezone *zone;
	icalcomponent *component;
	icalproperty *tzid;
	text *result;

	ics_begin();
	zone = zone_exists(name) ? icaltimezone_get_builtin_timezone(name) : NULL;
	component = zone != NULL ? icaltimezone_get_component(zone) : NULL;
	if (component == NULL || strcmp(name, "UTC") == 0)
		PG_RETURN_TEXT_P(cstring_to_text(""));
	/* libical's TZID has a prefix of its own */
	component = icalcomponent_new_clone(component);
	tzid = icalcomponent_get_first_property(component, ICAL_TZID_PROPERTY);
	if (tzid != NULL)
		icalproperty_set_tzid(tzid, name);
	if (!TIMESTAMP_NOT_FINITE(since))
	{
		icaltimetype day = ics_time(since, NULL);

		ics_shorten_zone(component, day.year * 10000 + day.month * 100 + day.day);
	}
	result = ics_component_text(component);
	icalcomponent_free(component);
	PG_RETURN_TEXT_P(result);
}
