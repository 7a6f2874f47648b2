/*
 * test_locks.c - locks of cells and ranges, and requests that wait, against plain arrays.
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
same_everywhere(const SheetLocks *locks)
{
	size_t count = 0;

	for (uint32_t row = 0; row < SIDE; row++)
	{
		for (uint32_t col = 0; col < SIDE; col++)
		{
			const SheetLock *lock = locks_find(locks, row * 100000, col);

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
expired_agrees(const SheetLocks *locks, int64_t uid, uint64_t now)
{
	const LockHolder holder = {uid, 0};
	const SheetLock *found = locks_find_of(locks, uid != 0 ? &holder : NULL, now);
	bool any = false;

	for (uint32_t row = 0; row < SIDE; row++)
		for (uint32_t col = 0; col < SIDE; col++)
			any |= held[row][col].uid != 0 && (uid == 0 || held[row][col].uid == uid) && held[row][col].expires <= now;
	return (found != NULL) == any &&
		   (found == NULL || ((uid == 0 || found->holder.uid == uid) && found->expires <= now));
}

/* ---- ranges ---- */

#define GRID	8 /* rows and columns of the model */
#define HOLDERS 4 /* the first is a user of protocol v1, who locks cells only */
#define STEPS	60000
#define RECORDS 400

/* A lock or a request. The model's array has them in the order of the requests. */
typedef struct Record
{
	uint32_t rect[4];
	LockHolder holder;
	bool range, waits;
	uint64_t expires;
} Record;

static Record records[RECORDS];
static int record_count;

static LockHolder
holder_of(int i)
{
	return (LockHolder){i + 1, i == 0 ? 0 : (uint64_t) i + 10};
}

static bool
record_has(const Record *record, uint32_t row, uint32_t col)
{
	return row >= record->rect[0] && row <= record->rect[2] && col >= record->rect[1] && col <= record->rect[3];
}

/* Looks at each cell. self: the index of the request; those behind it may wait, and all if the holder has a range
 * around. */
static bool
model_conflicts(const LockHolder *holder, const uint32_t rect[4], int self)
{
	for (int i = 0; i < record_count; i++)
		if (records[i].range && !records[i].waits && locks_same_holder(&records[i].holder, holder) &&
			record_has(&records[i], rect[0], rect[1]) && record_has(&records[i], rect[2], rect[3]))
			self = -1;
	for (uint32_t row = rect[0]; row <= rect[2]; row++)
		for (uint32_t col = rect[1]; col <= rect[3]; col++)
			for (int i = 0; i < record_count; i++)
				if (record_has(&records[i], row, col) && !locks_same_holder(&records[i].holder, holder) &&
					(!records[i].waits || i < self))
					return true;
	return false;
}

static int
model_find(const LockHolder *holder, const uint32_t rect[4], bool range)
{
	for (int i = 0; i < record_count; i++)
		if (records[i].range == range && locks_same_holder(&records[i].holder, holder) &&
			memcmp(records[i].rect, rect, sizeof(records[i].rect)) == 0)
			return i;
	return -1;
}

static void
model_remove(int i)
{
	memmove(&records[i], &records[i + 1], (size_t) (--record_count - i) * sizeof(Record));
}

static void
model_grant(uint64_t expires)
{
	for (int i = 0; i < record_count; i++)
	{
		if (!records[i].waits || model_conflicts(&records[i].holder, records[i].rect, i))
			continue;
		records[i].waits = false;
		records[i].expires = expires;
	}
}

static void
table_grant(SheetLocks *locks, uint64_t expires)
{
	SheetLock *lock = NULL;

	while ((lock = locks_next_free(locks, lock)) != NULL)
	{
		lock->waits = false;
		lock->expires = expires;
	}
}

static void
model_add(const LockHolder *holder, const uint32_t rect[4], bool range, bool waits, uint64_t expires)
{
	Record record = {.holder = *holder, .range = range, .waits = waits, .expires = waits ? UINT64_MAX : expires};

	memcpy(record.rect, rect, sizeof(record.rect));
	records[record_count++] = record;
}

/* Locks a cell or a range, waits for it, or is refused: as the gateway does, and in the model. */
static bool
step_lock(SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4], bool range, bool may_wait,
		  uint64_t expires)
{
	bool conflicts = model_conflicts(holder, rect, record_count);
	bool agrees = (locks_find_conflict(locks, holder, rect, NULL) != NULL) == conflicts;
	SheetLock *lock;

	if (model_find(holder, rect, range) >= 0 || (conflicts && !(range && may_wait)))
		return agrees;
	model_add(holder, rect, range, conflicts, expires);
	lock = range ? locks_add_range(locks, rect, holder) : locks_add(locks, rect[0], rect[1], holder, expires);
	if (lock != NULL && !conflicts)
	{
		lock->waits = false;
		lock->expires = expires;
	}
	return agrees && lock != NULL;
}

static void
step_unlock(SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4], bool range)
{
	int i = model_find(holder, rect, range);
	SheetLock *lock = range ? locks_find_range(locks, holder, rect) : locks_find(locks, rect[0], rect[1]);

	if (i >= 0)
		model_remove(i);
	if (lock != NULL && locks_same_holder(&lock->holder, holder))
		locks_remove(locks, lock);
}

/* Ends the locks of a holder, or those that have expired. */
static void
step_end(SheetLocks *locks, const LockHolder *holder, uint64_t now)
{
	SheetLock *lock;

	while ((lock = locks_find_of(locks, holder, now)) != NULL)
		locks_remove(locks, lock);
	for (int i = record_count - 1; i >= 0; i--)
		if ((holder == NULL || locks_same_holder(&records[i].holder, holder)) && records[i].expires <= now)
			model_remove(i);
}

/* Removes row *arg: those below it move up. */
static bool
move_up(const void *arg, uint32_t rect[4])
{
	uint32_t at = *(const uint32_t *) arg;

	if (rect[0] == at && rect[2] == at)
		return false;
	rect[0] -= rect[0] > at;
	rect[2] -= rect[2] >= at;
	return true;
}

static void
step_move(SheetLocks *locks, uint32_t at)
{
	int kept = 0;

	locks_move(locks, move_up, &at);
	for (int i = 0; i < record_count; i++)
	{
		Record record = records[i];
		int same = -1;

		if (!move_up(&at, record.rect))
			continue;
		for (int j = 0; j < kept && record.range; j++)
			if (records[j].range && locks_same_holder(&records[j].holder, &record.holder) &&
				memcmp(records[j].rect, record.rect, sizeof(record.rect)) == 0)
				same = j;
		if (same < 0)
			records[kept++] = record;
		else if (!record.waits && (records[same].waits || record.expires > records[same].expires))
			records[same].expires = record.expires;
		if (same >= 0)
			records[same].waits = records[same].waits && record.waits;
	}
	record_count = kept;
}

static bool
lock_is(const SheetLock *lock, const Record *record)
{
	return lock != NULL && lock->waits == record->waits && lock->expires == record->expires &&
		   locks_same_holder(&lock->holder, &record->holder) &&
		   memcmp(lock->rect, record->rect, sizeof(lock->rect)) == 0;
}

/* Returns whether table and model have the same locks and requests, in the same order, and no cell has two holders. */
static bool
model_agrees(const SheetLocks *locks)
{
	const SheetLock *range = locks->ranges;
	size_t cells = 0, ranges = 0;

	for (int i = 0; i < record_count; i++)
	{
		const Record *record = &records[i];
		const SheetLock *lock = record->range ? range : locks_find(locks, record->rect[0], record->rect[1]);

		if (!lock_is(lock, record) || (!record->waits && model_conflicts(&record->holder, record->rect, -1)))
			return false;
		range = record->range ? range->next : range;
		*(record->range ? &ranges : &cells) += 1;
	}
	return cells == locks->count && ranges == locks->range_count;
}

static void
check_random_ranges(void)
{
	SheetLocks locks = {0};
	int waited = 0, granted = 0, step;
	bool good = true;

	for (step = 0; step < STEPS && good; step++)
	{
		int who = rand() % HOLDERS, kind = rand() % 20;
		LockHolder holder = holder_of(who);
		bool range = who > 0 && rand() % 3 > 0;
		uint32_t row = (uint32_t) rand() % GRID, col = (uint32_t) rand() % GRID;
		uint32_t rect[4] = {row, col, row, col};
		uint64_t expires = (uint64_t) (step + rand() % 200);
		int before = 0, after = 0;

		if (range)
		{
			rect[2] += (uint32_t) rand() % (GRID - row);
			rect[3] += (uint32_t) rand() % (GRID - col);
		}
		for (int i = 0; i < record_count; i++)
			before += records[i].waits;
		if (kind < 9 && locks.range_count < 24)
			good = step_lock(&locks, &holder, rect, range, rand() % 2, expires);
		else if (kind < 14 && record_count > 0)
		{
			Record record = records[rand() % record_count];

			step_unlock(&locks, &record.holder, record.rect, record.range);
		}
		else if (kind == 14)
			step_unlock(&locks, &holder, rect, range);
		else if (kind == 15)
			step_end(&locks, rand() % 4 == 0 ? &holder : NULL, rand() % 4 == 0 ? UINT64_MAX : (uint64_t) step);
		else if (kind == 16 && rand() % 4 == 0)
			step_move(&locks, row);
		else if (kind == 17)
		{
			locks_renew(&locks, &holder, expires);
			for (int i = 0; i < record_count; i++)
				if (!records[i].waits && locks_same_holder(&records[i].holder, &holder))
					records[i].expires = expires;
		}
		else
			good = (locks_find_other(&locks, &holder, rect, 0) != NULL) == model_conflicts(&holder, rect, -1);
		for (int i = 0; i < record_count; i++)
			after += records[i].waits;
		waited += after > before;
		table_grant(&locks, expires);
		model_grant(expires);
		for (int i = 0; i < record_count; i++)
			after -= records[i].waits;
		granted += after;
		good = good && model_agrees(&locks) && locks_next_free(&locks, NULL) == NULL;
	}
	TAP_OK(good && waited > 1000 && granted > 500,
		   "%d steps with ranges agree with a plain array (%d waited, %d granted)", step, waited, granted);
	locks_free(&locks);
}

static const LockHolder ann = {1, 11}, ben = {2, 12}, cat = {3, 13};
#define RECT(...) ((const uint32_t[]){__VA_ARGS__})

static SheetLock *
hold_range(SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4])
{
	SheetLock *lock = locks_add_range(locks, rect, holder);

	if (lock != NULL && locks_find_conflict(locks, holder, rect, lock) == NULL)
	{
		lock->waits = false;
		lock->expires = 100;
	}
	return lock;
}

static void
check_queue(void)
{
	SheetLocks locks = {0};
	SheetLock *held = hold_range(&locks, &ann, RECT(2, 2, 5, 5));
	SheetLock *large = hold_range(&locks, &ben, RECT(0, 0, 9, 9));
	SheetLock *last = hold_range(&locks, &cat, RECT(5, 5, 6, 6));

	TAP_OK(!held->waits && large->waits && last->waits && locks_next_free(&locks, NULL) == NULL,
		   "ranges that overlap wait");
	TAP_OK(locks_find_conflict(&locks, &cat, RECT(8, 8, 8, 8), NULL) == large,
		   "a free cell of a range that another waits for cannot be locked");
	TAP_OK(locks_find_conflict(&locks, &ben, RECT(8, 8, 8, 8), NULL) == NULL,
		   "its own request does not hinder a holder");
	TAP_OK(locks_find_other(&locks, &cat, RECT(8, 8, 8, 8), 0) == NULL, "but it can be edited");
	TAP_OK(locks_find_other(&locks, &cat, RECT(5, 5, 5, 5), 0) == held &&
			   locks_find_other(&locks, &cat, RECT(0, 3, 9, 3), 0) == held,
		   "cells of a locked range cannot");
	TAP_OK(locks_find_other(&locks, &ann, RECT(3, 3, 3, 3), 700) == NULL && held->expires == 700,
		   "an edit in it renews the lock");
	locks_remove(&locks, held);
	TAP_OK(locks_next_free(&locks, NULL) == large, "the first request is granted first");
	large->waits = false;
	TAP_OK(locks_next_free(&locks, large) == NULL, "the next one waits for it");
	locks_remove(&locks, large);
	TAP_OK(locks_next_free(&locks, NULL) == last, "then it is granted");
	locks_free(&locks);
}

static void
check_range_limits(void)
{
	SheetLocks locks = {0};
	bool good = true;

	for (uint32_t i = 0; i < LOCKS_HOLDERS_RANGES; i++)
		good = good && hold_range(&locks, &ann, RECT(i, 0, i, 1)) != NULL;
	TAP_OK(good && hold_range(&locks, &ann, RECT(900, 0, 900, 1)) == NULL, "a holder has at most %d ranges",
		   LOCKS_HOLDERS_RANGES);
	for (uint32_t i = LOCKS_HOLDERS_RANGES; i < LOCKS_MAX_RANGES; i++)
		good = good && hold_range(&locks, &(LockHolder){1, 100 + i / 8}, RECT(i, 0, i, 1)) != NULL;
	TAP_OK(good && hold_range(&locks, &ben, RECT(900, 0, 900, 1)) == NULL, "a sheet has at most %d", LOCKS_MAX_RANGES);
	locks_free(&locks);
	TAP_OK(locks.ranges == NULL && locks.range_count == 0, "freed");
}

int
main(void)
{
	SheetLocks locks = {0};
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
		SheetLock *lock = locks_find(&locks, row * 100000, col);

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
	check_queue();
	check_range_limits();
	check_random_ranges();
	return tap_done();
}
