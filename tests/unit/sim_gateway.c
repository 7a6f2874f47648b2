/*
 * sim_gateway.c - a gateway of a simulated world: what gateway/main/ does for the sessions and the rooms.
 *
 * It is linked with the shipped code into a library, which sim_gateway.h describes.
 */
#include "sim_gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "auth/jwt.h"
#include "core/gateway.h"
#include "core/health.h"
#include "core/metrics.h"
#include "core/reach.h"
#include "main/away.h"
#include "main/coordination.h"
#include "ws/room/admission.h"
#include "ws/room/handover.h"
#include "ws/room/iteration.h"
#include "ws/room/members.h"
#include "ws/room/schedule.h"
#include "webhooks/webhooks.h"
#include "ws/v2/v2_session.h"

#define SESSION_MS		 2000
#define HANDOVER_SECONDS 4
#define DRAIN_SECONDS	 10

Gateway gateway;
Metrics metrics;
const Protocol protocol_v1; /* no client speaks it */

static SimProcess *process;
static void (*on_ended)(SimProcess *process);
static uv_timer_t second, again;
static bool ending;

extern const SimGatewayCalls sim_gateway_calls;

Coord *
coord_postgres_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	abort();
}

/* ---- what the shipped code asks ---- */

int64_t
gateway_now(void)
{
	return (int64_t) (sim_now / (1000 * SIM_MS)) + 1;
}

void
metrics_observe(Histogram *histogram, uint64_t value)
{
}

void
metrics_count_close(int code)
{
}

void
metrics_print_counter(Buf *to, const char *name, const char *help, uint64_t value)
{
}

void
metrics_print_gauge(Buf *to, const char *name, const char *help, uint64_t value)
{
}

/* A token is the account's number. */
JwtStatus
jwt_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims)
{
	char text[24];

	snprintf(text, sizeof(text), "%.*s", (int) len, token);
	*claims = (JwtClaims){.uid = atoll(text), .expires_at = INT64_MAX};
	return JWT_OK;
}

bool
reach_is_refusing(const char *member)
{
	return sim_is_refusing(member);
}

bool
health_database_answers(void)
{
	return sim_database_answers(process);
}

/* ---- iterations of the loop, as in main.c ---- */

static void
nothing(uv_timer_t *timer)
{
}

static void
iterate(void)
{
	iteration_finish();
	if ((iteration_has_more() || iteration_has_waiting()) && !uv_is_active((uv_handle_t *) &again))
		uv_timer_start(&again, nothing, iteration_has_more() ? 1 : 20, 0);
}

static void
tick(uv_timer_t *timer)
{
	iteration_tick_rooms();
	away_tick();
	v2_tick();
}

/* ---- life ---- */

static void
on_closed(void *arg)
{
	gateway.coord = NULL;
	on_ended(process);
}

static void
finish(bool at_once)
{
	if (ending)
		return;
	ending = true;
	gateway.stopping = true;
	coord_close(gateway.coord, on_closed, NULL);
}

static void
on_fatal(void *arg, const char *reason)
{
	sim_trace("gateway %d cannot go on: %s", process->number, reason);
	finish(true);
}

static void
on_granted(void *arg, int64_t sheet_id, int64_t epoch)
{
	sim_on_granted(process, sheet_id, epoch);
	coordination_events.granted(arg, sheet_id, epoch);
}

static void
start(SimProcess *self, const char *address, void (*ended)(SimProcess *process))
{
	CoordConfig config = {"zookeeper", address, 1, "", SIM_HOSTS, SIM_ROOT, SESSION_MS, NULL};
	CoordEvents events = coordination_events;

	process = self;
	on_ended = ended;
	self->iterate = iterate;
	gateway.loop.data = self;
	gateway.config = (Config){.public_address = (char *) address,
							  .public_scheme = "http",
							  .tls_certificate = "",
							  .zookeeper_session_ms = SESSION_MS,
							  .max_frame_bytes = 1 << 20,
							  .batch_edits = 10000,
							  .send_queue_bytes = 8 << 20,
							  .stalled_receiver_seconds = 30,
							  .snapshot_bytes = 1 << 20,
							  .range_cache_bytes = 1 << 20,
							  .lease_seconds = 60,
							  .drain_seconds = DRAIN_SECONDS,
							  .handover_seconds = HANDOVER_SECONDS};
	gateway.origin = 1 + (int64_t) sim_random(1u << 31);
	gateway.group = sim_database_open(self);
	uv_timer_init(&gateway.loop, &second);
	uv_timer_init(&gateway.loop, &again);
	uv_timer_start(&second, tick, 1000, 1000);
	drain_open(finish);
	events.fatal = on_fatal;
	events.granted = on_granted;
	gateway.coord = coord_open(&gateway.loop, &config, &events);
}

static void
accept_client(struct Socket *socket, int64_t sheet_id)
{
	(void) v2_session_open(socket, sheet_id, "");
}

static void
stop(void)
{
	drain_and_stop(0);
}

static void
drain(bool begin)
{
	if (begin)
		drain_begin();
	else
		drain_cancel();
}

static void
fail(int64_t sheet_id)
{
	Room *room = room_find(sheet_id);

	if (room == NULL)
		return;
	room_fail_memory(room);
	room_mark_dirty(room); /* it may have no members whose end would end it */
}

static const char *
owner(int64_t sheet_id)
{
	return coord_owner_of(gateway.coord, sheet_id);
}

static bool
holds(int64_t sheet_id)
{
	return gateway.coord != NULL && coord_holds(gateway.coord, sheet_id);
}

static bool
serves(int64_t sheet_id)
{
	const Room *room = room_find(sheet_id);

	return !gateway.suspended && (holds(sheet_id) || (room != NULL && room->state == ROOM_SERVING));
}

const SimGatewayCalls sim_gateway_calls = {start, accept_client, stop, drain, fail, owner, holds, serves};

/* There are no webhooks. */
void
webhooks_edited(int64_t sheet_id)
{
}
