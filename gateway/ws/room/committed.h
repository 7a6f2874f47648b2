/*
 * committed.h - committed batches of a room's sheet, in the order of seqs; see committed.c.
 */
#ifndef COMMITTED_H
#define COMMITTED_H

#include "ws/room/room.h"

/* Publishes a batch of this gateway. seq: the sheet's, with the batch. */
extern void committed_publish_own(Room *room, RoomBatch *batch, int64_t seq);
/*
 * Publishes stored batches, as sheet.apply's `missed` and sheet.tail return them, from published_seq on, and advances
 * that. own, or NULL: a batch of this gateway that is among them, at own_first to own_last, because it was sent again
 * or is structural. It is published as a whole, so that no member joins in the middle: at the first of its rows, or, if
 * it is structural, at the last one, with the edits that are stored.
 */
extern void committed_publish_stored(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first,
									 int64_t own_last);
/* The end of what is published in this iteration: receivers get it in their turn. */
extern void committed_end(Room *room);
/* Returns the first author of the stored batches whose name is not known, 0 when there is none. Batches at own_first to
 * own_last do not count. */
extern int64_t committed_find_stranger(const char *data, size_t len, int64_t own_first, int64_t own_last);

#endif
