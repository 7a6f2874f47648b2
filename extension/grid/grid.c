/*
 * grid.c - a sheet's cells: tiles in an array sorted by (tile row, tile column).
 *
 * A sorted array keeps a sheet of a few cells small, one cell in row 16,000,000 cheap, and makes a scan row by row a
 * walk over neighbours. In a sheet that is filled without gaps a tile's place follows from its row and column, which is
 * tried first; otherwise a binary search finds it. Sheets are filled from top to bottom, so a new tile mostly comes
 * last.
 */
#include "grid/grid.h"

#include "grid/grid_private.h"

#include <string.h>

Grid *
grid_create(const GridAllocator *allocator, uint32_t rows, uint32_t cols)
{
	Grid *grid = allocator->alloc(allocator->ctx, sizeof(Grid));

	if (grid == NULL)
		return NULL;
	memset(grid, 0, sizeof(Grid));
	grid->rows = rows > 0 ? rows : 1;
	grid->cols = cols > 0 ? cols : 1;
	grid->bytes = sizeof(Grid);
	return grid;
}

void
grid_free(const GridAllocator *allocator, Grid *grid)
{
	for (uint32_t i = 0; i < grid->tile_count; i++)
		if (grid->places[i].tile != NULL)
			tile_free(allocator, &grid->bytes, grid->places[i].tile);
	grid_free_places(allocator, grid);
	axes_free(allocator, grid->axes);
	axes_free(allocator, grid->spare);
	allocator->free(allocator->ctx, grid, sizeof(Grid));
}

size_t
grid_bytes(const Grid *grid)
{
	return grid->bytes;
}

uint32_t
grid_rows(const Grid *grid)
{
	return grid->rows;
}

uint32_t
grid_cols(const Grid *grid)
{
	return grid->cols;
}

uint64_t
grid_cells(const Grid *grid)
{
	return grid->cells;
}

/* The tile, made when it is not there; NULL when there is no room, or when it is missing. */
static Tile *
grid_make_tile(const GridAllocator *allocator, Grid *grid, uint32_t tile_row, uint32_t tile_col)
{
	const GridPlace *place = grid_place_at(grid, tile_row, tile_col);
	Tile *tile;

	if (place != NULL)
		return place->tile;
	if (!grid_grow_places(allocator, grid))
		return NULL;
	tile = tile_create(allocator, &grid->bytes, tile_row, tile_col);
	if (tile != NULL)
		grid_insert_place(grid, tile_row, tile_col, tile);
	return tile;
}

void
grid_hold(Grid *grid, GridTile *tile)
{
	if (tile->held)
		return;
	tile->held = true;
	tile->next_held = grid->held;
	grid->held = tile;
}

GridTile *
grid_reserve(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col, uint32_t content_len,
			 uint32_t style_len)
{
	Tile *tile = grid_make_tile(allocator, grid, row / GRID_TILE_ROWS, col / GRID_TILE_COLS);

	if (tile == NULL)
		return NULL;
	grid_hold(grid, tile); /* first: the allocator may make room by taking tiles out */
	return tile_reserve(allocator, &grid->bytes, tile, content_len, style_len) ? tile : NULL;
}

bool
grid_reserve_there(Grid *grid, GridTile *tile, uint32_t content_len, uint32_t style_len)
{
	if (!tile_reserve_there(tile, content_len, style_len))
		return false;
	grid_hold(grid, tile);
	return true;
}

void
grid_resize(Grid *grid, uint32_t rows, uint32_t cols)
{
	if (rows > grid->rows)
		grid->rows = rows;
	if (cols > grid->cols)
		grid->cols = cols;
}

void
grid_set_extent(Grid *grid, uint32_t rows, uint32_t cols)
{
	grid->rows = rows;
	grid->cols = cols;
}

void
grid_set_there(Grid *grid, GridTile *tile, uint32_t row, uint32_t col, const char *content, uint32_t content_len,
			   const char *style, uint32_t style_len)
{
	grid->cells += (uint64_t) (int64_t) tile_set(tile, grid_key(row, col), content, content_len, style, style_len);
	if (grid->axes == NULL)
		grid_resize(grid, row + 1, col + 1);
}

void
grid_set(Grid *grid, uint32_t row, uint32_t col, const char *content, uint32_t content_len, const char *style,
		 uint32_t style_len)
{
	grid_set_there(grid, grid_find_tile(grid, row, col), row, col, content, content_len, style, style_len);
}

void
grid_release(const GridAllocator *allocator, Grid *grid)
{
	/* Tiles with cells keep their room: the next batch mostly wants the same. */
	if (grid->spare != NULL)
	{
		grid->bytes -= grid->spare->size;
		axes_free(allocator, grid->spare);
		grid->spare = NULL;
	}
	while (grid->held != NULL)
	{
		Tile *tile = grid->held;

		grid->edited += tile->edited == TILE_PACKED;
		tile->edited = TILE_EDITED;
		grid->held = tile->next_held;
		tile->next_held = NULL;
		tile->held = false;
		tile->reserved_cells = 0;
		tile->reserved_styles = 0;
		tile->reserved_bytes = 0;
		if (tile->cells == 0)
			tile_empty(allocator, &grid->bytes, tile);
	}
}

GridTile *
grid_expect(const GridAllocator *allocator, Grid *grid, uint32_t tile_row, uint32_t tile_col, uint32_t cells,
			uint32_t content_bytes)
{
	Tile *tile = grid_make_tile(allocator, grid, tile_row, tile_col);

	if (tile == NULL)
		return NULL;
	grid_hold(grid, tile);
	return tile_expect(allocator, &grid->bytes, tile, cells, content_bytes) ? tile : NULL;
}

bool
grid_pack(const GridAllocator *allocator, Grid *grid)
{
	for (uint32_t i = 0; i < grid->tile_count; i++)
		if (grid->places[i].tile != NULL && !tile_pack(allocator, &grid->bytes, grid->places[i].tile))
			return false;
	return true;
}

/* Gives back what the tile has beyond its cells, if nobody has edited it since the last look. */
static void
grid_pack_tile(const GridAllocator *allocator, Grid *grid, Tile *tile)
{
	if (tile->edited == TILE_PACKED || tile->held)
		return;
	if (tile->edited == TILE_EDITED)
	{
		tile->edited = TILE_IDLE;
		return;
	}
	if (tile_has_slack(tile) && !tile_pack(allocator, &grid->bytes, tile))
		return;
	tile->edited = TILE_PACKED;
	grid->edited--;
}

bool
grid_is_edited(const Grid *grid)
{
	return grid->edited > 0;
}

bool
grid_pack_idle(const GridAllocator *allocator, Grid *grid, uint32_t *at, uint32_t count)
{
	for (; count > 0 && grid->edited > 0 && *at < grid->tile_count; count--, (*at)++)
		if (grid->places[*at].tile != NULL)
			grid_pack_tile(allocator, grid, grid->places[*at].tile);
	if (*at >= grid->tile_count || grid->edited == 0)
		*at = 0;
	return grid->edited > 0;
}

/* The places of the grid, all of them missing. */
static bool
grid_copy_places(const GridAllocator *allocator, const Grid *grid, Grid *copy)
{
	size_t size = grid_places_size(grid->tile_count);

	if (size == 0)
		return true;
	copy->places = allocator->alloc(allocator->ctx, size);
	if (copy->places == NULL)
		return false;
	memcpy(copy->places, grid->places, grid->tile_count * sizeof(GridPlace));
	for (uint32_t i = 0; i < grid->tile_count; i++)
		copy->places[i].tile = NULL;
	copy->bytes += size;
	copy->tile_count = copy->tile_capacity = copy->missing = grid->tile_count;
	return true;
}

bool
grid_copy(const GridAllocator *allocator, const Grid *grid, Grid **to)
{
	Grid *copy = *to = grid_create(allocator, grid->rows, grid->cols);
	Axes *axes;

	if (copy == NULL || !grid_copy_places(allocator, grid, copy))
		return false;
	if (grid->axes != NULL)
	{
		if (!axes_copy(allocator, grid->axes, &axes))
			return false;
		grid_give_axes(allocator, copy, axes);
	}
	for (uint32_t i = 0; i < grid->tile_count; i++)
	{
		const Tile *tile = grid->places[i].tile;

		if (tile == NULL)
			continue;
		copy->places[i].tile = tile_clone(allocator, &copy->bytes, tile);
		if (copy->places[i].tile == NULL)
			return false;
		copy->missing--;
		copy->cells += tile->cells;
	}
	return true;
}

bool
grid_put(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col, const char *content,
		 uint32_t content_len, const char *style, uint32_t style_len)
{
	Tile *tile =
		grid_reserve(allocator, grid, row, col, content != NULL ? content_len : 0, style != NULL ? style_len : 0);

	if (tile == NULL)
		return false;
	grid_set_there(grid, tile, row, col, content, content_len, style, style_len);
	return true;
}

/* ---- reading ---- */

GridTile *
grid_find_tile(const Grid *grid, uint32_t row, uint32_t col)
{
	const GridPlace *place = grid_place_at(grid, row / GRID_TILE_ROWS, col / GRID_TILE_COLS);

	return place != NULL ? place->tile : NULL;
}

bool
grid_get_there(const GridTile *tile, uint32_t row, uint32_t col, GridCell *cell)
{
	const TileSlot *slot = tile != NULL && tile->capacity > 0 ? tile_find(tile, grid_key(row, col)) : NULL;

	if (slot == NULL)
	{
		*cell = (GridCell){.row = row, .col = col, .content = "", .style = ""};
		return false;
	}
	tile_cell(tile, slot, grid_key(row, col), cell);
	return true;
}

bool
grid_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell)
{
	return grid_get_there(grid_find_tile(grid, row, col), row, col, cell);
}

void
grid_prefetch_cell(const GridTile *tile, uint32_t row, uint32_t col)
{
	if (tile != NULL && tile->capacity == TILE_CELLS)
		__builtin_prefetch(&tile->slots[grid_key(row, col)]);
}

/* Short contents are moved 16 bytes at a time, of which every fourth time some lie on the processor's next line. */
#define GRID_MOVE 16

void
grid_prefetch_content(const GridTile *tile, uint32_t row, uint32_t col)
{
	const char *content;

	if (tile == NULL || tile->capacity != TILE_CELLS)
		return;
	content = tile->arena + tile->slots[grid_key(row, col)].offset;
	__builtin_prefetch(content);
	__builtin_prefetch(content + GRID_MOVE - 1);
}

void
grid_prefetch_tile(const GridTile *tile)
{
	__builtin_prefetch(tile, 1);
}

void
grid_prefetch_set(const GridTile *tile, uint32_t row, uint32_t col)
{
	if (tile != NULL && tile->capacity == TILE_CELLS)
		__builtin_prefetch(&tile->slots[grid_key(row, col)], 1);
}

void
grid_prefetch_put(const GridTile *tile, uint32_t row, uint32_t col, uint32_t content_len)
{
	const TileSlot *slot;
	const char *content;

	if (tile == NULL || tile->capacity != TILE_CELLS)
		return;
	slot = &tile->slots[grid_key(row, col)];
	content = tile->arena + (content_len > slot->len ? tile->arena_used : slot->offset);
	__builtin_prefetch(content, 1);
	__builtin_prefetch(content + GRID_MOVE - 1, 1);
}

bool
grid_tile_exists(const Grid *grid, uint32_t tile_row, uint32_t tile_col)
{
	const GridPlace *place = grid_place_at(grid, tile_row, tile_col);

	return place != NULL && place->tile != NULL && place->tile->cells > 0;
}

/* ---- scanning: band (the tiles of one tile row) by band, in it row by row, in it tile by tile ---- */

enum
{
	SCAN_FROM, /* first tile of the band */
	SCAN_TO,   /* behind its last tile; SCAN_FROM == SCAN_TO: no band */
	SCAN_TILE, /* tile to look at */
	SCAN_UNUSED
};

void
grid_scan_begin(GridScan *scan, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	memset(scan->state, 0, sizeof(scan->state));
	scan->row0 = row0;
	scan->col0 = col0;
	scan->row1 = row1;
	scan->col1 = col1;
	scan->row = row0;
	scan->col = col0;
}

void
grid_scan_init(GridScan *scan, const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	scan->grid = grid;
	scan->axes = NULL;
	grid_scan_begin(scan, row0, col0, row1, col1);
}

/* Finds the next band that has tiles of the rectangle, from scan->row on. */
static bool
grid_scan_band(GridScan *scan)
{
	const Grid *grid = scan->grid;
	uint32_t first_col = scan->col0 / GRID_TILE_COLS;
	uint32_t last_col = scan->col1 / GRID_TILE_COLS;
	uint32_t tile_row = scan->row / GRID_TILE_ROWS;

	for (;;)
	{
		uint32_t from = grid_lower_bound(grid, tile_row, first_col);
		uint32_t to;

		if (from == grid->tile_count)
			return false;
		if (grid->places[from].order >> 32 > tile_row)
		{
			/* Nothing of this row: go on with the row of the tile found. */
			tile_row = (uint32_t) (grid->places[from].order >> 32);
			from = grid_lower_bound(grid, tile_row, first_col);
		}
		if (tile_row > scan->row1 / GRID_TILE_ROWS)
			return false;
		to = from;
		while (to < grid->tile_count && grid->places[to].order >> 32 == tile_row &&
			   (uint32_t) grid->places[to].order <= last_col)
			to++;
		if (to > from)
		{
			scan->state[SCAN_FROM] = scan->state[SCAN_TILE] = from;
			scan->state[SCAN_TO] = to;
			if (scan->row < tile_row * GRID_TILE_ROWS)
				scan->row = tile_row * GRID_TILE_ROWS;
			scan->col = scan->col0;
			return true;
		}
		tile_row++;
	}
}

/* The next cells of the present row and band. */
static uint32_t
grid_scan_row(GridScan *scan, GridCell *cells, uint32_t room)
{
	uint32_t count = 0;

	for (; scan->state[SCAN_TILE] < scan->state[SCAN_TO]; scan->state[SCAN_TILE]++)
	{
		const GridPlace *place = &scan->grid->places[scan->state[SCAN_TILE]];
		const Tile *tile = place->tile;
		uint32_t left = (uint32_t) place->order * GRID_TILE_COLS;
		uint32_t first = scan->col > left ? scan->col - left : 0;
		uint32_t last = scan->col1 - left < GRID_TILE_COLS ? scan->col1 - left : GRID_TILE_COLS - 1;

		if (first > last || tile == NULL || tile->cells == 0)
			continue;
		count += tile_row_cells(tile, scan->row % GRID_TILE_ROWS, first, last, cells + count, room - count);
		if (count == room)
		{
			scan->col = cells[count - 1].col + 1;
			break;
		}
	}
	return count;
}

#define SCAN_AHEAD 4 /* rows */

/* Asks the processor for what leads to the cells of a row of the band, which need not be one of the rectangle. */
static void
grid_scan_prefetch(const GridScan *scan, uint32_t row)
{
	if (row > scan->row1 || row / GRID_TILE_ROWS != scan->row / GRID_TILE_ROWS)
		return;
	for (uint64_t at = scan->state[SCAN_FROM]; at < scan->state[SCAN_TO]; at++)
	{
		const Tile *tile = scan->grid->places[at].tile;

		if (tile != NULL)
			tile_prefetch_row(tile, row % GRID_TILE_ROWS);
	}
}

static void
grid_scan_begin_row(GridScan *scan)
{
	scan->col = scan->col0;
	scan->state[SCAN_TILE] = scan->state[SCAN_FROM];
	grid_scan_prefetch(scan, scan->row + SCAN_AHEAD);
}

/* Finds the next band, and asks for its first rows. */
static bool
grid_scan_begin_band(GridScan *scan)
{
	if (!grid_scan_band(scan))
		return false;
	for (uint32_t ahead = 0; ahead <= SCAN_AHEAD; ahead++)
		grid_scan_prefetch(scan, scan->row + ahead);
	return true;
}

static uint32_t
grid_scan_physical(GridScan *scan, GridCell *cells, uint32_t room)
{
	uint32_t count = 0;

	while (scan->row <= scan->row1 && scan->col0 <= scan->col1)
	{
		if (scan->state[SCAN_FROM] == scan->state[SCAN_TO] && !grid_scan_begin_band(scan))
			break;
		count += grid_scan_row(scan, cells + count, room - count);
		if (count == room)
			break;
		scan->row++;
		if (scan->row % GRID_TILE_ROWS == 0)
			scan->state[SCAN_FROM] = scan->state[SCAN_TO] = 0;
		grid_scan_begin_row(scan);
	}
	return count;
}

uint32_t
grid_scan_some(GridScan *scan, GridCell *cells, uint32_t room)
{
	uint32_t count = grid_scan_physical(scan, cells, room);

	if (scan->axes == NULL)
		return count;
	while (count == 0)
	{
		if (!grid_view_next_part(scan))
			return 0;
		count = grid_scan_physical(scan, cells, room);
	}
	for (uint32_t i = 0; i < count; i++)
	{
		cells[i].row = scan->top + (cells[i].row - scan->row0);
		cells[i].col = scan->left + (cells[i].col - scan->col0);
	}
	return count;
}

/* ---- digest ---- */

/* Finaliser of MurmurHash3 (public domain, Austin Appleby). */
static inline uint64_t
grid_mix(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xFF51AFD7ED558CCDULL;
	h ^= h >> 33;
	h *= 0xC4CEB9FE1A85EC53ULL;
	return h ^ h >> 33;
}

static uint64_t
grid_mix_text(uint64_t h, const char *data, uint32_t len)
{
	for (; len >= 8; data += 8, len -= 8)
	{
		uint64_t word;

		memcpy(&word, data, 8);
		h = grid_mix(h ^ word);
	}
	if (len > 0)
	{
		uint64_t word = 0;

		memcpy(&word, data, len);
		h = grid_mix(h ^ word ^ (uint64_t) len << 56);
	}
	return h;
}

/* 0 for the identity, so that the digests of sheets whose rows and columns were never moved do not know of axes. */
static uint64_t
grid_axes_digest(const Axes *axes)
{
	uint64_t h;

	if (axes == NULL)
		return 0;
	h = grid_mix((uint64_t) axes->counts[AXES_ROW] << 32 | axes->counts[AXES_COL]);
	for (uint32_t i = 0; i < axes->counts[AXES_ROW] + axes->counts[AXES_COL]; i++)
		h = grid_mix(h ^ ((uint64_t) axes->runs[i].start << 32 | axes->runs[i].place));
	return h;
}

uint64_t
grid_digest_cell(const GridCell *cell)
{
	uint64_t h = grid_mix((uint64_t) cell->row << 32 | cell->col);

	if (cell->content_len == 0 && cell->style_len == 0)
		return 0;
	h = grid_mix_text(grid_mix(h ^ cell->content_len), cell->content, cell->content_len);
	return grid_mix_text(grid_mix(h ^ cell->style_len), cell->style, cell->style_len);
}

uint64_t
grid_digest_shape(const Grid *grid)
{
	return grid_mix((uint64_t) grid->rows << 32 | grid->cols) + grid_axes_digest(grid->axes);
}

/* A sum, so that the order in which cells were written does not matter. */
uint64_t
grid_digest(const Grid *grid)
{
	uint64_t sum = grid_digest_shape(grid);
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, 0, 0, UINT32_MAX - 1, UINT32_MAX - 1);
	while (grid_scan_next(&scan, &cell))
		sum += grid_digest_cell(&cell);
	return sum;
}
