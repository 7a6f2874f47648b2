/*
 * cellset.h - which of a sheet's tiles, and which of their cells, a replay is about; see cellset.c.
 *
 * All rows and columns are physical: the maps of a sheet do not change them.
 */
#ifndef CELLSET_H
#define CELLSET_H

#include "postgres.h"
#include "grid/grid.h"
#include "utils/hsearch.h"

#define CELLSET_WORDS (GRID_TILE_ROWS * GRID_TILE_COLS / 64)

/* An element of a set, which is an HTAB. */
typedef struct CellSetTile
{
	GridTileNo no;
	bool whole;					 /* all cells of the tile, else ... */
	uint64 cells[CELLSET_WORDS]; /* ... those whose bit is set */
} CellSetTile;

/* The tiles that a rectangle overlaps, or the tiles of a set; neither: all tiles. */
typedef struct CellSetWanted
{
	const GridRect *rect;
	HTAB *set;
} CellSetWanted;

extern const CellSetWanted cellset_all;

static inline GridTileNo
cellset_tile_of(uint32 row, uint32 col)
{
	return (GridTileNo){row / GRID_TILE_ROWS, col / GRID_TILE_COLS};
}

extern HTAB *cellset_create(void); /* in the current memory context */
extern void cellset_add_tile(HTAB *set, GridTileNo tile);
/* False if the set has the cell already. */
extern bool cellset_add_cell(HTAB *set, uint32 row, uint32 col);
/* Adds the other cells of the set's tiles. */
extern void cellset_widen(HTAB *set);
extern void cellset_merge(HTAB *set, HTAB *other);
extern bool cellset_has_cell(HTAB *set, uint32 row, uint32 col);
/* The smallest rectangle of cells that contains all tiles of the set. */
extern GridRect cellset_bounds(HTAB *set);
/* The number of tiles that are wanted, existing or not; PG_UINT64_MAX for all. */
extern uint64 cellset_count_wanted(const CellSetWanted *wanted);
extern bool cellset_wants_tile(const CellSetWanted *wanted, GridTileNo tile);

static inline bool
cellset_tile_has(const CellSetTile *tile, uint32 row, uint32 col)
{
	uint32 cell = row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS;

	return tile->whole || (tile->cells[cell / 64] >> (cell % 64) & 1) != 0;
}

#endif
