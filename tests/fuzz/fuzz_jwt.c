/*
 * fuzz_jwt.c - tokens, key files, and what stands behind a good signature. Nothing but the good token may verify, and
 * claims of a signed token are taken only as JSON says them.
 *
 * The first byte says what the rest is: a token; bytes over a good token; "header NUL claims", to be signed; a key
 * file.
 */
#include "auth/base64.h"
#include "auth/jwt.h"

#include <cjson/cJSON.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "fuzz.h"

#define FUZZ_SECRET "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778"
#define FUZZ_NOW	1700000001

static JwtKeys keys;
static char good[JWT_MAX];

static void
fuzz_begin(void)
{
	JwtClaims claims = {7, 1, 1700000000, 1800000000, 9};
	char reason[256];

	FUZZ_CHECK(jwt_keys_parse(&keys, "k1:" FUZZ_SECRET "\n", reason, sizeof(reason)));
	FUZZ_CHECK(jwt_sign(&keys, &claims, good, sizeof(good)));
}

/* A token of another making. */
static void
fuzz_token(const char *text, size_t size)
{
	JwtClaims claims;
	bool same = size == strlen(good) && memcmp(text, good, size) == 0;

	FUZZ_CHECK((jwt_verify(&keys, text, size, FUZZ_NOW, &claims) == JWT_OK) == same);
	FUZZ_CHECK(same || claims.uid == 0);
}

/* A good token with other bytes in one place, which the first of them names. */
static void
fuzz_overwrite(const uint8_t *data, size_t size)
{
	char changed[JWT_MAX];
	size_t len = strlen(good);

	if (size < 2 || size > len)
		return;
	strcpy(changed, good);
	memcpy(changed + data[0] % (len - size + 2), data + 1, size - 1);
	fuzz_token(changed, len);
}

/* A number of the payload, as a claim must be: whole, from min to 2^53. */
static bool
fuzz_claim(const cJSON *payload, const char *name, double min, int64_t value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(payload, name);

	return cJSON_IsNumber(item) && item->valuedouble >= min && item->valuedouble <= 9007199254740992.0 &&
		   item->valuedouble == (double) value;
}

/* Signed with the right key, whatever it says. */
static void
fuzz_signed(const char *data, size_t size)
{
	const char *nul = memchr(data, '\0', size);
	size_t header_len = nul != NULL ? (size_t) (nul - data) : size;
	const char *payload = nul != NULL ? nul + 1 : data + size;
	size_t payload_len = size - (size_t) (payload - data), len;
	unsigned char signature[32];
	char token[4 * JWT_MAX];
	JwtClaims claims;
	JwtStatus status;

	if (size > 2 * JWT_MAX)
		return;
	len = base64_encode(BASE64_URL, data, header_len, token, sizeof(token));
	token[len++] = '.';
	len += base64_encode(BASE64_URL, payload, payload_len, token + len, sizeof(token) - len);
	HMAC(EVP_sha256(), FUZZ_SECRET, sizeof(FUZZ_SECRET) - 1, (unsigned char *) token, len, signature, NULL);
	token[len++] = '.';
	len += base64_encode(BASE64_URL, signature, sizeof(signature), token + len, sizeof(token) - len);
	status = jwt_verify(&keys, token, len, FUZZ_NOW, &claims);
	FUZZ_CHECK(status != JWT_BAD_SIGNATURE);
	if (status == JWT_OK || status == JWT_EXPIRED)
	{
		cJSON *header = cJSON_ParseWithLength(data, header_len);
		cJSON *read = cJSON_ParseWithLength(payload, payload_len);

		FUZZ_CHECK(strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(header, "alg")), "HS256") == 0);
		FUZZ_CHECK(fuzz_claim(read, "uid", 1, claims.uid) && fuzz_claim(read, "gen", 0, claims.generation) &&
				   fuzz_claim(read, "exp", status == JWT_OK ? FUZZ_NOW + 1 : 0, claims.expires_at));
		cJSON_Delete(header);
		cJSON_Delete(read);
	}
	else
		FUZZ_CHECK(claims.uid == 0);
}

/* A key file that is accepted signs tokens that it verifies. */
static void
fuzz_keys(const char *data, size_t size)
{
	char *text = fuzz_text(data, size), reason[256] = "", token[JWT_MAX];
	JwtClaims claims = {7, 1, 1700000000, 1800000000, 9}, found;
	JwtKeys parsed;

	if (jwt_keys_parse(&parsed, text, reason, sizeof(reason)))
		FUZZ_CHECK(jwt_sign(&parsed, &claims, token, sizeof(token)) &&
				   jwt_verify(&parsed, token, strlen(token), FUZZ_NOW, &found) == JWT_OK && found.uid == 7);
	else
		FUZZ_CHECK(reason[0] != '\0');
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *rest;

	if (keys.count == 0)
		fuzz_begin();
	if (size == 0)
		return 0;
	rest = fuzz_copy(data + 1, size - 1);
	if (data[0] % 4 == 0)
		fuzz_token(rest, size - 1);
	else if (data[0] % 4 == 1)
		fuzz_overwrite((uint8_t *) rest, size - 1);
	else if (data[0] % 4 == 2)
		fuzz_signed(rest, size - 1);
	else
		fuzz_keys(rest, size - 1);
	free(rest);
	return 0;
}
