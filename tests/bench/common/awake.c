/* awake.c - see awake.h. */
#include "awake.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "basics.h"

struct Awake
{
	atomic_bool stop;
	long count;
	pthread_t threads[];
};

static void *
awake_main(void *arg)
{
	Awake *awake = arg;
	struct sched_param none = {0};

	if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
		fail("a thread cannot be one that works when nobody else does");
	while (!atomic_load_explicit(&awake->stop, memory_order_relaxed))
		;
	return NULL;
}

Awake *
awake_begin(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	Awake *awake = allocate(sizeof(*awake) + (size_t) count * sizeof(pthread_t));

	awake->count = count;
	for (long i = 0; i < count; i++)
	{
		if (pthread_create(&awake->threads[i], NULL, awake_main, awake) != 0)
			fail("a thread could not be started");
	}
	return awake;
}

void
awake_end(Awake *awake)
{
	atomic_store(&awake->stop, true);
	for (long i = 0; i < awake->count; i++)
		pthread_join(awake->threads[i], NULL);
	free(awake);
}
