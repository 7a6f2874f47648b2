/*
 * timeslice.c - the scheduler's time slice of a session (pg_sheet.time_slice).
 *
 * A session that commits edits works for some hundred microseconds and then sleeps, two or three times a commit. If the
 * cores are busy, each wake-up waits for the end of another process's time slice, some milliseconds: that is most of a
 * commit's latency. Linux 6.12 and later let a process ask for shorter slices of its own. It gets no larger share of
 * the processor, but gets it at once when it wakes up, before processes that have run for longer. In return it is
 * interrupted more often when it works for long. So this is a setting of sessions, not of the server.
 *
 * The setting has no effect on other systems, older kernels, and in containers that forbid it.
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

/* The first version of the kernel's struct sched_attr, which some C libraries do not define. */
typedef struct SchedulerAttributes
{
	uint32 size, policy;
	uint64 flags;
	int32 nice;
	uint32 priority;
	uint64 runtime, deadline, period; /* ns; runtime is the slice of an ordinary process */
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
