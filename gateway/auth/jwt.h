/*
 * jwt.h - JSON Web Tokens, HS256 only (RFC 7515, 7519), signed with OpenSSL's HMAC.
 *
 * Claims: uid, gen (the account's token generation: a password change revokes older tokens), iat, exp; header kid names
 * the key.
 */
#ifndef JWT_H
#define JWT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JWT_KEY_MIN 32	 /* bytes: RFC 7518 3.2 asks for at least the hash's size */
#define JWT_MAX		2048 /* characters of a token that we look at */

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

typedef struct JwtClaims
{
	int64_t uid;
	int64_t generation;
	int64_t issued_at;	/* seconds */
	int64_t expires_at; /* seconds */
} JwtClaims;

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
 * Reads "kid:secret" lines (blank lines and # comments skipped; a line without a colon has kid "default").
 * False with a reason when there is no key, one is shorter than JWT_KEY_MIN, or it is an example
 * (contains "example", "changeme", "secret", "password", or is one repeated character).
 */
extern bool jwt_keys_parse(JwtKeys *keys, const char *text, char *reason, size_t reason_size);
/* Reads a key file and parses it; false with a reason also when others may read it (any bit of 077 is set). */
extern bool jwt_keys_load(JwtKeys *keys, const char *path, char *reason, size_t reason_size);
/* Writes the token (at most JWT_MAX bytes with NUL); false when it does not fit. */
extern bool jwt_sign(const JwtKeys *keys, const JwtClaims *claims, char *to, size_t size);
/* Constant-time comparison of the signature; now in seconds. The claims are set for JWT_OK and JWT_EXPIRED. */
extern JwtStatus jwt_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims);
extern const char *jwt_status_text(JwtStatus status);

#endif
