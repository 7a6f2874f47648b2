/*
 * cold.c - opening sheets that are not in the cache: small ones among very many, and the first window of a large one.
 *
 * Three states of everything else, the session's connection being warm in all of them:
 *     buffers  the pages that are needed lie in the server's shared buffers
 *     system   the server has just been started: they lie in the system's page cache
 *     disk     not even there (which is checked: the backend must have read from the disk)
 */
#include "bench.h"
#include "reader.h"
#include "server.h"
#include "small.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESTARTS   3
#define SAMPLES	   300 /* small sheets after each start */
#define LARGE_WARM 5   /* times that a large sheet is opened with its pages in the buffers */
#define LARGES	   2

typedef enum State
{
	BUFFERS,
	SYSTEM,
	DISK,
	STATES
} State;

static const char *const state_keys[STATES] = {"buffers", "system", "disk"};
static const char *const state_names[STATES] = {"pages in shared buffers", "pages in the system's cache",
												"pages on the disk"};

/* Milliseconds. */
typedef struct Samples
{
	double ms[RESTARTS * SAMPLES];
	int count;
} Samples;

typedef struct Cold
{
	Bench *bench;
	SmallSheets small;
	Model *large[LARGES]; /* with a version, and with a log of all its cells */
	Samples smalls[STATES], larges[LARGES][STATES];
	double disk_bytes; /* that small sheets have read in the state `disk` */
	int64_t opened;	   /* small sheets, in the order of their ids, which are shuffled */
} Cold;

static void
samples_add(Samples *samples, int64_t ns)
{
	samples->ms[samples->count++] = ns / 1e6;
}

static int
samples_compare(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
samples_quantile(Samples *samples, double quantile)
{
	qsort(samples->ms, samples->count, sizeof(double), samples_compare);
	return samples->ms[(int) (quantile * (samples->count - 1))];
}

/* ---- small sheets ---- */

/* None comes twice while the server runs. */
static int64_t
cold_next_small(Cold *cold)
{
	return cold->small.ids[cold->opened++ % cold->small.count];
}

static void
cold_shuffle(Cold *cold)
{
	uint64_t random = 10;

	for (int64_t i = cold->small.count - 1; i > 0; i--)
	{
		int64_t j = random_next(&random) % (i + 1), id = cold->small.ids[i];

		cold->small.ids[i] = cold->small.ids[j];
		cold->small.ids[j] = id;
	}
}

static int64_t
cold_open_small(Session *session, int64_t sheet_id)
{
	Model *model = small_model(sheet_id);
	uint8_t bytes[MODEL_MAX_BYTES];
	size_t len;
	int64_t ns;

	model_fill(model, bytes, &len);
	ns = reader_whole(session, WAY_RANGE, model, NULL);
	model_free(model);
	return ns;
}

/* What a session does when it opens its first sheets is not what is measured. */
static Session *
cold_connect(Cold *cold)
{
	Session *session = server_connect();

	reader_prepare(session, false);
	for (int i = 0; i < 10; i++)
		cold_open_small(session, cold_next_small(cold));
	return session;
}

static int64_t
cold_loads(Cold *cold)
{
	return session_number(cold->bench->monitor, "SELECT loads FROM sheet.cache_stats");
}

/* Pages of a sheet come into the buffers through the tables, which leave the cache alone. */
static void
cold_warm_pages(Cold *cold, int64_t sheet_id)
{
	static const char *const tables[] = {"sheet",	"member",	 "log_trim", "ownership",
										 "segment", "log_batch", "version",	 "version_tile"};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		session_number(cold->bench->monitor, "SELECT count(t::text) FROM sheet.%s t WHERE sheet_id = %ld", tables[i],
					   (long) sheet_id);
}

static void
cold_measure_small(Cold *cold, Session *session, State state)
{
	int64_t before = cold_loads(cold);
	int64_t read = server_bytes_read(session);

	for (int i = 0; i < SAMPLES; i++)
	{
		int64_t sheet_id = cold_next_small(cold);

		if (state == BUFFERS)
			cold_warm_pages(cold, sheet_id);
		samples_add(&cold->smalls[state], cold_open_small(session, sheet_id));
	}
	if (cold_loads(cold) - before != SAMPLES)
		fail("%ld of %d small sheets were not in the cache", (long) (cold_loads(cold) - before), SAMPLES);
	if (state != DISK || read < 0)
		return;
	read = server_bytes_read(session) - read;
	if (read == 0)
		fail("nothing was read from the disk: the page cache was not dropped");
	cold->disk_bytes += (double) read / SAMPLES / RESTARTS;
}

/* ---- large sheets ---- */

static void
cold_measure_large(Cold *cold, Session *session, State state)
{
	Window first = {0, 0, WINDOW_ROWS - 1, WINDOW_COLS - 1};

	for (int i = 0; i < LARGES; i++)
		samples_add(&cold->larges[i][state], reader_window(session, WAY_RANGE, cold->large[i], first));
}

/* Being in the trash takes a sheet out of the cache. */
static void
cold_measure_large_warm(Cold *cold, Session *session)
{
	for (int run = 0; run < LARGE_WARM; run++)
	{
		int64_t before;

		for (int i = 0; i < LARGES; i++)
		{
			session_run(cold->bench->monitor, "SELECT sheet.trash(%ld)", (long) cold->large[i]->sheet_id);
			session_run(cold->bench->monitor, "SELECT sheet.recover(%ld)", (long) cold->large[i]->sheet_id);
		}
		before = cold_loads(cold);
		cold_measure_large(cold, session, BUFFERS);
		if (cold_loads(cold) - before != LARGES)
			fail("the large sheets were still in the cache");
	}
}

/* ---- all of it ---- */

static void
cold_make(Cold *cold)
{
	Bench *bench = cold->bench;
	Model *tail = bench_large(bench);
	Session *session;

	cold->large[1] = tail;
	session = writer_open(false);
	cold->large[0] = writer_make(session, "large, version", tail->rows, tail->cols, 1);
	writer_commit(session, cold->large[0]);
	session_close(session);
	model_index(cold->large[0]);
	small_make(bench, &cold->small);
	small_report_bytes(bench, &cold->small);
	cold_shuffle(cold);
	session_run(bench->monitor, "CHECKPOINT");
}

static void
cold_measure(Cold *cold)
{
	for (State state = SYSTEM; state <= DISK; state++)
		for (int start = 0; start < RESTARTS; start++)
		{
			Session *session;

			server_restart(cold->bench, SERVER_AMPLE, state == DISK);
			session = cold_connect(cold);
			cold_measure_large(cold, session, state);
			cold_measure_small(cold, session, state);
			if (state == SYSTEM && start == RESTARTS - 1)
			{
				cold_measure_small(cold, session, BUFFERS);
				cold_measure_large_warm(cold, session);
			}
			session_close(session);
		}
}

static void
report_samples(const char *what, const char *key, Samples samples[STATES], double quantile)
{
	for (State state = BUFFERS; state < STATES; state++)
	{
		char *text = allocate(96), *name = allocate(64);

		snprintf(text, 96, "  %s, %s, ms", what, state_names[state]);
		snprintf(name, 64, "%s_%s", key, state_keys[state]);
		report_headline(name, text, samples_quantile(&samples[state], quantile));
	}
}

static void
cold_report(Cold *cold)
{
	report_section("opening a sheet of 10 x 10 cells that is not in the cache, among all of them");
	report_samples("p50", "cold_small_p50_ms", cold->smalls, 0.5);
	report_samples("p99", "cold_small_p99_ms", cold->smalls, 0.99);
	report_headline("cold_small_ms", "  the last one: its p99 from the disk, ms",
					samples_quantile(&cold->smalls[DISK], 0.99));
	report_headline("cold_small_disk_kb", "  read from the disk, kB", cold->disk_bytes / 1e3);
	report_section("opening the first window of a large sheet that is not in the cache, medians");
	report_samples("with a version", "cold_window_version_ms", cold->larges[0], 0.5);
	report_samples("with a log of all cells", "cold_window_log_ms", cold->larges[1], 0.5);
	report_headline("cold_window_ms", "  cold_window_ms: with a version, from the disk",
					samples_quantile(&cold->larges[0][DISK], 0.5));
	report_headline("cold_window_tail_ms", "  cold_window_tail_ms: with a log of all cells, from the disk",
					samples_quantile(&cold->larges[1][DISK], 0.5));
}

void
cold_run(Bench *bench)
{
	Cold *cold = allocate(sizeof(*cold));

	cold->bench = bench;
	cold_make(cold);
	cold_measure(cold);
	cold_report(cold);
}
