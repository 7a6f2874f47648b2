/* attempts.c - token buckets in an eight-way associative table; see attempts.h. */
#include "auth/attempts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

/* Keyed, so that nobody can choose names that collide with another user's. */
uint64_t
attempts_key(const char *name)
{
	static unsigned char secret[32];
	static bool seeded;
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	uint64_t key;

	seeded = seeded || RAND_bytes(secret, sizeof(secret)) == 1;
	/* Without random bytes or memory all names share a bucket. */
	if (!seeded ||
		HMAC(EVP_sha256(), secret, sizeof(secret), (const unsigned char *) name, strlen(name), hash, &len) == NULL)
		return 1;
	memcpy(&key, hash, sizeof(key));
	return key != 0 ? key : 1;
}

/* Adds the tokens of the time since the last call. */
static void
attempts_fill(AttemptsBucket *bucket, int per_minute, uint64_t now)
{
	uint64_t full = (uint64_t) per_minute * ATTEMPTS_WHOLE;
	uint64_t passed = now > bucket->at ? now - bucket->at : 0;

	if (passed >= ATTEMPTS_WHOLE) /* a minute */
		bucket->tokens = full;
	bucket->tokens += passed * (uint64_t) per_minute;
	if (bucket->tokens > full) /* or the limit was lowered */
		bucket->tokens = full;
	bucket->at += passed;
}

static AttemptsBucket *
attempts_find(Attempts *attempts, const char *name, int per_minute, uint64_t now)
{
	uint64_t key = attempts_key(name);
	AttemptsBucket *set = attempts->buckets[key % ATTEMPTS_SETS];
	AttemptsBucket *victim = &set[0];

	for (int i = 0; i < ATTEMPTS_WAYS; i++)
	{
		AttemptsBucket *bucket = &set[i];

		if (bucket->key == key)
		{
			attempts_fill(bucket, per_minute, now);
			return bucket;
		}
		if (bucket->key == 0)
		{
			victim = bucket;
			continue;
		}
		attempts_fill(bucket, per_minute, now);
		if (victim->key != 0 && bucket->tokens > victim->tokens)
			victim = bucket;
	}
	*victim = (AttemptsBucket){.key = key, .at = now, .tokens = (uint64_t) per_minute * ATTEMPTS_WHOLE};
	return victim;
}

int
attempts_take(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms)
{
	return attempts_take_many(attempts, name, 1, per_minute, now_ms);
}

int
attempts_take_many(Attempts *attempts, const char *name, int count, int per_minute, uint64_t now_ms)
{
	AttemptsBucket *bucket;
	uint64_t tokens;

	if (per_minute == 0)
		return 0;
	bucket = attempts_find(attempts, name, per_minute, now_ms);
	tokens = (uint64_t) (count < per_minute ? count : per_minute) * ATTEMPTS_WHOLE;
	if (bucket->tokens < tokens)
	{
		uint64_t wait_ms = (tokens - bucket->tokens + (uint64_t) per_minute - 1) / (uint64_t) per_minute;

		return (int) ((wait_ms + 999) / 1000);
	}
	bucket->tokens -= tokens;
	return 0;
}

int
attempts_taken(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms)
{
	return per_minute - (int) (attempts_find(attempts, name, per_minute, now_ms)->tokens / ATTEMPTS_WHOLE);
}

void
attempts_give_back(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms)
{
	AttemptsBucket *bucket;

	if (per_minute == 0)
		return;
	bucket = attempts_find(attempts, name, per_minute, now_ms);
	bucket->tokens += ATTEMPTS_WHOLE;
	attempts_fill(bucket, per_minute, now_ms);
}
