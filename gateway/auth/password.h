/*
 * password.h - password hashes by scrypt (RFC 7914, OpenSSL's EVP_PBE_scrypt), per-user salt.
 *
 * Stored as "$scrypt$ln=15,r=8,p=1$<salt, base64>$<hash, base64>" (32 MiB, about 0.1 s). Both calls burn CPU: run them
 * by uv_queue_work.
 */
#ifndef PASSWORD_H
#define PASSWORD_H

#include <stdbool.h>
#include <stddef.h>

#define PASSWORD_HASH_MAX 160
#define PASSWORD_MAX	  1024 /* bytes; longer ones are refused before hashing */

extern bool password_hash(const char *password, size_t len, char to[PASSWORD_HASH_MAX]);
/* Constant-time. stored NULL: spends the same time on a dummy and returns false (unknown user). */
extern bool password_verify(const char *password, size_t len, const char *stored);

#endif
