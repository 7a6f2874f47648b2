/*
 * cache_memory.c - the memory of grids, accounted to the byte: what is taken is never more than the budget.
 */
#include "postgres.h"

#include "cache/cache_private.h"
#include "utils/dsa.h"

char *cache_area_place = NULL;
dsa_area *cache_area = NULL;

static void
cache_free(void *ctx, void *ptr, size_t size)
{
	CacheEntry *entry = ctx;

	dsa_free(cache_area, (dsa_pointer) ((char *) ptr - cache_area_place));
	pg_atomic_fetch_sub_u64(&CacheState->used, size);
	if (entry != NULL)
		pg_atomic_fetch_sub_u64(&entry->bytes, size);
}

static GridAllocator
cache_detached_allocator(void)
{
	return (GridAllocator){NULL, cache_free, NULL, false};
}

void
cache_free_detached(Grid *grid)
{
	GridAllocator allocator = cache_detached_allocator();

	if (grid != NULL)
		grid_free(&allocator, grid);
}

/* Takes bytes from the budget. More are never counted than there are, not even for a moment. */
static bool
cache_take(size_t size)
{
	uint64 used = pg_atomic_read_u64(&CacheState->used);

	do
	{
		if (size > CacheState->budget - used)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&CacheState->used, &used, used + size));
	return true;
}

static void *
cache_try_alloc(size_t size)
{
	dsa_pointer pointer;

	if (!cache_take(size))
		return NULL;
	pointer = dsa_allocate_extended(cache_area, size, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);
	if (DsaPointerIsValid(pointer))
		return cache_area_place + pointer;
	pg_atomic_fetch_sub_u64(&CacheState->used, size);
	return NULL;
}

static void *
cache_alloc(void *ctx, size_t size)
{
	CacheEntry *entry = ctx;
	void *memory;

	if (size > CacheState->budget)
		return NULL;
	while ((memory = cache_try_alloc(size)) == NULL)
		if (!cache_evict(entry, size))
			return NULL;
	pg_atomic_fetch_add_u64(&entry->bytes, size);
	return memory;
}

GridAllocator
cache_allocator(CacheEntry *entry)
{
	return (GridAllocator){cache_alloc, cache_free, entry, false};
}

/* ---- copies that take the place of something larger ---- */

/* ctx: the bytes that have been freed, less those that were taken. */
static void *
cache_pack_alloc(void *ctx, size_t size)
{
	dsa_pointer pointer = dsa_allocate_extended(cache_area, size, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);

	if (!DsaPointerIsValid(pointer))
		return NULL;
	*(int64 *) ctx -= (int64) size;
	return cache_area_place + pointer;
}

static void
cache_pack_free(void *ctx, void *ptr, size_t size)
{
	dsa_free(cache_area, (dsa_pointer) ((char *) ptr - cache_area_place));
	*(int64 *) ctx += (int64) size;
}

size_t
cache_pack(CacheEntry *entry, uint32 tiles, bool *more)
{
	int64 freed = 0;
	GridAllocator allocator = {cache_pack_alloc, cache_pack_free, &freed, false};

	*more = grid_pack_idle(&allocator, entry->grid, &entry->slack_at, tiles);
	Assert(freed >= 0);
	pg_atomic_fetch_sub_u64(&entry->bytes, freed);
	pg_atomic_fetch_sub_u64(&CacheState->used, freed);
	return (size_t) freed;
}

Grid *
cache_detach_grid(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	entry->grid = NULL;
	entry->states++;
	if (grid != NULL)
		pg_atomic_fetch_sub_u64(&entry->bytes, grid_bytes(grid));
	return grid;
}
