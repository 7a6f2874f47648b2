/*
 * password.h - password hashes by scrypt (RFC 7914, OpenSSL's EVP_PBE_scrypt), per-user salt.
 *
 * Stored as "$scrypt$ln=15,r=8,p=1$<salt, base64>$<hash, base64>" (32 MiB, about 0.1 s). Both calls burn CPU: run them
 * on threads (password_queue.h).
 */
#ifndef PASSWORD_H
#define PASSWORD_H

#include <stdbool.h>
#include <stddef.h>

#define PASSWORD_HASH_MAX 160
#define PASSWORD_MAX	  1024 /* bytes; longer ones are refused before hashing */

/*
 * What new hashes cost, and the comparison for an unknown user: 1 MiB (memory_log2 20) to 256 MiB; 32 MiB unless it is
 * called. Before the first hash.
 */
#define PASSWORD_MEMORY_MIN_LOG2 20
#define PASSWORD_MEMORY_MAX_LOG2 28
extern void password_set_memory(int memory_log2);
extern bool password_hash(const char *password, size_t len, char to[PASSWORD_HASH_MAX]);
/* Constant-time. stored NULL: spends the same time on a dummy and returns false (unknown user). False with errno
 * ENOMEM: there was no memory to compare them. */
extern bool password_verify(const char *password, size_t len, const char *stored);

#endif
