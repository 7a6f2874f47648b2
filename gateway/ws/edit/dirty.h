/*
 * dirty.h - rooms that are to be looked at in the next turn of the loop; see dirty.c.
 */
#ifndef DIRTY_H
#define DIRTY_H

#include "ws/room/room.h"

extern void room_mark_dirty(Room *room);
/* Something waits for its time: look again soon. */
extern bool room_any_dirty(void);
/* All of them, joined by next_dirty; each is on the list until its `dirty` is taken away. */
extern Room *room_take_dirty(void);

#endif
