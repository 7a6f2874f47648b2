/*
 * v1.h - members of protocol v1.
 */
#ifndef V1_H
#define V1_H

#include "auth/jwt.h"
#include "ws/room/room.h"

/* Returns NULL when there is no memory. nack: the client understands `refused` and `held`. */
extern Session *v1_session_open(Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link, bool nack);

/* ---- v1_join.c ---- */
extern void v1_join(Session *session);
extern void v1_stop_joining(Session *session);
/* The stream is complete up to v1_stream_seq(). done: and nothing more is published in this iteration. */
extern void v1_join_published(Room *room, bool done);
extern void v1_join_free(Room *room);

/* ---- v1_stream.c ---- */
/* The stream is complete up to this seq. */
extern int64_t v1_stream_seq(const Room *room);
/* The next edit of the batch is published with this info. Returns false when there is no memory. */
extern bool v1_put_info(RoomBatch *batch, const char *info, size_t len);
extern void v1_publish_own(Room *room, const RoomBatch *batch, int64_t seq);
extern void v1_publish_stored(Room *room, const EditBatch *head, EditReader reader);
extern void v1_published(Room *room, bool done);
extern void v1_moved(Room *room, const LineChange *changes, size_t n);
extern void v1_free_room(Room *room);

#endif
