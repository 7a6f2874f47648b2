/*
 * scram.c - comparison of a password with a SCRAM-SHA-256 secret; see scram.h.
 */
#include "auth/scram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "auth/base64.h"

#define SCRAM_ITERATIONS_MAX 100000 /* so that a bad row cannot hold a thread */
#define SCRAM_SALT_MAX		 64

/* StoredKey of RFC 5802: H(HMAC(Hi(password, salt, iterations), "Client Key")). */
static bool
scram_stored_key(const char *password, size_t len, const unsigned char *salt, size_t salt_len, int iterations,
				 unsigned char to[SHA256_DIGEST_LENGTH])
{
	unsigned char salted[SHA256_DIGEST_LENGTH], client[SHA256_DIGEST_LENGTH];
	bool done = PKCS5_PBKDF2_HMAC(password, (int) len, salt, (int) salt_len, iterations, EVP_sha256(), sizeof(salted),
								  salted) == 1 &&
				HMAC(EVP_sha256(), salted, sizeof(salted), (const unsigned char *) "Client Key", 10, client, NULL);

	if (done)
		(void) SHA256(client, sizeof(client), to);
	OPENSSL_cleanse(salted, sizeof(salted));
	OPENSSL_cleanse(client, sizeof(client));
	return done;
}

/* One part of the secret, whose padding is optional here. */
static bool
scram_decode(const char *from, const char *end, unsigned char *to, size_t size, size_t *len)
{
	while (end > from && end[-1] == '=')
		end--;
	return base64_decode(BASE64_STANDARD, from, (size_t) (end - from), to, size, len);
}

bool
scram_verify(const char *password, size_t len, const char *stored)
{
	unsigned char salt[SCRAM_SALT_MAX], key[SHA256_DIGEST_LENGTH], computed[SHA256_DIGEST_LENGTH];
	size_t salt_len, key_len;
	const char *colon, *dollar, *end;
	char *number_end;
	long iterations;

	if (strncmp(stored, SCRAM_PREFIX, strlen(SCRAM_PREFIX)) != 0)
		return false;
	iterations = strtol(stored + strlen(SCRAM_PREFIX), &number_end, 10);
	colon = *number_end == ':' ? number_end : NULL;
	dollar = colon != NULL ? strchr(colon, '$') : NULL;
	end = dollar != NULL ? strchr(dollar, ':') : NULL;
	if (end == NULL || iterations < 1 || iterations > SCRAM_ITERATIONS_MAX ||
		!scram_decode(colon + 1, dollar, salt, sizeof(salt), &salt_len) ||
		!scram_decode(dollar + 1, end, key, sizeof(key), &key_len) || key_len != sizeof(key))
		return false;
	if (!scram_stored_key(password, len, salt, salt_len, (int) iterations, computed))
	{
		errno = ENOMEM;
		return false;
	}
	return CRYPTO_memcmp(computed, key, sizeof(key)) == 0;
}
