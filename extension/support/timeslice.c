/*
 * timeslice.c - how soon the system's scheduler lets a session run (pg_sheet.time_slice).
 *
 * Whoever commits edits works for a few hundred microseconds, then sleeps: for the disk, for the next batch. On a
 * machine whose cores are busy each wake-up waits until somebody's slice of time is over, some milliseconds, and a
 * commit has two or three of them: that is most of its latency. Linux (6.12 and later) lets a process ask for shorter
 * slices of its own. It gets no more of the processor, but it gets it at once when it wakes up, before those who have
 * run for longer. What it pays is that it is interrupted more often when it works for long itself: so this is a
 * setting of sessions, not of the server.
 *
 * Other systems, older kernels and containers that forbid it leave things as they are; nobody needs to be told.
 */
#include "postgres.h"

#include "support/timeslice.h"
#include "utils/guc.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIME_SLICE_MOST 100.0 /* ms; the kernel takes 0.1 to 100 */

static double time_slice; /* ms; 0: the system's own */

#ifdef SYS_sched_setattr

/* struct sched_attr of the kernel, as it was first; the C library has it under that name, or has not. */
typedef struct SchedulerAttributes
{
	uint32 size, policy;
	uint64 flags;
	int32 nice;
	uint32 priority;
	uint64 runtime, deadline, period; /* ns; of an ordinary process runtime is its slice */
} SchedulerAttributes;

static void
time_slice_ask(double ms)
{
	SchedulerAttributes attributes = {0};

	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 || attributes.policy != SCHED_OTHER)
		return;
	attributes.runtime = (uint64) (ms * 1000000);
	(void) syscall(SYS_sched_setattr, 0, &attributes, 0);
}

#else

static void
time_slice_ask(double ms)
{
}

#endif

static void
time_slice_assign(double ms, void *extra)
{
	if (ms != time_slice)
		time_slice_ask(ms);
}

void
time_slice_init(void)
{
	DefineCustomRealVariable(
		"pg_sheet.time_slice", "CPU time slice that the session requests from the scheduler.",
		"A shorter slice lets it run sooner after a wake-up. 0: the system's default. Needs Linux 6.12 or later.",
		&time_slice, 0, 0, TIME_SLICE_MOST, PGC_USERSET, GUC_UNIT_MS, NULL, time_slice_assign, NULL);
}
