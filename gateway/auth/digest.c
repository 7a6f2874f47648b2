/*
 * digest.c - SHA-256 of keys and tokens; see digest.h.
 */
#include "auth/digest.h"

#include <stdio.h>
#include <string.h>

const char *
digest_of(const char *secret, char to[DIGEST_TEXT_MAX])
{
	unsigned char digest[DIGEST_BYTES];

	(void) SHA256((const unsigned char *) secret, strlen(secret), digest);
	strcpy(to, "\\x");
	for (int i = 0; i < DIGEST_BYTES; i++)
		snprintf(to + 2 + 2 * i, 3, "%02x", digest[i]);
	return to;
}
