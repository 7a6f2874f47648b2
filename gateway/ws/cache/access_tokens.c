/*
 * access_tokens.c - access tokens that were valid lately, in a table of fixed size, as those of accounts (accounts.c).
 *
 * A token that is revoked changes its account (changes.c), which every gateway hears of. An entry whose change was not
 * heard of is used for ACCESS_FRESH_MS at most. Only valid tokens are kept: others cannot displace them.
 */
#include "ws/cache/access_tokens.h"

#include "core/database.h"
#include "core/gateway.h"
#include "ws/cache/changes.h"

#include <string.h>

#define ACCESS_SETS		256 /* a power of two */
#define ACCESS_WAYS		4
#define ACCESS_FRESH_MS 5000

static AccessToken access_tokens[ACCESS_SETS][ACCESS_WAYS];

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

bool
access_tokens_knows(const unsigned char digest[ACCESS_TOKEN_DIGEST])
{
	const AccessToken *token = access_tokens_slot(digest);

	return token->fetched != 0 && memcmp(token->digest, digest, ACCESS_TOKEN_DIGEST) == 0;
}

const AccessToken *
access_tokens_put(const AccessToken *token)
{
	AccessToken *slot = access_tokens_slot(token->digest);

	*slot = *token;
	slot->fetched = access_tokens_now() + (access_tokens_now() == 0);
	return slot;
}

void
access_tokens_register_use(int64_t token_id, int64_t uid)
{
	char id[24];
	PgParam param = pgparam_int64(id, token_id);

	(void) database_query(DATABASE_WRITES, uid, use_sql, 1, &param, 0, NULL, NULL);
}
