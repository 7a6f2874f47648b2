/*
 * digest.h - SHA-256 of keys and tokens. Statements have digests for parameters, as a server may log the parameters.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <openssl/sha.h>

#define DIGEST_BYTES	SHA256_DIGEST_LENGTH
#define DIGEST_TEXT_MAX (2 * DIGEST_BYTES + 3)

/* The digest of a secret, as the text of a bytea. Returns to. */
extern const char *digest_of(const char *secret, char to[DIGEST_TEXT_MAX]);

#endif
