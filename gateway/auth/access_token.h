/*
 * access_token.h - access tokens, by which programs act as an account: their form and their scopes. A token is "pgs_"
 * and 32 random bytes in base64url; the database has its SHA-256 (sql/install/45-tokens.sql).
 */
#ifndef ACCESS_TOKEN_H
#define ACCESS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ACCESS_TOKEN_PREFIX "pgs_"
#define ACCESS_TOKEN_DIGEST 32 /* bytes */

/* What a token permits, as bits. The names are those of sheet.create_token(). */
typedef enum Scope
{
	SCOPE_NONE = 0,
	SCOPE_READ = 1,
	SCOPE_EDIT = 2,
	SCOPE_UPLOAD = 4,
	SCOPE_ADMIN = 8
} Scope;

/* Does the text begin as an access token does? No token of a sign-in does. */
static inline bool
access_token_is(const char *text, size_t len)
{
	return len >= strlen(ACCESS_TOKEN_PREFIX) && memcmp(text, ACCESS_TOKEN_PREFIX, strlen(ACCESS_TOKEN_PREFIX)) == 0;
}
/* The SHA-256 of the token. Returns false if it has not the form of one. */
extern bool access_token_digest(const char *token, unsigned char digest[ACCESS_TOKEN_DIGEST]);
/* The scopes of an array of PostgreSQL's, "{read,edit}". The scope edit includes read. */
extern int access_token_scopes(const char *array);
extern const char *access_token_scope_name(Scope scope);

#endif
