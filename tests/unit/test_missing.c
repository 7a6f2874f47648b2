/*
 * test_missing.c - a grid of which only some tiles are in memory, against a plain array: tiles are loaded, used, edited
 * and taken out at random. What is here is always right, what is not here is known to be missing, the tile that was not
 * used for longest goes first, held ones stay, and every byte is accounted for.
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

static uint32_t cells[ROWS][COLS];			/* the number that the cell shows; 0: empty */
static uint64_t used[TILE_ROWS][TILE_COLS]; /* stamps of the tiles that are here, 0: not here */
static bool held[TILE_ROWS][TILE_COLS];
static uint64_t stamp;

static uint32_t
text_of(uint32_t number, char text[32])
{
	return number == 0 ? 0 : (uint32_t) snprintf(text, 32, "%0*u", (int) (number % 20), number);
}

static bool
tile_has_cells(GridTileNo tile)
{
	for (uint32_t row = 0; row < GRID_TILE_ROWS; row++)
		for (uint32_t col = 0; col < GRID_TILE_COLS; col++)
			if (cells[tile.row * GRID_TILE_ROWS + row][tile.col * GRID_TILE_COLS + col] != 0)
				return true;
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
		there = grid_expect(&allocator, part, tile.row, tile.col, count, bytes);
	for (uint32_t row = tile.row * GRID_TILE_ROWS; row < (tile.row + 1) * GRID_TILE_ROWS; row++)
		for (uint32_t col = tile.col * GRID_TILE_COLS; col < (tile.col + 1) * GRID_TILE_COLS; col++)
		{
			uint32_t len = text_of(cells[row][col], text);

			if (cells[row][col] == 0)
				continue;
			if (there != NULL)
				grid_set_there(part, there, row, col, text, len, NULL, 0);
			else
				grid_put(&allocator, part, row, col, text, len, NULL, 0);
		}
}

/* Everything that the rectangle touches is here afterwards. */
static bool
load(Grid *grid, const GridRect *rect)
{
	GridTileNo missing[TILE_ROWS * TILE_COLS];
	uint32_t count = grid_list_missing(grid, rect, missing, TILE_ROWS * TILE_COLS);
	Grid *part = grid_create(&allocator, 1, 1);

	for (uint32_t i = 0; i < count; i++)
		load_tile(part, missing[i]);
	grid_release(&allocator, part);
	stamp++;
	grid_merge(grid, part, missing, count, stamp);
	for (uint32_t i = 0; i < count; i++)
		used[missing[i].row][missing[i].col] = tile_has_cells(missing[i]) ? stamp : 0;
	grid_free(&allocator, part);
	return grid_list_missing(grid, rect, NULL, 0) == 0;
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
	grid_touch(grid, rect, ++stamp);
	for (uint32_t row = rect->row0 / GRID_TILE_ROWS; row <= rect->row1 / GRID_TILE_ROWS; row++)
		for (uint32_t col = rect->col0 / GRID_TILE_COLS; col <= rect->col1 / GRID_TILE_COLS; col++)
			if (used[row][col] != 0)
				used[row][col] = stamp;
}

static GridRect
random_rect(void)
{
	uint32_t row = random_below(ROWS), col = random_below(COLS);
	uint32_t last_row = row + random_below(90), last_col = col + random_below(30);

	return (GridRect){row, col, last_row < ROWS ? last_row : ROWS - 1, last_col < COLS ? last_col : COLS - 1};
}

/* An edit as writers make it: the tile is held, room is reserved, the cell is set; what is held is let go now and then.
 */
static bool
edit(Grid *grid)
{
	uint32_t row = random_below(ROWS), col = random_below(COLS);
	GridRect rect = {row, col, row, col};
	uint32_t number = random_below(4) == 0 ? 0 : random_below(100000);
	GridTile *tile;
	char text[32];
	uint32_t len = text_of(number, text);

	if (grid_is_missing(grid, row, col))
	{
		if (grid_hold_at(grid, row, col, ++stamp, &tile) || grid_reserve(&allocator, grid, row, col, 1, 0) != NULL)
			return false;
		load(grid, &rect);
	}
	if (!grid_hold_at(grid, row, col, ++stamp, &tile))
		return false;
	tile = grid_reserve(&allocator, grid, row, col, len, 0);
	if (tile == NULL)
		return false;
	grid_set_there(grid, tile, row, col, text, len, NULL, 0);
	cells[row][col] = number;
	/* A tile that the edit has made has no stamp yet. */
	grid_touch(grid, &rect, stamp);
	used[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] = stamp;
	held[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] = true;
	return true;
}

/* Takes the oldest tile out, which must be the array's, too. */
static bool
evict(Grid *grid)
{
	uint64_t oldest = UINT64_MAX, found;
	GridTileNo expected = {0, 0};
	uint32_t at;

	for (uint32_t row = 0; row < TILE_ROWS; row++)
		for (uint32_t col = 0; col < TILE_COLS; col++)
			if (used[row][col] != 0 && !held[row][col] && used[row][col] < oldest)
			{
				oldest = used[row][col];
				expected = (GridTileNo){row, col};
			}
	if (!grid_oldest(grid, &found, &at))
		return oldest == UINT64_MAX;
	if (found != oldest)
		return false;
	grid_free_tile(&allocator, grid_detach(grid, at));
	/* Tiles of one read have one stamp: any of them may be the one. */
	for (uint32_t row = 0; row < TILE_ROWS; row++)
		for (uint32_t col = 0; col < TILE_COLS; col++)
			if (used[row][col] == oldest && !held[row][col] &&
				grid_find_tile(grid, row * GRID_TILE_ROWS, col * GRID_TILE_COLS) == NULL)
				expected = (GridTileNo){row, col};
	used[expected.row][expected.col] = 0;
	return true;
}

int
main(void)
{
	Grid *grid = grid_create(&allocator, ROWS, COLS);
	bool edited = true, loaded = true, right = true, ordered = true, exact = true;
	uint64_t evictions = 0;
	uint32_t packed = 0;

	for (int i = 0; i < 60000; i++)
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
				memset(held, 0, sizeof(held));
				break;
			case 2:
			case 3:
				ordered &= evict(grid);
				evictions++;
				break;
			case 4:
				grid_pack_idle(&allocator, grid, &packed, 1 + random_below(10));
				break;
			default:
				edited &= edit(grid);
				break;
		}
		exact &= grid_bytes(grid) == taken;
	}
	TAP_OK(edited, "a missing tile refuses edits until it is loaded");
	TAP_OK(loaded, "after a load nothing of the window is missing");
	TAP_OK(right, "what is here is right");
	TAP_OK(ordered && evictions > 1000, "the tile that was not used for longest goes first, held ones stay");
	TAP_OK(exact, "bytes are exact at every step");
	load(grid, &(GridRect){0, 0, ROWS - 1, COLS - 1});
	TAP_OK(grid_tiles_missing(grid) == 0 && window_is_right(grid, &(GridRect){0, 0, ROWS - 1, COLS - 1}),
		   "in the end all of it can be had");
	grid_free(&allocator, grid);
	TAP_OK(taken == 0, "and every byte comes back");
	return tap_done();
}
