/*
 * test_locks.c - cell locks against a plain array.
 */
#include "ws/edit/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define SIDE	   24
#define USERS	   5
#define OPERATIONS 200000

typedef struct Held
{
	int64_t uid; /* 0: free */
	uint64_t expires;
} Held;

static Held held[SIDE][SIDE];

static bool
same_everywhere(const CellLocks *locks)
{
	size_t count = 0;

	for (uint32_t row = 0; row < SIDE; row++)
	{
		for (uint32_t col = 0; col < SIDE; col++)
		{
			const CellLock *lock = locks_find(locks, row * 100000, col);

			if ((lock != NULL) != (held[row][col].uid != 0) ||
				(lock != NULL && (lock->holder.uid != held[row][col].uid || lock->expires != held[row][col].expires)))
				return false;
			count += lock != NULL;
		}
	}
	return count == locks->count;
}

/* Somebody's lock that is over, if there is one. */
static bool
expired_agrees(const CellLocks *locks, int64_t uid, uint64_t now)
{
	const LockHolder holder = {uid, 0};
	const CellLock *found = locks_find_of(locks, uid != 0 ? &holder : NULL, now);
	bool any = false;

	for (uint32_t row = 0; row < SIDE; row++)
		for (uint32_t col = 0; col < SIDE; col++)
			any |= held[row][col].uid != 0 && (uid == 0 || held[row][col].uid == uid) && held[row][col].expires <= now;
	return (found != NULL) == any &&
		   (found == NULL || ((uid == 0 || found->holder.uid == uid) && found->expires <= now));
}

int
main(void)
{
	CellLocks locks = {NULL, 0, 0};
	bool good = true;

	srand(7);
	TAP_OK(locks_find(&locks, 1, 1) == NULL && locks_find_of(&locks, NULL, UINT64_MAX) == NULL,
		   "an empty table holds nothing");
	for (int i = 0; i < OPERATIONS && good; i++)
	{
		uint32_t row = (uint32_t) rand() % SIDE, col = (uint32_t) rand() % SIDE;
		int64_t uid = rand() % USERS + 1;
		LockHolder holder = {uid, 0};
		Held *cell = &held[row][col];
		CellLock *lock = locks_find(&locks, row * 100000, col);

		if (lock == NULL && rand() % 2)
		{
			*cell = (Held){uid, (uint64_t) (i + rand() % 1000)};
			good = locks_add(&locks, row * 100000, col, &holder, cell->expires) != NULL;
		}
		else if (lock != NULL && rand() % 3)
		{
			*cell = (Held){0, 0};
			locks_remove(&locks, lock);
		}
		else if (rand() % 50 == 0)
		{
			locks_renew(&locks, &holder, (uint64_t) i + 500);
			for (int at = 0; at < SIDE * SIDE; at++)
				if (held[at / SIDE][at % SIDE].uid == uid)
					held[at / SIDE][at % SIDE].expires = (uint64_t) i + 500;
		}
		if (i % 100 == 0)
			good = good && same_everywhere(&locks) && expired_agrees(&locks, 0, (uint64_t) i) &&
				   expired_agrees(&locks, uid, (uint64_t) i);
	}
	TAP_OK(good, "%d operations agree with a plain array", OPERATIONS);
	locks_free(&locks);
	good = locks_same_holder(&(LockHolder){1, 0}, &(LockHolder){1, 0}) &&
		   !locks_same_holder(&(LockHolder){1, 0}, &(LockHolder){1, 7}) &&
		   !locks_same_holder(&(LockHolder){1, 6}, &(LockHolder){1, 7});
	TAP_OK(good, "a session of protocol v2 holds locks of its own");
	good = true;
	for (uint32_t i = 0; i < LOCKS_MAX; i++)
		good = good && locks_add(&locks, i, 0, &(LockHolder){1, 0}, 0) != NULL;
	TAP_OK(good && locks_add(&locks, LOCKS_MAX, 0, &(LockHolder){1, 0}, 0) == NULL, "a sheet has at most %d locks",
		   LOCKS_MAX);
	locks_free(&locks);
	TAP_OK(locks.count == 0 && locks.buckets == NULL, "freed");
	return tap_done();
}
