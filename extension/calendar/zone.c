/* zone.c - local times in time zones; PostgreSQL's time zones, which are those of the system's tzdata in Debian. */
#include "postgres.h"

#include <ctype.h>

#include "calendar/zone.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#define ZONE_DAY (INT64CONST(86400) * USECS_PER_SEC)

/* The rules that count, as times of Unix: 2020 to 2060. */
#define ZONE_RULES_FROM INT64CONST(1577836800)
#define ZONE_RULES_TO	INT64CONST(2840140800)

/* pg_tzset() also takes POSIX rules, such as FOO+3, which are no names. */
static bool
zone_is_name(const char *name)
{
	if (!isalpha((unsigned char) name[0]))
		return false;
	for (const char *c = name; *c != '\0'; c++)
	{
		if (isdigit((unsigned char) *c) || *c == '+')
		{
			if (strncmp(name, "Etc/", 4) != 0)
				return false;
		}
		else if (!isalpha((unsigned char) *c) && *c != '/' && *c != '_' && *c != '-')
			return false;
	}
	return true;
}

bool
zone_exists(const char *name)
{
	pg_tz *zone = zone_is_name(name) ? pg_tzset(name) : NULL;

	return zone != NULL && pg_tz_acceptable(zone);
}

pg_tz *
zone_find(const char *name)
{
	if (!zone_exists(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("time zone \"%.100s\" does not exist", name),
				 errhint("Use a name of the view pg_timezone_names, such as Europe/Berlin or Asia/Shanghai, or UTC.")));
	return pg_tzset(name);
}

static void
zone_refuse(void)
{
	ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
}

Timestamp
zone_local(TimestampTz at, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t fsec;
	int tz;
	Timestamp local;

	if (timestamp2tm(at, &tz, &tm, &fsec, NULL, zone) != 0 || tm2timestamp(&tm, fsec, NULL, &local) != 0)
		zone_refuse();
	return local;
}

TimestampTz
zone_time(Timestamp local, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t fsec;
	TimestampTz at, earlier;
	int tz;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0)
		zone_refuse();
	/* In a gap this is the offset before it. A time that clocks show twice is the later one. */
	tz = DetermineTimeZoneOffset(&tm, zone);
	at = local + tz * USECS_PER_SEC;
	if (!IS_VALID_TIMESTAMP(at))
		zone_refuse();
	/* By the offset of the day before. */
	earlier = at - ZONE_DAY;
	if (timestamp2tm(earlier, &tz, &tm, &fsec, NULL, zone) != 0)
		return at;
	earlier = local + tz * USECS_PER_SEC;
	return earlier < at && zone_local(earlier, zone) == local ? earlier : at;
}

int64
zone_rules(pg_tz *zone)
{
	pg_time_t at = ZONE_RULES_FROM, boundary;
	long before, after;
	int is_dst;
	uint64 digest = 0;

	for (;;)
	{
		int found = pg_next_dst_boundary(&at, &before, &is_dst, &boundary, &after, &is_dst, zone);
		int64 change[2] = {found > 0 && boundary < ZONE_RULES_TO ? boundary : ZONE_RULES_TO, before};

		digest = hash_bytes_extended((const unsigned char *) change, sizeof(change), digest);
		if (change[0] == ZONE_RULES_TO)
			return (int64) digest;
		at = boundary;
	}
}
