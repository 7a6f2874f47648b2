/* latencies.h - times in milliseconds, and their percentiles. */
#ifndef LATENCIES_H
#define LATENCIES_H

#include <stddef.h>
#include <stdint.h>

typedef struct Latencies
{
	double *values; /* ms */
	size_t count, room;
} Latencies;

/* Both in nanoseconds. */
extern void latencies_add(Latencies *latencies, int64_t from, int64_t to);
extern void latencies_sort(Latencies *latencies);
/* Of sorted ones; share from 0 to 1. -1 when there are none. */
extern double latencies_percentile(const Latencies *sorted, double share);

#endif
