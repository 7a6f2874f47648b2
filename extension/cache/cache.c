/*
 * cache.c - entries of the sheet cache: one for each sheet that somebody uses, found by a hash table (the directory).
 *
 * All memory is taken once, at the server's start. An entry that nobody pins is used for another sheet when all are in
 * use; the least recently pinned goes first. The memory of grids is evicted tile by tile (cache_evict.c). Nothing is
 * written back: the log is durable already.
 */
#include "postgres.h"

#include "access/transam.h"
#include "cache/cache.h"
#include "compat.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"

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

/* ---- start-up ---- */

Size
cache_shmem_size(void)
{
	Size size = MAXALIGN(sizeof(CacheShared));

	size = add_size(size, mul_size(MAXALIGN(sizeof(CacheEntry)), cache_max_sheets));
	size = add_size(size, hash_estimate_size(cache_max_sheets, sizeof(CacheSlot)));
	return add_size(size, cache_memory_size());
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
	dlist_init(&CacheState->clock);
	pg_atomic_init_u64(&CacheState->epoch_round, 0);
	pg_atomic_init_u64(&CacheState->forgotten, 0);
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
		LWLockInitialize(&entry->gate, CacheState->entry_tranche);
		ConditionVariableInit(&entry->changed);
		pg_atomic_init_u32(&entry->pins, 0);
		pg_atomic_init_u32(&entry->waiting, 0);
		pg_atomic_init_u64(&entry->bytes, 0);
		dlist_push_tail(&CacheState->free, &entry->link);
	}
}

void
cache_shmem_startup(void)
{
	HASHCTL info;
	bool found_state, found_entries;

	CacheState = ShmemInitStruct("pg_sheet cache", sizeof(CacheShared), &found_state);
	cache_entries = ShmemInitStruct("pg_sheet cache entries", sizeof(CacheEntry) * cache_max_sheets, &found_entries);
	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(CacheKey);
	info.entrysize = sizeof(CacheSlot);
	cache_directory =
		ShmemInitHash("pg_sheet cache directory", cache_max_sheets, cache_max_sheets, &info, HASH_ELEM | HASH_BLOBS);
	if (!found_state)
		cache_create_state();
	cache_memory_startup(CacheState->dsa_tranche, !found_state);
	LWLockRegisterTranche(CacheState->directory.tranche, "pg_sheet_directory");
	LWLockRegisterTranche(CacheState->entry_tranche, "pg_sheet_entry");
	LWLockRegisterTranche(CacheState->dsa_tranche, "pg_sheet_grids");
}

/* ---- entries ---- */

void
cache_clock_add(CacheEntry *entry)
{
	if (entry->clocked)
		return;
	entry->clocked = true;
	CacheState->clocked++;
	dlist_push_tail(&CacheState->clock, &entry->clock_link);
}

void
cache_clock_remove(CacheEntry *entry)
{
	if (!entry->clocked)
		return;
	entry->clocked = false;
	CacheState->clocked--;
	dlist_delete(&entry->clock_link);
}

#define CACHE_TO(state) (1 << (state))

/*
 * The states from which each state may be reached.
 *
 * CACHE_FREE, and CACHE_PLACEHOLDER from it, are set by whoever holds the directory lock and knows that nobody pins the
 * entry. All other transitions need entry->lock in exclusive mode. A grid that is detached during a load of tiles
 * leaves CACHE_LOADING, which ends with that load. A transition to the same state is allowed.
 */
static const int cache_from[CACHE_STATES] PG_USED_FOR_ASSERTS_ONLY = {
	[CACHE_FREE] = CACHE_TO(CACHE_PLACEHOLDER) | CACHE_TO(CACHE_RESIDENT),
	[CACHE_PLACEHOLDER] =
		CACHE_TO(CACHE_FREE) | CACHE_TO(CACHE_LOADING) | CACHE_TO(CACHE_RESIDENT) | CACHE_TO(CACHE_PINNED),
	[CACHE_LOADING] = CACHE_TO(CACHE_PLACEHOLDER) | CACHE_TO(CACHE_FILLING),
	[CACHE_RESIDENT] = CACHE_TO(CACHE_LOADING) | CACHE_TO(CACHE_FILLING) | CACHE_TO(CACHE_PINNED),
	[CACHE_FILLING] = CACHE_TO(CACHE_RESIDENT),
	[CACHE_PINNED] = CACHE_TO(CACHE_RESIDENT),
};

/* Also counts that a grid has come or gone: `grid` is set before. */
void
cache_set_state(CacheEntry *entry, CacheEntryState to)
{
	CacheEntryState from = entry->state;

	Assert(from == to || (cache_from[to] & CACHE_TO(from)) != 0);
	Assert(from == CACHE_FREE || to == CACHE_FREE ? LWLockHeldByMeInMode(&CacheState->directory, LW_EXCLUSIVE)
												  : LWLockHeldByMeInMode(&entry->lock, LW_EXCLUSIVE));
	Assert((entry->grid != NULL) == (to >= CACHE_RESIDENT));
	if ((from >= CACHE_RESIDENT) != (to >= CACHE_RESIDENT))
		entry->changes++;
	entry->state = to;
}

void
cache_queue_version(const CacheEntry *entry)
{
	if (entry->meta_valid)
		workqueue_report_eviction(entry->key.database, entry->key.sheet_id, entry->meta.last_seq,
								  cache_tail(&entry->meta));
}

/* Removes an entry that nobody pins. Returns its grid, which the caller frees after unlocking. Caller must hold the
 * directory lock in exclusive mode. */
static Grid *
cache_unlink(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	Assert(pg_atomic_read_u32(&entry->pins) == 0 && entry->writer_fxid == 0);
	hash_search(cache_directory, &entry->key, HASH_REMOVE, NULL);
	dlist_delete(&entry->link);
	cache_clock_remove(entry);
	entry->grid = NULL;
	cache_set_state(entry, CACHE_FREE);
	pg_atomic_write_u64(&entry->bytes, 0);
	return grid;
}

/* The least recently used entry without a pin. Caller must hold the directory lock. */
static CacheEntry *
cache_find_victim(void)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &CacheState->lru)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		if (pg_atomic_read_u32(&entry->pins) == 0)
		{
			pg_read_barrier(); /* what was changed before the last pin went */
			return entry;
		}
	}
	return NULL;
}

/* ---- pins ---- */

/* A new entry for the key. The caller frees the grid of the entry that it replaces. Caller must hold the directory lock
 * in exclusive mode. */
static CacheEntry *
cache_new_entry(const CacheKey *key, Grid **evicted)
{
	CacheEntry *entry;
	CacheSlot *slot;

	if (!dlist_is_empty(&CacheState->free))
		entry = dlist_container(CacheEntry, link, dlist_pop_head_node(&CacheState->free));
	else if ((entry = cache_find_victim()) != NULL)
	{
		cache_queue_version(entry);
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
	cache_set_state(entry, CACHE_PLACEHOLDER);
	entry->hand = 0;
	entry->skip_loads = 0;
	entry->next_skip = 0;
	entry->nonresident_edits = 0;
	entry->seq = 0;
	entry->last_fxid = 0;
	entry->meta_valid = false;
	entry->opened = false;
	entry->check = CHECK_NONE;
	dlist_push_head(&CacheState->lru, &entry->link);
	return entry;
}

CacheEntry *
cache_pin(const CacheKey *key)
{
	CacheSlot *slot;
	CacheEntry *entry;
	Grid *evicted = NULL;

	cache_memory_attach();
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
		pg_atomic_fetch_add_u32(&entry->pins, 1);
	LWLockRelease(&CacheState->directory);
	cache_free_detached(evicted);
	return entry;
}

/* Does not take the directory lock, which all writers contend for. */
void
cache_unpin(CacheEntry *entry)
{
	uint32 pins PG_USED_FOR_ASSERTS_ONLY = pg_atomic_fetch_sub_u32(&entry->pins, 1);

	Assert(pins > 0);
}

/* Reads without the entry's lock: the result may be one that a writer is just replacing. */
int64
cache_guess_seq(const CacheKey *key)
{
	const CacheSlot *slot;
	int64 seq = 0;

	LWLockAcquire(&CacheState->directory, LW_SHARED);
	slot = hash_search(cache_directory, key, HASH_FIND, NULL);
	if (slot != NULL)
		seq = slot->entry->meta_valid ? slot->entry->meta.last_seq : slot->entry->seq;
	LWLockRelease(&CacheState->directory);
	return seq;
}

/* Does not wait for the entry's lock, since the directory lock is held. */
uint32
cache_guess_cols(const CacheKey *key)
{
	CacheSlot *slot;
	uint32 cols = 0;

	cache_memory_attach();
	LWLockAcquire(&CacheState->directory, LW_SHARED);
	slot = hash_search(cache_directory, key, HASH_FIND, NULL);
	if (slot != NULL && LWLockConditionalAcquire(&slot->entry->lock, LW_SHARED))
	{
		if (slot->entry->grid != NULL)
			cols = grid_cols(slot->entry->grid);
		else if (slot->entry->meta_valid)
			cols = slot->entry->meta.cols;
		LWLockRelease(&slot->entry->lock);
	}
	LWLockRelease(&CacheState->directory);
	return cols;
}

/* ---- databases that are dropped ---- */

/* Unlinks the entries of a database that nobody pins, with their grids. Returns true if there are others. */
static bool
cache_unlink_database(Oid database, dlist_head *gone)
{
	dlist_mutable_iter iter;
	bool pinned = false;

	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	dlist_foreach_modify(iter, &CacheState->lru)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		if (entry->key.database != database)
			continue;
		if (pg_atomic_read_u32(&entry->pins) > 0)
		{
			pinned = true;
			continue;
		}
		pg_read_barrier(); /* what was changed before the last pin went */
		entry->grid = cache_unlink(entry);
		dlist_push_tail(gone, &entry->link);
	}
	LWLockRelease(&CacheState->directory);
	return pinned;
}

/* Frees unlinked entries, which no other process can find. */
static void
cache_free_entries(dlist_head *gone)
{
	dlist_iter iter;

	dlist_foreach(iter, gone)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		cache_free_detached(entry->grid);
		entry->grid = NULL;
	}
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	while (!dlist_is_empty(gone))
		dlist_push_head(&CacheState->free, dlist_pop_head_node(gone));
	LWLockRelease(&CacheState->directory);
}

/* Only an evictor can pin an entry of an unused database. Retry. */
void
cache_forget_database(Oid database)
{
	dlist_head gone = DLIST_STATIC_INIT(gone);
	bool pinned;

	cache_memory_attach();
	do
	{
		pinned = cache_unlink_database(database, &gone);
		cache_free_entries(&gone);
		if (pinned)
			pg_usleep(1000);
	} while (pinned);
}

/* ---- the entry's lock ---- */

void
cache_lock_change(CacheEntry *entry)
{
	if (LWLockConditionalAcquire(&entry->lock, LW_EXCLUSIVE))
		return;
	pg_atomic_fetch_add_u32(&entry->waiting, 1);
	LWLockAcquire(&entry->gate, LW_EXCLUSIVE);
	LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
	LWLockRelease(&entry->gate);
	pg_atomic_fetch_sub_u32(&entry->waiting, 1);
}

void
cache_lock_read(CacheEntry *entry)
{
	if (pg_atomic_read_u32(&entry->waiting) > 0)
	{
		LWLockAcquire(&entry->gate, LW_SHARED);
		LWLockRelease(&entry->gate);
	}
	LWLockAcquire(&entry->lock, LW_SHARED);
}

/* ---- grids ---- */

Grid *
cache_detach_grid(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	if (grid == NULL)
		return NULL;
	entry->grid = NULL;
	cache_set_state(entry, entry->state == CACHE_FILLING ? CACHE_LOADING : CACHE_PLACEHOLDER);
	pg_atomic_fetch_sub_u64(&entry->bytes, grid_bytes(grid));
	return grid;
}

void
cache_free_detached(Grid *grid)
{
	GridAllocator allocator = {NULL, cache_memory_give, NULL, false};

	if (grid != NULL)
		grid_free(&allocator, grid);
}

/* ---- visibility ---- */

/* Returns whether fxid, which has ended or is about to, had committed when the snapshot was taken. */
bool
cache_snapshot_sees(Snapshot snapshot, uint64 fxid)
{
	FullTransactionId next;

	if (fxid == 0)
		return true;
	next = ReadNextFullTransactionId();
	if (fxid < compat_widen_xid(snapshot->xmin, next))
		return true;
	if (fxid >= compat_widen_xid(snapshot->xmax, next))
		return false;
	return !XidInMVCCSnapshot((TransactionId) fxid, snapshot);
}
