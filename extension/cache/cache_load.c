/*
 * cache_load.c - loads: of a sheet that the cache does not know, and of tiles that a grid misses. One at a time for a
 * sheet; the others wait for it.
 *
 * The first load finds out which tiles there are, so nobody may write meanwhile. A load of missing tiles goes on beside
 * writers: they hold the tiles that they edit, so these are here; an edit of a tile that is missing, which a writer
 * without room may publish, voids the load.
 */
#include "postgres.h"

#include "cache/cache_private.h"
#include "pgstat.h"
#include "utils/wait_event.h"

/* A large load that finds no room has cost much, maybe also tiles of others: it is tried again ever more rarely. */
#define CACHE_SKIP_FIRST 32
#define CACHE_SKIP_MOST	 16384

static CacheEntry *loading_entry = NULL; /* of this process's load */
static bool loading_large = false;

/* The lock is held. */
static bool
cache_begin(CacheEntry *entry, bool large)
{
	if (entry->loading || CacheState->budget == 0)
		return false;
	if (large && entry->skip_loads > 0)
	{
		entry->skip_loads--;
		return false;
	}
	entry->loading = true;
	loading_entry = entry;
	loading_large = large;
	return true;
}

/* The lock is held. Returns what is to be freed. */
static Grid *
cache_end(CacheEntry *entry, CacheLoaded loaded)
{
	Grid *rest = entry->loading_grid;

	if (loaded == CACHE_LOADED && loading_large)
		entry->skip_loads = entry->next_skip = 0;
	else if (loaded == CACHE_LOAD_NO_ROOM && loading_large)
	{
		entry->skip_loads = Max(entry->next_skip, CACHE_SKIP_FIRST);
		entry->next_skip = Min(entry->skip_loads * 2, CACHE_SKIP_MOST);
	}
	entry->loading_grid = NULL;
	entry->loading = false;
	loading_entry = NULL;
	return rest;
}

/* After the lock was released. */
static void
cache_ended(CacheEntry *entry, CacheLoaded loaded, Grid *rest)
{
	GridAllocator allocator = cache_allocator(entry);

	if (loaded == CACHE_LOADED)
	{
		LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
		cache_queue(entry, 0);
		LWLockRelease(&CacheState->directory);
		pg_atomic_fetch_add_u64(&CacheState->loads, 1);
	}
	else if (loaded == CACHE_LOAD_NO_ROOM)
		pg_atomic_fetch_add_u64(&CacheState->load_failures, 1);
	ConditionVariableBroadcast(&entry->changed);
	if (rest != NULL)
		grid_free(&allocator, rest);
}

bool
cache_begin_load(CacheEntry *entry, bool large)
{
	bool begun;

	Assert(loading_entry == NULL);
	cache_lock_change(entry);
	begun = entry->grid == NULL && entry->writer_fxid == 0 && cache_begin(entry, large);
	LWLockRelease(&entry->lock);
	return begun;
}

void
cache_end_load(CacheEntry *entry, CacheLoaded loaded, int64 seq, uint64 last_fxid)
{
	Grid *rest;

	Assert(loading_entry == entry);
	cache_lock_change(entry);
	if (loaded == CACHE_LOADED)
	{
		static const GridRect all = {0, 0, PG_UINT32_MAX, PG_UINT32_MAX};

		grid_touch(entry->loading_grid, &all, cache_stamp());
		entry->grid = entry->loading_grid;
		entry->loading_grid = NULL;
		entry->states++;
		entry->seq = seq;
		entry->last_fxid = last_fxid;
	}
	rest = cache_end(entry, loaded);
	LWLockRelease(&entry->lock);
	cache_ended(entry, loaded, rest);
}

/* A tile that is here could be edited and taken out while it is loaded, with nothing that voids the load. */
static bool
cache_all_missing(const Grid *grid, const GridTileNo *wanted, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		if (!grid_is_missing(grid, wanted[i].row * GRID_TILE_ROWS, wanted[i].col * GRID_TILE_COLS))
			return false;
	return true;
}

bool
cache_begin_part(CacheEntry *entry, bool large, const GridTileNo *wanted, uint32 count, CachePart *part)
{
	bool begun;

	Assert(loading_entry == NULL);
	cache_lock_change(entry);
	part->changed = entry->grid == NULL || !cache_all_missing(entry->grid, wanted, count);
	begun = !part->changed && cache_begin(entry, large);
	part->seq = entry->seq;
	part->missed = entry->missed;
	LWLockRelease(&entry->lock);
	return begun;
}

bool
cache_end_part(CacheEntry *entry, const CachePart *part, CacheLoaded loaded, const GridTileNo *wanted, uint32 count)
{
	bool right;
	Grid *rest;

	Assert(loading_entry == entry);
	cache_lock_change(entry);
	right = entry->grid != NULL && entry->missed == part->missed;
	if (loaded == CACHE_LOADED && right)
		grid_merge(entry->grid, entry->loading_grid, wanted, count, cache_stamp());
	rest = cache_end(entry, loaded);
	LWLockRelease(&entry->lock);
	cache_ended(entry, loaded, rest);
	return right;
}

void
cache_abort_load(void)
{
	CacheEntry *entry = loading_entry;
	Grid *rest;

	if (entry == NULL)
		return;
	cache_lock_change(entry);
	rest = cache_end(entry, CACHE_LOAD_FAILED);
	LWLockRelease(&entry->lock);
	cache_ended(entry, CACHE_LOAD_FAILED, rest);
}

void
cache_forget_load(void)
{
	loading_entry = NULL;
}

/* ---- waiting ---- */

static bool
cache_is_loading(CacheEntry *entry)
{
	bool loading;

	LWLockAcquire(&entry->lock, LW_SHARED);
	loading = entry->loading;
	LWLockRelease(&entry->lock);
	return loading;
}

bool
cache_wait_load(CacheEntry *entry)
{
	if (!cache_is_loading(entry))
		return false;
	pg_atomic_fetch_add_u64(&CacheState->waits, 1);
	ConditionVariablePrepareToSleep(&entry->changed);
	while (cache_is_loading(entry))
		ConditionVariableSleep(&entry->changed, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
	return true;
}

static uint64
cache_writer(CacheEntry *entry)
{
	uint64 fxid;

	LWLockAcquire(&entry->lock, LW_SHARED);
	fxid = entry->writer_fxid;
	LWLockRelease(&entry->lock);
	return fxid;
}

void
cache_wait_writer(CacheEntry *entry, uint64 writer_fxid)
{
	pg_atomic_fetch_add_u64(&CacheState->waits, 1);
	ConditionVariablePrepareToSleep(&entry->changed);
	while (cache_writer(entry) == writer_fxid)
		ConditionVariableSleep(&entry->changed, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
}
