/*
 * grid_scan.c - reading a rectangle of cells row by row, and the digest of a grid.
 *
 * A physical scan goes band by band (the tiles of one tile row), within a band row by row, within a row tile by tile.
 *
 * A logical scan goes through a sequence of parts, each of which is a physical rectangle. Where the columns of the
 * logical rectangle are one run of the column map, a part has as many rows as are adjacent in both orders; otherwise a
 * part is of one row, since a row is read from left to right before the next one.
 */
#include "grid/grid_private.h"

/* Begins a physical scan. The fields of a logical one are left alone. */
static void
grid_scan_begin(GridScan *scan, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	scan->from = scan->to = scan->tile = 0;
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
	scan->maps = NULL;
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
		uint32_t from = grid_index_lower_bound(grid, (GridTileNo){tile_row, first_col});
		uint32_t to;

		if (from == grid->tile_count)
			return false;
		if (grid->index[from].no.row > tile_row)
		{
			/* Nothing of this row: go on with the row of the tile found. */
			tile_row = grid->index[from].no.row;
			from = grid_index_lower_bound(grid, (GridTileNo){tile_row, first_col});
		}
		if (tile_row > scan->row1 / GRID_TILE_ROWS)
			return false;
		to = from;
		while (to < grid->tile_count && grid->index[to].no.row == tile_row && grid->index[to].no.col <= last_col)
			to++;
		if (to > from)
		{
			scan->from = scan->tile = from;
			scan->to = to;
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

	for (; scan->tile < scan->to; scan->tile++)
	{
		const GridIndexEntry *entry = &scan->grid->index[scan->tile];
		const Tile *tile = entry->tile;
		uint32_t left = entry->no.col * GRID_TILE_COLS;
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
	for (uint32_t at = scan->from; at < scan->to; at++)
	{
		const Tile *tile = scan->grid->index[at].tile;

		if (tile != NULL)
			tile_prefetch_row(tile, row % GRID_TILE_ROWS);
	}
}

static void
grid_scan_begin_row(GridScan *scan)
{
	scan->col = scan->col0;
	scan->tile = scan->from;
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
		if (scan->from == scan->to && !grid_scan_begin_band(scan))
			break;
		count += grid_scan_row(scan, cells + count, room - count);
		if (count == room)
			break;
		scan->row++;
		if (scan->row % GRID_TILE_ROWS == 0)
			scan->from = scan->to = 0;
		grid_scan_begin_row(scan);
	}
	return count;
}

/* ---- logical rows and columns ---- */

bool
grid_view_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell)
{
	uint32_t at_row = row, at_col = col;
	bool found;

	line_maps_locate(grid->maps, &at_row, &at_col);
	found = grid_get(grid, at_row, at_col, cell);
	cell->row = row;
	cell->col = col;
	return found;
}

void
grid_view_init(GridScan *scan, const Grid *grid, const LineMaps *maps, uint32_t row0, uint32_t col0, uint32_t row1,
			   uint32_t col1)
{
	grid_scan_init(scan, grid, row0, col0, row1, col1);
	if (maps == NULL)
		return;
	scan->maps = maps;
	scan->view.row0 = row0;
	scan->view.col0 = col0;
	scan->view.row1 = row1 < SHEET_MAX_ROWS ? row1 : SHEET_MAX_ROWS - 1;
	scan->view.col1 = col1 < SHEET_MAX_COLS ? col1 : SHEET_MAX_COLS - 1;
	/* An empty part, before the first one. */
	scan->top = row0;
	scan->left = scan->view.col1;
	grid_scan_begin(scan, 1, 0, 0, 0);
}

/* Begins a part: `rows` rows from physical row `place` on, shown from row `top` on, and the columns of one run from
 * `left` on. */
static void
grid_view_begin(GridScan *scan, uint32_t top, uint32_t place, uint32_t rows, uint32_t left)
{
	uint32_t col;
	uint32_t cols = line_maps_run_at(scan->maps, LINE_COL, left, scan->view.col1, &col);

	grid_scan_begin(scan, place, col, place + rows - 1, col + cols - 1);
	scan->top = top;
	scan->left = left;
}

/* Returns how many of the rows from `place` on have no tile. */
static uint32_t
grid_empty_rows(const Grid *grid, uint32_t place, uint32_t rows)
{
	uint32_t at = grid_index_lower_bound(grid, (GridTileNo){place / GRID_TILE_ROWS, 0});
	uint32_t tile_row;

	if (at == grid->tile_count)
		return rows;
	tile_row = grid->index[at].no.row;
	if (tile_row == place / GRID_TILE_ROWS)
		return 0;
	return tile_row * GRID_TILE_ROWS - place < rows ? tile_row * GRID_TILE_ROWS - place : rows;
}

/* Begins the first part of the rows from `top` on. */
static bool
grid_view_next_rows(GridScan *scan, uint32_t top)
{
	const GridRect *view = &scan->view;
	uint32_t col;
	bool whole = line_maps_run_at(scan->maps, LINE_COL, view->col0, view->col1, &col) == view->col1 - view->col0 + 1;

	while (top <= view->row1)
	{
		uint32_t place;
		uint32_t rows = line_maps_run_at(scan->maps, LINE_ROW, top, view->row1, &place);
		uint32_t empty = grid_empty_rows(scan->grid, place, rows);

		if (empty < rows)
		{
			grid_view_begin(scan, top + empty, place + empty, whole ? rows - empty : 1, view->col0);
			return true;
		}
		top += rows;
	}
	return false;
}

/* Goes to the next part. Returns false at the end of the last one. */
static bool
grid_view_next_part(GridScan *scan)
{
	uint32_t rows = scan->row1 + 1 - scan->row0;
	uint32_t left = scan->left + (scan->col1 + 1 - scan->col0);

	if (scan->view.col0 > scan->view.col1)
		return false;
	if (rows > 0 && left <= scan->view.col1)
	{
		grid_view_begin(scan, scan->top, scan->row0, rows, left);
		return true;
	}
	return grid_view_next_rows(scan, scan->top + rows);
}

uint32_t
grid_scan_some(GridScan *scan, GridCell *cells, uint32_t room)
{
	uint32_t count = grid_scan_physical(scan, cells, room);

	if (scan->maps == NULL)
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

/* 0 for the identity, so that the digest of a sheet whose rows and columns were never moved does not depend on maps. */
static uint64_t
grid_maps_digest(const LineMaps *maps)
{
	uint64_t h;

	if (maps == NULL)
		return 0;
	h = grid_mix((uint64_t) maps->counts[LINE_ROW] << 32 | maps->counts[LINE_COL]);
	for (uint32_t i = 0; i < maps->counts[LINE_ROW] + maps->counts[LINE_COL]; i++)
		h = grid_mix(h ^ ((uint64_t) maps->runs[i].start << 32 | maps->runs[i].place));
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
	return grid_mix((uint64_t) grid->rows << 32 | grid->cols) + grid_maps_digest(grid->maps);
}

/* A sum, so that the order in which cells were written does not matter. */
uint64_t
grid_digest(const Grid *grid)
{
	uint64_t sum = grid_digest_shape(grid);
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, grid->maps, 0, 0, UINT32_MAX - 1, UINT32_MAX - 1);
	while (grid_scan_next(&scan, &cell))
		sum += grid_digest_cell(&cell);
	return sum;
}
