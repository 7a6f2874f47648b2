/*
 * access_token.c - access tokens: their form and their scopes; see access_token.h.
 */
#include "auth/access_token.h"

#include "auth/base64.h"

#include <openssl/sha.h>
#include <string.h>

#define ACCESS_TOKEN_BYTES 32

static const struct
{
	Scope scope;
	const char *name;
} access_scopes[] = {{SCOPE_READ, "read"}, {SCOPE_EDIT, "edit"}, {SCOPE_UPLOAD, "upload"}, {SCOPE_ADMIN, "admin"}};

#define SCOPE_COUNT (sizeof(access_scopes) / sizeof(access_scopes[0]))

bool
access_token_digest(const char *token, unsigned char digest[ACCESS_TOKEN_DIGEST])
{
	size_t len = strlen(token), prefix = strlen(ACCESS_TOKEN_PREFIX), decoded;
	unsigned char bytes[ACCESS_TOKEN_BYTES];

	if (!access_token_is(token, len) ||
		!base64_decode(BASE64_URL, token + prefix, len - prefix, bytes, sizeof(bytes), &decoded) ||
		decoded != sizeof(bytes))
		return false;
	(void) SHA256((const unsigned char *) token, len, digest);
	return true;
}

int
access_token_scopes(const char *array)
{
	int scopes = SCOPE_NONE;

	for (array += strspn(array, "{,}"); *array != '\0'; array += strspn(array, "{,}"))
	{
		size_t len = strcspn(array, "{,}");

		for (size_t i = 0; i < SCOPE_COUNT; i++)
		{
			if (strlen(access_scopes[i].name) == len && memcmp(access_scopes[i].name, array, len) == 0)
				scopes |= access_scopes[i].scope;
		}
		array += len;
	}
	return scopes & SCOPE_EDIT ? scopes | SCOPE_READ : scopes;
}

const char *
access_token_scope_name(Scope scope)
{
	for (size_t i = 0; i < SCOPE_COUNT; i++)
	{
		if (access_scopes[i].scope == scope)
			return access_scopes[i].name;
	}
	return "";
}
