/*
 * held.h - sheets that another transaction holds; see held.c.
 */
#ifndef HELD_H
#define HELD_H

#include "ws/room/room.h"

/* Another transaction holds the sheet, and the room waits for it. */
extern void held_wait(Room *room);
/* The room waits no more. */
extern void held_end(Room *room);
/* Tells an editor who has just joined, if the others know. */
extern void held_greet(Session *session);
/* Number of rooms that wait. */
extern size_t held_count(void);

#endif
