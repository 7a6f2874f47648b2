/*
 * access.c - requests of programs: with an access token instead of the token of a sign-in.
 *
 * The scope that a route needs is in the table of routes (http/routes/router.c).
 */
#include "core/gateway.h"
#include "http/request/request.h"
#include "ws/cache/access_tokens.h"
#include "ws/cache/changes.h"

#include <stdio.h>

static void access_query(Request *request);

/* ---- what it permits ---- */

static bool
access_check_scope(Request *request, int scopes)
{
	char reason[96];

	if (request->scope != SCOPE_NONE && (scopes & (int) request->scope))
		return true;
	if (request->scope == SCOPE_NONE)
		snprintf(reason, sizeof(reason), "no access token permits this: a sign-in is needed");
	else
		snprintf(reason, sizeof(reason), "the access token does not permit this: the scope %s is needed",
				 access_token_scope_name(request->scope));
	request->close |= request->body_comes;
	request_error_code(request, 403, "scope", reason);
	return false;
}

static void
access_admit(Request *request, const AccessToken *token)
{
	request->claims = (JwtClaims){.uid = token->uid, .expires_at = token->expires_at};
	if (token->expires_at != 0 && token->expires_at <= gateway_now())
		request_refuse_token(request);
	else if (access_check_scope(request, token->scopes))
	{
		place_sign_in(conn_place(request->conn), token->uid);
		request->user_name = token->name;
		request->scopes = token->scopes;
		request->next(request);
	}
}

/* ---- the database ---- */

static void
access_found(Request *request, PGresult *res)
{
	unsigned char digest[ACCESS_TOKEN_DIGEST];
	const AccessToken *token = NULL;
	char text[JWT_MAX];

	if (request_token(request, text, sizeof(text)) && access_token_digest(text, digest))
		token = access_tokens_take(digest, res, request->asked, request->peer);
	if (token == NULL)
		request_refuse_token(request);
	else if (changes_since(-token->uid, request->asked))
		access_query(request); /* res may be older than the change */
	else
		access_admit(request, token);
}

static void
access_query(Request *request)
{
	unsigned char digest[ACCESS_TOKEN_DIGEST];
	char text[JWT_MAX];

	if (!request_token(request, text, sizeof(text)) || !access_token_digest(text, digest))
	{
		request_refuse_token(request);
		return;
	}
	request->asked = changes_now();
	request_query(request, DATABASE_ACCOUNTS, access_tokens_find_sql, PARAMS(request_digest(request, text)),
				  REQUEST_TEXT, access_found);
}

void
request_authenticate_program(Request *request, const char *text)
{
	unsigned char digest[ACCESS_TOKEN_DIGEST];
	const AccessToken *token;

	request->by_program = true;
	if (!access_token_digest(text, digest))
	{
		request_refuse_token(request);
		return;
	}
	token = access_tokens_find(digest);
	if (token != NULL)
	{
		access_admit(request, token);
		return;
	}
	if (access_tokens_may_ask(digest, request->peer))
		access_query(request);
	else
		request_error(request, 429, ACCESS_TOKENS_TOO_MANY);
}
