/*
 * trace.h - the id of a request, its log line, and counts and durations by route.
 *
 * A request keeps the X-Request-Id with which it arrives, if that is harmless, and otherwise gets one. The answer and
 * every log line about the request have it, so a line in the log of a proxy or a client leads to ours.
 */
#ifndef TRACE_H
#define TRACE_H

#include "core/metrics.h"
#include "support/buf.h"

#include <stdint.h>

struct Request;

#define TRACE_ID_MAX  64
#define TRACE_CLASSES 6 /* the first digit of a status; 0: the client left before the answer */

/* Of the requests of one route. */
typedef struct TraceStats
{
	const char *route; /* NULL: there was no request */
	uint64_t answers[TRACE_CLASSES];
	Histogram duration_us;
} TraceStats;

typedef struct Trace
{
	char id[TRACE_ID_MAX + 1];
	uint64_t began; /* ns; 0: it has not begun, or has ended */
	TraceStats *stats;
} Trace;

/* id: the X-Request-Id with which the request arrives, or NULL. */
extern void trace_begin(struct Request *request, const char *id);
/* Counts and logs the request. */
extern void trace_end(struct Request *request);
/* Requests that have begun and not ended. */
extern int trace_under_way(void);
/* For /metrics: the stats of all routes. */
extern void trace_print(Buf *buf, const TraceStats *stats, int count);
/* Of a Method. */
extern const char *trace_method_name(int method);

#endif
