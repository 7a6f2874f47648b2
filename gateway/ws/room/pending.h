/*
 * pending.h - edits that a room has taken and not sent yet; see pending.c.
 */
#ifndef PENDING_H
#define PENDING_H

#include "ws/room/room.h"

/* Returns the batch that takes so many more edits, of so many bytes in the edit codec, as a whole. NULL, here and
 * below: no memory. */
extern RoomBatch *pending_batch(Room *room, uint32_t edits, size_t bytes);
/* Returns a new batch for one operation with structure edits, which takes nothing else. */
extern RoomBatch *pending_refusable_batch(Room *room);
/* Appends an edit, for which batch_reserve() has reserved memory. */
extern void pending_add_edit(Room *room, RoomBatch *batch, const Edit *edit);
/* Appends that the cell or range is locked, or free again. */
extern void pending_add_lock(Room *room, const SheetLock *lock, bool locked);

/* Removes the oldest batch; there is one. The caller owns it. */
extern RoomBatch *pending_take(Room *room);
/* Makes the batch the oldest one again. */
extern void pending_put_back(Room *room, RoomBatch *batch);
/* Memory of all pending batches. */
extern size_t pending_bytes(const Room *room);
/* The sheet's extent with all batches, without their structure edits. */
extern RoomExtent pending_extent(const Room *room);

#endif
