/*
 * tell.c - what is committed, in the order of seqs, is written into the streams of a room, which its members read.
 */
#include "ws/room/tell.h"

#include "ws/room/accounts.h"
#include "core/metrics.h"
#include "ws/edit/publish.h"
#include "ws/edit/restructure.h"
#include "ws/v1/v1_encode.h"
#include "ws/v2/v2_session.h"

int64_t
tell_unknown_uid(const char *data, size_t len, int64_t own_first, int64_t own_last)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		bool own = (int64_t) batch.first_seq >= own_first && (int64_t) batch.first_seq <= own_last;

		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			if (!own && edit.uid != 0 && accounts_find((int64_t) edit.uid) == NULL)
				return (int64_t) edit.uid;
		}
	}
	return 0;
}

static void
tell_extent(Room *room, uint32_t rows, uint32_t cols)
{
	room->extent.rows = rows > room->extent.rows ? rows : room->extent.rows;
	room->extent.cols = cols > room->extent.cols ? cols : room->extent.cols;
}

/* The sheet is as large now as the edit makes it. */
static void
tell_extend(Room *room, const Edit *edit)
{
	LinesChange change;

	if (lines_change_of(edit, &change))
	{
		uint32_t *extent = change.rows ? &room->extent.rows : &room->extent.cols;

		*extent = lines_extent(&change, *extent);
	}
	else if (edit_extends(edit))
		tell_extent(room, edit->row + 1, edit->col + 1);
}

/* One edit made elsewhere, as the frame that its gateway would have sent. */
static void
tell_foreign_edit(Room *room, const Edit *edit)
{
	const Account *account = accounts_find((int64_t) edit->uid);
	Buf name = {NULL, 0, 0};
	Buf payload = {NULL, 0, 0};
	EditText content;

	tell_extend(room, edit);
	if (!edit_is_of_cell(edit->kind))
		return;
	/* Version 1 has no message for a style alone: it comes with the content, which stays as it was. */
	content = edit->kind == EDIT_STYLE ? edit->old : edit->content;
	buf_puts_json(&name, account != NULL ? account->name : "");
	v1_put_modify(&payload, edit->row, edit->col, content.data, content.len, edit->style.data, edit->style.len, &name);
	fanout_append_message(&room->stream, false, &payload);
	metrics.edits_foreign++;
	buf_free(&payload);
	buf_free(&name);
}

void
tell_own(Room *room, RoomBatch *batch, int64_t seq)
{
	room->told_batch = batch->number;
	if (batch_failed(batch))
	{
		room_fail_memory(room);
		return;
	}
	v2_publish_batch(room, batch, seq);
	if (batch->structural)
	{
		EditReader reader;
		Edit edit;

		edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
		room_restructure_by(room, reader, seq);
		while (edit_read(&reader, &edit) == EDIT_OK)
			tell_extend(room, &edit);
	}
	else
		tell_extent(room, batch->rows, batch->cols);
	if (batch->frames.len > 0)
		fanout_append(&room->stream, batch->frames.data, batch->frames.len);
	metrics.edits_committed += batch->count;
}

/* A batch made elsewhere, which the reader is at. */
static void
tell_foreign_batch(Room *room, const EditBatch *batch, EditReader reader)
{
	EditReader again = reader;
	Edit edit;

	v2_publish_foreign(room, batch, &reader);
	while (edit_read(&reader, &edit) == EDIT_OK)
		tell_foreign_edit(room, &edit);
	room_restructure_by(room, again, (int64_t) batch->first_seq + batch->count - 1);
}

void
tell_missed(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first, int64_t own_last)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		bool is_own = own != NULL && (int64_t) batch.first_seq >= own_first && (int64_t) batch.first_seq <= own_last;
		int64_t last = (int64_t) batch.first_seq + batch.count - 1;

		if (is_own && (int64_t) batch.first_seq == own_first)
		{
			tell_own(room, own, own_last);
			last = own_last;
		}
		if (!is_own && last > room->published_seq)
			tell_foreign_batch(room, &batch, reader);
		while (edit_read(&reader, &edit) == EDIT_OK)
			;
		if (last > room->published_seq)
			room->published_seq = last;
		room_note_mark(room);
	}
}

void
tell_done(Room *room)
{
	room->resolved = 0;
	room_note_mark(room);
	publish_later(room);
	room_try_join(room);
}
