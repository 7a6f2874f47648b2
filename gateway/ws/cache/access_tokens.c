/*
 * access_tokens.c - access tokens that were valid lately, in a table of fixed size, as those of accounts (accounts.c).
 *
 * A token that is revoked changes its account (changes.c), which every gateway hears of. An entry whose change was not
 * heard of is used for ACCESS_FRESH_MS at most. Only valid tokens are kept: others cannot displace them. A token that
 * is not kept costs a look-up by an index; a network that sends many unknown ones is refused before that.
 */
#include "ws/cache/access_tokens.h"

#include "auth/attempts.h"
#include "core/database.h"
#include "core/gateway.h"
#include "support/network.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_SETS		256 /* a power of two */
#define ACCESS_WAYS		4
#define ACCESS_FRESH_MS 5000

#define ACCESS_UNKNOWN_MAX 60 /* unknown tokens of a network, a minute */

static AccessToken access_tokens[ACCESS_SETS][ACCESS_WAYS];

static Attempts access_unknown; /* by network */

const char access_tokens_find_sql[] =
	"SELECT token_id, uid, name, scopes, coalesce(floor(extract(epoch FROM expires_at)), 0)::bigint, used "
	"FROM sheet.token_find($1)";
static const char use_sql[] = "SELECT sheet.token_used($1)";

static uint64_t
access_tokens_now(void)
{
	return uv_now(&gateway.loop);
}

/* The token's slot; if it has none, the slot of its set that was filled first. */
static AccessToken *
access_tokens_slot(const unsigned char digest[ACCESS_TOKEN_DIGEST])
{
	AccessToken *set = access_tokens[digest[0] & (ACCESS_SETS - 1)];
	AccessToken *slot = set;

	for (int i = 0; i < ACCESS_WAYS; i++)
	{
		if (set[i].fetched != 0 && memcmp(set[i].digest, digest, ACCESS_TOKEN_DIGEST) == 0)
			return &set[i];
		if (set[i].fetched < slot->fetched)
			slot = &set[i];
	}
	return slot;
}

const AccessToken *
access_tokens_find(const unsigned char digest[ACCESS_TOKEN_DIGEST])
{
	const AccessToken *token = access_tokens_slot(digest);

	return token->fetched != 0 && memcmp(token->digest, digest, ACCESS_TOKEN_DIGEST) == 0 &&
				   access_tokens_now() - token->fetched < ACCESS_FRESH_MS && !changes_since(-token->uid, token->asked)
			   ? token
			   : NULL;
}

/* Returns whether the token was valid at some time, and may be no longer. */
static bool
access_tokens_knows(const unsigned char digest[ACCESS_TOKEN_DIGEST])
{
	const AccessToken *token = access_tokens_slot(digest);

	return token->fetched != 0 && memcmp(token->digest, digest, ACCESS_TOKEN_DIGEST) == 0;
}

bool
access_tokens_may_ask(const unsigned char digest[ACCESS_TOKEN_DIGEST], const char *peer)
{
	char network[NETWORK_NAME_MAX];

	network_holder(peer, network);
	return access_tokens_knows(digest) ||
		   attempts_taken(&access_unknown, network, ACCESS_UNKNOWN_MAX, access_tokens_now()) < ACCESS_UNKNOWN_MAX;
}

/* The database says that the token is valid. Sets `fetched`. Returns the stored one. */
static const AccessToken *
access_tokens_put(const AccessToken *token)
{
	AccessToken *slot = access_tokens_slot(token->digest);

	*slot = *token;
	slot->fetched = access_tokens_now() + (access_tokens_now() == 0);
	return slot;
}

/* Nobody waits for it. */
static void
access_tokens_register_use(int64_t token_id, int64_t uid)
{
	char id[24];
	PgParam param = pgparam_int64(id, token_id);

	(void) database_query(DATABASE_WRITES, uid, use_sql, 1, &param, 0, NULL, NULL);
}

const AccessToken *
access_tokens_take(const unsigned char digest[ACCESS_TOKEN_DIGEST], const PGresult *res, uint64_t asked,
				   const char *peer)
{
	AccessToken token = {.asked = asked};
	char network[NETWORK_NAME_MAX];

	if (PQntuples(res) != 1)
	{
		network_holder(peer, network);
		(void) attempts_take(&access_unknown, network, ACCESS_UNKNOWN_MAX, access_tokens_now());
		return NULL;
	}
	memcpy(token.digest, digest, ACCESS_TOKEN_DIGEST);
	token.token_id = atoll(PQgetvalue(res, 0, 0));
	token.uid = atoll(PQgetvalue(res, 0, 1));
	snprintf(token.name, sizeof(token.name), "%s", PQgetvalue(res, 0, 2));
	token.scopes = access_token_scopes(PQgetvalue(res, 0, 3));
	token.expires_at = atoll(PQgetvalue(res, 0, 4));
	if (PQgetvalue(res, 0, 5)[0] == 'f')
		access_tokens_register_use(token.token_id, token.uid);
	return access_tokens_put(&token);
}
