/*
 * ics_persons.c - the attendees of an event, what they answer, and what they cannot change.
 */
#include "postgres.h"

#include "calendar/ics.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/json.h"

char *
ics_person(const char *address)
{
	if (address == NULL)
		return NULL;
	if (pg_strncasecmp(address, ICS_PERSON, strlen(ICS_PERSON)) == 0)
	{
		const char *from = address + strlen(ICS_PERSON);
		char *name = palloc(strlen(from) + 1), *to = name;

		for (; *from != '\0'; from++)
		{
			unsigned int byte;

			if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1 && from[1] != '\0' && from[2] != '\0' &&
				byte >= ' ')
			{
				*to++ = (char) byte;
				from += 2;
			}
			else
				*to++ = *from;
		}
		*to = '\0';
		return pg_verify_mbstr(GetDatabaseEncoding(), name, strlen(name), true) ? name : NULL;
	}
	if (pg_strncasecmp(address, "mailto:", 7) == 0 && strchr(address, '@') != NULL)
		return pstrdup(address + 7);
	return NULL;
}

/* The person of an attendee, if the column Who can name it; NULL: it cannot. */
static char *
ics_named(icalproperty *attendee)
{
	char *person = ics_person(icalproperty_get_attendee(attendee));

	return person != NULL && strpbrk(person, "\n\r") == NULL ? person : NULL;
}

/* A name as it stands in the column Who: in quotes if it has what separates names (sheet.person_item()). */
static void
ics_put_name(StringInfo who, const char *name)
{
	bool quoted = strpbrk(name, ",;\"") != NULL;

	if (quoted)
		appendStringInfoChar(who, '"');
	for (const char *c = name; *c != '\0'; c++)
	{
		if (quoted && *c == '"')
			appendStringInfoChar(who, '"');
		appendStringInfoChar(who, *c);
	}
	if (quoted)
		appendStringInfoChar(who, '"');
}

char *
ics_persons(icalcomponent *event)
{
	StringInfoData who;
	icalproperty *attendee = icalcomponent_get_first_property(event, ICAL_ATTENDEE_PROPERTY);

	initStringInfo(&who);
	for (; attendee != NULL; attendee = icalcomponent_get_next_property(event, ICAL_ATTENDEE_PROPERTY))
	{
		char *person = ics_named(attendee);

		if (person == NULL)
			continue;
		appendStringInfoString(&who, who.len > 0 ? ", " : "");
		ics_put_name(&who, person);
	}
	return who.data;
}

/* NULL: the attendee says nothing that an account can answer. */
static const char *
ics_answer(icalproperty *attendee)
{
	icalparameter *partstat = icalproperty_get_first_parameter(attendee, ICAL_PARTSTAT_PARAMETER);

	switch (partstat != NULL ? icalparameter_get_partstat(partstat) : ICAL_PARTSTAT_NONE)
	{
		case ICAL_PARTSTAT_NEEDSACTION:
			return "invited";
		case ICAL_PARTSTAT_ACCEPTED:
			return "accepted";
		case ICAL_PARTSTAT_DECLINED:
			return "declined";
		case ICAL_PARTSTAT_TENTATIVE:
			return "tentative";
		default:
			return NULL;
	}
}

char *
ics_answers(icalcomponent *event)
{
	StringInfoData answers;
	icalproperty *attendee = icalcomponent_get_first_property(event, ICAL_ATTENDEE_PROPERTY);

	initStringInfo(&answers);
	appendStringInfoChar(&answers, '{');
	for (; attendee != NULL; attendee = icalcomponent_get_next_property(event, ICAL_ATTENDEE_PROPERTY))
	{
		char *person = ics_named(attendee);
		const char *answer = ics_answer(attendee);

		if (person == NULL || answer == NULL)
			continue;
		if (answers.len > 1)
			appendStringInfoChar(&answers, ',');
		escape_json(&answers, person);
		appendStringInfo(&answers, ":\"%s\"", answer);
	}
	appendStringInfoChar(&answers, '}');
	return answers.data;
}

/* May an attendee set the property for itself (RFC 6638 3.2.2.1), or does a program set it at each change? */
static bool
ics_is_own(icalproperty *property)
{
	switch (icalproperty_isa(property))
	{
		case ICAL_ATTENDEE_PROPERTY:
		case ICAL_CREATED_PROPERTY:
		case ICAL_LASTMODIFIED_PROPERTY:
		case ICAL_SEQUENCE_PROPERTY:
		case ICAL_TRANSP_PROPERTY:
		case ICAL_X_PROPERTY:
			return true;
		default:
			return false;
	}
}

static int
ics_compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

char *
ics_rest(icalcomponent *event)
{
	int room = icalcomponent_count_properties(event, ICAL_ANY_PROPERTY), count = 0;
	char **lines = palloc(sizeof(char *) * (size_t) Max(room, 1));
	icalproperty *property = icalcomponent_get_first_property(event, ICAL_ANY_PROPERTY);
	StringInfoData rest;

	for (; property != NULL; property = icalcomponent_get_next_property(event, ICAL_ANY_PROPERTY))
	{
		char *value;

		if (ics_is_own(property))
			continue;
		value = icalproperty_get_value_as_string_r(property);
		lines[count++] = psprintf("%s:%s", icalproperty_get_property_name(property), value != NULL ? value : "");
		icalmemory_free_buffer(value);
	}
	qsort(lines, (size_t) count, sizeof(char *), ics_compare_lines);
	initStringInfo(&rest);
	for (int i = 0; i < count; i++)
		appendStringInfo(&rest, "%s\n", lines[i]);
	return rest.data;
}
