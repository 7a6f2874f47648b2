/*
 * dirty.c - rooms that have something to send, to tell or to wait for. Whatever happens to a room puts it on this list,
 * and the turn (turn.c) takes the list.
 */
#include "ws/edit/dirty.h"

static Room *dirty_rooms;

void
room_mark_dirty(Room *room)
{
	if (room->dirty)
		return;
	room->dirty = true;
	room->next_dirty = dirty_rooms;
	dirty_rooms = room;
}

bool
room_any_dirty(void)
{
	return dirty_rooms != NULL;
}

Room *
room_take_dirty(void)
{
	Room *rooms = dirty_rooms;

	dirty_rooms = NULL;
	return rooms;
}
