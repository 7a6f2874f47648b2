/*
 * ics.h - calendar objects (RFC 5545, RFC 4791 4.1): what reading and writing share.
 *
 * An object has events of one UID: the task, and changes of its occurrences. Each is a row of a calendar.
 */
#ifndef CALENDAR_ICS_H
#define CALENDAR_ICS_H

#include "postgres.h"
#include "datatype/timestamp.h"

#include <libical/ical.h>

#define ICS_MAX_BYTES  (1024 * 1024)
#define ICS_MAX_EVENTS 1000
#define ICS_MAX_DEPTH  8 /* of components in each other; a calendar's alarm is at 3 */

/*
 * Refuses an object. `element` of CalDAV's preconditions (RFC 4791 5.3.2.1) is the name of the constraint that the
 * error has.
 */
#define ICS_REFUSE(element, ...)                                                                                       \
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg(__VA_ARGS__),                                     \
					err_generic_string(PG_DIAG_CONSTRAINT_NAME, element)))

/* Sets how libical reads; called before it is used. */
extern void ics_begin(void);

/* The account of a calendar address that names one (NULL: it names none) ... */
#define ICS_PERSON "urn:pg-sheet:account:"
/* ... or what stands for the address in the column Who: the name, or an e-mail address. NULL: neither. Allocated. */
extern char *ics_person(const char *address);
/* The column Who, what attendees answer as a JSON object by person, and the properties that an attendee cannot change:
 * without what a row has, which was taken from the event before. All allocated. */
extern char *ics_persons(icalcomponent *event);
extern char *ics_answers(icalcomponent *event);
extern char *ics_rest(icalcomponent *event);

/* The first alarm of an event that is before the start by a length of time, in seconds; NULL: there is none. */
extern icalcomponent *ics_alarm(icalcomponent *event, icalproperty **trigger, int *seconds);

#endif
