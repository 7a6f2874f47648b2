/*
 * fuzz_jwt.c - random tokens and key files. What begins as a good token is changed; nothing but the good token may
 * verify.
 *
 * See fuzz.h for how it is run.
 */
#include "jwt.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char *const fuzz_words[] = {"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0",
										 "eyJhbGciOiJub25lIn0",
										 "eyJ1aWQiOjcsImdlbiI6MSwiaWF0IjoxNzAwMDAwMDAwLCJleHAiOjE4MDAwMDAwMDB9",
										 ".",
										 "..",
										 "AA",
										 "e30",
										 "=",
										 "k1:",
										 "k2:0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778",
										 "\n",
										 "#",
										 "\t",
										 "eyJhbGciOiJIUzI1NiJ9",
										 NULL};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static JwtKeys keys;
	static char good[JWT_MAX];
	char reason[256], *text = malloc(size + 1);
	JwtClaims claims = {7, 1, 1700000000, 1800000000}, found;
	JwtKeys parsed;

	if (keys.count == 0 &&
		(!jwt_keys_parse(&keys, "k1:0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778\n", reason, sizeof(reason)) ||
		 !jwt_sign(&keys, &claims, good, sizeof(good))))
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	jwt_keys_parse(&parsed, text, reason, sizeof(reason));
	if (jwt_verify(&keys, text, size, 1700000001, &found) == JWT_OK &&
		(size != strlen(good) || memcmp(text, good, size)))
		abort();
	/* the input written over a good token, from its first byte on */
	if (size > 1 && size < strlen(good))
	{
		char changed[JWT_MAX];
		size_t at = data[0] % (strlen(good) - size + 1);

		strcpy(changed, good);
		memcpy(changed + at, data + 1, size - 1);
		if (jwt_verify(&keys, changed, strlen(good), 1700000001, &found) == JWT_OK && strcmp(changed, good) != 0)
			abort();
	}
	free(text);
	return 0;
}
