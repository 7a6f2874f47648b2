/*
 * locks.h - locks of cells, with leases; see locks.c. Pure C.
 */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A user of protocol v1 with all sessions of theirs (session 0), or one session of protocol v2. */
typedef struct LockHolder
{
	int64_t uid;
	uint64_t session;
} LockHolder;

typedef struct CellLock
{
	struct CellLock *next;
	uint32_t row;
	uint32_t col;
	LockHolder holder;
	uint64_t expires; /* ms of the caller's clock */
} CellLock;

typedef struct CellLocks
{
	CellLock **buckets;
	size_t bucket_count;
	size_t count;
} CellLocks;

#define LOCKS_MAX 4096 /* of one sheet */

extern bool locks_same_holder(const LockHolder *a, const LockHolder *b);
/* Returns the lock of a cell, NULL when it is free. */
extern CellLock *locks_find(const CellLocks *locks, uint32_t row, uint32_t col);
/* Locks a free cell. Returns NULL when the sheet has LOCKS_MAX locks, or there is no memory. */
extern CellLock *locks_add(CellLocks *locks, uint32_t row, uint32_t col, const LockHolder *holder, uint64_t expires);
extern void locks_remove(CellLocks *locks, CellLock *lock);
/* Returns a lock of this holder (NULL: of any) that has expired by `now` (UINT64_MAX: any); NULL when there is none. */
extern CellLock *locks_find_of(const CellLocks *locks, const LockHolder *holder, uint64_t now);
/* Renews all locks of a holder. */
extern void locks_renew(CellLocks *locks, const LockHolder *holder, uint64_t expires);
/* Moves all locks to the cells that fn gives; those for which it returns false end. fn must keep cells distinct. */
extern void locks_move(CellLocks *locks, bool (*fn)(const void *arg, uint32_t *row, uint32_t *col), const void *arg);
extern void locks_free(CellLocks *locks);

#endif
