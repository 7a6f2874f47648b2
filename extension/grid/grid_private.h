/*
 * grid_private.h - the inside of a grid, for grid.c, grid_index.c, grid_nonresident.c and grid_scan.c.
 */
#ifndef GRID_PRIVATE_H
#define GRID_PRIVATE_H

#include "grid/line_maps.h"
#include "grid/tile.h"

#include <string.h>

/* An entry of the tile index: a tile that has cells, in memory or on storage only. */
typedef struct GridIndexEntry
{
	GridTileNo no;
	bool used;	/* since the eviction clock passed; readers set it concurrently */
	bool maybe; /* non-resident, and may have formulas */
	Tile *tile; /* NULL: non-resident */
} GridIndexEntry;

struct Grid
{
	LineMaps *maps;	 /* first: see grid_maps() */
	LineMaps *spare; /* reserved memory for the next ones */
	uint32_t rows;
	uint32_t cols;
	size_t bytes;
	GridIndexEntry *index; /* sorted by tile row and tile column */
	uint32_t tile_count;
	uint32_t tile_capacity;
	uint32_t lead;		  /* free entries before index[0] */
	uint32_t nonresident; /* of tile_count */
	uint32_t maybe;		  /* of them, those that may have formulas */
	uint64_t formulas;	  /* of resident tiles */
	Tile *pinned;		  /* list of tiles that may not be evicted, those with reservations among them */
};

static inline uint64_t
grid_order(GridTileNo no)
{
	return (uint64_t) no.row << 32 | no.col;
}

static inline uint16_t
grid_key(uint32_t row, uint32_t col)
{
	return (uint16_t) (row % GRID_TILE_ROWS * GRID_TILE_COLS + col % GRID_TILE_COLS);
}

static inline void
grid_mark_used(GridIndexEntry *entry)
{
	if (!__atomic_load_n(&entry->used, __ATOMIC_RELAXED))
		__atomic_store_n(&entry->used, true, __ATOMIC_RELAXED);
}

/* grid_index.c: position of the first entry at or after the tile; and the tile's entry, NULL when there is none. */
extern uint32_t grid_index_lower_bound(const Grid *grid, GridTileNo no);
extern GridIndexEntry *grid_index_find(const Grid *grid, GridTileNo no);
/* Makes room for one more entry. Returns false if there is none. */
extern bool grid_index_grow(const GridAllocator *allocator, Grid *grid);
extern void grid_index_insert(Grid *grid, GridTileNo no, Tile *tile);
extern void grid_index_remove(Grid *grid, GridIndexEntry *entry);

#endif
