/*
 * batch.c - edits that go to the database in one statement, in the edit codec; and, for the members who will be sent
 * them, the frames of protocol v1 and the positions where messages of protocol v2 end.
 */
#include "ws/edit/batch.h"

#include "ws/cache/accounts.h"
#include "ws/wire/frame.h"
#include "ws/wire/v1_encode.h"

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
	buf_free(&batch->frames);
	buf_free(&batch->emptied);
	free(batch->events);
	free(batch->clients);
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
batch_reserve(RoomBatch *batch, size_t edits, size_t frames)
{
	size_t parts = edits / V2_PART_BYTES + 2;
	const Edit none = {0};

	/* The first edit of a part is written in full. */
	return buf_try_reserve(&batch->edits, edits + parts * edit_size_bound(&none)) &&
		   (!batch->has_v1 || buf_try_reserve(&batch->frames, frames)) && batch_reserve_events(batch, parts);
}

bool
batch_failed(const RoomBatch *batch)
{
	return buf_failed(&batch->edits) || buf_failed(&batch->frames);
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

	if (batch->edits.len - part > V2_PART_BYTES)
		(void) batch_add_event(batch);
	batch_put_edit(batch, edit);
}

Buf
batch_take_edits(RoomBatch *batch)
{
	Buf edits = batch->edits;

	batch->edits = (Buf){NULL, 0, 0};
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

/* ---- frames of protocol v1 ---- */

void
batch_add_v1_frame(RoomBatch *batch, const Buf *payload)
{
	unsigned char header[FRAME_SENT_HEADER_MAX];
	size_t header_len = frame_header(header, FRAME_TEXT, payload->len);

	buf_put(&batch->frames, header, header_len);
	buf_put_buf(&batch->frames, payload);
}

void
batch_add_v1_edit(RoomBatch *batch, const Edit *edit, const char *info, size_t info_len, const Buf *name_json)
{
	unsigned char header[FRAME_SENT_HEADER_MAX];
	size_t header_len, start, len;

	/* The frame is written in place. Its header is known when its length is. */
	if (!buf_reserve(&batch->frames, FRAME_SENT_HEADER_MAX))
		return;
	start = batch->frames.len;
	batch->frames.len += 4;
	v1_put_modify(&batch->frames, edit->row, edit->col, edit->content.data, edit->content.len, info, info_len,
				  name_json);
	if (!buf_reserve(&batch->frames, FRAME_SENT_HEADER_MAX))
		return;
	len = batch->frames.len - start - 4;
	header_len = frame_header(header, FRAME_TEXT, len);
	if (header_len != 4)
	{
		memmove(batch->frames.data + start + header_len, batch->frames.data + start + 4, len);
		batch->frames.len = start + header_len + len;
	}
	memcpy(batch->frames.data + start, header, header_len);
}

/* accounts.h knows the names of members, also of those who have left. */
void
batch_add_v1_frames(RoomBatch *batch)
{
	EditReader reader;
	Edit edit;

	edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
	while (batch->edits.len > 0 && edit_read(&reader, &edit) == EDIT_OK)
	{
		const Account *account = accounts_find((int64_t) edit.uid);
		Buf name = {NULL, 0, 0};

		buf_puts_json(&name, account != NULL ? account->name : "");
		if (edit.kind == EDIT_SET)
			batch_add_v1_edit(batch, &edit, edit.style.data, edit.style.len, &name);
		buf_free(&name);
	}
	batch->has_v1 = true;
}

void
batch_renew_v1_frames(RoomBatch *batch)
{
	if (!batch->has_v1)
		return;
	buf_free(&batch->frames);
	batch_add_v1_frames(batch);
}
