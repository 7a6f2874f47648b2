/*
 * replay.c - all edits of a large sheet in their order, inside the server and in C on both sides (replay_module.c).
 *
 * The pair: on the heap an index scan over the primary key that deforms every column; in the log the journal's own
 * batches_each_edit(), which decodes every edit with its old text, seq and time. Neither builds cells or rows, no SQL
 * executor and no client is in it, and both sum up what they have read: different sums end the benchmark. Everything
 * is in shared_buffers, so that the backend's CPU time is the time, without what others do to the machine.
 *
 * Opening the sheet after its cells were dropped from the cache (replay, cells and publication) has no counterpart.
 */
#include "phases.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define RUNS 15

typedef struct Replayed
{
	int64_t edits, sum;
	double cpu_ms, wall_ms;
} Replayed;

static Replayed
replay_once(Session *session, SideName side, int64_t sheet_id)
{
	int64_t cpu = session_cpu_ns(session), wall = now_ns();
	PGresult *result =
		side == HEAP ? session_query(session, "SELECT * FROM bench.replay_heap('bench.log', %ld)", (long) sheet_id)
					 : session_query(session, "SELECT * FROM bench.replay_sheet(%ld)", (long) sheet_id);
	Replayed replayed = {.cpu_ms = (session_cpu_ns(session) - cpu) / 1e6, .wall_ms = (now_ns() - wall) / 1e6};

	replayed.edits = atoll(PQgetvalue(result, 0, 0));
	replayed.sum = atoll(PQgetvalue(result, 0, 1));
	PQclear(result);
	return replayed;
}

static void
replay_compare(const Replayed *heap, const Replayed *sheet, int64_t edits)
{
	if (heap->edits != edits || sheet->edits != edits)
		fail("replay met %ld and %ld edits of %ld", (long) heap->edits, (long) sheet->edits, (long) edits);
	if (heap->sum != sheet->sum)
		fail("the edits differ between the two logs");
}

/* Milliseconds to open the sheet with a cold cache: the trash makes shared memory forget it. */
static double
replay_open_cold(Session *session, int64_t sheet_id)
{
	int64_t wall;

	session_run(session, "SELECT sheet.trash(%ld)", (long) sheet_id);
	session_run(session, "SELECT sheet.recover(%ld)", (long) sheet_id);
	wall = now_ns();
	session_run(session, "SELECT seq FROM sheet.read_cells(%ld, 0, 0, 0, 0)", (long) sheet_id);
	return (now_ns() - wall) / 1e6;
}

static void
replay_report(double cpu[SIDES][RUNS], double wall[SIDES][RUNS], double cold[RUNS])
{
	report_section("replay of one sheet inside the server");
	report_add((Figure){"replay_cpu_ms",
						"  all edits in their order, CPU ms",
						"replay_ratio",
						false,
						{median(cpu[HEAP], RUNS), median(cpu[SHEET], RUNS)}});
	report_add((Figure){"replay_wall_ms",
						"  all edits in their order, ms",
						NULL,
						false,
						{median(wall[HEAP], RUNS), median(wall[SHEET], RUNS)}});
	report_add(
		(Figure){"open_cold_ms", "  opening the sheet with a cold cache, ms", NULL, false, {-1, median(cold, RUNS)}});
}

void
replay_run(Bench *bench)
{
	Feed *feed = &bench->large[SHEET][0];
	Session *session = session_open(bench->conninfo);
	double cpu[SIDES][RUNS], wall[SIDES][RUNS], cold[RUNS];

	/* Round -1 warms up, and the pages' hints are set. */
	for (int round = -1; round < RUNS; round++)
	{
		Replayed replayed[SIDES];

		for (int turn = 0; turn < SIDES; turn++)
		{
			SideName side = side_of(round + 1, turn);

			replayed[side] = replay_once(session, side, feed->sheet_id);
			if (round >= 0)
			{
				cpu[side][round] = replayed[side].cpu_ms;
				wall[side][round] = replayed[side].wall_ms;
			}
		}
		replay_compare(&replayed[HEAP], &replayed[SHEET], feed_edits(feed));
		if (round >= 0)
			cold[round] = replay_open_cold(session, feed->sheet_id);
	}
	session_close(session);
	replay_report(cpu, wall, cold);
}
