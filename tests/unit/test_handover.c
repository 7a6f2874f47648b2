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
#include "sim_gateway.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/ring.h"
#include "support/log.h"
#include "tap.h"

#define GATEWAYS	 3
#define LIBRARIES	 16 /* processes of a schedule */
#define SHEETS		 4
#define EDITORS		 8
#define SESSION_MS	 2000
#define HANDOVER_MS	 4000 /* sim_gateway.c sets handover-seconds */
#define FAULTS_MS	 15000
#define PEACE_MS	 16000
#define QUIET_MS	 4000 /* at the end nothing is edited */
#define RING_MS		 1000 /* in which all hear of a change */
#define REDIRECT_MS	 250  /* until a redirect has arrived */
#define RESTART_MS	 100  /* at least, between the end of a gateway and its next start: as systemd's RestartSec */
#define SERVED_MS	 500
#define IMPATIENT_MS 4000 /* more than a session */
#define HOPS_MAX	 8
#define MOVED_MS	 2000
#define SLOW_MS		 600
#define SLOW_PAUSES	 8

typedef struct Gateway
{
	SimProcess process;
	const SimGatewayCalls *calls;
	char address[16];
	bool drains, leaves;
	uint64_t continued;
	uint64_t ended; /* when it refused connections */
} Gateway;

typedef enum EditorState
{
	AWAY,
	CONNECTING,
	LIVE
} EditorState;

typedef struct Editor
{
	int number, sheet;
	EditorState state;
	struct Socket *socket;
	unsigned connection; /* counts */
	Gateway *gateway;
	uint64_t began;			/* when it wanted to be served, or the connection began */
	int hops;				/* redirects since it wants to be served */
	uint64_t waits;			/* since when it wants to be served; 0: it is served, or away */
	uint64_t heard;			/* the last acknowledgement, or the hello */
	uint64_t made, acked;	/* operations */
	uint64_t since;			/* seq that it knows; 0: none */
	uint64_t seen[EDITORS]; /* the last operation of each editor that it was told; UINT64_MAX: unknown */
} Editor;

/* Of a schedule, or of all. */
typedef struct Result
{
	const char *failure; /* the first one */
	long long failed_number;
	long grants, commits, refusals, redirects, moves, kills;
	int longest_way; /* redirects until an editor was served, without faults */
	uint64_t longest_wait, longest_move;
} Result;

static const SimGatewayCalls *libraries[LIBRARIES];
static int libraries_used;
static Gateway *gateways[GATEWAYS];
static Editor editors[EDITORS];
static int64_t greatest[SHEETS + 1];	   /* epochs granted */
static uint64_t misplaced[SHEETS + 1];	   /* since when another gateway than the owner has the sheet; 0: none has */
static const Gateway *holders[SHEETS + 1]; /* the last gateway that had it */
static bool holder_drains[SHEETS + 1];
static uint64_t changed_at, changed_before; /* when the ring has last changed, and the time before */
static bool calm, peace;
static uint64_t seed;
static Result result;

void
sim_promise(bool kept, const char *what, int64_t number)
{
	if (kept || result.failure)
		return;
	sim_trace("NOT KEPT: %s (%lld)", what, (long long) number);
	result.failure = what;
	result.failed_number = number;
}

/* ---- gateways ---- */

static Gateway *
gateway_of(const SimProcess *process)
{
	return (Gateway *) process;
}

static Gateway *
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

static void
gateway_kill(Gateway *gateway)
{
	result.kills++;
	sim_kill(&gateway->process);
	gateway_is_gone(gateway);
}

static void gateway_starts(void *arg);

static void
gateway_runs(void *arg)
{
	Gateway *gateway = arg;

	gateway->calls->start(&gateway->process, gateway->address, on_ended);
}

/* Starts the gateway, unless it runs. */
static void
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

static void
gateway_starts(void *arg)
{
	gateway_start((int) (intptr_t) arg);
}

static void
gateway_stops(void *arg)
{
	ring_changes();
	((Gateway *) arg)->calls->stop();
}

static void
gateway_drains(void *arg)
{
	ring_changes();
	((Gateway *) arg)->calls->drain(((Gateway *) arg)->drains);
}

static bool
serves(const Gateway *gateway)
{
	return gateway && !gateway->process.dead && gateway->calls->owner(1) && !gateway->leaves && !gateway->drains;
}

static int
count_serving(void)
{
	int count = 0;

	for (int i = 0; i < GATEWAYS; i++)
		count += serves(gateways[i]);
	return count;
}

/* ---- editors ---- */

static void editor_connect(Editor *editor, Gateway *gateway);

/* A gateway that answers, as a load balancer would choose one. */
static Gateway *
any_gateway(void)
{
	int first = (int) sim_random(GATEWAYS);

	for (int i = 0; i < GATEWAYS; i++)
	{
		Gateway *gateway = gateways[(first + i) % GATEWAYS];

		if (serves(gateway))
			return gateway;
	}
	return NULL;
}

static void
editor_comes(void *arg)
{
	Editor *editor = arg;
	Gateway *gateway = any_gateway();

	if (editor->state == AWAY && gateway)
		editor_connect(editor, gateway);
	else if (editor->state == AWAY)
		sim_after(NULL, 100 * SIM_MS, editor_comes, editor);
}

static void
editor_comes_again(Editor *editor)
{
	editor->state = AWAY;
	editor->connection++;
	if (editor->waits == 0)
		editor->waits = sim_now;
	sim_after(NULL, (20 + sim_random(200)) * SIM_MS, editor_comes, editor);
}

static void
editor_sends(Editor *editor, uint64_t n)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "{\"t\":\"op\",\"n\":%llu,\"edits\":[[%d,%llu,\"%llu\"]]}",
					   (unsigned long long) n, editor->number, (unsigned long long) n, (unsigned long long) n);

	sim_send(editor->socket, text, (size_t) len);
}

static uint64_t
number_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Operations up to n are acknowledged. */
static void
editor_takes_ack(Editor *editor, uint64_t n)
{
	sim_promise(n <= sim_log_last(editor->sheet, editor->number), "an acknowledged operation is not in the log",
				editor->number);
	sim_promise(n >= editor->acked, "an acknowledged operation is forgotten", editor->number);
	editor->acked = n;
	editor->heard = sim_now;
}

static void
editor_takes_hello(Editor *editor, const char *text)
{
	bool resumed = strstr(text, "\"resumed\":true") != NULL;

	editor->state = LIVE;
	sim_trace("editor %d is served by gateway %d", editor->number, editor->gateway->process.number);
	if (calm && sim_commit_ms == 0 && editor->waits != 0 && sim_now - editor->waits > result.longest_wait)
		result.longest_wait = sim_now - editor->waits;
	if (calm && editor->waits != 0)
		sim_promise(sim_now - editor->waits < (SERVED_MS + 3 * sim_commit_ms) * SIM_MS,
					"an editor is not served in time", editor->number);
	if (calm && editor->hops > result.longest_way)
		result.longest_way = editor->hops;
	if (calm)
		sim_promise(editor->hops <= HOPS_MAX, "an editor is sent to and fro", editor->number);
	editor->waits = 0;
	editor->hops = 0;
	editor_takes_ack(editor, number_in(text, "\"landed\":"));
	if (!resumed)
	{
		editor->since = number_in(text, "\"seq\":");
		memset(editor->seen, 0xff, sizeof(editor->seen));
	}
	for (uint64_t n = editor->acked + 1; n <= editor->made; n++)
		editor_sends(editor, n);
}

/* {"t":"edits","seq":9,"more":false,"edits":[[uid,row,col,"content"],...]} */
static void
editor_takes_edits(Editor *editor, const char *text)
{
	for (const char *at = strstr(text, "\"edits\":["); (at = strchr(at, '[')); at++)
	{
		unsigned long long uid, row, col;

		if (sscanf(at, "[%llu,%llu,%llu", &uid, &row, &col) != 3)
			continue;
		sim_promise(editor->seen[row] == UINT64_MAX || editor->seen[row] + 1 == col,
					"an editor is not told each operation once and in order", editor->number);
		editor->seen[row] = col;
	}
	if (strstr(text, "\"more\":false"))
		editor->since = number_in(text, "\"seq\":");
}

typedef struct Connected
{
	Editor *editor;
	unsigned connection;
} Connected;

static void
on_message(void *arg, const char *bytes, size_t len)
{
	Editor *editor = ((Connected *) arg)->editor;
	char *text = strndup(bytes, len);

	if (editor->connection != ((Connected *) arg)->connection)
		;
	else if (strncmp(text, "{\"t\":\"hello\"", 12) == 0)
		editor_takes_hello(editor, text);
	else if (strncmp(text, "{\"t\":\"ack\"", 10) == 0)
		editor_takes_ack(editor, number_in(text, "\"n\":"));
	else if (strncmp(text, "{\"t\":\"edits\"", 12) == 0)
		editor_takes_edits(editor, text);
	else if (strncmp(text, "{\"t\":\"nack\"", 11) == 0)
		sim_promise(false, "an operation is refused", editor->number);
	free(text);
}

/*
 * Returns whether the editor may be closed for this reason without a fault: the gateway that the ring names has just
 * ended, and the others have not heard of it yet; or the ring has changed back while the sheet moved.
 */
static bool
is_of_change(const char *reason)
{
	if (sim_now - changed_at >= RING_MS * SIM_MS)
		return false;
	return strstr(reason, "accepts no connections") ||
		   (strstr(reason, "come again") && sim_now - changed_before < (HANDOVER_MS + MOVED_MS) * SIM_MS);
}

static void
on_closed(void *arg, int code, const char *reason)
{
	Editor *editor = ((Connected *) arg)->editor;
	const char *address = strstr(reason, "://");
	Gateway *gateway;
	char name[16];

	if (editor->connection != ((Connected *) arg)->connection)
		return;
	sim_trace("editor %d is closed by gateway %d: %d %s", editor->number, editor->gateway->process.number, code,
			  reason);
	if (code != 4307)
	{
		sim_promise(!calm || code == 0 || is_of_change(reason), "an editor is refused", editor->number);
		sim_promise(code != 4412, "what was acknowledged is not known", editor->number);
		editor_comes_again(editor);
		return;
	}
	result.redirects++;
	editor->hops++;
	snprintf(name, sizeof(name), "%.*s", (int) strcspn(address + 3, "/"), address + 3);
	if (editor->waits == 0)
		editor->waits = sim_now;
	gateway = gateway_at(name);
	sim_promise(!gateway || !gateway->process.dead || sim_now - gateway->ended < REDIRECT_MS * SIM_MS,
				"an editor is sent to a gateway that refuses connections", editor->number);
	if (gateway)
		editor_connect(editor, gateway);
	else
		editor_comes_again(editor);
}

static void
editor_connect(Editor *editor, Gateway *gateway)
{
	static const SimClient client = {on_message, on_closed};
	Connected *connected = malloc(sizeof(*connected));
	char text[160];
	int len = snprintf(
		text, sizeof(text), "{\"t\":\"hello\",\"v\":3,\"token\":\"%d\",\"client\":%d,\"acked\":%llu,\"since\":%llu}",
		editor->number, editor->number, (unsigned long long) editor->acked, (unsigned long long) editor->since);

	*connected = (Connected){editor, ++editor->connection};
	editor->state = CONNECTING;
	editor->gateway = gateway;
	editor->began = sim_now;
	if (editor->waits == 0)
		editor->waits = sim_now;
	editor->socket = sim_connect(&gateway->process, gateway->calls, editor->sheet, &client, connected);
	sim_send(editor->socket, text, (size_t) len);
}

static void
editor_disconnects(Editor *editor, uint64_t unnoticed)
{
	if (editor->state != AWAY)
		sim_disconnect(editor->socket, unnoticed);
	editor->connection++;
	editor->state = AWAY;
	editor->waits = 0;
	editor->hops = 0;
}

static bool
editor_is_impatient(const Editor *editor)
{
	return (editor->state == CONNECTING && sim_now - editor->began > IMPATIENT_MS * SIM_MS) ||
		   (editor->state == LIVE && editor->made > editor->acked && sim_now - editor->heard > 6000 * SIM_MS);
}

static void
editor_lives(void *arg)
{
	Editor *editor = arg;
	bool quiet = sim_now > (FAULTS_MS + PEACE_MS - QUIET_MS) * SIM_MS;

	sim_after(NULL, (50 + sim_random(800)) * SIM_MS, editor_lives, editor);
	if (editor_is_impatient(editor))
	{
		sim_trace("editor %d waits no more for gateway %d", editor->number, editor->gateway->process.number);
		sim_promise(!calm && (!peace || editor->began < (FAULTS_MS + SESSION_MS) * SIM_MS),
					"an editor waits for too long", editor->number);
		editor_disconnects(editor, 0);
		editor_comes_again(editor);
	}
	else if (!peace && editor->state != AWAY && sim_percent(3))
	{
		sim_trace("editor %d leaves", editor->number);
		editor_disconnects(editor, 0);
		if (sim_percent(50))
			editor->since = 0;
		sim_after(NULL, sim_random(3000) * SIM_MS, editor_comes, editor);
	}
	else if (!quiet && editor->made - editor->acked < 5 && (editor->state == LIVE || sim_percent(20)))
	{
		if (editor->made == editor->acked)
			editor->heard = sim_now;
		editor->made++;
		if (editor->state == LIVE)
			editor_sends(editor, editor->made);
	}
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
	else if (serves(gateway) && count_serving() > 1)
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

int
main(void)
{
	unsigned long count = sim_setting("SCHEDULES", steps_to_run(1000, 10000));
	uint64_t first = sim_setting("SEED", 1);

	sim_traces = getenv("TRACE") != NULL;
	if (sim_traces)
		setlinebuf(stdout); /* between the lines of the gateways' log */
	log_setup(sim_traces ? "debug" : "error", "text");
	load_libraries();
	build_rings();
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
