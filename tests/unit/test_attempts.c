/*
 * test_attempts.c - how many attempts a name has, when it has more, and that strangers cannot take them away.
 */
#include "auth/attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static Attempts *attempts;

/* How often the name may try before it is refused. */
static int
burst(const char *name, int per_minute, uint64_t now)
{
	int count = 0;

	while (count < 100000 && attempts_take(attempts, name, per_minute, now) == 0)
		count++;
	return count;
}

static void
test_bucket(void)
{
	TAP_OK(burst("anna", 10, 1000) == 10, "a minute's attempts at once");
	TAP_OK(attempts_take(attempts, "anna", 10, 1000) == 6 && attempts_take(attempts, "anna", 10, 1001) == 6,
		   "the next one in six seconds, rounded up");
	TAP_OK(attempts_take(attempts, "anna", 10, 6999) > 0 && attempts_take(attempts, "anna", 10, 7000) == 0,
		   "it comes when it was said to");
	TAP_OK(attempts_take(attempts, "anna", 10, 7000) > 0, "and only one");
	TAP_OK(burst("ben", 10, 7000) == 10, "another name has its own");
	TAP_OK(burst("anna", 10, 7000 + 30000) == 5, "half a minute gives half of them");
	TAP_OK(burst("anna", 10, 37000 + 3600000) == 10, "an hour no more than a minute");
	TAP_OK(attempts_take(attempts, "anna", 10, 1000) > 0, "a clock that steps back gives nothing");
	TAP_OK(burst("carl", 0, 0) == 100000, "0 is no limit");
	attempts_give_back(attempts, "ben", 10, 7000);
	TAP_OK(burst("ben", 10, 7000) == 1, "one that is given back can be had again");
	for (int i = 0; i < 20; i++)
		attempts_give_back(attempts, "ben", 10, 7000);
	TAP_OK(burst("ben", 10, 7000) == 10, "but never more than a full bucket");
	TAP_OK(attempts_taken(attempts, "fred", 10, 0) == 0 && burst("fred", 10, 0) == 10 &&
			   attempts_taken(attempts, "fred", 10, 5999) == 10 && attempts_taken(attempts, "fred", 10, 6000) == 9,
		   "it is known how many a name has taken");
	TAP_OK(attempts_take_many(attempts, "gina", 7, 10, 0) == 0 &&
			   attempts_take_many(attempts, "gina", 7, 10, 0) == 24 && attempts_take(attempts, "gina", 10, 0) == 0 &&
			   attempts_take_many(attempts, "gina", 3, 10, 0) > 0,
		   "what counts as several waits for all of them, and takes none before");
	TAP_OK(attempts_take_many(attempts, "hans", 100, 10, 0) == 0 && attempts_take(attempts, "hans", 10, 0) == 6,
		   "what counts as more than a minute's attempts takes all of them");
	TAP_OK(attempts_take(attempts, "dora", 100, 0) == 0 && burst("dora", 1, 0) == 1,
		   "a limit that was lowered holds at once");
}

/* Looked at every millisecond, a slow bucket still fills: what is less than a thousandth is not lost. */
static void
test_steady(void)
{
	int taken = 0;

	burst("eva", 7, 0);
	for (uint64_t now = 1; now <= 600000; now++)
		taken += attempts_take(attempts, "eva", 7, now) == 0;
	TAP_OK(taken == 70, "7 a minute, asked for all the time, are %d in ten minutes", taken);
}

/* Whoever has used up his attempts is still known after a flood of names that try once each. */
static void
test_flood(void)
{
	char name[32];
	unsigned strangers = steps_to_run(200000, 1000000);
	int forgotten = 0;

	memset(attempts, 0, sizeof(*attempts));
	for (int i = 0; i < 100; i++)
	{
		snprintf(name, sizeof(name), "guessed %d", i);
		burst(name, 10, 0);
	}
	for (unsigned i = 0; i < strangers; i++)
	{
		snprintf(name, sizeof(name), "stranger %u", i);
		(void) attempts_take(attempts, name, 10, 0);
	}
	for (int i = 0; i < 100; i++)
	{
		snprintf(name, sizeof(name), "guessed %d", i);
		forgotten += attempts_take(attempts, name, 10, 0) == 0;
	}
	TAP_OK(forgotten == 0, "%u other names make nobody's attempts forgotten (%d of 100)", strangers, forgotten);
	TAP_OK(sizeof(Attempts) < 512 * 1024, "in %zu bytes", sizeof(Attempts));
}

int
main(void)
{
	attempts = calloc(1, sizeof(Attempts));
	test_bucket();
	test_steady();
	test_flood();
	free(attempts);
	return tap_done();
}
