/*
 * publish.c - committed batches go into the room's streams, in the order of seqs, and the streams to their receivers.
 *
 * Writing costs the gateway more than anything else it does for an edit: one send() for each receiver. So the database
 * gets its next batches first, and works on them while receivers are served, in slices of time (iteration.c). Rooms
 * wait in a queue. Without load a room is served in the iteration that learns of its commit; under load more is
 * committed while it waits, and goes out in the same writes.
 *
 * Authors come first: an author waits for the edit, the others do not know of it yet. In each iteration the authors of
 * what was published are served in all rooms, before the other members of any. A member is an author from its first
 * edit in a batch until the last batch that has one is published.
 *
 * Operations of protocol v2 are acknowledged after the frames of their batch have been written. An acknowledgement is a
 * private frame, and would otherwise make the stream wait for POLLOUT.
 *
 * A receiver that lags. Nothing is dropped: a receiver keeps its place in the stream, which keeps the blocks from there
 * on in memory (fanout.c). publish_control() bounds that memory, and that of pending edits:
 *
 *   1. If a receiver is more than half of send-queue-bytes behind the end of its stream, no member of the room is read
 *      (ROOM_LAGGING), so that the stream grows no more; nor are edits of others fetched (commit_fetch()).
 *   2. If such a receiver has taken nothing for stalled-receiver-seconds, or less than 64 kB a second over 30 seconds,
 *      it is closed (1013, connect again). Only bytes that its system has acknowledged count, and
 *      only time in which the gateway could not write more.
 *   3. A receiver that is closing does not keep blocks: it leaves the stream when it is so far behind.
 *   4. No member is read either while more than batch-edits edits are pending (ROOM_PAUSED).
 *
 * Private frames are bounded where they are made: v2_is_busy(), v1's refusals, snapshot-bytes.
 */
#include "ws/room/publish.h"

#include "webhooks/webhooks.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/room/move.h"
#include "ws/room/pending.h"
#include "ws/room/schedule.h"

#define RATE_INTERVAL_MS 30000
#define RATE_MIN		 65536 /* bytes a second */

/* ---- the sheet's extent and properties ---- */

static void
publish_extend(Room *room, uint32_t rows, uint32_t cols)
{
	room->extent.rows = rows > room->extent.rows ? rows : room->extent.rows;
	room->extent.cols = cols > room->extent.cols ? cols : room->extent.cols;
}

/* Applies the edits to the room's extent and properties. */
static void
publish_apply_edits(Room *room, EditReader reader)
{
	LineChange change;
	Edit edit;

	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		if (!properties_apply(&room->properties, &edit, 0))
			room_fail_memory(room);
		if (line_change_of(&edit, &change))
		{
			uint32_t *extent = change.rows ? &room->extent.rows : &room->extent.cols;

			*extent = extent_after(&change, *extent);
		}
		else if (edit_extends(&edit))
			publish_extend(room, edit.row + 1, edit.col + 1);
	}
}

/* ---- batches ---- */

void
publish_batch(Room *room, RoomBatch *batch, int64_t seq)
{
	EditReader reader;

	room->published_batch = batch->number;
	webhooks_edited(room_sheet_id(room));
	if (batch_failed(batch))
	{
		room_fail_memory(room);
		return;
	}
	room_each_protocol(publish_own, room, batch, seq);
	edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
	writes_add(&room->writes, reader, batch->count, &batch->writers, seq);
	if (batch->refusable)
	{
		move_by_edits(room, reader, seq);
		publish_apply_edits(room, reader);
	}
	else
		publish_extend(room, batch->rows, batch->cols);
	metrics.edits_committed += batch->count;
}

/* ---- own structural batches ---- */

/* Collects the edits that empty cells, but for those in deleted rows or columns, if `deletion` is what follows them:
 * the database records the contents that a deletion removes so. */
static void
collect_emptied(RoomBatch *own, const LineChange *deletion)
{
	const Edit *edits = (const Edit *) own->emptied.data;

	for (size_t i = 0; i < own->emptied.len / sizeof(Edit); i++)
	{
		uint32_t line = deletion != NULL && deletion->rows ? edits[i].row : edits[i].col;

		if (deletion == NULL || line < deletion->at || line - deletion->at >= deletion->n)
			batch_put_edit_in_parts(own, &edits[i]);
	}
	if (buf_failed(&own->emptied))
		buf_fail(&own->edits);
	own->emptied.len = 0;
}

/* Collects the edits of one of the batch's rows in the log: the database has added those that rewrite formulas. */
static void
publish_collect(RoomBatch *own, EditReader reader, int64_t last)
{
	LineChange change;
	Edit edit;

	if (own->collected == 0)
	{
		Buf sent = batch_take_edits(own);

		own->event_count = 0;
		buf_free(&sent);
	}
	own->collected = last;
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		bool deletes = line_change_of(&edit, &change) && !change.insert;

		edit.old = (EditText){NULL, 0};
		if (edit.kind == EDIT_SET && edit.content.len == 0 && edit.style.data != NULL && edit.style.len == 0)
		{
			edit.content = edit.style = (EditText){"", 0};
			buf_put(&own->emptied, &edit, sizeof(edit));
			continue;
		}
		collect_emptied(own, deletes ? &change : NULL);
		batch_put_edit_in_parts(own, &edit);
	}
}

/* ---- batches of others ---- */

/* Batches of others that are published as one, so that thousands of single edits, as of one SQL statement, are few
 * messages. */
typedef struct PublishRun
{
	EditReader from;
	int64_t last; /* 0: none */
} PublishRun;

static void
run_end(Room *room, PublishRun *run)
{
	if (run->last != 0)
		room_each_protocol(publish_run, room, run->from, run->last);
	run->last = 0;
}

static bool
batch_has_structure(EditReader reader)
{
	EditKind kind;

	while (edit_read_kind(&reader, &kind) == EDIT_OK)
	{
		if (edit_is_structure(kind))
			return true;
	}
	return false;
}

/* Publishes a batch of others, which the reader `from` begins. The run ends before and behind structure edits, which
 * move what is published after them. */
static void
publish_foreign(Room *room, PublishRun *run, EditReader from, const EditBatch *batch, EditReader reader)
{
	int64_t last = (int64_t) batch->first_seq + batch->count - 1;
	const WriterRuns unknown = {NULL, 0};
	bool moves = batch_has_structure(reader);

	if (moves)
		run_end(room, run);
	if (run->last == 0)
		run->from = from;
	run->last = last;
	room_each_protocol(publish_stored, room, batch, reader);
	publish_apply_edits(room, reader);
	if (moves)
	{
		run_end(room, run);
		move_by_edits(room, reader, last);
	}
	writes_add(&room->writes, reader, batch->count, &unknown, last);
}

void
publish_stored(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first, int64_t own_last)
{
	PublishRun run = {.last = 0};
	EditReader reader, from;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	for (from = reader; edit_read_batch(&reader, &batch) == EDIT_OK; from = reader)
	{
		bool is_own = own != NULL && (int64_t) batch.first_seq >= own_first && (int64_t) batch.first_seq <= own_last;
		int64_t last = (int64_t) batch.first_seq + batch.count - 1;

		if (is_own)
			run_end(room, &run);
		if (is_own && own->structural)
		{
			if (last > own->collected)
				publish_collect(own, reader, last);
			if (last == own_last)
			{
				collect_emptied(own, NULL);
				publish_batch(room, own, own_last);
			}
		}
		else if (is_own && (int64_t) batch.first_seq == own_first)
		{
			publish_batch(room, own, own_last);
			last = own_last;
		}
		if (!is_own && last > room->published_seq)
			publish_foreign(room, &run, from, &batch, reader);
		while (edit_read(&reader, &edit) == EDIT_OK)
			metrics.edits_foreign += !is_own && last > room->published_seq && edit_is_of_cell(edit.kind);
		if (is_own && own->structural && last < own_last)
			continue;
		if (last > room->published_seq)
			room->published_seq = last;
		room_each_protocol(published, room, false);
	}
	run_end(room, &run);
}

void
publish_later(Room *room)
{
	bool failed = false;

	/* Nothing may follow what a stream could not take, and nothing is acknowledged then. */
	for (int form = 0; form < STREAM_FORMS; form++)
		failed |= room->streams[form].fanout.failed;
	if (failed)
		room_fail_memory(room);
	if (room->authors != NULL)
		schedule_add(room, ROOM_ANSWERING);
	schedule_add(room, ROOM_PUBLISHING);
}

void
publish_end(Room *room)
{
	publish_later(room);
	room_each_protocol(published, room, true);
}

void
publish_acknowledge_later(Room *room, RoomBatch *batch, int64_t seq)
{
	RoomBatch **link = &room->unacknowledged;

	if (batch->client_count == 0)
	{
		batch_free(batch);
		return;
	}
	batch->seq = seq;
	while (*link != NULL)
		link = &(*link)->next;
	*link = batch;
}

/* ---- authors ---- */

void
publish_expect(Session *session, const RoomBatch *batch)
{
	session->author_to = batch->number;
	if (session->author_of != 0)
		return;
	session->author_of = batch->number;
	session->next_author = session->room->authors;
	session->room->authors = session;
}

void
publish_forget(Session *session)
{
	Session **link = &session->room->authors;

	if (session->author_of == 0)
		return;
	while (*link != session)
		link = &(*link)->next_author;
	*link = session->next_author;
	session->author_of = 0;
}

/* Goes on writing large batches to the database, which works on a batch when it has all of it. Returns whether there is
 * more to write. */
static bool
publish_push_batches(void)
{
	const PgPool *edits = database_pool(DATABASE_EDITS);
	bool more = pgconn_push(gateway.group);

	for (int i = 0; i < pgpool_connections(edits); i++)
		more |= pgconn_push(pgpool_connection(edits, i));
	return more;
}

static void
publish_acknowledge(Room *room)
{
	while (room->unacknowledged != NULL)
	{
		RoomBatch *batch = room->unacknowledged;

		room->unacknowledged = batch->next;
		room_each_protocol(acknowledge, room, batch);
		batch_free(batch);
	}
}

static void
publish_to_authors_of(Room *room)
{
	Session **link = &room->authors;

	while (*link != NULL)
	{
		Session *session = *link;

		if (session->author_of > room->published_batch)
		{
			link = &session->next_author;
			continue;
		}
		if (session->author_to > room->published_batch) /* it has edits in later batches */
		{
			session->author_of = room->published_batch + 1;
			link = &session->next_author;
		}
		else
		{
			session->author_of = 0;
			*link = session->next_author;
		}
		if (session->state == SESSION_LIVE)
			session_deliver(session);
	}
	publish_acknowledge(room);
	(void) publish_push_batches();
	schedule_add(room, ROOM_TOUCHED); /* checks whether the room may end */
}

void
publish_to_authors(void)
{
	schedule_take_all(ROOM_ANSWERING, publish_to_authors_of);
}

/* ---- all receivers ---- */

static bool
session_holds_stream(const Session *session)
{
	return session->protocol->holds_stream != NULL && session->protocol->holds_stream(session);
}

static bool
session_is_busy(const Session *session)
{
	return session->protocol->is_busy != NULL && session->protocol->is_busy(session);
}

void
publish_room(Room *room)
{
	bool pushing = publish_push_batches();
	bool even = true;

	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		bool has_all;

		if (session->state == SESSION_LIVE)
			session_deliver(session);
		/* A private frame, as an acknowledgement, may still wait. */
		has_all = session->cursor.block != NULL && fanout_position(&session->cursor) == session->stream->end;
		even &= (!session->blocked || has_all) && !session_holds_stream(session);
		if (pushing)
			pushing = publish_push_batches();
	}
	if (even)
		room->delivered = room_stream_bytes(room);
	else if (room->flow == ROOM_EVEN)
		room->flow = ROOM_UNEVEN;
	publish_acknowledge(room);
}

/* ---- receivers that lag ---- */

/* Bytes of the stream that a receiver may be behind. */
static uint64_t
publish_lag_limit(void)
{
	return (uint64_t) gateway.config.send_queue_bytes / 2;
}

/* Returns whether a receiver that lags takes too little; see above. Its interval begins anew when it is not blocked. */
static bool
receiver_is_stalled(Session *session, uint64_t now)
{
	uint64_t delivered = socket_delivered(session->socket);
	bool stalled;

	if (session->lagging_since == 0)
	{
		session->lagging_since = session->moved_at = now;
		session->lagging_from = session->moved = delivered;
		return false;
	}
	if (delivered > session->moved || !session->blocked)
	{
		session->moved = delivered;
		session->moved_at = now;
	}
	if (!session->blocked)
	{
		session->lagging_since = now;
		session->lagging_from = delivered;
	}
	if (now - session->lagging_since < RATE_INTERVAL_MS)
		return now - session->moved_at >= (uint64_t) gateway.config.stalled_receiver_seconds * 1000;
	stalled = delivered < session->lagging_from + RATE_MIN * (RATE_INTERVAL_MS / 1000);
	session->lagging_since = now;
	session->lagging_from = delivered;
	return stalled;
}

/* Returns whether the receiver lags, and senders have to wait for it. Closes it if it has lagged for too long. */
static bool
receiver_check(Session *session, uint64_t now)
{
	if (session->state < SESSION_LIVE || session->cursor.block == NULL)
		return false;
	if (session->stream->end - fanout_position(&session->cursor) <= publish_lag_limit())
	{
		session->lagging_since = 0;
		return false;
	}
	if (session->state == SESSION_LIVE && !receiver_is_stalled(session, now))
		return true;
	if (session->state == SESSION_LIVE)
	{
		metrics.sessions_slow++;
		session_close(session, CLOSE_SLOW, "too far behind: come again");
	}
	session_leave_stream(session);
	return false;
}

void
publish_control(Room *room)
{
	uint32_t limit = (uint32_t) gateway.config.batch_edits;
	bool full = room->pending_edits > (room->flow >= ROOM_PAUSED ? limit / 2 : limit) ||
				pending_bytes(room) > (size_t) gateway.config.send_queue_bytes;
	RoomFlow flow = full || gateway.stopping || room->move_began != 0 ? ROOM_PAUSED : ROOM_EVEN;

	if (room->flow == ROOM_EVEN && flow == ROOM_EVEN &&
		room_stream_bytes(room) - room->delivered <= publish_lag_limit())
		return; /* nobody can lag */
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (receiver_check(session, uv_now(&gateway.loop)))
			flow = ROOM_LAGGING;
	}
	if (flow >= ROOM_PAUSED && room->flow < ROOM_PAUSED)
		metrics.sender_pauses++;
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		bool pause = flow >= ROOM_PAUSED || session_is_busy(session);

		if (!session_is_open(session))
			continue;
		if (pause && flow == ROOM_EVEN)
			flow = ROOM_UNEVEN;
		if (session->paused == pause)
			continue;
		socket_pause(session->socket, pause);
		session->paused = pause;
	}
	room->flow = flow;
	if (flow != ROOM_EVEN && room->session_count > 0)
		room_mark_dirty(room); /* for the next iteration; a room without members must be able to end */
}
