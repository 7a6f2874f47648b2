/*
 * pending.h - what a room has taken and not sent yet; see pending.c.
 */
#ifndef PENDING_H
#define PENDING_H

#include "ws/room/room.h"

/* The batch that takes new edits and frames; NULL, here and below: no memory. */
extern RoomBatch *room_pending(Room *room);
/* The batch that takes so many edits, of so many bytes in the codec's form, as a whole. */
extern RoomBatch *room_pending_for(Room *room, uint32_t edits, size_t bytes);
/* A batch for one operation with structure edits, which takes nothing else. */
extern RoomBatch *room_pending_structural(Room *room);

/* To a batch that has room for it (batch_reserve()). */
extern void room_add_edit(Room *room, RoomBatch *batch, const Edit *edit);
/* The first member of protocol v1 has come: batches that were made without frames get them. */
extern void room_add_v1_frames(Room *room);

/* The oldest batch (there is one) is its caller's. */
extern RoomBatch *room_take_pending(Room *room);
/* It is the oldest again. */
extern void room_return_pending(Room *room, RoomBatch *batch);
/* What waits to be committed or told. */
extern size_t room_pending_bytes(const Room *room);
/* How large the sheet is with it, as far as it has no structure edits. */
extern RoomExtent room_pending_extent(const Room *room);

#endif
