/*
 * load.c - from storage into the shared cache.
 *
 * While a process loads, others wait for it without the deadlock detector's eye on it: so it takes the locks of the
 * tables before, and waits for nothing in between. Snapshots are taken after the load has been announced: see
 * docs/ARCHITECTURE.md, "How an edit commits".
 *
 * What is loaded is built in this process's memory and copied: so it is known how much it takes before anything is
 * taken out of the cache for it, and what can never fit takes out nothing.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "journal/store/replay_find.h"
#include "am/handler/sheetlog.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

uint64
load_tile_count(const ReplayTiles *wanted)
{
	const GridRect *rect = wanted->rect;

	if (rect == NULL)
		return wanted->set == NULL ? PG_UINT64_MAX : (uint64) hash_get_num_entries(wanted->set);
	return (uint64) (rect->row1 / GRID_TILE_ROWS - rect->row0 / GRID_TILE_ROWS + 1) *
		   (rect->col1 / GRID_TILE_COLS - rect->col0 / GRID_TILE_COLS + 1);
}

/* Whether so many tiles may be wanted that they could put all others out. */
static bool
load_is_large(const ReplayTiles *wanted)
{
	return load_tile_count(wanted) >= LOAD_LARGE;
}

/* ---- what is built before it is copied ---- */

/* So many times the cache is more than what fits can take while it is built. */
#define LOAD_MEMORY 2

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

static LoadMemory
load_memory(void)
{
	return (LoadMemory){AllocSetContextCreate(CurrentMemoryContext, "pg_sheet load", ALLOCSET_DEFAULT_SIZES),
						CacheState->budget * LOAD_MEMORY};
}

static GridAllocator
load_allocator(LoadMemory *memory)
{
	return (GridAllocator){load_alloc, load_free, memory, true};
}

/* Copies what was built into the shared memory of the entry whose load this is. False when it has no room. */
static bool
load_copy(CacheEntry *entry, const GridAllocator *own, Grid *grid)
{
	GridAllocator shared = cache_allocator(entry);

	return grid_shrink(own, grid) && grid_bytes(grid) <= CacheState->budget &&
		   grid_copy(&shared, grid, &entry->loading_grid);
}

/* ---- loads ---- */

LoadResult
load_sheet(int64 sheet_id, CacheEntry *entry, const ReplayTiles *wanted, bool writer)
{
	CacheLoaded loaded = CACHE_LOAD_EMPTY;
	LoadMemory memory;
	GridAllocator own;
	Snapshot snapshot;
	ReplayLast last;
	Grid *grid;
	int64 seq = 0;

	storage_lock_for_replay();
	/* Nobody else can read it yet, and a TRUNCATE may empty it where it is. */
	if (storage_file_is_new(STORAGE_LOG_BATCH))
		return LOAD_NO_ROOM;
	if (!cache_begin_load(entry, load_is_large(wanted)))
		return cache_wait_load(entry) ? LOAD_BUSY : LOAD_NO_ROOM;
	memory = load_memory();
	own = load_allocator(&memory);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	replay_last(sheet_id, snapshot, &last);
	/* Rows that a superuser has just put in may yet be rolled back. */
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
	HTAB *set = replay_make_set();
	LoadMemory memory;
	GridAllocator own;
	Snapshot snapshot;
	CachePart part;
	Grid *grid;
	int64 seq = 0;
	bool room, there, right;

	for (uint32 i = 0; i < count; i++)
		replay_add_to_set(set, tiles[i]);
	storage_lock_for_replay();
	if (!cache_begin_part(entry, count >= LOAD_LARGE, tiles, count, &part))
	{
		hash_destroy(set);
		return cache_wait_load(entry) || part.changed ? LOAD_BUSY : LOAD_NO_ROOM;
	}
	memory = load_memory();
	own = load_allocator(&memory);
	STOP_POINT("load-part");
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	STOP_POINT("load-part-snapshot");
	grid = grid_create(&own, 1, 1);
	room = grid != NULL && replay_add_tiles(sheet_id, part.seq, snapshot, &own, grid, set, &seq) &&
		   load_copy(entry, &own, grid);
	/* What leads to this state may have gone: purged, or trimmed to a newer version. */
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
