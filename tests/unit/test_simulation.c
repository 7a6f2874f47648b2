/*
 * test_simulation.c - three gateways and three ZooKeeper servers in a simulated world (sim.h), with the coordinators as
 * they are shipped: random faults for 24 s, then peace.
 *
 *   SCHEDULES=n  how many schedules (default 1500, with LONG 10000)
 *   SEED=n       the seed of the first one; a failure tells its seed
 *   TRACE=1      prints what happens
 *
 * Faults: gateways are killed, stopped and continued, and start again; links are cut, in one direction or both; servers
 * crash and hang; the leader is lost; the disk is slow; an administrator removes nodes of locks.
 *
 * Promises, checked at each event that concerns them:
 *   exclusion  when a gateway gets a sheet's lock, no other running gateway believes that it may serve the sheet; but
 *              for UNHEARD_MS after an administrator has removed both nodes of its lock: others may hear of that first
 *   epochs     each holder's epoch is greater than those of all holders before it, so that the database can refuse them
 *   no write   that the database has accepted is from a gateway while another one with a greater epoch has written
 *   no loss    of a sheet when a follower crashes or hangs, or no server can be reached for 2/3 of the session time:
 *              in schedules without other faults
 *
 * and after 15 s of peace:
 *   agreement  all gateways have the same members, and name the same owner of each sheet
 *   progress   the owner of each sheet holds its lock
 *   no orphans ZooKeeper has no nodes of locks but the holders', and none at all when the gateways have ended
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "coord/coord_impl.h"
#include "support/log.h"
#include "tap.h"

#define GATEWAYS   3
#define SHEETS	   4
#define SESSION_MS 2000
#define FAULTS_MS  24000
#define PEACE_MS   15000
#define CALM	   10				/* one of so many schedules has mild faults only */
#define UNHEARD_MS (2 * SESSION_MS) /* within this, a gateway has heard of a removal, or is suspended */
#define REMOVALS   64

typedef struct Held
{
	bool wanted;
	int64_t epoch; /* 0: not granted */
} Held;

typedef struct Gateway
{
	SimProcess process;
	Coord *coord;
	struct Gateway *former; /* killed */
	bool suspended, closed;
	uint64_t continued;
	Held held[SHEETS + 1];
} Gateway;

typedef struct Write
{
	int sheet;
	int64_t epoch;
} Write;

static Gateway *gateways[GATEWAYS];
static int64_t greatest[SHEETS + 1], written[SHEETS + 1]; /* epochs: granted, and accepted by the database */
/* Contenders whose nodes an administrator has removed. */
static struct
{
	int64_t epoch;
	uint64_t at;
} removals[REMOVALS];
static size_t removal_count;
static bool peace;
static uint64_t seed;
static long grants, losses, kills, refusals, accepted;
static const char *failure; /* the first one of the schedule */
static int failed_sheet;

Coord *
coord_postgres_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	abort();
}

static void
promise(bool kept, const char *what, int sheet)
{
	if (kept || failure)
		return;
	sim_trace("NOT KEPT: %s (%d)", what, sheet);
	failure = what;
	failed_sheet = sheet;
}

/* ---- a gateway ---- */

static void
on_suspended(void *arg)
{
	sim_trace("gateway %d is suspended", ((Gateway *) arg)->process.number);
	((Gateway *) arg)->suspended = true;
}

static void
on_resumed(void *arg)
{
	sim_trace("gateway %d serves", ((Gateway *) arg)->process.number);
	((Gateway *) arg)->suspended = false;
}

/* A process that is stopped, or that continues, does not know of the time that has passed before its timers have run.
 * The epoch alone keeps others from harm. */
static bool
knows_the_time(const Gateway *gateway)
{
	return !gateway->process.stopped &&
		   (gateway->continued == 0 || sim_now > gateway->continued + SESSION_MS / 12 * SIM_MS);
}

/* An administrator has removed both nodes of the gateway's lock just now. It cannot know before a server tells it, and
 * another server may tell the next one earlier. The epoch alone keeps others from harm. */
static bool
lost_unheard(const Held *held)
{
	for (size_t i = 0; i < removal_count; i++)
		if (removals[i].epoch == held->epoch && sim_now < removals[i].at + UNHEARD_MS * SIM_MS)
			return true;
	return false;
}

static bool
may_serve(const Gateway *gateway, int sheet)
{
	const Held *held = &gateway->held[sheet];

	return held->epoch != 0 && !gateway->suspended && knows_the_time(gateway) && !lost_unheard(held);
}

static void
on_granted(void *arg, int64_t sheet, int64_t epoch)
{
	Gateway *self = arg;

	grants++;
	sim_trace("gateway %d gets sheet %d, epoch %lld", self->process.number, (int) sheet, (long long) epoch);
	promise(self->held[sheet].wanted, "a lock is granted that nobody has asked for", (int) sheet);
	self->held[sheet].epoch = epoch;
	if (!knows_the_time(self) || lost_unheard(&self->held[sheet]))
		return;
	promise(epoch > greatest[sheet], "epochs do not grow", (int) sheet);
	greatest[sheet] = epoch;
	for (int i = 0; i < GATEWAYS; i++)
		promise(gateways[i] == self || !may_serve(gateways[i], (int) sheet), "two gateways hold a lock", (int) sheet);
}

static void
on_lost(void *arg, int64_t sheet, const char *reason)
{
	losses++;
	sim_trace("gateway %d loses sheet %d: %s", ((Gateway *) arg)->process.number, (int) sheet, reason);
	((Gateway *) arg)->held[sheet] = (Held){false, 0};
}

static void gateway_start(int number, Gateway *former);

static void
on_closed(void *arg)
{
	((Gateway *) arg)->closed = true;
}

static void
restart(void *arg)
{
	Gateway *former = arg;

	gateway_start(former->process.number, former);
}

static void
gateway_kill(Gateway *gateway)
{
	kills++;
	sim_trace("gateway %d is killed", gateway->process.number);
	sim_kill(&gateway->process);
	sim_continue(&gateway->process);
	memset(gateway->held, 0, sizeof(gateway->held));
	coord_close(gateway->coord, on_closed, gateway); /* frees its memory, and is heard by nobody */
	sim_after(NULL, (peace ? 0 : sim_random(6000)) * SIM_MS, restart, gateway);
}

static void
kill_later(void *arg)
{
	if (!((Gateway *) arg)->process.dead)
		gateway_kill(arg);
}

/* A name that another process has: possible, if the former session lives on because servers were elected anew. */
static void
on_fatal(void *arg, const char *reason)
{
	sim_after(NULL, 0, kill_later, arg);
}

static void
database_gets(void *arg)
{
	Write *write = arg;

	if (write->epoch >= written[write->sheet])
	{
		written[write->sheet] = write->epoch;
		accepted++;
	}
	else
		refusals++;
	free(write);
}

/* What the gateway's users do, and its own moves. */
static void
gateway_lives(void *arg)
{
	Gateway *self = arg;
	int sheet = 1 + (int) sim_random(SHEETS);
	Held *held = &self->held[sheet];
	bool mine;

	if (self->process.dead || self->closed)
		return;
	mine = coord_is_mine(self->coord, sheet);
	sim_after(&self->process, sim_random(300) * SIM_MS, gateway_lives, self);
	if (held->epoch != 0 && !self->suspended)
	{
		Write *write = malloc(sizeof(*write));

		promise(held->epoch >= greatest[sheet] || !knows_the_time(self) || lost_unheard(held),
				"a gateway writes after another has the lock", sheet);
		*write = (Write){sheet, held->epoch};
		sim_after(NULL, sim_random(100) * SIM_MS, database_gets, write);
	}
	if (!held->wanted && (mine || (!peace && sim_percent(10))))
	{
		held->wanted = true;
		sim_trace("gateway %d wants sheet %d", self->process.number, sheet);
		coord_acquire(self->coord, sheet);
	}
	else if (held->wanted && !mine && (peace || sim_percent(20)))
	{
		sim_trace("gateway %d releases sheet %d", self->process.number, sheet);
		*held = (Held){false, 0};
		coord_release(self->coord, sheet);
	}
	else if (held->wanted && !peace && sim_percent(10))
	{
		sim_trace("gateway %d releases sheet %d", self->process.number, sheet);
		*held = (Held){false, 0};
		coord_release(self->coord, sheet);
	}
}

static void
gateway_start(int number, Gateway *former)
{
	Gateway *self = calloc(1, sizeof(*self));
	char name[32];
	CoordConfig config = {"zookeeper", name, 1, "", SIM_HOSTS, SIM_ROOT, SESSION_MS, NULL};
	CoordEvents events = {.arg = self,
						  .suspended = on_suspended,
						  .resumed = on_resumed,
						  .ready = on_resumed,
						  .granted = on_granted,
						  .lost = on_lost,
						  .fatal = on_fatal};

	snprintf(name, sizeof(name), "gateway%d:80", number);
	self->process.number = number;
	self->process.loop.data = &self->process;
	self->former = former;
	gateways[number] = self;
	self->coord = coord_open(&self->process.loop, &config, &events);
	sim_after(&self->process, 0, gateway_lives, self);
}

/* ---- faults ---- */

static void
administrator_removes(bool both)
{
	int64_t epoch = sim_remove_lock_nodes(both);

	if (epoch == 0 || removal_count == REMOVALS)
		return;
	sim_trace("an administrator has removed the nodes of epoch %lld", (long long) epoch);
	removals[removal_count].epoch = epoch;
	removals[removal_count++].at = sim_now;
}

static void
gateway_continues(void *arg)
{
	Gateway *gateway = arg;

	sim_trace("gateway %d continues", gateway->process.number);
	gateway->continued = sim_now;
	sim_continue(&gateway->process);
}

static void
fault(void *arg)
{
	Gateway *gateway = gateways[sim_random(GATEWAYS)];
	int server = (int) sim_random(SIM_SERVERS);
	uint64_t duration = (uint64_t) sim_random(sim_percent(50) ? 1000 : 6000) * SIM_MS;
	bool both = sim_percent(50), first = sim_percent(50);

	if (peace)
		return;
	sim_after(NULL, (uint64_t) sim_random(2000) * SIM_MS, fault, NULL);
	switch (sim_random(10))
	{
		case 0:
			if (!gateway->process.dead)
				gateway_kill(gateway);
			break;
		case 1:
		case 2:
			if (gateway->process.dead || gateway->process.stopped)
				break;
			sim_trace("gateway %d stops", gateway->process.number);
			gateway->process.stopped = true;
			sim_after(NULL, duration, gateway_continues, gateway);
			break;
		case 3:
		case 4:
			for (int i = 0; i < SIM_SERVERS; i++)
				if (i == server || sim_percent(50))
					sim_cut_link(&gateway->process, i, both || first, both || !first, duration);
			break;
		case 5:
			sim_crash_server(server, duration);
			break;
		case 6:
			sim_hang_server(server, duration);
			break;
		case 7:
			sim_lose_leader();
			break;
		case 8:
			sim_slow_disk((uint64_t) sim_random(1500) * SIM_MS, duration);
			break;
		case 9:
			if (sim_percent(30))
				administrator_removes(sim_percent(50));
	}
}

/* Faults that cost nobody a sheet, one at a time. */
static void
mild_fault(void *arg)
{
	Gateway *gateway = gateways[sim_random(GATEWAYS)];
	int server = sim_follower();

	if (peace)
		return;
	sim_after(NULL, 5000 * SIM_MS, mild_fault, NULL);
	switch (sim_random(4))
	{
		case 0:
			for (int i = 0; i < GATEWAYS * SIM_SERVERS; i++)
				sim_cut_link(&gateways[i / SIM_SERVERS]->process, i % SIM_SERVERS, true, true,
							 SESSION_MS * 2 / 3 * SIM_MS);
			break;
		case 1:
			sim_cut_link(&gateway->process, server, sim_percent(50), true, 3000 * SIM_MS);
			break;
		case 2:
			sim_crash_server(server, 3000 * SIM_MS);
			break;
		case 3:
			sim_hang_server(server, 3000 * SIM_MS);
	}
}

/* ---- peace ---- */

static void
check_node(void *arg, const char *path, int64_t session, int64_t czxid, const char *data)
{
	int sheet;

	if (sscanf(path, SIM_ROOT "/locks/sheet%d/", &sheet) != 1 || session == 0)
		return;
	for (int i = 0; i < GATEWAYS; i++)
		if (gateways[i]->held[sheet].epoch == czxid)
			return;
	promise(false, "a node is left that is not the holder's", sheet);
}

static void
check_no_node(void *arg, const char *path, int64_t session, int64_t czxid, const char *data)
{
	promise(session == 0, "a node is left when all have ended", 0);
}

static void
check_peace(void)
{
	for (int sheet = 1; sheet <= SHEETS; sheet++)
	{
		const char *owner = coord_owner_of(gateways[0]->coord, sheet);

		for (int i = 0; i < GATEWAYS; i++)
		{
			Gateway *gateway = gateways[i];
			const char *named = coord_owner_of(gateway->coord, sheet);

			promise(gateway->coord->member_count == GATEWAYS, "members are missing", i);
			promise(owner && named && strcmp(owner, named) == 0, "two gateways name different owners", sheet);
			promise(!gateway->suspended, "a gateway is suspended", i);
			promise((gateway->held[sheet].epoch != 0) == coord_is_mine(gateway->coord, sheet),
					"the owner does not hold the lock, or another does", sheet);
		}
	}
	sim_each_node(check_node, NULL);
}

static void
run_schedule(void)
{
	long losses_before = losses;
	bool calm = seed % CALM == 0;

	failure = NULL;
	peace = false;
	memset(greatest, 0, sizeof(greatest));
	memset(written, 0, sizeof(written));
	removal_count = 0;
	sim_begin(seed);
	sim_zookeeper_begin();
	for (int i = 0; i < GATEWAYS; i++)
		gateway_start(i, NULL);
	sim_is_calm = calm;
	sim_after(NULL, (calm ? 4000 : 2000) * SIM_MS, calm ? mild_fault : fault, NULL);
	sim_run(FAULTS_MS * SIM_MS);
	peace = true;
	sim_zookeeper_heal();
	for (int i = 0; i < GATEWAYS; i++)
		if (gateways[i]->process.stopped)
			gateway_continues(gateways[i]);
	sim_run((FAULTS_MS + PEACE_MS) * SIM_MS);
	check_peace();
	promise(!calm || losses == losses_before, "a sheet is lost without need", 0);
	for (int i = 0; i < GATEWAYS; i++)
		if (!gateways[i]->process.dead)
			coord_close(gateways[i]->coord, on_closed, gateways[i]);
	sim_run((FAULTS_MS + PEACE_MS + 6000) * SIM_MS);
	sim_each_node(check_no_node, NULL);
	for (int i = 0; i < GATEWAYS; i++)
		for (Gateway *gateway = gateways[i], *former; gateway; gateway = former)
		{
			former = gateway->former;
			promise(gateway->closed, "a coordinator does not end", i);
			free(gateway);
		}
	sim_zookeeper_end();
	sim_end();
}

int
main(void)
{
	unsigned long count = sim_setting("SCHEDULES", steps_to_run(1500, 10000)), failures = 0;
	uint64_t first = sim_setting("SEED", 1);

	sim_traces = getenv("TRACE") != NULL;
	log_setup(sim_traces ? "debug" : "error", "text");
	for (seed = first; seed < first + count; seed++)
	{
		run_schedule();
		if (failure && failures++ < 10)
			TAP_OK(false, "seed %llu: %s (%d)", (unsigned long long) seed, failure, failed_sheet);
	}
	printf("# seeds %llu to %llu: %ld locks granted, %ld lost, %ld gateways killed, %ld writes accepted, %ld refused\n",
		   (unsigned long long) first, (unsigned long long) (first + count - 1), grants, losses, kills, accepted,
		   refusals);
	TAP_OK(failures == 0, "%lu schedules of faults: %lu broke a promise", count, failures);
	TAP_OK(grants > 15 * (long) count && losses > (long) count && refusals > 0, "and the faults were felt");
	return tap_done();
}
