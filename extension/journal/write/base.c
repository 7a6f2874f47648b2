/*
 * base.c - the cells before the transaction's own changes: in the shared grid, or, if the cache has no room, in a
 * private one.
 *
 * Tiles that the transaction has looked up in the shared grid stay pinned to its end, so that their addresses stay
 * valid. A sheet whose tiles could not be pinned once is read privately for the rest of the transaction.
 */
#include "postgres.h"

#include "access/transam.h"
#include "am/handler/sheetlog.h"
#include "journal/journal.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "journal/write/base.h"
#include "journal/write/session_tiles.h"
#include "utils/memutils.h"

/* ---- extent and maps, learned from the first grid ---- */

static void
base_learn_extent(WriterSheet *ws, const Grid *grid)
{
	if (ws->meta.rows != 0)
		return;
	ws->meta.rows = grid_rows(grid);
	ws->meta.cols = grid_cols(grid);
}

/* Returns true if the maps became known and are not the identity. */
static bool
base_learn_maps(WriterSheet *ws, const Grid *grid)
{
	if (ws->line_maps_known)
		return false;
	if (grid_maps(grid) != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
		GridAllocator allocator = journal_context_allocator();

		(void) line_maps_copy(&allocator, grid_maps(grid), &ws->base_maps); /* this allocator raises an error */
		MemoryContextSwitchTo(old);
	}
	ws->maps = ws->base_maps;
	ws->line_maps_known = true;
	return ws->maps != NULL;
}

/* The edits with physical rows and columns, as far as the maps are known. */
static Edit *
base_place_edits(const WriterSheet *ws, Edit *edits, uint32 nedits)
{
	Edit *placed;

	if (ws->maps == NULL || nedits == 0)
		return edits;
	placed = MemoryContextAllocHuge(writer_scratch, sizeof(Edit) * nedits);
	memcpy(placed, edits, sizeof(Edit) * nedits);
	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind))
			line_maps_locate(ws->maps, &placed[i].row, &placed[i].col);
	return placed;
}

/* ---- the shared grid ---- */

/* Rows of the journal that this transaction has inserted or deleted directly may be rolled back: others must not see
 * them. */
bool
base_may_load(const WriterSheet *ws)
{
	return !sheetlog_has_deleted() &&
		   (writer_has_changes(ws) || !TransactionIdIsCurrentTransactionId((TransactionId) ws->meta.last_fxid));
}

#define BASE_TILES 256 /* non-resident tiles that are loaded at once */
#define BASE_LOADS 10  /* loads whose tiles may be evicted again before they are pinned */

typedef enum BasePin
{
	BASE_PINNED,
	BASE_MAPPED, /* the maps became known: rows and columns are others */
	BASE_NO_GRID,
	BASE_NON_RESIDENT
} BasePin;

typedef struct BaseTiles
{
	uint32 count;
	GridTileNo tiles[BASE_TILES];
} BaseTiles;

static void
base_add_non_resident(BaseTiles *list, GridTileNo tile)
{
	for (uint32 i = 0; i < list->count; i++)
		if (list->tiles[i].row == tile.row && list->tiles[i].col == tile.col)
			return;
	list->tiles[list->count++] = tile;
}

/* Whether both are edits of cells, in one tile. */
static bool
base_same_tile(const Edit *a, const Edit *b)
{
	GridTileNo no = grid_tile_of(a->row, a->col), other = grid_tile_of(b->row, b->col);

	return edit_is_of_cell(a->kind) && edit_is_of_cell(b->kind) && no.row == other.row && no.col == other.col;
}

/* Tries to pin the tiles of the edits, which have physical rows and columns. The lock may be shared: only this session
 * pins tiles of the grid. */
static BasePin
base_try_pin(WriterSheet *ws, const Edit *edits, uint32 nedits, GridTile **tiles, BaseTiles *list)
{
	CacheEntry *entry = ws->entry;
	BasePin result = BASE_NO_GRID;
	Grid *grid;

	list->count = 0;
	LWLockAcquire(&entry->lock, LW_SHARED);
	grid = entry->grid;
	if (grid != NULL)
	{
		base_learn_extent(ws, grid);
		result = base_learn_maps(ws, grid) ? BASE_MAPPED : BASE_PINNED;
	}
	if (result == BASE_PINNED)
	{
		ws->pins = true;
		for (uint32 i = 0; i < nedits && list->count < BASE_TILES; i++)
		{
			tiles[i] = NULL;
			if (i > 0 && base_same_tile(&edits[i - 1], &edits[i]))
				tiles[i] = tiles[i - 1];
			else if (edit_is_of_cell(edits[i].kind) && !grid_pin_at(grid, edits[i].row, edits[i].col, &tiles[i]))
				base_add_non_resident(list, grid_tile_of(edits[i].row, edits[i].col));
		}
		if (list->count > 0)
			result = BASE_NON_RESIDENT;
	}
	LWLockRelease(&entry->lock);
	return result;
}

static LoadResult
base_first_load(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	CellSetWanted wanted = {.set = cellset_create()};
	LoadResult result;

	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind))
			cellset_add_tile(wanted.set, grid_tile_of(edits[i].row, edits[i].col));
	result = load_sheet(ws->sheet_id, ws->entry, &wanted, true);
	hash_destroy(wanted.set);
	return result;
}

/* Pins the tiles of the edits in the shared grid, and loads them first if necessary; false if that is not possible. */
static bool
base_pin_tiles(WriterSheet *ws, Edit **placed, uint32 nedits, GridTile **tiles)
{
	Edit *edits = *placed;
	BaseTiles list;

	for (int loads = 0; loads < BASE_LOADS; loads++)
	{
		BasePin pin = base_try_pin(ws, edits, nedits, tiles, &list);
		LoadResult result;

		if (pin == BASE_PINNED)
			return true;
		if (pin == BASE_MAPPED)
		{
			*placed = edits = base_place_edits(ws, edits, nedits);
			continue;
		}
		if (!base_may_load(ws))
			return false;
		result = pin == BASE_NO_GRID ? base_first_load(ws, edits, nedits)
									 : load_tiles(ws->sheet_id, ws->entry, list.tiles, list.count);
		if (result != LOAD_DONE && result != LOAD_BUSY)
			return false;
		if (pin == BASE_NON_RESIDENT && result == LOAD_DONE)
			loads--; /* it continues with the next tiles, and pins these */
	}
	return false;
}

void
base_load_grid(WriterSheet *ws)
{
	Edit *none = NULL;

	if (ws->entry != NULL && ws->base == NULL)
		(void) base_pin_tiles(ws, &none, 0, NULL);
}

/* The shared grid if all its tiles are resident; pins all of them. */
static const Grid *
base_pin_grid(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	const Grid *grid = NULL;

	cache_lock_change(entry);
	if (!cache_is_loading(entry) && entry->grid != NULL && grid_tiles_nonresident(entry->grid) == 0)
	{
		grid = entry->grid;
		cache_set_state(entry, CACHE_PINNED);
		ws->pins = true;
	}
	LWLockRelease(&entry->lock);
	return grid;
}

/* ---- a private grid ---- */

/*
 * So many tiles are read whole, and kept for the session's next transactions, if they cost no more than the log that is
 * read with them, or are few: the next edits are mostly near. If there are more tiles, only the edited cells are read.
 */
#define BASE_WHOLE_TILES	 8
#define BASE_WHOLE_TILES_MAX 128
#define BASE_WHOLE_EDITS	 1024 /* cost as much as a tile */

static uint32
base_whole_tiles(const WriterSheet *ws)
{
	return (uint32) Max(BASE_WHOLE_TILES, Min(cache_tail(&ws->meta).edits / BASE_WHOLE_EDITS, BASE_WHOLE_TILES_MAX));
}

/* Whether what this transaction reads of the state before its own changes is what others would read: it has not
 * inserted or deleted rows of the log directly, which may be rolled back. */
static bool
base_may_keep(const WriterSheet *ws)
{
	return ws->entry != NULL && !ws->forget && !sheetlog_has_deleted() &&
		   !TransactionIdIsCurrentTransactionId((TransactionId) ws->base_fxid);
}

/* Whether the tiles that the edits need besides those of the session are few enough to be read whole. */
static bool
base_suits_session(const WriterSheet *ws, const SessionTiles *session, const Edit *edits, uint32 nedits)
{
	const LineMaps *maps = session != NULL ? grid_maps(session->grid) : ws->maps;
	HTAB *set = cellset_create();
	uint32 most = base_whole_tiles(ws);
	bool suits;

	for (uint32 i = 0; i < nedits && hash_get_num_entries(set) <= most; i++)
	{
		uint32 row = edits[i].row, col = edits[i].col;

		if (!edit_is_of_cell(edits[i].kind))
			continue;
		line_maps_locate(maps, &row, &col);
		if (session == NULL || !cellset_has_cell(session->set, row, col))
			cellset_add_tile(set, grid_tile_of(row, col));
	}
	suits = hash_get_num_entries(set) <= most;
	hash_destroy(set);
	return suits;
}

/* Begins with the session's tiles. */
static void
base_use_session(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	SessionTiles *session;

	if (!base_may_keep(ws))
		return;
	session = session_tiles_find(&ws->entry->key, ws->meta.log_first_seq);
	if (!base_suits_session(ws, session, edits, nedits))
		return;
	ws->session = session_tiles_use(session, &ws->entry->key, ws->base_seq);
	ws->base = ws->session->grid;
	ws->base_set = ws->session->set;
}

/*
 * Reads cells of the state before own changes. Seqs of own edits, and of those that ROLLBACK TO undid, are higher, so
 * this is possible at any time.
 */
static void
base_read_cells(WriterSheet *ws, HTAB *set)
{
	SessionTiles *session = ws->session;
	MemoryContext old = MemoryContextSwitchTo(session != NULL ? session->context : writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	bool valid = session != NULL && session->valid && base_may_keep(ws);
	int64 seq;

	if (session != NULL)
		session->valid = false; /* if an error ends this */
	if (ws->base == NULL)
	{
		ws->base_set = cellset_create();
		ws->base = grid_create(&allocator, 1, 1);
	}
	(void) replay_add_tiles(ws->sheet_id, ws->base_seq, snapshot, &allocator, ws->base, set, &seq);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	if (session != NULL)
	{
		session->grid = ws->base;
		session->set = ws->base_set;
		session->valid = valid && seq == ws->base_seq;
	}
}

/* Reads the cells of the edits that the private grid does not have, or their tiles. After an error the next attempt
 * reads the same cells again. */
static void
base_find_cells(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	HTAB *set = cellset_create();
	bool any = ws->base == NULL;

	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_of_cell(edits[i].kind) &&
			(ws->base_set == NULL || !cellset_has_cell(ws->base_set, edits[i].row, edits[i].col)))
			any |= cellset_add_cell(set, edits[i].row, edits[i].col);
	if (ws->session != NULL && hash_get_num_entries(set) <= base_whole_tiles(ws))
		cellset_widen(set);
	if (any)
	{
		base_read_cells(ws, set);
		cellset_merge(ws->base_set, set);
	}
	hash_destroy(set);
}

static void
base_read_sheet(WriterSheet *ws)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	int64 seq;

	ws->base = replay_sheet_privately(ws->sheet_id, snapshot, &seq);
	ws->base_set = NULL;
	ws->session = NULL;
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
}

/* ---- either ---- */

Edit *
base_find_tiles(WriterSheet *ws, Edit *edits, uint32 nedits, GridTile **tiles)
{
	Edit *placed = base_place_edits(ws, edits, nedits);

	if (ws->base == NULL && ws->entry != NULL && base_pin_tiles(ws, &placed, nedits, tiles))
		return placed;
	if (ws->base == NULL)
		base_use_session(ws, edits, nedits);
	if (ws->base != NULL && base_learn_maps(ws, ws->base))
		placed = base_place_edits(ws, edits, nedits);
	if (ws->base == NULL || ws->base_set != NULL)
		base_find_cells(ws, placed, nedits);
	base_learn_extent(ws, ws->base);
	if (base_learn_maps(ws, ws->base))
	{
		placed = base_place_edits(ws, edits, nedits);
		if (ws->base_set != NULL)
			base_find_cells(ws, placed, nedits);
	}
	for (uint32 i = 0; i < nedits; i++)
		tiles[i] = grid_find_tile(ws->base, placed[i].row, placed[i].col);
	return placed;
}

const Grid *
base_whole_grid(WriterSheet *ws)
{
	const Grid *grid = NULL;

	if (ws->base == NULL && ws->entry != NULL)
	{
		grid = base_pin_grid(ws);
		if (grid == NULL && base_may_load(ws) && load_sheet(ws->sheet_id, ws->entry, &cellset_all, true) == LOAD_DONE)
			grid = base_pin_grid(ws);
	}
	if (grid == NULL && (ws->base == NULL || ws->base_set != NULL))
		base_read_sheet(ws);
	if (grid == NULL)
		grid = ws->base;
	base_learn_extent(ws, grid);
	(void) base_learn_maps(ws, grid);
	return grid;
}
