/*
 * room.c - the life of a sheet that is open here: its lock, its claim, its members, its end.
 *
 * A room begins with the first session: coord_acquire() gets the sheet's lock, for which another gateway's editors may
 * have to leave first. sheet.claim then makes the database refuse the previous gateway, and the sheet's seq, extent and
 * properties are read. While another transaction holds the sheet, the claim waits for that and edits wait for the
 * claim, but members can read.
 *
 * A room ends when it has no members, nothing pending and no query under way. The database is told so (sheet.release),
 * because a sheet that was not released is checked at the next claim. Then the lock is given back.
 */
#include "ws/room/room.h"

#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/cache/cached_range.h"
#include "ws/room/held.h"
#include "ws/room/schedule.h"

#include <stdlib.h>
#include <string.h>

const Protocol *const room_protocols[] = {&protocol_v1, &protocol_v2, NULL};

static SheetMap rooms;

size_t
room_count(void)
{
	return rooms.count;
}

Room *
room_find(int64_t sheet_id)
{
	return sheet_map_find(&rooms, sheet_id);
}

void
room_for_each(void (*fn)(Room *room, void *arg), void *arg)
{
	SheetWalk walk;
	Room *room;

	sheet_walk_begin(&walk, &rooms);
	while ((room = sheet_walk_next(&walk)) != NULL)
		fn(room, arg);
}

bool
room_may_be_ahead(int64_t sheet_id)
{
	const Room *room = room_find(sheet_id);

	return room != NULL && room->sent != NULL && room->sent->uncertain;
}

uint64_t
room_stream_bytes(const Room *room)
{
	uint64_t bytes = 0;

	for (int form = 0; form < STREAM_FORMS; form++)
		bytes += room->streams[form].fanout.end;
	return bytes;
}

/* ---- states ---- */

#define TO(state) (1u << (state))

/* A defect of the gateway. It ends one room and not the process. */
static void
room_fail_transition(Room *room, const char *what, int from, int to)
{
	log_event(LOG_ERROR, "unexpected state of a room", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("of", what),
			  LOG_INT("from", from), LOG_INT("to", to));
	room_fail(room, CLOSE_RESTART, "internal error: come again");
}

void
room_set_state(Room *room, RoomState state)
{
	static const unsigned next[] = {
		[ROOM_LOCKING] = TO(ROOM_CLAIMING) | TO(ROOM_LOST),
		[ROOM_CLAIMING] = TO(ROOM_UNCLAIMED) | TO(ROOM_SERVING) | TO(ROOM_LOST),
		[ROOM_UNCLAIMED] = TO(ROOM_SERVING) | TO(ROOM_LOST),
		[ROOM_SERVING] = TO(ROOM_RELEASED) | TO(ROOM_MOVING) | TO(ROOM_LOST),
		[ROOM_RELEASED] = TO(ROOM_SERVING) | TO(ROOM_LOST),
		[ROOM_MOVING] = TO(ROOM_LOST),
		[ROOM_LOST] = TO(ROOM_LOST),
	};

	if ((next[room->state] & TO(state)) == 0)
	{
		room_fail_transition(room, "state", room->state, state);
		return;
	}
	room->state = state;
}

void
room_set_work(Room *room, RoomWork work)
{
	static const unsigned next[] = {
		[ROOM_IDLE] = TO(ROOM_IDLE) | TO(ROOM_APPLYING) | TO(ROOM_TAILING) | TO(ROOM_HELD),
		[ROOM_HELD] = TO(ROOM_HELD) | TO(ROOM_APPLYING) | TO(ROOM_TAILING) | TO(ROOM_IDLE),
		[ROOM_APPLYING] = TO(ROOM_IDLE) | TO(ROOM_HELD) | TO(ROOM_RETRYING) | TO(ROOM_FINDING),
		[ROOM_RETRYING] = TO(ROOM_APPLYING),
		[ROOM_FINDING] = TO(ROOM_FINDING) | TO(ROOM_TAILING) | TO(ROOM_IDLE),
		[ROOM_TAILING] = TO(ROOM_IDLE) | TO(ROOM_HELD) | TO(ROOM_FINDING),
	};

	if (room->state != ROOM_LOST && (next[room->work] & TO(work)) == 0)
		room_fail_transition(room, "work", room->work, work);
	room->work = work;
}

void
room_watch(Room *room)
{
	if (room->flow == ROOM_EVEN)
		room->flow = ROOM_UNEVEN;
	room_mark_dirty(room);
}

void
room_catch_up(Room *room, int64_t seq)
{
	if (seq > room->wanted_seq)
		room->wanted_seq = seq;
	if (room->wanted_seq > room->published_seq)
		room_mark_dirty(room);
}

/* ---- beginning ---- */

static void *
room_resize_memory(void *ctx, void *ptr, size_t size)
{
	if (size > 0)
		return realloc(ptr, size);
	free(ptr);
	return NULL;
}

Room *
room_open(int64_t sheet_id)
{
	Room *room = calloc(1, sizeof(Room));

	if (room == NULL)
		return NULL;
	room->entry.sheet_id = sheet_id;
	properties_init(&room->properties, room_resize_memory, NULL);
	sheet_map_add(&rooms, &room->entry);
	if (coord_acquire(gateway.coord, sheet_id))
		return room;
	sheet_map_remove(&rooms, &room->entry);
	free(room);
	return NULL;
}

/* res: seq, rows, cols, properties. The streams begin after this seq. */
static void
room_serve(Room *room, const PGresult *res)
{
	bool claimed = room->work != ROOM_HELD;

	if (!properties_decode(&room->properties, PQgetvalue(res, 0, 3), (size_t) PQgetlength(res, 0, 3)))
	{
		room_fail(room, CLOSE_ERROR, "the sheet's properties cannot be read");
		return;
	}
	room_set_state(room, claimed ? ROOM_SERVING : ROOM_UNCLAIMED);
	room->published_seq = room->lines.floor = room->writes.floor = pgresult_int64(res, 0, 0);
	room->refused_seq = -1;
	room->extent = (RoomExtent){pgresult_uint32(res, 0, 1), pgresult_uint32(res, 0, 2)};
	if (!claimed)
		held_wait(room, room_sheet_id(room));
	room_catch_up(room, room->wanted_seq); /* there may be newer edits, heard of meanwhile */
	for (Session *session = LIST_FIRST(&room->sessions), *next; session != NULL; session = next)
	{
		next = LIST_NEXT(session, in_room);
		if (session->state == SESSION_WAITING)
			session->protocol->join(session);
	}
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

static const char room_measure_sql[] = "SELECT seq, rows, cols, properties FROM sheet.read_properties($1)";

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

/* held: another transaction holds the sheet, and nothing is claimed. */
static void
room_take_claim(Room *room, bool held)
{
	if (room->state == ROOM_CLAIMING)
	{
		room_set_work(room, held ? ROOM_HELD : ROOM_IDLE);
		room_measure(room);
	}
	else if (held)
		held_wait(room, room_sheet_id(room));
	else
	{
		held_end(room);
		room_set_state(room, ROOM_SERVING);
		room_set_work(room, ROOM_IDLE);
		room_mark_dirty(room);
	}
}

static void
room_claimed(void *arg, PGresult *res)
{
	Room *room = arg;
	const char *state = pgresult_sqlstate(res);

	if (room->state == ROOM_CLAIMING || room->state == ROOM_UNCLAIMED)
	{
		if (pgresult_succeeded(res))
			room_take_claim(room, PQgetisnull(res, 0, 0));
		else if (strcmp(state, "55P03") == 0 || (res == NULL && room->state == ROOM_UNCLAIMED))
			room_take_claim(room, true);
		else if (res == NULL)
			room_claim(room); /* the connection was lost */
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
room_claim_again(Room *room)
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
	free(room->holder);
	room->holder = NULL;
	room_set_state(room, ROOM_CLAIMING);
	room_claim(room);
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
	if (gateway.coord != NULL)
		coord_release(gateway.coord, room_sheet_id(room)); /* or ends the wait for it; does nothing if it is gone */
	batch_free_all(room->pending);
	batch_free_all(room->sent);
	room_each_protocol(free_room, room);
	for (int form = 0; form < STREAM_FORMS; form++)
		fanout_free(&room->streams[form].fanout);
	locks_free(&room->locks);
	lines_history_free(&room->lines);
	writes_free(&room->writes);
	properties_free(&room->properties);
	free(room->holder);
	free(room);
}

/* The sheet is given up, whatever the answer. */
static void
room_released(void *arg, PGresult *res)
{
	room_query_done(arg);
}

static const char room_release_sql[] = "SELECT sheet.release($1, $2)";

bool
room_release(Room *room, RoomState state, PgResultFn fn)
{
	char sheet[24], epoch[24];
	PgParam params[] = {pgparam_int64(sheet, room_sheet_id(room)), pgparam_int64(epoch, room->epoch)};

	if (room->state != ROOM_SERVING || !pgpool_is_up(database_pool(DATABASE_EDITS)))
		return false;
	room->queries++;
	if (!database_query(DATABASE_EDITS, 0, room_release_sql, 2, params, 0, fn, room))
	{
		room->queries--;
		return false;
	}
	room_set_state(room, state);
	return true;
}

void
room_check_end(Room *room)
{
	bool busy = room->pending != NULL || room->work != ROOM_IDLE;

	if (room->session_count > 0 || room->queries > 0 || schedule_has_room(room) || (room_is_open(room) && busy))
		return;
	if (!room_release(room, ROOM_RELEASED, room_released))
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
	room_set_state(room, ROOM_LOST);
	held_end(room);
	cached_range_invalidate(room_sheet_id(room)); /* a batch under way may be stored */
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
		session_close(session, code, reason);
}

void
room_fail_memory(Room *room)
{
	for (int form = 0; form < STREAM_FORMS; form++)
		fanout_fail(&room->streams[form].fanout);
	if (room->state != ROOM_LOST)
		room_fail(room, CLOSE_RESTART, "out of memory: come again");
}

void
room_lost(int64_t sheet_id, const char *reason)
{
	Room *room = room_find(sheet_id);

	if (room == NULL)
		return;
	room_fail(room, CLOSE_RESTART, reason);
	room_check_end(room);
}
