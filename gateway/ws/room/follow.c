/*
 * follow.c - hears of commits and changes elsewhere: one call of sheet.follow after the other, each of which waits in
 * the database.
 *
 * The cursor outlives a lost connection. When the database has dropped events (it was restarted, or there were too
 * many), every open room fetches its tail, every member is checked again, and all cached facts become invalid.
 *
 * All sheets of the database are followed, open or not. Unless an answer is full, it contains everything that was
 * committed before its question. So the caches may be used for a while after such a question was sent
 * (changes_are_current()). A call waits for a second at most, so silence is not taken for currency.
 */
#include "ws/room/follow.h"

#include "common/sql_interface.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "support/repeat.h"
#include "webhooks/webhooks.h"
#include "ws/cache/cached_range.h"
#include "ws/cache/changes.h"
#include "ws/cache/snapshot.h"
#include "ws/room/admission.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLLOW_WAIT_MS	   1000
#define FOLLOW_DEADLINE_MS (FOLLOW_WAIT_MS + 10000)
#define FOLLOW_RETRY_MS	   500

static const char follow_sql[] =
	"SELECT f.\"cursor\", f.lost, u.sheet_id, u.seq "
	"FROM sheet.follow($1, $2, $3) f LEFT JOIN LATERAL unnest(f.sheet_ids, f.seqs) u(sheet_id, seq) ON true";

static char follow_cursor[24]; /* "": begin */
static uv_timer_t follow_timer;
static uint64_t follow_asked; /* ns: when the question under way was sent */

static void follow_ask(void);

/* ---- events ---- */

static void
follow_tell(Session *session, V2Notice notice)
{
	if (session->state == SESSION_LIVE && session->protocol->send_notice != NULL)
		session->protocol->send_notice(session, notice);
}

static void
follow_tell_book(Room *room)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
		follow_tell(session, V2_NOTICE_BOOK);
}

/* Events were lost: anything may have happened. */
static void
follow_refresh(Room *room, void *arg)
{
	/* Where a room that does not serve yet will begin is not known. */
	room_catch_up(room, room_is_open(room) ? room->published_seq + 1 : INT64_MAX);
	if (room_is_open(room))
		admission_check_members(room, 0);
	follow_tell_book(room);
}

static void
follow_check_account(Room *room, void *arg)
{
	admission_check_members(room, *(int64_t *) arg);
}

/* ---- reminders ---- */

static int64_t follow_reminded[FOLLOW_ANSWER_MAX]; /* accounts of an answer */
static size_t follow_reminded_count;

static int
follow_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *) a, right = *(const int64_t *) b;

	return (left > right) - (left < right);
}

static void
follow_remind(Room *room, void *arg)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (bsearch(&session->uid, follow_reminded, follow_reminded_count, sizeof(int64_t), follow_compare) != NULL)
			follow_tell(session, V2_NOTICE_REMINDERS);
	}
}

/* Notifies the sessions of all accounts of an answer in one walk over the sessions. */
static void
follow_remind_all(void)
{
	qsort(follow_reminded, follow_reminded_count, sizeof(int64_t), follow_compare);
	if (follow_reminded_count > 0)
		room_for_each(follow_remind, NULL);
	follow_reminded_count = 0;
}

static void
follow_event(int64_t sheet_id, int64_t seq)
{
	Room *room = room_find(sheet_id);
	int64_t uid = -sheet_id; /* of an account: guests are checked with the sheet of their link */

	if (seq == FOLLOW_REMINDERS)
	{
		if (follow_reminded_count < FOLLOW_ANSWER_MAX)
			follow_reminded[follow_reminded_count++] = uid;
		return;
	}
	if (seq == FOLLOW_VALUES)
	{
		cached_range_invalidate(sheet_id);
		return;
	}
	if (seq == FOLLOW_BOOK)
	{
		if (room != NULL)
			follow_tell_book(room);
		return;
	}
	if (sheet_id < 0 || seq == FOLLOW_STATUS)
		changes_register(sheet_id);
	else
		cached_range_committed(sheet_id, seq);
	if (seq != FOLLOW_STATUS)
		webhooks_edited(sheet_id);
	else if (sheet_id > 0)
		webhooks_status_changed(sheet_id);
	if (sheet_id < 0)
		room_for_each(follow_check_account, &uid);
	else if (room != NULL && seq == FOLLOW_STATUS)
		admission_check_members(room, 0);
	else if (room != NULL)
		room_catch_up(room, seq);
}

/* ---- asking ---- */

/* The time until which everything has been heard of after an answer. The database has waited before an empty one. */
static uint64_t
follow_horizon(const PGresult *res)
{
	uint64_t now = uv_hrtime();
	uint64_t waited = follow_asked + FOLLOW_WAIT_MS * UINT64_C(1000000);

	if (PQntuples(res) >= FOLLOW_ANSWER_MAX)
		return changes_heard();
	if (follow_cursor[0] == '\0' || !PQgetisnull(res, 0, 2) || PQgetvalue(res, 0, 1)[0] == 't')
		return follow_asked;
	return waited < now ? waited : now;
}

static void
follow_on_timer(uv_timer_t *timer)
{
	follow_ask();
}

static void
follow_retry(void)
{
	if (!gateway.draining || !gateway.leaving)
		uv_timer_start(&follow_timer, follow_on_timer, FOLLOW_RETRY_MS, 0);
}

static void
follow_answered(void *arg, PGresult *res)
{
	static Repeat failing;
	bool first = follow_cursor[0] == '\0';
	uint64_t horizon;

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) == 0)
	{
		if (res != NULL && repeat_failed(&failing, uv_now(&gateway.loop), pgresult_sqlstate(res)))
			log_event(LOG_WARN, "following failed",
					  LOG_STR("reason", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)));
		follow_retry();
		return;
	}
	repeat_ended(&failing, uv_now(&gateway.loop), "following works again", LOG_STR("after", failing.reason));
	horizon = follow_horizon(res);
	snprintf(follow_cursor, sizeof(follow_cursor), "%s", PQgetvalue(res, 0, 0));
	if (first || PQgetvalue(res, 0, 1)[0] == 't')
	{
		changes_register_all();
		cached_range_invalidate_all();
		snapshot_invalidate_all();
		webhooks_look_at_all();
		room_for_each(follow_refresh, NULL);
	}
	for (int i = 0; i < PQntuples(res); i++)
	{
		if (!PQgetisnull(res, i, 2))
			follow_event(atoll(PQgetvalue(res, i, 2)), atoll(PQgetvalue(res, i, 3)));
	}
	follow_remind_all();
	changes_set_heard(horizon);
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
		follow_retry();
}

void
follow_start(void)
{
	uv_timer_init(&gateway.loop, &follow_timer);
	uv_unref((uv_handle_t *) &follow_timer);
	follow_ask();
}
