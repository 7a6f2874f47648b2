/*
 * trace.c - ids of requests, their log lines, and their counts by route; see trace.h.
 */
#include "http/request/trace.h"

#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "http/request/request.h"
#include "http/routes/routes.h"

#include <ctype.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#define TRACE_CLASSES  6 /* the first digit of a status; 0: the client left before there was one */
#define TRACE_STEP	   2 /* every second bucket of the durations is told */
#define TRACE_HARMLESS "._:+/=-"

typedef struct TraceRoute
{
	uint64_t answers[TRACE_CLASSES];
	Histogram duration_us;
} TraceRoute;

static TraceRoute trace_routes[ROUTER_LABELS_MAX];
static int trace_count;

/* ---- ids ---- */

/* What may stand in a log, a header and a shell's command line without a second thought. */
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

/* Unique: a random beginning for this process, and a number. */
static void
trace_make_id(char id[TRACE_ID_MAX + 1])
{
	static char process[24]; /* 16 digits and a dash */
	static uint64_t number;
	char digits[24], *digit = digits + sizeof(digits);

	if (process[0] == '\0')
	{
		uint64_t random = 0;

		(void) RAND_bytes((unsigned char *) &random, sizeof(random));
		snprintf(process, sizeof(process), "%016llx-", (unsigned long long) random);
	}
	*--digit = '\0';
	number++;
	for (uint64_t left = number; left > 0 || *digit == '\0'; left /= 10)
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

/* ---- the end ---- */

static const char *
trace_method(const Request *request)
{
	static const char *const names[] = {[METHOD_GET] = "GET",
										[METHOD_HEAD] = "HEAD",
										[METHOD_POST] = "POST",
										[METHOD_OPTIONS] = "OPTIONS",
										[METHOD_OTHER] = "other"};

	return names[request->method];
}

void
trace_end(Request *request)
{
	uint64_t us = (uv_hrtime() - request->trace.began) / 1000;
	TraceRoute *route = &trace_routes[router_label(request)];

	if (request->trace.began == 0) /* told already */
		return;
	request->trace.began = 0;
	trace_count--;
	route->answers[request->status / 100 % TRACE_CLASSES]++;
	metrics_observe(&route->duration_us, us);
	/* the path without its query, which may hold a token */
	log_event(gateway.config.log_requests ? LOG_INFO : LOG_DEBUG, "request", LOG_STR("request", request->trace.id),
			  LOG_STR("peer", request->peer), LOG_STR("method", trace_method(request)), LOG_STR("path", request->path),
			  LOG_INT("status", request->status), LOG_INT("uid", request->claims.uid), LOG_INT("us", us));
}

int
trace_under_way(void)
{
	return trace_count;
}

/* ---- /metrics ---- */

static void
trace_print_answers(Buf *buf)
{
	metrics_print_head(buf, "http_answers_total", "counter",
					   "Requests by route and the first digit of the answer's status; 0xx: the client left before.");
	for (int i = 0; i < ROUTER_LABELS_MAX && router_label_name(i) != NULL; i++)
	{
		for (int class = 0; class < TRACE_CLASSES; class ++)
		{
			uint64_t count = trace_routes[i].answers[class];

			if (count > 0)
				buf_printf(buf, "pg_sheet_http_answers_total{route=\"%s\",status=\"%dxx\"} %llu\n",
						   router_label_name(i), class, (unsigned long long) count);
		}
	}
}

void
trace_print(Buf *buf)
{
	char label[96];

	trace_print_answers(buf);
	metrics_print_head(buf, "http_duration_seconds", "histogram", "From a request's headers to the end of its answer.");
	for (int i = 0; i < ROUTER_LABELS_MAX && router_label_name(i) != NULL; i++)
	{
		if (trace_routes[i].duration_us.count == 0)
			continue;
		snprintf(label, sizeof(label), "route=\"%s\"", router_label_name(i));
		metrics_print_seconds(buf, "http_duration_seconds", label, &trace_routes[i].duration_us, TRACE_STEP);
	}
}
