/*
 * held.c - sheets that another transaction holds.
 *
 * An SQL transaction that has edited a sheet holds it until it ends. The gateway's statements do not wait for it:
 * sheet.apply and sheet.claim answer at once that the sheet is held, and the room is put on the list here. All rooms of
 * the list are asked about in one statement (sheet.holders), every HELD_POLL_MS. A room's statement is sent again, on
 * the connections that may wait for a moment (DATABASE_HELD), when
 *
 *   - nobody holds the sheet any more,
 *   - another transaction holds it than the last time: short transactions follow one another, and only waiting in the
 *     queue of PostgreSQL's lock gets us our turn,
 *   - the transaction has only just begun.
 *
 * So however many sheets are held, and however long, the server processes that wait are those of DATABASE_HELD, for no
 * longer than their lock_timeout, and what the room has goes to the database soon after the transaction has ended.
 */
#include "ws/room/held.h"

#include "core/database.h"
#include "core/gateway.h"
#include "support/log.h"
#include "db/pgresult.h"
#include "ws/room/room.h"
#include "ws/session/session.h"
#include "ws/v2/v2_session.h"
#include "ws/v1/v1_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_POLL_MS  250
#define HELD_YOUNG_MS 250  /* a transaction that may end at any moment */
#define HELD_TELL_MS  1000 /* editors are told of a holder after this long ... */
#define HELD_AGAIN_MS 5000 /* ... and again: how long it has been */

static Room *held_rooms;
static size_t held_total;
static uv_timer_t held_timer;
static bool held_timer_ready;
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
	const Held *state = &room->held;
	uint64_t now = uv_now(&gateway.loop);
	uint64_t ms = held && now > state->began ? now - state->began : 0;
	const char *holder = held ? state->holder : "", *application = held ? state->application : "";
	Buf message = {NULL, 0, 0};

	if (session->state != SESSION_LIVE || !session->may_edit || (session->v2 == NULL && !session->nack))
		return;
	if (session->v2 != NULL)
		v2_put_held(&message, session->v2->encoding, held, holder, application, ms);
	else
		v1_put_held(&message, held, holder, application, ms);
	session_send_message(session, message.data, message.len, session->v2 != NULL && session->v2->encoding == V2_BINARY);
	buf_free(&message);
}

static void
held_tell(Room *room, bool held)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
		held_tell_session(room, session, held);
	room->held.told = held;
	room->held.told_at = uv_now(&gateway.loop);
}

void
held_greet(const Room *room, Session *session)
{
	if (room->held.told)
		held_tell_session(room, session, true);
}

/* ---- the list ---- */

static void
held_on_timer(uv_timer_t *timer)
{
	held_ask();
}

void
held_wait(Room *room)
{
	Held *state = &room->held;

	state->trying = false;
	if (!held_timer_ready)
	{
		uv_timer_init(&gateway.loop, &held_timer);
		uv_unref((uv_handle_t *) &held_timer);
		held_timer_ready = true;
	}
	if (!state->listed)
	{
		*state = (Held){.next = held_rooms, .listed = true, .since = uv_now(&gateway.loop)};
		if (held_rooms != NULL)
			held_rooms->held.prev = room;
		held_rooms = room;
		held_total++;
		held_ask(); /* most transactions are short: who it is decides whether to wait in their queue */
	}
	if (!uv_is_active((uv_handle_t *) &held_timer))
		uv_timer_start(&held_timer, held_on_timer, HELD_POLL_MS, HELD_POLL_MS);
}

void
held_end(Room *room)
{
	Held *state = &room->held;

	if (!state->listed)
		return;
	if (state->told)
	{
		log_event(LOG_INFO, "sheet is free again", LOG_INT("sheet", room_sheet_id(room)),
				  LOG_INT("waited_ms", uv_now(&gateway.loop) - state->since));
		held_tell(room, false);
	}
	if (state->prev != NULL)
		state->prev->held.next = state->next;
	else
		held_rooms = state->next;
	if (state->next != NULL)
		state->next->held.prev = state->prev;
	state->listed = false;
	if (--held_total == 0)
		uv_timer_stop(&held_timer);
}

/* ---- asking who holds them ---- */

/* The row of the answer for a sheet; -1 when nobody holds it. */
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

/* Notes who holds the sheet; true when the room is to try now. */
static bool
held_note(Room *room, const PGresult *res, int row)
{
	Held *state = &room->held;
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
held_look(Room *room, const PGresult *res)
{
	Held *state = &room->held;
	int row = held_find_row(res, room_sheet_id(room));
	uint64_t now = uv_now(&gateway.loop);

	if (state->trying)
		return;
	if (row < 0 || held_note(room, res, row))
	{
		state->trying = commit_try_held(room);
		return;
	}
	if (now - state->since < HELD_TELL_MS || (state->told && now - state->told_at < HELD_AGAIN_MS))
		return;
	if (!state->told)
		log_event(LOG_INFO, "sheet is held", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("holder", state->holder),
				  LOG_STR("application", state->application), LOG_INT("for_ms", now - state->began));
	held_tell(room, true);
}

static void
held_answered(void *arg, PGresult *res)
{
	Room *next;

	held_asking = false;
	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
		return; /* the timer asks again */
	for (Room *room = held_rooms; room != NULL; room = next)
	{
		next = room->held.next;
		held_look(room, res);
	}
}

static void
held_ask(void)
{
	Buf ids = {NULL, 0, 0};
	PgParam param;

	if (held_asking || held_rooms == NULL)
		return;
	for (const Room *room = held_rooms; room != NULL; room = room->held.next)
		buf_printf(&ids, "%c%lld", ids.len > 0 ? ',' : '{', (long long) room_sheet_id(room));
	buf_puts(&ids, "}");
	param = pgparam_buf(&ids, 0);
	held_asking = database_query(DATABASE_READS, 0, held_sql, 1, &param, 0, held_answered, NULL);
	buf_free(&ids);
}
