/*
 * test_jwt.c - what a token may look like, and everything that must be refused; key files.
 */
#include "auth/jwt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/base64.h"
#include "tap.h"

#define NOW		1700000000
#define OLD_KEY "b4f0c1d2e3948576a7b8c9d0e1f20314253647586970a1b2c3d4e5f601234567"
#define NEW_KEY "1f2e3d4c5b6a79880716253443526170fedcba98765432100123456789abcdef"

static JwtKeys keys;

static const char *
name_of(JwtStatus status)
{
	static const char *const names[] = {"OK",		  "MALFORMED", "WRONG_ALGORITHM", "UNKNOWN_KEY", "BAD_SIGNATURE",
										"BAD_CLAIMS", "EXPIRED",   "NOT_YET_VALID"};

	return names[status];
}

static void
expect(const char *token, JwtStatus wanted, const char *what)
{
	JwtClaims claims = {1, 1, 1, 1, 1};
	JwtStatus status = jwt_verify(&keys, token, strlen(token), NOW, &claims);

	TAP_OK(status == wanted, "%s: %s", what, name_of(status));
	if (status != JWT_OK && status != JWT_EXPIRED && claims.uid != 0)
		TAP_OK(false, "%s: a refused token gives no claims", what);
}

/* A token of any header and payload, signed as it should be. */
static const char *
token_of(const char *header, const char *payload)
{
	static char token[16384];
	unsigned char signature[32];
	unsigned length;
	size_t len = base64_encode(BASE64_URL, header, strlen(header), token, sizeof(token));

	token[len++] = '.';
	len += base64_encode(BASE64_URL, payload, strlen(payload), token + len, sizeof(token) - len);
	HMAC(EVP_sha256(), OLD_KEY, (int) strlen(OLD_KEY), (unsigned char *) token, len, signature, &length);
	token[len++] = '.';
	base64_encode(BASE64_URL, signature, sizeof(signature), token + len, sizeof(token) - len);
	return token;
}

#define GOOD_HEADER	 "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"old\"}"
#define GOOD_PAYLOAD "{\"uid\":7,\"gen\":2,\"iat\":1699999999,\"exp\":1700000100}"

static void
test_round_trip(void)
{
	JwtClaims in = {7, 2, NOW - 1, NOW + 100, 5}, out;
	char token[JWT_MAX], small[100];

	TAP_OK(jwt_sign(&keys, &in, token, sizeof(token)), "a token is signed");
	TAP_OK(jwt_verify(&keys, token, strlen(token), NOW, &out) == JWT_OK && memcmp(&in, &out, sizeof(in)) == 0,
		   "and verified with the same claims");
	TAP_OK(!jwt_sign(&keys, &in, small, sizeof(small)), "a buffer that is too small is refused");
	in = (JwtClaims){(1LL << 53) - 1, INT32_MAX, NOW, NOW + 1, (1LL << 53) - 1};
	TAP_OK(jwt_sign(&keys, &in, token, sizeof(token)) && jwt_verify(&keys, token, strlen(token), NOW, &out) == JWT_OK &&
			   memcmp(&in, &out, sizeof(in)) == 0,
		   "the largest claims survive");
	in.id = 0;
	TAP_OK(jwt_sign(&keys, &in, token, sizeof(token)) && jwt_verify(&keys, token, strlen(token), NOW, &out) == JWT_OK &&
			   memcmp(&in, &out, sizeof(in)) == 0 && jwt_token_id(&out) == NOW,
		   "a token without an id is known by its time");
}

/* RFC 7515, appendix A.1: a signature that was not made by our own code. Its claims are not ours. */
static void
test_rfc_vector(void)
{
	static const char key[] = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
	static const char token[] = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
								"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ij"
								"p0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
	JwtKeys rfc = {.count = 1};
	JwtClaims claims;

	strcpy(rfc.keys[0].kid, "rfc");
	base64_decode(BASE64_URL, key, strlen(key), rfc.keys[0].secret, sizeof(rfc.keys[0].secret),
				  &rfc.keys[0].secret_len);
	TAP_OK(jwt_verify(&rfc, token, strlen(token), NOW, &claims) == JWT_BAD_CLAIMS,
		   "the signature of RFC 7515's example is right (and its claims are not ours)");
	rfc.keys[0].secret[0] ^= 1;
	TAP_OK(jwt_verify(&rfc, token, strlen(token), NOW, &claims) == JWT_BAD_SIGNATURE, "with another key it is wrong");
}

static void
test_algorithms(void)
{
	static const char *const wrong[] = {"none",	 "None",  "NONE",  "nOnE", "hs256",	 "HS384",  "HS512",
										"RS256", "ES256", "PS256", "",	   "HS256 ", "HS2567", "EdDSA"};
	char header[128], what[64], token[JWT_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"old\"}", wrong[i]);
		snprintf(what, sizeof(what), "algorithm \"%s\"", wrong[i]);
		expect(token_of(header, GOOD_PAYLOAD), JWT_WRONG_ALGORITHM, what);
	}
	expect(token_of("{\"kid\":\"old\"}", GOOD_PAYLOAD), JWT_WRONG_ALGORITHM, "no algorithm");
	expect(token_of("{\"alg\":null}", GOOD_PAYLOAD), JWT_WRONG_ALGORITHM, "algorithm null");
	expect(token_of("{\"alg\":[\"HS256\"]}", GOOD_PAYLOAD), JWT_WRONG_ALGORITHM, "algorithm in a list");
	expect(token_of("{\"Alg\":\"HS256\"}", GOOD_PAYLOAD), JWT_WRONG_ALGORITHM, "Alg is not alg");
	expect(token_of("{\"alg\":\"none\",\"alg\":\"HS256\"}", GOOD_PAYLOAD), JWT_MALFORMED, "two algorithms");
	snprintf(token, sizeof(token), "%s", token_of("{\"alg\":\"none\"}", GOOD_PAYLOAD));
	*(strrchr(token, '.') + 1) = '\0';
	expect(token, JWT_WRONG_ALGORITHM, "algorithm none and an empty signature");
}

static void
test_header(void)
{
	expect(token_of(GOOD_HEADER, GOOD_PAYLOAD), JWT_OK, "the plain good token");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":\"old\"}", GOOD_PAYLOAD), JWT_OK, "no typ");
	expect(token_of("{\"alg\":\"HS256\",\"typ\":\"JWE\",\"kid\":\"old\"}", GOOD_PAYLOAD), JWT_MALFORMED, "typ JWE");
	expect(token_of("{\"alg\":\"HS256\",\"typ\":1,\"kid\":\"old\"}", GOOD_PAYLOAD), JWT_MALFORMED, "typ 1");
	expect(token_of("{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false,\"kid\":\"old\"}", GOOD_PAYLOAD),
		   JWT_MALFORMED, "critical extensions");
	expect(token_of("[\"HS256\"]", GOOD_PAYLOAD), JWT_MALFORMED, "a header that is a list");
	expect(token_of("\"HS256\"", GOOD_PAYLOAD), JWT_MALFORMED, "a header that is a string");
	expect(token_of("{\"alg\":\"HS256\"} x", GOOD_PAYLOAD), JWT_MALFORMED, "garbage after the header");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":7}", GOOD_PAYLOAD), JWT_MALFORMED, "kid 7");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":\"newest\"}", GOOD_PAYLOAD), JWT_UNKNOWN_KEY, "an unknown kid");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":\"new\"}", GOOD_PAYLOAD), JWT_BAD_SIGNATURE, "the kid of another key");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":\"../old\"}", GOOD_PAYLOAD), JWT_UNKNOWN_KEY, "a kid that is a path");
	expect(token_of("{\"alg\":\"HS256\",\"kid\":\"old\",\"x\":[[[[[[[[[[]]]]]]]]]]}", GOOD_PAYLOAD), JWT_MALFORMED,
		   "a deeply nested header");
}

static void
test_shape(void)
{
	char token[JWT_MAX], copy[JWT_MAX + 64], *dot;
	size_t len;
	int wrong = 0;
	JwtClaims claims;

	snprintf(token, sizeof(token), "%s", token_of(GOOD_HEADER, GOOD_PAYLOAD));
	len = strlen(token);
	for (size_t cut = 0; cut < len; cut++)
		wrong += jwt_verify(&keys, token, cut, NOW, &claims) == JWT_OK;
	TAP_OK(wrong == 0, "no prefix of a good token is good");
	for (size_t i = 0; i < len; i++)
		for (int c = 0; c < 256; c++)
		{
			memcpy(copy, token, len + 1);
			copy[i] = (char) c;
			wrong += c != (unsigned char) token[i] && jwt_verify(&keys, copy, len, NOW, &claims) == JWT_OK;
		}
	TAP_OK(wrong == 0, "no other byte anywhere makes another good token");

	/* the last character of 43 carries four bits: three others would decode to the same signature */
	for (int spare = 1; spare < 4; spare++)
	{
		static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

		snprintf(copy, sizeof(copy), "%s", token);
		copy[len - 1] = digits[(strchr(digits, token[len - 1]) - digits) | spare];
		expect(copy, JWT_BAD_SIGNATURE, "the same signature in another spelling");
	}
	snprintf(copy, sizeof(copy), "%s=", token);
	expect(copy, JWT_BAD_SIGNATURE, "padding");
	snprintf(copy, sizeof(copy), "%s%%3D", token);
	expect(copy, JWT_BAD_SIGNATURE, "padding of a URL");
	for (char *c = strcpy(copy, token); *c; c++)
		*c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
	if (strcmp(copy, token) != 0)
		expect(copy, JWT_BAD_SIGNATURE, "the alphabet of plain base64");
	snprintf(copy, sizeof(copy), "%sA", token);
	expect(copy, JWT_BAD_SIGNATURE, "an extended signature");
	snprintf(copy, sizeof(copy), "%s\n", token);
	expect(copy, JWT_BAD_SIGNATURE, "a line end");
	snprintf(copy, sizeof(copy), "%s.e30", token);
	expect(copy, JWT_BAD_SIGNATURE, "four parts");
	snprintf(copy, sizeof(copy), " %s", token);
	expect(copy, JWT_MALFORMED, "a blank in front");
	strcpy(copy, token);
	dot = strrchr(copy, '.');
	dot[1] = '\0';
	expect(copy, JWT_BAD_SIGNATURE, "a stripped signature");
	dot[0] = '\0';
	expect(copy, JWT_MALFORMED, "two parts");
	expect("", JWT_MALFORMED, "nothing");
	expect("..", JWT_MALFORMED, "three empty parts");
	memset(copy, 'A', JWT_MAX + 1);
	copy[JWT_MAX + 1] = '\0';
	copy[10] = copy[20] = '.';
	expect(copy, JWT_MALFORMED, "longer than JWT_MAX");
}

static void
test_claims(void)
{
	static const struct
	{
		const char *payload;
		JwtStatus status;
		const char *what;
	} table[] = {
		{"{\"uid\":7,\"gen\":0,\"exp\":1700000001}", JWT_OK, "without iat, expiring in a second"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1700000000}", JWT_EXPIRED, "expiring now"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1699999999}", JWT_EXPIRED, "expired a second ago"},
		{"{\"uid\":7,\"gen\":0}", JWT_BAD_CLAIMS, "no exp"},
		{"{\"uid\":7,\"gen\":0,\"exp\":null}", JWT_BAD_CLAIMS, "exp null"},
		{"{\"uid\":7,\"gen\":0,\"exp\":\"1800000000\"}", JWT_BAD_CLAIMS, "exp as text"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000.5}", JWT_BAD_CLAIMS, "exp with a fraction"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1e30}", JWT_BAD_CLAIMS, "exp beyond integers"},
		{"{\"uid\":7,\"gen\":0,\"exp\":-1}", JWT_BAD_CLAIMS, "exp negative"},
		{"{\"uid\":7,\"gen\":0,\"exp\":true}", JWT_BAD_CLAIMS, "exp true"},
		{"{\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "no uid"},
		{"{\"uid\":\"7\",\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid as text"},
		{"{\"uid\":0,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid 0"},
		{"{\"uid\":-7,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid negative"},
		{"{\"uid\":7.5,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid with a fraction"},
		{"{\"uid\":1e400,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid infinite"},
		{"{\"uid\":18446744073709551617,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid beyond 64 bits"},
		{"{\"uid\":[7],\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid in a list"},
		{"{\"Uid\":7,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "Uid is not uid"},
		{"{\"uid\":7,\"uid\":8,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "two uids"},
		{"{\"uid\":7,\"exp\":1800000000}", JWT_BAD_CLAIMS, "no gen"},
		{"{\"uid\":7,\"gen\":-1,\"exp\":1800000000}", JWT_BAD_CLAIMS, "gen negative"},
		{"{\"uid\":7,\"gen\":4294967296,\"exp\":1800000000}", JWT_BAD_CLAIMS, "gen beyond int"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"iat\":1700000060}", JWT_OK, "iat 60 s ahead: another clock"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"iat\":1700000061}", JWT_NOT_YET_VALID, "iat 61 s ahead"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"iat\":\"x\"}", JWT_BAD_CLAIMS, "iat as text"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"nbf\":1700000000}", JWT_OK, "nbf now"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"nbf\":1700000061}", JWT_NOT_YET_VALID, "nbf ahead"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"nbf\":{}}", JWT_BAD_CLAIMS, "nbf an object"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"role\":\"admin\"}", JWT_OK, "an unknown claim is ignored"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"x\":[[[[[[[[[]]]]]]]]]}", JWT_BAD_CLAIMS, "deep claims"},
		{"{\"uid\":07,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid with a leading zero"},
		{"{\"uid\":7.,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid with a bare point"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"x\":\"a\nb\"}", JWT_BAD_CLAIMS, "a raw line end in a text"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"x\":\"\\u0000\"}", JWT_BAD_CLAIMS, "an escaped NUL"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"x\":\"\xFF\"}", JWT_BAD_CLAIMS, "bytes that are not UTF-8"},
		{"{\"uid\":7,\"u\\u0069d\":8,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "two uids, one escaped"},
		{"{\"uid\":7.0,\"gen\":0,\"exp\":18e8}", JWT_OK, "whole numbers in another way"},
		{"{\"uid\":9007199254740993,\"gen\":0,\"exp\":1800000000}", JWT_BAD_CLAIMS, "uid that a double rounds"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000,\"iat\":1800000001}", JWT_NOT_YET_VALID, "iat behind exp"},
		{"[7,0,1800000000]", JWT_BAD_CLAIMS, "claims in a list"},
		{"", JWT_BAD_CLAIMS, "no claims"},
		{"null", JWT_BAD_CLAIMS, "claims null"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000}{}", JWT_BAD_CLAIMS, "two objects"},
		{"{\"uid\":7,\"gen\":0,\"exp\":1800000000", JWT_BAD_CLAIMS, "an open object"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(token_of(GOOD_HEADER, table[i].payload), table[i].status, table[i].what);
}

static void
test_rotation(void)
{
	JwtKeys both, newer_only;
	JwtClaims claims = {7, 0, NOW, NOW + 60, 1}, out;
	char old_token[JWT_MAX], new_token[JWT_MAX], reason[200];

	jwt_sign(&keys, &claims, old_token, sizeof(old_token));
	jwt_keys_parse(&both, "new:" NEW_KEY "\nold:" OLD_KEY "\n", reason, sizeof(reason));
	jwt_keys_parse(&newer_only, "new:" NEW_KEY "\n", reason, sizeof(reason));
	jwt_sign(&both, &claims, new_token, sizeof(new_token));
	TAP_OK(jwt_verify(&both, old_token, strlen(old_token), NOW, &out) == JWT_OK,
		   "while a key is rotated out, it verifies");
	TAP_OK(jwt_verify(&newer_only, new_token, strlen(new_token), NOW, &out) == JWT_OK, "the first key signs");
	TAP_OK(jwt_verify(&newer_only, old_token, strlen(old_token), NOW, &out) == JWT_UNKNOWN_KEY,
		   "a removed key is unknown");
	expect(token_of("{\"alg\":\"HS256\"}", GOOD_PAYLOAD), JWT_OK, "without a kid the first key is taken");
	jwt_keys_parse(&keys, "other:" NEW_KEY "\n" OLD_KEY "\n", reason, sizeof(reason));
	expect(token_of("{\"alg\":\"HS256\"}", GOOD_PAYLOAD), JWT_OK, "but the key named default goes before it");
}

static void
expect_keys(const char *text, int count, const char *what)
{
	JwtKeys parsed;
	char reason[300] = "";
	bool good = jwt_keys_parse(&parsed, text, reason, sizeof(reason));

	TAP_OK(good == (count > 0) && parsed.count == count, "%s: %s", what, good ? "accepted" : reason);
}

static void
test_key_texts(void)
{
	expect_keys("# keys\n\n  k1:" OLD_KEY "  \r\nk2:" NEW_KEY, 2, "comments, blanks, CRLF, no last line end");
	expect_keys(OLD_KEY "\n", 1, "a line without a colon");
	expect_keys("", 0, "nothing");
	expect_keys("# only a comment\n", 0, "only a comment");
	expect_keys("k1:0123456789abcdef0123456789abcde\n", 0, "31 characters");
	expect_keys("k1:0123456789abcdef0123456789abcdef\n", 1, "32 characters");
	expect_keys("k1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 0, "one repeated character");
	expect_keys("k1:abababababababababababababababababababab\n", 0, "two repeated characters");
	expect_keys("k1:this-is-an-Example-key-of-40-characters-x\n", 0, "an example");
	expect_keys("k1:CHANGEME-0123456789-0123456789-abcdefghij\n", 0, "changeme");
	expect_keys("k1:my-very-long-secret-that-is-long-enough-1\n", 0, "secret");
	expect_keys("k1:my-very-long-Password-that-is-long-enough\n", 0, "password");
	expect_keys("k1:" OLD_KEY "\nk1:" NEW_KEY "\n", 0, "two keys of one name");
	expect_keys(":" OLD_KEY "\n", 0, "an empty name");
	expect_keys("k 1:" OLD_KEY "\n", 0, "a name with a blank");
	expect_keys("k\"1:" OLD_KEY "\n", 0, "a name with a quote");
	expect_keys("a-name-of-more-than-thirty-one-characters:" OLD_KEY "\n", 0, "a long name");
}

static void
test_key_files(void)
{
	char path[] = "/tmp/test_jwt_XXXXXX", reason[300];
	int fd = mkstemp(path);
	JwtKeys loaded;

	TAP_OK(write(fd, "k1:" OLD_KEY "\n", strlen("k1:" OLD_KEY "\n")) > 0 &&
			   jwt_keys_load(&loaded, path, reason, sizeof(reason)) && loaded.count == 1,
		   "a private key file is read");
	fchmod(fd, 0640);
	TAP_OK(!jwt_keys_load(&loaded, path, reason, sizeof(reason)) && strstr(reason, "0640"), "one of mode 0640: %s",
		   reason);
	fchmod(fd, 0604);
	TAP_OK(!jwt_keys_load(&loaded, path, reason, sizeof(reason)), "one of mode 0604: %s", reason);
	fchmod(fd, 0600);
	TAP_OK(pwrite(fd, "", 1, 20) == 1 && !jwt_keys_load(&loaded, path, reason, sizeof(reason)), "one with a NUL: %s",
		   reason);
	TAP_OK(ftruncate(fd, 100000) == 0 && !jwt_keys_load(&loaded, path, reason, sizeof(reason)), "a huge one: %s",
		   reason);
	close(fd);
	unlink(path);
	TAP_OK(!jwt_keys_load(&loaded, path, reason, sizeof(reason)) && strstr(reason, "openssl rand"),
		   "a missing one tells how to make one: %s", reason);
	TAP_OK(!jwt_keys_load(&loaded, "/tmp", reason, sizeof(reason)), "a directory: %s", reason);
}

static void
test_guests(void)
{
	JwtClaims in = {.uid = -7, .generation = 1, .issued_at = NOW, .expires_at = NOW + 1, .id = 5}, out;
	char token[JWT_MAX];

	strcpy(in.name, "Zo\xC3\xAB \"\\ (guest)");
	TAP_OK(jwt_sign(&keys, &in, token, sizeof(token)) && jwt_verify(&keys, token, strlen(token), NOW, &out) == JWT_OK &&
			   memcmp(&in, &out, sizeof(in)) == 0,
		   "a guest has a negative uid and a name");
	memset(in.name, '"', sizeof(in.name) - 1);
	TAP_OK(jwt_sign(&keys, &in, token, sizeof(token)) && jwt_verify(&keys, token, strlen(token), NOW, &out) == JWT_OK &&
			   memcmp(&in, &out, sizeof(in)) == 0,
		   "the longest name, each of whose characters is escaped, fits");
	expect(token_of(GOOD_HEADER, "{\"uid\":-7,\"gen\":2,\"exp\":1700000100}"), JWT_BAD_CLAIMS,
		   "a guest without a name");
	expect(token_of(GOOD_HEADER, "{\"uid\":-4503599627370497,\"gen\":2,\"exp\":1700000100,\"name\":\"x\"}"),
		   JWT_BAD_CLAIMS, "a guest whose link has too high a number");
	expect(token_of(GOOD_HEADER, "{\"uid\":7,\"gen\":2,\"exp\":1700000100,\"name\":\"x\"}"), JWT_OK,
		   "the name of an account");
	TAP_OK(jwt_verify(&keys, token_of(GOOD_HEADER, "{\"uid\":7,\"gen\":2,\"exp\":1700000100,\"name\":\"x\"}"),
					  strlen(token_of(GOOD_HEADER, "{\"uid\":7,\"gen\":2,\"exp\":1700000100,\"name\":\"x\"}")), NOW,
					  &out) == JWT_OK &&
			   out.name[0] == '\0',
		   "is not taken");
}

int
main(void)
{
	char reason[300];

	if (!jwt_keys_parse(&keys, "old:" OLD_KEY "\nnew:" NEW_KEY "\n", reason, sizeof(reason)))
		printf("Bail out! %s\n", reason);
	test_round_trip();
	test_rfc_vector();
	test_algorithms();
	test_header();
	test_shape();
	test_claims();
	test_guests();
	test_rotation();
	test_key_texts();
	test_key_files();
	return tap_done();
}
