/*
 * am_last.h - the cached last entry of a directory's keys, in shared memory.
 *
 * The last entry of a key is the one with the highest position that was ever inserted into the directory, committed or
 * not. A row at or after its position, in its block, is found through it (see am_directory.h), so no lookup is needed.
 * A row after all rows of the key needs an entry and no lookup. A cached entry is exact. The cache holds the keys that
 * were used last, and none without shared_preload_libraries.
 */
#ifndef AM_LAST_H
#define AM_LAST_H

#include "postgres.h"
#include "storage/block.h"
#include "utils/rel.h"

extern Size am_last_shmem_size(void);
extern void am_last_shmem_startup(void); /* under AddinShmemInitLock */

/* Returns whether the row, which is on its page already, is found through the key's cached entry, and records it. */
extern bool am_last_covers(Relation index, int64 key, int64 position, BlockNumber block);

/*
 * A process that may insert entries of a key holds the directory's lock on the key, and takes the cached entry away
 * before it looks. Afterwards, when (key, position, block) is known to be the last entry of the key, it sets it.
 * max_position: no row of the key for which the directory was asked is after it.
 */
extern bool am_last_take(Relation index, int64 key, int64 *max_position); /* false: none was cached */
extern void am_last_set(Relation index, int64 key, int64 position, BlockNumber block, int64 max_position);

/* Before entries are deleted, and when the index is built. */
extern void am_last_forget_index(Relation index);
/* When the database is dropped: another one may get its OID, and files with the numbers of its files. */
extern void am_last_forget_database(Oid database);

#endif
