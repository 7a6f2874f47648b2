/*
 * join.c - snapshots for those who come, joined with the stream without a gap or a repetition.
 *
 * A snapshot is read on another connection than edits, so it holds at some seq S that may be before or after what the
 * stream has told so far. While somebody joins, the room keeps the stream from the first joiner's time on (join_start),
 * and marks where in it the frames up to each seq end. When the stream has reached S, the joiners begin behind the
 * first mark at or after S. A snapshot always holds between two transactions, and a transaction's frames are published
 * together, so S is never inside a mark.
 *
 * Joiners that come while a snapshot is under way share it.
 */
#include "commit.h"
#include "database.h"
#include "gateway.h"
#include "log.h"
#include "pgresult.h"
#include "room.h"
#include "session.h"
#include "v1_encode.h"
#include "v2_session.h"

#include <stdlib.h>
#include <string.h>

static const char snapshot_sql[] = "SELECT seq, rows, cols, cells FROM sheet.read_cells($1)";

/* Ends what joining needs when nobody joins any more. */
static void
join_cleanup(Room *room)
{
	if (room->joining > 0)
		return;
	fanout_detach(&room->join_start);
	room->mark_count = 0;
	room->snapshot_ready = false;
	buf_free(&room->snapshot);
	buf_free(&room->snapshot_styles);
}

void
room_note_mark(Room *room)
{
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
		if (room->marks[i].seq >= room->snapshot_seq)
			return room->marks[i].position;
	}
	return room->stream.end;
}

static void
join_admit(Room *room, Session *session, uint64_t position)
{
	Buf payload = {NULL, 0, 0};

	buf_puts(&payload, "{\"msgType\":\"onConn\",\"body\":{\"name\":");
	buf_puts_json(&payload, session->sheet_name);
	buf_puts(&payload, ",");
	buf_put_buf(&payload, &room->snapshot);
	buf_puts(&payload, ",");
	join_put_locks(&payload, room);
	if (session->nack)
	{
		buf_puts(&payload, ",\"styles\":[");
		if (room->snapshot_styles.len > 0)
			buf_put_buf(&payload, &room->snapshot_styles);
		buf_puts(&payload, "]");
	}
	buf_puts(&payload, "}}");
	session_send(session, payload.data, payload.len);
	buf_free(&payload);
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
			  LOG_INT("uid", session->uid), LOG_INT("sheet", room_sheet_id(room)), LOG_INT("seq", room->snapshot_seq));
}

void
room_try_join(Room *room)
{
	uint64_t position;

	if (!room->snapshot_ready || room->published_seq < room->snapshot_seq)
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

static void
join_close_all(Room *room, int code, const char *reason)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->state != SESSION_JOINING || session->v2 != NULL)
			continue;
		room_stop_join(room, session);
		session_close(session, code, reason);
	}
	join_cleanup(room);
}

/* The snapshot is here. */
static void
join_take(Room *room, const PGresult *res)
{
	uint32_t rows = pgresult_uint32(res, 0, 1);
	uint32_t cols = pgresult_uint32(res, 0, 2);

	if ((uint64_t) rows * cols > ROOM_MAX_RECTANGLE)
	{
		join_close_all(room, CLOSE_TOO_BIG, "the sheet is too large for protocol v1");
		return;
	}
	room->snapshot_seq = pgresult_int64(res, 0, 0);
	if (room->marks[0].seq > room->snapshot_seq) /* asked for by somebody before who has left: there is a gap */
	{
		join_ask(room);
		return;
	}
	room->snapshot.len = 0;
	room->snapshot_styles.len = 0;
	buf_printf(&room->snapshot, "\"columns\":%u,", cols);
	if (!v1_put_content(&room->snapshot, &room->snapshot_styles, rows, cols, PQgetvalue(res, 0, 3),
						(size_t) PQgetlength(res, 0, 3)))
	{
		join_close_all(room, CLOSE_ERROR, "the sheet's cells cannot be read");
		return;
	}
	if (buf_failed(&room->snapshot) || buf_failed(&room->snapshot_styles))
	{
		join_close_all(room, CLOSE_ERROR, "out of memory");
		return;
	}
	room->snapshot_ready = true;
	room_catch_up(room, room->snapshot_seq);
	room_try_join(room);
}

static void
join_answered(void *arg, PGresult *res)
{
	Room *room = arg;

	room->snapshot_under_way = false;
	if (room->joining > 0 && room->state == ROOM_SERVING)
	{
		if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
			join_take(room, res);
		else if (res == NULL)
			join_ask(room);
		else
			join_close_all(room, CLOSE_ERROR, pgresult_reason(res));
	}
	room_query_done(room);
}

static void
join_ask(Room *room)
{
	char sheet[24];
	PgParam param = pgparam_int64(sheet, room_sheet_id(room));

	room->snapshot_under_way = true;
	room->queries++;
	if (!database_query(DATABASE_READS, 0, snapshot_sql, 1, &param, 1, join_answered, room))
	{
		room->queries--;
		room->snapshot_under_way = false;
		join_close_all(room, CLOSE_RESTART, "the gateway is busy");
	}
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
		room_note_mark(room);
	if (!room->snapshot_under_way && !room->snapshot_ready)
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
