/*
 * load.c - from storage into the shared cache.
 *
 * Other processes wait for a load without deadlock detection. So the loader takes all locks on tables first, and waits
 * for nothing after that. It takes its snapshot after the load was announced (docs/design/cache.md, invariant 2).
 *
 * The grid is built in this process's memory and then copied. So its size is known before anything is evicted for it,
 * and a grid that can never fit evicts nothing.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "journal/store/history.h"
#include "am/handler/sheetlog.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* ---- the private memory of a load ---- */

/* A grid that fits into the cache takes less than this many times the cache while it is built. */
#define LOAD_MEMORY 2

/*
 * A process that loads keeps up to LOAD_KEEP bytes of freed memory for its next load or batch. By default malloc()
 * returns most of it to the kernel, and its pages are faulted in again: a third more CPU for sheet.set_range() of
 * 20,000 cells. What is larger than LOAD_BLOCK, the largest block of a memory context, is mapped on its own and
 * returned when it is freed.
 */
#define LOAD_KEEP  (16 << 20)
#define LOAD_BLOCK (8 << 20)

typedef struct LoadMemory
{
	MemoryContext context;
	uint64 left;
} LoadMemory;

static void *
load_alloc(void *ctx, size_t size)
{
	LoadMemory *memory = ctx;

	if (size > memory->left)
		return NULL;
	memory->left -= size;
	return MemoryContextAllocHuge(memory->context, size);
}

static void
load_free(void *ctx, void *ptr, size_t size)
{
	LoadMemory *memory = ctx;

	memory->left += size;
	pfree(ptr);
}

static void
load_keep_memory(void)
{
#ifdef __GLIBC__
	static bool done = false;

	if (!done)
	{
		mallopt(M_MMAP_THRESHOLD, LOAD_BLOCK);
		mallopt(M_TRIM_THRESHOLD, LOAD_KEEP);
		done = true;
	}
#endif
}

static GridAllocator
load_begin_memory(LoadMemory *memory)
{
	load_keep_memory();
	memory->context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet load", ALLOCSET_DEFAULT_SIZES);
	memory->left = CacheState->budget * LOAD_MEMORY;
	return (GridAllocator){load_alloc, load_free, memory, true};
}

/* Copies the grid into the entry's shared memory. False if there is no room. */
static bool
load_copy(CacheEntry *entry, const GridAllocator *own, Grid *grid)
{
	GridAllocator shared = cache_allocator(entry);

	return grid_shrink(own, grid) && grid_bytes(grid) <= CacheState->budget &&
		   grid_copy(&shared, grid, &entry->loading_grid);
}

/* ---- loads ---- */

LoadResult
load_sheet(int64 sheet_id, CacheEntry *entry, const CellSetWanted *wanted, bool writer)
{
	CacheLoaded loaded = CACHE_LOAD_EMPTY;
	LoadMemory memory;
	GridAllocator own;
	Snapshot snapshot;
	HistoryLast last;
	Grid *grid;
	int64 seq = 0;

	storage_lock_for_replay();
	/* A file of this transaction: nobody else can read it yet, and TRUNCATE may empty it in place. */
	if (storage_file_is_new(STORAGE_LOG_BATCH))
		return LOAD_NO_ROOM;
	if (!cache_begin_load(entry, cellset_count_wanted(wanted) >= LOAD_LARGE))
		return cache_wait_load(entry) ? LOAD_BUSY : LOAD_NO_ROOM;
	own = load_begin_memory(&memory);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	history_last_edit(sheet_id, snapshot, &last);
	/* Rows that a superuser has inserted in this transaction may be rolled back. */
	if ((last.found || writer) && !TransactionIdIsCurrentTransactionId((TransactionId) last.writer_fxid))
		loaded = replay_sheet_tiles(sheet_id, wanted, snapshot, &own, &grid, &seq) && load_copy(entry, &own, grid)
					 ? CACHE_LOADED
					 : CACHE_LOAD_NO_ROOM;
	UnregisterSnapshot(snapshot);
	MemoryContextDelete(memory.context);
	cache_end_load(entry, loaded, seq, last.writer_fxid);
	return loaded == CACHE_LOADED ? LOAD_DONE : loaded == CACHE_LOAD_EMPTY ? LOAD_EMPTY : LOAD_NO_ROOM;
}

LoadResult
load_tiles(int64 sheet_id, CacheEntry *entry, const GridTileNo *tiles, uint32 count)
{
	HTAB *set = cellset_create();
	LoadMemory memory;
	GridAllocator own;
	Snapshot snapshot;
	CachePart part;
	Grid *grid;
	int64 seq = 0;
	bool room, there, right;

	for (uint32 i = 0; i < count; i++)
		cellset_add_tile(set, tiles[i]);
	storage_lock_for_replay();
	if (!cache_begin_part(entry, count >= LOAD_LARGE, tiles, count, &part))
	{
		hash_destroy(set);
		return cache_wait_load(entry) || part.changed ? LOAD_BUSY : LOAD_NO_ROOM;
	}
	own = load_begin_memory(&memory);
	STOP_POINT("load-part");
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	STOP_POINT("load-part-snapshot");
	grid = grid_create(&own, 1, 1);
	room = grid != NULL && replay_add_tiles(sheet_id, part.seq, snapshot, &own, grid, set, &seq) &&
		   load_copy(entry, &own, grid);
	/* The sheet may have been purged, or trimmed to a newer version. */
	there = room && seq == part.seq;
	UnregisterSnapshot(snapshot);
	MemoryContextDelete(memory.context);
	right = cache_end_part(entry, &part,
						   !room   ? CACHE_LOAD_NO_ROOM
						   : there ? CACHE_LOADED
								   : CACHE_LOAD_FAILED,
						   tiles, count);
	hash_destroy(set);
	return !room || !there ? LOAD_NO_ROOM : right ? LOAD_DONE : LOAD_BUSY;
}
