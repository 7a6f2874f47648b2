/*
 * jwt.h - JSON Web Tokens, HS256 only (RFC 7515, 7519), signed with OpenSSL's HMAC.
 *
 * Claims: uid, gen (the account's token generation: a password change revokes older tokens), tid (the token's id, by
 * which it is revoked alone), iat, exp. A guest has a negative uid, and the name that is shown. The header's kid names
 * the key.
 */
#ifndef JWT_H
#define JWT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JWT_KEY_MIN 32	 /* bytes; RFC 7518 3.2 requires at least the hash's size */
#define JWT_MAX		2048 /* maximum length of a token */

typedef struct JwtKey
{
	char kid[32];
	unsigned char secret[256];
	size_t secret_len;
} JwtKey;

typedef struct JwtKeys
{
	JwtKey keys[8]; /* keys[0] signs; all verify */
	int count;
} JwtKeys;

#define JWT_NAME_MAX 240 /* bytes */

typedef struct JwtClaims
{
	int64_t uid; /* negative: a guest */
	int64_t generation;
	int64_t issued_at;		 /* seconds */
	int64_t expires_at;		 /* seconds */
	int64_t id;				 /* of the token, 1 to 2^53 - 1; 0: it has none */
	char name[JWT_NAME_MAX]; /* of a guest, as shown to others; otherwise "" */
} JwtClaims;

/* By what the token is revoked. One without an id is revoked with those of the same account and second. */
static inline int64_t
jwt_token_id(const JwtClaims *claims)
{
	return claims->id != 0 ? claims->id : claims->issued_at;
}

typedef enum JwtStatus
{
	JWT_OK,
	JWT_MALFORMED,
	JWT_WRONG_ALGORITHM,
	JWT_UNKNOWN_KEY,
	JWT_BAD_SIGNATURE,
	JWT_BAD_CLAIMS,
	JWT_EXPIRED,
	JWT_NOT_YET_VALID,
} JwtStatus;

/*
 * Parses lines of the form "kid:secret", skipping blank lines and # comments. A line without a colon is a secret with
 * the kid "default". Returns false with a reason if there is no key, or a secret is shorter than JWT_KEY_MIN, an
 * example (it contains "example", "changeme", "secret" or "password") or has too few different characters.
 */
extern bool jwt_keys_parse(JwtKeys *keys, const char *text, char *reason, size_t reason_size);
/* Reads and parses a key file. Also returns false if other users may access it (any bit of 077 is set). */
extern bool jwt_keys_load(JwtKeys *keys, const char *path, char *reason, size_t reason_size);
/* Writes the token, at most JWT_MAX bytes with a NUL. Returns false if it does not fit. */
extern bool jwt_sign(const JwtKeys *keys, const JwtClaims *claims, char *to, size_t size);
/* Compares the signature in constant time. now is in seconds. Sets the claims for JWT_OK and JWT_EXPIRED. */
extern JwtStatus jwt_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims);
/* Like jwt_verify(), but of a token that was verified before, only the expiry is checked. */
extern JwtStatus jwt_verify_cached(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims);
/* Forgets the verified tokens. Must be called when the keys have changed. */
extern void jwt_cache_clear(void);

#endif
