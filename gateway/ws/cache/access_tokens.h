/*
 * access_tokens.h - the access tokens that programs have used lately; see access_tokens.c.
 */
#ifndef ACCESS_TOKENS_H
#define ACCESS_TOKENS_H

#include "auth/access_token.h"

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
/* Returns whether the token was valid at some time, and may be no longer. */
extern bool access_tokens_knows(const unsigned char digest[ACCESS_TOKEN_DIGEST]);
/* The database says that the token is valid. Sets `fetched`. Returns the stored one. */
extern const AccessToken *access_tokens_put(const AccessToken *token);
/* Registers in the database that the token is used. Nobody waits for it. */
extern void access_tokens_register_use(int64_t token_id, int64_t uid);

#endif
