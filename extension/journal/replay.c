/*
 * replay.c - from stored checkpoints and batches to cells.
 *
 * Everything here reads with the snapshot that it is given, and stores the cells through the allocator that it is
 * given: a private rebuild uses the backend's memory, a load the shared one. Damage that is met is an error with its
 * place; sheet.fsck() looks at all of it and repairs what can be repaired.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "ckptqueue.h"
#include "edit_read.h"
#include "journal.h"
#include "miscadmin.h"
#include "replay.h"
#include "storage.h"
#include "utils/hsearch.h"
#include "timeconv.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

void
replay_corrupted(int64 sheet_id, const char *what, int64 place, EditError error)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("sheet " INT64_FORMAT " is damaged: %s " INT64_FORMAT, sheet_id, what, place),
					error == EDIT_OK ? 0 : errdetail("%s.", edit_error_text(error)),
					errhint("Run sheet.fsck(" INT64_FORMAT ", true).", sheet_id)));
}

static StorageKey
replay_key(int column, int strategy, int64 value)
{
	return (StorageKey){column, strategy, false, value};
}

/* A sheet that was trimmed to its newest version has no batch: the version tells of its commit record. */
static void
replay_last_of_version(int64 sheet_id, Snapshot snapshot, ReplayLast *last)
{
	StorageScan scan;
	StorageKey key = replay_key(1, BTEqualStrategyNumber, sheet_id);

	storage_scan_begin(&scan, STORAGE_CHECKPOINT, snapshot, &key, 1);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		last->found = true;
		last->last_seq = storage_int64(&scan, CHECKPOINT_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, CHECKPOINT_AT));
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
}

void
replay_last(int64 sheet_id, Snapshot snapshot, ReplayLast *last)
{
	StorageScan scan;
	StorageKey key = replay_key(1, BTEqualStrategyNumber, sheet_id);

	memset(last, 0, sizeof(*last));
	storage_scan_begin(&scan, STORAGE_LOG_BATCH, snapshot, &key, 1);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		int64 first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);

		last->found = true;
		last->last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, LOG_BATCH_AT)) + (last->last_seq - first_seq);
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
	if (!last->found)
		replay_last_of_version(sheet_id, snapshot, last);
}

bool
replay_open_log(int64 sheet_id, Snapshot snapshot, int64 *lid, int64 *first_seq)
{
	StorageScan scan;
	StorageKey key = replay_key(1, BTEqualStrategyNumber, sheet_id);
	bool found;

	storage_scan_begin(&scan, STORAGE_LOG_HEAD, snapshot, &key, 1);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
	{
		*lid = storage_int64(&scan, LOG_HEAD_LID);
		*first_seq = storage_int64(&scan, LOG_HEAD_FIRST_SEQ);
	}
	storage_scan_end(&scan);
	return found;
}

static bytea *
replay_stored_axes(StorageScan *scan)
{
	bool isnull, copy;
	struct varlena *bytes;

	(void) slot_getattr(scan->slot, CHECKPOINT_AXES, &isnull);
	if (isnull)
		return NULL;
	bytes = storage_bytes(scan, CHECKPOINT_AXES, &copy);
	return copy ? (bytea *) bytes : (bytea *) PG_DETOAST_DATUM_COPY(PointerGetDatum(bytes));
}

bool
replay_find_version(int64 sheet_id, int64 max_cid, Snapshot snapshot, ReplayVersion *version)
{
	StorageScan scan;
	StorageKey keys[2] = {replay_key(1, BTEqualStrategyNumber, sheet_id),
						  replay_key(2, BTLessEqualStrategyNumber, max_cid)};
	bool found;

	storage_scan_begin(&scan, STORAGE_CHECKPOINT, snapshot, keys, 2);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
	{
		version->cid = storage_int64(&scan, CHECKPOINT_CID);
		version->seq = storage_int64(&scan, CHECKPOINT_SEQ);
		version->at = storage_int64(&scan, CHECKPOINT_AT);
		version->rows = (uint32) storage_int32(&scan, CHECKPOINT_ROWS);
		version->cols = (uint32) storage_int32(&scan, CHECKPOINT_COLS);
		version->tiles = storage_int32(&scan, CHECKPOINT_TILES);
		version->digest = storage_int64(&scan, CHECKPOINT_DIGEST);
		version->cause = (uint32) storage_int32(&scan, CHECKPOINT_CAUSE);
		version->axes = replay_stored_axes(&scan);
	}
	storage_scan_end(&scan);
	return found;
}

/* ---- cells ---- */

StaticAssertDecl(AXES_MAX_ROWS == SHEET_MAX_ROWS && AXES_MAX_COLS == SHEET_MAX_COLS, "axes are as long as sheets");

bool
replay_change_of(const Edit *edit, AxesChange *change)
{
	bool rows = edit_is_of_rows(edit->kind);

	change->line = rows ? AXES_ROW : AXES_COL;
	change->insert = edit->kind == EDIT_INSERT_ROWS || edit->kind == EDIT_INSERT_COLUMNS;
	change->at = rows ? edit->row : edit->col;
	return edit_lines(edit, &change->n);
}

static void
replay_require_change(const Edit *edit, AxesChange *change)
{
	if (!replay_change_of(edit, change))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a stored edit inserts or deletes what cannot be: run sheet.fsck(sheet_id, true)")));
}

/* Content and style into a cell at its physical place. */
static inline bool
replay_put(Grid *grid, const GridAllocator *allocator, const Edit *edit, uint32 row, uint32 col)
{
	if (edit->kind == EDIT_SET)
		return grid_put(allocator, grid, row, col, edit->content.data, edit->content.len, edit->style.data,
						edit->style.len);
	return grid_put(allocator, grid, row, col, NULL, 0, edit->style.data, edit->style.len);
}

static inline bool
replay_edits_cell(const Edit *edit)
{
	return edit->kind == EDIT_SET || edit->kind == EDIT_STYLE;
}

/* An edit of the log that is not of a cell. */
static bool
replay_other_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	AxesChange change;

	if (edit->kind == EDIT_RESIZE)
		grid_resize(grid, edit->row + 1, edit->col + 1);
	if (!edit_is_structure(edit->kind))
		return true;
	replay_require_change(edit, &change);
	return grid_change_axes(allocator, grid, &change);
}

/* False when there is no room. */
bool
replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	uint32 row = edit->row, col = edit->col;

	if (!replay_edits_cell(edit))
		return replay_other_into(grid, allocator, edit);
	axes_locate(grid_axes(grid), &row, &col);
	if (!replay_put(grid, allocator, edit, row, col))
		return false;
	grid_resize(grid, edit->row + 1, edit->col + 1);
	return true;
}

/* ---- which tiles ---- */

struct HTAB *
replay_make_set(void)
{
	HASHCTL info = {.keysize = sizeof(GridTileNo), .entrysize = sizeof(ReplayTile), .hcxt = CurrentMemoryContext};

	return hash_create("pg_sheet tiles", 32, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static ReplayTile *
replay_set_tile(struct HTAB *set, GridTileNo no)
{
	bool found;
	ReplayTile *tile = hash_search(set, &no, HASH_ENTER, &found);

	if (!found)
	{
		tile->whole = false;
		memset(tile->cells, 0, sizeof(tile->cells));
	}
	return tile;
}

void
replay_add_to_set(struct HTAB *set, GridTileNo no)
{
	replay_set_tile(set, no)->whole = true;
}

static inline bool
replay_tile_has(const ReplayTile *tile, uint32 row, uint32 col)
{
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	return tile->whole || (tile->cells[cell / 64] >> (cell % 64) & 1) != 0;
}

bool
replay_add_cell_to_set(struct HTAB *set, uint32 row, uint32 col)
{
	ReplayTile *tile = replay_set_tile(set, replay_tile_of(row, col));
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	if (replay_tile_has(tile, row, col))
		return false;
	tile->cells[cell / 64] |= UINT64CONST(1) << (cell % 64);
	return true;
}

bool
replay_set_has_cell(struct HTAB *set, uint32 row, uint32 col)
{
	GridTileNo no = replay_tile_of(row, col);
	const ReplayTile *tile = hash_search(set, &no, HASH_FIND, NULL);

	return tile != NULL && replay_tile_has(tile, row, col);
}

static inline bool
replay_wants(const ReplayTiles *wanted, GridTileNo tile)
{
	const GridRect *rect = wanted->rect;

	if (rect != NULL)
		return tile.row >= rect->row0 / GRID_TILE_ROWS && tile.row <= rect->row1 / GRID_TILE_ROWS &&
			   tile.col >= rect->col0 / GRID_TILE_COLS && tile.col <= rect->col1 / GRID_TILE_COLS;
	return wanted->set == NULL || hash_search(wanted->set, &tile, HASH_FIND, NULL) != NULL;
}

/* Applies an edit if its tile is wanted, else notes the tile. */
static bool
replay_wanted_edit(Grid *grid, const GridAllocator *allocator, const ReplayTiles *wanted, const Edit *edit)
{
	uint32 row = edit->row, col = edit->col;
	GridTileNo tile;

	if (!replay_edits_cell(edit))
		return replay_other_into(grid, allocator, edit);
	axes_locate(grid_axes(grid), &row, &col);
	tile = replay_tile_of(row, col);
	grid_resize(grid, edit->row + 1, edit->col + 1);
	return replay_wants(wanted, tile) ? replay_put(grid, allocator, edit, row, col)
									  : grid_add_missing(allocator, grid, tile.row, tile.col);
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

/* The cells of a stored tile, which are at their physical places; tile NULL: all of them. */
static EditError
replay_cells_into(Grid *grid, const GridAllocator *allocator, const ReplayTile *tile, EditReader *reader, bool *room)
{
	EditReader local = *reader; /* of which nobody has the address */
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
		*room = replay_put(grid, allocator, &edit, edit.row, edit.col);
		if (!*room)
			return EDIT_END;
	}
	*reader = local;
	return error;
}

/* Makes room for a batch of a stored tile, exactly: most tiles are not edited before they go again. A tile with styles
 * grows as it is filled. */
static bool
replay_expect(Grid *grid, const GridAllocator *allocator, EditReader reader, uint32 count)
{
	GridTileNo tile = {0, 0};
	uint32 bytes = 0;
	Edit edit;

	while (edit_read_inline(&reader, &edit) == EDIT_OK)
	{
		if (edit.style.data != NULL || edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS)
			return true;
		tile = replay_tile_of(edit.row, edit.col);
		bytes += edit.content.len;
	}
	return bytes == 0 || grid_expect(allocator, grid, tile.row, tile.col, count, bytes);
}

/* What is wanted of a stored tile; tile NULL: all. */
static EditError
replay_decode(Grid *grid, const GridAllocator *allocator, const ReplayTile *tile, const struct varlena *bytes,
			  bool *room)
{
	EditReader reader;
	EditBatch batch;
	EditError error;

	*room = true;
	edit_reader_init(&reader, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		if (tile != NULL && !tile->whole)
			error = replay_cells_into(grid, allocator, tile, &reader, room);
		else if ((*room = replay_expect(grid, allocator, reader, batch.count)))
			error = replay_cells_into(grid, allocator, NULL, &reader, room);
		if (!*room)
			return EDIT_END;
		if (error != EDIT_END)
			break;
	}
	return error;
}

static const ReplayTiles replay_all_tiles = {NULL, NULL};

/*
 * The newest row of each tile up to the version. The scan runs backward, so the first row of a tile that is not younger
 * than the version is the one; the tile's older rows are passed in the index. So are tiles that are not wanted: whether
 * the snapshot sees them is asked when they are loaded, and a tile that nobody sees is then empty. Ends at damage.
 */
static bool
replay_tiles_into(int64 sheet_id, int64 cid, const ReplayTiles *wanted, Snapshot snapshot,
				  const GridAllocator *allocator, Grid *grid, ReplayFault *fault)
{
	StorageScan scan;
	StorageKey key = replay_key(1, BTEqualStrategyNumber, sheet_id);
	int64 done_row = -1, done_col = -1;
	bool room = true;

	*fault = (ReplayFault){EDIT_END, false, 0, 0};
	storage_scan_begin(&scan, STORAGE_CHECKPOINT_TILE, snapshot, &key, 1);
	while (room && fault->error == EDIT_END && storage_scan_next_key(&scan, BackwardScanDirection))
	{
		int64 row = storage_key(&scan, CHECKPOINT_TILE_ROW);
		int64 col = storage_key(&scan, CHECKPOINT_TILE_COL);
		bool wants = replay_wants(wanted, (GridTileNo){(uint32) row, (uint32) col});
		struct varlena *bytes;
		bool copy;

		if ((row == done_row && col == done_col) || storage_key(&scan, CHECKPOINT_TILE_CID) > cid ||
			(wants && !storage_scan_fetch(&scan)))
			continue;
		done_row = row;
		done_col = col;
		if (!wants)
		{
			room = grid_add_missing(allocator, grid, (uint32) row, (uint32) col);
			continue;
		}
		bytes = storage_bytes(&scan, CHECKPOINT_TILE_DATA, &copy);
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

bool
replay_version_try(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot, const GridAllocator *allocator,
				   Grid **grid, ReplayFault *fault)
{
	*fault = (ReplayFault){EDIT_END, false, 0, 0};
	*grid = grid_create(allocator, 1, 1);
	if (*grid == NULL || !replay_begin_version(*grid, version, allocator, fault))
		return false;
	return fault->error != EDIT_END ||
		   replay_tiles_into(sheet_id, version->cid, &replay_all_tiles, snapshot, allocator, *grid, fault);
}

static void
replay_raise_fault(int64 sheet_id, int64 cid, const ReplayFault *fault)
{
	if (fault->error != EDIT_END)
		replay_corrupted(sheet_id, fault->axes ? "the axes of version" : "a tile of version", cid, fault->error);
}

/* Some of its tiles; damage is raised. */
static bool
replay_version_tiles(int64 sheet_id, const ReplayVersion *version, const ReplayTiles *wanted, Snapshot snapshot,
					 const GridAllocator *allocator, Grid **grid)
{
	ReplayFault fault = {EDIT_END, false, 0, 0};
	bool room;

	*grid = grid_create(allocator, 1, 1);
	if (*grid == NULL || !replay_begin_version(*grid, version, allocator, &fault))
		return false;
	replay_raise_fault(sheet_id, version->cid, &fault);
	room = replay_tiles_into(sheet_id, version->cid, wanted, snapshot, allocator, *grid, &fault);
	replay_raise_fault(sheet_id, version->cid, &fault);
	return room;
}

bool
replay_version(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot, const GridAllocator *allocator,
			   Grid **grid)
{
	return replay_version_tiles(sheet_id, version, &replay_all_tiles, snapshot, allocator, grid);
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
	StorageKey keys[2] = {replay_key(1, BTEqualStrategyNumber, sheet_id), replay_key(2, BTGreaterStrategyNumber, *seq)};
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

/* The newest version with seq <= until. */
static bool
replay_find_version_at(int64 sheet_id, int64 until, Snapshot snapshot, ReplayVersion *version)
{
	bool found = replay_find_version(sheet_id, REPLAY_NEWEST, snapshot, version);

	while (found && version->seq > until)
		found = replay_find_version(sheet_id, version->cid - 1, snapshot, version);
	return found;
}

static bool
replay_add_stored_tile(int64 sheet_id, int64 cid, const ReplayTile *tile, Snapshot snapshot,
					   const GridAllocator *allocator, Grid *grid)
{
	StorageScan scan;
	StorageKey keys[4] = {replay_key(1, BTEqualStrategyNumber, sheet_id),
						  {2, BTEqualStrategyNumber, true, tile->no.row},
						  {3, BTEqualStrategyNumber, true, tile->no.col},
						  replay_key(4, BTLessEqualStrategyNumber, cid)};
	bool room = true;

	storage_scan_begin(&scan, STORAGE_CHECKPOINT_TILE, snapshot, keys, 4);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		bool copy;
		struct varlena *bytes = storage_bytes(&scan, CHECKPOINT_TILE_DATA, &copy);

		EditError error = replay_decode(grid, allocator, tile, bytes, &room);

		if (error != EDIT_END)
			replay_corrupted(sheet_id, "a tile of version", cid, error);
		if (copy)
			pfree(bytes);
	}
	storage_scan_end(&scan);
	return room;
}

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
	if (!replay_edits_cell(edit))
	{
		filter->room = replay_other_into(filter->grid, filter->allocator, edit);
		return;
	}
	axes_locate(grid_axes(filter->grid), &row, &col);
	replay_filter_cell(filter, edit, row, col);
}

/* The cells of the rectangle of tiles that has all tiles of the set. */
static GridRect
replay_around(HTAB *tiles)
{
	GridRect around = {PG_UINT32_MAX, PG_UINT32_MAX, 0, 0};
	HASH_SEQ_STATUS status;
	const ReplayTile *tile;

	hash_seq_init(&status, tiles);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		uint32 row = tile->no.row * GRID_TILE_ROWS, col = tile->no.col * GRID_TILE_COLS;

		around.row0 = Min(around.row0, row);
		around.col0 = Min(around.col0, col);
		around.row1 = Max(around.row1, row + GRID_TILE_ROWS - 1);
		around.col1 = Max(around.col1, col + GRID_TILE_COLS - 1);
	}
	return around;
}

/* The tiles as the version has them. */
static bool
replay_add_stored_tiles(int64 sheet_id, int64 cid, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
						HTAB *tiles)
{
	HASH_SEQ_STATUS status;
	const ReplayTile *tile;

	hash_seq_init(&status, tiles);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		if (replay_add_stored_tile(sheet_id, cid, tile, snapshot, allocator, grid))
			continue;
		hash_seq_term(&status);
		return false;
	}
	return true;
}

bool
replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
				 HTAB *tiles, int64 *seq)
{
	TileFilter filter = {sheet_id, 0, tiles, replay_around(tiles), allocator, grid, true};
	ReplayFault fault = {EDIT_END, false, 0, 0};
	ReplayVersion version = {.rows = 1, .cols = 1};
	bool found = replay_find_version_at(sheet_id, until, snapshot, &version);

	if (!found)
		version = (ReplayVersion){.rows = 1, .cols = 1};
	if (!replay_begin_version(grid, &version, allocator, &fault))
		return false;
	replay_raise_fault(sheet_id, version.cid, &fault);
	if (found && !replay_add_stored_tiles(sheet_id, version.cid, snapshot, allocator, grid, tiles))
		return false;
	filter.seq = version.seq;
	replay_edits(sheet_id, version.seq, until, snapshot, replay_filter_edit, &filter);
	*seq = filter.seq;
	return filter.room;
}

/* ---- axes alone ---- */

void
replay_follow_axes(AxesFollower *follower, const Edit *edit)
{
	AxesChange change;
	uint32 *extent;
	Axes *axes;

	if (replay_edits_cell(edit) || edit->kind == EDIT_RESIZE)
	{
		follower->rows = Max(follower->rows, edit->row + 1);
		follower->cols = Max(follower->cols, edit->col + 1);
	}
	if (!edit_is_structure(edit->kind))
		return;
	replay_require_change(edit, &change);
	extent = change.line == AXES_ROW ? &follower->rows : &follower->cols;
	if (!axes_change(follower->allocator, follower->axes, &change, *extent, &axes))
		elog(ERROR, "out of memory");
	axes_free(follower->allocator, follower->axes);
	follower->axes = axes;
	*extent = axes_extent(&change, *extent);
}

static void
replay_axes_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	replay_follow_axes(arg, edit);
}

void
replay_find_axes(int64 sheet_id, int64 until, Snapshot snapshot, AxesFollower *follower)
{
	ReplayVersion version;

	if (!replay_find_version_at(sheet_id, until, snapshot, &version))
		version = (ReplayVersion){.rows = 1, .cols = 1};
	follower->rows = version.rows;
	follower->cols = version.cols;
	if (replay_decode_axes(&version, follower->allocator, &follower->axes) == AXES_DAMAGED)
		replay_corrupted(sheet_id, "the axes of version", version.cid, EDIT_OK);
	if (version.seq < until)
		replay_edits(sheet_id, version.seq, until, snapshot, replay_axes_edit, follower);
}

/* ---- the log ---- */

/* first_seq of the batch that holds seq, or the next after it. */
static int64
replay_batch_start(int64 sheet_id, int64 seq, Snapshot snapshot)
{
	StorageScan scan;
	StorageKey keys[2] = {replay_key(1, BTEqualStrategyNumber, sheet_id),
						  replay_key(2, BTLessEqualStrategyNumber, seq)};
	int64 start = seq;

	storage_scan_begin(&scan, STORAGE_LOG_BATCH, snapshot, keys, 2);
	if (storage_scan_next(&scan, BackwardScanDirection) && storage_int64(&scan, LOG_BATCH_LAST_SEQ) >= seq)
		start = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);
	storage_scan_end(&scan);
	return start;
}

/* A scan over the batches with last_seq > since. */
static void
replay_scan_batches(StorageScan *scan, int64 sheet_id, int64 since, Snapshot snapshot)
{
	StorageKey keys[2] = {
		replay_key(1, BTEqualStrategyNumber, sheet_id),
		replay_key(2, BTGreaterEqualStrategyNumber, replay_batch_start(sheet_id, Max(since, 0) + 1, snapshot))};

	storage_scan_begin(scan, STORAGE_LOG_BATCH, snapshot, keys, 2);
}

void
replay_stored_edits(EditReader *reader, const struct varlena *data, int64 first_seq, int64 last_seq)
{
	int64 count = last_seq - first_seq + 1;

	edit_reader_init_edits(reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data),
						   (uint32) Min(Max(count, 0), SHEET_MAX_BATCH_EDITS));
}

static void
replay_batch_edits(StorageScan *scan, int64 sheet_id, int64 since, int64 until, ReplayEditFn fn, void *arg)
{
	int64 seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
	int64 at = timeconv_to_unix(storage_int64(scan, LOG_BATCH_AT));
	bool copy;
	struct varlena *bytes = storage_bytes(scan, LOG_BATCH_DATA, &copy);
	EditReader start, reader;
	EditError error;
	Edit edit;

	replay_stored_edits(&start, bytes, seq, storage_int64(scan, LOG_BATCH_LAST_SEQ));
	reader = start; /* of which nobody has the address */
	for (; (error = edit_read_inline(&reader, &edit)) == EDIT_OK; seq++, at++)
		if (seq > since && seq <= until)
			fn(arg, seq, at, &edit);
	error = replay_stored_end(&reader, error);
	if (error != EDIT_END)
		replay_corrupted(sheet_id, "the batch before seq", seq, error);
	if (copy)
		pfree(bytes);
}

void
replay_edits(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, ReplayEditFn fn, void *arg)
{
	StorageScan scan;

	replay_scan_batches(&scan, sheet_id, since, snapshot);
	while (storage_scan_next(&scan, ForwardScanDirection) && storage_int64(&scan, LOG_BATCH_FIRST_SEQ) <= until)
		replay_batch_edits(&scan, sheet_id, since, until, fn, arg);
	storage_scan_end(&scan);
}

/* A buffer that grows. */
typedef struct TailBuffer
{
	char *bytes;
	Size used, room;
} TailBuffer;

/* Adds the current batch with its header. */
static void
replay_add_batch(TailBuffer *tail, StorageScan *scan, const struct varlena *data)
{
	int64 first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ), last_seq = storage_int64(scan, LOG_BATCH_LAST_SEQ);
	EditBatch batch = {first_seq, timeconv_to_unix(storage_int64(scan, LOG_BATCH_AT)), last_seq - first_seq + 1};
	Size len = VARSIZE_ANY_EXHDR(data);
	EditWriter writer;

	if (tail->used + EDIT_BATCH_HEAD_MAX + len > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the batches are too large for one result")));
	if (tail->used + EDIT_BATCH_HEAD_MAX + len > tail->room)
	{
		tail->room = Max(tail->room * 2, tail->used + EDIT_BATCH_HEAD_MAX + len);
		tail->bytes = repalloc_huge(tail->bytes, tail->room);
	}
	edit_write_batch(&writer, (uint8_t *) tail->bytes + tail->used, &batch);
	memcpy(writer.pos, VARDATA_ANY(data), len);
	tail->used = (char *) writer.pos + len - tail->bytes;
}

bytea *
replay_tail(int64 sheet_id, int64 since, int64 whole_to, Size max_bytes, Snapshot snapshot, int64 *last_seq)
{
	TailBuffer tail = {palloc(8192), VARHDRSZ, 8192};
	Size limit = max_bytes;
	StorageScan scan;

	*last_seq = since;
	replay_scan_batches(&scan, sheet_id, since, snapshot);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		bool copy;
		struct varlena *bytes = storage_bytes(&scan, LOG_BATCH_DATA, &copy);
		bool whole = storage_int64(&scan, LOG_BATCH_LAST_SEQ) <= whole_to;

		if (!whole && tail.used > VARHDRSZ && tail.used + VARSIZE_ANY_EXHDR(bytes) > limit)
			break;
		replay_add_batch(&tail, &scan, bytes);
		if (whole)
			limit = tail.used + max_bytes;
		if (copy)
			pfree(bytes);
		*last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
	}
	storage_scan_end(&scan);
	if (tail.used == VARHDRSZ)
		return NULL;
	SET_VARSIZE(tail.bytes, tail.used);
	return (bytea *) tail.bytes;
}

bool
replay_find_batch(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot, int64 *first_seq,
				  int64 *last_seq, int64 *at)
{
	StorageScan scan;
	bool found = false;

	replay_scan_batches(&scan, sheet_id, since, snapshot);
	while (!found && storage_scan_next(&scan, ForwardScanDirection))
	{
		found =
			storage_int64(&scan, LOG_BATCH_ORIGIN) == origin && storage_int64(&scan, LOG_BATCH_BATCH_NO) == batch_no;
		if (found)
		{
			*first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);
			*last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
			*at = storage_int64(&scan, LOG_BATCH_AT);
		}
	}
	/* One with structure edits is stored in parts. */
	while (found && storage_scan_next(&scan, ForwardScanDirection) &&
		   storage_int64(&scan, LOG_BATCH_ORIGIN) == origin && storage_int64(&scan, LOG_BATCH_BATCH_NO) == batch_no)
		*last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
	storage_scan_end(&scan);
	return found;
}
