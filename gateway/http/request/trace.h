/*
 * trace.h - what a request is called, how long it took, and where that is counted and logged.
 *
 * A request keeps the X-Request-Id with which it comes, if that is harmless, and gets one otherwise; the answer carries
 * it, and so does every log line about it. So a line in the log of a proxy or a client leads to ours.
 */
#ifndef TRACE_H
#define TRACE_H

#include "support/buf.h"

#include <stdint.h>

struct Request;

#define TRACE_ID_MAX 64

typedef struct Trace
{
	char id[TRACE_ID_MAX + 1];
	uint64_t began; /* ns */
} Trace;

/* id: the X-Request-Id with which it comes, or NULL. */
extern void trace_begin(struct Request *request, const char *id);
/* Counts and logs the request: once, when its exchange is over. */
extern void trace_end(struct Request *request);
/* Requests that have begun and not ended. */
extern int trace_under_way(void);
/* Requests and durations by route, for /metrics. */
extern void trace_print(Buf *buf);

#endif
