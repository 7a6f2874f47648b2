/*
 * coordination.c - what the gateway does when the coordinator tells it something: who serves, and which sheets are
 * ours.
 *
 * main.c adds what ends the process. tests/unit/sim_gateway.c links this file as well.
 */
#include "main/coordination.h"

#include "core/gateway.h"
#include "support/log.h"
#include "ws/room/handover.h"
#include "ws/room/members.h"

static void
coordination_on_ready(void *arg)
{
	log_event(LOG_INFO, "serving", LOG_STR("address", gateway.config.public_address));
	gateway.ready = true;
	gateway.suspended = false;
}

static void
coordination_on_members(void *arg, const char *const *names, int count)
{
	log_event(LOG_INFO, "members changed", LOG_INT("members", count));
}

/* Another gateway may get the lock that members wait for here. */
static void
coordination_suspend_room(Room *room, void *arg)
{
	if (room->state == ROOM_LOCKING)
		members_send_away(room, NULL);
}

static void
coordination_on_suspended(void *arg)
{
	log_event(LOG_WARN, "lost contact with the coordinator: edits wait, and are not acknowledged");
	gateway.suspended = true;
	room_for_each(coordination_suspend_room, NULL);
}

static void
coordination_on_resumed(void *arg)
{
	log_event(LOG_INFO, "regained contact with the coordinator");
	gateway.suspended = false;
}

static void
coordination_on_granted(void *arg, int64_t sheet_id, int64_t epoch)
{
	room_granted(sheet_id, epoch);
}

static void
coordination_on_waiting(void *arg, int64_t sheet_id, const char *holder)
{
	handover_waiting(sheet_id, holder);
}

static void
coordination_on_lost(void *arg, int64_t sheet_id, const char *reason)
{
	room_lost(sheet_id, reason);
}

static void
coordination_on_released(void *arg, int64_t sheet_id)
{
	handover_released(sheet_id);
}

const CoordEvents coordination_events = {
	.ready = coordination_on_ready,
	.members = coordination_on_members,
	.suspended = coordination_on_suspended,
	.resumed = coordination_on_resumed,
	.granted = coordination_on_granted,
	.waiting = coordination_on_waiting,
	.lost = coordination_on_lost,
	.released = coordination_on_released,
};
