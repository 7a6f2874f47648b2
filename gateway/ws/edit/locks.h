/*
 * locks.h - locks of cells and ranges, with leases, and the requests that wait for ranges; see locks.c. Pure C.
 */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCKS_MAX			 4096 /* locked cells of one sheet */
#define LOCKS_MAX_RANGES	 64	  /* of one sheet, with those that wait */
#define LOCKS_HOLDERS_RANGES 16	  /* of one holder */

/* A user of protocol v1 with all sessions of theirs (session 0), or one session of protocol v2. */
typedef struct LockHolder
{
	int64_t uid;
	uint64_t session;
} LockHolder;

typedef struct SheetLock
{
	struct SheetLock *next;
	uint32_t rect[4]; /* row, column, last row, last column */
	bool range;		  /* false: of one cell */
	bool waits;		  /* the range is requested, and not locked yet */
	LockHolder holder;
	uint64_t expires; /* ms of the caller's clock; UINT64_MAX if it waits */
} SheetLock;

/* Locks of one holder may overlap. Those of different holders never do, unless one of them waits. */
typedef struct SheetLocks
{
	SheetLock **buckets; /* of cells */
	size_t bucket_count;
	size_t count;		/* of cells */
	SheetLock *ranges;	/* in the order of their requests */
	size_t range_count; /* with those that wait */
} SheetLocks;

extern bool locks_same_holder(const LockHolder *a, const LockHolder *b);
/* Returns the lock of a cell, NULL if there is none. */
extern SheetLock *locks_find(const SheetLocks *locks, uint32_t row, uint32_t col);
/* Returns the holder's lock of exactly this range, or its request. NULL if there is none. */
extern SheetLock *locks_find_range(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4]);
/*
 * Returns another holder's lock that overlaps the rectangle, NULL if there is none. Meanwhile renews the holder's own
 * locks that overlap it. expires: 0 to renew nothing.
 */
extern SheetLock *locks_find_other(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4],
								   uint64_t expires);
/*
 * Returns why the holder cannot lock the rectangle: another's lock that overlaps it, or another's request that waits
 * and comes before the request `self` (NULL: before a new one). NULL if it can. Requests do not wait for others' if
 * their rectangle lies in a range that their holder has locked.
 */
extern SheetLock *locks_find_conflict(const SheetLocks *locks, const LockHolder *holder, const uint32_t rect[4],
									  const SheetLock *self);
/* Locks a cell without a conflict. Returns NULL if the sheet has LOCKS_MAX locks, or there is no memory. */
extern SheetLock *locks_add(SheetLocks *locks, uint32_t row, uint32_t col, const LockHolder *holder, uint64_t expires);
/* Adds a range that the holder does not have, and that waits. Returns NULL if the sheet or the holder has too many
 * ranges, or there is no memory. */
extern SheetLock *locks_add_range(SheetLocks *locks, const uint32_t rect[4], const LockHolder *holder);
extern void locks_remove(SheetLocks *locks, SheetLock *lock);
/* Returns the next request behind this one (NULL: the first) that waits for nothing any more, NULL if there is none. */
extern SheetLock *locks_next_free(const SheetLocks *locks, SheetLock *after);
/* Returns a lock of this holder (NULL: of any) that has expired by `now` (UINT64_MAX: any, also one that waits); NULL
 * if there is none. */
extern SheetLock *locks_find_of(const SheetLocks *locks, const LockHolder *holder, uint64_t now);
/* Renews all locks of a holder. */
extern void locks_renew(SheetLocks *locks, const LockHolder *holder, uint64_t expires);
/* Moves all locks and requests by fn; those for which it returns false end. fn must keep cells distinct. Ranges of one
 * holder that become equal are one. */
extern void locks_move(SheetLocks *locks, bool (*fn)(const void *arg, uint32_t rect[4]), const void *arg);
extern void locks_free(SheetLocks *locks);

/* All locks: the lists from 0 to bucket_count, of which the last one has the ranges. */
static inline SheetLock *
locks_list(const SheetLocks *locks, size_t i)
{
	return i < locks->bucket_count ? locks->buckets[i] : locks->ranges;
}

#endif
