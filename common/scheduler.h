/* scheduler.h - what this program asks of the system's scheduler. */
#ifndef SHEET_SCHEDULER_H
#define SHEET_SCHEDULER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of the kernel's struct sched_attr, which some C libraries do not define. */
typedef struct SchedulerAttributes
{
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period; /* ns; runtime is the slice of an ordinary thread */
} SchedulerAttributes;

#define SCHEDULER_RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK */

/*
 * Requests time slices of ms milliseconds (0.1 to 100; 0: the system's own) for the calling thread. The kernel needs to
 * be Linux 6.12 or later. A thread with a shorter slice gets no larger share of the processor, but usually gets it as
 * soon as it wakes up, before threads that have run for longer. In return it is interrupted more often when it works
 * for long. reset_on_fork: threads and processes that it makes later have the system's own slices, and nice 0 if its
 * own is negative. Without privileges that cannot be taken back. Does nothing on other systems, older kernels, and in
 * containers that forbid it.
 */
static inline void
scheduler_ask_slice(double ms, bool reset_on_fork)
{
#ifdef SYS_sched_setattr
	SchedulerAttributes attributes = {0};

	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 || attributes.policy != SCHED_OTHER)
		return;
	attributes.runtime = (uint64_t) (ms * 1000000);
	if (reset_on_fork)
		attributes.flags |= SCHEDULER_RESET_ON_FORK;
	(void) syscall(SYS_sched_setattr, 0, &attributes, 0);
#else
	(void) ms, (void) reset_on_fork;
#endif
}

#endif
