/*
 * read.c - the cells that the caller's snapshot sees.
 *
 * From the shared grid when that holds exactly what the snapshot sees, else rebuilt privately from checkpoint and log.
 * The rule is proved in docs/ARCHITECTURE.md: the grid is right for a snapshot that sees its last transaction and does
 * not see the one that is writing. Both are looked at, and the cells handed over, under one hold of the entry's lock.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "cache/cache.h"
#include "journal/store/fsck_auto.h"
#include "journal/journal.h"
#include "journal/replay/load.h"
#include "miscadmin.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_log.h"
#include "journal/replay/replay_version.h"
#include "am/handler/sheetlog.h"
#include "journal/store/sheetmeta.h"
#include "support/stoppoint.h"
#include "journal/store/trim.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

/* ---- the backend's own memory as an allocator ---- */

static void *
read_context_alloc(void *ctx, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) ctx, size);
}

static void
read_context_free(void *ctx, void *ptr, size_t size)
{
	pfree(ptr);
}

GridAllocator
journal_context_allocator(void)
{
	return (GridAllocator){read_context_alloc, read_context_free, CurrentMemoryContext, true};
}

/* ---- reading ---- */

#define READ_TILES 64	 /* missing tiles, without asking for memory */
#define READ_CELLS 64	 /* that are handed over at once: the processor fetches the contents of all of them meanwhile */
#define READ_SLICE 65536 /* cells, about, under one hold of the entry's lock: half a millisecond */
#define READ_END   PG_UINT32_MAX /* behind the last row */

typedef struct ReadCall
{
	int64 sheet_id;
	GridRect rect;
	bool fresh;
	JournalView *view;
	const JournalSink *sink;
} ReadCall;

/* Tiles of the rectangle that the cache does not hold. */
typedef struct ReadMissing
{
	uint32 count, room;
	GridTileNo *tiles;
	GridTileNo few[READ_TILES];
} ReadMissing;

/* So many of the cells are in a row. */
static uint32
read_count_row(const GridCell *cells, uint32 count, uint32 row)
{
	uint32 same = 0;

	while (same < count && cells[same].row == row)
		same++;
	return same;
}

/* Hands over the cells from a row on, so many and what is left of the last one's row. Returns the row to go on with. */
static uint32
read_rows(const ReadCall *call, const Grid *grid, uint32 row, uint64 most)
{
	const JournalSink *sink = call->sink;
	GridCell cells[READ_CELLS];
	uint64 given = 0;
	GridScan scan;
	uint32 count;

	grid_view_init(&scan, grid, grid_axes(grid), row, call->rect.col0, call->rect.row1, call->rect.col1);
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

/* The same from the first row on. */
static uint32
read_begin(const ReadCall *call, const Grid *grid, int64 seq, uint64 most)
{
	call->view->seq = seq;
	call->view->rows = grid_rows(grid);
	call->view->cols = grid_cols(grid);
	if (call->sink == NULL)
		return READ_END;
	call->sink->begin(call->sink->arg);
	return read_rows(call, grid, call->rect.row0, most);
}

static Snapshot
read_snapshot(const ReadCall *call)
{
	if (!call->fresh || IsInParallelMode())
		return GetActiveSnapshot();
	return IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot();
}

/* The set of the tiles of the rectangle; NULL when they are many. */
static struct HTAB *
read_tile_set(const ReadCall *call, const Axes *axes)
{
	struct HTAB *set = replay_make_set();
	AxesParts parts;
	GridRect part;
	uint64 count = 0;

	axes_parts_init(&parts, axes, &call->rect);
	while (axes_parts_next(&parts, &part))
	{
		ReplayTiles wanted = {.rect = &part};

		count += load_tile_count(&wanted);
		if (count >= LOAD_LARGE)
			return NULL;
		for (uint32 row = part.row0 / GRID_TILE_ROWS; row <= part.row1 / GRID_TILE_ROWS; row++)
			for (uint32 col = part.col0 / GRID_TILE_COLS; col <= part.col1 / GRID_TILE_COLS; col++)
				replay_add_to_set(set, (GridTileNo){row, col});
	}
	return set;
}

/*
 * The tiles of the rectangle only, when these are few; false when they are many. Which ones they are depends on the
 * axes, which are known when the log has been read: mostly they are the identity, and if not it is read again.
 */
static bool
read_some_tiles(const ReadCall *call, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq)
{
	const Axes *axes = NULL;

	*grid = grid_create(allocator, 1, 1);
	for (;;)
	{
		struct HTAB *set = read_tile_set(call, axes);

		if (set == NULL)
			return false;
		(void) replay_add_tiles(call->sheet_id, PG_INT64_MAX, snapshot, allocator, *grid, set, seq);
		if (axes != NULL || grid_axes(*grid) == NULL)
			return true;
		axes = grid_axes(*grid);
		*grid = grid_create(allocator, 1, 1);
	}
}

static Grid *
read_rebuild(const ReadCall *call, Snapshot snapshot, int64 *seq)
{
	GridAllocator allocator = journal_context_allocator();
	Grid *grid = NULL;

	if (!read_some_tiles(call, snapshot, &allocator, &grid, seq) &&
		!replay_sheet(call->sheet_id, snapshot, &allocator, &grid, seq))
		elog(ERROR, "out of memory"); /* the allocator raises by itself */
	return grid;
}

static void
read_privately(const ReadCall *call)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "pg_sheet private grid", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Snapshot snapshot = RegisterSnapshot(read_snapshot(call));
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
	READ_LOAD,		 /* a stub */
	READ_LOAD_TILES, /* some of what is wanted is missing */
	READ_WAIT_LOAD,	 /* somebody else loads what is wanted */
	READ_WAIT_WRITER,
	READ_OVERTAKEN, /* the grid has become another between two slices */
	READ_PRIVATE
} ReadStep;

/*
 * A large read lets the lock go between slices, so that writers need not wait for all of it. The first slice has found
 * that the grid is what the snapshot sees; it is that as long as it stays the same grid in the same state, which
 * entry->changes tells. Who appends meanwhile was not seen by the snapshot, and changes the grid when it publishes.
 * Tiles may move in memory, come and go; none that is still wanted may be missing. The lock is held, also at the end.
 */
static ReadStep
read_slices(const ReadCall *call, CacheEntry *entry, uint32 row)
{
	uint64 states = entry->changes;
	GridRect rest = call->rect;
	GridTileNo unused;

	while (row != READ_END)
	{
		LWLockRelease(&entry->lock);
		STOP_POINT("read-slice");
		CHECK_FOR_INTERRUPTS();
		cache_lock_read(entry);
		rest.row0 = row;
		if (entry->changes != states ||
			grid_list_nonresident(entry->grid, grid_axes(entry->grid), &rest, &unused, 1) > 0)
			return READ_OVERTAKEN;
		row = read_rows(call, entry->grid, row, READ_SLICE);
	}
	return READ_DONE;
}

/* The grid is there; the entry's lock is held. */
static ReadStep
read_try_grid(const ReadCall *call, CacheEntry *entry, bool slices, ReadMissing *missing, CachePrivate *reason)
{
	Snapshot snapshot = read_snapshot(call);

	*reason = CACHE_PRIVATE_OLD_SNAPSHOT;
	if (!cache_snapshot_sees(snapshot, entry->last_fxid))
		return READ_PRIVATE;
	if (entry->writer_fxid != 0 && cache_snapshot_sees(snapshot, entry->writer_fxid))
		return READ_WAIT_WRITER; /* committed (or aborted), and about to say so here */
	missing->count =
		grid_list_nonresident(entry->grid, grid_axes(entry->grid), &call->rect, missing->tiles, missing->room);
	if (missing->count > 0)
		return cache_is_loading(entry) ? READ_WAIT_LOAD : READ_LOAD_TILES;
	grid_touch(entry->grid, grid_axes(entry->grid), &call->rect);
	return read_slices(call, entry, read_begin(call, entry->grid, entry->seq, slices ? READ_SLICE : PG_UINT64_MAX));
}

/* One look at the entry under its lock. */
static ReadStep
read_try(const ReadCall *call, CacheEntry *entry, bool slices, uint64 *writer, ReadMissing *missing,
		 CachePrivate *reason)
{
	ReadStep step = READ_PRIVATE;

	cache_lock_read(entry);
	*writer = entry->writer_fxid;
	if (*writer != 0 && TransactionIdIsCurrentTransactionId((TransactionId) *writer))
		*reason = CACHE_PRIVATE_OWN_EDITS;
	else if (entry->grid != NULL)
		step = read_try_grid(call, entry, slices, missing, reason);
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

/* Loads what the look has found missing. False, and the reason, when it cannot be. */
static bool
read_load(const ReadCall *call, CacheEntry *entry, ReadStep step, ReadMissing *missing, CachePrivate *reason)
{
	ReplayTiles wanted = {.rect = &call->rect};
	LoadResult result;

	*reason = CACHE_PRIVATE_NO_ROOM;
	if (IsInParallelMode() || sheetlog_has_deleted())
		return false;
	if (step == READ_LOAD)
		result = load_sheet(call->sheet_id, entry, &wanted, false);
	else if (missing->count > missing->room)
	{
		missing->room = missing->count * 2;
		missing->tiles = palloc(sizeof(GridTileNo) * missing->room);
		return true;
	}
	else
		result = load_tiles(call->sheet_id, entry, missing->tiles, missing->count);
	if (result == LOAD_EMPTY)
		*reason = CACHE_PRIVATE_EMPTY;
	return result == LOAD_DONE || result == LOAD_BUSY;
}

/* So often what was loaded may have gone again before it was read. */
#define READ_LOADS_MAX 10
/* So often writers may overtake a large read, which has wasted half of its work then. Next it holds the lock to its
 * end.
 */
#define READ_OVERTAKEN_MAX 2

/* Whether a read that was overtaken can take a new snapshot. With an old one it would have to do without the cache. */
static bool
read_may_begin_again(const ReadCall *call)
{
	return call->fresh && !IsolationUsesXactSnapshot() && !IsInParallelMode();
}

/* False: the caller must rebuild privately. */
static bool
read_through_cache(const ReadCall *call, CacheEntry *entry)
{
	ReadMissing missing = {.room = READ_TILES, .tiles = missing.few};
	CachePrivate reason = CACHE_PRIVATE_NO_ROOM;
	int slices = read_may_begin_again(call) ? READ_OVERTAKEN_MAX : 0;
	uint64 writer;

	for (int loads = 0; loads < READ_LOADS_MAX;)
	{
		ReadStep step = read_try(call, entry, slices > 0, &writer, &missing, &reason);

		switch (step)
		{
			case READ_DONE:
				pg_atomic_fetch_add_u64(loads > 0 ? &CacheState->misses : &CacheState->hits, 1);
				return true;
			case READ_LOAD:
			case READ_LOAD_TILES:
				loads++;
				if (read_load(call, entry, step, &missing, &reason))
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

void
journal_read(int64 sheet_id, const uint32 rect[4], bool fresh, JournalView *view, const JournalSink *sink)
{
	ReadCall call = {sheet_id, {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1}, fresh, view, sink};
	bool done = false;

	if (rect != NULL)
		call.rect = (GridRect){rect[0], rect[1], rect[2], rect[3]};

	/* A standby hears nothing of commits; SERIALIZABLE must see the rows that it reads. */
	if (cache_enabled() && !RecoveryInProgress() && IsolationIsSerializable())
		cache_count_private(CACHE_PRIVATE_SERIALIZABLE);
	else if (cache_enabled() && !RecoveryInProgress())
	{
		CacheKey key;
		CacheEntry *entry;

		sheetmeta_cache_key(sheet_id, AccessShareLock, &key);
		entry = cache_pin_reader(&key);
		if (entry != NULL)
		{
			fsck_auto_open(sheet_id, entry);
			done = read_through_cache(&call, entry);
			cache_unpin_reader(entry);
		}
		else
			cache_count_private(CACHE_PRIVATE_NO_ROOM);
	}
	if (!done)
		read_privately(&call);
}

int64
journal_guess_seq(int64 sheet_id, Snapshot snapshot)
{
	ReplayLast last;
	int64 seq = 0;

	if (cache_enabled())
	{
		CacheKey key;

		sheetmeta_cache_key(sheet_id, AccessShareLock, &key);
		seq = cache_guess_seq(&key);
	}
	if (seq > 0)
		return seq;
	replay_last(sheet_id, snapshot, &last);
	return last.last_seq;
}

bytea *
journal_tail(int64 sheet_id, int64 since, Size max_bytes, int64 *last_seq)
{
	Snapshot snapshot;
	ReadCall call = {.fresh = true};
	bytea *tail;

	snapshot = RegisterSnapshot(read_snapshot(&call));
	trim_check_since(sheet_id, since, snapshot);
	tail = replay_tail(sheet_id, since, max_bytes, snapshot, last_seq);
	UnregisterSnapshot(snapshot);
	return tail;
}

Grid *
journal_read_version(int64 sheet_id, int64 version_id, bool cells, JournalView *view)
{
	GridAllocator allocator = journal_context_allocator();
	ReadCall call = {.fresh = true};
	Snapshot snapshot = RegisterSnapshot(read_snapshot(&call));
	ReplayVersion version;
	Grid *grid = NULL;

	if (!replay_find_version(sheet_id, version_id, snapshot, &version) || version.version_id != version_id)
		trim_no_version(sheet_id, version_id, snapshot);
	if (cells && !replay_version(sheet_id, &version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	view->seq = version.seq;
	view->at = version.at;
	view->rows = version.rows;
	view->cols = version.cols;
	return grid;
}
