/*
 * admission.c - asks the database whether a session's account may be in its sheet, and with which role: when it
 * connects, and whenever the account, the sheet or its members have changed.
 */
#include "ws/room/admission.h"

#include "auth/digest.h"
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"
#include "ws/room/members.h"

#include <stdlib.h>
#include <string.h>

static const char check_sql[] = "SELECT a.name, a.token_generation, i.sheet_id, i.name, i.trashed, i.role, "
								"sheet.account_token_revoked($2, $3), sheet.guest_left($2), "
								"$4::bytea IS NOT NULL AND NOT EXISTS (SELECT FROM sheet.token_find($4)) "
								"FROM sheet.account_get($2) a LEFT JOIN LATERAL sheet.info($1, $2) i ON true";
static const char link_sql[] = "SELECT sheet.open_link_digest($1, $2, $3)";

/* A new password ends the tokens of sign-ins, and no access tokens. */
static bool
session_is_revoked(const Session *session, const PGresult *res)
{
	if (PQntuples(res) == 0)
		return true;
	if (session->scopes != SCOPE_NONE)
		return PQgetvalue(res, 0, 8)[0] == 't';
	return atoll(PQgetvalue(res, 0, 1)) != session->generation || PQgetvalue(res, 0, 6)[0] == 't';
}

static bool
session_may_stay(Session *session, const PGresult *res)
{
	if (session_is_revoked(session, res))
		session_close(session, CLOSE_UNAUTHORIZED, "the token has been revoked");
	else if (PQgetisnull(res, 0, 2) || (session->uid < 0 && PQgetisnull(res, 0, 5))) /* guests do not learn of others */
		session_close(session, CLOSE_NOT_FOUND, "no such sheet");
	else if (PQgetisnull(res, 0, 5))
		session_close(session, CLOSE_FORBIDDEN, "the sheet is not shared with you");
	else if (PQgetvalue(res, 0, 4)[0] == 't')
		session_close(session, CLOSE_GONE, "the sheet is in the trash");
	else
		return true;
	return false;
}

/* The time that is left counts from the question on, so the link does not end later here than in the database. */
static void
session_set_end(Session *session, const PGresult *res)
{
	if (session->uid < 0)
		session->ends = PQgetisnull(res, 0, 7) ? 0 : session->asked_ms + (uint64_t) atoll(PQgetvalue(res, 0, 7));
}

static V2Role
role_by_name(const char *name)
{
	for (int i = 0; i < V2_ROLES; i++)
	{
		if (strcmp(name, v2_role_names[i]) == 0)
			return (V2Role) i;
	}
	return V2_ROLE_VIEWER;
}

static void
session_set_role(Session *session, V2Role role)
{
	if (session->scopes != SCOPE_NONE && !(session->scopes & SCOPE_EDIT))
		role = V2_ROLE_VIEWER;
	if (session->may_edit && role < V2_ROLE_EDITOR && session->room != NULL)
		members_end_locks(session);
	session->may_edit = role >= V2_ROLE_EDITOR;
	if (role != session->role && session->state == SESSION_LIVE && session->protocol->send_role != NULL)
		session->protocol->send_role(session, role);
	session->role = role;
}

/* A later check was passed. Protocol v1 names authors by the name. */
static void
session_name_again(Session *session, const char *name)
{
	Buf json = {NULL, 0, 0};

	if (session->guest != NULL)
		return;
	buf_puts_json(&json, name);
	if (buf_failed(&json))
		return;
	buf_free(&session->name_json);
	session->name_json = json;
	session->named = session->check_began;
}

/* The first check was passed. */
static void
session_admit(Session *session, const char *name, const char *sheet_name)
{
	if (session->guest != NULL)
		name = session->guest;
	session->name = strdup(name);
	session->sheet_name = strdup(sheet_name);
	buf_puts_json(&session->name_json, name);
	session->named = session->check_began;
	session_set_state(session, SESSION_WAITING);
	socket_sign_in(session->socket, session->uid);
	accounts_register_opening(session->sheet_id, session->uid);
	if (session->name == NULL || session->sheet_name == NULL || buf_failed(&session->name_json))
		session_fail(session);
	else
		members_add(session);
}

static void
admission_checked(void *arg, PGresult *res)
{
	Session *session = arg;
	bool first = session->state == SESSION_CHECKING;
	/* follow.c has members checked again after a change. This session was no member yet. */
	bool changed = changes_since(session->sheet_id, session->check_began) ||
				   changes_since(changes_of_uid(session->uid), session->check_began);
	bool again = session->check == CHECK_ASKED_AGAIN || (first && changed);

	session->check = CHECK_DONE;
	if (session_is_open(session))
	{
		if (!pgresult_succeeded(res))
		{
			session->check = CHECK_FAILED;
			if (first)
				session_close(session, CLOSE_RESTART, "the database does not answer");
		}
		else if (session_may_stay(session, res))
		{
			accounts_put(session->uid, PQgetvalue(res, 0, 0), atoll(PQgetvalue(res, 0, 1)), session->check_began);
			accounts_put_seen(session->sheet_id, session->uid);
			session_set_end(session, res);
			session_set_role(session, role_by_name(PQgetvalue(res, 0, 5)));
			if (!first)
				session_name_again(session, PQgetvalue(res, 0, 0));
			if (first)
				session_admit(session, PQgetvalue(res, 0, 0), PQgetvalue(res, 0, 3));
		}
		if (again && session_is_open(session))
			admission_check(session);
	}
	session_query_done(session);
}

/* The role that the account has now tells whether the link was right. */
static void
admission_link_opened(void *arg, PGresult *res)
{
	Session *session = arg;

	session->check = CHECK_DONE;
	session->link[0] = '\0';
	if (session_is_open(session))
		admission_check(session);
	session_query_done(session);
}

static void
admission_open_link(Session *session)
{
	char sheet[24], uid[24], digest[DIGEST_TEXT_MAX];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_text(digest_of(session->link, digest)),
						pgparam_int64(uid, session->uid)};

	session->queries++;
	if (!database_query(DATABASE_WRITES, session->uid, link_sql, 3, params, 0, admission_link_opened, session))
		admission_link_opened(session, NULL);
}

void
admission_check(Session *session)
{
	char sheet[24], uid[24], token[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(uid, session->uid),
						pgparam_int64(token, session->token_id),
						session->scopes != SCOPE_NONE ? pgparam_bytes(session->digest, ACCESS_TOKEN_DIGEST)
													  : pgparam_null()};

	if (session->check == CHECK_ASKED || session->check == CHECK_ASKED_AGAIN)
	{
		session->check = CHECK_ASKED_AGAIN;
		return;
	}
	session->check = CHECK_ASKED;
	if (session->link[0] != '\0' && session->uid > 0)
	{
		admission_open_link(session);
		return;
	}
	session->check_began = changes_now();
	session->asked_ms = uv_now(&gateway.loop);
	session->queries++;
	if (!database_query(DATABASE_READS, 0, check_sql, 4, params, 0, admission_checked, session))
	{
		session->check = CHECK_DONE;
		session->queries--;
		session_close(session, CLOSE_RESTART, "the gateway is busy");
	}
}

void
admission_check_members(Room *room, int64_t uid)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session->state != SESSION_CLOSING && (uid == 0 || session->uid == uid))
			admission_check(session);
	}
}

void
admission_tick(Session *session, int64_t now)
{
	if (session->expires <= now)
		session_close(session, CLOSE_UNAUTHORIZED, "the token has expired");
	else if (session_close_ended(session))
		;
	else if (session->check == CHECK_FAILED && session->state != SESSION_CLOSING)
		admission_check(session);
}
