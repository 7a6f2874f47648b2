/*
 * locks.c - locks of cells, in a hash table from (row, col), and of ranges, in a list.
 *
 * A lock ends by release, when its holder's last session closes, or by its lease. A request for a range that
 * conflicts may wait. Its place in the list is its place in the queue: a later request that overlaps it waits behind
 * it, even if its own cells are free, so that a large range is locked in the end. Without ranges, the list costs an
 * edit nothing.
 */
#include "ws/edit/locks.h"

#include "coord/ring.h"

#include <stdlib.h>
#include <string.h>

static size_t
locks_bucket(const SheetLocks *locks, uint32_t row, uint32_t col)
{
	uint64_t key = (uint64_t) row << 32 | col;

	return ring_hash(&key, sizeof(key)) & (locks->bucket_count - 1);
}

bool
locks_same_holder(const LockHolder *a, const LockHolder *b)
{
	return a->session == b->session && (a->session != 0 || a->uid == b->uid);
}

/* ---- finding ---- */

SheetLock *
locks_find(const SheetLocks *locks, uint32_t row, uint32_t col)
{
	if (locks->count == 0)
		return NULL;
	for (SheetLock *lock = locks->buckets[locks_bucket(locks, row, col)]; lock != NULL; lock = lock->next)
	{
		if (lock->rect[0] == row && lock->rect[1] == col)
			return lock;
	}
	return NULL;
}

SheetLock *
locks_find_range(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4])
{
	SheetLock *lock = locks->ranges;

	while (lock != NULL &&
		   (!locks_same_holder(&lock->holder, holder) || memcmp(lock->rect, rect, sizeof(lock->rect)) != 0))
		lock = lock->next;
	return lock;
}

static bool
locks_overlap(const SheetLock *lock, const uint32_t rect[4])
{
	return lock->rect[0] <= rect[2] && lock->rect[2] >= rect[0] && lock->rect[1] <= rect[3] && lock->rect[3] >= rect[1];
}

/* Returns the first lock of the list that is another's and overlaps. Renews the holder's own before it. */
static SheetLock *
locks_search(SheetLock *lock, const LockHolder *holder, const uint32_t rect[4], uint64_t expires)
{
	for (; lock != NULL; lock = lock->next)
	{
		if (lock->waits || !locks_overlap(lock, rect))
			continue;
		if (!locks_same_holder(&lock->holder, holder))
			return lock;
		if (expires > 0)
			lock->expires = expires;
	}
	return NULL;
}

SheetLock *
locks_find_other(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4], uint64_t expires)
{
	SheetLock *found = NULL;

	if (rect[0] == rect[2] && rect[1] == rect[3])
	{
		if (locks->count > 0)
			found = locks_search(locks->buckets[locks_bucket(locks, rect[0], rect[1])], holder, rect, expires);
		return found != NULL ? found : locks_search(locks->ranges, holder, rect, expires);
	}
	found = locks_search(locks->ranges, holder, rect, expires);
	for (size_t i = 0; locks->count > 0 && i < locks->bucket_count && found == NULL; i++)
		found = locks_search(locks->buckets[i], holder, rect, expires);
	return found;
}

static bool
locks_contain(const SheetLock *lock, const uint32_t rect[4])
{
	return lock->rect[0] <= rect[0] && lock->rect[1] <= rect[1] && lock->rect[2] >= rect[2] && lock->rect[3] >= rect[3];
}

SheetLock *
locks_find_conflict(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4], const SheetLock *self)
{
	SheetLock *found = locks_find_other(locks, holder, rect, 0);

	if (found != NULL)
		return found;
	for (const SheetLock *lock = locks->ranges; lock != NULL; lock = lock->next)
	{
		if (!lock->waits && locks_same_holder(&lock->holder, holder) && locks_contain(lock, rect))
			return NULL;
	}
	for (SheetLock *lock = locks->ranges; found == NULL && lock != self; lock = lock->next)
	{
		if (lock->waits && !locks_same_holder(&lock->holder, holder) && locks_overlap(lock, rect))
			found = lock;
	}
	return found;
}

SheetLock *
locks_next_free(const SheetLocks *locks, SheetLock *after)
{
	SheetLock *lock = after != NULL ? after->next : locks->ranges;

	while (lock != NULL && (!lock->waits || locks_find_conflict(locks, &lock->holder, lock->rect, lock) != NULL))
		lock = lock->next;
	return lock;
}

SheetLock *
locks_find_of(const SheetLocks *locks, const LockHolder *holder, uint64_t now)
{
	for (size_t i = locks->count > 0 ? 0 : locks->bucket_count; i <= locks->bucket_count; i++)
	{
		for (SheetLock *lock = locks_list(locks, i); lock != NULL; lock = lock->next)
		{
			if ((holder == NULL || locks_same_holder(&lock->holder, holder)) && lock->expires <= now)
				return lock;
		}
	}
	return NULL;
}

/* ---- changing ---- */

/* Returns false when there is no memory for the first buckets. */
static bool
locks_grow(SheetLocks *locks)
{
	size_t count = locks->bucket_count > 0 ? locks->bucket_count * 2 : 16;
	SheetLock **buckets = calloc(count, sizeof(SheetLock *));
	SheetLocks old = *locks;

	if (buckets == NULL)
		return locks->buckets != NULL;
	locks->buckets = buckets;
	locks->bucket_count = count;
	for (size_t i = 0; i < old.bucket_count; i++)
	{
		SheetLock *next;

		for (SheetLock *lock = old.buckets[i]; lock != NULL; lock = next)
		{
			SheetLock **bucket = &buckets[locks_bucket(locks, lock->rect[0], lock->rect[1])];

			next = lock->next;
			lock->next = *bucket;
			*bucket = lock;
		}
	}
	free(old.buckets);
	return true;
}

SheetLock *
locks_add(SheetLocks *locks, uint32_t row, uint32_t col, const LockHolder *holder, uint64_t expires)
{
	SheetLock *lock;
	SheetLock **bucket;

	if (locks->count >= LOCKS_MAX)
		return NULL;
	if (locks->count >= locks->bucket_count && !locks_grow(locks))
		return NULL;
	lock = malloc(sizeof(SheetLock));
	if (lock == NULL)
		return NULL;
	bucket = &locks->buckets[locks_bucket(locks, row, col)];
	*lock = (SheetLock){.next = *bucket, .rect = {row, col, row, col}, .holder = *holder, .expires = expires};
	*bucket = lock;
	locks->count++;
	return lock;
}

SheetLock *
locks_add_range(SheetLocks *locks, const uint32_t rect[4], const LockHolder *holder)
{
	SheetLock **end = &locks->ranges;
	size_t own = 0;
	SheetLock *lock;

	for (; *end != NULL; end = &(*end)->next)
		own += locks_same_holder(&(*end)->holder, holder);
	if (locks->range_count >= LOCKS_MAX_RANGES || own >= LOCKS_HOLDERS_RANGES)
		return NULL;
	lock = malloc(sizeof(SheetLock));
	if (lock == NULL)
		return NULL;
	*lock = (SheetLock){.range = true, .waits = true, .holder = *holder, .expires = UINT64_MAX};
	memcpy(lock->rect, rect, sizeof(lock->rect));
	*end = lock;
	locks->range_count++;
	return lock;
}

void
locks_remove(SheetLocks *locks, SheetLock *lock)
{
	SheetLock **link =
		lock->range ? &locks->ranges : &locks->buckets[locks_bucket(locks, lock->rect[0], lock->rect[1])];

	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	*(lock->range ? &locks->range_count : &locks->count) -= 1;
	free(lock);
}

void
locks_renew(SheetLocks *locks, const LockHolder *holder, uint64_t expires)
{
	for (size_t i = locks->count > 0 ? 0 : locks->bucket_count; i <= locks->bucket_count; i++)
	{
		for (SheetLock *lock = locks_list(locks, i); lock != NULL; lock = lock->next)
		{
			if (!lock->waits && locks_same_holder(&lock->holder, holder))
				lock->expires = expires;
		}
	}
}

static void
locks_move_cells(SheetLocks *locks, bool (*fn)(const void *arg, uint32_t rect[4]), const void *arg)
{
	SheetLock *all = NULL, *next;

	for (size_t i = 0; i < locks->bucket_count; i++)
	{
		SheetLock **end = &locks->buckets[i];

		while (*end != NULL)
			end = &(*end)->next;
		*end = all;
		all = locks->buckets[i];
		locks->buckets[i] = NULL;
	}
	locks->count = 0;
	for (SheetLock *lock = all; lock != NULL; lock = next)
	{
		SheetLock **bucket;

		next = lock->next;
		if (!fn(arg, lock->rect))
		{
			free(lock);
			continue;
		}
		bucket = &locks->buckets[locks_bucket(locks, lock->rect[0], lock->rect[1])];
		lock->next = *bucket;
		*bucket = lock;
		locks->count++;
	}
}

void
locks_move(SheetLocks *locks, bool (*fn)(const void *arg, uint32_t rect[4]), const void *arg)
{
	SheetLock **link = &locks->ranges;
	SheetLock *lock;

	locks_move_cells(locks, fn, arg);
	while ((lock = *link) != NULL)
	{
		/* The ranges before it have been moved. */
		SheetLock *same = fn(arg, lock->rect) ? locks_find_range(locks, &lock->holder, lock->rect) : NULL;

		if (same == lock)
		{
			link = &lock->next;
			continue;
		}
		if (same != NULL && !lock->waits)
		{
			same->expires = same->waits || lock->expires > same->expires ? lock->expires : same->expires;
			same->waits = false;
		}
		*link = lock->next;
		free(lock);
		locks->range_count--;
	}
}

void
locks_free(SheetLocks *locks)
{
	for (size_t i = 0; i <= locks->bucket_count; i++)
	{
		SheetLock *next;

		for (SheetLock *lock = locks_list(locks, i); lock != NULL; lock = next)
		{
			next = lock->next;
			free(lock);
		}
	}
	free(locks->buckets);
	*locks = (SheetLocks){0};
}
