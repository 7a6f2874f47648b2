/*
 * iteration.c - what rooms do at the end of each iteration of the event loop, when all input has been read.
 *
 * First the database gets its batches. While it works, receivers are sent what is committed. Then the rooms that had
 * to do with either are checked: receivers that lag, edits of others to be fetched, the room's end.
 */
#include "ws/room/iteration.h"

#include "core/gateway.h"
#include "ws/room/admission.h"
#include "ws/room/commit.h"
#include "ws/room/handover.h"
#include "ws/room/members.h"
#include "ws/room/publish.h"
#include "ws/room/schedule.h"

#include <uv.h>

/* Time for receivers other than authors, before input is read again. */
#define PUBLISH_SLICE_NS 1000000

static void
iteration_send(Room *room)
{
	schedule_add(room, ROOM_TOUCHED);
	if (room_is_open(room))
	{
		members_resign_closing(room);
		members_grant_ranges(room);
		commit_send(room);
	}
}

static void
iteration_publish(void)
{
	uint64_t until;
	Room *room;

	publish_to_authors();
	until = uv_hrtime() + PUBLISH_SLICE_NS;
	while (uv_hrtime() <= until && (room = schedule_take(ROOM_PUBLISHING)) != NULL)
	{
		publish_room(room);
		schedule_add(room, ROOM_TOUCHED);
	}
}

static void
iteration_check(Room *room)
{
	if (room_is_open(room))
	{
		publish_control(room);
		handover_continue(room);
	}
	if (room_is_open(room))
		commit_fetch(room);
	room_check_end(room);
}

void
iteration_finish(void)
{
	schedule_begin_group();
	schedule_take_all(ROOM_DIRTY, iteration_send);
	schedule_end_group();
	iteration_publish();
	schedule_take_all(ROOM_TOUCHED, iteration_check);
}

bool
iteration_has_more(void)
{
	return schedule_has(ROOM_PUBLISHING);
}

bool
iteration_has_waiting(void)
{
	return schedule_has(ROOM_DIRTY);
}

static void
iteration_tick_room(Room *room, void *arg)
{
	int64_t now = *(int64_t *) arg;

	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
		admission_tick(session, now);
	members_expire_locks(room);
	handover_tick(room);
}

void
iteration_tick_rooms(void)
{
	int64_t now = gateway_now();

	room_for_each(iteration_tick_room, &now);
}
