/*
 * test_password.c - password hashes: salted, verifiable, and bad stored ones are refused without harm.
 */
#include "auth/password.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tap.h"

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void
test_hash(void)
{
	char first[PASSWORD_HASH_MAX], second[PASSWORD_HASH_MAX], none[PASSWORD_HASH_MAX];
	const char *word = "correct horse";
	double start = seconds(), taken;

	TAP_OK(password_hash(word, strlen(word), first), "a password is hashed");
	taken = seconds() - start;
	TAP_OK(taken > 0.02, "which takes %.3f s (memory-hard)", taken);
	TAP_OK(password_hash(word, strlen(word), second) && strcmp(first, second) != 0,
		   "equal passwords have different hashes");
	TAP_OK(strncmp(first, "$scrypt$ln=15,r=8,p=1$", 22) == 0 && !strstr(first, "horse"), "stored as %s", first);
	TAP_OK(password_verify(word, strlen(word), first) && password_verify(word, strlen(word), second),
		   "the right password is right");
	TAP_OK(!password_verify("correct horsf", 13, first), "a wrong one is wrong");
	TAP_OK(!password_verify("correct hors", 12, first) && !password_verify("", 0, first), "a shorter one, and none");
	TAP_OK(!password_verify("correct horse\0x", 15, first), "bytes after a NUL count");
	TAP_OK(password_hash("", 0, none) && password_verify("", 0, none) && !password_verify("x", 1, none),
		   "the empty password is an ordinary one here (the API refuses it)");
}

static void
test_limits(void)
{
	static char large[PASSWORD_MAX + 1];
	char stored[PASSWORD_HASH_MAX];

	memset(large, 'x', sizeof(large));
	TAP_OK(password_hash(large, PASSWORD_MAX, stored) && password_verify(large, PASSWORD_MAX, stored),
		   "the longest password works");
	TAP_OK(!password_verify(large, PASSWORD_MAX - 1, stored), "all of its bytes count");
	TAP_OK(!password_hash(large, PASSWORD_MAX + 1, stored), "a longer one is refused");
	TAP_OK(!password_verify(large, PASSWORD_MAX + 1, stored), "and never right");
}

/* RFC 7914, chapter 12: scrypt("pleaseletmein", "SodiumChloride", N=16384, r=8, p=1), its first 32 bytes. */
static void
test_vector(void)
{
	static const char stored[] =
		"$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofI";
	static const char respelt[] =
		"$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofJ";

	TAP_OK(password_verify("pleaseletmein", 13, stored), "the hash of RFC 7914's example is right");
	TAP_OK(!password_verify("pleaseletmeout", 14, stored), "another password's is not");
	TAP_OK(!password_verify("pleaseletmein", 13, respelt), "unused bits of the base64 text must be zero");
}

/* RFC 7677, chapter 3: the password "pencil". */
static void
test_scram(void)
{
#define SCRAM_SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define SCRAM_KEYS "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	static const char *const wrong[] = {
		"SCRAM-SHA-256$4097:" SCRAM_SALT "$" SCRAM_KEYS,
		"SCRAM-SHA-256$0:" SCRAM_SALT "$" SCRAM_KEYS,
		"SCRAM-SHA-256$2000000000:" SCRAM_SALT "$" SCRAM_KEYS,
		"SCRAM-SHA-256$4096:$" SCRAM_KEYS,
		"SCRAM-SHA-256$4096:" SCRAM_SALT "$WG5d",
		"SCRAM-SHA-256$4096:" SCRAM_SALT "$WG5d:wfPL",
		"SCRAM-SHA-256$4096$" SCRAM_SALT "$" SCRAM_KEYS,
		"SCRAM-SHA-256$",
	};
	int accepted = 0;

	TAP_OK(password_verify("pencil", 6, "SCRAM-SHA-256$4096:" SCRAM_SALT "$" SCRAM_KEYS),
		   "the secret of RFC 7677's example is right");
	TAP_OK(!password_verify("pencils", 7, "SCRAM-SHA-256$4096:" SCRAM_SALT "$" SCRAM_KEYS),
		   "another password is wrong");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		accepted += password_verify("pencil", 6, wrong[i]);
	TAP_OK(accepted == 0, "other secrets are refused");
}

static void
test_malformed(void)
{
	static const char *const table[] = {
		"",
		"plain",
		"$scrypt$",
		"$scrypt$ln=15,r=8,p=1$",
		"$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ",
		"$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$",
		"$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$c2hvcnQ",
		"$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$not base64 at all, not base64!",
		"$scrypt$ln=15,r=8$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=0,r=8,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=-1,r=8,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=40,r=8,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=20,r=32,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=15,r=999,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=15,r=8,p=9999999999$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=15,r=8,p=1$$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=65536,t=2,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$scrypt$ln=15,r=8,p=1$"
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		"$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	};
	int wrong = 0;
	double start, unknown, known;
	char stored[PASSWORD_HASH_MAX];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		wrong += password_verify("x", 1, table[i]);
	TAP_OK(wrong == 0, "a malformed or greedy stored hash is never right");
	password_hash("x", 1, stored);
	start = seconds();
	password_verify("y", 1, stored);
	known = seconds() - start;
	start = seconds();
	TAP_OK(!password_verify("x", 1, NULL), "an unknown user's password is wrong");
	unknown = seconds() - start;
	TAP_OK(unknown > known / 3 && unknown < known * 3, "and takes as long (%.3f s, %.3f s)", unknown, known);
}

static void
test_memory(void)
{
	char dear[PASSWORD_HASH_MAX], cheap[PASSWORD_HASH_MAX];

	TAP_OK(password_hash("horse", 5, dear), "a hash of 32 MiB");
	password_set_memory(PASSWORD_MEMORY_MIN_LOG2);
	TAP_OK(password_hash("horse", 5, cheap) && strncmp(cheap, "$scrypt$ln=10,r=8,p=1$", 22) == 0, "with a mebibyte: %s",
		   cheap);
	TAP_OK(password_verify("horse", 5, dear) && password_verify("horse", 5, cheap), "both are known afterwards");
	password_set_memory(25);
}

int
main(void)
{
	test_memory();
	test_hash();
	test_limits();
	test_vector();
	test_scram();
	test_malformed();
	return tap_done();
}
