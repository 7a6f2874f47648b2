/*
 * publish.h - committed batches go into a room's streams, and from there to its members; see publish.c.
 */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "ws/room/room.h"

/* Publishes a batch of this gateway. seq: the sheet's, with the batch. */
extern void publish_batch(Room *room, RoomBatch *batch, int64_t seq);
/*
 * Publishes stored batches, as sheet.apply's `missed` and sheet.tail return them, from published_seq on, and advances
 * that. own, or NULL: a batch of this gateway that is among them, at own_first to own_last, because it was sent again
 * or is structural. It is published as a whole, so that no member joins in the middle: at the first of its rows, or, if
 * it is structural, at the last one, with the edits that are stored.
 */
extern void publish_stored(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first,
						   int64_t own_last);
/* The end of what is published in this iteration: receivers get it in their turn. */
extern void publish_end(Room *room);
/* The room's streams have grown otherwise. */
extern void publish_later(Room *room);
/* The batch is stored, up to seq, and published. Takes ownership of it: its operations are acknowledged behind its
 * frames. Call it before publish_end(). */
extern void publish_acknowledge_later(Room *room, RoomBatch *batch, int64_t seq);

/* The batch has edits of the session, which is served before others when the batch is published. */
extern void publish_expect(Session *session, const RoomBatch *batch);
/* The session leaves its room. */
extern void publish_forget(Session *session);
/* Serves the authors of what has been published, in all rooms, and acknowledges their operations. */
extern void publish_to_authors(void);
/* Serves the receivers of the room that has waited longest. */
extern void publish_room(Room *room);
/* Pauses and resumes members, and closes receivers that lag for too long; see the comment in publish.c. */
extern void publish_control(Room *room);

#endif
