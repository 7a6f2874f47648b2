/*
 * tokens.c - tokens that were good: a table with one place per hash; a newcomer takes the place.
 *
 * The hash is made of the signature's last characters: whoever can choose them has the key. Only the whole token, byte
 * by byte in constant time, is the same token.
 */
#include "auth/tokens.h"

#include <openssl/crypto.h>
#include <string.h>

#define TOKENS_PLACES 1024 /* a power of two */
#define TOKENS_LEN	  384  /* of ours: 200 */
#define TOKENS_TAIL	  16

typedef struct Token
{
	size_t len; /* 0: free */
	JwtClaims claims;
	char text[TOKENS_LEN];
} Token;

static Token tokens[TOKENS_PLACES];

static Token *
tokens_place(const char *token, size_t len)
{
	uint64_t tail[TOKENS_TAIL / 8];
	uint64_t hash;

	memcpy(tail, token + len - TOKENS_TAIL, TOKENS_TAIL);
	hash = (tail[0] * UINT64_C(0x9E3779B97F4A7C15) ^ tail[1]) * UINT64_C(0x9E3779B97F4A7C15);
	return &tokens[hash >> 40 & (TOKENS_PLACES - 1)];
}

JwtStatus
tokens_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims)
{
	Token *place;
	JwtStatus status;

	if (len < TOKENS_TAIL || len > TOKENS_LEN)
		return jwt_verify(keys, token, len, now, claims);
	place = tokens_place(token, len);
	if (place->len == len && CRYPTO_memcmp(place->text, token, len) == 0 && place->claims.expires_at > now)
	{
		*claims = place->claims;
		return JWT_OK;
	}
	status = jwt_verify(keys, token, len, now, claims);
	if (status == JWT_OK)
	{
		place->len = len;
		place->claims = *claims;
		memcpy(place->text, token, len);
	}
	return status;
}

void
tokens_forget_all(void)
{
	OPENSSL_cleanse(tokens, sizeof(tokens));
}
