/*
 * replay.c - from stored checkpoints and batches to cells.
 *
 * Everything here reads with the snapshot that it is given, and stores the cells through the allocator that it is
 * given: a private rebuild uses the backend's memory, a load the shared one. Damage that is met is an error with its
 * place; sheet.fsck() looks at all of it and repairs what can be repaired.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "support/ckptqueue.h"
#include "common/edit_read.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_batches.h"
#include "journal/replay/replay_log.h"
#include "journal/replay/replay_version.h"
#include "journal/store/storage.h"

/* ---- a sheet, or some of its tiles whole ---- */

/* Applies an edit if its tile is wanted, else notes the tile. */
static bool
replay_wanted_edit(Grid *grid, const GridAllocator *allocator, const ReplayTiles *wanted, const Edit *edit)
{
	uint32 row = edit->row, col = edit->col;
	GridTileNo tile;

	if (!edit_is_of_cell(edit->kind))
		return replay_other_into(grid, allocator, edit);
	axes_locate(grid_axes(grid), &row, &col);
	tile = grid_tile_of(row, col);
	grid_resize(grid, edit->row + 1, edit->col + 1);
	return replay_wants(wanted, tile) ? replay_put(grid, allocator, edit, row, col)
									  : grid_add_nonresident(allocator, grid, tile);
}

/* The edits of the reader's batch into the grid; *room is false when the allocator has no more. */
static EditError
replay_reader_into(Grid *grid, const GridAllocator *allocator, const ReplayTiles *wanted, EditReader *reader,
				   bool *room)
{
	EditError error;
	Edit edit;

	while ((error = edit_read_inline(reader, &edit)) == EDIT_OK)
	{
		if (edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS)
			return EDIT_BAD_NUMBER;
		*room = replay_wanted_edit(grid, allocator, wanted, &edit);
		if (!*room)
			return EDIT_END;
	}
	return error;
}

/* The current batch of the scan. */
static bool
replay_batch_into(StorageScan *scan, int64 sheet_id, const ReplayTiles *wanted, const GridAllocator *allocator,
				  Grid *grid)
{
	int64 first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
	bool copy, room = true;
	struct varlena *bytes = storage_bytes(scan, LOG_BATCH_DATA, &copy);
	EditReader reader;
	EditError error;

	replay_stored_edits(&reader, bytes, first_seq, storage_int64(scan, LOG_BATCH_LAST_SEQ));
	error = replay_reader_into(grid, allocator, wanted, &reader, &room);
	if (room && replay_stored_end(&reader, error) != EDIT_END)
		replay_corrupted(sheet_id, "the batch at seq", first_seq, replay_stored_end(&reader, error));
	if (copy)
		pfree(bytes);
	return room;
}

static bool
replay_batches_into(int64 sheet_id, int64 *seq, const ReplayTiles *wanted, Snapshot snapshot,
					const GridAllocator *allocator, Grid *grid)
{
	StorageScan scan;
	StorageKey keys[2] = {{1, BTEqualStrategyNumber, false, sheet_id}, {2, BTGreaterStrategyNumber, false, *seq}};
	bool room = true;

	storage_scan_begin(&scan, STORAGE_LOG_BATCH, snapshot, keys, 2);
	while (room && storage_scan_next(&scan, ForwardScanDirection))
	{
		if (storage_int64(&scan, LOG_BATCH_FIRST_SEQ) != *seq + 1)
			replay_corrupted(sheet_id, "the log lacks seq", *seq + 1, EDIT_OK);
		room = replay_batch_into(&scan, sheet_id, wanted, allocator, grid);
		*seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
	}
	storage_scan_end(&scan);
	return room;
}

bool
replay_sheet_tiles(int64 sheet_id, const ReplayTiles *wanted, Snapshot snapshot, const GridAllocator *allocator,
				   Grid **grid, int64 *seq)
{
	ReplayVersion version;
	int64 from;
	bool room;

	*seq = 0;
	if (replay_find_version(sheet_id, REPLAY_NEWEST, snapshot, &version))
	{
		*seq = version.seq;
		if (!replay_version_tiles(sheet_id, &version, wanted, snapshot, allocator, grid))
			return false;
	}
	else if ((*grid = grid_create(allocator, 1, 1)) == NULL)
		return false;
	from = *seq;
	room = replay_batches_into(sheet_id, seq, wanted, snapshot, allocator, *grid);
	ckptqueue_count_replay(*seq - from);
	return room;
}

bool
replay_sheet(int64 sheet_id, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq)
{
	return replay_sheet_tiles(sheet_id, &replay_all_tiles, snapshot, allocator, grid, seq);
}

/* ---- some tiles only ---- */

typedef struct TileFilter
{
	int64 sheet_id;
	int64 seq; /* of the last edit */
	HTAB *tiles;
	GridRect around; /* all of them */
	const GridAllocator *allocator;
	Grid *grid;
	bool room;
} TileFilter;

/* An edit of a cell at its physical place. */
static void
replay_filter_cell(TileFilter *filter, const Edit *edit, uint32 row, uint32 col)
{
	const GridRect *around = &filter->around;

	if (row >= around->row0 && row <= around->row1 && col >= around->col0 && col <= around->col1 &&
		replay_set_has_cell(filter->tiles, row, col))
		filter->room = replay_put(filter->grid, filter->allocator, edit, row, col);
	grid_resize(filter->grid, edit->row + 1, edit->col + 1);
}

static void
replay_filter_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	TileFilter *filter = arg;
	uint32 row = edit->row, col = edit->col;

	if (seq != filter->seq + 1)
		replay_corrupted(filter->sheet_id, "the log lacks seq", filter->seq + 1, EDIT_OK);
	filter->seq = seq;
	if (!filter->room)
		return;
	if (!edit_is_of_cell(edit->kind))
	{
		filter->room = replay_other_into(filter->grid, filter->allocator, edit);
		return;
	}
	axes_locate(grid_axes(filter->grid), &row, &col);
	replay_filter_cell(filter, edit, row, col);
}

bool
replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
				 HTAB *tiles, int64 *seq)
{
	TileFilter filter = {sheet_id, 0, tiles, replay_around(tiles), allocator, grid, true};
	ReplayVersion version;

	replay_find_version_at(sheet_id, until, snapshot, &version);
	if (!replay_version_add(sheet_id, &version, tiles, snapshot, allocator, grid))
		return false;
	filter.seq = version.seq;
	replay_edits(sheet_id, version.seq, until, snapshot, replay_filter_edit, &filter);
	*seq = filter.seq;
	return filter.room;
}

bool
replay_advance_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, const GridAllocator *allocator,
					 Grid *grid, HTAB *tiles)
{
	TileFilter filter = {sheet_id, since, tiles, replay_around(tiles), allocator, grid, true};

	replay_edits(sheet_id, since, until, snapshot, replay_filter_edit, &filter);
	return filter.room && filter.seq == until;
}

/* ---- axes alone ---- */

static void
replay_axes_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	replay_follow_axes(arg, edit);
}

void
replay_find_axes(int64 sheet_id, int64 until, Snapshot snapshot, AxesFollower *follower)
{
	ReplayVersion version;

	replay_find_version_at(sheet_id, until, snapshot, &version);
	follower->rows = version.rows;
	follower->cols = version.cols;
	follower->axes = replay_version_axes(sheet_id, &version, follower->allocator);
	if (version.seq < until)
		replay_edits(sheet_id, version.seq, until, snapshot, replay_axes_edit, follower);
}
