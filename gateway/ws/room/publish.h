/*
 * publish.h - writes the streams of rooms to their receivers; see publish.c.
 */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "ws/room/room.h"

/* The batch has edits of the session, which is served before others when the batch is published. */
extern void publish_expect(Session *session, const RoomBatch *batch);
/* The session leaves its room. */
extern void publish_forget(Session *session);
/* The room's streams have grown: its receivers are served in their turn. */
extern void publish_later(Room *room);
/* The batch is stored, up to seq, and published. Takes ownership of it: its operations are acknowledged behind its
 * frames. */
extern void publish_acknowledge_later(Room *room, RoomBatch *batch, int64_t seq);
/* Serves the authors of what has been published, in all rooms, and acknowledges their operations. */
extern void publish_to_authors(void);
/* Serves the receivers of the room that has waited longest. */
extern void publish_room(Room *room);
/* Pauses and resumes members, and closes receivers that lag for too long; see the comment in publish.c. */
extern void publish_control(Room *room);

#endif
