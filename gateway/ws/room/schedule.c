/*
 * schedule.c - queues of rooms that have something to do, and which batches share a transaction.
 *
 * Groups: the batches of all rooms that are ready in an iteration share one transaction, so that many sheets with a few
 * edits each share one commit and its fsync. gateway.group has one group under way. Rooms that become ready meanwhile
 * are the next group: no timer, and one sheet at low load is a group of its own at once. A large batch, or one that
 * deletes rows, goes alone, so that others do not wait for it.
 *
 * A group fails as a whole. The sheet at fault gets the error, and goes alone until a batch of it succeeds; the others
 * send the same batch again. A held sheet is no failure: sheet.apply does not wait for it, and says so (held.c).
 */
#include "ws/room/schedule.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"

#define GROUP_BATCH_EDITS 1000	  /* a larger batch goes alone */
#define GROUP_BYTES		  1048576 /* of all batches of a group */

static struct
{
	Room *first, *last;
} queues[ROOM_QUEUES];

static bool group_open; /* in this iteration */
static size_t group_bytes;

void
schedule_add(Room *room, RoomQueue queue)
{
	if (room->links[queue].queued)
		return;
	room->links[queue] = (RoomLink){NULL, true};
	if (queues[queue].first != NULL)
		queues[queue].last->links[queue].next = room;
	else
		queues[queue].first = room;
	queues[queue].last = room;
}

Room *
schedule_take(RoomQueue queue)
{
	Room *room = queues[queue].first;

	if (room == NULL)
		return NULL;
	queues[queue].first = room->links[queue].next;
	room->links[queue].queued = false;
	return room;
}

void
schedule_take_all(RoomQueue queue, void (*fn)(Room *room))
{
	const Room *last = queues[queue].last;
	Room *room = schedule_has(queue) ? schedule_take(queue) : NULL;

	while (room != NULL)
	{
		bool more = room != last;

		fn(room);
		room = more ? schedule_take(queue) : NULL;
	}
}

bool
schedule_has(RoomQueue queue)
{
	return queues[queue].first != NULL;
}

bool
schedule_has_room(const Room *room)
{
	for (int queue = 0; queue < ROOM_QUEUES; queue++)
	{
		if (room->links[queue].queued)
			return true;
	}
	return false;
}

void
room_mark_dirty(Room *room)
{
	schedule_add(room, ROOM_DIRTY);
}

/* ---- groups ---- */

PgConn *
schedule_connection(Room *room, const RoomBatch *batch)
{
	if (room->alone || batch->refusable || batch->count > GROUP_BATCH_EDITS || !pgconn_is_up(gateway.group))
		return database_choose(DATABASE_EDITS);
	if (group_open ? group_bytes < GROUP_BYTES : pgconn_pending(gateway.group) == 0)
	{
		group_bytes = (group_open ? group_bytes : 0) + batch->edits.len;
		group_open = true;
		return gateway.group;
	}
	schedule_add(room, ROOM_FOR_GROUP);
	return NULL;
}

void
schedule_begin_group(void)
{
	if (!pgconn_is_up(gateway.group) || pgconn_pending(gateway.group) == 0)
		schedule_take_all(ROOM_FOR_GROUP, room_mark_dirty);
}

void
schedule_end_group(void)
{
	if (!group_open)
		return;
	group_open = false;
	metrics.groups++;
	pgconn_sync(gateway.group);
}
