/* timestamp.h - as PostgreSQL's. */
#ifndef TIMESTAMP_H
#define TIMESTAMP_H

#include <stdint.h>

typedef int64_t TimestampTz;

#define DT_NOBEGIN INT64_MIN
#define DT_NOEND   INT64_MAX

#endif
