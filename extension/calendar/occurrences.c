/*
 * occurrences.c - SQL function occurrences(): the times of a series.
 *
 * A series has its start, the times of its rule and of a list of dates, less exceptions (RFC 5545, 3.8.5). All are
 * local times in the series' zone, which repeat over changes of its clocks. Each is given a time by zone_time().
 */
#include "postgres.h"

#include "calendar/rule.h"
#include "calendar/zone.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_occurrences);
PG_FUNCTION_INFO_V1(sheet_check_rule);
PG_FUNCTION_INFO_V1(sheet_zone_time);
PG_FUNCTION_INFO_V1(sheet_zone_rules);

/* Parameters of occurrences(). */
enum
{
	ARG_STARTS,
	ARG_RULE,
	ARG_ZONE,
	ARG_FROM,
	ARG_TO,
	ARG_DATES,
	ARG_EXCEPT,
	ARG_MAX_ROWS
};

#define OCCURRENCES_MAX 100000
/* Times of the rule between two checks for interrupts. */
#define OCCURRENCES_INTERRUPTS 1024

/* Local times in ascending order. */
typedef struct Times
{
	Timestamp *times;
	int count;
	int next;
} Times;

static int
times_compare(const void *a, const void *b)
{
	Timestamp first = *(const Timestamp *) a, second = *(const Timestamp *) b;

	return first < second ? -1 : first > second;
}

static Times
times_of_array(FunctionCallInfo fcinfo, int arg)
{
	Times times = {0};
	Datum *datums;

	if (PG_ARGISNULL(arg))
		return times;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), TIMESTAMPOID, 8, true, TYPALIGN_DOUBLE, &datums, NULL, &times.count);
	times.times = palloc(sizeof(Timestamp) * Max(times.count, 1));
	for (int i = 0; i < times.count; i++)
	{
		times.times[i] = DatumGetTimestamp(datums[i]);
		if (TIMESTAMP_NOT_FINITE(times.times[i]))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a date of a series must be finite")));
	}
	qsort(times.times, times.count, sizeof(Timestamp), times_compare);
	return times;
}

/* Whether the list has the time. The times asked for ascend. */
static bool
times_have(Times *list, Timestamp time)
{
	while (list->next < list->count && list->times[list->next] < time)
		list->next++;
	return list->next < list->count && list->times[list->next] == time;
}

/* The start, the times of a rule and a list, merged. */
typedef struct Series
{
	Rule *rule; /* NULL: none */
	Timestamp of_rule;
	bool rule_has;
	Times dates;
	Timestamp start;
	bool started;
} Series;

/* Returns false behind the last time. A time that several have comes once. */
static bool
series_next(Series *series, Timestamp *time)
{
	Timestamp next = DT_NOEND;

	if (!series->started)
		next = series->start;
	if (series->rule_has)
		next = Min(next, series->of_rule);
	if (series->dates.next < series->dates.count)
		next = Min(next, series->dates.times[series->dates.next]);
	if (next == DT_NOEND)
		return false;
	series->started |= next == series->start;
	while (series->rule_has && series->of_rule <= next)
		series->rule_has = rule_next(series->rule, &series->of_rule);
	while (series->dates.next < series->dates.count && series->dates.times[series->dates.next] <= next)
		series->dates.next++;
	*time = next;
	return true;
}

static Timestamp
occurrences_start(FunctionCallInfo fcinfo, int arg)
{
	Timestamp start = PG_GETARG_TIMESTAMP(arg);

	if (TIMESTAMP_NOT_FINITE(start) || start % USECS_PER_SEC != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the start must be a time with whole seconds")));
	return start;
}

/* occurrences(starts, rule, zone, from, to, dates, except, max_rows) */
Datum
sheet_occurrences(PG_FUNCTION_ARGS)
{
	Series series = {0};
	Times except = times_of_array(fcinfo, ARG_EXCEPT);
	TimestampTz from, to;
	pg_tz *zone;
	Timestamp time;
	int32 left = catalog_arg_page(fcinfo, ARG_MAX_ROWS, OCCURRENCES_MAX, "occurrences");
	ReturnSetInfo *result;

	catalog_require_arg(fcinfo, ARG_STARTS, "start");
	zone = zone_find(catalog_arg_string(fcinfo, ARG_ZONE, "time zone"));
	from = PG_ARGISNULL(ARG_FROM) ? DT_NOBEGIN : PG_GETARG_TIMESTAMPTZ(ARG_FROM);
	to = PG_ARGISNULL(ARG_TO) ? DT_NOEND : PG_GETARG_TIMESTAMPTZ(ARG_TO);
	series.start = occurrences_start(fcinfo, ARG_STARTS);
	series.dates = times_of_array(fcinfo, ARG_DATES);
	if (!PG_ARGISNULL(ARG_RULE))
	{
		series.rule = rule_read(text_to_cstring(PG_GETARG_TEXT_PP(ARG_RULE)), series.start, zone);
		series.rule_has = rule_next(series.rule, &series.of_rule);
	}
	InitMaterializedSRF(fcinfo, 0);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	for (uint32 n = 1; left > 0 && series_next(&series, &time); n++)
	{
		TimestampTz at = zone_time(time, zone);
		Datum values[] = {TimestampGetDatum(time), TimestampTzGetDatum(at)};
		bool nulls[] = {false, false};

		if (n % OCCURRENCES_INTERRUPTS == 0)
			CHECK_FOR_INTERRUPTS();
		if (at >= to)
			break;
		if (times_have(&except, time) || at < from)
			continue;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		left--;
	}
	return (Datum) 0;
}

/* check_rule(rule, starts, zone): whether the rule ends by itself. 22023 if it is none. */
Datum
sheet_check_rule(PG_FUNCTION_ARGS)
{
	pg_tz *zone = zone_find(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	Rule *rule = rule_read(text_to_cstring(PG_GETARG_TEXT_PP(0)), occurrences_start(fcinfo, 1), zone);

	PG_RETURN_BOOL(rule_ends(rule));
}

/* zone_time(local, zone) */
Datum
sheet_zone_time(PG_FUNCTION_ARGS)
{
	Timestamp local = PG_GETARG_TIMESTAMP(0);

	if (TIMESTAMP_NOT_FINITE(local))
		PG_RETURN_TIMESTAMPTZ(local);
	PG_RETURN_TIMESTAMPTZ(zone_time(local, zone_find(text_to_cstring(PG_GETARG_TEXT_PP(1)))));
}

/* zone_rules(zone) */
Datum
sheet_zone_rules(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(zone_rules(zone_find(text_to_cstring(PG_GETARG_TEXT_PP(0)))));
}
