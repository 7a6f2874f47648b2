/*
 * schedule.h - queues of rooms, and batches of several sheets in one transaction; see schedule.c.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "ws/room/room.h"

/* Appends the room, unless it is in the queue. */
extern void schedule_add(Room *room, RoomQueue queue);
/* Removes and returns the first room; NULL when there is none. */
extern Room *schedule_take(RoomQueue queue);
/* Calls fn for each room that is in the queue now, and removes it before. */
extern void schedule_take_all(RoomQueue queue, void (*fn)(Room *room));
extern bool schedule_has(RoomQueue queue);
/* Returns whether the room is in any queue. */
extern bool schedule_has_room(const Room *room);
/* The room has something to do in the next iteration. */
extern void room_mark_dirty(Room *room);

/* Returns the connection for the room's next batch: gateway.group or one of its own. NULL: the room waits for the group
 * under way, and is dirty again after it. */
extern PgConn *schedule_connection(Room *room, const RoomBatch *batch);
/* At the beginning of an iteration. */
extern void schedule_begin_group(void);
/* At the end of an iteration: commits the group. */
extern void schedule_end_group(void);

#endif
