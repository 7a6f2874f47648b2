/*
 * timeslice.c - the scheduler's time slice of a session (pg_sheet.time_slice).
 *
 * A session that commits edits works for some hundred microseconds and then sleeps, two or three times a commit. If the
 * cores are busy, each wake-up waits for the end of another process's time slice, some milliseconds: that is most of a
 * commit's latency. A shorter slice of its own avoids that (see common/scheduler.h), and is a disadvantage in long
 * work. So this is a setting of sessions, not of the server.
 */
#include "postgres.h"

#include "common/scheduler.h"
#include "support/timeslice.h"
#include "utils/guc.h"

#define TIME_SLICE_MOST 100.0 /* ms; the kernel takes 0.1 to 100 */

static double time_slice; /* ms; 0: the system's own */

static void
time_slice_assign(double ms, void *extra)
{
	if (ms != time_slice)
		scheduler_ask_slice(ms, false);
}

void
time_slice_init(void)
{
	DefineCustomRealVariable(
		"pg_sheet.time_slice", "CPU time slice that the session requests from the scheduler.",
		"A shorter slice lets it run sooner after a wake-up. 0: the system's default. Needs Linux 6.12 or later.",
		&time_slice, 0, 0, TIME_SLICE_MOST, PGC_USERSET, GUC_UNIT_MS, NULL, time_slice_assign, NULL);
}
