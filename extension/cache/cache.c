/*
 * cache.c - grids of sheets in shared memory.
 *
 * All memory is taken once, at the server's start: the entries, the directory (a hash table), and an in-place DSA area
 * of pg_sheet.cache_size for the grids. The area may not grow (dsa_set_size_limit), so that /dev/shm, small in
 * containers, is never touched. The main segment has the same address in all processes, and the area is its own segment
 * 0: an address and a dsa_pointer differ by a constant, so grids hold plain pointers.
 *
 * Eviction takes the least recently used entry that nobody pins, out of the directory and under its lock only; whoever
 * holds an entry's address has it pinned, so the entry's own lock is not needed for that. Nothing is written: the log
 * is durable already.
 */
#include "postgres.h"

#include "access/transam.h"
#include "cache.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

/* A load that finds no room has put all others out of the cache: it is tried again ever more rarely. */
#define CACHE_SKIP_FIRST 32
#define CACHE_SKIP_MOST	 16384

typedef struct CacheSlot
{
	CacheKey key;
	CacheEntry *entry;
} CacheSlot;

CacheShared *CacheState = NULL;
int cache_size_kb = 131072;
int cache_max_sheets = 8192;

static HTAB *cache_directory = NULL;
static CacheEntry *cache_entries = NULL;
static char *cache_area_place = NULL;
static dsa_area *cache_area = NULL;		 /* this process's handle */
static CacheEntry *reader_entry = NULL;	 /* pinned by cache_pin_reader */
static CacheEntry *loading_entry = NULL; /* of this process's load */

/* ---- start-up ---- */

static Size
cache_area_size(void)
{
	return Max((Size) cache_size_kb * 1024, MAXALIGN(dsa_minimum_size()));
}

Size
cache_shmem_size(void)
{
	Size size = MAXALIGN(sizeof(CacheShared));

	size = add_size(size, mul_size(MAXALIGN(sizeof(CacheEntry)), cache_max_sheets));
	size = add_size(size, hash_estimate_size(cache_max_sheets, sizeof(CacheSlot)));
	return add_size(size, add_size(cache_area_size(), BLCKSZ));
}

/* The area, and the proof that addresses can be had from its pointers by addition. */
static void
cache_create_area(void)
{
	dsa_area *area = dsa_create_in_place(cache_area_place, cache_area_size(), CacheState->dsa_tranche, NULL);
	dsa_pointer probe;

	dsa_set_size_limit(area, cache_area_size());
	dsa_pin(area);
	probe = dsa_allocate_extended(area, 64, DSA_ALLOC_NO_OOM);
	if (DsaPointerIsValid(probe))
	{
		if ((char *) dsa_get_address(area, probe) != cache_area_place + probe)
			elog(FATAL, "pg_sheet: addresses of an in-place area are not where they are expected");
		dsa_free(area, probe);
	}
	dsa_detach(area);
}

static void
cache_create_state(void)
{
	memset(CacheState, 0, sizeof(CacheShared));
	LWLockInitialize(&CacheState->directory, LWLockNewTrancheId());
	CacheState->entry_tranche = LWLockNewTrancheId();
	CacheState->dsa_tranche = LWLockNewTrancheId();
	CacheState->budget = (uint64) cache_size_kb * 1024;
	dlist_init(&CacheState->lru);
	dlist_init(&CacheState->free);
	pg_atomic_init_u64(&CacheState->epoch_round, 0);
	pg_atomic_init_u64(&CacheState->used, 0);
	pg_atomic_init_u64(&CacheState->hits, 0);
	pg_atomic_init_u64(&CacheState->misses, 0);
	pg_atomic_init_u64(&CacheState->loads, 0);
	pg_atomic_init_u64(&CacheState->load_failures, 0);
	pg_atomic_init_u64(&CacheState->evictions, 0);
	pg_atomic_init_u64(&CacheState->waits, 0);
	for (int i = 0; i < CACHE_PRIVATE_REASONS; i++)
		pg_atomic_init_u64(&CacheState->private_reads[i], 0);
	memset(cache_entries, 0, sizeof(CacheEntry) * cache_max_sheets);
	for (int i = 0; i < cache_max_sheets; i++)
	{
		CacheEntry *entry = &cache_entries[i];

		LWLockInitialize(&entry->lock, CacheState->entry_tranche);
		ConditionVariableInit(&entry->changed);
		pg_atomic_init_u64(&entry->bytes, 0);
		dlist_push_tail(&CacheState->free, &entry->link);
	}
}

void
cache_shmem_startup(void)
{
	HASHCTL info;
	bool found_state, found_entries, found_area;

	/* The hook runs again after a crash: nothing of before may survive in this process. */
	cache_area = NULL;
	reader_entry = loading_entry = NULL;

	CacheState = ShmemInitStruct("pg_sheet cache", sizeof(CacheShared), &found_state);
	cache_entries = ShmemInitStruct("pg_sheet cache entries", sizeof(CacheEntry) * cache_max_sheets, &found_entries);
	cache_area_place = ShmemInitStruct("pg_sheet cache grids", cache_area_size(), &found_area);
	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(CacheKey);
	info.entrysize = sizeof(CacheSlot);
	cache_directory =
		ShmemInitHash("pg_sheet cache directory", cache_max_sheets, cache_max_sheets, &info, HASH_ELEM | HASH_BLOBS);
	if (!found_state)
	{
		cache_create_state();
		cache_create_area();
	}
	LWLockRegisterTranche(CacheState->directory.tranche, "pg_sheet_directory");
	LWLockRegisterTranche(CacheState->entry_tranche, "pg_sheet_entry");
	LWLockRegisterTranche(CacheState->dsa_tranche, "pg_sheet_grids");
}

/* May raise errors: called before anything is held. */
static void
cache_attach_area(void)
{
	MemoryContext old;

	if (cache_area != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	cache_area = dsa_attach_in_place(cache_area_place, NULL);
	MemoryContextSwitchTo(old);
	dsa_pin_mapping(cache_area);
	on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(cache_area_place));
}

/* ---- memory ---- */

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
	return (GridAllocator){NULL, cache_free, NULL};
}

/* Takes an entry that nobody pins out of the directory (which is locked), and gives its grid to be freed later. */
static Grid *
cache_unlink(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	Assert(entry->pins == 0 && entry->used && !entry->loading && entry->writer_fxid == 0);
	if (entry->meta_valid)
		ckptqueue_note_eviction(entry->key.database, entry->key.sheet_id, entry->meta.last_seq,
								cache_tail(&entry->meta));
	hash_search(cache_directory, &entry->key, HASH_REMOVE, NULL);
	dlist_delete(&entry->link);
	entry->used = false;
	entry->grid = NULL;
	pg_atomic_write_u64(&entry->bytes, 0);
	return grid;
}

/* The least recently used entry without a pin; with_grid: one that has a grid. Directory locked. */
static CacheEntry *
cache_find_victim(bool with_grid)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &CacheState->lru)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		if (entry->pins == 0 && (!with_grid || entry->grid != NULL))
			return entry;
	}
	return NULL;
}

void
cache_free_detached(Grid *grid)
{
	GridAllocator allocator = cache_detached_allocator();

	if (grid != NULL)
		grid_free(&allocator, grid);
}

/* Gives the memory of one sheet back. */
static bool
cache_evict_one(void)
{
	CacheEntry *victim;
	Grid *grid = NULL;

	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	victim = cache_find_victim(true);
	if (victim != NULL)
	{
		grid = cache_unlink(victim);
		dlist_push_head(&CacheState->free, &victim->link);
	}
	LWLockRelease(&CacheState->directory);
	if (victim == NULL)
		return false;
	pg_atomic_fetch_add_u64(&CacheState->evictions, 1);
	cache_free_detached(grid);
	return true;
}

static void *
cache_try_alloc(size_t size)
{
	dsa_pointer pointer = InvalidDsaPointer;

	if (pg_atomic_add_fetch_u64(&CacheState->used, size) <= CacheState->budget)
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
		if (!cache_evict_one())
			return NULL;
	pg_atomic_fetch_add_u64(&entry->bytes, size);
	return memory;
}

GridAllocator
cache_allocator(CacheEntry *entry)
{
	return (GridAllocator){cache_alloc, cache_free, entry};
}

Grid *
cache_detach_grid(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	entry->grid = NULL;
	pg_atomic_write_u64(&entry->bytes, 0);
	return grid;
}

/* ---- pins ---- */

/* A clean entry for the key; the grid of the one that had to go is freed by the caller. Directory locked. */
static CacheEntry *
cache_new_entry(const CacheKey *key, Grid **evicted)
{
	CacheEntry *entry;
	CacheSlot *slot;

	if (!dlist_is_empty(&CacheState->free))
		entry = dlist_container(CacheEntry, link, dlist_pop_head_node(&CacheState->free));
	else if ((entry = cache_find_victim(false)) != NULL)
	{
		*evicted = cache_unlink(entry);
		pg_atomic_fetch_add_u64(&CacheState->evictions, 1);
	}
	else
		return NULL;
	slot = hash_search(cache_directory, key, HASH_ENTER_NULL, NULL);
	if (slot == NULL)
	{
		dlist_push_head(&CacheState->free, &entry->link);
		return NULL;
	}
	slot->entry = entry;
	entry->key = *key;
	entry->used = true;
	entry->pins = 0;
	entry->skip_loads = 0;
	entry->next_skip = CACHE_SKIP_FIRST;
	entry->seq = 0;
	entry->last_fxid = 0;
	entry->meta_valid = false;
	dlist_push_head(&CacheState->lru, &entry->link);
	return entry;
}

CacheEntry *
cache_pin(const CacheKey *key)
{
	CacheSlot *slot;
	CacheEntry *entry;
	Grid *evicted = NULL;

	cache_attach_area();
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	slot = hash_search(cache_directory, key, HASH_FIND, NULL);
	if (slot != NULL)
	{
		entry = slot->entry;
		dlist_move_head(&CacheState->lru, &entry->link);
	}
	else
		entry = cache_new_entry(key, &evicted);
	if (entry != NULL)
		entry->pins++;
	LWLockRelease(&CacheState->directory);
	cache_free_detached(evicted);
	return entry;
}

void
cache_unpin(CacheEntry *entry)
{
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	Assert(entry->pins > 0);
	entry->pins--;
	LWLockRelease(&CacheState->directory);
}

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

/* The core has released all LWLocks and condition variables already. The load comes first: it needs the pin. */
void
cache_release_at_abort(void)
{
	if (loading_entry != NULL)
		cache_end_load(loading_entry, CACHE_LOAD_FAILED, 0, 0);
	if (reader_entry != NULL)
		cache_unpin_reader(reader_entry);
}

/* ---- loads ---- */

bool
cache_begin_load(CacheEntry *entry, bool insist)
{
	bool begun;

	Assert(loading_entry == NULL);
	LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
	begun = !entry->loading && entry->grid == NULL && entry->writer_fxid == 0 && CacheState->budget > 0;
	if (begun && entry->skip_loads > 0 && !insist)
	{
		entry->skip_loads--;
		begun = false;
	}
	if (begun)
	{
		entry->loading = true;
		loading_entry = entry;
	}
	LWLockRelease(&entry->lock);
	return begun;
}

void
cache_end_load(CacheEntry *entry, CacheLoaded loaded, int64 seq, uint64 last_fxid)
{
	Grid *failed = NULL;

	Assert(loading_entry == entry);
	LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
	if (loaded == CACHE_LOADED)
	{
		entry->grid = entry->loading_grid;
		entry->seq = seq;
		entry->last_fxid = last_fxid;
		entry->skip_loads = 0;
		entry->next_skip = CACHE_SKIP_FIRST;
	}
	else
	{
		failed = entry->loading_grid;
		if (loaded == CACHE_LOAD_NO_ROOM)
		{
			entry->skip_loads = entry->next_skip;
			entry->next_skip = Min(entry->next_skip * 2, CACHE_SKIP_MOST);
		}
		pg_atomic_write_u64(&entry->bytes, 0);
	}
	entry->loading_grid = NULL;
	entry->loading = false;
	loading_entry = NULL;
	LWLockRelease(&entry->lock);
	if (loaded == CACHE_LOADED || loaded == CACHE_LOAD_NO_ROOM)
		pg_atomic_fetch_add_u64(loaded == CACHE_LOADED ? &CacheState->loads : &CacheState->load_failures, 1);
	ConditionVariableBroadcast(&entry->changed);
	cache_free_detached(failed);
}

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

/* ---- visibility ---- */

/* Ids on disk are at most 2^32 behind the next one. One that VACUUM froze is visible to all, whatever this says. */
static uint64
cache_widen(TransactionId xid, FullTransactionId next)
{
	uint32 epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

uint64
cache_full_xid(TransactionId xid)
{
	if (!TransactionIdIsNormal(xid))
		return 0;
	return cache_widen(xid, ReadNextFullTransactionId());
}

/* fxid has ended, or is about to; was it committed before the snapshot was taken? */
bool
cache_snapshot_sees(Snapshot snapshot, uint64 fxid)
{
	FullTransactionId next;

	if (fxid == 0)
		return true;
	next = ReadNextFullTransactionId();
	if (fxid < cache_widen(snapshot->xmin, next))
		return true;
	if (fxid >= cache_widen(snapshot->xmax, next))
		return false;
	return !XidInMVCCSnapshot((TransactionId) fxid, snapshot);
}
