/* timeconv.h - microseconds since the Unix epoch (batches) and since 2000 (TimestampTz). */
#ifndef TIMECONV_H
#define TIMECONV_H

#include "datatype/timestamp.h"

#define TIMECONV_OFFSET (((int64) POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

static inline int64
timeconv_to_unix(TimestampTz at)
{
	return at + TIMECONV_OFFSET;
}

static inline TimestampTz
timeconv_from_unix(int64 at)
{
	return at - TIMECONV_OFFSET;
}

#endif
