/*
 * routes_password.c - a new password, and the end of all tokens.
 *
 * Both revoke the tokens that were given out before, at all gateways: the database tells them (follow.c), and live
 * editors are closed (4401). Protocol v1 changes a password without the old one; when the old one is given, it must be
 * right.
 */
#include "http/routes/account_steps.h"
#include "ws/cache/changes.h"
#include "support/log.h"
#include "http/routes/routes.h"

#include <stdlib.h>

static const char password_find_sql[] = "SELECT uid, password_hash FROM sheet.account_find($1)";
static const char password_set_sql[] = "SELECT sheet.account_set_password($1, $2)";
static const char password_revoke_sql[] = "SELECT sheet.account_revoke_tokens($1)";

static bool
password_is_v2(const Request *request)
{
	return request->path[1] == 'v'; /* below /v2 */
}

/* A token of the new generation, for who has asked. */
static void
password_answer_token(Request *request, PGresult *res)
{
	bool v2 = password_is_v2(request);
	Buf data = {NULL, 0, 0};

	changes_register(-request->claims.uid);
	buf_puts(&data, v2 ? "{\"token\":" : "");
	if (!account_put_token(request, &data, request->claims.uid, atoll(PQgetvalue(res, 0, 0))))
	{
		buf_free(&data);
		request_error(request, 500, "no token could be made");
		return;
	}
	buf_puts(&data, v2 ? "}" : "");
	if (v2)
		request_answer(request, 200, "application/json", &data);
	else
		request_data(request, MSG_PASSWORD_MODIFIED, &data);
}

static void
password_stored(Request *request, PGresult *res)
{
	log_event(LOG_INFO, "password changed", LOG_STR("request", request->trace.id), LOG_INT("uid", request->claims.uid),
			  LOG_STR("peer", request->peer));
	password_answer_token(request, res);
}

static void
password_hashed(Request *request)
{
	char uid[24];
	PgParam params[2];

	if (request->number == 0)
	{
		request_error(request, 500, "the password could not be hashed");
		return;
	}
	params[0] = pgparam_int64(uid, request->claims.uid);
	params[1] = pgparam_text(request->secret);
	request_query(request, DATABASE_WRITES, password_set_sql, 2, params, 0, password_stored);
}

static void
password_hash_new(Request *request)
{
	const char *password = "";

	(void) request_string(request, "password", &password);
	account_hash(request, password, password_hashed);
}

static void
password_compared(Request *request)
{
	if (request->number != 0)
	{
		account_forgive(request);
		password_hash_new(request);
		return;
	}
	log_event(LOG_INFO, "password change refused", LOG_STR("request", request->trace.id),
			  LOG_INT("uid", request->claims.uid), LOG_STR("peer", request->peer));
	if (password_is_v2(request))
		request_error(request, 403, "the old password is wrong");
	else
		request_msg(request, MSG_LOGIN_WRONG);
}

static void
password_found(Request *request, PGresult *res)
{
	const char *old = "";

	if (PQntuples(res) != 1 || atoll(PQgetvalue(res, 0, 0)) != request->claims.uid)
	{
		changes_register(-request->claims.uid);
		request_error(request, 503, "the account is being renamed: try again");
		return;
	}
	(void) request_string(request, "oldPassword", &old);
	account_compare(request, old, PQgetvalue(res, 0, 1), password_compared);
}

static void
password_authenticated(Request *request)
{
	PgParam name = pgparam_text(request->user_name);

	if (request_member(request, "oldPassword") == NULL)
	{
		password_hash_new(request);
		return;
	}
	request->device = true;
	if (account_may_try(request))
		request_query(request, DATABASE_ACCOUNTS, password_find_sql, 1, &name, 0, password_found);
}

void
route_modify_password(Request *request)
{
	const char *password, *old;
	bool old_is_given = request_member(request, "oldPassword") != NULL;

	if (!request_string(request, "password", &password))
		request_error(request, 400, "password is needed, as a string");
	else if ((old_is_given || password_is_v2(request)) && !request_string(request, "oldPassword", &old))
		request_error(request, 400, "oldPassword is needed, as a string");
	else if (account_password_acceptable(request, password) && account_may_come(request))
		request_authenticate(request, password_authenticated);
}

/* ---- /v2/account/revoke: the tokens that were given out, but for a new one ---- */

static void
revoke_authenticated(Request *request)
{
	char uid[24];
	PgParam param = pgparam_int64(uid, request->claims.uid);

	request_query(request, DATABASE_WRITES, password_revoke_sql, 1, &param, 0, password_answer_token);
}

void
route_revoke_tokens(Request *request)
{
	request_authenticate(request, revoke_authenticated);
}
