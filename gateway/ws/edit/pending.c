/*
 * pending.c - the batches of a room that are not under way yet.
 *
 * Edits and frames collect in the last one; a new one is begun when it is full, or when an operation with structure
 * edits needs one of its own. The first is the next to be sent (commit.c).
 */
#include "ws/edit/pending.h"

#include "ws/edit/dirty.h"

#define BATCH_EDITS_MAX 60000			   /* a new batch is begun; below SHEET_MAX_BATCH_EDITS */
#define BATCH_BYTES_MAX (12 * 1024 * 1024) /* below SHEET_MAX_BATCH_BYTES with one more edit */

/* ---- the list ---- */

static RoomBatch *
room_new_batch(Room *room)
{
	RoomBatch *batch = batch_create();

	if (batch == NULL)
		return NULL;
	batch->number = ++room->last_batch;
	batch->has_v1 = room->v1_sessions > 0;
	if (room->pending_last != NULL)
		room->pending_last->next = batch;
	else
		room->pending = batch;
	room->pending_last = batch;
	return batch;
}

RoomBatch *
room_pending(Room *room)
{
	return room_pending_for(room, 1, 0);
}

RoomBatch *
room_pending_for(Room *room, uint32_t edits, size_t bytes)
{
	RoomBatch *batch = room->pending_last;

	if (batch != NULL && !batch->structural && batch->count + edits <= BATCH_EDITS_MAX &&
		batch->edits.len + bytes < BATCH_BYTES_MAX)
		return batch;
	return room_new_batch(room);
}

RoomBatch *
room_pending_structural(Room *room)
{
	RoomBatch *batch = room_new_batch(room);

	if (batch != NULL)
		batch->structural = true;
	return batch;
}

RoomBatch *
room_take_pending(Room *room)
{
	RoomBatch *batch = room->pending;

	room->pending = batch->next;
	if (room->pending == NULL)
		room->pending_last = NULL;
	room->pending_edits -= batch->count;
	batch->next = NULL;
	return batch;
}

void
room_return_pending(Room *room, RoomBatch *batch)
{
	batch->next = room->pending;
	room->pending = batch;
	if (room->pending_last == NULL)
		room->pending_last = batch;
	room->pending_edits += batch->count;
}

size_t
room_pending_bytes(const Room *room)
{
	size_t bytes = 0;

	for (const RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
		bytes += batch->edits.len + batch->frames.len + batch->event_size * sizeof(RoomEvent);
	return bytes;
}

static void
extent_add_batches(RoomExtent *extent, const RoomBatch *batch)
{
	for (; batch != NULL; batch = batch->next)
	{
		extent->rows = batch->rows > extent->rows ? batch->rows : extent->rows;
		extent->cols = batch->cols > extent->cols ? batch->cols : extent->cols;
	}
}

RoomExtent
room_pending_extent(const Room *room)
{
	RoomExtent extent = room->extent;

	extent_add_batches(&extent, room->sent);
	extent_add_batches(&extent, room->pending);
	return extent;
}

/* ---- what comes in ---- */

void
room_add_edit(Room *room, RoomBatch *batch, const Edit *edit)
{
	size_t cut = batch->event_count > 0 ? batch->events[batch->event_count - 1].edits_len : 0;

	if (batch->edits.len - cut > V2_PART_BYTES)
		(void) batch_add_event(batch);
	batch_put_edit(batch, edit);
	room->pending_edits++;
	room_mark_dirty(room);
}

void
room_add_v1_frames(Room *room)
{
	if (room->sent != NULL && !room->sent->has_v1)
		batch_add_v1_frames(room->sent);
	for (RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
	{
		if (!batch->has_v1)
			batch_add_v1_frames(batch);
	}
}
