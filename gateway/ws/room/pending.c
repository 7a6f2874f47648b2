/*
 * pending.c - the batches of a room that have not been sent yet.
 *
 * Edits and frames are appended to the last batch. A new one is begun when it is full, or when an operation that
 * the database may refuse needs one of its own. The first is sent next (commit.c).
 */
#include "ws/room/pending.h"

#include "ws/room/schedule.h"
#include "ws/wire/v1_encode.h"

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
	batch->has_v1 = room->streams[STREAM_V1].readers > 0;
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
pending_add_lock(Room *room, const SheetLock *lock, const Session *session, bool locked)
{
	RoomBatch *batch = pending_batch(room, 1, 0);
	RoomEvent *event = batch != NULL ? batch_add_event(batch) : NULL;
	Buf payload = {NULL, 0, 0};

	if (event == NULL)
	{
		room_fail_memory(room);
		return;
	}
	if (!lock->range)
	{
		v1_put_lock(&payload, locked ? "acquire" : "release", lock->rect[0], lock->rect[1], &session->name_json);
		batch_add_v1_frame(batch, &payload);
		buf_free(&payload);
	}
	room_mark_dirty(room);
	event->is_lock = true;
	event->lock = batch_lock_of(lock);
	if (!locked)
		event->lock.session = event->lock.uid = 0;
}

void
pending_add_v1_frames(Room *room)
{
	if (room->sent != NULL && !room->sent->has_v1)
		batch_add_v1_frames(room->sent);
	for (RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
	{
		if (!batch->has_v1)
			batch_add_v1_frames(batch);
	}
}
