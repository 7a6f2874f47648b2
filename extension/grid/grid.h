/*
 * grid.h - a sheet's cells: sparse or dense, compact, growing to the limits of sheets.
 *
 * Pure C: no PostgreSQL, no locks. The caller serialises writers against readers (in the extension: the cache entry's
 * LWLock) and passes the allocator to every call that may allocate or free, so that a grid can lie in shared memory or
 * in a backend's own.
 *
 * Cells live in tiles of GRID_TILE_ROWS x GRID_TILE_COLS. A tile keeps its contents in one arena; a cell of a dense
 * tile costs 8 bytes beyond its content. Tiles that are edited have slack beyond that.
 *
 * Writing has two steps, because the second runs where nothing may fail (after commit): grid_reserve() makes room for
 * an edit and may fail; grid_set() uses reserved room and cannot. Reservations add up: after n successful ones, the
 * same n sets fit, in order. A reservation changes nothing that a reader can see. grid_release() gives back room that
 * was reserved and not used.
 *
 * Rows and columns are physical: a cell keeps them when rows or columns before it are inserted or deleted. Logical rows
 * and columns are what people see. The grid's row map and column map (line_maps.h) lead from logical to physical ones.
 * Only functions called grid_view_... and those that take maps use logical ones. Without maps both are the same.
 */
#ifndef GRID_H
#define GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRID_TILE_ROWS 64
#define GRID_TILE_COLS 16

typedef struct Grid Grid;
typedef struct LineMaps LineMaps;
struct LineChange;
/* One tile of a grid. Its address stays the same until it is evicted or the grid is freed. */
typedef struct Tile GridTile;

typedef struct GridAllocator
{
	void *(*alloc)(void *ctx, size_t size); /* NULL when there is no room; any alignment of max_align_t */
	void (*free)(void *ctx, void *ptr, size_t size);
	void *ctx;
	bool short_lived; /* the memory is given back soon: a grid need not be small, and grows in large steps */
} GridAllocator;

/* The key of a tile: tile (row, col) covers rows row * GRID_TILE_ROWS and on. */
typedef struct GridTileNo
{
	uint32_t row, col;
} GridTileNo;

/* Cells in the order of reading, as for qsort(). */
static inline int
grid_compare_cells(uint32_t row, uint32_t col, uint32_t other_row, uint32_t other_col)
{
	uint64_t cell = (uint64_t) row << 32 | col, other = (uint64_t) other_row << 32 | other_col;

	return cell < other ? -1 : cell > other;
}

/* The tile of a cell. */
static inline GridTileNo
grid_tile_of(uint32_t row, uint32_t col)
{
	return (GridTileNo){row / GRID_TILE_ROWS, col / GRID_TILE_COLS};
}

typedef struct GridRect
{
	uint32_t row0, col0, row1, col1; /* cells, inclusive */
} GridRect;

typedef struct GridCell
{
	uint32_t row, col;
	const char *content; /* not terminated; valid until the next write */
	uint32_t content_len;
	uint32_t readable; /* bytes that may be read from `content` on: its own, and what follows it in memory */
	uint32_t style_len;
	const char *style; /* "" when none */
} GridCell;

/* Whether a content is a formula, which structure edits may rewrite. */
static inline bool
grid_is_formula(const char *content, uint32_t len)
{
	return len > 0 && *content == '=';
}

/* An empty grid of rows x cols (at least 1 x 1); NULL when there is no room. */
extern Grid *grid_create(const GridAllocator *allocator, uint32_t rows, uint32_t cols);
extern void grid_free(const GridAllocator *allocator, Grid *grid);

/* Exactly what the grid has taken from its allocator and not given back, in bytes. */
extern size_t grid_bytes(const Grid *grid);
/* max(row) + 1 and max(col) + 1, logical, of all cells ever written, at least the initial size; less what was deleted.
 */
extern uint32_t grid_rows(const Grid *grid);
extern uint32_t grid_cols(const Grid *grid);

/* ---- writing ---- */

/*
 * Reserves room for setting (row, col) and pins the tile, which is returned. style_len is 0 when the style is not set
 * or empty. Returns NULL if the allocator had no room, or the tile is non-resident: then the grid is unchanged to
 * readers, and earlier reservations hold.
 */
extern GridTile *grid_reserve(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col,
							  uint32_t content_len, uint32_t style_len);
/* The same where the tile has the room: changes nothing that a reader looks at, so readers need not be excluded.
 * Returns false if the tile must grow. */
extern bool grid_tile_reserve(Grid *grid, GridTile *tile, uint32_t content_len, uint32_t style_len);
/*
 * Sets a cell in reserved room. content NULL keeps the content; style NULL keeps the style; length 0 clears.
 * A cell with neither is absent afterwards. Extends rows and cols, unless the grid has maps: then grid_resize() has to.
 */
extern void grid_set(Grid *grid, uint32_t row, uint32_t col, const char *content, uint32_t content_len,
					 const char *style, uint32_t style_len);
/* The same in the tile that has the cell. */
extern void grid_tile_set(Grid *grid, GridTile *tile, uint32_t row, uint32_t col, const char *content,
						  uint32_t content_len, const char *style, uint32_t style_len);
/* Extends the extent only; never allocates. */
extern void grid_resize(Grid *grid, uint32_t rows, uint32_t cols);
/* Sets the extent, which may shrink. */
extern void grid_set_extent(Grid *grid, uint32_t rows, uint32_t cols);
/* Pins a tile: it is not evicted until grid_release(). */
extern void grid_pin(Grid *grid, GridTile *tile);
/* Finds the cell's tile (NULL: no cells), marks it used and pins it. Returns false if it is non-resident. */
extern bool grid_pin_at(Grid *grid, uint32_t row, uint32_t col, GridTile **tile);
/* Ends all pins and reservations. Tiles keep their slack for the next edits. */
extern void grid_release(const GridAllocator *allocator, Grid *grid);
/* For loading: as grid_reserve() for `cells` cells of a tile at once, with `content_bytes` bytes of content together
 * and no styles. An empty tile gets room for exactly these. */
extern GridTile *grid_expect(const GridAllocator *allocator, Grid *grid, GridTileNo no, uint32_t cells,
							 uint32_t content_bytes);
/* reserve + set; for loading. */
extern bool grid_put(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col, const char *content,
					 uint32_t content_len, const char *style, uint32_t style_len);
/* Removes the slack of all tiles; nothing may be reserved. Returns false if there is no room for copying. */
extern bool grid_shrink(const GridAllocator *allocator, Grid *grid);
/* A copy that takes no more than grid_bytes(). It is put into *to as soon as it exists, for the caller's clean-up.
 * Returns false if there is no room. */
extern bool grid_copy(const GridAllocator *allocator, const Grid *grid, Grid **to);

/* ---- reading ---- */

/* Returns false and an empty cell if (row, col) holds nothing. */
extern bool grid_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell);
/* The tile that has (row, col), NULL when none of its cells was ever reserved; and the same as grid_get() from it. */
extern GridTile *grid_find_tile(const Grid *grid, uint32_t row, uint32_t col);
extern bool grid_tile_get(const GridTile *tile, uint32_t row, uint32_t col, GridCell *cell);
/* For many cells in no order: prefetches what leads to a cell, and some cells later its content. */
extern void grid_prefetch_cell(const GridTile *tile, uint32_t row, uint32_t col);
extern void grid_prefetch_content(const GridTile *tile, uint32_t row, uint32_t col);
/* The same for cells that will be set, in three steps: their tile, what leads to them, and where their content goes. */
extern void grid_prefetch_tile(const GridTile *tile);
extern void grid_prefetch_set(const GridTile *tile, uint32_t row, uint32_t col);
extern void grid_prefetch_put(const GridTile *tile, uint32_t row, uint32_t col, uint32_t content_len);

/* Cells with content or style of an inclusive rectangle, row by row, each row from left to right. */
typedef struct GridScan
{
	const Grid *grid;
	uint32_t row0, col0, row1, col1; /* physical */
	uint32_t row, col;				 /* the next cell */
	uint32_t from, to, tile;		 /* index entries of the present band, and the next one; from == to: no band */
	const LineMaps *maps;			 /* NULL: a physical scan; otherwise the rectangle above is one part, which ... */
	uint32_t left, top;				 /* ... begins at this logical column and row */
	GridRect view;					 /* logical */
} GridScan;
extern void grid_scan_init(GridScan *scan, const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1,
						   uint32_t col1);
/* Reads up to `room` next cells and returns their number; 0: there are no more. Contents are prefetched. */
extern uint32_t grid_scan_some(GridScan *scan, GridCell *cells, uint32_t room);
static inline bool
grid_scan_next(GridScan *scan, GridCell *cell)
{
	return grid_scan_some(scan, cell, 1) == 1;
}

/* A 64-bit digest of all cells (position, content, style), the extent and the maps: the same for equal sheets. */
extern uint64_t grid_digest(const Grid *grid);
/* It is a sum of what extent and maps add, and of what each cell adds at its logical position; 0 for an empty cell. */
extern uint64_t grid_digest_shape(const Grid *grid);
extern uint64_t grid_digest_cell(const GridCell *cell);

/* ---- logical rows and columns ---- */

/* NULL: the identity. Inline, because most grids have none: the maps are the first field. */
static inline const LineMaps *
grid_maps(const Grid *grid)
{
	return *(const LineMaps *const *) grid;
}
/* Takes the maps, which come from the grid's allocator; the old ones are freed. */
extern void grid_give_maps(const GridAllocator *allocator, Grid *grid, LineMaps *maps);
/* Inserts or deletes rows or columns; changes the extent, too. Returns false if there is no room. */
extern bool grid_change_maps(const GridAllocator *allocator, Grid *grid, const struct LineChange *change);
/* Reserves room for a copy of the maps, beside those that the grid has, until grid_release(). */
extern bool grid_reserve_maps(const GridAllocator *allocator, Grid *grid, const LineMaps *maps);
/* Copies the maps into the reserved room; NULL needs no room. Cannot fail. */
extern void grid_adopt_maps(const GridAllocator *allocator, Grid *grid, const LineMaps *maps);

extern bool grid_view_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell);
/* A scan (grid_scan_next) of logical rows and columns, in their order, by these maps. */
extern void grid_view_init(GridScan *scan, const Grid *grid, const LineMaps *maps, uint32_t row0, uint32_t col0,
						   uint32_t row1, uint32_t col1);

/* ---- non-resident tiles, and eviction ---- */

/*
 * A grid may know of tiles that are on storage only. Reading finds nothing in them and reserving in them fails, so the
 * caller asks first, loads them into a grid of their own, and merges.
 */

/* Adds a tile that is on storage, unless the grid knows it. Returns false if there is no room. */
extern bool grid_add_nonresident(const GridAllocator *allocator, Grid *grid, GridTileNo no);
extern uint32_t grid_tiles_resident(const Grid *grid);
extern uint32_t grid_tiles_nonresident(const Grid *grid);
extern bool grid_is_nonresident(const Grid *grid, uint32_t row, uint32_t col);
/* The number of non-resident tiles that the rectangle touches; the first `room` of them are listed. The rectangle is
 * logical by the maps, physical without. A tile may be listed more than once. */
extern uint32_t grid_list_nonresident(const Grid *grid, const LineMaps *maps, const GridRect *rect, GridTileNo *list,
									  uint32_t room);
/*
 * Finds the first tile at or after *no, in the order of the index, that has formulas, or is non-resident and may have
 * some: it was never resident, or had formulas when it was evicted. Returns false if there is none. The cost without
 * any is that of a comparison.
 */
extern bool grid_next_formulas(const Grid *grid, GridTileNo *no, bool *resident);
/* A formula was set in a cell of a non-resident tile, on storage only. Never allocates. */
extern void grid_note_formula(Grid *grid, uint32_t row, uint32_t col);
/* Marks the tiles of the rectangle as used. Several readers may do this concurrently. */
extern void grid_touch(Grid *grid, const LineMaps *maps, const GridRect *rect);
/* Moves the wanted tiles out of `part`, where all of them have been loaded; one that has no cells there is removed from
 * the index. Never allocates. Both grids have the same allocator. */
extern void grid_merge(Grid *grid, Grid *part, const GridTileNo *wanted, uint32_t count);
/*
 * Continues the eviction clock at tile number *hand, until `wanted` bytes are free or all tiles have been visited; then
 * *hand is 0. A tile that was used since the last visit loses its mark, and its slack if it has some. Others are
 * evicted, except pinned ones. The allocator must not evict. Returns the number of evicted tiles.
 */
extern uint32_t grid_evict(const GridAllocator *allocator, Grid *grid, uint32_t *hand, size_t wanted);

#endif
