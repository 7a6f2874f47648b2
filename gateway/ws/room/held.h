/*
 * held.h - sheets that another transaction holds; see held.c.
 */
#ifndef HELD_H
#define HELD_H

#include "ws/room/room.h"

/* Another transaction holds this sheet, the room's or a tab that refers to it, or this book, negative, and the room
 * waits for it. 0: it is not known which one. */
extern void held_wait(Room *room, int64_t sheet_id);
/* The room waits no more. */
extern void held_end(Room *room);
/* Tells an editor who has just joined, if the others know. */
extern void held_greet(Session *session);
/* Number of rooms that wait. */
extern size_t held_count(void);

#endif
