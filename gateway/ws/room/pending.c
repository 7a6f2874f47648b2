/*
 * pending.c - the batches of a room that have not been sent yet.
 *
 * Edits are appended to the last batch. A new one is begun when it is full, or when an operation that
 * the database may refuse needs one of its own. The first is sent next (commit.c).
 */
#include "ws/room/pending.h"

#include "ws/room/schedule.h"

#include <string.h>

#define BATCH_EDITS_MAX 60000			   /* below SHEET_MAX_BATCH_EDITS */
#define BATCH_BYTES_MAX (12 * 1024 * 1024) /* below SHEET_MAX_BATCH_BYTES by more than one edit */

/* ---- the list ---- */

static RoomBatch *
pending_begin_batch(Room *room)
{
	RoomBatch *batch = batch_create();

	if (batch == NULL)
		return NULL;
	batch->number = ++room->last_batch;
	if (room->pending_last != NULL)
		room->pending_last->next = batch;
	else
		room->pending = batch;
	room->pending_last = batch;
	return batch;
}

RoomBatch *
pending_batch(Room *room, uint32_t edits, size_t bytes)
{
	RoomBatch *batch = room->pending_last;

	if (batch != NULL && !batch->refusable && batch->count + edits <= BATCH_EDITS_MAX &&
		batch->edits.len + bytes < BATCH_BYTES_MAX)
		return batch;
	return pending_begin_batch(room);
}

RoomBatch *
pending_refusable_batch(Room *room)
{
	RoomBatch *batch = pending_begin_batch(room);

	if (batch != NULL)
		batch->refusable = true;
	return batch;
}

RoomBatch *
pending_take(Room *room)
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
pending_put_back(Room *room, RoomBatch *batch)
{
	batch->next = room->pending;
	room->pending = batch;
	if (room->pending_last == NULL)
		room->pending_last = batch;
	room->pending_edits += batch->count;
}

size_t
pending_bytes(const Room *room)
{
	size_t bytes = 0;

	for (const RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
		bytes += batch->edits.len + batch->infos.len + batch->event_size * sizeof(RoomEvent);
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
pending_extent(const Room *room)
{
	RoomExtent extent = room->extent;

	extent_add_batches(&extent, room->sent);
	extent_add_batches(&extent, room->pending);
	return extent;
}

/* ---- what is appended ---- */

void
pending_add_edit(Room *room, RoomBatch *batch, const Edit *edit)
{
	batch_put_edit_in_parts(batch, edit);
	room->pending_edits++;
	room_mark_dirty(room);
}

void
pending_add_lock(Room *room, const SheetLock *lock, bool locked)
{
	RoomBatch *batch = pending_batch(room, 1, 0);
	RoomEvent *event = batch != NULL ? batch_add_event(batch) : NULL;

	if (event == NULL)
	{
		room_fail_memory(room);
		return;
	}
	event->is_lock = true;
	event->freed = !locked;
	event->range = lock->range;
	memcpy(event->rect, lock->rect, sizeof(event->rect));
	event->holder = lock->holder;
	room_mark_dirty(room);
}
