/*
 * replay_set.h - which of a sheet's tiles, and which of their cells, a replay is about; see replay_set.c.
 *
 * All places are physical ones: cells and tiles stay where they are whatever the axes.
 */
#ifndef REPLAY_SET_H
#define REPLAY_SET_H

#include "postgres.h"
#include "grid/grid.h"
#include "utils/hsearch.h"

/* An element of a set of tiles. */
#define REPLAY_CELL_WORDS (GRID_TILE_ROWS * GRID_TILE_COLS / 64)
typedef struct ReplayTile
{
	GridTileNo no;
	bool whole;						 /* all of its cells, else ... */
	uint64 cells[REPLAY_CELL_WORDS]; /* ... those with a bit here */
} ReplayTile;

/* Some of a sheet's tiles: those that a rectangle of cells touches, or those of a set (an HTAB of ReplayTile), whole.
 * Neither: all. */
typedef struct ReplayTiles
{
	const GridRect *rect;
	HTAB *set;
} ReplayTiles;

extern const ReplayTiles replay_all_tiles;
extern HTAB *replay_make_set(void);						   /* in the current memory context */
extern void replay_add_to_set(HTAB *set, GridTileNo tile); /* a whole tile */
/* One cell; false when it is in the set already. */
extern bool replay_add_cell_to_set(HTAB *set, uint32 row, uint32 col);
/* Makes all tiles of the set whole ones. */
extern void replay_widen_set(HTAB *set);
/* Adds what the other one has. */
extern void replay_merge_sets(HTAB *set, HTAB *other);
extern bool replay_set_has_cell(HTAB *set, uint32 row, uint32 col);
/* The cells of the rectangle of tiles that has all tiles of the set. */
extern GridRect replay_around(HTAB *set);

static inline bool
replay_tile_has(const ReplayTile *tile, uint32 row, uint32 col)
{
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	return tile->whole || (tile->cells[cell / 64] >> (cell % 64) & 1) != 0;
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

#endif
