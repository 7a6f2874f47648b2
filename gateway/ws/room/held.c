/*
 * held.c - sheets that another transaction holds.
 *
 * An SQL transaction that has edited a sheet holds it until it ends. The gateway's statements do not wait for that:
 * sheet.apply and sheet.claim return at once, and the room is put on the list here. Every HELD_POLL_MS one statement
 * (sheet.holders) asks about all rooms of the list. A room's statement is sent again, on the connections that may wait
 * for a moment (DATABASE_HELD), when
 *
 *   - nobody holds the sheet any more,
 *   - another transaction holds it than at the last time: short transactions follow each other, and only a place in the
 *     queue of PostgreSQL's lock helps,
 *   - the transaction has just begun.
 *
 * Structure edits need the tabs that refer to the sheet by its name, too (docs/design/books.md): then the sheet that
 * the room asks about may be one of these, or the book, under its negative id. After a try that has waited in vain, the
 * next one does not wait, since it tells which sheet is held.
 *
 * So the server processes that wait are those of DATABASE_HELD, for their lock_timeout at most, whatever the number of
 * held sheets. A room's batch is sent soon after the transaction has ended.
 */
#include "ws/room/held.h"

#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/room/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_POLL_MS  250
#define HELD_YOUNG_MS 250  /* a younger transaction may end at any moment */
#define HELD_TELL_MS  1000 /* editors are told of the holder after so long */
#define HELD_AGAIN_MS 5000 /* and again, with its age */

static LIST_HEAD(, Room) held_rooms;
static size_t held_total;
static uv_timer_t held_timer;
static bool held_asking;

static const char held_sql[] =
	"SELECT sheet_id, holder, application, transaction, (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint "
	"FROM sheet.holders($1) ORDER BY sheet_id";

static void held_ask(void);

size_t
held_count(void)
{
	return held_total;
}

/* ---- telling editors ---- */

static void
held_tell_session(const Room *room, Session *session, bool held)
{
	const RoomHeld *state = &room->held;
	uint64_t now = uv_now(&gateway.loop);
	SheetHolder holder = {false, "", "", 0};

	if (held)
		holder = (SheetHolder){true, state->holder, state->application, now > state->began ? now - state->began : 0};
	if (session->state == SESSION_LIVE && session->may_edit)
		session->protocol->send_holder(session, &holder);
}

static void
held_tell(Room *room, bool held)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
		held_tell_session(room, session, held);
	room->held.announced = held;
	room->held.announced_at = uv_now(&gateway.loop);
}

void
held_greet(Session *session)
{
	if (session->room->held.announced)
		held_tell_session(session->room, session, true);
}

/* ---- the list ---- */

static void
held_on_timer(uv_timer_t *timer)
{
	held_ask();
}

void
held_wait(Room *room, int64_t sheet_id)
{
	RoomHeld *state = &room->held;

	state->trying = state->due = false;
	if (held_timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &held_timer);
		uv_unref((uv_handle_t *) &held_timer);
	}
	if (!state->listed)
	{
		*state = (RoomHeld){.listed = true, .since = uv_now(&gateway.loop)};
		LIST_INSERT_HEAD(&held_rooms, room, held.entry);
		held_total++;
		state->sheet = sheet_id != 0 ? sheet_id : room_sheet_id(room);
		held_ask(); /* most transactions are short */
	}
	else if (sheet_id != 0 && sheet_id != state->sheet)
	{
		state->sheet = sheet_id;
		state->transaction[0] = '\0';
		state->announced_at = 0;
	}
	state->asks = sheet_id == 0;
	if (!uv_is_active((uv_handle_t *) &held_timer))
		uv_timer_start(&held_timer, held_on_timer, HELD_POLL_MS, HELD_POLL_MS);
}

void
held_end(Room *room)
{
	RoomHeld *state = &room->held;

	if (!state->listed)
		return;
	if (state->announced)
	{
		log_event(LOG_INFO, "sheet is free again", LOG_INT("sheet", room_sheet_id(room)),
				  LOG_INT("waited_ms", uv_now(&gateway.loop) - state->since));
		held_tell(room, false);
	}
	LIST_REMOVE(room, held.entry);
	state->listed = false;
	if (--held_total == 0)
		uv_timer_stop(&held_timer);
}

/* ---- who holds them ---- */

/* The row of a sheet; -1 when nobody holds it. The rows are ordered by sheet. */
static int
held_find_row(const PGresult *res, int64_t sheet_id)
{
	int low = 0, high = PQntuples(res);

	while (low < high)
	{
		int middle = low + (high - low) / 2;
		int64_t id = atoll(PQgetvalue(res, middle, 0));

		if (id == sheet_id)
			return middle;
		if (id < sheet_id)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

/* Stores the holder of the sheet. Returns true if the room is to try now. */
static bool
held_set_holder(Room *room, const PGresult *res, int row)
{
	RoomHeld *state = &room->held;
	int64_t age = PQgetisnull(res, row, 4) ? 0 : atoll(PQgetvalue(res, row, 4));
	bool changed = strcmp(state->transaction, PQgetvalue(res, row, 3)) != 0;
	bool first = state->transaction[0] == '\0';

	snprintf(state->transaction, sizeof(state->transaction), "%s", PQgetvalue(res, row, 3));
	snprintf(state->holder, sizeof(state->holder), "%s", PQgetvalue(res, row, 1));
	snprintf(state->application, sizeof(state->application), "%s", PQgetvalue(res, row, 2));
	if (age < 0)
		age = 0; /* the server's clock was set back */
	state->began = uv_now(&gateway.loop) > (uint64_t) age ? uv_now(&gateway.loop) - (uint64_t) age : 0;
	return (changed && !first) || age < HELD_YOUNG_MS;
}

static void
held_check(Room *room, const PGresult *res)
{
	RoomHeld *state = &room->held;
	int row = held_find_row(res, state->sheet);
	uint64_t now = uv_now(&gateway.loop);

	if (state->trying)
		return;
	if (row < 0 || held_set_holder(room, res, row))
	{
		state->due = true; /* commit_send() tries */
		room_mark_dirty(room);
		return;
	}
	if (now - state->since < HELD_TELL_MS || (state->announced && now - state->announced_at < HELD_AGAIN_MS))
		return;
	if (!state->announced)
		log_event(LOG_INFO, "sheet is held", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("holder", state->holder),
				  LOG_STR("application", state->application), LOG_INT("for_ms", now - state->began));
	held_tell(room, true);
}

static void
held_answered(void *arg, PGresult *res)
{
	Room *next;

	held_asking = false;
	if (!pgresult_succeeded(res))
		return; /* the timer asks again */
	for (Room *room = LIST_FIRST(&held_rooms); room != NULL; room = next)
	{
		next = LIST_NEXT(room, held.entry);
		held_check(room, res);
	}
}

static void
held_ask(void)
{
	Buf ids = {NULL, 0, 0};
	PgParam param;

	if (held_asking || LIST_EMPTY(&held_rooms))
		return;
	for (const Room *room = LIST_FIRST(&held_rooms); room != NULL; room = LIST_NEXT(room, held.entry))
		buf_printf(&ids, "%c%lld", ids.len > 0 ? ',' : '{', (long long) room->held.sheet);
	buf_puts(&ids, "}");
	param = pgparam_buf(&ids, 0);
	held_asking = database_query(DATABASE_READS, 0, held_sql, 1, &param, 0, held_answered, NULL);
	buf_free(&ids);
}
