/*
 * sheetmeta.h - what a writer must know of a sheet besides its cells, from storage; see sheetmeta.c.
 */
#ifndef SHEETMETA_H
#define SHEETMETA_H

#include "postgres.h"
#include "cache/cache.h"
#include "storage/lockdefs.h"

/* The key of the sheet's entry. Locks log_batch as who reads or appends will do anyway. */
extern void sheetmeta_cache_key(int64 sheet_id, LOCKMODE lockmode, CacheKey *key);
/* All of it, as of now. For holders of the sheet lock. */
extern void sheetmeta_load(int64 sheet_id, CacheMeta *meta);
/* Only the epoch. */
extern void sheetmeta_load_epoch(int64 sheet_id, CacheMeta *meta);
/* Only exists and trashed. */
extern void sheetmeta_load_status(int64 sheet_id, CacheMeta *meta);

/* Takes the lock with which epochs are stored, for those who look at them first: REINDEX keeps writers away while it
 * waits for readers of the index. */
extern void sheetmeta_lock_epochs(void);
/* Who holds the highest epoch; "" when it is not known. */
extern char *sheetmeta_holder(int64 sheet_id);
/* Stores an epoch, in the caller's transaction. holder NULL: not known. True when there was another holder that had not
 * released the sheet. */
extern bool sheetmeta_store_epoch(int64 sheet_id, int64 epoch, const char *holder);
/* The holder of this epoch gives the sheet back, in the caller's transaction. False when it is not the highest. */
extern bool sheetmeta_release(int64 sheet_id, int64 epoch);
/* Forgets all epochs, in the caller's transaction. */
extern void sheetmeta_delete_epochs(void);

#endif
