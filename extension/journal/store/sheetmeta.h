/*
 * sheetmeta.h - what a writer must know of a sheet besides its cells, from storage; see sheetmeta.c.
 */
#ifndef SHEETMETA_H
#define SHEETMETA_H

#include "postgres.h"
#include "cache/cache.h"
#include "storage/lockdefs.h"

/* The cache key of the sheet. Takes the given lock on log_batch. */
extern void sheetmeta_cache_key(int64 sheet_id, LOCKMODE lockmode, CacheKey *key);
/* Loads all of it, or the epoch, or `exists` and `trashed`, as of now. Caller must hold the sheet lock. */
extern void sheetmeta_load(int64 sheet_id, CacheMeta *meta);
extern void sheetmeta_load_epoch(int64 sheet_id, CacheMeta *meta);
extern void sheetmeta_load_status(int64 sheet_id, CacheMeta *meta);

/* Takes the lock with which epochs are stored. For functions that read them first: REINDEX blocks writers while it
 * waits for readers of the index. */
extern void sheetmeta_lock_epochs(void);
/* The holder of the highest epoch; "": not known, or released. */
extern const char *sheetmeta_holder(int64 sheet_id);
/* Stores an epoch. holder NULL: not known. Returns true if the sheet had a holder that has not released it. */
extern bool sheetmeta_store_epoch(int64 sheet_id, int64 epoch, const char *holder);
/* Removes the holder of this epoch. Returns false if a higher epoch is stored. */
extern bool sheetmeta_release(int64 sheet_id, int64 epoch);
/* Deletes the epochs of all sheets. */
extern void sheetmeta_delete_epochs(void);

#endif
