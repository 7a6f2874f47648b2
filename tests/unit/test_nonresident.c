/*
 * test_nonresident.c - a grid of which only some tiles are in memory, against a plain array: tiles are loaded, used,
 * edited and evicted at random. Resident tiles are always right, others are known to be non-resident, a round of the
 * eviction clock evicts exactly the tiles that were not used since the last one, pinned tiles stay, and every byte is
 * accounted for.
 */
#include "grid_memory.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS	  (6 * GRID_TILE_ROWS)
#define COLS	  (5 * GRID_TILE_COLS)
#define TILE_ROWS 6
#define TILE_COLS 5

static uint32_t cells[ROWS][COLS]; /* the number that the cell shows; 0: empty */
static bool resident[TILE_ROWS][TILE_COLS];
static bool used[TILE_ROWS][TILE_COLS]; /* since the last round of the clock */
static bool pinned[TILE_ROWS][TILE_COLS];

static uint32_t
text_of(uint32_t number, char text[32])
{
	return number == 0
			   ? 0
			   : (uint32_t) snprintf(text, 32, number % 500 == 1 ? "=%0*u" : "%0*u", (int) (number % 20), number);
}

/* Whether the tile has cells, or formulas. */
static bool
tile_has(GridTileNo tile, bool formulas)
{
	for (uint32_t row = 0; row < GRID_TILE_ROWS; row++)
		for (uint32_t col = 0; col < GRID_TILE_COLS; col++)
		{
			uint32_t number = cells[tile.row * GRID_TILE_ROWS + row][tile.col * GRID_TILE_COLS + col];

			if (formulas ? number % 500 == 1 : number != 0)
				return true;
		}
	return false;
}

/* As storage would give it: cell by cell, or with room for all of them at once. */
static void
load_tile(Grid *part, GridTileNo tile)
{
	bool at_once = random_below(2) == 0;
	uint32_t count = 0, bytes = 0;
	GridTile *there = NULL;
	char text[32];

	for (uint32_t at = 0; at < GRID_TILE_ROWS * GRID_TILE_COLS; at++)
	{
		uint32_t number =
			cells[tile.row * GRID_TILE_ROWS + at / GRID_TILE_COLS][tile.col * GRID_TILE_COLS + at % GRID_TILE_COLS];

		count += number != 0;
		bytes += text_of(number, text);
	}
	if (at_once && count > 0)
		there = grid_expect(&allocator, part, tile, count, bytes);
	for (uint32_t row = tile.row * GRID_TILE_ROWS; row < (tile.row + 1) * GRID_TILE_ROWS; row++)
		for (uint32_t col = tile.col * GRID_TILE_COLS; col < (tile.col + 1) * GRID_TILE_COLS; col++)
		{
			uint32_t len = text_of(cells[row][col], text);

			if (cells[row][col] == 0)
				continue;
			if (there != NULL)
				grid_tile_set(part, there, row, col, text, len, NULL, 0);
			else
				grid_put(&allocator, part, row, col, text, len, NULL, 0);
		}
}

/* Everything that the rectangle touches is here afterwards. */
static bool
load(Grid *grid, const GridRect *rect)
{
	GridTileNo missing[TILE_ROWS * TILE_COLS];
	uint32_t count = grid_list_nonresident(grid, NULL, rect, missing, TILE_ROWS * TILE_COLS);
	Grid *part = grid_create(&allocator, 1, 1);

	for (uint32_t i = 0; i < count; i++)
		load_tile(part, missing[i]);
	grid_release(&allocator, part);
	grid_merge(grid, part, missing, count);
	for (uint32_t i = 0; i < count; i++)
		resident[missing[i].row][missing[i].col] = used[missing[i].row][missing[i].col] = tile_has(missing[i], false);
	grid_free(&allocator, part);
	return grid_list_nonresident(grid, NULL, rect, NULL, 0) == 0;
}

static bool
window_is_right(Grid *grid, const GridRect *rect)
{
	bool right = true;

	for (uint32_t row = rect->row0; row <= rect->row1; row++)
		for (uint32_t col = rect->col0; col <= rect->col1; col++)
		{
			GridCell cell;
			char text[32];
			uint32_t len = text_of(cells[row][col], text);

			right &= grid_get(grid, row, col, &cell) == (len > 0) && cell.content_len == len &&
					 memcmp(cell.content, text, len) == 0;
		}
	return right;
}

static void
use(Grid *grid, const GridRect *rect)
{
	grid_touch(grid, NULL, rect);
	for (uint32_t row = rect->row0 / GRID_TILE_ROWS; row <= rect->row1 / GRID_TILE_ROWS; row++)
		for (uint32_t col = rect->col0 / GRID_TILE_COLS; col <= rect->col1 / GRID_TILE_COLS; col++)
			used[row][col] = resident[row][col];
}

static GridRect
random_rect(void)
{
	uint32_t row = random_below(ROWS), col = random_below(COLS);
	uint32_t last_row = row + random_below(90), last_col = col + random_below(30);

	return (GridRect){row, col, last_row < ROWS ? last_row : ROWS - 1, last_col < COLS ? last_col : COLS - 1};
}

/* An edit as writers make it: the tile is pinned, room is reserved, the cell is set; pins end now and then. */
static bool
edit(Grid *grid)
{
	uint32_t row = random_below(ROWS), col = random_below(COLS);
	GridRect rect = {row, col, row, col};
	uint32_t number = random_below(4) == 0 ? 0 : random_below(100000);
	GridTile *tile;
	char text[32];
	uint32_t len = text_of(number, text);

	if (grid_is_nonresident(grid, row, col))
	{
		if (grid_pin_at(grid, row, col, &tile) || grid_reserve(&allocator, grid, row, col, 1, 0) != NULL)
			return false;
		load(grid, &rect);
	}
	if (!grid_pin_at(grid, row, col, &tile))
		return false;
	tile = grid_reserve(&allocator, grid, row, col, len, 0);
	if (tile == NULL)
		return false;
	grid_tile_set(grid, tile, row, col, text, len, NULL, 0);
	cells[row][col] = number;
	resident[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] = true;
	used[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] = true;
	pinned[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] = true;
	return true;
}

/* One round of the clock. */
static bool
evict(Grid *grid, uint64_t *evictions)
{
	uint32_t hand = 0, evicted = grid_evict(&allocator, grid, &hand, SIZE_MAX), expected = 0;
	bool right = hand == 0;

	for (uint32_t row = 0; row < TILE_ROWS; row++)
		for (uint32_t col = 0; col < TILE_COLS; col++)
		{
			bool leaves = resident[row][col] && !used[row][col] && !pinned[row][col];

			expected += leaves;
			resident[row][col] &= !leaves;
			used[row][col] &= pinned[row][col];
			right &= resident[row][col] == (grid_find_tile(grid, row * GRID_TILE_ROWS, col * GRID_TILE_COLS) != NULL);
		}
	*evictions += evicted;
	return right && evicted == expected;
}

/* Exactly the tiles with formulas are found, in order, whether they are here or not. */
static bool
formulas_are_right(const Grid *grid)
{
	GridTileNo next = {0, 0};
	bool there, any = grid_next_formulas(grid, &next, &there);

	for (GridTileNo no = {0, 0}; no.row < TILE_ROWS; no.row++)
		for (no.col = 0; no.col < TILE_COLS; no.col++)
		{
			if (!tile_has(no, true))
				continue;
			if (!any || next.row != no.row || next.col != no.col || there != resident[no.row][no.col])
				return false;
			next.col++;
			any = grid_next_formulas(grid, &next, &there);
		}
	return !any;
}

int
main(void)
{
	Grid *grid = grid_create(&allocator, ROWS, COLS);
	bool edited = true, loaded = true, right = true, ordered = true, exact = true, formulas = true;
	uint64_t evictions = 0;

	for (int i = 0; i < (int) steps_to_run(12000, 60000); i++)
	{
		GridRect rect = random_rect();

		switch (random_below(9))
		{
			case 0:
				loaded &= load(grid, &rect);
				right &= window_is_right(grid, &rect);
				use(grid, &rect);
				break;
			case 1:
				grid_release(&allocator, grid);
				memset(pinned, 0, sizeof(pinned));
				break;
			case 2:
				ordered &= evict(grid, &evictions);
				break;
			case 3:
				use(grid, &rect);
				break;
			default:
				edited &= edit(grid);
				break;
		}
		exact &= grid_bytes(grid) == taken;
		if (i % 50 == 0)
			formulas &= formulas_are_right(grid);
	}
	TAP_OK(edited, "a non-resident tile refuses edits until it is loaded");
	TAP_OK(loaded, "after a load nothing of the rectangle is non-resident");
	TAP_OK(right, "resident tiles are right");
	TAP_OK(ordered && evictions > 1000,
		   "a round evicts the tiles that were not used since the last one, except pinned ones");
	TAP_OK(exact, "bytes are exact at every step");
	TAP_OK(formulas, "tiles with formulas are known, also after their eviction");
	load(grid, &(GridRect){0, 0, ROWS - 1, COLS - 1});
	TAP_OK(grid_tiles_nonresident(grid) == 0 && window_is_right(grid, &(GridRect){0, 0, ROWS - 1, COLS - 1}),
		   "in the end all of it can be had");
	grid_free(&allocator, grid);
	TAP_OK(taken == 0, "and every byte comes back");
	return tap_done();
}
