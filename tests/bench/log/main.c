/*
 * main.c - the benchmark `log`: pg_sheet's log against a heap table with a primary key, side by side in one run.
 *
 *     log_bench MODULE
 *
 * It prints a table, and as its last line one JSON object: *_ratio is above 1 where pg_sheet is better. The server is
 * that of PG_SHEET_DATABASE (a conninfo of a superuser on this machine, in a cluster of its own: `make bench` makes
 * one with the settings of bench.conf). MODULE is replay_module.so.
 *
 * Settings from the environment: EDITS=2000000 (of each side, over two sheets), SECONDS=0.5 (of a block of single
 * edits), PHASES="replay queries single" (which of these to measure after the appends). Both sides make the same edits
 * from the same seeds, take turns in short blocks, and the medians of the blocks are what is reported: what else
 * happens on the machine meets both.
 */
#include "phases.h"
#include "report.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t
sheet_make(Bench *bench, const char *kind, int number)
{
	return session_number(bench->monitor, "SELECT sheet.create('%s %d', %d, %d)", kind, number, WORKLOAD_ROWS,
						  WORKLOAD_COLS);
}

static void
feeds_make(Bench *bench)
{
	for (int i = 0; i < LARGE_SHEETS; i++)
	{
		int64_t id = sheet_make(bench, "large", i);

		feed_init(&bench->large[HEAP][i], HEAP, id, i + 1);
		feed_init(&bench->large[SHEET][i], SHEET, id, i + 1);
	}
	for (int i = 0; i < MAX_WRITERS; i++)
	{
		int64_t id = sheet_make(bench, "small", i);

		feed_init(&bench->small[HEAP][i], HEAP, id, i + 101);
		feed_init(&bench->small[SHEET][i], SHEET, id, i + 101);
	}
}

static void
module_load(Bench *bench, const char *module)
{
	session_run(bench->monitor,
				"CREATE FUNCTION bench.replay_heap(regclass, bigint, OUT edits bigint, OUT sum bigint)"
				" LANGUAGE c STRICT AS '%s', 'bench_replay_heap';"
				"CREATE FUNCTION bench.replay_sheet(bigint, OUT edits bigint, OUT sum bigint)"
				" LANGUAGE c STRICT AS '%s', 'bench_replay_sheet'",
				module, module);
}

/* WAL files are made and filled when they are first needed, and used again afterwards: as in a server that has run for
 * a while, they are there before the side that writes more of them pays for it. */
static void
wal_prepare(Bench *bench)
{
	for (int i = 0; i < 64; i++)
		session_run(bench->monitor, "SELECT pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()");
	session_run(bench->monitor, "CHECKPOINT");
}

/* As in such a server, too, all of shared_buffers has been in use: the kernel finds and clears memory when it is first
 * touched, which would be a sixth of what either side's appends cost. Rows of INSERT, one a page: other statements that
 * write or read so much keep to a few buffers. */
static void
buffers_prepare(Bench *bench)
{
	session_run(bench->monitor, "CREATE UNLOGGED TABLE bench.fill (bytes text);"
								"ALTER TABLE bench.fill ALTER bytes SET STORAGE PLAIN;"
								"INSERT INTO bench.fill SELECT repeat('x', 8000) FROM generate_series(1,"
								" (SELECT setting::bigint FROM pg_settings WHERE name = 'shared_buffers'));"
								"DROP TABLE bench.fill");
}

static Bench *
bench_make(const char *module)
{
	Bench *bench = allocate(sizeof(*bench));

	bench->conninfo = getenv("PG_SHEET_DATABASE");
	if (bench->conninfo == NULL)
		fail("PG_SHEET_DATABASE is not set: start it with make bench BENCH=log");
	bench->edits = (int64_t) setting("EDITS", 2e6, LARGE_SHEETS * ROUNDS * SIDE_MAX_EDITS, 1e9);
	bench->seconds = setting("SECONDS", 0.5, 0.1, 600);
	bench->monitor = session_open(bench->conninfo);
	side_create(bench->monitor);
	for (int i = 1; i <= WORKLOAD_USERS; i++)
		session_run(bench->monitor, "SELECT sheet.account_create('user %d', NULL, '-')", i);
	module_load(bench, module);
	feeds_make(bench);
	buffers_prepare(bench);
	wal_prepare(bench);
	return bench;
}

/* Edits that a side lacks: of every sheet, what its log holds against what was sent. */
static int64_t
edits_lost(Bench *bench, const Feed *feeds, int count)
{
	int64_t lost = 0;

	for (const Feed *feed = feeds; feed < feeds + count; feed++)
	{
		int64_t found = session_number(bench->monitor, "SELECT count(*) FROM %s WHERE sheet_id = %ld%s",
									   feed->side == HEAP ? "bench.log" : "sheet.log", (long) feed->sheet_id,
									   feed->side == HEAP ? "" : " AND kind = 'set'");

		lost += labs(feed_edits(feed) - found);
	}
	return lost;
}

/* The row counts of both logs against what was sent. */
static int64_t
bench_check(Bench *bench)
{
	int64_t lost[SIDES];

	for (int side = 0; side < SIDES; side++)
		lost[side] =
			edits_lost(bench, bench->large[side], LARGE_SHEETS) + edits_lost(bench, bench->small[side], MAX_WRITERS);
	report_section("at the end");
	report_add((Figure){"lost",
						"  edits that were sent and are not in the log",
						NULL,
						false,
						{(double) lost[HEAP], (double) lost[SHEET]}});
	return lost[HEAP] + lost[SHEET];
}

/* Whether the setting PHASES names the phase. */
static bool
phase_wanted(const char *name)
{
	const char *phases = getenv("PHASES");

	return phases == NULL || *phases == '\0' || strstr(phases, name) != NULL;
}

int
main(int argc, char **argv)
{
	Bench *bench;
	int64_t start = now_ns(), lost;

	if (argc != 2)
		fail("usage: log_bench MODULE");
	bench = bench_make(argv[1]);
	append_run(bench);
	if (phase_wanted("replay"))
		replay_run(bench);
	if (phase_wanted("queries"))
		queries_run(bench);
	if (phase_wanted("single"))
		single_run(bench);
	lost = bench_check(bench);
	printf("%ld edits in 2 sheets of %d x %d cells, blocks of %g s, %.0f s in all\n", (long) bench->edits,
		   WORKLOAD_ROWS, WORKLOAD_COLS, bench->seconds, (now_ns() - start) / 1e9);
	report_print();
	session_close(bench->monitor);
	return lost == 0 ? 0 : 1;
}
