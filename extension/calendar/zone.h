/* zone.h - local times in time zones, by the rules of RFC 5545 (3.3.5). */
#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

#include "postgres.h"
#include "datatype/timestamp.h"
#include "pgtime.h"

/* The zone with a name of the IANA database such as Europe/Berlin, or UTC. 22023 if there is none. */
extern pg_tz *zone_find(const char *name);
extern bool zone_exists(const char *name);

/*
 * The time at which the zone's clocks show this local time. If they show it twice, the first one. If they skip it, the
 * one by the offset before the gap. 22008 if it is out of range.
 */
extern TimestampTz zone_time(Timestamp local, pg_tz *zone);

/* The local time in the zone. 22008 if it is out of range. */
extern Timestamp zone_local(TimestampTz at, pg_tz *zone);

/* A digest of the zone's offsets from 2020 to 2060. It changes with the zone's rules in the system's tzdata, not with
 * time. */
extern int64 zone_rules(pg_tz *zone);

#endif
