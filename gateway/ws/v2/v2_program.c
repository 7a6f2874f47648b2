/*
 * v2_program.c - sessions of programs: hello has an access token instead of the token of a sign-in.
 *
 * The database is asked for a token that the gateway does not know, and once more by admission.c, at the first check
 * and after each change of the account: a token that is revoked or has ended closes its sessions.
 */
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/cache/access_tokens.h"
#include "ws/cache/changes.h"
#include "ws/v2/v2_session.h"

#include <string.h>

#define ACCESS_TOKEN_MAX 64 /* more than the characters of one */

static void
program_refuse(Session *session)
{
	session_close(session, CLOSE_UNAUTHORIZED, "the token is not valid");
}

static void
program_admit(Session *session, const AccessToken *token)
{
	JwtClaims claims = {.uid = token->uid, .expires_at = token->expires_at != 0 ? token->expires_at : INT64_MAX};

	if (claims.expires_at <= gateway_now())
		program_refuse(session);
	else if (!(token->scopes & SCOPE_READ))
		session_close(session, CLOSE_FORBIDDEN, "the access token does not permit this: the scope read is needed");
	else
	{
		session->scopes = token->scopes;
		v2_identify(session, &claims);
	}
}

/* A token that is not valid counts, also if the client has left. */
static void
program_found(void *arg, PGresult *res)
{
	Session *session = arg;
	const AccessToken *token = NULL;

	session->v2->asks_token = false;
	if (pgresult_succeeded(res))
		token = access_tokens_take(session->digest, res, session->check_began, session->peer);
	if (!session_is_open(session))
		;
	else if (!pgresult_succeeded(res))
		session_close(session, CLOSE_RESTART, "the database does not answer");
	else if (token == NULL)
		program_refuse(session);
	else
		program_admit(session, token);
	session_query_done(session);
}

/* session->digest is set. */
static void
program_query(Session *session)
{
	PgParam param = pgparam_bytes(session->digest, ACCESS_TOKEN_DIGEST);

	session->check_began = changes_now();
	session->v2->asks_token = true;
	session->queries++;
	if (!database_query(DATABASE_ACCOUNTS, 0, access_tokens_find_sql, 1, &param, 0, program_found, session))
	{
		session->v2->asks_token = false;
		session->queries--;
		session_close(session, CLOSE_RESTART, "the gateway is busy");
	}
}

void
v2_greet_program(Session *session, EditText token)
{
	const AccessToken *known;
	char text[ACCESS_TOKEN_MAX];

	if (token.len >= sizeof(text))
	{
		program_refuse(session);
		return;
	}
	memcpy(text, token.data, token.len);
	text[token.len] = '\0';
	if (strlen(text) != token.len || !access_token_digest(text, session->digest))
		program_refuse(session);
	else if ((known = access_tokens_find(session->digest)) != NULL)
		program_admit(session, known);
	else if (access_tokens_may_ask(session->digest, session->peer))
		program_query(session);
	else
		session_close(session, CLOSE_SLOW, ACCESS_TOKENS_TOO_MANY);
}
