/*
 * read.c - the cells that the caller's snapshot sees.
 *
 * From the shared grid if it is exactly what the snapshot sees, else rebuilt privately from the newest version and the
 * batches after it. The grid is right for a snapshot that sees its last transaction and does not see the transaction
 * that is writing (docs/design/cache.md, invariant 1). The visibility check and the reading happen while the entry's
 * lock is held.
 *
 * On a standby: replayed commits call no callbacks, so shared memory does not learn of changes there. Therefore a
 * standby never uses the cache (read_may_use_cache); it pins no entries, so it queues no sheets for a check or a
 * version (recheck.c); it refuses writers (writer_require_writable) and has nothing to publish (follow.c). Promotion
 * counts as a crash of the server: sheets are checked when they are opened next.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "cache/cache.h"
#include "journal/store/recheck.h"
#include "journal/journal.h"
#include "journal/replay/load.h"
#include "miscadmin.h"
#include "journal/read/read.h"
#include "journal/replay/replay.h"
#include "am/handler/sheetlog.h"
#include "journal/store/sheetmeta.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"

#define READ_TILES 64			 /* non-resident tiles that are listed without allocating */
#define READ_CELLS 64			 /* passed to the sink at once: meanwhile the processor fetches their contents */
#define READ_SLICE 65536		 /* cells, about, while the entry's lock is held: half a millisecond */
#define READ_END   PG_UINT32_MAX /* no row is left */

typedef struct ReadCall
{
	int64 sheet_id;
	GridRect rect;
	bool fresh;
	JournalView *view;
	const JournalSink *sink;
} ReadCall;

/* Tiles of the rectangle that are non-resident. */
typedef struct ReadNonResident
{
	uint32 count, room;
	GridTileNo *tiles;
	GridTileNo few[READ_TILES];
} ReadNonResident;

/* How many of the cells are in the row. */
static uint32
read_count_row(const GridCell *cells, uint32 count, uint32 row)
{
	uint32 same = 0;

	while (same < count && cells[same].row == row)
		same++;
	return same;
}

/* Passes the cells from `row` on to the sink: `most` cells, and the rest of the row of the last one. Returns the row to
 * continue with. */
static uint32
read_some_rows(const ReadCall *call, const Grid *grid, uint32 row, uint64 most)
{
	const JournalSink *sink = call->sink;
	GridCell cells[READ_CELLS];
	uint64 given = 0;
	GridScan scan;
	uint32 count;

	grid_view_init(&scan, grid, grid_maps(grid), row, call->rect.col0, call->rect.row1, call->rect.col1);
	while ((count = grid_scan_some(&scan, cells, READ_CELLS)) > 0)
	{
		uint32 taken = given < most ? count : read_count_row(cells, count, row);

		if (taken > 0)
			sink->cells(sink->arg, cells, taken);
		if (taken < count)
			return cells[taken].row;
		given += taken;
		row = cells[taken - 1].row;
	}
	return READ_END;
}

/* The same from the first row on; begins the sink and sets the view. */
static uint32
read_begin(const ReadCall *call, const Grid *grid, int64 seq, uint64 most)
{
	call->view->seq = seq;
	call->view->rows = grid_rows(grid);
	call->view->cols = grid_cols(grid);
	if (call->sink == NULL)
		return READ_END;
	call->sink->begin(call->sink->arg);
	if (call->sink->maps != NULL)
		call->sink->maps(call->sink->arg, grid_maps(grid));
	return read_some_rows(call, grid, call->rect.row0, most);
}

Snapshot
read_snapshot(bool fresh)
{
	if (!fresh || IsInParallelMode())
		return GetActiveSnapshot();
	return IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot();
}

/* The set of the tiles of the rectangle; NULL if there are many. */
static HTAB *
read_tile_set(const ReadCall *call, const LineMaps *maps)
{
	HTAB *set = cellset_create();
	LineMapsParts parts;
	GridRect part;
	uint64 count = 0;

	line_maps_parts_init(&parts, maps, &call->rect);
	while (line_maps_parts_next(&parts, &part))
	{
		CellSetWanted wanted = {.rect = &part};

		count += cellset_count_wanted(&wanted);
		if (count >= LOAD_LARGE)
			return NULL;
		for (uint32 row = part.row0 / GRID_TILE_ROWS; row <= part.row1 / GRID_TILE_ROWS; row++)
			for (uint32 col = part.col0 / GRID_TILE_COLS; col <= part.col1 / GRID_TILE_COLS; col++)
				cellset_add_tile(set, (GridTileNo){row, col});
	}
	return set;
}

/*
 * The tiles of the rectangle only, if there are few; false if there are many. Which ones they are depends on the row
 * map and column map, which are known only after reading the log. They are mostly the identity; if not, the log is read
 * again.
 */
static bool
read_some_tiles(const ReadCall *call, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq)
{
	const LineMaps *maps = NULL;

	*grid = grid_create(allocator, 1, 1);
	for (;;)
	{
		HTAB *set = read_tile_set(call, maps);

		if (set == NULL)
			return false;
		(void) replay_add_tiles(call->sheet_id, PG_INT64_MAX, snapshot, allocator, *grid, set, seq);
		if (maps != NULL || grid_maps(*grid) == NULL)
			return true;
		maps = grid_maps(*grid);
		*grid = grid_create(allocator, 1, 1);
	}
}

static Grid *
read_rebuild(const ReadCall *call, Snapshot snapshot, int64 *seq)
{
	GridAllocator allocator = journal_context_allocator();
	Grid *grid;

	if (read_some_tiles(call, snapshot, &allocator, &grid, seq))
		return grid;
	return replay_sheet_privately(call->sheet_id, snapshot, seq);
}

static void
read_privately(const ReadCall *call)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "pg_sheet private grid", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Snapshot snapshot = RegisterSnapshot(read_snapshot(call->fresh));
	Grid *grid;
	int64 seq;

	grid = read_rebuild(call, snapshot, &seq);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	(void) read_begin(call, grid, seq, PG_UINT64_MAX);
	MemoryContextDelete(context);
}

typedef enum ReadStep
{
	READ_DONE,
	READ_LOAD,		  /* the entry is a placeholder */
	READ_LOAD_TILES,  /* some wanted tiles are non-resident */
	READ_WAIT_LOAD,	  /* another process loads */
	READ_WAIT_WRITER, /* a writer that the snapshot sees has not published yet */
	READ_OVERTAKEN,	  /* the grid has changed between two slices */
	READ_PRIVATE
} ReadStep;

/*
 * A large read releases the lock between slices, so that writers need not wait for all of it. The first slice has found
 * that the grid is what the snapshot sees. That stays true while it is the same grid in the same state, which
 * entry->changes identifies: a transaction that appends meanwhile is not visible to the snapshot, and changes the grid
 * only when it publishes. Tiles may be evicted or loaded; none that is still wanted may be non-resident.
 * Caller must hold entry->lock, which is held on return.
 */
static ReadStep
read_slices(const ReadCall *call, CacheEntry *entry, uint32 row)
{
	uint64 changes = entry->changes;
	GridRect rest = call->rect;
	GridTileNo unused;

	while (row != READ_END)
	{
		LWLockRelease(&entry->lock);
		STOP_POINT("read-slice");
		CHECK_FOR_INTERRUPTS();
		cache_lock_read(entry);
		rest.row0 = row;
		if (entry->changes != changes ||
			grid_list_nonresident(entry->grid, grid_maps(entry->grid), &rest, &unused, 1) > 0)
			return READ_OVERTAKEN;
		row = read_some_rows(call, entry->grid, row, READ_SLICE);
	}
	return READ_DONE;
}

/* Caller must hold entry->lock; the entry must have a grid. */
static ReadStep
read_try_grid(const ReadCall *call, CacheEntry *entry, bool slices, ReadNonResident *absent, CachePrivate *reason)
{
	Snapshot snapshot = read_snapshot(call->fresh);

	*reason = CACHE_PRIVATE_OLD_SNAPSHOT;
	if (!cache_snapshot_sees(snapshot, entry->last_fxid))
		return READ_PRIVATE;
	if (entry->writer_fxid != 0 && cache_snapshot_sees(snapshot, entry->writer_fxid))
		return READ_WAIT_WRITER; /* it has ended, and is about to publish or to withdraw */
	absent->count =
		grid_list_nonresident(entry->grid, grid_maps(entry->grid), &call->rect, absent->tiles, absent->room);
	if (absent->count > 0)
		return cache_is_loading(entry) ? READ_WAIT_LOAD : READ_LOAD_TILES;
	grid_touch(entry->grid, grid_maps(entry->grid), &call->rect);
	return read_slices(call, entry, read_begin(call, entry->grid, entry->seq, slices ? READ_SLICE : PG_UINT64_MAX));
}

/* Tries to read the entry once. */
static ReadStep
read_try(const ReadCall *call, CacheEntry *entry, bool slices, uint64 *writer, ReadNonResident *absent,
		 CachePrivate *reason)
{
	ReadStep step = READ_PRIVATE;

	cache_lock_read(entry);
	*writer = entry->writer_fxid;
	if (*writer != 0 && TransactionIdIsCurrentTransactionId((TransactionId) *writer))
		*reason = CACHE_PRIVATE_OWN_EDITS;
	else if (entry->grid != NULL)
		step = read_try_grid(call, entry, slices, absent, reason);
	else if (cache_is_loading(entry))
		step = READ_WAIT_LOAD;
	else
	{
		*reason = CACHE_PRIVATE_WRITER;
		step = *writer != 0 ? READ_PRIVATE : READ_LOAD;
	}
	LWLockRelease(&entry->lock);
	return step;
}

/* Loads what read_try() has found non-resident. False, with the reason, if that is not possible. */
static bool
read_load(const ReadCall *call, CacheEntry *entry, ReadStep step, ReadNonResident *absent, CachePrivate *reason)
{
	CellSetWanted wanted = {.rect = &call->rect};
	LoadResult result;

	*reason = CACHE_PRIVATE_NO_ROOM;
	if (IsInParallelMode() || sheetlog_has_deleted())
		return false;
	if (step == READ_LOAD)
		result = load_sheet(call->sheet_id, entry, &wanted, false);
	else if (absent->count > absent->room)
	{
		absent->room = absent->count * 2;
		absent->tiles = palloc(sizeof(GridTileNo) * absent->room);
		return true;
	}
	else
		result = load_tiles(call->sheet_id, entry, absent->tiles, absent->count);
	if (result == LOAD_EMPTY)
		*reason = CACHE_PRIVATE_EMPTY;
	return result == LOAD_DONE || result == LOAD_BUSY;
}

/* Loads whose tiles may be evicted again before they are read. */
#define READ_LOADS_MAX 10
/* After so many overtaken attempts a large read holds the lock to its end. */
#define READ_OVERTAKEN_MAX 2

/* Whether an overtaken read can take a new snapshot. With the old one it could not use the cache again. */
static bool
read_may_restart(const ReadCall *call)
{
	return call->fresh && !IsolationUsesXactSnapshot() && !IsInParallelMode();
}

/* False: the caller must rebuild the cells privately. */
static bool
read_through_cache(const ReadCall *call, CacheEntry *entry)
{
	ReadNonResident absent = {.room = READ_TILES, .tiles = absent.few};
	CachePrivate reason = CACHE_PRIVATE_NO_ROOM;
	int slices = read_may_restart(call) ? READ_OVERTAKEN_MAX : 0;
	uint64 writer;

	for (int loads = 0; loads < READ_LOADS_MAX;)
	{
		ReadStep step = read_try(call, entry, slices > 0, &writer, &absent, &reason);

		switch (step)
		{
			case READ_DONE:
				pg_atomic_fetch_add_u64(loads > 0 ? &CacheState->misses : &CacheState->hits, 1);
				return true;
			case READ_LOAD:
			case READ_LOAD_TILES:
				loads++;
				if (read_load(call, entry, step, &absent, &reason))
					continue;
				break;
			case READ_WAIT_LOAD:
				loads++;
				(void) cache_wait_load(entry);
				continue;
			case READ_WAIT_WRITER:
				cache_wait_writer(entry, writer);
				continue;
			case READ_OVERTAKEN:
				slices--;
				continue;
			case READ_PRIVATE:
				break;
		}
		break;
	}
	cache_count_private(reason);
	return false;
}

static bool
read_may_use_cache(void)
{
	if (!cache_enabled() || RecoveryInProgress())
		return false;
	if (!IsolationIsSerializable())
		return true;
	cache_count_private(CACHE_PRIVATE_SERIALIZABLE); /* the predicate locks must cover the rows that it reads */
	return false;
}

static bool
read_cached(const ReadCall *call)
{
	CacheKey key;
	CacheEntry *entry;
	bool done;

	sheetmeta_cache_key(call->sheet_id, AccessShareLock, &key);
	entry = cache_pin_reader(&key);
	if (entry == NULL)
	{
		cache_count_private(CACHE_PRIVATE_NO_ROOM);
		return false;
	}
	recheck_open(call->sheet_id, entry);
	done = read_through_cache(call, entry);
	cache_unpin_reader(entry);
	return done;
}

void
journal_read(int64 sheet_id, const uint32 rect[4], bool fresh, JournalView *view, const JournalSink *sink)
{
	ReadCall call = {sheet_id, {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1}, fresh, view, sink};

	if (rect != NULL)
		call.rect = (GridRect){rect[0], rect[1], rect[2], rect[3]};
	if (!read_may_use_cache() || !read_cached(&call))
		read_privately(&call);
}
