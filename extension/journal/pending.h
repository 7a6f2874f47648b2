/*
 * pending.h - the cells that the current transaction has changed in a sheet: a hash table in its memory.
 */
#ifndef PENDING_H
#define PENDING_H

#include "postgres.h"
#include "edit_codec.h"

/* Cells of own changes: what each holds, NULL where the base's is kept. */
typedef struct PendingCell
{
	uint64 key;
	EditText content;
	EditText style;
	char status;
} PendingCell;

/* The finalizer of MurmurHash3. */
static inline uint32
pending_hash_cell(uint64 key)
{
	key ^= key >> 33;
	key *= UINT64CONST(0xff51afd7ed558ccd);
	key ^= key >> 33;
	key *= UINT64CONST(0xc4ceb9fe1a85ec53);
	return (uint32) (key ^ (key >> 33));
}

#define SH_PREFIX				pending
#define SH_ELEMENT_TYPE			PendingCell
#define SH_KEY_TYPE				uint64
#define SH_KEY					key
#define SH_HASH_KEY(table, key) pending_hash_cell(key)
#define SH_EQUAL(table, a, b)	((a) == (b))
#define SH_SCOPE				static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Row and column as one number. */
static inline uint64
pending_key(uint32 row, uint32 col)
{
	return (uint64) row << 32 | col;
}

#endif
