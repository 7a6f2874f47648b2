/*
 * access_tokens.h - the access tokens that programs have used lately; see access_tokens.c.
 */
#ifndef ACCESS_TOKENS_H
#define ACCESS_TOKENS_H

#include "auth/access_token.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct AccessToken
{
	unsigned char digest[ACCESS_TOKEN_DIGEST];
	int64_t token_id;
	int64_t uid;
	char name[404]; /* of the account: 100 characters at most */
	int scopes;
	int64_t expires_at; /* seconds; 0: never */
	uint64_t asked;		/* changes_now() when the database was asked */
	uint64_t fetched;	/* ms of the loop's clock; 0: the slot is free */
} AccessToken;

/* Returns the token if it was valid lately and its account has not changed since; NULL: ask the database. The caller
 * compares its end. */
extern const AccessToken *access_tokens_find(const unsigned char digest[ACCESS_TOKEN_DIGEST]);
/* Whether the database may be asked for it: false if the network of the peer has sent many unknown tokens. */
extern bool access_tokens_may_ask(const unsigned char digest[ACCESS_TOKEN_DIGEST], const char *peer);
#define ACCESS_TOKENS_TOO_MANY "too many tokens that are not valid: try again later"
/* Asks the database for the token with a digest, as of changes_now(). */
extern const char access_tokens_find_sql[];
/* Keeps the token that the database has found, and registers its use. asked: changes_now() when it was asked. Returns
 * NULL if there is no valid one, which counts for the network of the peer. */
extern const AccessToken *access_tokens_take(const unsigned char digest[ACCESS_TOKEN_DIGEST], const PGresult *res,
											 uint64_t asked, const char *peer);

#endif
