/*
 * replay_set.c - which of a sheet's tiles, and which of their cells, a replay is about.
 */
#include "postgres.h"

#include "journal/replay/replay_set.h"

const ReplayTiles replay_all_tiles = {NULL, NULL};

HTAB *
replay_make_set(void)
{
	HASHCTL info = {.keysize = sizeof(GridTileNo), .entrysize = sizeof(ReplayTile), .hcxt = CurrentMemoryContext};

	return hash_create("pg_sheet tiles", 32, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static ReplayTile *
replay_set_tile(HTAB *set, GridTileNo no)
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
replay_add_to_set(HTAB *set, GridTileNo no)
{
	replay_set_tile(set, no)->whole = true;
}

bool
replay_add_cell_to_set(HTAB *set, uint32 row, uint32 col)
{
	ReplayTile *tile = replay_set_tile(set, grid_tile_of(row, col));
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	if (replay_tile_has(tile, row, col))
		return false;
	tile->cells[cell / 64] |= UINT64CONST(1) << (cell % 64);
	return true;
}

void
replay_widen_set(HTAB *set)
{
	HASH_SEQ_STATUS status;
	ReplayTile *tile;

	hash_seq_init(&status, set);
	while ((tile = hash_seq_search(&status)) != NULL)
		tile->whole = true;
}

void
replay_merge_sets(HTAB *set, HTAB *other)
{
	HASH_SEQ_STATUS status;
	const ReplayTile *more;

	hash_seq_init(&status, other);
	while ((more = hash_seq_search(&status)) != NULL)
	{
		ReplayTile *tile = replay_set_tile(set, more->no);

		tile->whole |= more->whole;
		for (int i = 0; i < REPLAY_CELL_WORDS; i++)
			tile->cells[i] |= more->cells[i];
	}
}

bool
replay_set_has_cell(HTAB *set, uint32 row, uint32 col)
{
	GridTileNo no = grid_tile_of(row, col);
	const ReplayTile *tile = hash_search(set, &no, HASH_FIND, NULL);

	return tile != NULL && replay_tile_has(tile, row, col);
}

GridRect
replay_around(HTAB *set)
{
	GridRect around = {PG_UINT32_MAX, PG_UINT32_MAX, 0, 0};
	HASH_SEQ_STATUS status;
	const ReplayTile *tile;

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
