/*
 * digest.h - SHA-256 of keys and tokens. Statements have digests for parameters, as a server may log the parameters.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <openssl/sha.h>

#define DIGEST_BYTES	SHA256_DIGEST_LENGTH
#define DIGEST_TEXT_MAX (2 * DIGEST_BYTES + 3)

/* The digest as the text of a bytea. */
extern void digest_put_text(const unsigned char digest[DIGEST_BYTES], char to[DIGEST_TEXT_MAX]);
/* The digest of a secret, in that form. Returns to. */
extern const char *digest_of(const char *secret, char to[DIGEST_TEXT_MAX]);

#endif
