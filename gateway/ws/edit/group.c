/*
 * group.c - batches of several sheets in one transaction, so that many sheets with a few edits each share one commit
 * and its fsync.
 *
 * One connection (gateway.group) has one group under way: the batches of all rooms that were ready in one turn of the
 * loop. Rooms that become ready meanwhile wait, and are the next group: no timer, and a single sheet at low load is a
 * group of one at once. A large batch, or one that deletes rows, goes alone, so that others do not wait for it.
 *
 * A group fails as a whole. The sheet that is at fault gets the error, and goes alone (room->alone) until a batch of
 * its has succeeded; the others are told that the group was aborted, and send the same batch again. A sheet that
 * another transaction holds is no failure: sheet.apply does not wait for it, and says so (held.c).
 */
#include "ws/edit/group.h"

#include "ws/edit/dirty.h"
#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"

#define GROUP_BATCH_EDITS 1000	  /* a batch of more goes alone */
#define GROUP_BYTES		  1048576 /* of all batches of a group */

static Room *waiting_rooms;
static bool group_open; /* in this turn */
static size_t group_bytes;

PgConn *
group_place(Room *room, const RoomBatch *batch)
{
	if (room->alone || batch->structural || batch->count > GROUP_BATCH_EDITS || !pgconn_is_up(gateway.group))
		return database_choose(DATABASE_EDITS);
	if (group_open ? group_bytes < GROUP_BYTES : pgconn_pending(gateway.group) == 0)
	{
		group_bytes = (group_open ? group_bytes : 0) + batch->edits.len;
		group_open = true;
		return gateway.group;
	}
	if (!room->queued)
	{
		room->queued = true;
		room->next_queued = waiting_rooms;
		waiting_rooms = room;
	}
	return NULL;
}

void
group_wake(void)
{
	Room *room = waiting_rooms;

	if (room == NULL || (pgconn_is_up(gateway.group) && pgconn_pending(gateway.group) > 0))
		return;
	waiting_rooms = NULL;
	while (room != NULL)
	{
		Room *next = room->next_queued;

		room->queued = false;
		room_mark_dirty(room);
		room = next;
	}
}

void
group_commit(void)
{
	if (!group_open)
		return;
	group_open = false;
	metrics.groups++;
	pgconn_sync(gateway.group);
}
