/*
 * locks.h - who holds which cells of a sheet, with leases; see locks.c. Pure C.
 */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CellLock
{
	struct CellLock *next;
	uint32_t row;
	uint32_t col;
	int64_t uid;	  /* of a user, with all sessions of protocol v1; or -number of the one session that holds it */
	uint64_t expires; /* ms of the caller's clock */
} CellLock;

typedef struct CellLocks
{
	CellLock **buckets;
	size_t bucket_count;
	size_t count;
} CellLocks;

#define LOCKS_MAX 4096 /* of one sheet */

/* The lock of a cell, NULL when it is free. */
extern CellLock *locks_find(const CellLocks *locks, uint32_t row, uint32_t col);
/* Takes a free cell; NULL when the sheet has LOCKS_MAX already, or there is no memory. */
extern CellLock *locks_add(CellLocks *locks, uint32_t row, uint32_t col, int64_t uid, uint64_t expires);
extern void locks_remove(CellLocks *locks, CellLock *lock);
/* Some lock of this holder (0: of anybody) that expires before `now` (UINT64_MAX: at all); NULL when there is none. */
extern CellLock *locks_find_of(const CellLocks *locks, int64_t uid, uint64_t now);
/* Renews all locks of a holder. */
extern void locks_renew(CellLocks *locks, int64_t uid, uint64_t expires);
/* Moves all locks along; those of cells that are gone (fn says false) end. No two may come to lie on one cell. */
extern void locks_move(CellLocks *locks, bool (*fn)(const void *arg, uint32_t *row, uint32_t *col), const void *arg);
extern void locks_free(CellLocks *locks);

#endif
