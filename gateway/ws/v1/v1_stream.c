/*
 * v1_stream.c - what a room publishes, as messages of protocol v1: encoded when it is published, if somebody reads it.
 *
 * Messages of v1 have the names of authors. Those of members are known; the name of an author elsewhere is read from
 * the database. Meanwhile what is published waits here, in copies and in its order. Neither the room nor members of
 * protocol v2 wait for it.
 */
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"
#include "ws/room/publish.h"
#include "ws/v1/v1.h"
#include "ws/wire/v1_encode.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 256 /* read while a batch waits; others stay empty */

/* What waits for a name. */
typedef struct V1Stream
{
	RoomBatch *batches; /* copies, oldest first; `seq` is the sheet's with the batch */
	RoomBatch *last;
	size_t done; /* edits and events of the first one that are published */
	size_t bytes;
	int64_t seq;	/* without the first one */
	bool asking;	/* a name is being read: */
	bool nameless;	/* no more names are read for what waits */
	int names;		/* read for what waits */
	uint64_t uid;	/* whose */
	uint64_t asked; /* changes_now() at that time */
} V1Stream;

static const char name_sql[] = "SELECT uid, name FROM sheet.account_get($1)";

static bool
stream_waits(const Room *room)
{
	return room->v1_stream != NULL && room->v1_stream->batches != NULL;
}

int64_t
v1_stream_seq(const Room *room)
{
	return stream_waits(room) ? room->v1_stream->seq : room->published_seq;
}

/* ---- infos ---- */

bool
v1_put_info(RoomBatch *batch, const char *info, size_t len)
{
	const uint32_t head[2] = {batch->count, (uint32_t) len};

	if (!buf_try_reserve(&batch->infos, sizeof(head) + len))
		return false;
	buf_put(&batch->infos, head, sizeof(head));
	buf_put(&batch->infos, info, len);
	return true;
}

/* Returns the info of the batch's edit `index`; its style if it has no other. at: where the next info is. */
static EditText
stream_info(const RoomBatch *batch, size_t *at, uint32_t index, const Edit *edit)
{
	uint32_t head[2] = {0, 0};
	EditText info;

	if (*at < batch->infos.len)
		memcpy(head, batch->infos.data + *at, sizeof(head));
	if (*at == batch->infos.len || head[0] != index)
		return edit->style;
	info = (EditText){batch->infos.data + *at + sizeof(head), head[1]};
	*at += sizeof(head) + head[1];
	return info;
}

/* ---- encoding ---- */

typedef struct Name
{
	uint64_t uid; /* 0: none yet */
	Buf json;
} Name;

/* Returns false if the name is not known. */
static bool
name_find(Name *name, const Room *room, uint64_t uid)
{
	const Account *account;

	if (name->json.len > 0 && name->uid == uid)
		return true;
	name->uid = uid;
	name->json.len = 0;
	account = accounts_find((int64_t) uid);
	if (account != NULL || uid == 0)
	{
		buf_puts_json(&name->json, account != NULL ? account->name : "");
		return true;
	}
	for (const Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session->uid != (int64_t) uid || session->guest != NULL || session->name_json.len == 0 ||
			changes_since(changes_of_uid(session->uid), session->named))
			continue;
		buf_put_buf(&name->json, &session->name_json);
		return true;
	}
	return false;
}

/* Appends the batch to the stream, but for the *done edits and events that are there. Returns 0, or the uid of the
 * author whose name has to be read before the rest; *done is set. */
static uint64_t
stream_put(Room *room, const RoomBatch *batch, size_t *done, bool nameless)
{
	Name name = {0, {NULL, 0, 0}};
	Buf payload = {NULL, 0, 0};
	size_t events = 0, info_at = 0;
	uint64_t missing = 0;
	EditReader reader;

	edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
	for (size_t i = 0;; i++)
	{
		uint32_t index = batch->count - reader.left;
		const RoomEvent *event = NULL;
		EditText info;
		uint64_t uid;
		Edit edit;

		if (events < batch->event_count && batch->events[events].count == index)
			event = &batch->events[events++];
		else if (edit_read(&reader, &edit) == EDIT_OK)
			info = stream_info(batch, &info_at, index, &edit);
		else
			break;
		if (i < *done || (event != NULL ? !event->is_lock || event->range : edit.kind != EDIT_SET))
			continue;
		uid = event != NULL ? (uint64_t) event->holder.uid : edit.uid;
		if (!name_find(&name, room, uid))
		{
			if (!nameless)
			{
				*done = i;
				missing = uid;
				break;
			}
			buf_puts_json(&name.json, "");
		}
		if (event != NULL)
			v1_put_lock(&payload, event->freed ? "release" : "acquire", event->rect[0], event->rect[1], &name.json);
		else
			v1_put_modify(&payload, edit.row, edit.col, edit.content.data, edit.content.len, info.data, info.len,
						  &name.json);
		fanout_append_message(&room->streams[STREAM_V1].fanout, false, &payload);
		payload.len = 0;
	}
	buf_free(&name.json);
	buf_free(&payload);
	return missing;
}

/* ---- waiting for names ---- */

static size_t
stream_size_of(const RoomBatch *copy)
{
	return copy->edits.len + copy->infos.len + copy->event_count * sizeof(RoomEvent);
}

static void
stream_drop_first(V1Stream *stream)
{
	RoomBatch *batch = stream->batches;

	stream->bytes -= stream_size_of(batch);
	stream->seq = batch->seq;
	stream->batches = batch->next;
	stream->done = 0;
	batch_free(batch);
}

static void
stream_drop(Room *room)
{
	while (stream_waits(room))
		stream_drop_first(room->v1_stream);
}

static void stream_name_answered(void *arg, PGresult *res);

/* Reads the name. Returns false if that is not possible. */
static bool
stream_ask(Room *room, uint64_t uid)
{
	V1Stream *stream = room->v1_stream;
	char text[24];
	PgParam param = pgparam_int64(text, (int64_t) uid);

	if (stream->asking)
		return true;
	if (stream->names++ >= NAMES_MAX)
		return false;
	stream->uid = uid;
	stream->asked = changes_now();
	stream->asking = database_query(DATABASE_READS, 0, name_sql, 1, &param, 0, stream_name_answered, room);
	room->queries += stream->asking;
	return stream->asking;
}

/* Publishes what waits, up to a name that is not known. */
static void
stream_continue(Room *room)
{
	V1Stream *stream = room->v1_stream;
	uint64_t uid;

	while (stream_waits(room))
	{
		uid = stream_put(room, stream->batches, &stream->done, stream->nameless);
		if (uid == 0)
		{
			stream_drop_first(stream);
			v1_join_published(room, stream->batches == NULL);
		}
		else if (!stream_ask(room, uid))
			stream->nameless = true;
		else
			break;
	}
	publish_later(room);
}

static void
stream_name_answered(void *arg, PGresult *res)
{
	Room *room = arg;
	V1Stream *stream = room->v1_stream;

	stream->asking = false;
	if (pgresult_succeeded(res)) /* without a row: there is no such account */
		accounts_put((int64_t) stream->uid, PQntuples(res) == 1 ? PQgetvalue(res, 0, 1) : "", -1, stream->asked);
	else
		stream->nameless = true;
	if (!room_is_open(room) || room->streams[STREAM_V1].readers == 0)
		stream_drop(room);
	if (stream_waits(room))
		stream_continue(room);
	room_query_done(room);
}

/* Has a copy of the batch wait. done: of it are published, if it is the first one. */
static void
stream_wait(Room *room, const RoomBatch *batch, size_t done)
{
	RoomBatch *copy = batch_copy(batch);
	V1Stream *stream = room->v1_stream;

	if (stream == NULL)
		stream = room->v1_stream = calloc(1, sizeof(V1Stream));
	if (copy == NULL || stream == NULL)
	{
		if (copy != NULL)
			batch_free(copy);
		room_fail_memory(room);
		return;
	}
	if (stream->batches != NULL)
		stream->last->next = copy;
	else
	{
		stream->batches = copy;
		stream->done = done;
		stream->seq = room->published_seq;
		stream->nameless = false;
		stream->names = 0;
	}
	stream->last = copy;
	stream->bytes += stream_size_of(copy);
}

/* ---- what is published ---- */

static void
stream_publish(Room *room, const RoomBatch *batch)
{
	size_t done = 0;
	uint64_t uid = stream_waits(room) ? 0 : stream_put(room, batch, &done, false);

	if (uid == 0 && !stream_waits(room))
		return;
	stream_wait(room, batch, done);
	if (uid != 0 && room->v1_stream != NULL && !stream_ask(room, uid))
		room->v1_stream->nameless = true; /* v1_published() goes on */
}

void
v1_publish_own(Room *room, const RoomBatch *batch, int64_t seq)
{
	/* A structural batch ends the members' sessions: v1_moved(). */
	if (room->streams[STREAM_V1].readers > 0 && !batch->structural)
		stream_publish(room, batch);
}

void
v1_publish_stored(Room *room, const EditBatch *head, EditReader reader)
{
	RoomBatch *batch;
	Edit edit;

	if (room->streams[STREAM_V1].readers == 0)
		return;
	batch = batch_create();
	if (batch == NULL)
	{
		room_fail_memory(room);
		return;
	}
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		if (!edit_is_of_cell(edit.kind))
			continue;
		/* v1 has no message for a style alone: the unchanged content goes with it. */
		if (edit.kind == EDIT_STYLE)
			edit.content = edit.old;
		edit.kind = EDIT_SET;
		edit.old = (EditText){NULL, 0};
		batch_put_edit(batch, &edit);
	}
	if (batch_failed(batch))
		room_fail_memory(room);
	else
		stream_publish(room, batch);
	batch_free(batch);
}

void
v1_published(Room *room, bool done)
{
	V1Stream *stream = room->v1_stream;

	if (!stream_waits(room))
	{
		v1_join_published(room, done);
		return;
	}
	stream->last->seq = room->published_seq;
	if (!done)
		return;
	if (stream->bytes > (size_t) gateway.config.send_queue_bytes)
		stream->nameless = true;
	if (stream->nameless)
		stream_continue(room);
}

/* v1 has no message for structure edits. Members are sent what came before, as far as their sockets take it and no name
 * is awaited, and have to read the sheet again. */
void
v1_moved(Room *room, const LineChange *changes, size_t n)
{
	stream_drop(room);
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session->form != STREAM_V1)
			continue;
		if (session->state == SESSION_LIVE)
			session_deliver(session);
		session_close(session, CLOSE_RESTART, "rows or columns have moved: the sheet has to be read again");
		session_leave_stream(session);
	}
}

void
v1_free_room(Room *room)
{
	stream_drop(room);
	free(room->v1_stream);
	v1_join_free(room);
}
