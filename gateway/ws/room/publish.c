/*
 * publish.c - writes the streams of rooms to their receivers; and what happens to receivers that lag.
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

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/room/pending.h"
#include "ws/room/schedule.h"

#define RATE_INTERVAL_MS 30000
#define RATE_MIN		 65536 /* bytes a second */

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
	publish_later(room);
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

	for (Session *session = room->sessions; session != NULL; session = session->next)
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
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (receiver_check(session, uv_now(&gateway.loop)))
			flow = ROOM_LAGGING;
	}
	if (flow >= ROOM_PAUSED && room->flow < ROOM_PAUSED)
		metrics.sender_pauses++;
	for (Session *session = room->sessions; session != NULL; session = session->next)
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
