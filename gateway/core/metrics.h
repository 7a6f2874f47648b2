/*
 * metrics.h - counters of this process, shown by GET /metrics in Prometheus' text format.
 */
#ifndef METRICS_H
#define METRICS_H

#include "support/buf.h"

#include <stdint.h>

#define METRICS_BUCKETS 25 /* upper bounds 1, 2, 4, ...: 17 s in microseconds */

typedef struct Histogram
{
	uint64_t buckets[METRICS_BUCKETS + 1];
	uint64_t count;
	uint64_t sum;
} Histogram;

#define METRICS_CODES 16 /* more than are used */

/* Sessions by the code with which the gateway closed them; 0: the client closed. */
typedef struct CloseCount
{
	int code;
	uint64_t count;
} CloseCount;

typedef struct Metrics
{
	uint64_t edits_received;  /* accepted from sockets */
	uint64_t edits_committed; /* of this gateway */
	uint64_t edits_foreign;	  /* made by SQL or another gateway */
	uint64_t batches;
	uint64_t groups; /* transactions with batches of several sheets */
	uint64_t batches_resent;
	uint64_t duplicates;
	uint64_t refused_locked;
	uint64_t refused_range;
	uint64_t refused_malformed;
	uint64_t refused_role;
	uint64_t refused_attempts_address;
	uint64_t refused_attempts_account;
	uint64_t refused_password_queue;
	uint64_t refused_pastes;
	uint64_t sessions_opened;
	uint64_t sessions_slow; /* closed because they lagged */
	CloseCount closed[METRICS_CODES];
	uint64_t sender_pauses;
	uint64_t bytes_sent;
	uint64_t http_requests;
	uint64_t http_errors; /* 5xx */
	uint64_t redirects;
	uint64_t http_timeouts;			/* closed because they were too slow */
	uint64_t connections_refused;	/* beyond a limit */
	uint64_t connections_displaced; /* ended to make room for others */
	Histogram commit_us;
	Histogram turn_us; /* iterations of the loop, without its sleep */
	Histogram batch_edits;
} Metrics;

extern Metrics metrics;

extern void metrics_observe(Histogram *histogram, uint64_t value);
extern void metrics_count_close(int code);
/* Prints all counters. The other functions print values of other modules. */
extern void metrics_print(Buf *buf);
extern void metrics_print_head(Buf *buf, const char *name, const char *type, const char *help);
/* Prints every `step`th bucket of a histogram of microseconds, in seconds, after its head. label: `name="value"` or "".
 */
extern void metrics_print_seconds(Buf *buf, const char *name, const char *label, const Histogram *histogram, int step);
extern void metrics_print_gauge(Buf *buf, const char *name, const char *help, uint64_t value);
extern void metrics_print_counter(Buf *buf, const char *name, const char *help, uint64_t value);
/* Memory, processor time and file descriptors of the process. */
extern void metrics_print_process(Buf *buf);

#endif
