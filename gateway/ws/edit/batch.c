/*
 * batch.c - edits that go to the database in one statement, in the edit codec; and the positions where a message to the
 * members who will be sent them ends, or a cell or range is locked.
 */
#include "ws/edit/batch.h"

#include <stdlib.h>
#include <string.h>

RoomBatch *
batch_create(void)
{
	RoomBatch *batch = calloc(1, sizeof(RoomBatch));

	if (batch == NULL)
		return NULL;
	batch->writer.first = true;
	return batch;
}

void
batch_free(RoomBatch *batch)
{
	buf_free(&batch->edits);
	buf_free(&batch->infos);
	buf_free(&batch->emptied);
	free(batch->events);
	free(batch->clients);
	free(batch->writers.runs);
	free(batch);
}

static bool
batch_reserve_events(RoomBatch *batch, size_t more)
{
	size_t size = batch->event_size > 0 ? batch->event_size : 8;
	RoomEvent *events;

	if (batch->event_count + more <= batch->event_size)
		return true;
	while (size < batch->event_count + more)
		size *= 2;
	events = realloc(batch->events, size * sizeof(RoomEvent));
	if (events == NULL)
		return false;
	batch->events = events;
	batch->event_size = size;
	return true;
}

bool
batch_reserve(RoomBatch *batch, size_t edits)
{
	size_t parts = edits / BATCH_PART_BYTES + 2;
	const Edit none = {0};

	/* The first edit of a part is written in full. */
	return buf_try_reserve(&batch->edits, edits + parts * edit_size_bound(&none)) && batch_reserve_events(batch, parts);
}

RoomBatch *
batch_copy(const RoomBatch *batch)
{
	RoomBatch *copy = batch_create();

	if (copy == NULL)
		return NULL;
	buf_put_buf(&copy->edits, &batch->edits);
	buf_put_buf(&copy->infos, &batch->infos);
	if (batch_failed(copy) || !batch_reserve_events(copy, batch->event_count))
	{
		batch_free(copy);
		return NULL;
	}
	copy->count = batch->count;
	copy->event_count = batch->event_count;
	if (batch->event_count > 0)
		memcpy(copy->events, batch->events, batch->event_count * sizeof(RoomEvent));
	return copy;
}

bool
batch_failed(const RoomBatch *batch)
{
	return buf_failed(&batch->edits) || buf_failed(&batch->infos);
}

bool
batch_begin_writer(RoomBatch *batch, uint64_t client)
{
	WriterRuns *writers = &batch->writers;
	size_t size = batch->writers_size > 0 ? batch->writers_size * 2 : 4;
	WriterRun *runs;

	if ((writers->count > 0 ? writers->runs[writers->count - 1].client : 0) == client)
		return true;
	if (writers->count == batch->writers_size)
	{
		runs = realloc(writers->runs, size * sizeof(WriterRun));
		if (runs == NULL)
			return false;
		writers->runs = runs;
		batch->writers_size = size;
	}
	writers->runs[writers->count++] = (WriterRun){batch->count, client};
	return true;
}

void
batch_put_edit(RoomBatch *batch, const Edit *edit)
{
	edits_put(&batch->edits, &batch->writer, edit);
	batch->count++;
	if (!edit_extends(edit))
		return;
	if (edit->row >= batch->rows)
		batch->rows = edit->row + 1;
	if (edit->col >= batch->cols)
		batch->cols = edit->col + 1;
}

void
batch_put_edit_in_parts(RoomBatch *batch, const Edit *edit)
{
	size_t part = batch->event_count > 0 ? batch->events[batch->event_count - 1].edits_len : 0;

	if (batch->edits.len - part > BATCH_PART_BYTES)
		(void) batch_add_event(batch);
	batch_put_edit(batch, edit);
}

Buf
batch_take_edits(RoomBatch *batch)
{
	Buf edits = batch->edits;

	batch->edits = (Buf){NULL, 0, 0};
	buf_free(&batch->infos);
	batch->count = batch->rows = batch->cols = 0;
	batch->writer.first = true;
	return edits;
}

RoomEvent *
batch_add_event(RoomBatch *batch)
{
	if (!batch_reserve_events(batch, 1))
		return NULL;
	batch->writer.first = true;
	batch->events[batch->event_count] = (RoomEvent){.edits_len = batch->edits.len, .count = batch->count};
	return &batch->events[batch->event_count++];
}
