/*
 * jwt.c - JSON Web Tokens, HS256 only (see jwt.h).
 *
 * A token is checked from the outside in: its shape, the algorithm, the key, the signature, and only then its claims.
 * No payload without a valid signature is parsed. Each text has one meaning: base64url and JSON are strict, names are
 * distinct, numbers are integers.
 */
#include "auth/jwt.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/base64.h"
#include "support/buf.h"
#include "support/json.h"

#define SIGNATURE_LEN	32
#define JSON_DEPTH_MAX	8				   /* the gateway's own tokens have depth 1 */
#define CLOCK_SKEW		60				   /* seconds by which the clocks of gateways may differ */
#define KEY_FILE_MAX	(16 * 1024)		   /* bytes */
#define SECRET_VARIETY	8				   /* minimum number of different characters */
#define JWT_GUESTS		(INT64_C(1) << 52) /* numbers of links are lower */
#define HOW_TO_MAKE_ONE "make one with: openssl rand -hex 32"

static bool
refuse(char *reason, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, size, format, args);
	va_end(args);
	return false;
}

static bool
is_kid(const char *kid, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char) kid[i]) && strchr("._-", kid[i]) == NULL)
			return false;
	return len > 0 && len < sizeof(((JwtKey *) 0)->kid);
}

/* Returns NULL if the secret is acceptable, otherwise what is wrong with it. */
static const char *
secret_problem(const char *secret, size_t len)
{
	static const char *const words[] = {"example", "changeme", "change-me", "change_me", "secret", "password"};
	bool seen[256] = {false};
	int variety = 0;

	if (len < JWT_KEY_MIN)
		return "is shorter than 32 characters";
	if (len > sizeof(((JwtKey *) 0)->secret))
		return "is longer than 256 characters";
	for (size_t word = 0; word < sizeof(words) / sizeof(words[0]); word++)
		for (size_t i = 0; i + strlen(words[word]) <= len; i++)
			if (strncasecmp(secret + i, words[word], strlen(words[word])) == 0)
				return "is an example, not a secret";
	for (size_t i = 0; i < len; i++)
	{
		variety += !seen[(unsigned char) secret[i]];
		seen[(unsigned char) secret[i]] = true;
	}
	return variety < SECRET_VARIETY ? "can be guessed (it has too few different characters)" : NULL;
}

static bool
parse_line(JwtKeys *keys, int number, const char *line, size_t len, char *reason, size_t reason_size)
{
	const char *colon = memchr(line, ':', len), *kid = "default", *secret = line, *problem;
	size_t kid_len = strlen(kid), secret_len = len;
	JwtKey *key = &keys->keys[keys->count];

	if (colon != NULL)
	{
		kid = line;
		kid_len = (size_t) (colon - line);
		secret = colon + 1;
		secret_len = len - kid_len - 1;
	}
	if (!is_kid(kid, kid_len))
		return refuse(reason, reason_size,
					  "line %d: the key's name must be 1 to 31 letters, digits or . _ - before the colon", number);
	if (keys->count == (int) (sizeof(keys->keys) / sizeof(keys->keys[0])))
		return refuse(reason, reason_size, "line %d: there are more than %d keys", number, keys->count);
	for (int i = 0; i < keys->count; i++)
		if (strlen(keys->keys[i].kid) == kid_len && memcmp(keys->keys[i].kid, kid, kid_len) == 0)
			return refuse(reason, reason_size, "line %d: there are two keys named \"%.*s\"", number, (int) kid_len,
						  kid);
	problem = secret_problem(secret, secret_len);
	if (problem != NULL)
		return refuse(reason, reason_size, "line %d: the secret of key \"%.*s\" %s; " HOW_TO_MAKE_ONE, number,
					  (int) kid_len, kid, problem);
	memcpy(key->kid, kid, kid_len);
	memcpy(key->secret, secret, secret_len);
	key->secret_len = secret_len;
	keys->count++;
	return true;
}

bool
jwt_keys_parse(JwtKeys *keys, const char *text, char *reason, size_t reason_size)
{
	memset(keys, 0, sizeof(*keys));
	for (int number = 1; *text; number++)
	{
		const char *line = text;
		size_t len = strcspn(text, "\n");

		text += len + (text[len] == '\n');
		for (; len > 0 && isspace((unsigned char) *line); len--)
			line++;
		while (len > 0 && isspace((unsigned char) line[len - 1]))
			len--;
		if (len == 0 || *line == '#')
			continue;
		if (!parse_line(keys, number, line, len, reason, reason_size))
		{
			OPENSSL_cleanse(keys, sizeof(*keys));
			return false;
		}
	}
	if (keys->count == 0)
		return refuse(reason, reason_size, "it holds no key; " HOW_TO_MAKE_ONE);
	return true;
}

/* Reads the whole file into text, at most size bytes with a NUL. */
static bool
read_key_file(int fd, char *text, size_t size, char *reason, size_t reason_size)
{
	struct stat status;
	size_t len = 0;
	ssize_t got;

	if (fstat(fd, &status) != 0)
		return refuse(reason, reason_size, "%s", strerror(errno));
	if (!S_ISREG(status.st_mode))
		return refuse(reason, reason_size, "it is not a regular file");
	if (status.st_mode & 077)
		return refuse(reason, reason_size, "others may read or write it (mode %04o); chmod 600 it",
					  (unsigned) status.st_mode & 07777);
	while ((got = read(fd, text + len, size - 1 - len)) > 0 || (got < 0 && errno == EINTR))
		len += got > 0 ? (size_t) got : 0;
	if (got < 0)
		return refuse(reason, reason_size, "%s", strerror(errno));
	if (len == size - 1)
		return refuse(reason, reason_size, "it is longer than %d bytes", KEY_FILE_MAX);
	if (memchr(text, '\0', len) != NULL)
		return refuse(reason, reason_size, "it is not a text file");
	text[len] = '\0';
	return true;
}

bool
jwt_keys_load(JwtKeys *keys, const char *path, char *reason, size_t reason_size)
{
	char text[KEY_FILE_MAX + 2];
	bool good;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	memset(keys, 0, sizeof(*keys));
	if (fd < 0)
		return refuse(reason, reason_size, "%s%s", strerror(errno), errno == ENOENT ? "; " HOW_TO_MAKE_ONE : "");
	good =
		read_key_file(fd, text, sizeof(text), reason, reason_size) && jwt_keys_parse(keys, text, reason, reason_size);
	OPENSSL_cleanse(text, sizeof(text));
	close(fd);
	return good;
}

static bool
compute_signature(const JwtKey *key, const char *text, size_t len, unsigned char to[SIGNATURE_LEN])
{
	unsigned length = 0;

	return HMAC(EVP_sha256(), key->secret, (int) key->secret_len, (const unsigned char *) text, len, to, &length) !=
			   NULL &&
		   length == SIGNATURE_LEN;
}

bool
jwt_sign(const JwtKeys *keys, const JwtClaims *claims, char *to, size_t size)
{
	unsigned char signature[SIGNATURE_LEN];
	char header[128], id[40] = "", token[JWT_MAX];
	Buf payload = {NULL, 0, 0};
	size_t len, payload_len;

	if (keys->count == 0)
		return false;
	snprintf(header, sizeof(header), "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"%s\"}", keys->keys[0].kid);
	if (claims->id != 0)
		snprintf(id, sizeof(id), ",\"tid\":%lld", (long long) claims->id);
	buf_printf(&payload, "{\"uid\":%lld,\"gen\":%lld%s,\"iat\":%lld,\"exp\":%lld", (long long) claims->uid,
			   (long long) claims->generation, id, (long long) claims->issued_at, (long long) claims->expires_at);
	if (claims->name[0] != '\0')
	{
		buf_puts(&payload, ",\"name\":");
		buf_puts_json(&payload, claims->name);
	}
	buf_puts(&payload, "}");
	len = base64_encode(BASE64_URL, header, strlen(header), token, sizeof(token));
	token[len++] = '.';
	payload_len = buf_failed(&payload)
					  ? 0
					  : base64_encode(BASE64_URL, payload.data, payload.len, token + len, sizeof(token) - len);
	buf_free(&payload);
	if (payload_len == 0 || len + payload_len + 2 + BASE64_LENGTH(SIGNATURE_LEN) > sizeof(token))
		return false;
	len += payload_len;
	if (!compute_signature(&keys->keys[0], token, len, signature))
		return false;
	token[len++] = '.';
	len += base64_encode(BASE64_URL, signature, sizeof(signature), token + len, sizeof(token) - len);
	if (len >= size)
		return false;
	memcpy(to, token, len + 1);
	return true;
}

/* Parses a base64url part, which must be a JSON object with distinct names. Returns NULL otherwise. */
static cJSON *
decode_object(const char *part, size_t part_len)
{
	char json[JWT_MAX];
	size_t len;
	cJSON *object;

	if (!base64_decode(BASE64_URL, part, part_len, json, sizeof(json), &len))
		return NULL;
	(void) json_parse_object(json, len, JWT_MAX, JSON_DEPTH_MAX, &object);
	return object;
}

static bool
take_integer(const cJSON *object, const char *name, bool required, int64_t min, int64_t *to)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	*to = 0;
	if (item == NULL)
		return !required;
	/* Compare first: conversion of a value out of range is undefined. */
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double) min) ||
		!(item->valuedouble <= (double) JSON_MAX_NUMBER))
		return false;
	*to = (int64_t) item->valuedouble;
	return (double) *to == item->valuedouble;
}

/* Finds the key named "kid". Without a name it is the key "default", or the first key. */
static JwtStatus
find_key(const JwtKeys *keys, const cJSON *header, const JwtKey **key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(header, "kid");
	const char *kid = item != NULL ? cJSON_GetStringValue(item) : "default";

	if (kid == NULL)
		return JWT_MALFORMED;
	*key = item == NULL && keys->count > 0 ? &keys->keys[0] : NULL;
	for (int i = keys->count - 1; i >= 0; i--)
		if (strcmp(keys->keys[i].kid, kid) == 0)
			*key = &keys->keys[i];
	return *key != NULL ? JWT_OK : JWT_UNKNOWN_KEY;
}

/* Checks the header and finds the key that it names. */
static JwtStatus
check_header(const JwtKeys *keys, const char *part, size_t len, const JwtKey **key)
{
	cJSON *header = decode_object(part, len);
	const char *algorithm;
	const cJSON *type;
	JwtStatus status;

	if (header == NULL)
		return JWT_MALFORMED;
	algorithm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(header, "alg"));
	type = cJSON_GetObjectItemCaseSensitive(header, "typ");
	if (type != NULL && (!cJSON_IsString(type) || strcasecmp(type->valuestring, "JWT") != 0))
		status = JWT_MALFORMED;
	else if (cJSON_GetObjectItemCaseSensitive(header, "crit") != NULL) /* RFC 7515 4.1.11: unknown extensions */
		status = JWT_MALFORMED;
	else if (algorithm == NULL || strcmp(algorithm, "HS256") != 0)
		status = JWT_WRONG_ALGORITHM;
	else
		status = find_key(keys, header, key);
	cJSON_Delete(header);
	return status;
}

/* Guests have a name, accounts none. */
static bool
take_name(const cJSON *object, JwtClaims *claims)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "name"));
	size_t len = name != NULL ? strlen(name) : 0;

	if (claims->uid > 0)
		return true;
	if (len == 0 || len >= sizeof(claims->name))
		return false;
	memcpy(claims->name, name, len + 1);
	return true;
}

static JwtStatus
check_claims(const char *part, size_t len, int64_t now, JwtClaims *claims)
{
	cJSON *payload = decode_object(part, len);
	int64_t not_before;
	bool good;

	if (payload == NULL)
		return JWT_BAD_CLAIMS;
	good = take_integer(payload, "uid", true, -JWT_GUESTS, &claims->uid) && claims->uid != 0 &&
		   take_name(payload, claims) && take_integer(payload, "gen", true, 0, &claims->generation) &&
		   claims->generation <= INT32_MAX && take_integer(payload, "exp", true, 0, &claims->expires_at) &&
		   take_integer(payload, "iat", false, 0, &claims->issued_at) &&
		   take_integer(payload, "tid", false, 0, &claims->id) && take_integer(payload, "nbf", false, 0, &not_before);
	cJSON_Delete(payload);
	if (!good)
		return JWT_BAD_CLAIMS;
	if (claims->expires_at <= now)
		return JWT_EXPIRED;
	if (claims->issued_at > now + CLOCK_SKEW || not_before > now + CLOCK_SKEW)
		return JWT_NOT_YET_VALID;
	return JWT_OK;
}

JwtStatus
jwt_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims)
{
	unsigned char given[SIGNATURE_LEN], right[SIGNATURE_LEN];
	const char *payload, *signature;
	const JwtKey *key = NULL;
	size_t given_len;
	JwtStatus status;

	memset(claims, 0, sizeof(*claims));
	if (len > JWT_MAX || (payload = memchr(token, '.', len)) == NULL)
		return JWT_MALFORMED;
	payload++;
	signature = memchr(payload, '.', len - (size_t) (payload - token));
	if (signature == NULL)
		return JWT_MALFORMED;
	signature++;
	status = check_header(keys, token, (size_t) (payload - 1 - token), &key);
	if (status != JWT_OK)
		return status;
	if (!base64_decode(BASE64_URL, signature, len - (size_t) (signature - token), given, sizeof(given), &given_len) ||
		given_len != SIGNATURE_LEN)
		return JWT_BAD_SIGNATURE;
	if (!compute_signature(key, token, (size_t) (signature - 1 - token), right) ||
		CRYPTO_memcmp(given, right, SIGNATURE_LEN) != 0)
		return JWT_BAD_SIGNATURE;
	status = check_claims(payload, (size_t) (signature - 1 - payload), now, claims);
	if (status != JWT_OK && status != JWT_EXPIRED)
		memset(claims, 0, sizeof(*claims));
	return status;
}

/* ---- the cache of verified tokens: a hash table in which a new token replaces the old one ---- */

#define CACHE_SIZE	1024 /* a power of two */
#define CACHED_LEN	384	 /* longest token; the gateway's own have 200 characters */
#define CACHED_TAIL 16

typedef struct CachedToken
{
	size_t len; /* 0: free */
	JwtClaims claims;
	char text[CACHED_LEN];
} CachedToken;

static CachedToken cache[CACHE_SIZE];

/* The hash is of the signature's end, which nobody without the key can choose. */
static CachedToken *
cache_entry(const char *token, size_t len)
{
	uint64_t tail[CACHED_TAIL / 8];
	uint64_t hash;

	memcpy(tail, token + len - CACHED_TAIL, CACHED_TAIL);
	hash = (tail[0] * UINT64_C(0x9E3779B97F4A7C15) ^ tail[1]) * UINT64_C(0x9E3779B97F4A7C15);
	return &cache[hash >> 40 & (CACHE_SIZE - 1)];
}

/* The comparison is of the whole token, in constant time. */
JwtStatus
jwt_verify_cached(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims)
{
	CachedToken *entry;
	JwtStatus status;

	if (len < CACHED_TAIL || len > CACHED_LEN)
		return jwt_verify(keys, token, len, now, claims);
	entry = cache_entry(token, len);
	if (entry->len == len && CRYPTO_memcmp(entry->text, token, len) == 0 && entry->claims.expires_at > now)
	{
		*claims = entry->claims;
		return JWT_OK;
	}
	status = jwt_verify(keys, token, len, now, claims);
	if (status == JWT_OK)
	{
		entry->len = len;
		entry->claims = *claims;
		memcpy(entry->text, token, len);
	}
	return status;
}

void
jwt_cache_clear(void)
{
	OPENSSL_cleanse(cache, sizeof(cache));
}
