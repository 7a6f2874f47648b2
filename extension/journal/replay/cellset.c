/*
 * cellset.c - which of a sheet's tiles, and which of their cells, a replay is about.
 */
#include "postgres.h"

#include "journal/replay/cellset.h"

const CellSetWanted cellset_all = {NULL, NULL};

HTAB *
cellset_create(void)
{
	HASHCTL info = {.keysize = sizeof(GridTileNo), .entrysize = sizeof(CellSetTile), .hcxt = CurrentMemoryContext};

	return hash_create("pg_sheet tiles", 32, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static CellSetTile *
cellset_enter(HTAB *set, GridTileNo no)
{
	bool found;
	CellSetTile *tile = hash_search(set, &no, HASH_ENTER, &found);

	if (!found)
	{
		tile->whole = false;
		memset(tile->cells, 0, sizeof(tile->cells));
	}
	return tile;
}

void
cellset_add_tile(HTAB *set, GridTileNo no)
{
	cellset_enter(set, no)->whole = true;
}

bool
cellset_add_cell(HTAB *set, uint32 row, uint32 col)
{
	CellSetTile *tile = cellset_enter(set, cellset_tile_of(row, col));
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	if (cellset_tile_has(tile, row, col))
		return false;
	tile->cells[cell / 64] |= UINT64CONST(1) << (cell % 64);
	return true;
}

void
cellset_widen(HTAB *set)
{
	HASH_SEQ_STATUS status;
	CellSetTile *tile;

	hash_seq_init(&status, set);
	while ((tile = hash_seq_search(&status)) != NULL)
		tile->whole = true;
}

void
cellset_merge(HTAB *set, HTAB *other)
{
	HASH_SEQ_STATUS status;
	const CellSetTile *more;

	hash_seq_init(&status, other);
	while ((more = hash_seq_search(&status)) != NULL)
	{
		CellSetTile *tile = cellset_enter(set, more->no);

		tile->whole |= more->whole;
		for (int i = 0; i < CELLSET_WORDS; i++)
			tile->cells[i] |= more->cells[i];
	}
}

bool
cellset_has_cell(HTAB *set, uint32 row, uint32 col)
{
	GridTileNo no = cellset_tile_of(row, col);
	const CellSetTile *tile = hash_search(set, &no, HASH_FIND, NULL);

	return tile != NULL && cellset_tile_has(tile, row, col);
}

GridRect
cellset_bounds(HTAB *set)
{
	GridRect around = {PG_UINT32_MAX, PG_UINT32_MAX, 0, 0};
	HASH_SEQ_STATUS status;
	const CellSetTile *tile;

	hash_seq_init(&status, set);
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

uint64
cellset_count_wanted(const CellSetWanted *wanted)
{
	const GridRect *rect = wanted->rect;

	if (rect == NULL)
		return wanted->set == NULL ? PG_UINT64_MAX : (uint64) hash_get_num_entries(wanted->set);
	return (uint64) (rect->row1 / GRID_TILE_ROWS - rect->row0 / GRID_TILE_ROWS + 1) *
		   (rect->col1 / GRID_TILE_COLS - rect->col0 / GRID_TILE_COLS + 1);
}

bool
cellset_wants_tile(const CellSetWanted *wanted, GridTileNo tile)
{
	const GridRect *rect = wanted->rect;

	if (rect != NULL)
		return tile.row >= rect->row0 / GRID_TILE_ROWS && tile.row <= rect->row1 / GRID_TILE_ROWS &&
			   tile.col >= rect->col0 / GRID_TILE_COLS && tile.col <= rect->col1 / GRID_TILE_COLS;
	return wanted->set == NULL || hash_search(wanted->set, &tile, HASH_FIND, NULL) != NULL;
}
