/*
 * grid_private.h - the inside of a grid, for grid.c and grid_*.c.
 */
#ifndef GRID_PRIVATE_H
#define GRID_PRIVATE_H

#include "grid/axes.h"
#include "grid/tile.h"

#include <string.h>

typedef struct GridPlace
{
	uint64_t order; /* grid_order() of the tile: found without looking at tiles */
	uint64_t used;	/* the stamp of its last use */
	Tile *tile;		/* NULL: missing */
} GridPlace;

struct Grid
{
	Axes *axes;	 /* first: see grid_axes() */
	Axes *spare; /* room for others */
	uint32_t rows;
	uint32_t cols;
	uint64_t cells; /* of the tiles that are here */
	size_t bytes;
	GridPlace *places;
	uint32_t tile_count;
	uint32_t tile_capacity;
	uint32_t lead;		/* free places before the first one */
	uint32_t missing;	/* of tile_count */
	uint32_t edited;	/* tiles that may have room beyond their cells */
	uint32_t old_count; /* places noted as the oldest (grid_places.c) ... */
	uint32_t old_next;	/* ... and how many of them are nothing any more */
	Tile *held;			/* tiles that may not be taken out; those with reservations are among them */
};

static inline uint64_t
grid_order(uint32_t tile_row, uint32_t tile_col)
{
	return (uint64_t) tile_row << 32 | tile_col;
}

static inline uint16_t
grid_key(uint32_t row, uint32_t col)
{
	return (uint16_t) (row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS);
}

/* Position of the first tile at or after (tile_row, tile_col). The comparison's result is added, not branched on: half
 * of the branches would be mispredicted. */
static inline uint32_t
grid_lower_bound(const Grid *grid, uint32_t tile_row, uint32_t tile_col)
{
	uint64_t order = grid_order(tile_row, tile_col);
	uint32_t low = 0;
	uint32_t count = grid->tile_count;

	if (count == 0)
		return 0;
	while (count > 1)
	{
		uint32_t half = count / 2;

		low += (grid->places[low + half - 1].order < order) * half;
		count -= half;
	}
	return low + (grid->places[low].order < order);
}

static inline GridPlace *
grid_place_at(const Grid *grid, uint32_t tile_row, uint32_t tile_col)
{
	uint64_t order = grid_order(tile_row, tile_col);
	uint64_t at = (uint64_t) tile_row * ((grid->cols - 1) / GRID_TILE_COLS + 1) + tile_col;

	if (at >= grid->tile_count || grid->places[at].order != order)
		at = grid_lower_bound(grid, tile_row, tile_col);
	return at < grid->tile_count && grid->places[at].order == order ? &grid->places[at] : NULL;
}

/* The scan of a view comes to its end in a part: on to the next one; false when there is none. */
extern bool grid_view_next_part(GridScan *scan);
/* Begins a physical scan. The view's fields are left alone. */
extern void grid_scan_begin(GridScan *scan, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1);

/* Room for one more place; false when there is none. */
extern bool grid_grow_places(const GridAllocator *allocator, Grid *grid);
extern void grid_insert_place(Grid *grid, uint32_t tile_row, uint32_t tile_col, Tile *tile);
extern void grid_remove_place(Grid *grid, GridPlace *place);
/* What so many places take from the allocator. */
extern size_t grid_places_size(uint32_t capacity);
extern void grid_free_places(const GridAllocator *allocator, Grid *grid);

#endif
