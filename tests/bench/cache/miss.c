/*
 * miss.c - how many accesses find their sheet in the cache: 80 % of them go to 20 % of the sheets, by chance.
 *
 * The sheets are of many sizes, up to a tile. For each size of the cache the same accesses go to the server and to an
 * exact LRU cache in this program, which counts the bytes that sheet.cache_entries has said. All sheets are read once
 * before, and a quarter of the accesses comes before the ones that count.
 */
#include "bench.h"
#include "lru.h"
#include "plot.h"
#include "reader.h"
#include "server.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>

/* One tile each, which is what the cache takes in and out. */
#define SHEET_COLS	   16
#define SHEET_MAX_ROWS 64
#define SHEET_MIN_ROWS 4
#define SIZES		   7

typedef struct Misses
{
	Bench *bench;
	Model **models;
	int64_t *bytes; /* of each sheet in the cache */
	int64_t *order; /* the first fifth is wanted often */
	int64_t total;
} Misses;

static const struct
{
	double size;
	const char *name;
} sizes[SIZES] = {{1.0 / 16, "1/16"}, {1.0 / 8, "1/8"}, {1.0 / 4, "1/4"}, {3.0 / 8, "3/8"},
				  {1.0 / 2, "1/2"},	  {3.0 / 4, "3/4"}, {1, "1"}};

/* ---- sheets ---- */

static void
misses_shuffle(Misses *misses)
{
	uint64_t random = 20;

	for (int64_t i = 0; i < misses->bench->miss_sheets; i++)
	{
		int64_t j = random_next(&random) % (i + 1);

		misses->order[i] = misses->order[j];
		misses->order[j] = i;
	}
}

static void
misses_make(Misses *misses)
{
	Bench *bench = misses->bench;
	Session *session = writer_open(false);
	uint64_t random = 7;

	for (int64_t i = 0; i < bench->miss_sheets; i++)
	{
		int rows = SHEET_MIN_ROWS + random_next(&random) % (SHEET_MAX_ROWS - SHEET_MIN_ROWS + 1);

		misses->models[i] = writer_make(session, "miss", rows, SHEET_COLS, 5000 + i);
		writer_commit(session, misses->models[i]);
	}
	session_close(session);
}

/* The bytes that each takes when it has just been read. */
static void
misses_weigh(Misses *misses)
{
	Bench *bench = misses->bench;
	int64_t first = misses->models[0]->sheet_id;
	PGresult *result;

	server_restart(bench, SERVER_AMPLE, false);
	reader_prepare(bench->monitor, false);
	for (int64_t i = 0; i < bench->miss_sheets; i++)
		reader_whole(bench->monitor, WAY_STREAM, misses->models[i], NULL);
	result =
		session_query(bench->monitor,
					  "SELECT sheet_id - %ld, bytes FROM sheet.cache_entries WHERE cached AND sheet_id BETWEEN %ld "
					  "AND %ld",
					  (long) first, (long) first, (long) (first + bench->miss_sheets - 1));
	if (PQntuples(result) != bench->miss_sheets)
		fail("the sheets of the phase miss do not fit into the cache of bench.conf");
	for (int row = 0; row < PQntuples(result); row++)
		misses->total += misses->bytes[atoll(PQgetvalue(result, row, 0))] = atoll(PQgetvalue(result, row, 1));
	PQclear(result);
}

/* ---- accesses ---- */

static int64_t
misses_next(const Misses *misses, uint64_t *random)
{
	int64_t often = misses->bench->miss_sheets / 5;

	if (random_next(random) % 100 < 80)
		return misses->order[random_next(random) % often];
	return misses->order[often + random_next(random) % (misses->bench->miss_sheets - often)];
}

/* Calls back with each access; `counts` is false before the ones that count. */
static void
misses_play(const Misses *misses, void (*access)(void *arg, int64_t sheet, bool counts), void *arg)
{
	Bench *bench = misses->bench;
	uint64_t random = 81;

	for (int64_t i = 0; i < bench->miss_sheets; i++)
		access(arg, i, false);
	for (int64_t i = -bench->accesses / 4; i < bench->accesses; i++)
		access(arg, misses_next(misses, &random), i >= 0);
}

typedef struct Exact
{
	Lru *lru;
	int64_t misses;
} Exact;

static void
exact_access(void *arg, int64_t sheet, bool counts)
{
	Exact *exact = arg;

	exact->misses += !lru_access(exact->lru, sheet) && counts;
}

static double
misses_exact(const Misses *misses, int64_t capacity)
{
	Exact exact = {.lru = lru_create(misses->bytes, misses->bench->miss_sheets, capacity)};

	misses_play(misses, exact_access, &exact);
	lru_free(exact.lru);
	return (double) exact.misses / misses->bench->accesses;
}

typedef struct Measured
{
	const Misses *misses;
	Session *session;
	int64_t hits, ns; /* hits: of the server's count */
	bool counting;
} Measured;

static int64_t
measured_hits(const Misses *misses)
{
	return session_number(misses->bench->monitor, "SELECT hits FROM sheet.cache_stats");
}

static void
measured_access(void *arg, int64_t sheet, bool counts)
{
	Measured *measured = arg;
	int64_t ns;

	if (counts && !measured->counting)
	{
		measured->counting = true;
		measured->hits = -measured_hits(measured->misses);
	}
	ns = reader_cell(measured->session, WAY_RANGE, measured->misses->models[sheet], 0, 0);
	if (counts)
		measured->ns += ns;
}

static double
misses_measured(const Misses *misses, int64_t capacity, double *us, double *held)
{
	Measured measured = {.misses = misses};

	server_restart(misses->bench, capacity / 1024, false);
	measured.session = server_connect();
	reader_prepare(measured.session, false);
	misses_play(misses, measured_access, &measured);
	measured.hits += measured_hits(misses);
	*held = session_number(misses->bench->monitor, "SELECT bytes FROM sheet.cache_stats") / (double) capacity;
	session_close(measured.session);
	*us = measured.ns / 1e3 / misses->bench->accesses;
	return 1 - (double) measured.hits / misses->bench->accesses;
}

/* ---- the table ---- */

static void
misses_measure(const Misses *misses)
{
	PlotPoint points[SIZES];
	double most = 0;

	printf("%ld sheets of %.1f MB in the cache; 80 %% of %ld accesses go to 20 %% of the sheets\n",
		   (long) misses->bench->miss_sheets, misses->total / 1e6, (long) misses->bench->accesses);
	printf("%10s %10s %14s %18s %14s %14s\n", "cache", "MB", "misses", "of an exact LRU", "us an access",
		   "held at end");
	for (int i = 0; i < SIZES; i++)
	{
		int64_t capacity = (int64_t) (misses->total * sizes[i].size) / 1024 * 1024;
		double us, held;

		points[i].size = sizes[i].size;
		points[i].exact = misses_exact(misses, capacity);
		points[i].measured = misses_measured(misses, capacity, &us, &held);
		if (most < points[i].measured - points[i].exact)
			most = points[i].measured - points[i].exact;
		printf("%10s %10.2f %12.2f %% %16.2f %% %14.1f %12.1f %%\n", sizes[i].name, capacity / 1e6,
			   points[i].measured * 100, points[i].exact * 100, us, held * 100);
	}
	putchar('\n');
	report_section("80 % of the accesses on 20 % of the sheets");
	report_headline("miss_quarter_percent", "  misses with a cache of a quarter of the sheets, per cent",
					points[2].measured * 100);
	report_headline("lru_quarter_percent", "  of an exact LRU cache, per cent", points[2].exact * 100);
	report_headline("miss_excess_points", "  most misses above an exact LRU cache, in points of a per cent",
					most * 100);
	if (misses->bench->plot != NULL)
		plot_write(misses->bench->plot, points, SIZES);
}

void
miss_run(Bench *bench)
{
	Misses misses = {.bench = bench,
					 .models = allocate(bench->miss_sheets * sizeof(Model *)),
					 .bytes = allocate(bench->miss_sheets * sizeof(int64_t)),
					 .order = allocate(bench->miss_sheets * sizeof(int64_t))};

	misses_make(&misses);
	misses_shuffle(&misses);
	misses_weigh(&misses);
	misses_measure(&misses);
	for (int64_t i = 0; i < bench->miss_sheets; i++)
		model_free(misses.models[i]);
}
