/*
 * publish.h - rooms whose streams have grown; see publish.c.
 */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "ws/room/room.h"

struct Session;

/* The batch has something of the session's: it is written to before others when that is told. */
extern void publish_expect(struct Session *session, const RoomBatch *batch);
/* The session leaves its room. */
extern void publish_forget(struct Session *session);
/* The room's receivers get what is new in its streams when its turn comes. */
extern void publish_later(Room *room);
/* The batch is committed, with this seq, and published. Takes it over: what is to be acknowledged of it is, behind its
 * frames. */
extern void publish_ack_later(Room *room, RoomBatch *batch, int64_t seq);
/* Writes to the authors of what has been committed, and acknowledges it. */
extern void publish_to_authors(void);
/* Writes to the receivers of the room that has waited longest, and returns it; NULL when none waits, or `until`
 * (uv_hrtime()) has passed. */
extern Room *publish_next(uint64_t until);
/* Rooms are left that wait. */
extern bool publish_any(void);

#endif
