/*
 * v2_stream.c - what a room publishes, as messages of protocol v2, encoded once for each form that somebody reads.
 *
 * The edits of a batch are in the binary form already (edit_codec.h) and are copied. Where a message has to end, the
 * batch has an event, and the edit behind it is written in full.
 */
#include "core/gateway.h"
#include "ws/room/publish.h"
#include "ws/v2/v2_session.h"

#define CURSORS_MS	100 /* between messages with selections */
#define CURSORS_MAX 256 /* of one message */

static V2Encoding
stream_encoding(StreamForm form)
{
	return (V2Encoding) ((form - STREAM_V2) % V2_ENCODINGS);
}

static void
stream_append(Room *room, StreamForm form, Buf *payload)
{
	fanout_append_message(&room->streams[form].fanout, stream_encoding(form) == V2_BINARY, payload);
	payload->len = 0;
}

#define EACH_STREAM(room, form)                                                                                        \
	for (StreamForm form = STREAM_V2; form < STREAM_FORMS; form++)                                                     \
		if ((room)->streams[form].readers > 0)

/* ---- batches of members ---- */

V2Lock
v2_lock_of(const uint32_t rect[4], bool range, LockHolder holder)
{
	return (V2Lock){{rect[0], rect[1], rect[2], rect[3]}, range, holder.session, (uint64_t) holder.uid};
}

static void
stream_put_batch(Room *room, StreamForm form, const RoomBatch *batch, int64_t seq)
{
	V2Encoding encoding = stream_encoding(form);
	Buf payload = {NULL, 0, 0};
	size_t bytes = 0;
	uint32_t count = 0;

	for (size_t i = 0; i <= batch->event_count; i++)
	{
		const RoomEvent *event = i < batch->event_count ? &batch->events[i] : NULL;
		size_t to_bytes = event != NULL ? event->edits_len : batch->edits.len;
		uint32_t to_count = event != NULL ? event->count : batch->count;

		if (to_count > count)
		{
			v2_put_edits(&payload, encoding, (uint64_t) seq, to_count < batch->count, batch->edits.data + bytes,
						 to_bytes - bytes, to_count - count);
			stream_append(room, form, &payload);
			bytes = to_bytes;
			count = to_count;
		}
		if (event != NULL && event->is_lock && (!event->range || form >= STREAM_V2_RANGES))
		{
			V2Lock lock = v2_lock_of(event->rect, event->range, event->freed ? (LockHolder){0, 0} : event->holder);

			v2_put_lock(&payload, encoding, &lock);
			stream_append(room, form, &payload);
		}
	}
	buf_free(&payload);
}

void
v2_publish_own(Room *room, const RoomBatch *batch, int64_t seq)
{
	EACH_STREAM(room, form)
	stream_put_batch(room, form, batch, seq);
}

/* ---- batches of the log ---- */

typedef struct Part
{
	Buf edits;
	EditWriter writer;
	uint32_t count;
	V2Encoding encoding;
	uint64_t seq;
	V2Emit emit;
	void *arg;
} Part;

static void
part_begin(Part *part)
{
	part->edits.len = 0;
	part->count = 0;
	part->writer.first = true;
}

static void
part_end(Part *part, bool more)
{
	Buf payload = {NULL, 0, 0};

	if (part->count == 0 && more)
		return;
	if (buf_failed(&part->edits))
		buf_fail(&payload);
	else
		v2_put_edits(&payload, part->encoding, part->seq, more, part->edits.data, part->edits.len, part->count);
	part->emit(part->arg, &payload);
	buf_free(&payload);
	part_begin(part);
}

static void
part_put(Part *part, const Edit *edit)
{
	edits_put(&part->edits, &part->writer, edit);
	part->count++;
	if (part->edits.len > BATCH_PART_BYTES)
		part_end(part, true);
}

static void
part_put_version(Part *part, const Edit *edit)
{
	bool rollback = edit->kind == EDIT_ROLLBACK;
	Buf payload = {NULL, 0, 0};

	if (!rollback && version_is_automatic((VersionCause) edit->row))
		return;
	part_end(part, true);
	v2_put_version(&payload, part->encoding, part->seq, edit->uid, rollback ? V2_KIND_ROLLBACK : V2_KIND_COMMIT,
				   rollback ? edit->row : 0, edit->content.data, edit->content.len);
	part->emit(part->arg, &payload);
	buf_free(&payload);
}

void
v2_put_batches(V2Encoding encoding, EditReader reader, int64_t last, bool whole, V2Emit emit, void *arg)
{
	Part part = {.encoding = encoding, .emit = emit, .arg = arg};
	EditBatch batch;
	Edit edit;

	(void) buf_reserve(&part.edits, 64);
	part_begin(&part);
	while ((int64_t) part.seq < last && edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		if (!whole && part.edits.len > BATCH_PART_BYTES / 2)
			part_end(&part, false);
		part.seq = batch.first_seq + batch.count - 1;
		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			edit.old = (EditText){NULL, 0};
			if (edit.kind == EDIT_COMMIT || edit.kind == EDIT_ROLLBACK)
				part_put_version(&part, &edit);
			else
				part_put(&part, &edit);
		}
	}
	if (part.seq > 0)
		part_end(&part, false);
	buf_free(&part.edits);
}

typedef struct StreamTarget
{
	Room *room;
	StreamForm form;
} StreamTarget;

static void
stream_emit(void *arg, Buf *payload)
{
	const StreamTarget *target = arg;

	stream_append(target->room, target->form, payload);
}

void
v2_publish_run(Room *room, EditReader reader, int64_t last)
{
	EACH_STREAM(room, form)
	{
		StreamTarget target = {room, form};

		v2_put_batches(stream_encoding(form), reader, last, false, stream_emit, &target);
	}
}

/* ---- computed values, members, selections ---- */

void
v2_publish_values(Room *room, uint64_t session, uint64_t seq, const Buf *edits, uint32_t count)
{
	Buf payload = {NULL, 0, 0};

	EACH_STREAM(room, form)
	{
		v2_put_calc(&payload, stream_encoding(form), session, seq, edits->data, edits->len, count);
		stream_append(room, form, &payload);
	}
	buf_free(&payload);
	publish_later(room);
}

void
v2_publish_member(Room *room, const Session *session, bool here)
{
	V2Peer peer = {session->number, (uint64_t) session->uid, session->name};
	Buf payload = {NULL, 0, 0};
	bool any = false;

	EACH_STREAM(room, form)
	{
		v2_put_peer(&payload, stream_encoding(form), &peer, here);
		stream_append(room, form, &payload);
		any = true;
	}
	buf_free(&payload);
	if (any)
		publish_later(room);
}

static void
stream_put_cursors(Room *room, const V2Cursor *cursors, uint32_t count)
{
	Buf payload = {NULL, 0, 0};

	EACH_STREAM(room, form)
	{
		v2_put_cursors(&payload, stream_encoding(form), cursors, count);
		stream_append(room, form, &payload);
	}
	buf_free(&payload);
}

/* Publishes the last position of each selection that has moved; nothing while senders are paused. */
static void
stream_publish_cursors(Room *room, void *arg)
{
	bool *again = arg;
	V2Cursor cursors[CURSORS_MAX];
	uint32_t count = 0;

	if (!room->cursors_moved)
		return;
	if (room->flow >= ROOM_PAUSED)
	{
		*again = true;
		return;
	}
	room->cursors_moved = false;
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session->v2 == NULL || !session->v2->cursor_moved || session->state != SESSION_LIVE)
			continue;
		session->v2->cursor_moved = false;
		cursors[count++] = session->v2->cursor;
		if (count == CURSORS_MAX)
		{
			stream_put_cursors(room, cursors, count);
			count = 0;
		}
	}
	if (count > 0)
		stream_put_cursors(room, cursors, count);
	publish_later(room);
}

static uv_timer_t cursors_timer;

static void
stream_on_cursors(uv_timer_t *timer)
{
	bool again = false;

	room_for_each(stream_publish_cursors, &again);
	if (again)
		uv_timer_start(timer, stream_on_cursors, CURSORS_MS, 0);
}

void
v2_publish_cursors_soon(Room *room)
{
	room->cursors_moved = true;
	if (cursors_timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &cursors_timer);
		uv_unref((uv_handle_t *) &cursors_timer);
	}
	if (!uv_is_active((uv_handle_t *) &cursors_timer))
		uv_timer_start(&cursors_timer, stream_on_cursors, CURSORS_MS, 0);
}
