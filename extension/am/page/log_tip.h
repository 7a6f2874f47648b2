/*
 * log_tip.h - the tips of a directory's keys, in shared memory.
 *
 * The tip of a key is its entry with the highest position that was ever put into the directory, committed or not. A row
 * at or behind the tip's position, in the tip's block, is found through it (see log_directory.h), so that nothing need
 * be looked up for it. A row behind all rows of the key needs an entry and nothing else. What is known of a tip is
 * exact; of most keys nothing is known: memory holds the keys that were asked for last, and none without
 * shared_preload_libraries.
 */
#ifndef LOG_TIP_H
#define LOG_TIP_H

#include "postgres.h"
#include "storage/block.h"
#include "utils/rel.h"

extern Size log_tip_shmem_size(void);
extern void log_tip_shmem_startup(void); /* under AddinShmemInitLock */

/* Is the row, which is on its page already, found through the key's tip? If so the tip takes note of it. */
extern bool log_tip_covers(Relation index, int64 key, int64 position, BlockNumber block);

/*
 * Whoever may add entries of a key holds the directory's lock on the key and takes the tip away before he looks.
 * Afterwards, when he knows that the entry (key, position, block) is the last one of the key, he makes it the tip.
 * top: no row of the key for which the directory was asked is behind it.
 */
extern bool log_tip_take(Relation index, int64 key, int64 *top); /* false: none was known */
extern void log_tip_set(Relation index, int64 key, int64 position, BlockNumber block, int64 top);

/* Before entries are deleted, and when the index is built. */
extern void log_tip_forget_index(Relation index);
/* When it is dropped: another one may get its number, and files with the numbers of its files. */
extern void log_tip_forget_database(Oid database);

#endif
