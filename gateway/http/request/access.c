/*
 * access.c - requests of programs: with an access token instead of the token of a sign-in.
 *
 * The scope that a route needs is in the table of routes (http/routes/router.c). A token that is not known costs a
 * look-up by an index; a network that sends many of them is refused before that.
 */
#include "auth/attempts.h"
#include "core/gateway.h"
#include "http/request/request.h"
#include "support/network.h"
#include "ws/cache/access_tokens.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_UNKNOWN_MAX 60 /* unknown tokens of a network, a minute */

static const char access_find_sql[] =
	"SELECT token_id, uid, name, scopes, coalesce(floor(extract(epoch FROM expires_at)), 0)::bigint, used "
	"FROM sheet.token_find($1)";

static Attempts access_unknown; /* by network */

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
		request->next(request);
	}
}

/* ---- the database ---- */

static void
access_found(Request *request, PGresult *res)
{
	AccessToken token = {.asked = request->asked};
	char text[JWT_MAX], network[NETWORK_NAME_MAX];

	if (!request_token(request, text, sizeof(text)) || !access_token_digest(text, token.digest) || PQntuples(res) != 1)
	{
		network_holder(request->peer, network);
		(void) attempts_take(&access_unknown, network, ACCESS_UNKNOWN_MAX, uv_now(&gateway.loop));
		request_refuse_token(request);
		return;
	}
	token.token_id = atoll(PQgetvalue(res, 0, 0));
	token.uid = atoll(PQgetvalue(res, 0, 1));
	if (changes_since(-token.uid, request->asked))
	{
		access_query(request); /* res may be older than the change */
		return;
	}
	snprintf(token.name, sizeof(token.name), "%s", PQgetvalue(res, 0, 2));
	token.scopes = access_token_scopes(PQgetvalue(res, 0, 3));
	token.expires_at = atoll(PQgetvalue(res, 0, 4));
	if (PQgetvalue(res, 0, 5)[0] == 'f')
		access_tokens_register_use(token.token_id, token.uid);
	access_admit(request, access_tokens_put(&token));
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
	request_query(request, DATABASE_ACCOUNTS, access_find_sql, PARAMS(request_digest(request, text)), REQUEST_TEXT,
				  access_found);
}

void
request_authenticate_program(Request *request, const char *text)
{
	unsigned char digest[ACCESS_TOKEN_DIGEST];
	char network[NETWORK_NAME_MAX];
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
	network_holder(request->peer, network);
	if (!access_tokens_knows(digest) &&
		attempts_taken(&access_unknown, network, ACCESS_UNKNOWN_MAX, uv_now(&gateway.loop)) >= ACCESS_UNKNOWN_MAX)
		request_error_later(request, 429, REQUEST_BUSY_S, "too many tokens that are not valid: try again later");
	else
		access_query(request);
}
