/*
 * trace.h - the id of a request, its log line, and counts and durations by route.
 *
 * A request keeps the X-Request-Id with which it arrives, if that is harmless, and otherwise gets one. The answer and
 * every log line about the request have it, so a line in the log of a proxy or a client leads to ours.
 */
#ifndef TRACE_H
#define TRACE_H

#include "support/buf.h"

#include <stdint.h>

struct Request;

#define TRACE_ID_MAX	 64
#define TRACE_ROUTES_MAX 160

typedef struct Trace
{
	char id[TRACE_ID_MAX + 1];
	uint64_t began; /* ns; 0: it has not begun, or has ended */
	int route;		/* 0: none */
} Trace;

/* id: the X-Request-Id with which the request arrives, or NULL. */
extern void trace_begin(struct Request *request, const char *id);
/* Counts and logs the request. */
extern void trace_end(struct Request *request);
/* The path for the log: without what follows it where that opens a file or a paste to everybody. */
extern const char *trace_path(const struct Request *request);
/* Requests that have begun and not ended. */
extern int trace_under_way(void);
/* route: from 1; name: in /metrics. */
extern void trace_set_route(struct Request *request, int route, const char *name);
/* For /metrics: answers and durations by route. */
extern void trace_print(Buf *buf);
/* Of a Method. */
extern const char *trace_method_name(int method);

#endif
