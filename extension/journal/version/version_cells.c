/*
 * version_cells.c - the cells that a version stores, and the digest of all cells, at a cost that depends on the edits
 * since the version before and not on the size of the sheet.
 *
 * A version stores the tiles that its segment has touched. They are read as the version before has them, and the
 * segment's edits are applied. The digest is a sum over all cells (grid_digest): for each edit the cell's old share is
 * subtracted from the digest of the version before, and its new share is added.
 *
 * Inserted or deleted rows and columns move cells that the segment has not touched, and so change their shares. After
 * such an edit all tiles are read.
 */
#include "postgres.h"

#include "support/workqueue.h"
#include "journal/journal.h"
#include "journal/replay/replay.h"
#include "journal/replay/batches.h"
#include "journal/replay/cellset.h"
#include "journal/store/property_store.h"
#include "journal/replay/replay_version.h"
#include "journal/version/version_cells.h"

/* ---- the tiles that a segment has touched ---- */

typedef struct TouchedTiles
{
	TileSet *tiles;
	LineMapsFollower follower;
} TouchedTiles;

static void
touched_add_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	TouchedTiles *touched = arg;

	tileset_add_edit(touched->tiles, edit, touched->follower.maps);
	replay_follow_maps(&touched->follower, edit);
}

TileSet *
version_touched_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot)
{
	GridAllocator allocator = journal_context_allocator();
	TouchedTiles touched = {tileset_create(), {.allocator = &allocator}};

	replay_find_maps(sheet_id, since, snapshot, &touched.follower);
	batches_each_edit(sheet_id, since, until, snapshot, touched_add_edit, &touched);
	return touched.tiles;
}

/* ---- some tiles ---- */

/* Adds the tiles of the set, none of which the grid has, as the version before has them. */
static void
cells_read_tiles(VersionCells *cells, HTAB *set, Snapshot snapshot)
{
	Grid *part = grid_create(&cells->allocator, 1, 1);
	HASH_SEQ_STATUS status;
	const CellSetTile *tile;

	(void) replay_version_add(cells->sheet_id, &cells->before, set, snapshot, &cells->allocator, part);
	grid_release(&cells->allocator, part);
	hash_seq_init(&status, set);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		(void) grid_add_nonresident(&cells->allocator, cells->grid, tile->no);
		grid_merge(cells->grid, part, &tile->no, 1);
	}
	grid_free(&cells->allocator, part);
}

typedef struct NewTiles
{
	const VersionCells *cells;
	HTAB *set;	/* tiles that the grid does not have */
	bool moved; /* rows or columns have been inserted or deleted: the set is not complete */
} NewTiles;

static void
cells_find_new(void *arg, int64 seq, int64 at, const Edit *edit)
{
	NewTiles *new = arg;
	uint32 row = edit->row, col = edit->col;
	GridTileNo tile;

	new->moved = new->moved || edit_is_structure(edit->kind);
	if (new->moved || !edit_is_of_cell(edit->kind))
		return;
	line_maps_locate(grid_maps(new->cells->grid), &row, &col);
	tile = grid_tile_of(row, col);
	if (!tileset_has(new->cells->tiles, tile))
		cellset_add_tile(new->set, tile);
}

/* Returns the share of the edit's cell in the digest. */
static uint64
cells_digest_of(const Grid *grid, const Edit *edit)
{
	GridCell cell;

	return edit_is_of_cell(edit->kind) && grid_view_get(grid, edit->row, edit->col, &cell) ? grid_digest_cell(&cell)
																						   : 0;
}

static void
cells_apply(void *arg, int64 seq, int64 at, const Edit *edit)
{
	VersionCells *cells = arg;

	if (seq != cells->seq + 1)
		history_corrupted(cells->sheet_id, "the log lacks seq", cells->seq + 1, EDIT_OK);
	tileset_add_edit(cells->tiles, edit, grid_maps(cells->grid));
	if (!cells->whole)
		cells->sum -= cells_digest_of(cells->grid, edit);
	(void) replay_edit_into(cells->grid, &cells->allocator, edit); /* the allocator raises an error */
	if (!cells->whole)
		cells->sum += cells_digest_of(cells->grid, edit);
	cells->seq = seq;
}

/* ---- all tiles ---- */

static void
cells_read_all(VersionCells *cells, Snapshot snapshot)
{
	grid_free(&cells->allocator, cells->grid);
	tileset_free(cells->tiles);
	cells->grid = NULL;
	cells->whole = true;
	(void) replay_sheet(cells->sheet_id, snapshot, &cells->allocator, &cells->grid, &cells->seq);
	cells->tiles = version_touched_tiles(cells->sheet_id, cells->before.seq, cells->seq, snapshot);
}

/* ---- either ---- */

void
version_cells_begin(VersionCells *cells, int64 sheet_id, const HistoryVersion *before, Snapshot snapshot)
{
	HTAB *none = cellset_create();

	*cells = (VersionCells){.sheet_id = sheet_id,
							.seq = before->seq,
							.allocator = journal_context_allocator(),
							.before = *before,
							.tiles = tileset_create()};
	cells->grid = grid_create(&cells->allocator, 1, 1);
	(void) replay_version_add(sheet_id, before, none, snapshot, &cells->allocator, cells->grid);
	hash_destroy(none);
	if (before->version_id != 0)
		cells->sum = (uint64) before->digest - grid_digest_shape(cells->grid) -
					 property_store_digest(property_store_read_version(sheet_id, before->version_id, snapshot));
}

void
version_cells_catch_up(VersionCells *cells, Snapshot snapshot)
{
	NewTiles new = {.cells = cells};
	int64 from = cells->seq;

	if (!cells->whole)
	{
		new.set = cellset_create();
		batches_each_edit(cells->sheet_id, cells->seq, PG_INT64_MAX, snapshot, cells_find_new, &new);
		if (!new.moved)
			cells_read_tiles(cells, new.set, snapshot);
		hash_destroy(new.set);
	}
	if (new.moved)
		cells_read_all(cells, snapshot);
	else
	{
		batches_each_edit(cells->sheet_id, cells->seq, PG_INT64_MAX, snapshot, cells_apply, cells);
		workqueue_count(WORK_REPLAYED, cells->seq - from);
	}
	tileset_encode(cells->tiles, cells->grid);
}

uint64
version_cells_digest(const VersionCells *cells)
{
	return cells->whole ? grid_digest(cells->grid) : grid_digest_shape(cells->grid) + cells->sum;
}

void
version_cells_free(VersionCells *cells)
{
	grid_free(&cells->allocator, cells->grid);
	tileset_free(cells->tiles);
}
