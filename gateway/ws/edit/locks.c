/*
 * locks.c - locks of cells: a hash table from (row, col). A lock ends by release, by the end of its holder's last
 * connection, or by its lease.
 */
#include "ws/edit/locks.h"

#include "coord/ring.h"

#include <stdlib.h>
#include <string.h>

static size_t
locks_bucket(const CellLocks *locks, uint32_t row, uint32_t col)
{
	uint64_t key = (uint64_t) row << 32 | col;

	return ring_hash(&key, sizeof(key)) & (locks->bucket_count - 1);
}

bool
locks_same_holder(const LockHolder *a, const LockHolder *b)
{
	return a->session == b->session && (a->session != 0 || a->uid == b->uid);
}

CellLock *
locks_find(const CellLocks *locks, uint32_t row, uint32_t col)
{
	if (locks->count == 0)
		return NULL;
	for (CellLock *lock = locks->buckets[locks_bucket(locks, row, col)]; lock != NULL; lock = lock->next)
	{
		if (lock->row == row && lock->col == col)
			return lock;
	}
	return NULL;
}

/* Returns false when there is no memory for the first buckets. */
static bool
locks_grow(CellLocks *locks)
{
	CellLocks grown = {.bucket_count = locks->bucket_count > 0 ? locks->bucket_count * 2 : 16, .count = locks->count};

	grown.buckets = calloc(grown.bucket_count, sizeof(CellLock *));
	if (grown.buckets == NULL)
		return locks->buckets != NULL;
	for (size_t i = 0; i < locks->bucket_count; i++)
	{
		CellLock *next;

		for (CellLock *lock = locks->buckets[i]; lock != NULL; lock = next)
		{
			CellLock **bucket = &grown.buckets[locks_bucket(&grown, lock->row, lock->col)];

			next = lock->next;
			lock->next = *bucket;
			*bucket = lock;
		}
	}
	free(locks->buckets);
	*locks = grown;
	return true;
}

CellLock *
locks_add(CellLocks *locks, uint32_t row, uint32_t col, const LockHolder *holder, uint64_t expires)
{
	CellLock *lock;
	CellLock **bucket;

	if (locks->count >= LOCKS_MAX)
		return NULL;
	if (locks->count >= locks->bucket_count && !locks_grow(locks))
		return NULL;
	lock = malloc(sizeof(CellLock));
	if (lock == NULL)
		return NULL;
	bucket = &locks->buckets[locks_bucket(locks, row, col)];
	*lock = (CellLock){*bucket, row, col, *holder, expires};
	*bucket = lock;
	locks->count++;
	return lock;
}

void
locks_remove(CellLocks *locks, CellLock *lock)
{
	CellLock **link = &locks->buckets[locks_bucket(locks, lock->row, lock->col)];

	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	locks->count--;
	free(lock);
}

CellLock *
locks_find_of(const CellLocks *locks, const LockHolder *holder, uint64_t now)
{
	for (size_t i = 0; locks->count > 0 && i < locks->bucket_count; i++)
	{
		for (CellLock *lock = locks->buckets[i]; lock != NULL; lock = lock->next)
		{
			if ((holder == NULL || locks_same_holder(&lock->holder, holder)) &&
				(now == UINT64_MAX || lock->expires <= now))
				return lock;
		}
	}
	return NULL;
}

void
locks_renew(CellLocks *locks, const LockHolder *holder, uint64_t expires)
{
	for (size_t i = 0; locks->count > 0 && i < locks->bucket_count; i++)
	{
		for (CellLock *lock = locks->buckets[i]; lock != NULL; lock = lock->next)
		{
			if (locks_same_holder(&lock->holder, holder))
				lock->expires = expires;
		}
	}
}

void
locks_move(CellLocks *locks, bool (*fn)(const void *arg, uint32_t *row, uint32_t *col), const void *arg)
{
	CellLock *all = NULL, *next;

	for (size_t i = 0; i < locks->bucket_count; i++)
	{
		CellLock **end = &locks->buckets[i];

		while (*end != NULL)
			end = &(*end)->next;
		*end = all;
		all = locks->buckets[i];
		locks->buckets[i] = NULL;
	}
	locks->count = 0;
	for (CellLock *lock = all; lock != NULL; lock = next)
	{
		CellLock **bucket;

		next = lock->next;
		if (!fn(arg, &lock->row, &lock->col))
		{
			free(lock);
			continue;
		}
		bucket = &locks->buckets[locks_bucket(locks, lock->row, lock->col)];
		lock->next = *bucket;
		*bucket = lock;
		locks->count++;
	}
}

void
locks_free(CellLocks *locks)
{
	for (size_t i = 0; i < locks->bucket_count; i++)
	{
		CellLock *next;

		for (CellLock *lock = locks->buckets[i]; lock != NULL; lock = next)
		{
			next = lock->next;
			free(lock);
		}
	}
	free(locks->buckets);
	*locks = (CellLocks){NULL, 0, 0};
}
