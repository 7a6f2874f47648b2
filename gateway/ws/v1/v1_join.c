/*
 * v1_join.c - how a session of protocol v1 begins: a snapshot of the sheet, continued by the room's stream without a
 * gap or a repetition.
 *
 * A snapshot is read on another connection than edits, so it holds at a seq S before or after what the stream has.
 * While somebody joins, the room keeps the stream from the first joiner's time on (`start`), and marks where in it the
 * frames up to each seq end. When the stream has reached S, the joiners begin at the first mark at or after S. A
 * snapshot holds between two transactions, and a transaction's frames are published together, so S is never inside a
 * mark.
 *
 * The stream is kept up to send-queue-bytes. Beyond that, the joiners begin with what comes from then on, and are told
 * to connect again after JOIN_RESTARTS.
 *
 * Joiners share a snapshot, which is snapshot.c's and may have other readers. Its text is sent from where it is, so
 * that a slow joiner costs the memory of a piece.
 */
#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/cache/snapshot.h"
#include "ws/room/held.h"
#include "ws/room/members.h"
#include "ws/v1/v1.h"

#include <stdlib.h>

/* A smaller snapshot is sent in one frame: some clients of v1 may not understand fragments. */
#define JOIN_ONE_FRAME 65536
#define JOIN_RESTARTS  3

/* The frames up to seq end at this position of the stream. */
typedef struct JoinMark
{
	int64_t seq;
	uint64_t position;
} JoinMark;

typedef struct V1Join
{
	int joining;		/* sessions; the other fields are used while there are some */
	int restarts;		/* `start` was moved so often */
	int64_t since;		/* published_seq when the first one came; frames up to it may be before `start` */
	bool asked;			/* a snapshot is being read */
	int64_t account;	/* on whose behalf */
	Snapshot *snapshot; /* pinned; it waits for the stream to reach its seq */
	FanoutCursor start;
	JoinMark *marks;
	size_t mark_count, mark_size;
} V1Join;

static void join_ask(Room *room);

static bool
session_is_joining(const Session *session)
{
	return session->state == SESSION_JOINING && session->form == STREAM_V1;
}

static void
join_end(V1Join *join)
{
	fanout_detach(&join->start);
	join->mark_count = 0;
	snapshot_unpin(join->snapshot);
	join->snapshot = NULL;
}

/* Closes the joining sessions of an account, or all (uid 0). */
static void
join_close(Room *room, int64_t uid, int code, const char *reason)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session_is_joining(session) && (uid == 0 || session->uid == uid))
			session_close(session, code, reason);
	}
}

/* ---- marks ---- */

/* Keeps the stream from here on, and no more from before. A snapshot under way may be too old then. */
static void
join_restart(Room *room, V1Join *join)
{
	if (++join->restarts > JOIN_RESTARTS)
	{
		join_close(room, 0, CLOSE_SLOW, "the sheet changes faster than it is read: come again");
		return;
	}
	fanout_detach(&join->start);
	join->mark_count = 0;
	if (!fanout_attach(&room->streams[STREAM_V1].fanout, &join->start))
		join_close(room, 0, CLOSE_ERROR, "out of memory");
}

static void
join_mark(Room *room, V1Join *join)
{
	const Fanout *stream = &room->streams[STREAM_V1].fanout;

	if (stream->end - fanout_position(&join->start) > (uint64_t) gateway.config.send_queue_bytes)
		join_restart(room, join);
	if (join->joining == 0)
		return;
	if (join->mark_count == join->mark_size)
	{
		size_t size = join->mark_size > 0 ? join->mark_size * 2 : 64;
		JoinMark *marks = realloc(join->marks, size * sizeof(JoinMark));

		if (marks == NULL)
		{
			room_fail_memory(room);
			return;
		}
		join->marks = marks;
		join->mark_size = size;
	}
	join->marks[join->mark_count++] = (JoinMark){v1_stream_seq(room), stream->end};
}

/* Returns whether frames behind the snapshot's are not kept. There are marks while somebody joins. */
static bool
join_has_gap(const V1Join *join, const Snapshot *snapshot)
{
	return join->mark_count > 0 && join->marks[0].seq > snapshot->seq;
}

/* ---- joining ---- */

static void
join_put_locks(Buf *to, const Room *room)
{
	bool first = true;

	buf_puts(to, "\"cellLocks\":[");
	for (size_t i = 0; i < room->locks.bucket_count; i++)
	{
		for (const SheetLock *lock = room->locks.buckets[i]; lock != NULL; lock = lock->next)
		{
			const Session *holder = members_find_holder(room, &lock->holder);

			if (holder == NULL)
				continue;
			buf_printf(to, "%s{\"Row\":%u,\"Col\":%u,\"Username\":", first ? "" : ",", lock->rect[0], lock->rect[1]);
			buf_put(to, holder->name_json.data, holder->name_json.len);
			buf_puts(to, "}");
			first = false;
		}
	}
	buf_puts(to, "]");
}

/* Appends a text of the snapshot to the payload, or, unless the message is one frame, sends the payload and the text.
 */
static void
join_put_text(Session *session, Buf *payload, bool one_frame, Snapshot *snapshot, const SnapshotText *text)
{
	if (one_frame)
	{
		snapshot_put_text(payload, text);
		return;
	}
	session_send_part(session, payload, false);
	session_send_text(session, snapshot, text);
	payload->len = 0;
}

static void
join_send_snapshot(Session *session, Snapshot *snapshot)
{
	bool one_frame = snapshot->content.len + snapshot->styles.len <= JOIN_ONE_FRAME;
	Buf payload = {NULL, 0, 0};

	buf_puts(&payload, "{\"msgType\":\"onConn\",\"body\":{\"name\":");
	buf_puts_json(&payload, session->sheet_name);
	buf_printf(&payload, ",\"columns\":%u,\"content\":[", snapshot->cols);
	join_put_text(session, &payload, one_frame, snapshot, &snapshot->content);
	buf_puts(&payload, "],");
	join_put_locks(&payload, session->room);
	if (session->nack)
	{
		buf_puts(&payload, ",\"styles\":[");
		join_put_text(session, &payload, one_frame, snapshot, &snapshot->styles);
		buf_puts(&payload, "]");
	}
	buf_puts(&payload, "}}");
	session_send_part(session, &payload, true);
	buf_free(&payload);
}

/* Sends the snapshot. The stream continues it from `position` on. */
static void
join_admit(V1Join *join, Session *session, uint64_t position)
{
	join_send_snapshot(session, join->snapshot);
	if (session->state != SESSION_JOINING)
		return; /* out of memory */
	fanout_copy(&session->cursor, &join->start);
	fanout_seek(&session->cursor, position);
	session_set_state(session, SESSION_LIVE);
	session->lagging_since = 0;
	held_greet(session);
	join->joining--;
	log_event(LOG_INFO, "session joined", LOG_STR("request", session->request_id), LOG_STR("peer", session->peer),
			  LOG_INT("uid", session->uid), LOG_INT("sheet", session->sheet_id), LOG_INT("seq", join->snapshot->seq));
}

/* Admits the joining sessions if the stream has reached the snapshot. */
static void
join_try(Room *room, V1Join *join)
{
	uint64_t position = room->streams[STREAM_V1].fanout.end;

	if (join->snapshot == NULL || v1_stream_seq(room) < join->snapshot->seq)
		return;
	if (join_has_gap(join, join->snapshot)) /* the stream was restarted behind it */
	{
		snapshot_unpin(join->snapshot);
		join->snapshot = NULL;
		join_ask(room);
		return;
	}
	for (size_t i = 0; i < join->mark_count; i++)
	{
		if (join->marks[i].seq >= join->snapshot->seq)
		{
			position = join->marks[i].position;
			break;
		}
	}
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session_is_joining(session))
			join_admit(join, session, position);
	}
	join_end(join);
}

void
v1_join_published(Room *room, bool done)
{
	V1Join *join = room->v1_join;

	if (join == NULL || join->joining == 0)
		return;
	join_mark(room, join);
	if (done)
		join_try(room, join);
}

/* ---- the snapshot ---- */

static void
join_failed(Room *room, SnapshotStatus status, const PGresult *res)
{
	switch (status)
	{
		case SNAPSHOT_TOO_LARGE:
			join_close(room, 0, CLOSE_TOO_BIG, "the sheet is too large for protocol v1");
			break;
		case SNAPSHOT_BUSY:
			/* for this account; others may have more luck */
			join_close(room, room->v1_join->account, CLOSE_SLOW, "too many sheets are being read: come again");
			if (room->v1_join->joining > 0)
				join_ask(room);
			break;
		case SNAPSHOT_MALFORMED:
			join_close(room, 0, CLOSE_ERROR, "the sheet's cells cannot be read");
			break;
		default:
			if (res == NULL)
				join_ask(room);
			else
				join_close(room, 0, CLOSE_ERROR, pgresult_reason(res));
	}
}

static void
join_answered(void *arg, SnapshotStatus status, Snapshot *snapshot, const PGresult *res)
{
	Room *room = arg;
	V1Join *join = room->v1_join;

	join->asked = false;
	if (join->joining == 0 || !room_is_open(room))
		;
	else if (status != SNAPSHOT_READY)
		join_failed(room, status, res);
	else if (join->since > snapshot->seq || join_has_gap(join, snapshot))
		join_ask(room); /* asked for by a session that has left, before these: there would be a gap */
	else
	{
		snapshot_pin(snapshot);
		join->snapshot = snapshot;
		room_catch_up(room, snapshot->seq);
		join_try(room, join);
	}
	room_query_done(room);
}

/* On behalf of the first joining session. */
static void
join_ask(Room *room)
{
	const Session *session = LIST_FIRST(&room->sessions);
	SnapshotKey key = {room_sheet_id(room), 0};

	while (!session_is_joining(session))
		session = LIST_NEXT(session, in_room);
	room->v1_join->asked = true;
	room->v1_join->account = session->uid;
	room->queries++;
	snapshot_ask(&key, session->uid, (uint64_t) room->extent.rows * room->extent.cols, join_answered, room);
}

void
v1_join(Session *session)
{
	Room *room = session->room;
	V1Join *join = room->v1_join;

	if (join == NULL && (join = room->v1_join = calloc(1, sizeof(V1Join))) == NULL)
	{
		session_fail(session);
		return;
	}
	if (join->joining == 0 && !fanout_attach(session->stream, &join->start))
	{
		session_fail(session);
		return;
	}
	session_set_state(session, SESSION_JOINING);
	if (join->joining++ == 0)
	{
		join->restarts = 0;
		join->since = room->published_seq;
		join_mark(room, join);
	}
	if (join->joining > 0 && !join->asked && join->snapshot == NULL)
		join_ask(room);
}

void
v1_stop_joining(Session *session)
{
	V1Join *join = session->room->v1_join;

	if (--join->joining == 0)
		join_end(join);
}

void
v1_join_free(Room *room)
{
	if (room->v1_join == NULL)
		return;
	join_end(room->v1_join);
	free(room->v1_join->marks);
	free(room->v1_join);
}
