/* handover_gateways.c - the gateways of test_handover.c: how they start, end and fail, and who may serve a sheet. */
#include "handover.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/ring.h"

#define LIBRARIES  16  /* processes of a schedule */
#define RESTART_MS 100 /* at least, between the end of a gateway and its next start: as systemd's RestartSec */

static const SimGatewayCalls *libraries[LIBRARIES];
static int libraries_used;
static int64_t greatest[SHEETS + 1]; /* epochs granted */
Gateway *gateways[GATEWAYS];
uint64_t changed_at, changed_before;

static Gateway *
gateway_of(const SimProcess *process)
{
	return (Gateway *) process;
}

Gateway *
gateway_at(const char *address)
{
	for (int i = 0; i < GATEWAYS; i++)
		if (gateways[i] && strcmp(gateways[i]->address, address) == 0)
			return gateways[i];
	return NULL;
}

bool
sim_is_refusing(const char *address)
{
	const Gateway *gateway = gateway_at(address);

	return !gateway || gateway->process.dead;
}

/* As in test_simulation.c: a process that continues does not know of the time before its timers have run. */
static bool
knows_the_time(const Gateway *gateway)
{
	return !gateway->process.stopped &&
		   (gateway->continued == 0 || sim_now > gateway->continued + SESSION_MS / 12 * SIM_MS);
}

static bool
may_serve(const Gateway *gateway, int64_t sheet)
{
	return !gateway->process.dead && knows_the_time(gateway) && gateway->calls->serves(sheet);
}

void
sim_on_granted(SimProcess *process, int64_t sheet, int64_t epoch)
{
	sim_trace("gateway %d gets sheet %d, epoch %lld", process->number, (int) sheet, (long long) epoch);
	result.grants++;
	if (calm)
		sim_promise(!sim_database_is_written(sheet, process), "a lock is given back before the batch has ended", sheet);
	if (!knows_the_time(gateway_of(process)))
		return;
	sim_promise(epoch > greatest[sheet], "epochs do not grow", sheet);
	greatest[sheet] = epoch;
	for (int i = 0; i < GATEWAYS; i++)
		sim_promise(!gateways[i] || &gateways[i]->process == process || !may_serve(gateways[i], sheet),
					"two gateways hold a lock", sheet);
}

static void
ring_changes(void)
{
	if (changed_at != sim_now)
		changed_before = changed_at;
	changed_at = sim_now;
}

static void
gateway_is_gone(Gateway *gateway)
{
	sim_trace("gateway %d has ended", gateway->process.number);
	ring_changes();
	gateway->process.dead = gateway->process.stopped = true;
	gateway->ended = sim_now;
	sim_disconnect_all(&gateway->process);
}

static void
gateway_ends(void *arg)
{
	Gateway *gateway = arg;

	if (!gateway->process.dead)
		gateway_is_gone(gateway);
}

/* It has closed its connections to ZooKeeper. */
static void
on_ended(SimProcess *process)
{
	sim_after(NULL, 0, gateway_ends, process);
}

void
gateway_kill(Gateway *gateway)
{
	result.kills++;
	sim_kill(&gateway->process);
	gateway_is_gone(gateway);
}

static void
gateway_runs(void *arg)
{
	Gateway *gateway = arg;

	gateway->calls->start(&gateway->process, gateway->address, on_ended);
}

void
gateway_start(int number)
{
	Gateway *gateway = gateways[number];

	if ((gateway && !gateway->process.dead) || libraries_used == LIBRARIES)
		return;
	if (gateway && sim_now - gateway->ended < RESTART_MS * SIM_MS)
	{
		sim_after(NULL, RESTART_MS * SIM_MS, gateway_starts, (void *) (intptr_t) number);
		return;
	}
	sim_trace("gateway %d starts", number);
	ring_changes();
	gateway = gateways[number] = calloc(1, sizeof(*gateway));
	gateway->calls = libraries[libraries_used++];
	gateway->process.number = number;
	gateway->process.loop.data = &gateway->process;
	snprintf(gateway->address, sizeof(gateway->address), "gateway%d:80", number);
	sim_after(&gateway->process, 0, gateway_runs, gateway);
}

void
gateway_starts(void *arg)
{
	gateway_start((int) (intptr_t) arg);
}

void
gateway_stops(void *arg)
{
	ring_changes();
	((Gateway *) arg)->calls->stop();
}

void
gateway_drains(void *arg)
{
	ring_changes();
	((Gateway *) arg)->calls->drain(((Gateway *) arg)->drains);
}

bool
gateway_serves(const Gateway *gateway)
{
	return gateway && !gateway->process.dead && gateway->calls->owner(1) && !gateway->leaves && !gateway->drains;
}

int
gateways_serving(void)
{
	int count = 0;

	for (int i = 0; i < GATEWAYS; i++)
		count += gateway_serves(gateways[i]);
	return count;
}
static void
load_libraries(void)
{
	for (int i = 0; i < LIBRARIES; i++)
	{
		char name[32];
		void *library;

		snprintf(name, sizeof(name), "sim_gateway_%d.so", i + 1);
		library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		if (!library)
		{
			printf("Bail out! %s\n", dlerror());
			exit(1);
		}
		libraries[i] = dlsym(library, "sim_gateway_calls");
	}
}

/* The rings of all sets of gateways, so that not each child has to build them (sim_ring.c). */
static void
build_rings(void)
{
	char names[GATEWAYS][16];

	for (int i = 0; i < GATEWAYS; i++)
		snprintf(names[i], sizeof(names[i]), "gateway%d:80", i);
	for (unsigned set = 1; set < 1u << GATEWAYS; set++)
	{
		RingMember members[GATEWAYS];
		size_t count = 0;

		for (int i = 0; i < GATEWAYS; i++)
			if (set & 1u << i)
				members[count++] = (RingMember){names[i], 1};
		(void) ring_build(members, count);
	}
}

void
gateways_load(void)
{
	load_libraries();
	build_rings();
}
