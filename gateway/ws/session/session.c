/*
 * session.c - one WebSocket: its life, and who is there. What it is sent is session_out.c's; what clients send is
 * v1_session.c's and v2_session.c's.
 *
 * GREETING   protocol v2: nobody has said yet who is there
 * CHECKING   the token's signature is good; the database is asked about the account, the sheet and the role
 * WAITING    for the room: its lock may be another gateway's
 * JOINING    for the snapshot
 * LIVE       onConn (v2: hello) is queued; frames of the room follow it
 * CLOSING    what is queued is sent, then the close frame; a timeout ends what does not read
 *
 * A session outlives its connection while queries that know it are under way.
 */
#include "ws/session/session.h"

#include "ws/room/accounts.h"
#include "core/database.h"
#include "ws/room/follow.h"
#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "ws/session/socket.h"
#include "common/utf8.h"
#include "ws/v1/v1_session.h"
#include "ws/v2/v2_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_KEEP_BYTES	  262144 /* of buffers between messages */
#define SESSION_CLOSE_SECONDS 5

/* ---- life ---- */

Session *
session_create(struct Socket *socket, int64_t sheet_id, const char *link, struct V2Session *v2)
{
	static uint64_t last_number;
	Session *session = calloc(1, sizeof(Session));

	if (session == NULL)
		return NULL;
	session->number = ++last_number;
	session->socket = socket;
	session->v2 = v2;
	session->sheet_id = sheet_id;
	snprintf(session->link, sizeof(session->link), "%s", link);
	session->out_last = &session->out;
	metrics.sessions_opened++;
	return session;
}

Session *
session_open(struct Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link, bool nack)
{
	Session *session = session_create(socket, sheet_id, link, NULL);

	if (session == NULL)
		return NULL;
	session->state = SESSION_CHECKING;
	session->uid = claims->uid;
	session->generation = claims->generation;
	session->expires = claims->expires_at;
	session->nack = nack;
	session_check(session);
	return session;
}

int64_t
session_holder(const Session *session)
{
	return session->v2 != NULL ? -(int64_t) session->number : session->uid;
}

static void
session_free(Session *session)
{
	session_free_frames(session);
	v2_session_free(session);
	free(session->name);
	free(session->sheet_name);
	buf_free(&session->name_json);
	buf_free(&session->rx);
	buf_free(&session->scratch);
	free(session);
}

void
session_query_done(Session *session)
{
	if (--session->queries == 0 && session->socket == NULL)
		session_free(session);
}

static void
session_leave_room(Session *session)
{
	if (session->room == NULL)
		return;
	fanout_detach(&session->cursor);
	v2_leave(session);
	room_remove_session(session->room, session);
	session->room = NULL;
}

void
session_gone(Session *session)
{
	session->socket = NULL;
	v2_session_gone(session);
	session_leave_room(session);
	metrics_count_close(session->close_code);
	log_event(LOG_INFO, "session closed", LOG_STR("request", session->request_id), LOG_STR("peer", session->peer),
			  LOG_INT("uid", session->uid), LOG_INT("sheet", session->sheet_id), LOG_INT("code", session->close_code),
			  LOG_STR("reason", session->close_reason));
	session_free_frames(session); /* also while a query keeps the session */
	session->queries++;
	session_query_done(session);
}

void
session_want_write(Session *session)
{
	if (session->socket != NULL)
		socket_want_write(session->socket);
}

void
session_begin_close(Session *session)
{
	/* A member that still joins has not been told what comes before its place in the stream. */
	if (session->state != SESSION_LIVE)
		session_leave_stream(session);
	if (session->room != NULL)
		room_stop_join(session->room, session);
	session->state = SESSION_CLOSING;
	if (session->cursor.block != NULL)
		session->until = session->stream->end;
	socket_end_after(session->socket, SESSION_CLOSE_SECONDS);
	socket_pause(session->socket, false); /* for the peer's answer */
	session->paused = false;
	session_want_write(session);
}

/* A reason that is too long ends in front of a character. */
static void
session_trim_reason(Session *session)
{
	size_t len = strlen(session->close_reason);

	while (len > 0 && !utf8_check(session->close_reason, len, NULL))
		session->close_reason[--len] = '\0';
}

void
session_close(Session *session, int code, const char *reason)
{
	if (session->state == SESSION_CLOSING || session->socket == NULL)
		return;
	session->close_code = code;
	snprintf(session->close_reason, sizeof(session->close_reason), "%s", reason);
	session_trim_reason(session);
	session_begin_close(session);
}

void
session_fail(Session *session)
{
	session_close(session, CLOSE_ERROR, "out of memory");
	if (session->socket != NULL)
		session_leave_stream(session);
}

/* ---- who and where ---- */

static const char session_check_sql[] = "SELECT a.name, a.token_generation, i.sheet_id, i.name, i.trashed, i.role "
										"FROM sheet.account_get($2) a LEFT JOIN LATERAL sheet.info($1, $2) i ON true";

/* The answer says who it is and what they may do; true when they may be here. */
static bool
session_admit(Session *session, const PGresult *res)
{
	if (PQntuples(res) == 0 || atoll(PQgetvalue(res, 0, 1)) != session->generation)
		session_close(session, CLOSE_UNAUTHORIZED, "the token has been revoked");
	else if (PQgetisnull(res, 0, 2))
		session_close(session, CLOSE_NOT_FOUND, "no such sheet");
	else if (PQgetisnull(res, 0, 5))
		session_close(session, CLOSE_FORBIDDEN, "the sheet is not shared with you");
	else if (PQgetvalue(res, 0, 4)[0] == 't')
		session_close(session, CLOSE_GONE, "the sheet is in the trash");
	else
		return true;
	return false;
}

static void
session_set_role(Session *session, const char *name)
{
	V2Role role = v2_role_of(name);

	session->may_edit = role >= V2_ROLE_EDITOR;
	if (role != session->role && session->state == SESSION_LIVE)
		v2_tell_role(session, role);
	session->role = role;
}

static void
session_checked(void *arg, PGresult *res)
{
	Session *session = arg;
	bool first = session->state == SESSION_CHECKING;
	/* Members hear of changes; who was not one yet has to ask. */
	bool changed =
		follow_has_changed(session->sheet_id, session->changes) || follow_has_changed(-session->uid, session->changes);
	bool again = session->check_again || (first && changed);

	session->checking = session->check_again = false;
	if (session->socket == NULL || session->state == SESSION_CLOSING)
		;
	else if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
	{
		if (first)
			session_close(session, CLOSE_RESTART, "the database does not answer");
		session->unchecked = true;
	}
	else if (session_admit(session, res))
	{
		accounts_put(session->uid, PQgetvalue(res, 0, 0), session->generation, session->changes);
		accounts_note_seen(session->sheet_id, session->uid);
		session_set_role(session, PQgetvalue(res, 0, 5));
		if (first)
		{
			session->name = strdup(PQgetvalue(res, 0, 0));
			session->sheet_name = strdup(PQgetvalue(res, 0, 3));
			buf_puts_json(&session->name_json, PQgetvalue(res, 0, 0));
			session->state = SESSION_WAITING;
			access_register_opening(session->sheet_id, session->uid);
			if (session->name == NULL || session->sheet_name == NULL || buf_failed(&session->name_json))
				session_fail(session);
			else
				room_add_session(session->sheet_id, session);
		}
	}
	if (again && session->socket != NULL && session->state != SESSION_CLOSING)
		session_check(session);
	session_query_done(session);
}

static const char session_link_sql[] = "SELECT sheet.open_link($1, $2, $3)";

/* Whether the link was right is told by the role that the account has now. */
static void
session_link_opened(void *arg, PGresult *res)
{
	Session *session = arg;

	session->checking = false;
	session->link[0] = '\0';
	if (session->socket != NULL && session->state != SESSION_CLOSING)
		session_check(session);
	session_query_done(session);
}

static void
session_open_link(Session *session)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_text(session->link),
						pgparam_int64(uid, session->uid)};

	session->queries++;
	if (!database_query(DATABASE_WRITES, session->uid, session_link_sql, 3, params, 0, session_link_opened, session))
		session_link_opened(session, NULL);
}

void
session_check(Session *session)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(uid, session->uid)};

	session->unchecked = false;
	if (session->checking)
	{
		session->check_again = true;
		return;
	}
	session->checking = true;
	if (session->link[0] != '\0')
	{
		session_open_link(session);
		return;
	}
	session->changes = follow_changes();
	session->queries++;
	if (!database_query(DATABASE_READS, 0, session_check_sql, 2, params, 0, session_checked, session))
	{
		session->checking = false;
		session->queries--;
		session_close(session, CLOSE_RESTART, "the gateway is busy");
	}
}

void
session_tick(Session *session, int64_t now)
{
	if (session->expires <= now)
		session_close(session, CLOSE_UNAUTHORIZED, "the token has expired");
	else if (session->unchecked && session->state != SESSION_CLOSING)
		session_check(session);
}

void
session_pong(Session *session)
{
	uint64_t now = uv_now(&gateway.loop);

	/* A client may send pongs as it likes: looking through the locks once a second is enough. */
	if (session->room == NULL || now - session->renewed < 1000)
		return;
	session->renewed = now;
	locks_renew(&session->room->locks, session_holder(session), session_lease_end());
}

/* ---- in ---- */

uint64_t
session_lease_end(void)
{
	return uv_now(&gateway.loop) + (uint64_t) gateway.config.lease_seconds * 1000;
}

static void
session_handle(Session *session, const char *text, size_t len, bool binary)
{
	if (session->v2 != NULL)
		v2_handle(session, text, len, binary);
	else
		v1_handle(session, text, len, binary);
}

/* A rare large message does not keep its room for the session's life. */
static void
session_shrink(Session *session)
{
	if (session->scratch.size > SESSION_KEEP_BYTES)
		buf_free(&session->scratch);
	if (session->rx.len == 0 && session->rx.size > SESSION_KEEP_BYTES)
		buf_free(&session->rx);
}

void
session_receive(Session *session, const char *data, size_t len, bool first, bool last, bool binary)
{
	size_t limit = (size_t) gateway.config.max_frame_bytes;

	if (session->state == SESSION_GREETING)
		limit = limit < V2_MAX_HELLO ? limit : V2_MAX_HELLO;
	else if (session->state != SESSION_LIVE)
		return; /* nothing can be meant before onConn, nothing is wanted after the end */
	if (session->rx.len + len > limit)
	{
		session_close(session, CLOSE_TOO_BIG, "the message is too large");
		return;
	}
	if (first && last)
	{
		session_handle(session, data, len, binary);
		session_shrink(session);
		return;
	}
	buf_put(&session->rx, data, len);
	if (buf_failed(&session->rx))
		session_fail(session);
	else if (last)
	{
		session_handle(session, session->rx.data, session->rx.len, binary);
		session->rx.len = 0;
		session_shrink(session);
	}
}
