/* scheduler.c - see scheduler.h. */
#include "common/scheduler.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_sched_setattr

#define RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK */

/* The first version of the kernel's struct sched_attr, which some C libraries do not define. */
typedef struct SchedulerAttributes
{
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period; /* ns; runtime is the slice of an ordinary thread */
} SchedulerAttributes;

void
scheduler_ask_slice(double ms, bool alone)
{
	SchedulerAttributes attributes = {0};

	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 || attributes.policy != SCHED_OTHER)
		return;
	attributes.runtime = (uint64_t) (ms * 1000000);
	if (alone)
		attributes.flags |= RESET_ON_FORK;
	(void) syscall(SYS_sched_setattr, 0, &attributes, 0);
}

#else

void
scheduler_ask_slice(double ms, bool alone)
{
}

#endif
