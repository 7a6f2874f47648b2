/*
 * replay_version.c - the cells of a version, from its stored tiles.
 *
 * Cells are stored under physical rows and columns, so tiles are read independently of the version's maps. Grids are
 * filled through the caller's allocator, which may have no room.
 */
#include "postgres.h"

#include "common/edit_read.h"
#include "journal/replay/replay_version.h"
#include "journal/store/storage.h"

/* Whether a stored cell is one: grids trust their callers. */
static inline bool
is_cell(const Edit *edit)
{
	return edit->row < SHEET_MAX_ROWS && edit_is_within_limits(edit);
}

/* Puts a cell into the grid. *no and *tile are those of the previous cell, mostly the same: this saves the search. */
static bool
put_cell(Grid *grid, const GridAllocator *allocator, const Edit *edit, GridTileNo *no, GridTile **tile)
{
	GridTileNo at = grid_tile_of(edit->row, edit->col);

	if (*tile == NULL || at.row != no->row || at.col != no->col ||
		!grid_tile_reserve(grid, *tile, edit->content.len, edit->style.len))
		*tile = grid_reserve(allocator, grid, edit->row, edit->col, edit->content.len, edit->style.len);
	*no = at;
	if (*tile != NULL)
		grid_tile_set(grid, *tile, edit->row, edit->col, edit->content.data, edit->content.len, edit->style.data,
					  edit->style.len);
	return *tile != NULL;
}

/* The cells of a stored batch that `tile` contains; NULL: all of them. */
static EditError
put_cells(Grid *grid, const GridAllocator *allocator, const CellSetTile *tile, EditReader *reader, bool *room)
{
	EditReader local = *reader; /* a copy whose address is not taken: the compiler keeps it in registers */
	GridTileNo no = {0, 0};
	GridTile *there = NULL;
	EditError error;
	Edit edit;

	while ((error = edit_read_inline(&local, &edit)) == EDIT_OK)
	{
		if (!is_cell(&edit))
			return EDIT_BAD_NUMBER;
		if (edit.kind != EDIT_SET)
			return EDIT_BAD_KIND;
		if (tile != NULL && !cellset_tile_has(tile, edit.row, edit.col))
			continue;
		*room = put_cell(grid, allocator, &edit, &no, &there);
		if (!*room)
			return EDIT_END;
	}
	*reader = local;
	return error;
}

/* Most batches of stored tiles: contents of one tile, without styles. */
typedef struct PlainBatch
{
	GridTileNo tile;
	uint32 cells;
	uint32 bytes; /* of contents */
} PlainBatch;

static bool
is_plain_batch(EditReader reader, PlainBatch *plain)
{
	EditError error;
	Edit edit;

	*plain = (PlainBatch){0};
	while ((error = edit_read_inline(&reader, &edit)) == EDIT_OK)
	{
		GridTileNo tile = grid_tile_of(edit.row, edit.col);

		if (plain->cells == 0)
			plain->tile = tile;
		if (edit.kind != EDIT_SET || edit.style.data != NULL || !is_cell(&edit) || tile.row != plain->tile.row ||
			tile.col != plain->tile.col)
			return false;
		plain->cells++;
		plain->bytes += edit.content.len;
	}
	return error == EDIT_END && plain->cells > 0;
}

/* The tile gets exactly the room that it needs: most tiles are evicted before they are edited. */
static EditError
put_plain_batch(Grid *grid, const GridAllocator *allocator, const PlainBatch *plain, EditReader *reader, bool *room)
{
	GridTile *tile = grid_expect(allocator, grid, plain->tile, plain->cells, plain->bytes);
	EditReader local = *reader;
	Edit edit;

	*room = tile != NULL;
	while (tile != NULL && edit_read_inline(&local, &edit) == EDIT_OK)
		grid_tile_set(grid, tile, edit.row, edit.col, edit.content.data, edit.content.len, NULL, 0);
	*reader = local;
	return EDIT_END;
}

/* The cells of a stored tile that `tile` contains; NULL: all of them. */
static EditError
decode_tile(Grid *grid, const GridAllocator *allocator, const CellSetTile *tile, const struct varlena *bytes,
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

		error = all && is_plain_batch(reader, &plain) ? put_plain_batch(grid, allocator, &plain, &reader, room)
													  : put_cells(grid, allocator, all ? NULL : tile, &reader, room);
		if (!*room)
			return EDIT_END;
		if (error != EDIT_END)
			break;
	}
	return error;
}

/*
 * The newest row of each tile up to the version. The scan runs backward, so the first row of a tile that is not newer
 * than the version is the one. Other keys of the tile are passed over in the index; after a page of them the scan
 * descends the index again, so that the cost of a tile does not depend on the number of its versions. A tile that is
 * not wanted is listed as non-resident without checking the visibility of its row: the load of the tile does that, and
 * finds no cells if nobody sees the row. Stops at damage.
 */
static bool
read_tiles(int64 sheet_id, int64 version_id, const CellSetWanted *wanted, Snapshot snapshot,
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
		int64 row = storage_tiles_key(&scan, VERSION_TILE_ROW);
		int64 col = storage_tiles_key(&scan, VERSION_TILE_COL);
		bool wants = cellset_wants_tile(wanted, (GridTileNo){(uint32) row, (uint32) col});
		bool done = row == done_row && col == done_col;
		struct varlena *bytes;
		bool copy;

		if (done || storage_tiles_key(&scan, VERSION_TILE_VERSION_ID) > version_id)
		{
			if (++passed % STORAGE_TILES_PAGE == 0)
				storage_tiles_skip(&scan, done ? PG_INT64_MIN : version_id + 1);
			continue;
		}
		passed = 0;
		if (wants && !storage_tiles_fetch(&scan))
			continue;
		done_row = row;
		done_col = col;
		if (!wants)
		{
			room = grid_add_nonresident(allocator, grid, (GridTileNo){(uint32) row, (uint32) col});
			continue;
		}
		bytes = storage_bytes(&scan, VERSION_TILE_DATA, &copy);
		*fault = (ReplayFault){decode_tile(grid, allocator, NULL, bytes, &room), false, (uint32) row, (uint32) col};
		if (copy)
			pfree(bytes);
	}
	storage_scan_end(&scan);
	return room;
}

/* Also checks the extent, which changes of maps rely on. */
static LineMapsDecoded
decode_maps(const HistoryVersion *version, const GridAllocator *allocator, LineMaps **maps)
{
	*maps = NULL;
	if (version->rows > SHEET_MAX_ROWS || version->cols > SHEET_MAX_COLS)
		return LINE_MAPS_DAMAGED;
	if (version->maps == NULL)
		return LINE_MAPS_DECODED;
	return line_maps_decode(allocator, (const uint8_t *) VARDATA_ANY(version->maps), VARSIZE_ANY_EXHDR(version->maps),
							maps);
}

/* Gives the grid the version's maps and extent. False if there is no room. */
static bool
begin_version(Grid *grid, const HistoryVersion *version, const GridAllocator *allocator, ReplayFault *fault)
{
	LineMaps *maps;
	LineMapsDecoded decoded = decode_maps(version, allocator, &maps);

	grid_give_maps(allocator, grid, maps);
	if (decoded == LINE_MAPS_DAMAGED)
		*fault = (ReplayFault){EDIT_BAD_NUMBER, true, 0, 0};
	else
		grid_set_extent(grid, Max(version->rows, 1), Max(version->cols, 1));
	return decoded != LINE_MAPS_NO_ROOM;
}

/* Stops at damage. */
static bool
build_version(int64 sheet_id, const HistoryVersion *version, const CellSetWanted *wanted, Snapshot snapshot,
			  const GridAllocator *allocator, Grid **grid, ReplayFault *fault)
{
	*fault = (ReplayFault){EDIT_END, false, 0, 0};
	*grid = grid_create(allocator, 1, 1);
	if (*grid == NULL || !begin_version(*grid, version, allocator, fault))
		return false;
	return fault->error != EDIT_END ||
		   read_tiles(sheet_id, version->version_id, wanted, snapshot, allocator, *grid, fault);
}

bool
replay_version_try(int64 sheet_id, const HistoryVersion *version, Snapshot snapshot, const GridAllocator *allocator,
				   Grid **grid, ReplayFault *fault)
{
	return build_version(sheet_id, version, &cellset_all, snapshot, allocator, grid, fault);
}

static void
raise_fault(int64 sheet_id, int64 version_id, const ReplayFault *fault)
{
	if (fault->error != EDIT_END)
		history_corrupted(sheet_id, fault->maps ? "the maps of version" : "a tile of version", version_id,
						  fault->error);
}

LineMaps *
replay_version_maps(int64 sheet_id, const HistoryVersion *version, const GridAllocator *allocator)
{
	LineMaps *maps;

	if (decode_maps(version, allocator, &maps) == LINE_MAPS_DAMAGED)
		history_corrupted(sheet_id, "the maps of version", version->version_id, EDIT_BAD_NUMBER);
	return maps;
}

bool
replay_version_tiles(int64 sheet_id, const HistoryVersion *version, const CellSetWanted *wanted, Snapshot snapshot,
					 const GridAllocator *allocator, Grid **grid)
{
	ReplayFault fault;
	bool room = build_version(sheet_id, version, wanted, snapshot, allocator, grid, &fault);

	raise_fault(sheet_id, version->version_id, &fault);
	return room;
}

bool
replay_version(int64 sheet_id, const HistoryVersion *version, Snapshot snapshot, const GridAllocator *allocator,
			   Grid **grid)
{
	return replay_version_tiles(sheet_id, version, &cellset_all, snapshot, allocator, grid);
}

/* ---- the cells of a set ---- */

static bool
add_tile(int64 sheet_id, int64 version_id, const CellSetTile *tile, Snapshot snapshot, const GridAllocator *allocator,
		 Grid *grid)
{
	StorageScan scan;
	StorageKey keys[4] = {storage_key_int64(VERSION_TILE_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						  storage_key_int32(VERSION_TILE_ROW, BTEqualStrategyNumber, tile->no.row),
						  storage_key_int32(VERSION_TILE_COL, BTEqualStrategyNumber, tile->no.col),
						  storage_key_int64(VERSION_TILE_VERSION_ID, BTLessEqualStrategyNumber, version_id)};
	bool room = true;

	storage_scan_begin(&scan, STORAGE_VERSION_TILE, snapshot, keys, 4);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		bool copy;
		struct varlena *bytes = storage_bytes(&scan, VERSION_TILE_DATA, &copy);
		EditError error = decode_tile(grid, allocator, tile, bytes, &room);

		if (error != EDIT_END)
			history_corrupted(sheet_id, "a tile of version", version_id, error);
		if (copy)
			pfree(bytes);
	}
	storage_scan_end(&scan);
	return room;
}

bool
replay_version_add(int64 sheet_id, const HistoryVersion *version, HTAB *set, Snapshot snapshot,
				   const GridAllocator *allocator, Grid *grid)
{
	ReplayFault fault = {EDIT_END, false, 0, 0};
	HASH_SEQ_STATUS status;
	const CellSetTile *tile;

	if (!begin_version(grid, version, allocator, &fault))
		return false;
	raise_fault(sheet_id, version->version_id, &fault);
	if (version->version_id == 0)
		return true;
	hash_seq_init(&status, set);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		if (add_tile(sheet_id, version->version_id, tile, snapshot, allocator, grid))
			continue;
		hash_seq_term(&status);
		return false;
	}
	return true;
}
