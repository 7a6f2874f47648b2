/*
 * main.c - the benchmark `cache`: what pg_sheet's cache gives readers and writers, and what it costs not to have it.
 *
 * It prints tables, and as its last line one JSON object. The server is that of PG_SHEET_DATABASE, which
 * PG_SHEET_BENCH_RESTART starts again with other caches (`make bench` sets both). Every answer is checked against the
 * program's own picture of the sheet, cell by cell: a wrong one ends the benchmark.
 *
 * Settings from the environment:
 *     SHEETS=1000000       small sheets, among which some are opened
 *     CELLS=1000000        of the large sheet, which has 100 columns
 *     SECONDS=1            of a block of reads
 *     UPDATE_SHEETS=400    of the working set of the updates, 10,000 cells each; an eighth of them with ten times the
 * cells UPDATE_BATCHES=600   of 1000 edits, in a block of updates MISS_SHEETS=2000     of the 80/20 experiment
 *     ACCESSES=20000       of the 80/20 experiment, for each size of the cache
 *     PHASES="read update miss cold"
 *     PLOT=                a file for the picture of the 80/20 experiment (SVG)
 */
#include "bench.h"
#include "server.h"
#include "setting.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_COLS 100

static const struct
{
	const char *name;
	void (*run)(Bench *bench);
} phases[] = {{"read", read_run}, {"update", update_run}, {"miss", miss_run}, {"cold", cold_run}};

#define PHASES ((int) (sizeof(phases) / sizeof(phases[0])))

static void
phases_choose(bool chosen[PHASES])
{
	const char *setting = getenv("PHASES");
	char *words = strdup(setting && *setting ? setting : "read update miss cold");

	for (char *word = strtok(words, " ,"); word != NULL; word = strtok(NULL, " ,"))
	{
		int i = 0;

		while (i < PHASES && strcmp(word, phases[i].name) != 0)
			i++;
		if (i == PHASES)
			fail("PHASES=%s: there is no phase %s", setting, word);
		chosen[i] = true;
	}
	free(words);
}

Model *
bench_large(Bench *bench)
{
	if (bench->large == NULL)
	{
		Session *session = writer_open(false);

		bench->large = writer_make(session, "large", bench->cells / LARGE_COLS, LARGE_COLS, 1);
		model_index(bench->large);
		session_close(session);
	}
	return bench->large;
}

/* WAL files are made and filled when they are first needed, and used again afterwards: here they are there already. */
static void
wal_prepare(Bench *bench)
{
	for (int i = 0; i < 64; i++)
		session_run(bench->monitor, "SELECT pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()");
	session_run(bench->monitor, "CHECKPOINT");
}

static Bench *
bench_make(void)
{
	Bench *bench = allocate(sizeof(*bench));

	if (getenv("PG_SHEET_DATABASE") == NULL || getenv("PG_SHEET_BENCH_RESTART") == NULL)
		fail("PG_SHEET_DATABASE or PG_SHEET_BENCH_RESTART is not set: start it with make bench BENCH=cache");
	bench->sheets = (int64_t) setting("SHEETS", 1e6, 1000, 1e8);
	bench->cells = (int64_t) setting("CELLS", 1e6, 1e4, 1e7) / LARGE_COLS * LARGE_COLS;
	bench->seconds = setting("SECONDS", 1, 0.1, 600);
	bench->update_sheets = (int64_t) setting("UPDATE_SHEETS", 400, 40, 8000);
	bench->update_batches = (int64_t) setting("UPDATE_BATCHES", 600, 20, 1e6);
	bench->miss_sheets = (int64_t) setting("MISS_SHEETS", 2000, 100, 8000);
	bench->accesses = (int64_t) setting("ACCESSES", 20000, 1000, 1e8);
	bench->plot = getenv("PLOT") && *getenv("PLOT") ? getenv("PLOT") : NULL;
	bench->monitor = server_connect();
	wal_prepare(bench);
	return bench;
}

int
main(void)
{
	bool chosen[PHASES] = {false};
	int64_t start = now_ns();
	Bench *bench;

	setvbuf(stdout, NULL, _IOLBF, 0);
	phases_choose(chosen);
	bench = bench_make();
	for (int i = 0; i < PHASES; i++)
		if (chosen[i])
		{
			int64_t phase_start = now_ns();

			phases[i].run(bench);
			printf("phase %s: %.0f s\n", phases[i].name, (now_ns() - phase_start) / 1e9);
		}
	printf("%ld cells in the large sheet, %ld small sheets, blocks of %g s, %.0f s in all\n", (long) bench->cells,
		   (long) bench->sheets, bench->seconds, (now_ns() - start) / 1e9);
	report_print();
	session_close(bench->monitor);
	return 0;
}
