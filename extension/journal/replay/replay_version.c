/*
 * replay_version.c - the cells of a version, from its stored tiles.
 *
 * Cells go to their physical places, so tiles are read whatever the version's axes are. Grids are filled through the
 * allocator that is given, which may have no room.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "common/edit_read.h"
#include "journal/replay/replay_edit.h"
#include "journal/replay/replay_version.h"
#include "journal/store/storage.h"

/* A cell into a tile that the cell before mostly was in, too: then it is not looked for. */
static bool
replay_put_near(Grid *grid, const GridAllocator *allocator, const Edit *edit, GridTileNo *no, GridTile **tile)
{
	GridTileNo at = grid_tile_of(edit->row, edit->col);

	if (*tile == NULL || at.row != no->row || at.col != no->col ||
		!grid_reserve_there(grid, *tile, edit->content.len, edit->style.len))
		*tile = grid_reserve(allocator, grid, edit->row, edit->col, edit->content.len, edit->style.len);
	*no = at;
	if (*tile != NULL)
		grid_set_there(grid, *tile, edit->row, edit->col, edit->content.data, edit->content.len, edit->content.len,
					   edit->style.data, edit->style.len);
	return *tile != NULL;
}

/* The cells of a batch of a stored tile, which are at their physical places; tile NULL: all of them. */
static EditError
replay_cells_into(Grid *grid, const GridAllocator *allocator, const ReplayTile *tile, EditReader *reader, bool *room)
{
	EditReader local = *reader; /* of which nobody has the address */
	GridTileNo no = {0, 0};
	GridTile *there = NULL;
	EditError error;
	Edit edit;

	while ((error = edit_read_inline(&local, &edit)) == EDIT_OK)
	{
		if (edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS)
			return EDIT_BAD_NUMBER;
		if (edit.kind != EDIT_SET)
			return EDIT_BAD_KIND;
		if (tile != NULL && !replay_tile_has(tile, edit.row, edit.col))
			continue;
		*room = replay_put_near(grid, allocator, &edit, &no, &there);
		if (!*room)
			return EDIT_END;
	}
	*reader = local;
	return error;
}

/* What a batch of a stored tile mostly is: contents without styles, all of one tile. */
typedef struct PlainBatch
{
	GridTileNo tile;
	uint32 cells;
	uint32 bytes; /* of contents */
} PlainBatch;

static bool
replay_is_plain(EditReader reader, PlainBatch *plain)
{
	EditError error;
	Edit edit;

	*plain = (PlainBatch){0};
	while ((error = edit_read_inline(&reader, &edit)) == EDIT_OK)
	{
		GridTileNo tile = grid_tile_of(edit.row, edit.col);

		if (plain->cells == 0)
			plain->tile = tile;
		if (edit.kind != EDIT_SET || edit.style.data != NULL || edit.row >= SHEET_MAX_ROWS ||
			edit.col >= SHEET_MAX_COLS || tile.row != plain->tile.row || tile.col != plain->tile.col)
			return false;
		plain->cells++;
		plain->bytes += edit.content.len;
	}
	return error == EDIT_END && plain->cells > 0;
}

/* Its tile is found once, and gets exactly the room that it needs: most tiles are not edited before they go again. */
static EditError
replay_plain_into(Grid *grid, const GridAllocator *allocator, const PlainBatch *plain, EditReader *reader, bool *room)
{
	GridTile *tile = grid_expect(allocator, grid, plain->tile, plain->cells, plain->bytes);
	EditReader local = *reader;
	Edit edit;

	*room = tile != NULL;
	while (tile != NULL && edit_read_inline(&local, &edit) == EDIT_OK)
		grid_set_there(grid, tile, edit.row, edit.col, edit.content.data, edit.content.len,
					   (uint32) (local.end - (const uint8_t *) edit.content.data), NULL, 0);
	*reader = local;
	return EDIT_END;
}

/* What is wanted of a stored tile; tile NULL: all. */
static EditError
replay_decode(Grid *grid, const GridAllocator *allocator, const ReplayTile *tile, const struct varlena *bytes,
			  bool *room)
{
	bool all = tile == NULL || tile->whole;
	EditReader reader;
	EditBatch batch;
	EditError error;

	*room = true;
	edit_reader_init(&reader, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		PlainBatch plain;

		error = all && replay_is_plain(reader, &plain)
					? replay_plain_into(grid, allocator, &plain, &reader, room)
					: replay_cells_into(grid, allocator, all ? NULL : tile, &reader, room);
		if (!*room)
			return EDIT_END;
		if (error != EDIT_END)
			break;
	}
	return error;
}

/*
 * The newest row of each tile up to the version. The scan runs backward, so the first row of a tile that is not younger
 * than the version is the one. Younger and older keys of the tile are passed in the index, about a page of them; then
 * the rest is skipped, so that the cost of a tile does not grow with the number of its versions. Tiles that are not
 * wanted are passed as well: whether the snapshot sees them is asked when they are loaded, and a tile that nobody sees
 * is then empty. Ends at damage.
 */
static bool
replay_tiles_into(int64 sheet_id, int64 version_id, const ReplayTiles *wanted, Snapshot snapshot,
				  const GridAllocator *allocator, Grid *grid, ReplayFault *fault)
{
	StorageScan scan;
	int64 done_row = -1, done_col = -1;
	int passed = 0;
	bool room = true;

	*fault = (ReplayFault){EDIT_END, false, 0, 0};
	storage_tiles_begin(&scan, snapshot, sheet_id);
	while (room && fault->error == EDIT_END && storage_tiles_next(&scan))
	{
		int64 row = storage_key(&scan, VERSION_TILE_ROW);
		int64 col = storage_key(&scan, VERSION_TILE_COL);
		bool wants = replay_wants(wanted, (GridTileNo){(uint32) row, (uint32) col});
		bool done = row == done_row && col == done_col;
		struct varlena *bytes;
		bool copy;

		if (done || storage_key(&scan, VERSION_TILE_VERSION_ID) > version_id)
		{
			if (++passed % STORAGE_TILES_PAGE == 0)
				storage_tiles_skip(&scan, done ? PG_INT64_MIN : version_id + 1);
			continue;
		}
		passed = 0;
		if (wants && !storage_scan_fetch(&scan))
			continue;
		done_row = row;
		done_col = col;
		if (!wants)
		{
			room = grid_add_nonresident(allocator, grid, (GridTileNo){(uint32) row, (uint32) col});
			continue;
		}
		bytes = storage_bytes(&scan, VERSION_TILE_DATA, &copy);
		*fault = (ReplayFault){replay_decode(grid, allocator, NULL, bytes, &room), false, (uint32) row, (uint32) col};
		if (copy)
			pfree(bytes);
	}
	storage_scan_end(&scan);
	return room;
}

static AxesDecoded
replay_decode_axes(const ReplayVersion *version, const GridAllocator *allocator, Axes **axes)
{
	*axes = NULL;
	if (version->axes == NULL)
		return AXES_DECODED;
	return axes_decode(allocator, (const uint8_t *) VARDATA_ANY(version->axes), VARSIZE_ANY_EXHDR(version->axes), axes);
}

/* The version's axes and extent for a grid. False when there is no room. */
static bool
replay_begin_version(Grid *grid, const ReplayVersion *version, const GridAllocator *allocator, ReplayFault *fault)
{
	Axes *axes;
	AxesDecoded decoded = replay_decode_axes(version, allocator, &axes);

	grid_give_axes(allocator, grid, axes);
	grid_set_extent(grid, Max(version->rows, 1), Max(version->cols, 1));
	if (decoded == AXES_DAMAGED)
		*fault = (ReplayFault){EDIT_BAD_NUMBER, true, 0, 0};
	return decoded != AXES_NO_ROOM;
}

/* Damage ends it. */
static bool
replay_read_version(int64 sheet_id, const ReplayVersion *version, const ReplayTiles *wanted, Snapshot snapshot,
					const GridAllocator *allocator, Grid **grid, ReplayFault *fault)
{
	*fault = (ReplayFault){EDIT_END, false, 0, 0};
	*grid = grid_create(allocator, 1, 1);
	if (*grid == NULL || !replay_begin_version(*grid, version, allocator, fault))
		return false;
	return fault->error != EDIT_END ||
		   replay_tiles_into(sheet_id, version->version_id, wanted, snapshot, allocator, *grid, fault);
}

bool
replay_version_try(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot, const GridAllocator *allocator,
				   Grid **grid, ReplayFault *fault)
{
	return replay_read_version(sheet_id, version, &replay_all_tiles, snapshot, allocator, grid, fault);
}

static void
replay_raise_fault(int64 sheet_id, int64 version_id, const ReplayFault *fault)
{
	if (fault->error != EDIT_END)
		replay_corrupted(sheet_id, fault->axes ? "the axes of version" : "a tile of version", version_id, fault->error);
}

Axes *
replay_version_axes(int64 sheet_id, const ReplayVersion *version, const GridAllocator *allocator)
{
	Axes *axes;

	if (replay_decode_axes(version, allocator, &axes) == AXES_DAMAGED)
		replay_corrupted(sheet_id, "the axes of version", version->version_id, EDIT_BAD_NUMBER);
	return axes;
}

bool
replay_version_tiles(int64 sheet_id, const ReplayVersion *version, const ReplayTiles *wanted, Snapshot snapshot,
					 const GridAllocator *allocator, Grid **grid)
{
	ReplayFault fault;
	bool room = replay_read_version(sheet_id, version, wanted, snapshot, allocator, grid, &fault);

	replay_raise_fault(sheet_id, version->version_id, &fault);
	return room;
}

bool
replay_version(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot, const GridAllocator *allocator,
			   Grid **grid)
{
	return replay_version_tiles(sheet_id, version, &replay_all_tiles, snapshot, allocator, grid);
}

/* ---- tiles, or cells, of a set ---- */

static bool
replay_add_tile(int64 sheet_id, int64 version_id, const ReplayTile *tile, Snapshot snapshot,
				const GridAllocator *allocator, Grid *grid)
{
	StorageScan scan;
	StorageKey keys[4] = {{1, BTEqualStrategyNumber, false, sheet_id},
						  {2, BTEqualStrategyNumber, true, tile->no.row},
						  {3, BTEqualStrategyNumber, true, tile->no.col},
						  {4, BTLessEqualStrategyNumber, false, version_id}};
	bool room = true;

	storage_scan_begin(&scan, STORAGE_VERSION_TILE, snapshot, keys, 4);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		bool copy;
		struct varlena *bytes = storage_bytes(&scan, VERSION_TILE_DATA, &copy);
		EditError error = replay_decode(grid, allocator, tile, bytes, &room);

		if (error != EDIT_END)
			replay_corrupted(sheet_id, "a tile of version", version_id, error);
		if (copy)
			pfree(bytes);
	}
	storage_scan_end(&scan);
	return room;
}

bool
replay_version_add(int64 sheet_id, const ReplayVersion *version, HTAB *set, Snapshot snapshot,
				   const GridAllocator *allocator, Grid *grid)
{
	ReplayFault fault = {EDIT_END, false, 0, 0};
	HASH_SEQ_STATUS status;
	const ReplayTile *tile;

	if (!replay_begin_version(grid, version, allocator, &fault))
		return false;
	replay_raise_fault(sheet_id, version->version_id, &fault);
	if (version->version_id == 0)
		return true;
	hash_seq_init(&status, set);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		if (replay_add_tile(sheet_id, version->version_id, tile, snapshot, allocator, grid))
			continue;
		hash_seq_term(&status);
		return false;
	}
	return true;
}
