/*
 * append.c - batches of 1000 edits, one transaction each, two sheets in turns; the sides take turns in blocks.
 *
 * The CPU time is the backend's alone, the client's and the WAL writer's is not in it. Stored bytes are after VACUUM,
 * without what the empty relations took.
 */
#include "phases.h"
#include "report.h"

#define BATCH SIDE_MAX_EDITS

typedef struct Cost
{
	double cpu_us, wall_us, wal, wal_records; /* an edit */
} Cost;

int64_t
stored_bytes(Bench *bench, SideName side)
{
	return session_number(bench->monitor, "SELECT pg_total_relation_size('%s')",
						  side == HEAP ? "bench.log" : "sheet.log_batch");
}

void
vacuum(Bench *bench)
{
	session_run(bench->monitor, "VACUUM ANALYZE bench.log");
	session_run(bench->monitor, "VACUUM ANALYZE sheet.log_batch");
}

static Cost
append_block(Bench *bench, Session *session, SideName side, int64_t batches)
{
	int64_t cpu = session_cpu_ns(session), wall = now_ns();
	Wal before = session_wal(bench->monitor), after;
	double edits = (double) batches * BATCH;

	for (int64_t i = 0; i < batches; i++)
		side_append(session, &bench->large[side][i % LARGE_SHEETS], BATCH);
	cpu = session_cpu_ns(session) - cpu;
	wall = now_ns() - wall;
	session_report_statistics(session);
	after = session_wal(bench->monitor);
	return (Cost){.cpu_us = cpu / edits / 1e3,
				  .wall_us = wall / edits / 1e3,
				  .wal = (after.position - before.position) / edits,
				  .wal_records = (after.bytes - before.bytes) / edits};
}

static double
median_of(Cost costs[ROUNDS], size_t offset)
{
	double values[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		values[i] = *(double *) ((char *) &costs[i] + offset);
	return median(values, ROUNDS);
}

#define MEDIANS(costs, field)                                                                                          \
	{                                                                                                                  \
		median_of(costs[HEAP], offsetof(Cost, field)), median_of(costs[SHEET], offsetof(Cost, field))                  \
	}

static void
append_report(Cost costs[SIDES][ROUNDS], const double stored[SIDES])
{
	report_section("1000 edits a transaction, 1 client");
	report_add((Figure){"append_cpu_us", "  CPU of the backend, us an edit", "append_cpu_ratio", false,
						MEDIANS(costs, cpu_us)});
	report_add(
		(Figure){"append_wall_us", "  wall clock with the client, us an edit", NULL, false, MEDIANS(costs, wall_us)});
	report_add((Figure){"wal_bytes", "  WAL by pg_current_wal_insert_lsn(), bytes an edit", "wal_ratio", false,
						MEDIANS(costs, wal)});
	report_add((Figure){"wal_record_bytes", "  WAL by pg_stat_wal.wal_bytes, bytes an edit", NULL, false,
						MEDIANS(costs, wal_records)});
	report_add((Figure){"stored_bytes",
						"  stored with indexes and TOAST, bytes an edit",
						"stored_ratio",
						false,
						{stored[HEAP], stored[SHEET]}});
}

void
append_run(Bench *bench)
{
	int64_t batches = bench->edits / BATCH / ROUNDS, empty[SIDES];
	double stored[SIDES];
	Cost costs[SIDES][ROUNDS];
	Session *sessions[SIDES];

	for (int side = 0; side < SIDES; side++)
	{
		sessions[side] = session_open(bench->conninfo);
		side_prepare(sessions[side]);
		empty[side] = stored_bytes(bench, side);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int turn = 0; turn < SIDES; turn++)
		{
			SideName side = side_of(round, turn);

			costs[side][round] = append_block(bench, sessions[side], side, batches);
		}
	vacuum(bench);
	for (int side = 0; side < SIDES; side++)
	{
		session_close(sessions[side]);
		stored[side] = (double) (stored_bytes(bench, side) - empty[side]) / (batches * ROUNDS * BATCH);
	}
	append_report(costs, stored);
}
