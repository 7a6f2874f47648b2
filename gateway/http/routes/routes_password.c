/*
 * routes_password.c - changing the password, revoking all tokens, and the session of a browser.
 *
 * Both revoke all earlier tokens at all gateways: the event reaches every gateway (follow.c), which closes the live
 * editors (4401). Protocol v1 may change a password without the old one; if the old one is given, it must be right.
 */
#include "auth/jwt.h"
#include "core/gateway.h"
#include "http/routes/account_steps.h"
#include "http/routes/routes.h"
#include "support/log.h"
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"

#include <stdlib.h>
#include <string.h>

static const char password_find_sql[] = "SELECT uid, password_hash FROM sheet.account_find($1)";
static const char password_set_sql[] = "SELECT sheet.account_set_password($1, $2)";
static const char password_revoke_sql[] = "SELECT sheet.account_revoke_tokens($1)";
static const char session_end_sql[] =
	"SELECT sheet.account_revoke_token($1, $2, $3), sheet.account_revoke_token($4, $5, $6)";

static bool
password_is_v2(const Request *request)
{
	return request->head.path[1] == 'v'; /* below /v2 */
}

/* Answers with a token of the new generation. */
static void
password_answer_token(Request *request, PGresult *res)
{
	bool v2 = password_is_v2(request);
	Buf data = {NULL, 0, 0};

	changes_register(changes_of_uid(request->claims.uid));
	buf_puts(&data, v2 ? "{\"token\":" : "");
	if (!account_put_token(request, &data, request->claims.uid, atoll(PQgetvalue(res, 0, 0))))
		return;
	buf_puts(&data, v2 ? "}" : "");
	if (v2)
		request_json(request, 200, &data);
	else
		request_data(request, MSG_PASSWORD_MODIFIED, &data);
}

static void
password_log(const Request *request, const char *event)
{
	log_event(LOG_INFO, event, LOG_STR("request", request->trace.id), LOG_INT("uid", request->claims.uid),
			  LOG_STR("peer", request->peer));
}

static void
password_stored(Request *request, PGresult *res)
{
	password_log(request, "password changed");
	password_answer_token(request, res);
}

static void
password_hashed(Request *request)
{
	request_query(request, DATABASE_WRITES, password_set_sql,
				  PARAMS(request_uid(request), pgparam_text(request->secret)), REQUEST_TEXT, password_stored);
}

static void
password_compared(Request *request)
{
	if (request->number != 0)
	{
		account_forgive(request);
		account_hash(request, request_text(request, "password"), password_hashed);
		return;
	}
	password_log(request, "password change refused");
	if (password_is_v2(request))
		request_error(request, 403, "the old password is wrong");
	else
		request_msg(request, MSG_LOGIN_WRONG);
}

static void
password_found(Request *request, PGresult *res)
{
	if (PQntuples(res) == 1 && atoll(PQgetvalue(res, 0, 0)) == request->claims.uid)
	{
		account_compare(request, request_text(request, "oldPassword"), PQgetvalue(res, 0, 1), password_compared);
		return;
	}
	changes_register(changes_of_uid(request->claims.uid));
	request_error(request, 503, "the account is being renamed: try again");
}

bool
check_password(Request *request)
{
	const char *password, *old;
	bool old_is_given = request_member(request, "oldPassword") != NULL;

	if (!request_string(request, "password", &password))
		request_error(request, 400, "password is needed, as a string");
	else if ((old_is_given || password_is_v2(request)) && !request_string(request, "oldPassword", &old))
		request_error(request, 400, "oldPassword is needed, as a string");
	else
		return account_password_acceptable(request, password);
	return false;
}

void
route_modify_password(Request *request)
{
	request->device = true;
	if (!account_may_come(request))
		return;
	if (request_member(request, "oldPassword") == NULL)
	{
		account_hash(request, request_text(request, "password"), password_hashed);
		return;
	}
	if (account_may_try(request))
		request_query(request, DATABASE_ACCOUNTS, password_find_sql, PARAMS(pgparam_text(request->user_name)),
					  REQUEST_TEXT, password_found);
}

void
route_revoke_tokens(Request *request)
{
	request_query(request, DATABASE_WRITES, password_revoke_sql, PARAMS(request_uid(request)), REQUEST_TEXT,
				  password_answer_token);
}

/* ---- /v2/session: the token of the cookie, for pages of this gateway in new tabs ---- */

/* SameSite=Strict keeps the cookie from requests of other sites; pages of other origins of this site are refused here.
 */
bool
check_session(Request *request)
{
	request->cookie = COOKIE_SESSION;
	if (request_is_own(request))
		return true;
	request_error(request, 403, "only pages of this gateway may use the session's cookie");
	return false;
}

/* A browser without the cookie has no session, which is no error: a page that is opened does not know. */
bool
check_session_cookie(Request *request)
{
	char token[JWT_MAX];

	if (!check_session(request))
		return false;
	if (request_cookie(request, token, sizeof(token)))
		return true;
	request_answer(request, 204, NULL, NULL);
	return false;
}

void
route_session(Request *request)
{
	char token[JWT_MAX];
	Buf data = {NULL, 0, 0};

	request_token(request, token, sizeof(token));
	account_remember(request, request->claims.uid, request->user_name);
	buf_puts(&data, "{\"token\":");
	buf_puts_json(&data, token);
	buf_printf(&data, ",\"uid\":%lld", (long long) request->claims.uid);
	routes_put_member(&data, "username", request->user_name);
	buf_puts(&data, "}");
	request_json(request, 200, &data);
}

/* ---- /v2/session/end {token}: signing out ---- */

static void
session_ended(Request *request, PGresult *res)
{
	changes_register(changes_of_uid(request->claims.uid));
	request_nothing(request);
}

/* A token that is valid, or was revoked; uid 0: none is. */
static JwtClaims
session_claims(Request *request, const char *cookie)
{
	char token[JWT_MAX];
	JwtClaims claims = {.uid = 0};

	request->cookie = cookie;
	if (cookie != NULL ? request_cookie(request, token, sizeof(token)) : request_token(request, token, sizeof(token)))
		(void) jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &claims);
	return claims;
}

/*
 * Revokes the token of the request and that of the cookie, and removes the cookies. If somebody else has signed in with
 * this browser since, the cookies are theirs, and stay.
 */
void
route_session_end(Request *request)
{
	JwtClaims own = session_claims(request, NULL), kept = session_claims(request, COOKIE_SESSION);
	char token[JWT_MAX];

	request->cookie = NULL;
	if (request_token(request, token, sizeof(token)) && access_token_is(token, strlen(token)))
	{
		request_error_code(request, 403, "scope", "no access token permits this: a sign-in is needed");
		return;
	}
	if (own.uid < 0)
	{
		request_error(request, 403, "guests of a link have no account");
		return;
	}
	if (own.uid == 0 || own.uid == kept.uid || kept.uid == 0)
		request_remove_cookies(request);
	if (own.uid == 0)
		own = kept;
	if (kept.uid != own.uid)
		kept = own;
	request->claims = own;
	if (own.uid == 0)
		request_nothing(request);
	else
		request_query(request, DATABASE_WRITES, session_end_sql,
					  PARAMS(request_int64(request, own.uid), request_int64(request, jwt_token_id(&own)),
							 request_int64(request, own.expires_at), request_int64(request, kept.uid),
							 request_int64(request, jwt_token_id(&kept)), request_int64(request, kept.expires_at)),
					  REQUEST_TEXT, session_ended);
}
