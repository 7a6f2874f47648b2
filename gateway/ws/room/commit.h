/*
 * commit.h - a room's batches go to the database; see commit.c.
 */
#ifndef COMMIT_H
#define COMMIT_H

#include "ws/room/room.h"

/* In each iteration of a room that has something to do: sends what is ready. */
extern void commit_send(Room *room);
/* At the end of the iteration: fetches what others have committed, unless a receiver lags; and keeps the room dirty
 * while it waits for its time. */
extern void commit_fetch(Room *room);

#endif
