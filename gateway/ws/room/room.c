/*
 * room.c - the life of a sheet that is open here: its lock, its claim, its members, its end.
 *
 * LOCKING   coord_acquire() was called; members wait (another gateway's editors may have to leave first)
 * CLAIMING  the lock is ours; sheet.claim makes the database refuse whoever had it before, and then it is asked where
 *           the sheet is: its seq, and how large it is at it
 * SERVING   edits flow. While another transaction holds the sheet, the claim waits for it and edits wait for the
 *           claim, but the sheet can be read
 * LOST      members are being closed; whoever comes finds a new room after the last has gone
 *
 * A room ends when nobody is in it, nothing is pending and no query knows it. The database is told so (sheet.release),
 * since a sheet whose holder has not released it is checked when it is claimed next. Only then is the lock given back.
 */
#include "ws/room/room.h"

#include "ws/edit/commit.h"
#include "ws/edit/dirty.h"
#include "core/database.h"
#include "core/gateway.h"
#include "support/log.h"
#include "ws/edit/pending.h"
#include "db/pgresult.h"
#include "ws/edit/publish.h"
#include "ws/session/session.h"
#include "ws/cells/snapshot.h"
#include "ws/v1/v1_encode.h"
#include "ws/v2/v2_session.h"
#include "ws/cells/window.h"

#include <stdlib.h>
#include <string.h>

static SheetMap rooms;
static size_t sessions_total;

size_t
room_count(void)
{
	return rooms.count;
}

size_t
room_session_count(void)
{
	return sessions_total;
}

Room *
room_find(int64_t sheet_id)
{
	return sheet_map_find(&rooms, sheet_id);
}

void
room_for_each(void (*fn)(Room *room, void *arg), void *arg)
{
	size_t count;
	int64_t *ids = sheet_map_ids(&rooms, &count);

	for (size_t i = 0; i < count; i++)
	{
		Room *room = room_find(ids[i]);

		if (room != NULL)
			fn(room, arg);
	}
	free(ids);
}

/* ---- beginning ---- */

static Room *
room_open(int64_t sheet_id)
{
	Room *room = calloc(1, sizeof(Room));

	if (room == NULL)
		return NULL;
	room->entry.sheet_id = sheet_id;
	room->state = ROOM_LOCKING;
	sheet_map_add(&rooms, &room->entry);
	if (coord_acquire(gateway.coord, sheet_id))
		return room;
	sheet_map_remove(&rooms, &room->entry);
	free(room);
	return NULL;
}

void
room_waiting(int64_t sheet_id, const char *holder)
{
	Room *room = room_find(sheet_id);

	if (room == NULL)
		return;
	room->waiting = true;
	log_event(LOG_INFO, "waiting for sheet", LOG_INT("sheet", sheet_id), LOG_STR("holder", holder));
}

/* Where the room begins: its streams tell of all that comes after this seq. */
static void
room_serve(Room *room, const PGresult *res)
{
	room->state = ROOM_SERVING;
	room->published_seq = room->lines.floor = pgresult_int64(res, 0, 0);
	room->refused_seq = -1;
	room->extent = (RoomExtent){pgresult_uint32(res, 0, 1), pgresult_uint32(res, 0, 2)};
	if (!room->claimed)
	{
		room->busy = ROOM_HELD;
		held_wait(room);
	}
	room_catch_up(room, room->wanted_seq); /* what was heard of meanwhile may be behind it */
	for (Session *session = room->sessions; session != NULL; session = session->next)
		room_start_join(room, session);
}

static void
room_measured(void *arg, PGresult *res)
{
	Room *room = arg;

	if (room->state == ROOM_CLAIMING)
	{
		if (res == NULL)
			room_fail(room, CLOSE_RESTART, "the database does not answer");
		else if (PQresultStatus(res) == PGRES_TUPLES_OK)
			room_serve(room, res);
		else
			room_fail(room, CLOSE_ERROR, pgresult_reason(res));
	}
	room_query_done(room);
}

static const char room_measure_sql[] = "SELECT seq, rows, cols FROM sheet.read_cells($1, 0, 0, 0, 0)";

static void
room_measure(Room *room)
{
	char sheet[24];
	PgParam param = pgparam_int64(sheet, room_sheet_id(room));

	room->queries++;
	if (database_query(DATABASE_READS, 0, room_measure_sql, 1, &param, 1, room_measured, room))
		return;
	room->queries--;
	room_fail(room, CLOSE_RESTART, "the gateway is busy");
}

static void room_claim(Room *room);

/* The claim is made, or another transaction holds the sheet. */
static void
room_take_claim(Room *room, bool held)
{
	room->claimed = !held;
	if (room->state == ROOM_CLAIMING)
		room_measure(room);
	else if (held)
		held_wait(room);
	else
	{
		held_end(room);
		room->busy = ROOM_IDLE;
		room_mark_dirty(room);
	}
}

static void
room_claimed(void *arg, PGresult *res)
{
	Room *room = arg;
	const char *state = pgresult_sqlstate(res);

	if (room->state == ROOM_CLAIMING || room->state == ROOM_SERVING)
	{
		if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
			room_take_claim(room, PQgetisnull(res, 0, 0));
		else if (strcmp(state, "55P03") == 0 || (res == NULL && room->state == ROOM_SERVING))
			room_take_claim(room, true);
		else if (res == NULL)
			room_claim(room); /* no connection: it waits for the next one */
		else if (strcmp(state, "SF001") == 0)
			room_fail(room, CLOSE_RESTART, "another gateway has the sheet");
		else
			room_fail(room, CLOSE_ERROR, pgresult_reason(res));
	}
	room_query_done(room);
}

static const char room_claim_sql[] = "SELECT sheet.claim($1, $2, $3, $4)";

static bool
room_send_claim(Room *room, DatabaseClass class)
{
	char sheet[24], epoch[24];
	PgParam params[] = {pgparam_int64(sheet, room_sheet_id(room)), pgparam_int64(epoch, room->epoch),
						pgparam_text(gateway.config.public_address),
						pgparam_text(class == DATABASE_HELD ? "false" : "true")};

	return database_query(class, 0, room_claim_sql, 4, params, 0, room_claimed, room);
}

static void
room_claim(Room *room)
{
	room->queries++;
	if (!room_send_claim(room, DATABASE_EDITS))
	{
		room_fail(room, CLOSE_RESTART, "the gateway is busy");
		room_query_done(room);
	}
}

bool
room_claim_held(Room *room)
{
	room->queries++;
	if (room_send_claim(room, DATABASE_HELD))
		return true;
	room->queries--;
	return false;
}

void
room_granted(int64_t sheet_id, int64_t epoch)
{
	Room *room = room_find(sheet_id);

	if (room == NULL || room->state != ROOM_LOCKING)
		return;
	room->epoch = epoch;
	room->waiting = false;
	room->state = ROOM_CLAIMING;
	room_claim(room);
}

/* ---- members ---- */

void
room_add_session(int64_t sheet_id, Session *session)
{
	Room *room = room_find(sheet_id);

	if (room != NULL && room->state == ROOM_LOST)
	{
		session_close(session, CLOSE_RESTART, "the sheet is moving");
		return;
	}
	if (!gateway.ready || gateway.draining)
	{
		session_close(session, CLOSE_RESTART, "the gateway does not serve now");
		return;
	}
	if (room == NULL && (room = room_open(sheet_id)) == NULL)
	{
		session_fail(session);
		return;
	}
	room->released = false;
	session->room = room;
	session->prev = NULL;
	session->next = room->sessions;
	if (room->sessions != NULL)
		room->sessions->prev = session;
	room->sessions = session;
	room->session_count++;
	sessions_total++;
	if (session->v2 == NULL && room->v1_sessions++ == 0)
		room_add_v1_frames(room);
	v2_tell_peer(room, session, true);
	if (room->state == ROOM_SERVING)
		room_start_join(room, session);
}

void
room_tell_lock(Room *room, uint32_t row, uint32_t col, const Session *session, bool held)
{
	RoomBatch *batch = room_pending(room);
	RoomEvent *event = batch != NULL ? batch_add_event(batch) : NULL;
	Buf payload = {NULL, 0, 0};

	if (event == NULL)
	{
		room_fail_memory(room);
		return;
	}
	v1_put_lock(&payload, held ? "acquire" : "release", row, col, &session->name_json);
	batch_add_v1_frame(batch, &payload);
	buf_free(&payload);
	room_mark_dirty(room);
	event->is_lock = true;
	event->cell = (V2HeldCell){.row = row, .col = col};
	if (held)
	{
		event->cell.session = session->v2 != NULL ? session->number : 0;
		event->cell.uid = (uint64_t) session->uid;
	}
}

/* Frees a cell, and tells it under the name of whoever held it. */
static void
room_release_lock(Room *room, CellLock *lock, const Session *holder)
{
	room_tell_lock(room, lock->row, lock->col, holder, false);
	locks_remove(&room->locks, lock);
}

const Session *
room_find_holder(const Room *room, int64_t holder)
{
	for (const Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session_holder(session) == holder && session->name_json.len > 0)
			return session;
	}
	return NULL;
}

/* The user's last connection has gone: their cells are free again. */
static void
room_release_user(Room *room, Session *leaving)
{
	CellLock *lock;

	if (room_find_holder(room, session_holder(leaving)) != NULL)
		return;
	while ((lock = locks_find_of(&room->locks, session_holder(leaving), UINT64_MAX)) != NULL)
		room_release_lock(room, lock, leaving);
}

void
room_expire_locks(Room *room)
{
	CellLock *lock;

	while ((lock = locks_find_of(&room->locks, 0, uv_now(&gateway.loop))) != NULL)
	{
		const Session *holder = room_find_holder(room, lock->uid);

		if (holder != NULL)
			room_release_lock(room, lock, holder);
		else
			locks_remove(&room->locks, lock);
	}
}

void
room_remove_session(Room *room, Session *session)
{
	room_stop_join(room, session);
	publish_forget(session);
	if (session->prev != NULL)
		session->prev->next = session->next;
	else
		room->sessions = session->next;
	if (session->next != NULL)
		session->next->prev = session->prev;
	room->session_count--;
	sessions_total--;
	room->v1_sessions -= session->v2 == NULL;
	v2_tell_peer(room, session, false);
	room_release_user(room, session);
	room_check_end(room);
}

/* ---- the end ---- */

static void
batch_free_all(RoomBatch *batch)
{
	RoomBatch *next;

	for (; batch != NULL; batch = next)
	{
		next = batch->next;
		batch_free(batch);
	}
}

static void
room_free(Room *room)
{
	sheet_map_remove(&rooms, &room->entry);
	held_end(room);
	if (gateway.coord != NULL && (room->state != ROOM_LOST || room->epoch != 0))
		coord_release(gateway.coord, room_sheet_id(room));
	batch_free_all(room->pending);
	batch_free_all(room->sent);
	PQclear(room->answer);
	fanout_detach(&room->join_start);
	fanout_free(&room->stream);
	for (int i = 0; i < V2_ENCODINGS; i++)
		fanout_free(&room->v2[i]);
	v2_free_clients(room);
	snapshot_release(room->snapshot);
	locks_free(&room->locks);
	lines_forget(&room->lines);
	free(room->values);
	free(room->marks);
	free(room);
}

/* Whatever the answer: the sheet is given up. */
static void
room_released(void *arg, PGresult *res)
{
	room_query_done(arg);
}

static const char room_release_sql[] = "SELECT sheet.release($1, $2)";

/* False when there is nothing to wait for; nor is a database waited for that is away. */
static bool
room_release(Room *room)
{
	char sheet[24], epoch[24];
	PgParam params[] = {pgparam_int64(sheet, room_sheet_id(room)), pgparam_int64(epoch, room->epoch)};

	if (room->state != ROOM_SERVING || !room->claimed || room->released || !pgpool_is_up(database_pool(DATABASE_EDITS)))
		return false;
	room->released = true;
	room->queries++;
	if (database_query(DATABASE_EDITS, 0, room_release_sql, 2, params, 0, room_released, room))
		return true;
	room->queries--;
	return false;
}

void
room_check_end(Room *room)
{
	if (room->session_count > 0 || room->queries > 0 || room->dirty || room->queued || room->touched ||
		room->publishing)
		return;
	if (room->state == ROOM_SERVING && (room->pending_edits > 0 || room->clients != NULL || room->busy != ROOM_IDLE))
		return;
	if (!room_release(room))
		room_free(room);
}

void
room_query_done(Room *room)
{
	room->queries--;
	room_check_end(room);
}

void
room_fail(Room *room, int code, const char *reason)
{
	log_event(LOG_WARN, "sheet given up", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("reason", reason));
	room->state = ROOM_LOST;
	held_end(room);
	window_doubt(room_sheet_id(room)); /* a batch may be under way of which we shall not hear */
	for (Session *session = room->sessions; session != NULL; session = session->next)
		session_close(session, code, reason);
}

void
room_fail_memory(Room *room)
{
	fanout_fail(&room->stream);
	for (int i = 0; i < V2_ENCODINGS; i++)
		fanout_fail(&room->v2[i]);
	if (room->state != ROOM_LOST)
		room_fail(room, CLOSE_RESTART, "out of memory: come again");
}

void
room_lost(int64_t sheet_id, const char *reason)
{
	Room *room = room_find(sheet_id);

	if (room == NULL)
		return;
	room->epoch = 0; /* the lock is gone: nothing to release */
	room_fail(room, CLOSE_RESTART, reason);
	room_check_end(room);
}
