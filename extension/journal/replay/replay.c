/*
 * replay.c - from stored versions and batches to cells, and single edits into cells, row map and column map.
 *
 *   history.c, batches.c    what is stored
 *   replay_version.c        the cells of a version
 *   replay.c                the edits after it
 *   load.c                  the same into the shared cache
 *
 * Everything is read with the caller's snapshot, and stored through the caller's allocator: a private rebuild uses the
 * backend's memory, a load a limited part of it. Damage raises an error that names the place; sheet.fsck() finds and
 * repairs all of it.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/batches.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_version.h"
#include "support/workqueue.h"
#include "utils/memutils.h"

/* ---- the current memory context as an allocator, which raises an error if it has no room ---- */

static void *
replay_context_alloc(void *ctx, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) ctx, size);
}

static void
replay_context_free(void *ctx, void *ptr, size_t size)
{
	pfree(ptr);
}

GridAllocator
journal_context_allocator(void)
{
	return (GridAllocator){replay_context_alloc, replay_context_free, CurrentMemoryContext, true};
}

/* ---- one edit ---- */

static void
replay_require_change(const Edit *edit, LineChange *change)
{
	if (!line_change_of(edit, change))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a stored insertion or deletion of rows or columns is not valid"),
						errhint("Run sheet.fsck(sheet_id, true).")));
}

/* An edit that is not of a cell. */
static bool
replay_other_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	LineChange change;

	if (edit_is_of_extent(edit->kind))
		grid_resize(grid, edit->row + 1, edit->col + 1);
	if (!edit_is_structure(edit->kind))
		return true;
	replay_require_change(edit, &change);
	return grid_change_maps(allocator, grid, &change);
}

/* Content and style into a cell at its physical row and column. */
static bool
replay_put(Grid *grid, const GridAllocator *allocator, const Edit *edit, uint32 row, uint32 col)
{
	bool set = edit->kind == EDIT_SET;

	return grid_put(allocator, grid, row, col, set ? edit->content.data : NULL, set ? edit->content.len : 0,
					edit->style.data, edit->style.len);
}

bool
replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	uint32 row = edit->row, col = edit->col;

	if (!edit_is_of_cell(edit->kind))
		return replay_other_into(grid, allocator, edit);
	line_maps_locate(grid_maps(grid), &row, &col);
	if (!replay_put(grid, allocator, edit, row, col))
		return false;
	grid_resize(grid, edit->row + 1, edit->col + 1);
	return true;
}

/* ---- the edits after a version ---- */

typedef struct Replay
{
	int64 sheet_id;
	int64 seq; /* of the last edit */
	const GridAllocator *allocator;
	Grid *grid;
	const CellSetWanted *wanted; /* whole tiles; the others become non-resident */
	HTAB *set;					 /* NULL, or cells; the others are ignored ... */
	GridRect bounds;			 /* ... quickly, outside of these */
	bool room;
} Replay;

static bool
replay_cell(Replay *replay, const Edit *edit, uint32 row, uint32 col)
{
	const GridRect *bounds = &replay->bounds;

	if (replay->set == NULL)
	{
		GridTileNo tile = grid_tile_of(row, col);

		if (!cellset_wants_tile(replay->wanted, tile))
			return grid_add_nonresident(replay->allocator, replay->grid, tile);
	}
	else if (row < bounds->row0 || row > bounds->row1 || col < bounds->col0 || col > bounds->col1 ||
			 !cellset_has_cell(replay->set, row, col))
		return true;
	return replay_put(replay->grid, replay->allocator, edit, row, col);
}

static void
replay_apply(void *arg, int64 seq, int64 at, const Edit *edit)
{
	Replay *replay = arg;
	uint32 row = edit->row, col = edit->col;

	if (seq != replay->seq + 1)
		history_corrupted(replay->sheet_id, "the log lacks seq", replay->seq + 1, EDIT_OK);
	replay->seq = seq;
	if (!replay->room)
		return;
	if (!edit_is_of_cell(edit->kind))
	{
		replay->room = replay_other_into(replay->grid, replay->allocator, edit);
		return;
	}
	line_maps_locate(grid_maps(replay->grid), &row, &col);
	replay->room = replay_cell(replay, edit, row, col);
	grid_resize(replay->grid, edit->row + 1, edit->col + 1);
}

/* Applies the edits up to `until`. False if the allocator has no room. */
static bool
replay_edits(Replay *replay, int64 until, Snapshot snapshot)
{
	BatchScan *scan = batches_begin(replay->sheet_id, replay->seq + 1, until, false, snapshot);
	StoredBatch batch;

	while (replay->room && batches_next(scan, &batch))
		batches_each_edit_of(scan, replay->seq, until, replay_apply, replay);
	batches_end(scan);
	return replay->room;
}

bool
replay_sheet_tiles(int64 sheet_id, const CellSetWanted *wanted, Snapshot snapshot, const GridAllocator *allocator,
				   Grid **grid, int64 *seq)
{
	Replay replay = {.sheet_id = sheet_id, .allocator = allocator, .wanted = wanted, .room = true};
	HistoryVersion version;

	if (history_find_version(sheet_id, HISTORY_NEWEST, snapshot, &version))
	{
		replay.seq = version.seq;
		if (!replay_version_tiles(sheet_id, &version, wanted, snapshot, allocator, grid))
			return false;
	}
	else if ((*grid = grid_create(allocator, 1, 1)) == NULL)
		return false;
	*seq = replay.seq;
	replay.grid = *grid;
	(void) replay_edits(&replay, PG_INT64_MAX, snapshot);
	workqueue_count(WORK_REPLAYED, replay.seq - *seq);
	*seq = replay.seq;
	return replay.room;
}

bool
replay_sheet(int64 sheet_id, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq)
{
	return replay_sheet_tiles(sheet_id, &cellset_all, snapshot, allocator, grid, seq);
}

Grid *
replay_sheet_privately(int64 sheet_id, Snapshot snapshot, int64 *seq)
{
	GridAllocator allocator = journal_context_allocator();
	Grid *grid = NULL;

	(void) replay_sheet(sheet_id, snapshot, &allocator, &grid, seq);
	return grid;
}

static Replay
replay_of_set(int64 sheet_id, int64 seq, const GridAllocator *allocator, Grid *grid, HTAB *set)
{
	return (Replay){.sheet_id = sheet_id,
					.seq = seq,
					.allocator = allocator,
					.grid = grid,
					.set = set,
					.bounds = cellset_bounds(set),
					.room = true};
}

bool
replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid, HTAB *set,
				 int64 *seq)
{
	HistoryVersion version;
	Replay replay;

	history_version_at(sheet_id, until, snapshot, &version);
	if (!replay_version_add(sheet_id, &version, set, snapshot, allocator, grid))
		return false;
	replay = replay_of_set(sheet_id, version.seq, allocator, grid, set);
	(void) replay_edits(&replay, until, snapshot);
	*seq = replay.seq;
	return replay.room;
}

bool
replay_advance_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, const GridAllocator *allocator,
					 Grid *grid, HTAB *set)
{
	Replay replay = replay_of_set(sheet_id, since, allocator, grid, set);

	return replay_edits(&replay, until, snapshot) && replay.seq == until;
}

/* ---- the row map and column map alone ---- */

void
replay_follow_maps(LineMapsFollower *follower, const Edit *edit)
{
	LineChange change;
	uint32 *extent;
	LineMaps *maps;

	if (edit_is_of_cell(edit->kind) || edit_is_of_extent(edit->kind))
	{
		follower->rows = Max(follower->rows, edit->row + 1);
		follower->cols = Max(follower->cols, edit->col + 1);
	}
	if (!edit_is_structure(edit->kind))
		return;
	replay_require_change(edit, &change);
	extent = change.rows ? &follower->rows : &follower->cols;
	if (!line_maps_change(follower->allocator, follower->maps, &change, *extent, &maps))
		elog(ERROR, "out of memory");
	line_maps_free(follower->allocator, follower->maps);
	follower->maps = maps;
	*extent = extent_after(&change, *extent);
}

static void
replay_maps_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	replay_follow_maps(arg, edit);
}

void
replay_find_maps(int64 sheet_id, int64 until, Snapshot snapshot, LineMapsFollower *follower)
{
	HistoryVersion version;

	history_version_at(sheet_id, until, snapshot, &version);
	follower->rows = version.rows;
	follower->cols = version.cols;
	follower->maps = replay_version_maps(sheet_id, &version, follower->allocator);
	if (version.seq < until)
		batches_each_edit(sheet_id, version.seq, until, snapshot, replay_maps_edit, follower);
}
