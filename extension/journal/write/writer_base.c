/*
 * writer_base.c - the cells before the transaction's own changes: of the shared grid, or, when the cache has no room,
 * of a grid of its own.
 *
 * Tiles that the transaction has looked at in the shared grid are held there to its end, so that their addresses can be
 * kept. A sheet whose tiles are not to be had in the shared grid once is read privately for the rest of the
 * transaction.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "journal/journal.h"
#include "journal/write/kept.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "am/handler/sheetlog.h"
#include "journal/store/storage.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

/* Missing tiles that are loaded at once. */
#define WRITER_MISSING_MAX 256

/* ---- what is learned with the first look ---- */

static void
writer_learn_extent(WriterSheet *ws, const Grid *grid)
{
	if (ws->meta.rows != 0)
		return;
	ws->meta.rows = grid_rows(grid);
	ws->meta.cols = grid_cols(grid);
}

/* True when they have just become known and are not the identity. */
static bool
writer_learn_axes(WriterSheet *ws, const Grid *grid)
{
	GridAllocator allocator;
	MemoryContext old;

	if (ws->axes_known)
		return false;
	if (grid_axes(grid) != NULL)
	{
		old = MemoryContextSwitchTo(writer_grid_context(ws));
		allocator = journal_context_allocator();
		(void) axes_copy(&allocator, grid_axes(grid), &ws->base_axes); /* the allocator raises by itself */
		MemoryContextSwitchTo(old);
	}
	ws->axes = ws->base_axes;
	ws->axes_known = true;
	return ws->axes != NULL;
}

MemoryContext
writer_grid_context(WriterSheet *ws)
{
	if (ws->grid_context == NULL)
		ws->grid_context = AllocSetContextCreate(writer_context, "pg_sheet grids", ALLOCSET_DEFAULT_SIZES);
	return ws->grid_context;
}

/* ---- the shared grid ---- */

/* Rows that this transaction has put in or deleted past the journal may be rolled back: others are not shown them. */
bool
writer_may_load(const WriterSheet *ws)
{
	return !sheetlog_has_deleted() &&
		   (writer_has_changes(ws) || !TransactionIdIsCurrentTransactionId((TransactionId) ws->meta.last_fxid));
}

typedef enum WriterMet
{
	WRITER_MET,
	WRITER_MAPPED, /* the axes have become known: places are others than had been thought */
	WRITER_NO_GRID,
	WRITER_MISSING
} WriterMet;

/* What the shared grid lacks of what is wanted. */
typedef struct WriterMissing
{
	uint32 count;
	GridTileNo tiles[WRITER_MISSING_MAX];
} WriterMissing;

static void
writer_note_missing(WriterMissing *missing, GridTileNo tile)
{
	for (uint32 i = 0; i < missing->count; i++)
		if (missing->tiles[i].row == tile.row && missing->tiles[i].col == tile.col)
			return;
	missing->tiles[missing->count++] = tile;
}

/* Looks for the tiles of the edits, which have physical places, and holds them. The lock may be shared: only we hold
 * tiles of this grid. */
static WriterMet
writer_hold_tiles(WriterSheet *ws, const Edit *edits, uint32 nedits, GridTile **tiles, WriterMissing *missing)
{
	CacheEntry *entry = ws->entry;
	bool mapped = false;
	Grid *grid;

	missing->count = 0;
	LWLockAcquire(&entry->lock, LW_SHARED);
	grid = entry->grid;
	if (grid != NULL)
	{
		writer_learn_extent(ws, grid);
		mapped = writer_learn_axes(ws, grid);
	}
	if (grid != NULL && !mapped)
	{
		ws->holds = true;
		for (uint32 i = 0; i < nedits && missing->count < WRITER_MISSING_MAX; i++)
		{
			tiles[i] = NULL;
			if (edit_is_of_cell(edits[i].kind) && !grid_pin_at(grid, edits[i].row, edits[i].col, &tiles[i]))
				writer_note_missing(missing, grid_tile_of(edits[i].row, edits[i].col));
		}
	}
	LWLockRelease(&entry->lock);
	if (mapped)
		return WRITER_MAPPED;
	return grid == NULL ? WRITER_NO_GRID : missing->count > 0 ? WRITER_MISSING : WRITER_MET;
}

static LoadResult
writer_first_load(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	ReplayTiles wanted = {.set = replay_make_set()};
	LoadResult result;

	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind))
			replay_add_to_set(wanted.set, grid_tile_of(edits[i].row, edits[i].col));
	result = load_sheet(ws->sheet_id, ws->entry, &wanted, true);
	hash_destroy(wanted.set);
	return result;
}

/* The edits with physical places, as far as the axes are known. */
static Edit *
writer_place_edits(const WriterSheet *ws, Edit *edits, uint32 nedits)
{
	Edit *placed;

	if (ws->axes == NULL || nedits == 0)
		return edits;
	placed = MemoryContextAllocHuge(writer_scratch, sizeof(Edit) * nedits);
	memcpy(placed, edits, sizeof(Edit) * nedits);
	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind))
			axes_locate(ws->axes, &placed[i].row, &placed[i].col);
	return placed;
}

/* So often what was loaded may have gone again before it was held. */
#define WRITER_LOADS_MAX 10

/* Holds the tiles of the edits in the shared grid; false when they are not to be had there. */
static bool
writer_meet_tiles(WriterSheet *ws, Edit **placed, uint32 nedits, GridTile **tiles)
{
	Edit *edits = *placed;
	WriterMissing missing;

	for (int loads = 0; loads < WRITER_LOADS_MAX; loads++)
	{
		WriterMet met = writer_hold_tiles(ws, edits, nedits, tiles, &missing);
		LoadResult result;

		if (met == WRITER_MET)
			return true;
		if (met == WRITER_MAPPED)
		{
			*placed = edits = writer_place_edits(ws, edits, nedits);
			continue;
		}
		if (!writer_may_load(ws))
			return false;
		result = met == WRITER_NO_GRID ? writer_first_load(ws, edits, nedits)
									   : load_tiles(ws->sheet_id, ws->entry, missing.tiles, missing.count);
		if (result != LOAD_DONE && result != LOAD_BUSY)
			return false;
		if (met == WRITER_MISSING && result == LOAD_DONE)
			loads--; /* it goes on with the next tiles, and holds them */
	}
	return false;
}

void
writer_meet_grid(WriterSheet *ws)
{
	Edit *none = NULL;

	if (ws->entry != NULL && ws->base == NULL)
		(void) writer_meet_tiles(ws, &none, 0, NULL);
}

/* The shared grid if all of it is there; it stays so till the transaction ends. */
static const Grid *
writer_keep_grid(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	const Grid *grid = NULL;

	cache_lock_change(entry);
	if (!cache_is_loading(entry) && entry->grid != NULL && grid_tiles_nonresident(entry->grid) == 0)
	{
		grid = entry->grid;
		cache_set_state(entry, CACHE_PINNED);
		ws->holds = true;
	}
	LWLockRelease(&entry->lock);
	return grid;
}

/* ---- a grid of our own ---- */

/* Whether what is read of the state before own changes is what others would read: no rows of the sheet that this
 * transaction has put in or deleted past its log, which may be rolled back. */
static bool
writer_may_keep(const WriterSheet *ws)
{
	return ws->entry != NULL && !ws->forget && !sheetlog_has_deleted() &&
		   !TransactionIdIsCurrentTransactionId((TransactionId) ws->base_fxid);
}

/*
 * So many tiles are read whole, and kept, as do not cost more than the log that is read with them, or are few: the next
 * edits will mostly be beside these. Of more tiles only the cells are read that are edited.
 */
#define WRITER_WHOLE_TILES	   8
#define WRITER_WHOLE_TILES_MAX 128
#define WRITER_WHOLE_EDITS	   1024 /* that cost as much as a tile */

static uint32
writer_whole_tiles(const WriterSheet *ws)
{
	return (uint32) Max(WRITER_WHOLE_TILES,
						Min(cache_tail(&ws->meta).edits / WRITER_WHOLE_EDITS, WRITER_WHOLE_TILES_MAX));
}

/* Whether the tiles that the edits need and that are not kept are few enough to be read whole. */
static bool
writer_suits_kept(const WriterSheet *ws, const KeptSheet *kept, const Edit *edits, uint32 nedits)
{
	const Axes *axes = kept != NULL ? grid_axes(kept->grid) : ws->axes;
	HTAB *missing = NULL;
	uint32 most = writer_whole_tiles(ws), count = 0;

	for (uint32 i = 0; i < nedits && count <= most; i++)
	{
		uint32 row = edits[i].row, col = edits[i].col;

		if (!edit_is_of_cell(edits[i].kind))
			continue;
		axes_locate(axes, &row, &col);
		if (kept != NULL && replay_set_has_cell(kept->tiles, row, col))
			continue;
		if (missing == NULL)
			missing = replay_make_set();
		replay_add_to_set(missing, grid_tile_of(row, col));
		count = hash_get_num_entries(missing);
	}
	if (missing != NULL)
		hash_destroy(missing);
	return count <= most;
}

/* Begins with what the session has kept of the sheet. */
static void
writer_take_kept(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	KeptSheet *kept;

	if (!writer_may_keep(ws))
		return;
	kept = kept_find(&ws->entry->key, ws->meta.log_first_seq);
	if (!writer_suits_kept(ws, kept, edits, nedits))
		return;
	ws->kept = kept_open(kept, &ws->entry->key, ws->base_seq);
	ws->base = ws->kept->grid;
	ws->base_tiles = ws->kept->tiles;
}

/* What was loaded is kept, unless the log did not lead to the state that was wanted. */
static void
writer_keep(WriterSheet *ws, bool right, int64 seq)
{
	ws->kept->grid = ws->base;
	ws->kept->tiles = ws->base_tiles;
	ws->kept->right = right && seq == ws->base_seq;
}

/*
 * Cells of the state before own changes, into our own memory: for a sheet that the cache has no room for, an edit reads
 * the tiles that it touches, and the log since the last version. Own edits and those that ROLLBACK TO took back have
 * higher seqs, so this can be done at any time.
 */
static void
writer_load_tiles(WriterSheet *ws, HTAB *tiles)
{
	MemoryContext old = MemoryContextSwitchTo(ws->kept != NULL ? ws->kept->context : writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	bool right = ws->kept != NULL && ws->kept->right && writer_may_keep(ws);
	int64 seq;

	if (ws->kept != NULL)
		ws->kept->right = false;
	if (ws->base == NULL)
	{
		ws->base_tiles = replay_make_set();
		ws->base = grid_create(&allocator, 1, 1);
	}
	(void) replay_add_tiles(ws->sheet_id, ws->base_seq, snapshot, &allocator, ws->base, tiles, &seq);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	if (ws->kept != NULL)
		writer_keep(ws, right, seq);
}

static void
writer_load_base(WriterSheet *ws)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;
	int64 seq;

	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory"); /* the allocator raises by itself */
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	ws->base = grid;
	ws->base_tiles = NULL;
	ws->kept = NULL;
}

/* Cells of the edits that are not in the grid yet: these alone, or their tiles, are taken out of what is stored. After
 * an error in between, the next attempt loads the same cells again, over what is there. */
static void
writer_prepare_base(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	HTAB *missing = replay_make_set();
	bool any = ws->base == NULL;

	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind) &&
			(ws->base_tiles == NULL || !replay_set_has_cell(ws->base_tiles, edits[i].row, edits[i].col)))
			any |= replay_add_cell_to_set(missing, edits[i].row, edits[i].col);
	if (ws->kept != NULL && hash_get_num_entries(missing) <= writer_whole_tiles(ws))
		replay_widen_set(missing);
	if (any)
		writer_load_tiles(ws, missing);
	if (any)
		replay_merge_sets(ws->base_tiles, missing);
	hash_destroy(missing);
}

/* ---- either ---- */

Edit *
writer_prepare(WriterSheet *ws, Edit *edits, uint32 nedits, GridTile **tiles)
{
	Edit *placed = writer_place_edits(ws, edits, nedits);

	if (ws->base == NULL && ws->entry != NULL && writer_meet_tiles(ws, &placed, nedits, tiles))
		return placed;
	if (ws->base == NULL)
		writer_take_kept(ws, edits, nedits);
	if (ws->base != NULL && writer_learn_axes(ws, ws->base))
		placed = writer_place_edits(ws, edits, nedits);
	if (ws->base == NULL || ws->base_tiles != NULL)
		writer_prepare_base(ws, placed, nedits);
	writer_learn_extent(ws, ws->base);
	if (writer_learn_axes(ws, ws->base))
	{
		placed = writer_place_edits(ws, edits, nedits);
		if (ws->base_tiles != NULL)
			writer_prepare_base(ws, placed, nedits);
	}
	for (uint32 i = 0; i < nedits; i++)
		tiles[i] = grid_find_tile(ws->base, placed[i].row, placed[i].col);
	return placed;
}

/* The whole of it, for versions. */
const Grid *
writer_base(WriterSheet *ws)
{
	static const ReplayTiles all = {NULL, NULL};
	const Grid *grid = NULL;

	if (ws->base == NULL && ws->entry != NULL)
	{
		grid = writer_keep_grid(ws);
		if (grid == NULL && writer_may_load(ws) && load_sheet(ws->sheet_id, ws->entry, &all, true) == LOAD_DONE)
			grid = writer_keep_grid(ws);
	}
	if (grid == NULL && (ws->base == NULL || ws->base_tiles != NULL))
		writer_load_base(ws);
	if (grid == NULL)
		grid = ws->base;
	writer_learn_extent(ws, grid);
	(void) writer_learn_axes(ws, grid);
	return grid;
}
