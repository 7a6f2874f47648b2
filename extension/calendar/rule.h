/*
 * rule.h - recurrence rules (RFC 5545, 3.3.10), checked here and expanded by libical.
 *
 * A rule repeats a local time: what it yields has no zone (zone.h has them). It may repeat daily or less often. Within
 * a day it may not: BYHOUR, BYMINUTE and BYSECOND, and the frequencies that are shorter than a day, are refused, as are
 * RSCALE and SKIP (RFC 7529).
 */
#ifndef CALENDAR_RULE_H
#define CALENDAR_RULE_H

#include "postgres.h"
#include "datatype/timestamp.h"
#include "utils/timestamp.h"
#include "calendar/zone.h"

#define RULE_MAX_LENGTH 1000

typedef struct Rule Rule;

/*
 * Reads a rule, with or without "RRULE:" before it, for a series that begins at `start`. UNTIL is a time in UTC (with
 * Z), a time in `zone`, or a date, of which it means the end.
 * 22023 if it is none, with what is wrong in the detail. It is freed with the current memory context.
 */
extern Rule *rule_read(const char *text, Timestamp start, pg_tz *zone);

/* Whether the rule ends by itself: it has COUNT or UNTIL. */
extern bool rule_ends(const Rule *rule);

/*
 * The next local time, in ascending order; false: there is none. The first is `start` if the rule has it. A series
 * contains `start` in any case (3.8.5.3), so the caller adds it.
 */
extern bool rule_next(Rule *rule, Timestamp *local);

#endif
