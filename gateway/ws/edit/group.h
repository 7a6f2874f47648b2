/*
 * group.h - batches of several sheets in one transaction; see group.c.
 */
#ifndef GROUP_H
#define GROUP_H

#include "ws/room/room.h"

/* Where the room's next statement of this turn goes: gateway.group, or a connection of its own. NULL: the room waits
 * for the group under way, and is dirty again when that has ended. */
extern PgConn *group_place(Room *room, const RoomBatch *batch);
/* At the beginning of a turn: rooms that waited are dirty when the group has ended. */
extern void group_wake(void);
/* At the end of a turn: the group is sent. */
extern void group_commit(void);

#endif
