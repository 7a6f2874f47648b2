/*
 * trace.c - ids of requests, their log lines, and their counts by route; see trace.h.
 */
#include "http/request/trace.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "http/request/request.h"
#include "support/log.h"

#include <ctype.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#define TRACE_CLASSES  6 /* the first digit of a status; 0: the client left before the answer */
#define TRACE_STEP	   2 /* /metrics shows every second bucket of the durations */
#define TRACE_HARMLESS "._:+/=-"

/* Of the requests of one route; the first of those without a route. */
static struct
{
	const char *route;
	uint64_t answers[TRACE_CLASSES];
	Histogram duration_us;
} trace_stats[TRACE_ROUTES_MAX] = {{.route = "none"}};
static int trace_count;

/* ---- ids ---- */

/* Only characters that are safe in a log, a header and a shell's command line. */
static bool
trace_is_harmless(const char *id)
{
	if (*id == '\0' || strlen(id) > TRACE_ID_MAX)
		return false;
	for (; *id != '\0'; id++)
	{
		if (!isalnum((unsigned char) *id) && strchr(TRACE_HARMLESS, *id) == NULL)
			return false;
	}
	return true;
}

/* Unique: random digits of this process, and a number. Without snprintf(), as this is done for each request. */
static void
trace_make_id(char id[TRACE_ID_MAX + 1])
{
	static char process[24]; /* 16 digits and a dash */
	static uint64_t number;
	char digits[24], *digit = digits + sizeof(digits);
	uint64_t random = 0;

	if (process[0] == '\0')
	{
		(void) RAND_bytes((unsigned char *) &random, sizeof(random));
		snprintf(process, sizeof(process), "%016llx-", (unsigned long long) random);
	}
	*--digit = '\0';
	number++;
	for (uint64_t left = number; left > 0; left /= 10)
		*--digit = (char) ('0' + left % 10);
	memcpy(id, process, 17);
	memcpy(id + 17, digit, (size_t) (digits + sizeof(digits) - digit));
}

void
trace_begin(Request *request, const char *id)
{
	trace_count++;
	request->trace.began = uv_hrtime();
	if (id != NULL && trace_is_harmless(id))
		snprintf(request->trace.id, sizeof(request->trace.id), "%s", id);
	else
		trace_make_id(request->trace.id);
	request_add_header(request, "X-Request-Id", request->trace.id);
}

void
trace_set_route(Request *request, int route, const char *name)
{
	request->trace.route = route;
	trace_stats[route].route = name;
}

const char *
trace_method_name(int method)
{
	static const char *const names[] = {[METHOD_GET] = "GET",
										[METHOD_HEAD] = "HEAD",
										[METHOD_POST] = "POST",
										[METHOD_PUT] = "PUT",
										[METHOD_PATCH] = "PATCH",
										[METHOD_PROPFIND] = "PROPFIND",
										[METHOD_PROPPATCH] = "PROPPATCH",
										[METHOD_REPORT] = "REPORT",
										[METHOD_MKCOL] = "MKCOL",
										[METHOD_MKCALENDAR] = "MKCALENDAR",
										[METHOD_DELETE] = "DELETE",
										[METHOD_OPTIONS] = "OPTIONS",
										[METHOD_OTHER] = "other"};

	return names[method];
}

const char *
trace_path(const Request *request)
{
	return request->secret_path ? trace_stats[request->trace.route].route : request->head.path;
}

void
trace_end(Request *request)
{
	Trace *trace = &request->trace;
	uint64_t us = (uv_hrtime() - trace->began) / 1000;

	if (trace->began == 0)
		return;
	trace->began = 0;
	trace_count--;
	trace_stats[trace->route].answers[request->status / 100 % TRACE_CLASSES]++;
	metrics_observe(&trace_stats[trace->route].duration_us, us);
	/* the path without its query, which may hold a token */
	log_event(gateway.config.log_requests ? LOG_INFO : LOG_DEBUG, "request", LOG_STR("request", trace->id),
			  LOG_STR("peer", request->peer), LOG_STR("method", trace_method_name(request->method)),
			  LOG_STR("path", trace_path(request)), LOG_INT("status", request->status),
			  LOG_INT("uid", request->claims.uid), LOG_INT("us", us));
}

int
trace_under_way(void)
{
	return trace_count;
}

/* ---- /metrics ---- */

void
trace_print(Buf *buf)
{
	char label[96];

	metrics_print_head(buf, "http_answers_total", "counter",
					   "Requests by route and the first digit of the answer's status; 0xx: the client left before.");
	for (int i = 0; i < TRACE_ROUTES_MAX; i++)
	{
		for (int digit = 0; digit < TRACE_CLASSES; digit++)
		{
			if (trace_stats[i].answers[digit] > 0)
				buf_printf(buf, "pg_sheet_http_answers_total{route=\"%s\",status=\"%dxx\"} %llu\n",
						   trace_stats[i].route, digit, (unsigned long long) trace_stats[i].answers[digit]);
		}
	}
	metrics_print_head(buf, "http_duration_seconds", "histogram", "From a request's headers to the end of its answer.");
	for (int i = 0; i < TRACE_ROUTES_MAX; i++)
	{
		if (trace_stats[i].duration_us.count == 0)
			continue;
		snprintf(label, sizeof(label), "route=\"%s\"", trace_stats[i].route);
		metrics_print_seconds(buf, "http_duration_seconds", label, &trace_stats[i].duration_us, TRACE_STEP);
	}
}
