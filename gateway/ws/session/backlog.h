/*
 * backlog.h - senders wait for slow receivers, and for the database; see backlog.c.
 */
#ifndef BACKLOG_H
#define BACKLOG_H

#include "ws/room/room.h"

/* Stops and starts reading from the members, and closes receivers that do not get on. */
extern void room_control_senders(Room *room);

#endif
