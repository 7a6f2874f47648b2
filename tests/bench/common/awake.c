/* awake.c - see awake.h. */
#include "awake.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The first word of a file of the kernel's; false: there is none. */
static bool
kernel_says(const char *path, char word[64])
{
	FILE *file = fopen(path, "r");
	bool read = file != NULL && fscanf(file, "%63s", word) == 1;

	if (file != NULL)
		fclose(file);
	return read;
}

double
awake_halt_poll_us(void)
{
	char governor[64], ns[64];

	if (!kernel_says("/sys/devices/system/cpu/cpuidle/current_governor", governor) ||
		strcmp(governor, "haltpoll") != 0 || !kernel_says("/sys/module/haltpoll/parameters/guest_halt_poll_ns", ns))
		return -1;
	return atof(ns) / 1e3;
}
