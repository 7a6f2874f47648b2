/*
 * cache.c - grids of sheets in shared memory.
 *
 * All memory is taken once, at the server's start: the entries, the directory (a hash table), and an in-place DSA area
 * of pg_sheet.cache_size for the grids. The area may not grow (dsa_set_size_limit), so that /dev/shm, small in
 * containers, is never touched. The main segment has the same address in all processes, and the area is its own segment
 * 0: an address and a dsa_pointer differ by a constant, so grids hold plain pointers.
 *
 * An entry that nobody pins is used for another sheet when all are in use; the least recently used goes first. The
 * memory of grids is given back tile by tile (cache_evict.c). Nothing is written: the log is durable already. The
 * entries of a database go with it (cache_forget_database).
 */
#include "postgres.h"

#include "access/transam.h"
#include "cache/cache_private.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
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
static CacheEntry *reader_entry = NULL; /* pinned by cache_pin_reader */

/* ---- start-up ---- */

/* More than the budget, since pieces of many sizes leave gaps: a quarter, and some for the allocator's own books and
 * for a superblock (64 kB) of each of its size classes. */
static Size
cache_area_size(void)
{
	Size budget = (Size) cache_size_kb * 1024;

	return MAXALIGN(dsa_minimum_size()) + (budget > 0 ? MAXALIGN(budget + budget / 4) + 3 * 1024 * 1024 : 0);
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
	dlist_init(&CacheState->slack);
	pg_atomic_init_u64(&CacheState->epoch_round, 0);
	pg_atomic_init_u64(&CacheState->forgotten, 0);
	pg_atomic_init_u64(&CacheState->used, 0);
	pg_atomic_init_u64(&CacheState->asked, 0);
	pg_atomic_init_u64(&CacheState->hits, 0);
	pg_atomic_init_u64(&CacheState->misses, 0);
	pg_atomic_init_u64(&CacheState->loads, 0);
	pg_atomic_init_u64(&CacheState->load_failures, 0);
	pg_atomic_init_u64(&CacheState->evictions, 0);
	pg_atomic_init_u64(&CacheState->clock, 0);
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
	bool found_state, found_entries, found_area;

	/* The hook runs again after a crash: nothing of before may survive in this process. */
	cache_area = NULL;
	reader_entry = NULL;
	cache_forget_load();

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
void
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

/* ---- entries ---- */

/* Opening the sheet again should be cheap. */
void
cache_note_eviction(const CacheEntry *entry)
{
	if (entry->meta_valid)
		workqueue_report_eviction(entry->key.database, entry->key.sheet_id, entry->meta.last_seq,
								  cache_tail(&entry->meta));
}

/* Takes an entry that nobody pins out of the directory (which is locked), and gives its grid to be freed later. */
static Grid *
cache_unlink(CacheEntry *entry)
{
	Grid *grid = entry->grid;

	Assert(pg_atomic_read_u32(&entry->pins) == 0 && entry->used && !entry->loading && entry->writer_fxid == 0);
	hash_search(cache_directory, &entry->key, HASH_REMOVE, NULL);
	dlist_delete(&entry->link);
	cache_unqueue(entry);
	cache_unqueue_slack(entry);
	entry->used = false;
	entry->grid = NULL;
	pg_atomic_write_u64(&entry->bytes, 0);
	return grid;
}

/* The least recently used entry without a pin. Directory locked. */
static CacheEntry *
cache_find_victim(void)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &CacheState->lru)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		if (pg_atomic_read_u32(&entry->pins) == 0)
		{
			pg_read_barrier(); /* what was done to it before the last pin went */
			return entry;
		}
	}
	return NULL;
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
	else if ((entry = cache_find_victim()) != NULL)
	{
		cache_note_eviction(entry);
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
	entry->skip_loads = 0;
	entry->next_skip = 0;
	entry->kept = false;
	entry->slack_at = 0;
	entry->passed = 0;
	entry->missed = 0;
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
		pg_atomic_fetch_add_u32(&entry->pins, 1);
	LWLockRelease(&CacheState->directory);
	cache_free_detached(evicted);
	return entry;
}

/* Without the directory's lock, for which all who edit would wait once more. */
void
cache_unpin(CacheEntry *entry)
{
	uint32 pins PG_USED_FOR_ASSERTS_ONLY = pg_atomic_fetch_sub_u32(&entry->pins, 1);

	Assert(pins > 0);
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

/* Read without the entry's lock: a writer may just change it. */
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

/* The entry's lock is not waited for, since the directory's is held; a grid that is being changed tells nothing. */
uint32
cache_guess_cols(const CacheKey *key)
{
	CacheSlot *slot;
	uint32 cols = 0;

	cache_attach_area();
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

/* The core has released all LWLocks and condition variables already. The load comes first: it needs the pin. */
void
cache_release_at_abort(void)
{
	cache_abort_load();
	if (reader_entry != NULL)
		cache_unpin_reader(reader_entry);
}

/* ---- databases that are dropped ---- */

/* Takes out the entries of a database that nobody pins, with their grids. True when there are others. */
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
		pg_read_barrier(); /* what was done to it before the last pin went */
		entry->grid = cache_unlink(entry);
		dlist_push_tail(gone, &entry->link);
	}
	LWLockRelease(&CacheState->directory);
	return pinned;
}

/* Gives back what was taken out. Only we know of these entries. */
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

/* Who pins an entry of a database in which nobody is takes from it what others have no room for, for a moment. */
void
cache_forget_database(Oid database)
{
	dlist_head gone = DLIST_STATIC_INIT(gone);
	bool pinned;

	cache_attach_area();
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
