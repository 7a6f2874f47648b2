/*
 * metrics.c - counters of this process, and figures of the operating system, in Prometheus' text format.
 */
#include "core/metrics.h"

#include "core/gateway.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* Prints every `step`th bucket. Bounds and sum are divided by `unit`. */
static void
metrics_print_histogram(Buf *buf, const char *name, const char *label, const Histogram *histogram, int step,
						double unit)
{
	const char *comma = label[0] != '\0' ? "," : "";
	uint64_t total = 0;

	for (int i = 0; i < METRICS_BUCKETS; i++)
	{
		total += histogram->buckets[i];
		if (i % step == 0)
			buf_printf(buf, "pg_sheet_%s_bucket{%s%sle=\"%.9g\"} %llu\n", name, label, comma,
					   (double) (1ULL << i) / unit, (unsigned long long) total);
	}
	buf_printf(buf, "pg_sheet_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma,
			   (unsigned long long) histogram->count);
	buf_printf(buf, "pg_sheet_%s_sum{%s} %.15g\npg_sheet_%s_count{%s} %llu\n", name, label,
			   (double) histogram->sum / unit, name, label, (unsigned long long) histogram->count);
}

void
metrics_print_seconds(Buf *buf, const char *name, const char *label, const Histogram *histogram, int step)
{
	metrics_print_histogram(buf, name, label, histogram, step, 1e6);
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
		{"pastes", &metrics.refused_pastes},
		{"connections", &metrics.connections_refused},
		{"displaced", &metrics.connections_displaced},
	};

	metrics_print_head(
		buf, "refused_total", "counter",
		"Refused edits (locked, out of range, malformed, role), passwords (too many attempts of an "
		"address or on an account, queue full), pastes, and connections (refused, or ended to make room).");
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
	metrics_print_value(buf, "connections", "gauge", "HTTP and WebSocket connections, without those at admin-address.",
						(uint64_t) gateway.connections);
	metrics_print_value(buf, "loop_lag_microseconds", "gauge",
						"Longest iteration of the event loop in the last second.", gateway.loop_lag_us);
	metrics_print_head(buf, "commit_seconds", "histogram", "Time from sending a batch to its commit.");
	metrics_print_seconds(buf, "commit_seconds", "", &metrics.commit_us, 1);
	metrics_print_head(buf, "loop_turn_seconds", "histogram",
					   "Duration of iterations of the event loop, without its sleep.");
	metrics_print_seconds(buf, "loop_turn_seconds", "", &metrics.turn_us, 1);
	metrics_print_head(buf, "batch_edits", "histogram", "Edits of a batch.");
	metrics_print_histogram(buf, "batch_edits", "", &metrics.batch_edits, 1, 1);
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

/* ---- the process, under Prometheus' own names ---- */

static unsigned long long
metrics_resident_bytes(void)
{
	unsigned long long size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (unsigned long long) sysconf(_SC_PAGESIZE);
}

static unsigned
metrics_open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	if (directory == NULL)
		return 0;
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count - 3; /* ".", "..", and the directory itself */
}

static void
metrics_print_process_value(Buf *buf, const char *name, const char *type, const char *help, double value)
{
	buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

void
metrics_print_process(Buf *buf)
{
	struct rusage usage = {0};
	struct rlimit limit = {0};
	struct mallinfo2 heap = mallinfo2();

	(void) getrusage(RUSAGE_SELF, &usage);
	(void) getrlimit(RLIMIT_NOFILE, &limit);
	metrics_print_process_value(buf, "process_cpu_seconds_total", "counter", "Processor time, user and system.",
								(double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
									(double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	metrics_print_process_value(buf, "process_resident_memory_bytes", "gauge", "Memory that is resident.",
								(double) metrics_resident_bytes());
	metrics_print_process_value(buf, "process_open_fds", "gauge", "Open file descriptors.", metrics_open_descriptors());
	metrics_print_process_value(buf, "process_max_fds", "gauge", "File descriptors that may be open.",
								(double) limit.rlim_cur);
	metrics_print_process_value(buf, "process_start_time_seconds", "gauge", "When the process began, since 1970.",
								(double) gateway.started);
	metrics_print_process_value(buf, "pg_sheet_heap_used_bytes", "gauge", "Memory that the allocator has given out.",
								(double) (heap.uordblks + heap.hblkhd));
	metrics_print_process_value(buf, "pg_sheet_heap_free_bytes", "gauge", "Memory that the allocator keeps.",
								(double) heap.fordblks);
}
