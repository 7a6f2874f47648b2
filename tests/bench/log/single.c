/*
 * single.c - transactions of one edit, durable: latency and WAL with one writer, throughput with several. Each writer
 * has a connection and a sheet of its own; the sides take turns in blocks of SECONDS.
 */
#include "awake.h"
#include "phases.h"
#include "report.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_SAMPLES 1000000

typedef struct Writer
{
	pthread_t thread;
	Session *session;
	Feed *feed;
	int64_t stop_at;
	double *samples; /* microseconds; NULL: not wanted */
	int64_t commits;
} Writer;

static void *
writer_main(void *arg)
{
	Writer *writer = arg;
	int64_t before = now_ns();

	for (writer->commits = 0; before < writer->stop_at; writer->commits++)
	{
		int64_t after;

		side_append(writer->session, writer->feed, 1);
		after = now_ns();
		if (writer->samples && writer->commits < MAX_SAMPLES)
			writer->samples[writer->commits] = (after - before) / 1e3;
		before = after;
	}
	return NULL;
}

/* Commits a second of these writers together. */
static double
writers_run(Writer *writers, int count, double seconds)
{
	int64_t start = now_ns(), commits = 0;

	for (int i = 0; i < count; i++)
	{
		writers[i].stop_at = start + (int64_t) (seconds * 1e9);
		if (pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]) != 0)
			fail("a thread could not be started");
	}
	for (int i = 0; i < count; i++)
	{
		pthread_join(writers[i].thread, NULL);
		commits += writers[i].commits;
	}
	return commits / ((now_ns() - start) / 1e9);
}

static void
writers_open(Bench *bench, SideName side, Writer *writers, int count)
{
	for (int i = 0; i < count; i++)
	{
		writers[i] = (Writer){.session = session_open(bench->conninfo), .feed = &bench->small[side][i]};
		side_prepare(writers[i].session);
		/* What a first edit costs a connection and a sheet is not what is measured. */
		side_append(writers[i].session, writers[i].feed, 1);
	}
}

static void
writers_close(Writer *writers, int count)
{
	for (int i = 0; i < count; i++)
		session_close(writers[i].session);
}

/* ---- one writer ---- */

typedef struct Single
{
	double latency[ROUNDS], cpu[ROUNDS], wal[ROUNDS];
	int64_t commits, stored;
} Single;

static void
single_block(Bench *bench, Writer *writer, Single *single, int round)
{
	int64_t cpu = session_cpu_ns(writer->session);
	int64_t wal = session_wal(bench->monitor).position;
	double count;

	writers_run(writer, 1, bench->seconds);
	count = writer->commits;
	single->cpu[round] = (session_cpu_ns(writer->session) - cpu) / count / 1e3;
	single->wal[round] = (session_wal(bench->monitor).position - wal) / count;
	single->latency[round] = median(writer->samples, count < MAX_SAMPLES ? count : MAX_SAMPLES);
	single->commits += writer->commits;
}

static void
single_report(Single singles[SIDES])
{
	report_section("1 edit a transaction");
	report_headline("halt_poll_us", "  an idle processor looks for work for so long before it halts, us (-1: unknown)",
					awake_halt_poll_us());
#define SINGLE_MEDIANS(field) {median(singles[HEAP].field, ROUNDS), median(singles[SHEET].field, ROUNDS)}
	report_add((Figure){"single_p50_us", "  1 client: p50 of the latency, us", "single_latency_ratio", false,
						SINGLE_MEDIANS(latency)});
	report_add((Figure){"single_cpu_us", "  1 client: CPU of the backend, us", NULL, false, SINGLE_MEDIANS(cpu)});
	report_add((Figure){"single_wal_bytes", "  1 client: WAL, bytes", "single_wal_ratio", false, SINGLE_MEDIANS(wal)});
	report_add((Figure){"single_stored_bytes",
						"  1 client: stored with indexes and TOAST, bytes",
						NULL,
						false,
						{(double) singles[HEAP].stored / singles[HEAP].commits,
						 (double) singles[SHEET].stored / singles[SHEET].commits}});
}

static void
single_latency(Bench *bench)
{
	static Single singles[SIDES];
	Writer writers[SIDES];

	vacuum(bench);
	for (int side = 0; side < SIDES; side++)
	{
		writers_open(bench, side, &writers[side], 1);
		writers[side].samples = allocate(MAX_SAMPLES * sizeof(double));
		singles[side].stored = -stored_bytes(bench, side);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int turn = 0; turn < SIDES; turn++)
		{
			SideName side = side_of(round, turn);

			single_block(bench, &writers[side], &singles[side], round);
		}
	vacuum(bench);
	for (int side = 0; side < SIDES; side++)
	{
		singles[side].stored += stored_bytes(bench, side);
		free(writers[side].samples);
		writers_close(&writers[side], 1);
	}
	single_report(singles);
}

/* ---- several ---- */

static void
single_throughput(Bench *bench, int count, Figure figure)
{
	Writer writers[SIDES][MAX_WRITERS];
	double rates[SIDES][ROUNDS];

	for (int side = 0; side < SIDES; side++)
		writers_open(bench, side, writers[side], count);
	for (int round = 0; round < ROUNDS; round++)
		for (int turn = 0; turn < SIDES; turn++)
		{
			SideName side = side_of(round, turn);

			rates[side][round] = writers_run(writers[side], count, bench->seconds);
		}
	for (int side = 0; side < SIDES; side++)
	{
		writers_close(writers[side], count);
		figure.values[side] = median(rates[side], ROUNDS);
	}
	report_add(figure);
}

void
single_run(Bench *bench)
{
	single_latency(bench);
	single_throughput(bench, 4, (Figure){"tps4", "  4 writers: commits a second", "tps4_ratio", true, {0}});
	single_throughput(bench, 16, (Figure){"tps16", "  16 writers: commits a second", "tps16_ratio", true, {0}});
}
