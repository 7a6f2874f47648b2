/*
 * join.c - snapshots for those who come, joined with the stream without a gap or a repetition.
 *
 * A snapshot is read on another connection than edits, so it holds at some seq S that may be before or after what the
 * stream has told so far. While somebody joins, the room keeps the stream from the first joiner's time on (join_start),
 * and marks where in it the frames up to each seq end. When the stream has reached S, the joiners begin behind the
 * first mark at or after S. A snapshot always holds between two transactions, and a transaction's frames are published
 * together, so S is never inside a mark.
 *
 * What the room keeps of the stream is send-queue-bytes at most: when it is more, the joiners begin with what comes
 * from then on and, after JOIN_RESTARTS, come again.
 *
 * Joiners that come while a snapshot is under way share it. It is snapshot.c's, and may be other readers' as well; its
 * text is sent from where it is, so that a slow joiner costs no more memory than a piece of it.
 */
#include "ws/edit/commit.h"
#include "core/gateway.h"
#include "support/log.h"
#include "db/pgresult.h"
#include "ws/room/room.h"
#include "ws/session/session.h"
#include "ws/cells/snapshot.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

/* What is sent in one frame, since some clients of v1 may not know others. */
#define JOIN_ONE_FRAME 65536
#define JOIN_RESTARTS  3

/* Ends what joining needs when nobody joins any more. */
static void
join_cleanup(Room *room)
{
	if (room->joining > 0)
		return;
	fanout_detach(&room->join_start);
	room->mark_count = 0;
	snapshot_release(room->snapshot);
	room->snapshot = NULL;
}

static void join_close(Room *room, int64_t uid, int code, const char *reason);

/* The stream from here on is kept, and no more from before. A snapshot that has been asked for may be too old then. */
static void
join_start_again(Room *room)
{
	if (++room->join_restarts > JOIN_RESTARTS)
	{
		join_close(room, 0, CLOSE_SLOW, "the sheet changes faster than it is read: come again");
		return;
	}
	fanout_detach(&room->join_start);
	if (!fanout_attach(&room->stream, &room->join_start))
		join_close(room, 0, CLOSE_ERROR, "out of memory");
	room->mark_count = 0;
}

void
room_note_mark(Room *room)
{
	if (room->joining == 0)
		return;
	if (room->stream.end - fanout_position(&room->join_start) > (uint64_t) gateway.config.send_queue_bytes)
		join_start_again(room);
	if (room->joining == 0)
		return;
	if (room->mark_count == room->mark_size)
	{
		size_t size = room->mark_size > 0 ? room->mark_size * 2 : 64;
		RoomMark *marks = realloc(room->marks, size * sizeof(RoomMark));

		if (marks == NULL)
		{
			room_fail_memory(room);
			return;
		}
		room->marks = marks;
		room->mark_size = size;
	}
	room->marks[room->mark_count++] = (RoomMark){room->published_seq, room->stream.end};
}

static void
join_put_locks(Buf *to, const Room *room)
{
	bool first = true;

	buf_puts(to, "\"cellLocks\":[");
	for (size_t i = 0; i < room->locks.bucket_count; i++)
	{
		for (const CellLock *lock = room->locks.buckets[i]; lock != NULL; lock = lock->next)
		{
			const Session *holder = room_find_holder(room, lock->uid);

			if (holder == NULL) /* he was there a moment ago */
				continue;
			buf_printf(to, "%s{\"Row\":%u,\"Col\":%u,\"Username\":", first ? "" : ",", lock->row, lock->col);
			buf_put(to, holder->name_json.data, holder->name_json.len);
			buf_puts(to, "}");
			first = false;
		}
	}
	buf_puts(to, "]");
}

/* Where the stream continues the snapshot. */
static uint64_t
join_position(const Room *room)
{
	for (size_t i = 0; i < room->mark_count; i++)
	{
		if (room->marks[i].seq >= room->snapshot->seq)
			return room->marks[i].position;
	}
	return room->stream.end;
}

/* A text of the snapshot: into `payload` when all of the message goes in one frame, else behind it on its way. */
static void
join_put_text(Session *session, Buf *payload, bool whole, const SnapshotText *text)
{
	if (whole)
	{
		snapshot_put_text(payload, text);
		return;
	}
	session_send_part(session, payload->data, payload->len, false);
	session_send_text(session, session->room->snapshot, text);
	payload->len = 0;
}

static void
join_send_snapshot(Room *room, Session *session)
{
	const Snapshot *snapshot = room->snapshot;
	bool whole = snapshot->content.len + snapshot->styles.len <= JOIN_ONE_FRAME;
	Buf payload = {NULL, 0, 0};

	buf_puts(&payload, "{\"msgType\":\"onConn\",\"body\":{\"name\":");
	buf_puts_json(&payload, session->sheet_name);
	buf_printf(&payload, ",\"columns\":%u,\"content\":[", snapshot->cols);
	join_put_text(session, &payload, whole, &snapshot->content);
	buf_puts(&payload, "],");
	join_put_locks(&payload, room);
	if (session->nack)
	{
		buf_puts(&payload, ",\"styles\":[");
		join_put_text(session, &payload, whole, &snapshot->styles);
		buf_puts(&payload, "]");
	}
	buf_puts(&payload, "}}");
	if (whole)
		session_send(session, payload.data, payload.len);
	else
		session_send_part(session, payload.data, payload.len, true);
	buf_free(&payload);
}

static void
join_admit(Room *room, Session *session, uint64_t position)
{
	join_send_snapshot(room, session);
	if (session->state != SESSION_JOINING)
		return; /* there was no memory for it */
	session->stream = &room->stream;
	fanout_copy(&session->cursor, &room->join_start);
	fanout_seek(&session->cursor, position);
	session->state = SESSION_LIVE;
	session->behind_since = 0;
	held_greet(room, session);
	room->joining--;
	log_event(LOG_INFO, "session joined", LOG_STR("request", session->request_id), LOG_STR("peer", session->peer),
			  LOG_INT("uid", session->uid), LOG_INT("sheet", room_sheet_id(room)), LOG_INT("seq", room->snapshot->seq));
}

void
room_try_join(Room *room)
{
	uint64_t position;

	if (room->snapshot == NULL || room->published_seq < room->snapshot->seq)
		return;
	position = join_position(room);
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->state == SESSION_JOINING && session->v2 == NULL)
			join_admit(room, session, position);
	}
	join_cleanup(room);
}

static void join_ask(Room *room);

/* Of this account, or of all when it is 0. */
static void
join_close(Room *room, int64_t uid, int code, const char *reason)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->state != SESSION_JOINING || session->v2 != NULL || (uid != 0 && session->uid != uid))
			continue;
		room_stop_join(room, session);
		session_close(session, code, reason);
	}
	join_cleanup(room);
}

/* The snapshot is here. */
static void
join_take(Room *room, Snapshot *snapshot)
{
	if (room->marks[0].seq > snapshot->seq) /* asked for by somebody before who has left: there is a gap */
	{
		join_ask(room);
		return;
	}
	snapshot_hold(snapshot);
	room->snapshot = snapshot;
	room_catch_up(room, snapshot->seq);
	room_try_join(room);
}

static void
join_failed(Room *room, SnapshotStatus status, const PGresult *res)
{
	switch (status)
	{
		case SNAPSHOT_TOO_LARGE:
			join_close(room, 0, CLOSE_TOO_BIG, "the sheet is too large for protocol v1");
			break;
		case SNAPSHOT_BUSY:
			/* for this account: others may have more luck */
			join_close(room, room->snapshot_account, CLOSE_SLOW, "too many sheets are being read: come again");
			if (room->joining > 0)
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

	room->snapshot_under_way = false;
	if (room->joining > 0 && room->state == ROOM_SERVING)
	{
		if (status == SNAPSHOT_READY)
			join_take(room, snapshot);
		else
			join_failed(room, status, res);
	}
	room_query_done(room);
}

/* On behalf of the first who joins. */
static void
join_ask(Room *room)
{
	const Session *session = room->sessions;
	SnapshotKey key = {room_sheet_id(room), 0};

	while (session->state != SESSION_JOINING || session->v2 != NULL)
		session = session->next;
	room->snapshot_under_way = true;
	room->snapshot_account = session->uid;
	room->queries++;
	snapshot_ask(&key, session->uid, (uint64_t) room->extent.rows * room->extent.cols, join_answered, room);
}

void
room_start_join(Room *room, Session *session)
{
	if (session->state != SESSION_WAITING)
		return;
	session->state = SESSION_JOINING;
	if (session->v2 != NULL)
	{
		v2_start_join(room, session);
		return;
	}
	if (room->joining == 0 && !fanout_attach(&room->stream, &room->join_start))
	{
		session->state = SESSION_WAITING;
		session_fail(session);
		return;
	}
	if (room->joining++ == 0)
	{
		room->join_restarts = 0;
		room_note_mark(room);
	}
	if (room->joining > 0 && !room->snapshot_under_way && room->snapshot == NULL)
		join_ask(room);
}

void
room_stop_join(Room *room, Session *session)
{
	if (session->state != SESSION_JOINING)
		return;
	session->state = SESSION_WAITING;
	if (session->v2 != NULL)
		return;
	room->joining--;
	join_cleanup(room);
}
