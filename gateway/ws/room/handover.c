/*
 * handover.c - moves a sheet to the gateway that the ring names as its owner.
 *
 * When gateways come or leave, the ring names another owner for some sheets. Their editors are not disturbed: the
 * holder of the sheet's lock goes on serving them. The new owner has newcomers wait for the lock; the coordinator tells
 * it who holds it, and it sends them there (handover_waiting). A holder that refuses connections is waited for. If the
 * holder is no member, it is asked for again each second: it may be another program, or a gateway whose session has
 * ended, after which a third one got the lock. Newcomers that have waited for longer than a session lasts are told so
 * and closed. Clients of protocol v1 are sent on before their WebSocket opens (http/routes/upgrade.c).
 *
 * The holder moves the sheet within handover-seconds. It keeps the sheet while the new owner refuses connections
 * (core/reach.c), or is cut off from the database. Moves are spread over the second half of that time. Members of
 * protocol v1 do not reconnect by themselves, so a sheet with such members moves only when the gateway drains.
 *
 *   due        move_at is set when the sheet's owner is found to be another gateway
 *   pausing    move_began is set: members are not read, until nothing is pending and everything is published
 *   MOVING     sheet.release has been sent; then the lock is given back
 *   LOST       the lock is gone: members are closed with the owner's address (4307, or 1012 for v1)
 *
 * Nothing is acknowledged from MOVING on, and a client sends what was not acknowledged to the new owner, where
 * sheet.apply recognises what is stored. Members are closed after the lock is gone, so that they find it free. If the
 * sheet is not quiet within PAUSE_MS, its members are read again for AGAIN_MS. The next pause may be twice as long,
 * since commits may be slow: the last two have to end in it.
 *
 * A gateway that drains tells the others so: they leave it out of the ring, and each of its sheets moves to its new
 * owner at once. Told by POST /admin/drain, it stays afterwards, and sends clients on. Told by a signal, it ends when
 * no member, sheet or request is left, after drain-seconds at the latest. Then, or if no other gateway serves, it is
 * `stopping`: pending edits are committed, and all members are closed (1012).
 */
#include "ws/room/handover.h"

#include "core/gateway.h"
#include "core/reach.h"
#include "core/redirect.h"
#include "support/log.h"
#include "ws/cache/cached_range.h"
#include "ws/room/members.h"
#include "ws/room/schedule.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE_MS	 300
#define PAUSE_MAX_MS 4800
#define AGAIN_MS	 1000
#define RELEASE_MS	 2000 /* in state MOVING, for the answer to sheet.release, and for the lock to go */
#define WAIT_MS		 5000 /* more than a session, for the lock */

#define DRAIN_STEP_MS 50
#define DRAIN_RING_MS 500 /* before the end: sheets that have not moved by then are closed */

/* Returns the member that is to serve the sheet instead of this one; NULL if there is none, or if it could not. */
static const char *
handover_target(const Room *room)
{
	const char *owner = coord_owner_of(gateway.coord, room_sheet_id(room));

	if (owner == NULL || coord_is_mine(gateway.coord, room_sheet_id(room)) || reach_is_refusing(owner) ||
		coord_is_cut(gateway.coord, owner))
		return NULL;
	return owner;
}

/* ---- waiting for the lock ---- */

void
handover_waiting(int64_t sheet_id, const char *holder)
{
	Room *room = room_find(sheet_id);
	char *name;

	if (room == NULL || room->state != ROOM_LOCKING)
		return;
	name = strdup(holder);
	if (name == NULL)
	{
		room_fail_memory(room);
		return;
	}
	if (room->holder == NULL || strcmp(room->holder, name) != 0)
		log_event(LOG_INFO, "waiting for sheet", LOG_INT("sheet", sheet_id), LOG_STR("holder", holder));
	free(room->holder);
	room->holder = name;
	if (members_holder_serves(room))
		members_send_away(room, room->holder);
}

static void
handover_on_holder(void *arg, const char *holder)
{
	Room *room = arg;

	if (holder != NULL)
		handover_waiting(room_sheet_id(room), holder);
	room_query_done(room);
}

/* Once a second. */
static void
handover_wait(Room *room)
{
	uint64_t now = uv_now(&gateway.loop);

	if (room->wait_until == 0)
		room->wait_until = now + (uint64_t) gateway.config.zookeeper_session_ms + WAIT_MS;
	if (members_holder_serves(room))
		members_send_away(room, room->holder);
	else if (now >= room->wait_until)
		room_fail(room, CLOSE_RESTART, "the sheet's lock is held by another program or gateway: come again");
	else if (room->holder == NULL)
		return; /* the coordinator is about to tell it */
	else if (!coord_is_member(gateway.coord, room->holder) || strcmp(room->holder, gateway.config.public_address) == 0)
	{
		room->queries++;
		if (!coord_ask_holder(gateway.coord, room_sheet_id(room), handover_on_holder, room))
			room->queries--;
	}
}

/* ---- moving ---- */

/* The lock is gone. */
static void
handover_finish(Room *room)
{
	const char *target = handover_target(room);

	log_event(LOG_INFO, "sheet moved", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("to", target ? target : ""),
			  LOG_INT("sessions", room->session_count),
			  LOG_INT("ms", (int64_t) (uv_now(&gateway.loop) - room->move_began)));
	room_set_state(room, ROOM_LOST);
	cached_range_invalidate(room_sheet_id(room));
	members_send_away(room, target);
}

void
handover_released(int64_t sheet_id)
{
	Room *room = room_find(sheet_id);

	if (room != NULL && room->state == ROOM_MOVING)
		handover_finish(room);
}

/* Whatever the answer: a sheet that was not released is checked at the next claim. */
static void
handover_told(void *arg, PGresult *res)
{
	Room *room = arg;

	if (room->state == ROOM_MOVING && gateway.coord != NULL)
		coord_release(gateway.coord, room_sheet_id(room));
	room_query_done(room);
}

static bool
room_is_quiet(const Room *room)
{
	return room->pending_edits == 0 && room->work == ROOM_IDLE && !room->links[ROOM_PUBLISHING].queued;
}

/* Reads the members again. move_at: 0 if the sheet is not to be moved. */
static void
handover_cancel(Room *room, uint64_t move_at)
{
	if (move_at == 0)
		room->move_pause = 0;
	room->move_at = move_at;
	if (room->move_began != 0)
		room_mark_dirty(room);
	room->move_began = 0;
}

void
handover_continue(Room *room)
{
	uint64_t now = uv_now(&gateway.loop);

	if (room->move_began == 0)
		return;
	if (handover_target(room) == NULL || gateway.suspended)
		handover_cancel(room, 0);
	else if (room_is_quiet(room) && room->queries == 0 && room_release(room, ROOM_MOVING, handover_told))
		room->move_at = now + RELEASE_MS;
	else if (room->work == ROOM_HELD)
		handover_cancel(room, now + AGAIN_MS);
	else if (now - room->move_began > room->move_pause)
	{
		bool rests = room->move_pause == PAUSE_MAX_MS && !gateway.draining;

		handover_cancel(room, now + (rests ? (uint64_t) gateway.config.handover_seconds * 1000 : AGAIN_MS));
		room->move_pause = room->move_pause < PAUSE_MAX_MS ? 2 * room->move_pause : PAUSE_MAX_MS;
	}
}

/* ---- when ---- */

/* The same for each sheet, so that the sheets of a gateway move one after the other. */
static uint64_t
handover_delay(const Room *room)
{
	uint64_t half = (uint64_t) gateway.config.handover_seconds * 500;
	uint64_t spread = (uint64_t) room_sheet_id(room) * 2654435761u % 1000;

	return gateway.draining ? 0 : half + half * spread / 1000;
}

void
handover_tick(Room *room)
{
	uint64_t now = uv_now(&gateway.loop);

	if (room->state == ROOM_MOVING && now > room->move_at)
	{
		if (coord_holds(gateway.coord, room_sheet_id(room))) /* the database has not answered */
			coord_release(gateway.coord, room_sheet_id(room));
		if (room->state == ROOM_MOVING)
			handover_finish(room);
	}
	if (room->state == ROOM_LOCKING)
		handover_wait(room);
	if (!room_is_open(room))
		return;
	if (gateway.suspended || handover_target(room) == NULL)
	{
		handover_cancel(room, 0);
		return;
	}
	if (room->move_at == 0 || (gateway.draining && room->move_at > now + AGAIN_MS))
		room->move_at = now + handover_delay(room);
	if (now < room->move_at || room->move_began != 0 || room->work == ROOM_HELD ||
		(room->streams[STREAM_V1].readers > 0 && !gateway.draining))
		return;
	room->move_began = now;
	if (room->move_pause == 0)
		room->move_pause = PAUSE_MS;
	room_watch(room);
}

/* Moves the sheet at once; if the gateway is stopping, closes its members. */
static void
drain_room(Room *room, void *arg)
{
	const char *target = handover_target(room);

	if (gateway.stopping)
	{
		if (room->state != ROOM_MOVING && (room_is_quiet(room) || !room_is_open(room)))
			members_send_away(room, NULL);
	}
	else if (target != NULL && room->state == ROOM_LOCKING)
		members_send_away(room, target);
	else if (target != NULL)
		handover_tick(room);
}

/* ---- all sheets ---- */

static uv_timer_t drain_timer;
static uint64_t drain_until; /* ms; 0: the gateway is not to end yet */
static void (*drain_finish)(bool at_once);

static void
drain_on_timer(uv_timer_t *handle)
{
	uint64_t now = uv_now(&gateway.loop);

	drain_begin();
	if (gateway.leaving && drain_until == 0)
		drain_until = now + (uint64_t) gateway.config.drain_seconds * 1000;
	gateway.stopping = gateway.leaving && (gateway.suspended || now + DRAIN_RING_MS >= drain_until ||
										   !coord_another_serves(gateway.coord));
	room_for_each(drain_room, NULL);
	if (gateway.leaving && (now >= drain_until || (members_count() == 0 && room_count() == 0)))
		drain_finish(now >= drain_until);
}

void
drain_open(void (*finish)(bool at_once))
{
	drain_finish = finish;
	uv_timer_init(&gateway.loop, &drain_timer);
}

uv_handle_t *
drain_handle(void)
{
	return (uv_handle_t *) &drain_timer;
}

void
drain_begin(void)
{
	if (gateway.draining)
		return;
	log_event(LOG_INFO, "draining", LOG_INT("sessions", members_count()), LOG_INT("sheets", room_count()));
	gateway.draining = true;
	coord_set_state(gateway.coord, COORD_DRAINING);
	uv_timer_start(&drain_timer, drain_on_timer, 0, DRAIN_STEP_MS);
}

void
drain_cancel(void)
{
	if (!gateway.draining || gateway.leaving)
		return;
	log_event(LOG_INFO, "takes sheets again");
	gateway.draining = false;
	coord_set_state(gateway.coord, COORD_SERVING);
	uv_timer_stop(&drain_timer);
}

void
drain_and_stop(uint64_t notice_ms)
{
	if (gateway.draining && gateway.leaving)
		drain_until = uv_now(&gateway.loop);
	uv_timer_start(&drain_timer, drain_on_timer, gateway.leaving || gateway.draining ? 0 : notice_ms, DRAIN_STEP_MS);
	gateway.leaving = true;
}
