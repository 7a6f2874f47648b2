/*
 * restructure.h - rows and columns of a room's sheet come and go; see restructure.c.
 */
#ifndef RESTRUCTURE_H
#define RESTRUCTURE_H

#include "ws/edit/lines.h"
#include "ws/room/room.h"

/* The structure edits among these have been told, as of seq. The batch that they come from is not pending any more. */
extern void room_restructure_by(Room *room, EditReader reader, int64_t seq);

#endif
