/*
 * commit.h - batches go to the database, and what is committed into the room's streams; see commit.c.
 */
#ifndef COMMIT_H
#define COMMIT_H

#include "ws/room/room.h"

/* What is ready goes to the database. */
extern void commit_send(Room *room);
/* Fetches what others have committed, unless receivers are behind; and has the room looked at again while something of
 * it waits for its time. */
extern void commit_follow(Room *room);
/* Edits up to seq were committed, perhaps elsewhere. */
extern void room_catch_up(Room *room, int64_t seq);

#endif
