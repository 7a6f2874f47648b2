/*
 * cache_load.c - loads: the first one of a sheet, and loads of non-resident tiles. There is one load of a sheet at a
 * time; other processes wait for it.
 *
 * The first load finds out which tiles there are, so nobody may write meanwhile. A load of non-resident tiles goes on
 * beside writers: they pin the tiles that they edit, so these are resident. An edit of a non-resident tile, which a
 * writer without room may publish, voids the load.
 */
#include "postgres.h"

#include "cache/cache.h"
#include "pgstat.h"
#include "utils/wait_event.h"

/* A large load that found no room was expensive, maybe for others too: it is retried ever more rarely. */
#define CACHE_SKIP_FIRST 32
#define CACHE_SKIP_MOST	 16384

static CacheEntry *loading_entry = NULL; /* of this process's load */
static bool loading_large = false;
static CacheEntry *reader_entry = NULL; /* pinned by cache_pin_reader() */

/* Caller must hold entry->lock in exclusive mode. */
static bool
cache_begin(CacheEntry *entry, bool large)
{
	if (cache_is_loading(entry) || CacheState->budget == 0)
		return false;
	if (large && entry->skip_loads > 0)
	{
		entry->skip_loads--;
		return false;
	}
	cache_set_state(entry, entry->grid == NULL ? CACHE_LOADING : CACHE_FILLING);
	loading_entry = entry;
	loading_large = large;
	return true;
}

/* Caller must hold entry->lock in exclusive mode. Returns the grid that is to be freed. */
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
	cache_set_state(entry, entry->grid == NULL ? CACHE_PLACEHOLDER : CACHE_RESIDENT);
	loading_entry = NULL;
	return rest;
}

/* Called after the lock was released. */
static void
cache_ended(CacheEntry *entry, CacheLoaded loaded, Grid *rest)
{
	GridAllocator allocator = cache_allocator(entry);

	if (loaded == CACHE_LOADED)
	{
		LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
		cache_clock_add(entry);
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
		entry->grid = entry->loading_grid;
		entry->loading_grid = NULL;
		entry->seq = seq;
		entry->last_fxid = last_fxid;
	}
	rest = cache_end(entry, loaded);
	LWLockRelease(&entry->lock);
	cache_ended(entry, loaded, rest);
}

/* A resident tile could be edited and evicted during the load, with nothing that voids the load. */
static bool
cache_all_nonresident(const Grid *grid, const GridTileNo *wanted, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		if (!grid_is_nonresident(grid, wanted[i].row * GRID_TILE_ROWS, wanted[i].col * GRID_TILE_COLS))
			return false;
	return true;
}

bool
cache_begin_part(CacheEntry *entry, bool large, const GridTileNo *wanted, uint32 count, CachePart *part)
{
	bool begun;

	Assert(loading_entry == NULL);
	cache_lock_change(entry);
	part->changed = entry->grid == NULL || !cache_all_nonresident(entry->grid, wanted, count);
	begun = !part->changed && cache_begin(entry, large);
	part->seq = entry->seq;
	part->nonresident_edits = entry->nonresident_edits;
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
	right = entry->grid != NULL && entry->nonresident_edits == part->nonresident_edits;
	if (loaded == CACHE_LOADED && right)
		grid_merge(entry->grid, entry->loading_grid, wanted, count);
	rest = cache_end(entry, loaded);
	LWLockRelease(&entry->lock);
	cache_ended(entry, loaded, rest);
	return right;
}

/* Ends this process's load, if there is one. */
static void
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

/* ---- pins for one call ---- */

CacheEntry *
cache_pin_reader(const CacheKey *key)
{
	CacheEntry *entry;

	Assert(reader_entry == NULL);
	entry = cache_pin(key);
	reader_entry = entry;
	return entry;
}

void
cache_unpin_reader(CacheEntry *entry)
{
	Assert(reader_entry == entry);
	reader_entry = NULL;
	cache_unpin(entry);
}

/* PostgreSQL has released all LWLocks and condition variables already. The load comes first: it needs the pin. */
void
cache_release_at_abort(void)
{
	cache_abort_load();
	if (reader_entry != NULL)
		cache_unpin_reader(reader_entry);
}

/* ---- waiting ---- */

static bool
cache_load_is_under_way(CacheEntry *entry)
{
	bool loading;

	LWLockAcquire(&entry->lock, LW_SHARED);
	loading = cache_is_loading(entry);
	LWLockRelease(&entry->lock);
	return loading;
}

bool
cache_wait_load(CacheEntry *entry)
{
	if (!cache_load_is_under_way(entry))
		return false;
	pg_atomic_fetch_add_u64(&CacheState->waits, 1);
	ConditionVariablePrepareToSleep(&entry->changed);
	while (cache_load_is_under_way(entry))
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
