/*
 * grid.h - a sheet's cells: sparse or dense, compact, growing to the limits of sheets.
 *
 * Pure C: no PostgreSQL, no locks. The caller serialises writers against readers (in the
 * extension: the cache entry's LWLock) and passes the allocator to every call that may
 * allocate or free, so that a grid can lie in shared memory or in a backend's own.
 *
 * Cells live in tiles of GRID_TILE_ROWS x GRID_TILE_COLS. A tile keeps its contents in one
 * arena; a cell of a dense tile costs 8 bytes beyond its content. Tiles that are edited have more room than that.
 *
 * Writing has two steps, because the second runs where nothing may fail (after commit):
 * grid_reserve() makes room for an edit and may fail; grid_set() uses reserved room and cannot.
 * Room adds up: after n successful reserves, the same n sets fit, in order. Reserving
 * changes nothing that a reader can see. grid_release() gives back room that was reserved and not used.
 *
 * Rows and columns are physical ones, under which a cell stays where it is when rows or columns before it are inserted
 * or deleted. What people see, the logical ones, follow from the grid's axes (axes.h); only the functions that are
 * called grid_view_... take and give those. Without axes both are the same.
 */
#ifndef GRID_H
#define GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRID_TILE_ROWS 64
#define GRID_TILE_COLS 16

typedef struct Grid Grid;
typedef struct Axes Axes;
struct AxesChange;
/* One block of a grid's cells, for callers that come back to a cell: it is found once and stays where it is until the
 * grid is freed. */
typedef struct Tile GridTile;

typedef struct GridAllocator
{
	void *(*alloc)(void *ctx, size_t size); /* NULL when there is no room; any alignment of max_align_t */
	void (*free)(void *ctx, void *ptr, size_t size);
	void *ctx;
	bool roomy; /* what is taken is soon given back: a grid need not be small, and grows in large steps */
} GridAllocator;

typedef struct GridCell
{
	uint32_t row, col;
	const char *content; /* not terminated; valid until the next write */
	uint32_t content_len;
	uint32_t readable; /* bytes that may be read from `content` on: its own, and what follows it in memory */
	uint32_t style_len;
	const char *style; /* "" when none */
} GridCell;

/* An empty grid of rows x cols (at least 1 x 1); NULL when there is no room. */
extern Grid *grid_create(const GridAllocator *allocator, uint32_t rows, uint32_t cols);
extern void grid_free(const GridAllocator *allocator, Grid *grid);

/* Exactly what the grid has taken from its allocator and not given back, in bytes. */
extern size_t grid_bytes(const Grid *grid);
/* max(row) + 1 and max(col) + 1, logical, of all cells ever written, at least the initial size; less what was deleted.
 */
extern uint32_t grid_rows(const Grid *grid);
extern uint32_t grid_cols(const Grid *grid);
/* Cells that have content or style. */
extern uint64_t grid_cells(const Grid *grid);

/*
 * Room for setting (row, col), in the tile that is returned. style_len is 0 when the style is not set or empty.
 * NULL when the allocator had no room, or the tile is missing: the grid is unchanged to readers, and earlier
 * reservations hold.
 */
extern GridTile *grid_reserve(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col,
							  uint32_t content_len, uint32_t style_len);
/* The same where the tile has the room: touches nothing that a reader looks at, so readers need not be shut out. False:
 * the tile must grow. */
extern bool grid_reserve_there(Grid *grid, GridTile *tile, uint32_t content_len, uint32_t style_len);
/*
 * Sets a cell in reserved room. content NULL keeps the content; style NULL keeps the style; length 0 clears.
 * A cell with neither is absent afterwards. Extends rows and cols, unless the grid has axes: then grid_resize() has to.
 */
extern void grid_set(Grid *grid, uint32_t row, uint32_t col, const char *content, uint32_t content_len,
					 const char *style, uint32_t style_len);
/* The same in the tile that has the cell. */
extern void grid_set_there(Grid *grid, GridTile *tile, uint32_t row, uint32_t col, const char *content,
						   uint32_t content_len, const char *style, uint32_t style_len);
/* Extends the extent only; never allocates. */
extern void grid_resize(Grid *grid, uint32_t rows, uint32_t cols);
/* Makes it what it is told, also smaller. */
extern void grid_set_extent(Grid *grid, uint32_t rows, uint32_t cols);
/* Ends the reservations that were not used, and may give their memory back. Tiles keep what else they have beyond their
 * cells for the next edits, until ... */
extern void grid_release(const GridAllocator *allocator, Grid *grid);
/* ... whoever needs the memory looks at them twice, with no edit in between: looks at `count` tiles from number *at on,
 * which becomes that of the next one, 0 when there is none. Held ones stay as they are. Asks the allocator for no more
 * than it then gives back. False when no tile is left that has been edited. */
extern bool grid_pack_idle(const GridAllocator *allocator, Grid *grid, uint32_t *at, uint32_t count);
/* Whether it would be true. */
extern bool grid_is_edited(const Grid *grid);
/* For loading: the same as grid_reserve() for so many cells of a tile at once, with so many bytes of content together
 * and no styles. A tile that has nothing gets room for exactly these. */
extern GridTile *grid_expect(const GridAllocator *allocator, Grid *grid, uint32_t tile_row, uint32_t tile_col,
							 uint32_t cells, uint32_t content_bytes);
/* Takes from the tiles what is not needed for their cells; nothing may be reserved. False when there is no room for the
 * copying. */
extern bool grid_pack(const GridAllocator *allocator, Grid *grid);
/* A copy that takes no more than grid_bytes(). It is put into *to as soon as it exists, for the caller's clean-up;
 * false when there is no room. */
extern bool grid_copy(const GridAllocator *allocator, const Grid *grid, Grid **to);
/* reserve + set; for loading. */
extern bool grid_put(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col, const char *content,
					 uint32_t content_len, const char *style, uint32_t style_len);

/* False and an empty cell when (row, col) holds nothing. */
extern bool grid_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell);
/* The tile that has (row, col), NULL when none of its cells was ever reserved; and the same as grid_get() from it. */
extern GridTile *grid_find_tile(const Grid *grid, uint32_t row, uint32_t col);
extern bool grid_get_there(const GridTile *tile, uint32_t row, uint32_t col, GridCell *cell);
/* For many cells in no order: asks the processor for what leads to a cell, and some cells later for its content. */
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
	uint32_t row0, col0, row1, col1;
	uint32_t row, col;	/* where to go on */
	uint64_t state[4];	/* private */
	const Axes *axes;	/* of a view: rows and columns above are of a part of it, which ... */
	uint32_t left, top; /* ... begins at this logical column and row */
	uint32_t view[4];	/* logical: row0, col0, row1, col1 */
} GridScan;
extern void grid_scan_init(GridScan *scan, const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1,
						   uint32_t col1);
/* The next cells, at most `room` of them; 0: there are no more. With room for many the processor is asked for their
 * contents, so that whoever looks at them afterwards need not wait for each. */
extern uint32_t grid_scan_some(GridScan *scan, GridCell *cells, uint32_t room);
static inline bool
grid_scan_next(GridScan *scan, GridCell *cell)
{
	return grid_scan_some(scan, cell, 1) == 1;
}

/* ---- rows and columns as people see them (grid_view.c) ---- */

/* NULL: the identity. The place of the field is known to the compiler so that the many who find NULL are quick. */
static inline const Axes *
grid_axes(const Grid *grid)
{
	return *(const Axes *const *) grid;
}
/* Takes the axes, which come from the grid's allocator; those before are freed. */
extern void grid_give_axes(const GridAllocator *allocator, Grid *grid, Axes *axes);
/* Inserts or deletes rows or columns: the extent changes, too. False when there is no room. */
extern bool grid_change_axes(const GridAllocator *allocator, Grid *grid, const struct AxesChange *change);
/* Room for a copy of the axes, besides those that the grid has, until grid_release(). */
extern bool grid_reserve_axes(const GridAllocator *allocator, Grid *grid, const Axes *axes);
/* Puts a copy there and takes it for the grid's own; NULL needs no room. Cannot fail. */
extern void grid_adopt_axes(const GridAllocator *allocator, Grid *grid, const Axes *axes);

extern bool grid_view_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell);
/* A scan (grid_scan_next) of logical rows and columns, in their order; by the grid's axes, or by others. */
extern void grid_view_init(GridScan *scan, const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1,
						   uint32_t col1);
extern void grid_view_init_by(GridScan *scan, const Grid *grid, const Axes *axes, uint32_t row0, uint32_t col0,
							  uint32_t row1, uint32_t col1);

/*
 * Tiles that are not in memory: a grid may know of tiles that are on storage only. Reading finds nothing in them and
 * reserving in them fails, so the caller asks first, loads them into a grid of their own, and merges. A tile that was
 * reserved in, or is held, stays until grid_release().
 */
typedef struct GridRect
{
	uint32_t row0, col0, row1, col1; /* cells, inclusive */
} GridRect;
typedef struct GridTileNo
{
	uint32_t row, col; /* numbers of the tile */
} GridTileNo;

/* Notes a tile that is on storage; nothing when the grid knows it. False when there is no room. */
extern bool grid_add_missing(const GridAllocator *allocator, Grid *grid, uint32_t tile_row, uint32_t tile_col);
extern uint32_t grid_tiles_here(const Grid *grid);
extern uint32_t grid_tiles_missing(const Grid *grid);
/* Whether the tile of the cell is known and not here. */
extern bool grid_is_missing(const Grid *grid, uint32_t row, uint32_t col);
/* The number of missing tiles that the rectangle touches; the first of them into list. */
extern uint32_t grid_list_missing(const Grid *grid, const GridRect *rect, GridTileNo *list, uint32_t room);
/* Notes a use of tiles. Stamps grow with time. Several readers may do this at a time. */
extern void grid_touch(Grid *grid, const GridRect *rect, uint64_t stamp);
/* The same two of a logical rectangle. A tile may be listed more than once. */
extern uint32_t grid_view_missing(const Grid *grid, const Axes *axes, const GridRect *rect, GridTileNo *list,
								  uint32_t room);
extern void grid_view_touch(Grid *grid, const GridRect *rect, uint64_t stamp);
/* Keeps a tile from being taken out until grid_release(). */
extern void grid_hold(Grid *grid, GridTile *tile);
/* Finds the cell's tile (NULL: no cells), notes its use and holds it; false when it is missing. */
extern bool grid_hold_at(Grid *grid, uint32_t row, uint32_t col, uint64_t stamp, GridTile **tile);
/* Moves the wanted tiles out of `part`, where all of them have been loaded; one that has no cells there is forgotten.
 * Never allocates. Both grids have the same allocator. */
extern void grid_merge(Grid *grid, Grid *part, const GridTileNo *wanted, uint32_t count, uint64_t stamp);
/* The tile with the lowest stamp of those that may go; false when there is none. */
extern bool grid_oldest(Grid *grid, uint64_t *stamp, uint32_t *at);
/* Takes it out, to be freed by grid_free_tile(). */
extern GridTile *grid_detach(Grid *grid, uint32_t at);
extern void grid_free_tile(const GridAllocator *allocator, GridTile *tile);

/* Tiles, for checkpoints: number tile (tile_row, tile_col) covers rows tile_row * GRID_TILE_ROWS and on. */
extern bool grid_tile_exists(const Grid *grid, uint32_t tile_row, uint32_t tile_col);
/* A 64-bit digest of all cells (position, content, style), the extent and the axes, the same for equal sheets however
 * they came about. */
extern uint64_t grid_digest(const Grid *grid);
/* It is a sum: of what extent and axes add, and of what each cell does, at its logical place; 0 for an empty one. */
extern uint64_t grid_digest_shape(const Grid *grid);
extern uint64_t grid_digest_cell(const GridCell *cell);

#endif
