/*
 * follow.c - hears of edits that others commit: one call of sheet.follow after the other, each waiting in the database.
 *
 * The cursor outlives a lost connection. When the database has forgotten events (it was restarted, or they were too
 * many), every open room asks for its tail, and every member is checked again.
 */
#include "follow.h"

#include "accounts.h"
#include "gateway.h"
#include "log.h"
#include "room.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_WAIT_MS	   10000
#define FOLLOW_DEADLINE_MS (FOLLOW_WAIT_MS + 10000)
#define FOLLOW_RETRY_MS	   500
#define FOLLOW_STATUS	   (-1) /* the sheet's own row or its members changed, or the account -sheet_id */

static const char follow_sql[] =
	"SELECT f.\"cursor\", f.lost, u.sheet_id, u.seq "
	"FROM sheet.follow($1, $2, $3) f LEFT JOIN LATERAL unnest(f.sheet_ids, f.seqs) u(sheet_id, seq) ON true";

static char follow_cursor[24]; /* "": begin */
static uv_timer_t follow_retry;
static uint64_t follow_change_count;

static void follow_ask(void);

uint64_t
follow_changes(void)
{
	return follow_change_count;
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
		return;
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

	follow_change_count += sheet_id < 0 || seq == FOLLOW_STATUS;
	if (sheet_id < 0)
	{
		int64_t uid = -sheet_id;

		accounts_forget(uid);
		room_for_each(follow_check_account, &uid);
		return;
	}
	if (room == NULL)
		return;
	if (seq == FOLLOW_STATUS)
		follow_check_members(room);
	else if (room->state == ROOM_SERVING)
		room_catch_up(room, seq);
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

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) == 0)
	{
		if (res != NULL)
			log_event(LOG_WARN, "following failed",
					  LOG_STR("reason", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)));
		if (!gateway.draining)
			uv_timer_start(&follow_retry, follow_on_retry, FOLLOW_RETRY_MS, 0);
		return;
	}
	snprintf(follow_cursor, sizeof(follow_cursor), "%s", PQgetvalue(res, 0, 0));
	if (first || PQgetvalue(res, 0, 1)[0] == 't')
	{
		follow_change_count++;
		room_for_each(follow_refresh, NULL);
	}
	for (int i = 0; i < PQntuples(res); i++)
	{
		if (!PQgetisnull(res, i, 2))
			follow_event(atoll(PQgetvalue(res, i, 2)), atoll(PQgetvalue(res, i, 3)));
	}
	follow_ask();
}

static void
follow_ask(void)
{
	char origin[24], wait[24];
	PgParam params[] = {pgparam_int64(origin, gateway.origin),
						follow_cursor[0] != '\0' ? pgparam_text(follow_cursor) : pgparam_null(),
						pgparam_int64(wait, FOLLOW_WAIT_MS)};

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
