/*
 * test_handover.c - gateways, editors, ZooKeeper and the database in a simulated world (sim_gateway.h): sheets move
 * between gateways that join, drain and fail, while they are edited.
 *
 *   SCHEDULES=n  how many schedules (default 1000, with LONG 10000)
 *   SEED=n       the seed of the first one; a failure tells its seed
 *   TRACE=1      prints what happens
 *
 * Each schedule runs in a child process. So its variables are fresh, and if an assertion fails, the test reports the
 * seed. Editors connect to any gateway, follow redirects, send numbered operations, and send again what was
 * not acknowledged. For 15 s gateways join, drain, and take sheets again. In every fourth schedule nothing else
 * happens, but in a quarter of these each commit takes up to SLOW_MS, longer than a move first waits. In the others
 * gateways are killed and stopped, have no memory for their sheets, links are cut, ZooKeeper's servers and their leader
 * fail, connections to the database and to editors break, and other transactions hold sheets. Then there is peace for
 * 16 s.
 *
 * Promises in all schedules:
 *   the log       an acknowledged operation is in it, each operation once, and an editor's operations in their order
 *   the stream    each editor receives each operation once, in the order of the log
 *   epochs        the database accepts an epoch of one gateway only; epochs grow
 *   exclusion     when a gateway gets a lock, no other running gateway believes that it may serve the sheet
 *   reach         no editor is sent to a gateway that refuses connections
 *   progress      in the peace no gateway lets an editor wait for longer than IMPATIENT_MS; after it each editor is
 *                 served by the gateway that the ring names, and all its operations are acknowledged
 * and in those without faults, where slow commits add to the times:
 *   service       no editor is refused, and each is served within SERVED_MS, also while its sheet moves
 *   hand-over     a sheet is at its owner within handover-seconds and MOVED_MS, or within MOVED_MS if the gateway
 *                 drains
 *   batches       a gateway has finished its batch before another gets the lock, and the database refuses none
 */
#include "handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/log.h"
#include "tap.h"

#define SLOW_MS		600
#define SLOW_PAUSES 8

bool calm;
bool peace;
Result result;
static uint64_t misplaced[SHEETS + 1];	   /* since when another gateway than the owner has the sheet; 0: none has */
static const Gateway *holders[SHEETS + 1]; /* the last gateway that had it */
static bool holder_drains[SHEETS + 1];
static uint64_t seed;

void
sim_promise(bool kept, const char *what, int64_t number)
{
	if (kept || result.failure)
		return;
	sim_trace("NOT KEPT: %s (%lld)", what, (long long) number);
	result.failure = what;
	result.failed_number = number;
}

/* ---- what is watched ---- */

static Gateway *
holder_of(int sheet)
{
	for (int i = 0; i < GATEWAYS; i++)
		if (gateways[i] && !gateways[i]->process.dead && gateways[i]->calls->holds(sheet))
			return gateways[i];
	return NULL;
}

/* The owner that all gateways name; NULL if they do not agree. */
static Gateway *
owner_of(int sheet)
{
	const char *owner = NULL;

	for (int i = 0; i < GATEWAYS; i++)
		if (gateways[i] && !gateways[i]->process.dead)
		{
			const char *named = gateways[i]->calls->owner(sheet);

			if (!named || (owner && strcmp(owner, named) != 0))
				return NULL;
			owner = named;
		}
	return owner ? gateway_at(owner) : NULL;
}

static void
watch(void *arg)
{
	sim_after(NULL, 10 * SIM_MS, watch, NULL);
	for (int sheet = 1; sheet <= SHEETS; sheet++)
	{
		const Gateway *holder = holder_of(sheet), *owner = owner_of(sheet);
		bool drains = holder && (holder->drains || holder->leaves);
		uint64_t limit = ((drains ? 0 : HANDOVER_MS) + MOVED_MS + SLOW_PAUSES * sim_commit_ms) * SIM_MS;

		if (!holder || !owner || holder == owner)
		{
			if (holder && holder == owner)
			{
				result.moves += holders[sheet] && holders[sheet] != holder;
				holders[sheet] = holder;
			}
			misplaced[sheet] = 0;
			continue;
		}
		if (misplaced[sheet] == 0 || holders[sheet] != holder || drains != holder_drains[sheet])
			misplaced[sheet] = sim_now;
		holders[sheet] = holder;
		holder_drains[sheet] = drains;
		if (calm && sim_commit_ms == 0 && sim_now - misplaced[sheet] > result.longest_move)
			result.longest_move = sim_now - misplaced[sheet];
		if (calm)
			sim_promise(sim_now - misplaced[sheet] < limit, "a sheet is not moved in time", sheet);
	}
}

/* ---- what happens ---- */

/* Gateways join and drain. */
static void
change(void *arg)
{
	int number = (int) sim_random(GATEWAYS);
	Gateway *gateway = gateways[number];

	if (peace)
		return;
	sim_after(NULL, (500 + sim_random(calm ? 6000 : 4000)) * SIM_MS, change, NULL);
	if (!gateway || gateway->process.dead)
		gateway_start(number);
	else if (gateway->process.stopped || gateway->leaves)
		;
	else if (gateway->drains)
	{
		gateway->drains = false;
		sim_trace("gateway %d takes sheets again", number);
		sim_after(&gateway->process, 0, gateway_drains, gateway);
	}
	else if (gateway_serves(gateway) && gateways_serving() > 1)
	{
		gateway->leaves = sim_percent(60);
		gateway->drains = !gateway->leaves;
		sim_trace("gateway %d %s", number, gateway->leaves ? "leaves" : "drains");
		sim_after(&gateway->process, 0, gateway->leaves ? gateway_stops : gateway_drains, gateway);
	}
}

static void
gateway_continues(void *arg)
{
	Gateway *gateway = arg;

	if (gateway->process.dead || !gateway->process.stopped)
		return;
	sim_trace("gateway %d continues", gateway->process.number);
	gateway->continued = sim_now;
	sim_continue(&gateway->process);
}

/* There is no memory for any of its sheets. */
static void
gateway_fails(void *arg)
{
	sim_trace("gateway %d has no memory", ((Gateway *) arg)->process.number);
	for (int sheet = 1; sheet <= SHEETS; sheet++)
		((Gateway *) arg)->calls->fail(sheet);
}

static void
fault_of_gateway(Gateway *gateway, uint64_t duration)
{
	bool both = sim_percent(50), first = sim_percent(50);

	if (!gateway || gateway->process.dead)
		return;
	switch (sim_random(5))
	{
		case 0:
			gateway_kill(gateway);
			sim_after(NULL, sim_random(5000) * SIM_MS, gateway_starts, (void *) (intptr_t) gateway->process.number);
			break;
		case 1:
			if (gateway->process.stopped)
				break;
			sim_trace("gateway %d stops", gateway->process.number);
			gateway->process.stopped = true;
			sim_after(NULL, duration, gateway_continues, gateway);
			break;
		case 2:
			for (int i = 0; i < SIM_SERVERS; i++)
				if (sim_percent(60))
					sim_cut_link(&gateway->process, i, both || first, both || !first, duration);
			break;
		case 3:
			sim_database_break(&gateway->process, sim_percent(50) ? 100 * SIM_MS : duration);
			break;
		case 4:
			sim_after(&gateway->process, 0, gateway_fails, gateway);
	}
}

static void
fault(void *arg)
{
	uint64_t duration = (uint64_t) sim_random(sim_percent(50) ? 1000 : 6000) * SIM_MS;
	Editor *editor = &editors[1 + sim_random(EDITORS - 1)];
	int server = (int) sim_random(SIM_SERVERS);

	if (peace)
		return;
	sim_after(NULL, (uint64_t) sim_random(2000) * SIM_MS, fault, NULL);
	switch (sim_random(11))
	{
		case 0:
		case 1:
		case 2:
		case 3:
			fault_of_gateway(gateways[sim_random(GATEWAYS)], duration);
			break;
		case 4:
			sim_crash_server(server, duration);
			break;
		case 5:
			sim_hang_server(server, duration);
			break;
		case 6:
			sim_lose_leader();
			break;
		case 7:
			sim_slow_disk((uint64_t) sim_random(1500) * SIM_MS, duration);
			break;
		case 8:
			sim_database_hold(1 + (int64_t) sim_random(SHEETS), duration);
			break;
		default:
			if (editor->state == AWAY)
				break;
			sim_trace("editor %d loses gateway %d", editor->number, editor->gateway->process.number);
			editor_disconnects(editor, duration);
			editor_comes_again(editor);
	}
}

/* ---- a schedule ---- */

static void
begin_peace(void)
{
	sim_trace("peace");
	peace = true;
	sim_zookeeper_heal();
	sim_database_heal();
	for (int i = 0; i < GATEWAYS; i++)
	{
		Gateway *gateway = gateways[i];

		if (gateway && gateway->process.stopped)
			gateway_continues(gateway);
		if (gateway && gateway->drains)
		{
			gateway->drains = false;
			sim_after(&gateway->process, 0, gateway_drains, gateway);
		}
		gateway_start(i);
	}
	for (int i = 1; i < EDITORS; i++)
		if (editors[i].state == AWAY)
			editor_comes(&editors[i]);
}

static void
check_peace(void)
{
	for (int i = 1; i < EDITORS; i++)
	{
		const Editor *editor = &editors[i];

		sim_promise(owner_of(editor->sheet) != NULL, "the gateways name different owners", editor->sheet);
		sim_promise(editor->state == LIVE, "an editor is not served after the peace", i);
		sim_promise(editor->gateway == owner_of(editor->sheet), "an editor is not served by the owner", i);
		sim_promise(editor->acked == editor->made, "an operation is not acknowledged after the peace", i);
		sim_promise(sim_log_last(editor->sheet, i) == editor->made, "the log has other operations than were sent", i);
		for (int j = 1; j < EDITORS && editor->state == LIVE; j++)
			sim_promise(editor->seen[j] == UINT64_MAX || editor->seen[j] == sim_log_last(editor->sheet, j),
						"an editor was not told all operations", i);
	}
}

static void
run_schedule(void)
{
	calm = sim_is_calm = seed % 4 == 0;
	sim_begin(seed);
	if (seed % 16 == 0)
		sim_commit_ms = 100 + (unsigned) sim_random(SLOW_MS - 100);
	sim_zookeeper_begin();
	for (int i = 0; i < GATEWAYS; i++)
		if (i < 2 || sim_percent(50))
			gateway_start(i);
	sim_after(NULL, 2000 * SIM_MS, change, NULL);
	if (!calm)
		sim_after(NULL, 2000 * SIM_MS, fault, NULL);
	sim_after(NULL, 0, watch, NULL);
	for (int i = 1; i < EDITORS; i++)
	{
		editors[i].number = i;
		editors[i].sheet = 1 + (int) sim_random(SHEETS);
		sim_after(NULL, (1000 + sim_random(2000)) * SIM_MS, editor_comes, &editors[i]);
		sim_after(NULL, 3000 * SIM_MS, editor_lives, &editors[i]);
	}
	sim_run(FAULTS_MS * SIM_MS);
	begin_peace();
	sim_run((FAULTS_MS + PEACE_MS) * SIM_MS);
	check_peace();
	result.commits = sim_database_commits();
	result.refusals = sim_database_refusals();
	sim_promise(!calm || result.refusals == 0, "the database has refused a batch without a fault", result.refusals);
}

static void
result_add(Result *sum, const Result *one)
{
	sum->grants += one->grants;
	sum->commits += one->commits;
	sum->refusals += one->refusals;
	sum->redirects += one->redirects;
	sum->moves += one->moves;
	sum->kills += one->kills;
	if (one->longest_wait > sum->longest_wait)
		sum->longest_wait = one->longest_wait;
	if (one->longest_way > sum->longest_way)
		sum->longest_way = one->longest_way;
	if (one->longest_move > sum->longest_move)
		sum->longest_move = one->longest_move;
}

/* ---- children ---- */

static unsigned long failures;
static Result sum;

/* In a child process. */
static void
child_run(uint64_t number)
{
	seed = number;
	run_schedule();
}

/* A child has the same addresses of constant texts. */
static void
child_ended(uint64_t number, const void *its)
{
	static const Result none = {.failure = "the process has ended"};
	const Result *one = its ? its : &none;

	result_add(&sum, one);
	if (one->failure && failures++ < 10)
		TAP_OK(false, "seed %llu: %s (%lld)", (unsigned long long) number, one->failure, one->failed_number);
}
int
main(void)
{
	unsigned long count = sim_setting("SCHEDULES", steps_to_run(1000, 10000));
	uint64_t first = sim_setting("SEED", 1);

	sim_traces = getenv("TRACE") != NULL;
	if (sim_traces)
		setlinebuf(stdout); /* between the lines of the gateways' log */
	log_setup(sim_traces ? "debug" : "error", "text");
	gateways_load();
	sim_run_children(first, count, child_run, &result, sizeof(result), child_ended);
	printf(
		"# seeds %llu to %llu: %ld locks granted, %ld moves, %ld redirects, %ld gateways killed, %ld batches "
		"committed, %ld refused; without faults at most %llu ms and %d redirects until an editor was served, %llu ms "
		"until a sheet was moved\n",
		(unsigned long long) first, (unsigned long long) (first + count - 1), sum.grants, sum.moves, sum.redirects,
		sum.kills, sum.commits, sum.refusals, (unsigned long long) (sum.longest_wait / SIM_MS), sum.longest_way,
		(unsigned long long) (sum.longest_move / SIM_MS));
	TAP_OK(failures == 0, "%lu schedules: %lu broke a promise", count, failures);
	TAP_OK(sum.moves > (long) count && sum.kills > 0 && sum.commits > 100 * (long) count,
		   "sheets were edited, and moved, and gateways killed");
	return tap_done();
}
