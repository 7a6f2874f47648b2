/*
 * cache_memory.c - the memory of grids: an area of shared memory, and the budget that limits it.
 *
 * The area is an in-place DSA area of pg_sheet.cache_size, taken once at the server's start. It may not grow
 * (dsa_set_size_limit), so that /dev/shm, small in containers, is never used. The main segment has the same address in
 * all processes, and the area is its own segment 0: an address and a dsa_pointer differ by a constant, so grids hold
 * plain pointers.
 */
#include "postgres.h"

#include "cache/cache.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

static char *area_base = NULL;
static dsa_area *area = NULL; /* this process's handle */

/* More than the budget, since pieces of many sizes leave gaps: a quarter, and some for the allocator's own data and for
 * a superblock (64 kB) of each of its size classes. */
static Size
cache_area_size(void)
{
	Size budget = (Size) cache_size_kb * 1024;

	return MAXALIGN(dsa_minimum_size()) + (budget > 0 ? MAXALIGN(budget + budget / 4) + 3 * 1024 * 1024 : 0);
}

Size
cache_memory_size(void)
{
	return add_size(cache_area_size(), BLCKSZ);
}

/* Creates the area, and verifies that addresses follow from its pointers by addition. */
void
cache_memory_startup(int tranche, bool create)
{
	bool found;
	dsa_area *created;
	dsa_pointer probe;

	area_base = ShmemInitStruct("pg_sheet cache grids", cache_area_size(), &found);
	if (!create)
		return;
	created = dsa_create_in_place(area_base, cache_area_size(), tranche, NULL);
	dsa_set_size_limit(created, cache_area_size());
	dsa_pin(created);
	probe = dsa_allocate_extended(created, 64, DSA_ALLOC_NO_OOM);
	if (DsaPointerIsValid(probe))
	{
		if ((char *) dsa_get_address(created, probe) != area_base + probe)
			elog(FATAL, "pg_sheet: addresses of an in-place area are not where they are expected");
		dsa_free(created, probe);
	}
	dsa_detach(created);
}

void
cache_memory_attach(void)
{
	MemoryContext old;

	if (area != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach_in_place(area_base, NULL);
	MemoryContextSwitchTo(old);
	dsa_pin_mapping(area);
	on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(area_base));
}

static void *
cache_area_alloc(size_t size)
{
	dsa_pointer pointer = dsa_allocate_extended(area, size, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);

	return DsaPointerIsValid(pointer) ? area_base + pointer : NULL;
}

static void
cache_area_free(void *ptr)
{
	dsa_free(area, (dsa_pointer) ((char *) ptr - area_base));
}

/* The budget is never exceeded, not even for a moment. */
static bool
cache_take_budget(size_t size)
{
	uint64 used = pg_atomic_read_u64(&CacheState->used);

	do
	{
		if (size > CacheState->budget - used)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&CacheState->used, &used, used + size));
	return true;
}

void *
cache_memory_take(CacheEntry *entry, size_t size)
{
	void *memory;

	if (!cache_take_budget(size))
		return NULL;
	memory = cache_area_alloc(size);
	if (memory == NULL)
		pg_atomic_fetch_sub_u64(&CacheState->used, size);
	else
		pg_atomic_fetch_add_u64(&entry->bytes, size);
	return memory;
}

void
cache_memory_give(void *ctx, void *ptr, size_t size)
{
	CacheEntry *entry = ctx;

	cache_area_free(ptr);
	pg_atomic_fetch_sub_u64(&CacheState->used, size);
	if (entry != NULL)
		pg_atomic_fetch_sub_u64(&entry->bytes, size);
}

static void *
cache_replacing_alloc(void *ctx, size_t size)
{
	void *memory = cache_area_alloc(size);

	if (memory != NULL)
		*(int64 *) ctx -= (int64) size;
	return memory;
}

static void
cache_replacing_free(void *ctx, void *ptr, size_t size)
{
	cache_area_free(ptr);
	*(int64 *) ctx += (int64) size;
}

GridAllocator
cache_memory_replacing(int64 *balance)
{
	*balance = 0;
	return (GridAllocator){cache_replacing_alloc, cache_replacing_free, balance, false};
}

void
cache_memory_settle(CacheEntry *entry, int64 balance)
{
	Assert(balance >= 0);
	pg_atomic_fetch_sub_u64(&entry->bytes, balance);
	pg_atomic_fetch_sub_u64(&CacheState->used, balance);
}
