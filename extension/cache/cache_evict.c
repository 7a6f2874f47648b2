/*
 * cache_evict.c - the eviction policy: a second-chance clock over the tiles of all sheets.
 *
 * A use of a tile sets a mark in its grid, which costs a reader one store. The clock is a list of the entries that have
 * a grid: the hand takes the first one, moves it to the end, and goes over the tiles of its grid (grid_evict(), in
 * grid/grid_nonresident.c). A marked tile loses the mark, and the slack that edits have left in it; an unmarked one is
 * evicted. So a tile leaves when it was not used for a whole round, and shrinks when it was used but other tiles need
 * room. When the last tile of a grid is evicted, the grid goes. Its entry goes when another sheet needs one:
 * cache_find_victim(), cache.c.
 *
 * Passed over are pinned tiles, entries in state CACHE_PINNED, and entries that other processes have locked: a load of
 * one sheet does not wait for readers of another. Only if nothing else can be evicted, and the caller has locked no
 * entry, does it wait for locks.
 *
 * Locks: the directory lock to move the hand and to pin the entry under it, then that entry's lock.
 */
#include "postgres.h"

#include "cache/cache.h"

/* Moves the hand to the next entry, and pins it. Entries without a grid leave the clock. *left: entries until the end
 * of the round. */
static CacheEntry *
evict_next(uint32 *left)
{
	CacheEntry *found = NULL;

	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	for (; *left > 0 && found == NULL && !dlist_is_empty(&CacheState->clock); (*left)--)
	{
		CacheEntry *entry = dlist_head_element(CacheEntry, clock_link, &CacheState->clock);

		cache_clock_remove(entry);
		if (pg_atomic_read_u64(&entry->bytes) == 0)
			continue;
		cache_clock_add(entry);
		found = entry;
	}
	if (found != NULL)
		pg_atomic_fetch_add_u32(&found->pins, 1);
	LWLockRelease(&CacheState->directory);
	return found;
}

/* The hand stands between two tiles of this entry: the next eviction goes on there. */
static void
evict_stay(CacheEntry *entry)
{
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	if (entry->clocked)
		dlist_move_head(&CacheState->clock, &entry->clock_link);
	LWLockRelease(&CacheState->directory);
}

/* Evicts tiles of a pinned and locked entry. Returns the bytes that were freed. `own`: the caller needs the grid. */
static size_t
evict_from(CacheEntry *entry, bool own, size_t wanted)
{
	int64 balance;
	GridAllocator allocator = cache_memory_replacing(&balance);

	if (entry->grid == NULL || entry->state == CACHE_PINNED)
		return 0;
	pg_atomic_fetch_add_u64(&CacheState->evictions, grid_evict(&allocator, entry->grid, &entry->hand, wanted));
	if (!own && grid_tiles_resident(entry->grid) == 0 && entry->state == CACHE_RESIDENT && entry->writer_fxid == 0)
	{
		grid_free(&allocator, entry->grid);
		entry->grid = NULL;
		entry->hand = 0;
		cache_set_state(entry, CACHE_PLACEHOLDER);
		cache_queue_version(entry);
	}
	cache_memory_settle(entry, balance);
	return (size_t) balance;
}

/* One round of the clock, until something was freed. Returns the number of bytes. */
static size_t
evict_round(size_t wanted, bool wait)
{
	uint32 left = CacheState->clocked; /* read without the lock: the number need not be exact */
	size_t freed = 0;
	CacheEntry *entry;

	while (freed < wanted && (entry = evict_next(&left)) != NULL)
	{
		bool own = LWLockHeldByMe(&entry->lock);

		if (wait && !own)
			LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
		else if (!own && !LWLockConditionalAcquire(&entry->lock, LW_EXCLUSIVE))
		{
			cache_unpin(entry);
			continue;
		}
		freed += evict_from(entry, own, wanted - freed);
		if (freed >= wanted && entry->hand > 0)
			evict_stay(entry); /* the hand stopped within this grid */
		if (!own)
			LWLockRelease(&entry->lock);
		cache_unpin(entry);
	}
	return freed;
}

/* The first round may only clear marks. */
bool
cache_evict(CacheEntry *own, size_t wanted)
{
	Assert(wanted > 0);
	return evict_round(wanted, false) > 0 || evict_round(wanted, false) > 0 ||
		   (!LWLockHeldByMe(&own->lock) && evict_round(wanted, true) > 0);
}

static void *
cache_alloc(void *ctx, size_t size)
{
	CacheEntry *entry = ctx;
	void *memory;

	if (size > CacheState->budget)
		return NULL;
	while ((memory = cache_memory_take(entry, size)) == NULL)
		if (!cache_evict(entry, size))
			return NULL;
	return memory;
}

GridAllocator
cache_allocator(CacheEntry *entry)
{
	return (GridAllocator){cache_alloc, cache_memory_give, entry, false};
}
