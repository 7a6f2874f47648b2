/*
 * admission.h - who may be a member of a room; see admission.c.
 */
#ifndef ADMISSION_H
#define ADMISSION_H

#include "ws/room/room.h"

/* Asks the database whether the session's account may (still) be here. A session in state CHECKING is added to its room
 * then. */
extern void admission_check(Session *session);
/* Checks the members of a room: all, or those of an account (uid != 0). */
extern void admission_check_members(Room *room, int64_t uid);
/* Once a second: the token may have expired, or the database not have answered. */
extern void admission_tick(Session *session, int64_t now);

#endif
