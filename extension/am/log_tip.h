/*
 * log_tip.h - the tips of a directory's keys, in shared memory.
 *
 * The tip of a key is its entry with the highest position that was ever put into the directory, committed or not. A row
 * at or behind the tip's position, in the tip's block, is found through it (see log_directory.h), so that nothing need
 * be looked up for it. A tip that is known is exact; of most keys none is known: memory holds those that were asked for
 * last, and nothing without shared_preload_libraries.
 */
#ifndef LOG_TIP_H
#define LOG_TIP_H

#include "postgres.h"
#include "storage/block.h"
#include "utils/rel.h"

extern Size log_tip_shmem_size(void);
extern void log_tip_shmem_startup(void); /* under AddinShmemInitLock */

/* Is the row found through the key's tip? The row is on its page already. */
extern bool log_tip_covers(Relation index, int64 key, int64 position, BlockNumber block);

/* Whoever may add entries of a key holds the directory's lock on the key, forgets the tip before, and tells the new one
 * when he has added the last entry of the key, or has found that it is this one. */
extern void log_tip_forget(Relation index, int64 key);
extern void log_tip_set(Relation index, int64 key, int64 position, BlockNumber block);

/* Before entries are deleted, and when the index is built. */
extern void log_tip_forget_index(Relation index);

#endif
