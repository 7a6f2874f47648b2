/*
 * test_tokens.c - tokens that are remembered are good, and only they.
 */
#include "auth/jwt.h"

#include <string.h>

#include "tap.h"

#define NOW	   1700000000
#define SECRET "b4f0c1d2e3948576a7b8c9d0e1f20314253647586970a1b2c3d4e5f601234567"

static JwtKeys keys;
static const JwtKeys no_keys;

static JwtStatus
verify(const JwtKeys *with, const char *token, int64_t now)
{
	JwtClaims claims;

	return jwt_verify_cached(with, token, strlen(token), now, &claims);
}

int
main(void)
{
	JwtClaims claims = {.uid = 7, .generation = 3, .issued_at = NOW, .expires_at = NOW + 100}, told;
	char token[JWT_MAX], other[JWT_MAX], reason[128];
	size_t len;

	if (!jwt_keys_parse(&keys, "k1:" SECRET, reason, sizeof(reason)) || !jwt_sign(&keys, &claims, token, sizeof(token)))
		return 1;
	len = strlen(token);
	TAP_OK(verify(&no_keys, token, NOW) == JWT_UNKNOWN_KEY, "what is not known is verified");
	TAP_OK(verify(&keys, token, NOW) == JWT_OK, "a good one");
	TAP_OK(jwt_verify_cached(&no_keys, token, len, NOW, &told) == JWT_OK && told.uid == 7 && told.generation == 3 &&
			   told.expires_at == NOW + 100,
		   "is remembered, with its claims");
	TAP_OK(verify(&keys, token, NOW + 99) == JWT_OK && verify(&keys, token, NOW + 100) == JWT_EXPIRED,
		   "until it expires");

	for (size_t i = 0; i < len; i++)
	{
		strcpy(other, token);
		other[i] = other[i] == 'A' ? 'B' : 'A';
		if (verify(&keys, other, NOW) == JWT_OK)
			TAP_OK(false, "another character at %zu is another token", i);
	}
	TAP_OK(true, "a token that differs in one character is another one");
	TAP_OK(jwt_verify_cached(&no_keys, token, len - 1, NOW, &told) != JWT_OK, "so is one without its last character");
	TAP_OK(verify(&no_keys, token, NOW) == JWT_OK, "none of them has taken its place");
	TAP_OK(verify(&keys, "", NOW) == JWT_MALFORMED && verify(&keys, "a.b.c", NOW) == JWT_MALFORMED, "no tokens");

	jwt_cache_clear();
	TAP_OK(verify(&no_keys, token, NOW) == JWT_UNKNOWN_KEY, "nothing is remembered when keys have changed");
	return tap_done();
}
