/*
 * v1.h - members of protocol v1.
 */
#ifndef V1_H
#define V1_H

#include "auth/jwt.h"
#include "ws/room/room.h"

/* Returns NULL when there is no memory. nack: the client understands `refused` and `held`. */
extern Session *v1_session_open(Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link, bool nack);

/* ---- v1_join.c: functions of Protocol ---- */
extern void v1_join(Session *session);
extern void v1_stop_joining(Session *session);
extern void v1_published(Room *room, bool done);
extern void v1_free_room(Room *room);

#endif
