/*
 * move.h - moves what names cells; see move.c.
 */
#ifndef MOVE_H
#define MOVE_H

#include "ws/room/room.h"

/* Moves what names cells by the structure edits of the reader, as of seq. Their batch is not pending any more. */
extern void move_by_edits(Room *room, EditReader reader, int64_t seq);

#endif
