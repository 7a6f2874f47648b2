/* latencies.c - see latencies.h. */
#include "latencies.h"

#include "basics.h"

#include <stdlib.h>

void
latencies_add(Latencies *latencies, int64_t from, int64_t to)
{
	if (latencies->count == latencies->room)
	{
		latencies->room = latencies->room > 0 ? latencies->room * 2 : 65536;
		latencies->values = realloc(latencies->values, latencies->room * sizeof(double));
		if (!latencies->values)
			fail("out of memory");
	}
	latencies->values[latencies->count++] = (double) (to - from) / 1e6;
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

void
latencies_sort(Latencies *latencies)
{
	if (latencies->count > 0)
		qsort(latencies->values, latencies->count, sizeof(double), compare_doubles);
}

double
latencies_percentile(const Latencies *sorted, double share)
{
	return sorted->count > 0 ? sorted->values[(size_t) ((double) (sorted->count - 1) * share)] : -1;
}
