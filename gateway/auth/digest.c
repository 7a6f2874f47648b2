/*
 * digest.c - SHA-256 of keys and tokens; see digest.h.
 */
#include "auth/digest.h"

#include <stdio.h>
#include <string.h>

void
digest_put_text(const unsigned char digest[DIGEST_BYTES], char to[DIGEST_TEXT_MAX])
{
	strcpy(to, "\\x");
	for (int i = 0; i < DIGEST_BYTES; i++)
		snprintf(to + 2 + 2 * i, 3, "%02x", digest[i]);
}

const char *
digest_of(const char *secret, char to[DIGEST_TEXT_MAX])
{
	unsigned char digest[DIGEST_BYTES];

	(void) SHA256((const unsigned char *) secret, strlen(secret), digest);
	digest_put_text(digest, to);
	return to;
}
