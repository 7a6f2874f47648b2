/*
 * turn.c - the end of a turn of the loop, when all has been read that had come.
 *
 * First the database gets its work, then the receivers what is committed, while it is busy; then it is seen who is
 * behind, for rooms that were touched by the one or the other, and whether they can end.
 */
#include "ws/edit/turn.h"

#include "ws/session/backlog.h"
#include "ws/edit/commit.h"
#include "ws/edit/dirty.h"
#include "ws/edit/group.h"
#include "ws/edit/publish.h"
#include "ws/room/room.h"

#include <uv.h>

/* Receivers, besides authors, are written to for so long before the loop looks again at senders and the database. */
#define PUBLISH_SLICE_NS 1000000

static Room *touched_rooms;

static void
turn_touch(Room *room)
{
	if (room->touched)
		return;
	room->touched = true;
	room->next_touched = touched_rooms;
	touched_rooms = room;
}

static void
turn_send(void)
{
	Room *room = room_take_dirty(), *next;

	for (; room != NULL; room = next)
	{
		next = room->next_dirty;
		room->dirty = false;
		turn_touch(room);
		if (room->state == ROOM_SERVING)
			commit_send(room);
	}
}

static void
turn_publish(void)
{
	uint64_t until;
	Room *room;

	publish_to_authors();
	until = uv_hrtime() + PUBLISH_SLICE_NS;
	while ((room = publish_next(until)) != NULL)
		turn_touch(room);
}

static void
turn_balance(void)
{
	Room *room = touched_rooms, *next;

	touched_rooms = NULL;
	for (; room != NULL; room = next)
	{
		next = room->next_touched;
		room->touched = false;
		if (room->state == ROOM_SERVING)
		{
			room_control_senders(room);
			commit_follow(room);
		}
		room_check_end(room);
	}
}

void
turn_finish(void)
{
	group_wake();
	turn_send();
	group_commit();
	turn_publish();
	turn_balance();
}
