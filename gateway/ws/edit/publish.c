/*
 * publish.c - when the receivers of a room are written to.
 *
 * A write to a socket costs the gateway more than anything else that it does for an edit, and there is one for each
 * receiver. So what a commit has brought is not written as it is learned: the database gets the next batches first, and
 * works on them while receivers are served; and that is done in slices, between which the loop looks for what senders
 * and the database have sent. The rooms wait in a queue. Without load a room is served in the turn that has brought its
 * edits; under load more is committed while it waits, and goes out in the same writes.
 *
 * Who has made an edit waits for it, while the others know nothing of it yet. So before any room has its turn, the
 * authors of what has been committed are written to, in all rooms: one write for each edit at most, which has cost as
 * much to read. A member is an author from an edit of its on until the last batch that has one has been told.
 *
 * Operations of protocol v2 are acknowledged when the frames of their batch have been written: an acknowledgement is a
 * frame of its receiver's own, which would have the stream wait for POLLOUT.
 */
#include "ws/edit/publish.h"

#include "core/database.h"
#include "core/gateway.h"
#include "ws/session/session.h"
#include "ws/v2/v2_session.h"

static Room *first_room, *last_room;
static Room *answering_rooms; /* all of them wait for their turn, too */

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
	Session **place = &session->room->authors;

	if (session->author_of == 0)
		return;
	while (*place != session)
		place = &(*place)->next_author;
	*place = session->next_author;
	session->author_of = 0;
}

/* A stream could not take what was to be told: what comes behind it must not be, and nobody is acknowledged anything.
 */
static void
publish_check_streams(Room *room)
{
	bool failed = room->stream.failed;

	for (int i = 0; i < V2_ENCODINGS; i++)
		failed |= room->v2[i].failed;
	if (failed)
		room_fail_memory(room);
}

void
publish_later(Room *room)
{
	publish_check_streams(room);
	if (!room->answering && room->authors != NULL)
	{
		room->answering = true;
		room->next_answering = answering_rooms;
		answering_rooms = room;
	}
	if (room->publishing)
		return;
	room->publishing = true;
	room->next_publishing = NULL;
	if (last_room != NULL)
		last_room->next_publishing = room;
	else
		first_room = room;
	last_room = room;
}

void
publish_ack_later(Room *room, RoomBatch *batch, int64_t seq)
{
	RoomBatch **place = &room->unacknowledged;

	if (batch->client_count == 0)
	{
		batch_free(batch);
		return;
	}
	batch->seq = seq;
	while (*place != NULL)
		place = &(*place)->next;
	*place = batch;
	publish_later(room);
}

/* A large batch takes several writes, and the database works on it when it has the last of it. True while there is more
 * to write. */
static bool
publish_push_batches(void)
{
	const PgPool *edits = database_pool(DATABASE_EDITS);
	bool more = pgconn_push(gateway.group);

	for (int i = 0; i < pgpool_connections(edits); i++)
		more |= pgconn_push(pgpool_connection(edits, i));
	return more;
}

/* What has been told to the authors. */
static void
publish_acks(Room *room)
{
	while (room->unacknowledged != NULL)
	{
		RoomBatch *batch = room->unacknowledged;

		room->unacknowledged = batch->next;
		v2_ack_batch(room, batch, batch->seq);
		batch_free(batch);
	}
}

/* What it waits for has been told. It goes on waiting when it has edits in later batches, and goes from its place in
 * the list otherwise; returns the next place. */
static Session **
publish_author_told(const Room *room, Session **place)
{
	Session *session = *place;

	if (session->author_to > room->told_batch)
	{
		session->author_of = room->told_batch + 1;
		return &session->next_author;
	}
	*place = session->next_author;
	session->author_of = 0;
	return place;
}

static void
publish_room_to_authors(Room *room)
{
	Session **place = &room->authors;

	while (*place != NULL)
	{
		Session *session = *place;

		if (session->author_of > room->told_batch)
		{
			place = &session->next_author;
			continue;
		}
		place = publish_author_told(room, place);
		if (session->state == SESSION_LIVE)
			session_deliver(session);
	}
	publish_acks(room);
}

void
publish_to_authors(void)
{
	Room *room;

	while ((room = answering_rooms) != NULL)
	{
		answering_rooms = room->next_answering;
		room->answering = false;
		publish_room_to_authors(room);
		(void) publish_push_batches();
	}
}

/* Has the member taken all that there is for it? Something of its own, as an acknowledgement, may still wait. */
static bool
publish_is_even(const Session *session)
{
	bool has_all = session->cursor.block != NULL && fanout_position(&session->cursor) == session->stream->end;

	return (!session->blocked || has_all) && !v2_holds_stream(session);
}

/* While every member takes all that there is, nobody need be looked at again (room_control_senders()). */
static void
publish_room(Room *room)
{
	bool pushing = publish_push_batches();
	bool even = true;

	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->state == SESSION_LIVE)
			session_deliver(session);
		even &= publish_is_even(session);
		if (pushing)
			pushing = publish_push_batches();
	}
	if (even)
		room->told = room_stream_bytes(room);
	else
		room->uneven = true;
	publish_acks(room);
}

Room *
publish_next(uint64_t until)
{
	Room *room = first_room;

	if (room == NULL || uv_hrtime() > until)
		return NULL;
	first_room = room->next_publishing;
	if (first_room == NULL)
		last_room = NULL;
	room->publishing = false;
	publish_room(room);
	return room;
}

bool
publish_any(void)
{
	return first_room != NULL;
}
