/*
 * metrics.c - counters of this process in Prometheus' text format.
 */
#include "metrics.h"

#include "gateway.h"

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

static void
metrics_print_value(Buf *buf, const char *name, const char *type, const char *help, uint64_t value)
{
	buf_printf(buf, "# HELP pg_sheet_%s %s\n# TYPE pg_sheet_%s %s\npg_sheet_%s %llu\n", name, help, name, type, name,
			   (unsigned long long) value);
}

static void
metrics_print_histogram(Buf *buf, const char *name, const char *help, const Histogram *histogram)
{
	uint64_t total = 0;

	buf_printf(buf, "# HELP pg_sheet_%s %s\n# TYPE pg_sheet_%s histogram\n", name, help, name);
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
		{"edits_foreign_total", "Edits made by SQL or another gateway and passed on.", &metrics.edits_foreign},
		{"batches_total", "Batches committed.", &metrics.batches},
		{"groups_total", "Transactions of which each carried the batches of all sheets that were ready.",
		 &metrics.groups},
		{"batches_resent_total", "Batches sent again after an unknown outcome.", &metrics.batches_resent},
		{"batches_duplicate_total", "Resent batches that had been committed before.", &metrics.duplicates},
		{"refused_locked_total", "Edits refused: the cell is locked by another user.", &metrics.refused_locked},
		{"refused_range_total", "Edits refused: outside the limits.", &metrics.refused_range},
		{"refused_malformed_total", "Messages refused: malformed.", &metrics.refused_malformed},
		{"refused_role_total", "Edits refused: the user may not edit.", &metrics.refused_role},
		{"refused_attempts_address_total", "Passwords not tried: too many attempts of the address.",
		 &metrics.refused_attempts_address},
		{"refused_attempts_account_total", "Passwords not tried: too many attempts on the account.",
		 &metrics.refused_attempts_account},
		{"refused_password_queue_total", "Passwords not tried: too many were waiting.",
		 &metrics.refused_password_queue},
		{"sessions_opened_total", "WebSockets opened.", &metrics.sessions_opened},
		{"sessions_slow_total", "WebSockets closed because they did not read.", &metrics.sessions_slow},
		{"sender_pauses_total", "Times that senders of a sheet were paused.", &metrics.sender_pauses},
		{"sent_bytes_total", "Bytes given to WebSockets.", &metrics.bytes_sent},
		{"http_requests_total", "HTTP requests.", &metrics.http_requests},
		{"http_errors_total", "HTTP answers 500 and above.", &metrics.http_errors},
		{"http_timeouts_total", "HTTP connections ended because they were too slow.", &metrics.http_timeouts},
		{"connections_refused_total", "Connections refused beyond a limit.", &metrics.connections_refused},
		{"redirects_total", "Requests sent to another gateway.", &metrics.redirects},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		metrics_print_value(buf, counters[i].name, "counter", counters[i].help, *counters[i].value);
	metrics_print_value(buf, "connections", "gauge", "HTTP and WebSocket connections.", (uint64_t) gateway.connections);
	metrics_print_value(buf, "loop_lag_microseconds", "gauge", "Longest turn of the event loop in the last second.",
						gateway.loop_lag_us);
	metrics_print_histogram(buf, "commit_microseconds", "From sending a batch to its commit.", &metrics.commit_us);
	metrics_print_histogram(buf, "batch_edits", "Edits of a batch.", &metrics.batch_edits);
}

void
metrics_print_gauge(Buf *buf, const char *name, const char *help, uint64_t value)
{
	metrics_print_value(buf, name, "gauge", help, value);
}
