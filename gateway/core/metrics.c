/*
 * metrics.c - counters of this process in Prometheus' text format.
 */
#include "core/metrics.h"

#include "core/gateway.h"

Metrics metrics;

void
metrics_observe(Histogram *histogram, uint64_t value)
{
	int bucket = 0;

	while (bucket < METRICS_BUCKETS && value > (1ULL << bucket))
		bucket++;
	histogram->buckets[bucket]++;
	histogram->count++;
	histogram->sum += value;
}

void
metrics_print_head(Buf *buf, const char *name, const char *type, const char *help)
{
	buf_printf(buf, "# HELP pg_sheet_%s %s\n# TYPE pg_sheet_%s %s\n", name, help, name, type);
}

static void
metrics_print_value(Buf *buf, const char *name, const char *type, const char *help, uint64_t value)
{
	metrics_print_head(buf, name, type, help);
	buf_printf(buf, "pg_sheet_%s %llu\n", name, (unsigned long long) value);
}

static void
metrics_print_histogram(Buf *buf, const char *name, const char *help, const Histogram *histogram)
{
	uint64_t total = 0;

	metrics_print_head(buf, name, "histogram", help);
	for (int i = 0; i < METRICS_BUCKETS; i++)
	{
		total += histogram->buckets[i];
		buf_printf(buf, "pg_sheet_%s_bucket{le=\"%llu\"} %llu\n", name, 1ULL << i, (unsigned long long) total);
	}
	buf_printf(buf, "pg_sheet_%s_bucket{le=\"+Inf\"} %llu\npg_sheet_%s_sum %llu\npg_sheet_%s_count %llu\n", name,
			   (unsigned long long) histogram->count, name, (unsigned long long) histogram->sum, name,
			   (unsigned long long) histogram->count);
}

void
metrics_print_seconds(Buf *buf, const char *name, const char *label, const Histogram *histogram, int step)
{
	const char *comma = label[0] != '\0' ? "," : "";
	uint64_t total = 0;

	for (int i = 0; i < METRICS_BUCKETS; i++)
	{
		total += histogram->buckets[i];
		if (i % step == 0)
			buf_printf(buf, "pg_sheet_%s_bucket{%s%sle=\"%.9g\"} %llu\n", name, label, comma,
					   (double) (1ULL << i) / 1e6, (unsigned long long) total);
	}
	buf_printf(buf, "pg_sheet_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma,
			   (unsigned long long) histogram->count);
	buf_printf(buf, "pg_sheet_%s_sum{%s} %.9g\npg_sheet_%s_count{%s} %llu\n", name, label,
			   (double) histogram->sum / 1e6, name, label, (unsigned long long) histogram->count);
}

void
metrics_count_close(int code)
{
	int i = 0;

	while (i < METRICS_CODES - 1 && metrics.closed[i].count > 0 && metrics.closed[i].code != code)
		i++;
	metrics.closed[i].code = code;
	metrics.closed[i].count++;
}

static void
metrics_print_closes(Buf *buf)
{
	metrics_print_head(buf, "sessions_closed_total", "counter",
					   "WebSockets that have ended, by the code with which they were closed; 0: the client left.");
	for (int i = 0; i < METRICS_CODES && metrics.closed[i].count > 0; i++)
		buf_printf(buf, "pg_sheet_sessions_closed_total{code=\"%d\"} %llu\n", metrics.closed[i].code,
				   (unsigned long long) metrics.closed[i].count);
}

/* Refusals, under one name. */
static void
metrics_print_refusals(Buf *buf)
{
	static const struct
	{
		const char *reason;
		const uint64_t *value;
	} refusals[] = {
		{"locked", &metrics.refused_locked},
		{"range", &metrics.refused_range},
		{"malformed", &metrics.refused_malformed},
		{"role", &metrics.refused_role},
		{"attempts_address", &metrics.refused_attempts_address},
		{"attempts_account", &metrics.refused_attempts_account},
		{"password_queue", &metrics.refused_password_queue},
		{"connections", &metrics.connections_refused},
	};

	metrics_print_head(buf, "refused_total", "counter",
					   "Refused edits (locked, out of range, malformed, role), passwords (too many attempts of an "
					   "address or on an account, queue full) and connections.");
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		buf_printf(buf, "pg_sheet_refused_total{reason=\"%s\"} %llu\n", refusals[i].reason,
				   (unsigned long long) *refusals[i].value);
}

void
metrics_print(Buf *buf)
{
	static const struct
	{
		const char *name;
		const char *help;
		const uint64_t *value;
	} counters[] = {
		{"edits_received_total", "Edits accepted from WebSockets.", &metrics.edits_received},
		{"edits_committed_total", "Edits of this gateway that PostgreSQL has committed.", &metrics.edits_committed},
		{"edits_foreign_total", "Edits made by SQL or another gateway.", &metrics.edits_foreign},
		{"batches_total", "Batches committed.", &metrics.batches},
		{"groups_total", "Transactions that commit the batches of several sheets.", &metrics.groups},
		{"batches_resent_total", "Batches sent again after an unknown outcome.", &metrics.batches_resent},
		{"batches_duplicate_total", "Resent batches that had been committed before.", &metrics.duplicates},
		{"sessions_opened_total", "WebSockets opened.", &metrics.sessions_opened},
		{"sessions_slow_total", "WebSockets closed because they lagged.", &metrics.sessions_slow},
		{"sender_pauses_total", "Times that the senders of a sheet waited for a receiver.", &metrics.sender_pauses},
		{"sent_bytes_total", "Bytes sent on WebSockets.", &metrics.bytes_sent},
		{"http_requests_total", "HTTP requests.", &metrics.http_requests},
		{"http_errors_total", "HTTP answers 500 and above.", &metrics.http_errors},
		{"http_timeouts_total", "HTTP connections closed because they were too slow.", &metrics.http_timeouts},
		{"redirects_total", "Requests redirected to another gateway.", &metrics.redirects},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		metrics_print_value(buf, counters[i].name, "counter", counters[i].help, *counters[i].value);
	metrics_print_refusals(buf);
	metrics_print_closes(buf);
	metrics_print_value(buf, "connections", "gauge", "HTTP and WebSocket connections.", (uint64_t) gateway.connections);
	metrics_print_value(buf, "loop_lag_microseconds", "gauge",
						"Longest iteration of the event loop in the last second.", gateway.loop_lag_us);
	metrics_print_head(buf, "commit_seconds", "histogram", "Time from sending a batch to its commit.");
	metrics_print_seconds(buf, "commit_seconds", "", &metrics.commit_us, 1);
	metrics_print_head(buf, "loop_turn_seconds", "histogram",
					   "Duration of iterations of the event loop, without its sleep.");
	metrics_print_seconds(buf, "loop_turn_seconds", "", &metrics.turn_us, 1);
	metrics_print_histogram(buf, "batch_edits", "Edits of a batch.", &metrics.batch_edits);
}

void
metrics_print_gauge(Buf *buf, const char *name, const char *help, uint64_t value)
{
	metrics_print_value(buf, name, "gauge", help, value);
}

void
metrics_print_counter(Buf *buf, const char *name, const char *help, uint64_t value)
{
	metrics_print_value(buf, name, "counter", help, value);
}
