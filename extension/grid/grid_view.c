/*
 * grid_view.c - a grid's cells in the rows and columns that people see.
 *
 * A view of a rectangle is a sequence of parts, each of which is a rectangle of physical cells as well. Where the
 * view's columns are one run, a part has as many rows as lie one behind the other; elsewhere a part is of one row,
 * since a row is read from left to right before the next one.
 */
#include "grid/grid_private.h"

_Static_assert(offsetof(Grid, axes) == 0, "grid_axes() reads the first field");

/* ---- the axes of a grid ---- */

void
grid_give_axes(const GridAllocator *allocator, Grid *grid, Axes *axes)
{
	if (grid->axes != NULL)
		grid->bytes -= grid->axes->size;
	axes_free(allocator, grid->axes);
	if (axes != NULL)
		grid->bytes += axes->size;
	grid->axes = axes;
}

bool
grid_change_axes(const GridAllocator *allocator, Grid *grid, const AxesChange *change)
{
	uint32_t *extent = change->line == AXES_ROW ? &grid->rows : &grid->cols;
	Axes *axes;

	if (!axes_change(allocator, grid->axes, change, *extent, &axes))
		return false;
	grid_give_axes(allocator, grid, axes);
	*extent = axes_extent(change, *extent);
	return true;
}

bool
grid_reserve_axes(const GridAllocator *allocator, Grid *grid, const Axes *axes)
{
	Axes *spare;

	if (grid->spare != NULL && grid->spare->size >= axes_bytes(axes))
		return true;
	spare = axes_make_room(allocator, axes);
	if (spare == NULL)
		return false;
	if (grid->spare != NULL)
		grid->bytes -= grid->spare->size;
	axes_free(allocator, grid->spare);
	grid->bytes += spare->size;
	grid->spare = spare;
	return true;
}

void
grid_adopt_axes(const GridAllocator *allocator, Grid *grid, const Axes *axes)
{
	Axes *old = grid->axes;

	if (axes == NULL)
	{
		grid_give_axes(allocator, grid, NULL);
		return;
	}
	memcpy(grid->spare->counts, axes->counts, sizeof(axes->counts));
	memcpy(grid->spare->runs, axes->runs, axes_bytes(axes) - sizeof(Axes));
	grid->axes = grid->spare;
	grid->spare = old;
}

/* ---- cells ---- */

bool
grid_view_get(const Grid *grid, uint32_t row, uint32_t col, GridCell *cell)
{
	uint32_t at_row = row, at_col = col;
	bool found;

	axes_locate(grid->axes, &at_row, &at_col);
	found = grid_get(grid, at_row, at_col, cell);
	cell->row = row;
	cell->col = col;
	return found;
}

void
grid_view_init(GridScan *scan, const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	grid_view_init_by(scan, grid, grid->axes, row0, col0, row1, col1);
}

enum
{
	VIEW_ROW0,
	VIEW_COL0,
	VIEW_ROW1,
	VIEW_COL1
};

static uint32_t
grid_below(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit - 1;
}

void
grid_view_init_by(GridScan *scan, const Grid *grid, const Axes *axes, uint32_t row0, uint32_t col0, uint32_t row1,
				  uint32_t col1)
{
	grid_scan_init(scan, grid, row0, col0, row1, col1);
	if (axes == NULL)
		return;
	scan->axes = axes;
	scan->view[VIEW_ROW0] = row0;
	scan->view[VIEW_COL0] = col0;
	scan->view[VIEW_ROW1] = grid_below(row1, AXES_MAX_ROWS);
	scan->view[VIEW_COL1] = grid_below(col1, AXES_MAX_COLS);
	/* An empty part, behind which the first one comes. */
	scan->top = row0;
	scan->left = scan->view[VIEW_COL1];
	grid_scan_begin(scan, 1, 0, 0, 0);
}

static uint32_t
grid_view_run(const Axes *axes, AxesLine line, uint32_t from, uint32_t last, uint32_t *place)
{
	Axis axis = axes_axis(axes, line);
	uint32_t length = axis_run_at(&axis, from, place);

	return length > last - from ? last - from + 1 : length;
}

/* The columns of a part, from a logical one on, in the rows that are given. */
static void
grid_view_begin(GridScan *scan, uint32_t top, uint32_t place, uint32_t rows, uint32_t left)
{
	uint32_t col;
	uint32_t cols = grid_view_run(scan->axes, AXES_COL, left, scan->view[VIEW_COL1], &col);

	grid_scan_begin(scan, place, col, place + rows - 1, col + cols - 1);
	scan->top = top;
	scan->left = left;
}

/* So many of the rows from `place` on have no tile at all. */
static uint32_t
grid_empty_rows(const Grid *grid, uint32_t place, uint32_t rows)
{
	uint32_t at = grid_lower_bound(grid, place / GRID_TILE_ROWS, 0);
	uint32_t tile_row;

	if (at == grid->tile_count)
		return rows;
	tile_row = (uint32_t) (grid->places[at].order >> 32);
	if (tile_row == place / GRID_TILE_ROWS)
		return 0;
	return tile_row * GRID_TILE_ROWS - place < rows ? tile_row * GRID_TILE_ROWS - place : rows;
}

/* The first part of the next rows, from a logical one on. */
static bool
grid_view_next_rows(GridScan *scan, uint32_t top)
{
	const uint32_t *view = scan->view;
	uint32_t col;
	bool whole = grid_view_run(scan->axes, AXES_COL, view[VIEW_COL0], view[VIEW_COL1], &col) ==
				 view[VIEW_COL1] - view[VIEW_COL0] + 1;

	while (top <= view[VIEW_ROW1])
	{
		uint32_t place;
		uint32_t rows = grid_view_run(scan->axes, AXES_ROW, top, view[VIEW_ROW1], &place);
		uint32_t empty = grid_empty_rows(scan->grid, place, rows);

		if (empty < rows)
		{
			grid_view_begin(scan, top + empty, place + empty, whole ? rows - empty : 1, view[VIEW_COL0]);
			return true;
		}
		top += rows;
	}
	return false;
}

bool
grid_view_next_part(GridScan *scan)
{
	uint32_t rows = scan->row1 + 1 - scan->row0;
	uint32_t left = scan->left + (scan->col1 + 1 - scan->col0);

	if (scan->view[VIEW_COL0] > scan->view[VIEW_COL1])
		return false;
	if (rows > 0 && left <= scan->view[VIEW_COL1])
	{
		grid_view_begin(scan, scan->top, scan->row0, rows, left);
		return true;
	}
	return grid_view_next_rows(scan, scan->top + rows);
}

/* ---- tiles ---- */

uint32_t
grid_view_missing(const Grid *grid, const Axes *axes, const GridRect *rect, GridTileNo *list, uint32_t room)
{
	AxesParts parts;
	GridRect part;
	uint32_t count = 0;

	if (axes == NULL || grid_tiles_missing(grid) == 0)
		return grid_list_missing(grid, rect, list, room);
	axes_parts_init(&parts, axes, rect);
	while (axes_parts_next(&parts, &part))
	{
		uint32_t listed = count < room ? count : room;

		count += grid_list_missing(grid, &part, listed > 0 ? list + listed : list, room - listed);
	}
	return count;
}

void
grid_view_touch(Grid *grid, const GridRect *rect, uint64_t stamp)
{
	AxesParts parts;
	GridRect part;

	if (grid->axes == NULL)
	{
		grid_touch(grid, rect, stamp);
		return;
	}
	axes_parts_init(&parts, grid->axes, rect);
	while (axes_parts_next(&parts, &part))
		grid_touch(grid, &part, stamp);
}
