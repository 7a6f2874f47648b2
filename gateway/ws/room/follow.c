/*
 * follow.c - hears of edits that others commit: one call of sheet.follow after the other, each waiting in the database.
 *
 * The cursor outlives a lost connection. When the database has forgotten events (it was restarted, or they were too
 * many), every open room asks for its tail, every member is checked again, and nothing that is kept of sheets and
 * accounts counts any more.
 *
 * All sheets of the database are followed, open or not. An answer says that everything which was committed before its
 * question has been told, unless it is full. So what is kept elsewhere (window.c, access.c) may be used as long as the
 * last such question is not too long ago, and silence is known for what it is: a call waits no longer than a second.
 */
#include "ws/room/follow.h"

#include "ws/room/access.h"
#include "ws/room/accounts.h"
#include "ws/edit/commit.h"
#include "core/gateway.h"
#include "support/log.h"
#include "ws/room/room.h"
#include "ws/session/session.h"
#include "ws/cells/snapshot.h"
#include "ws/cells/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_WAIT_MS	   1000
#define FOLLOW_CURRENT_MS  2000
#define FOLLOW_DEADLINE_MS (FOLLOW_WAIT_MS + 10000)
#define FOLLOW_ANSWER_MAX  1024 /* what sheet.follow tells at once; the rest comes with the next answer */
#define FOLLOW_RETRY_MS	   500
#define FOLLOW_PLACES	   4096 /* a power of two */
#define FOLLOW_STATUS	   (-1) /* the sheet's own row or its members changed, or the account -sheet_id */

static const char follow_sql[] =
	"SELECT f.\"cursor\", f.lost, u.sheet_id, u.seq "
	"FROM sheet.follow($1, $2, $3) f LEFT JOIN LATERAL unnest(f.sheet_ids, f.seqs) u(sheet_id, seq) ON true";

static char follow_cursor[24]; /* "": begin */
static uv_timer_t follow_retry;
static uint64_t follow_change_count;
static uint64_t follow_places[FOLLOW_PLACES]; /* the count when one of these sheets and accounts changed last */
static uint64_t follow_lost_at;				  /* the count when anything may have changed */
static uint64_t follow_asked;				  /* ns: when the question under way was sent */
static uint64_t follow_heard;				  /* ns: what was committed until then has been heard; 0: nothing yet */

static void follow_ask(void);

uint64_t
follow_changes(void)
{
	return follow_change_count;
}

/* What others do to their own sheets and accounts must not hold up who asks about another one. */
static uint64_t *
follow_place(int64_t sheet_id)
{
	return &follow_places[(uint64_t) sheet_id * UINT64_C(0x9E3779B97F4A7C15) >> 52 & (FOLLOW_PLACES - 1)];
}

bool
follow_has_changed(int64_t sheet_id, uint64_t asked)
{
	return *follow_place(sheet_id) > asked || follow_lost_at > asked;
}

bool
follow_is_current(void)
{
	return follow_heard != 0 && uv_hrtime() - follow_heard < FOLLOW_CURRENT_MS * UINT64_C(1000000);
}

void
follow_changed(int64_t sheet_id)
{
	*follow_place(sheet_id) = ++follow_change_count;
	if (sheet_id > 0)
	{
		access_forget_sheet(sheet_id);
		return;
	}
	accounts_forget(-sheet_id);
	access_forget_account(-sheet_id);
}

/* Anything may have happened. */
static void
follow_lost(void)
{
	follow_lost_at = ++follow_change_count;
	accounts_forget_all();
	access_forget_all();
	window_doubt_all();
	snapshot_doubt_all();
}

static void
follow_check_members(Room *room)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->state != SESSION_CLOSING && session->state != SESSION_CHECKING)
			session_check(session);
	}
}

static void
follow_refresh(Room *room, void *arg)
{
	if (room->state != ROOM_SERVING)
	{
		room_catch_up(room, INT64_MAX); /* where it will begin is not known yet */
		return;
	}
	room_catch_up(room, room->published_seq + 1);
	follow_check_members(room);
}

/* The account's editors are still who they say? */
static void
follow_check_account(Room *room, void *arg)
{
	int64_t uid = *(int64_t *) arg;

	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->uid == uid && session->state != SESSION_CLOSING)
			session_check(session);
	}
}

static void
follow_event(int64_t sheet_id, int64_t seq)
{
	Room *room = room_find(sheet_id);

	if (sheet_id < 0 || seq == FOLLOW_STATUS)
		follow_changed(sheet_id);
	else
		window_committed(sheet_id, seq);
	if (sheet_id < 0)
	{
		int64_t uid = -sheet_id;

		room_for_each(follow_check_account, &uid);
		return;
	}
	if (room == NULL)
		return;
	if (seq == FOLLOW_STATUS)
		follow_check_members(room);
	else
		room_catch_up(room, seq);
}

/* Until when everything has been heard, after an answer: an empty one has waited first. */
static uint64_t
follow_horizon(const PGresult *res)
{
	uint64_t now = uv_hrtime();
	uint64_t waited = follow_asked + FOLLOW_WAIT_MS * UINT64_C(1000000);

	if (PQntuples(res) >= FOLLOW_ANSWER_MAX)
		return follow_heard;
	if (follow_cursor[0] == '\0' || !PQgetisnull(res, 0, 2) || PQgetvalue(res, 0, 1)[0] == 't')
		return follow_asked;
	return waited < now ? waited : now;
}

static void
follow_on_retry(uv_timer_t *timer)
{
	follow_ask();
}

static void
follow_answered(void *arg, PGresult *res)
{
	bool first = follow_cursor[0] == '\0';
	uint64_t horizon;

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) == 0)
	{
		if (res != NULL)
			log_event(LOG_WARN, "following failed",
					  LOG_STR("reason", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)));
		if (!gateway.draining)
			uv_timer_start(&follow_retry, follow_on_retry, FOLLOW_RETRY_MS, 0);
		return;
	}
	horizon = follow_horizon(res);
	snprintf(follow_cursor, sizeof(follow_cursor), "%s", PQgetvalue(res, 0, 0));
	if (first || PQgetvalue(res, 0, 1)[0] == 't')
	{
		follow_lost();
		room_for_each(follow_refresh, NULL);
	}
	for (int i = 0; i < PQntuples(res); i++)
	{
		if (!PQgetisnull(res, i, 2))
			follow_event(atoll(PQgetvalue(res, i, 2)), atoll(PQgetvalue(res, i, 3)));
	}
	follow_heard = horizon;
	follow_ask();
}

static void
follow_ask(void)
{
	char origin[24], wait[24];
	PgParam params[] = {pgparam_int64(origin, gateway.origin),
						follow_cursor[0] != '\0' ? pgparam_text(follow_cursor) : pgparam_null(),
						pgparam_int64(wait, FOLLOW_WAIT_MS)};

	follow_asked = uv_hrtime();
	if (!pgconn_query(gateway.follow, follow_sql, 3, params, 0, FOLLOW_DEADLINE_MS, follow_answered, NULL))
		uv_timer_start(&follow_retry, follow_on_retry, FOLLOW_RETRY_MS, 0);
}

void
follow_start(void)
{
	uv_timer_init(&gateway.loop, &follow_retry);
	uv_unref((uv_handle_t *) &follow_retry);
	follow_ask();
}
