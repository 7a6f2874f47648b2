/*
 * test_places.c - the places of large grids: tiles that come in any order, the one that was not used for longest, and
 * that both cost what they should: time grows with the number of tiles, not with its square.
 */
#include "grid_memory.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TILES 3000

static uint64_t used[TILES]; /* stamps of the tiles that are here, 0: not here */
static bool held[TILES];
static uint64_t stamp;

/* ---- order ---- */

static uint32_t
ascending(uint32_t i, uint32_t count)
{
	(void) count;
	return i;
}

static uint32_t
descending(uint32_t i, uint32_t count)
{
	return count - 1 - i;
}

/* From the middle to both ends. */
static uint32_t
both_ways(uint32_t i, uint32_t count)
{
	return i % 2 == 0 ? count / 2 + i / 2 : count / 2 - 1 - i / 2;
}

static uint32_t
mixed(uint32_t i, uint32_t count)
{
	return (uint32_t) ((uint64_t) i * 7919 % count);
}

static Grid *
grid_of(uint32_t count, uint32_t (*number)(uint32_t i, uint32_t count))
{
	Grid *grid = grid_create(&allocator, 1, 1);

	for (uint32_t i = 0; i < count; i++)
		grid_add_missing(&allocator, grid, number(i, count), 3);
	return grid;
}

static bool
order_is_right(uint32_t count, uint32_t (*number)(uint32_t i, uint32_t count))
{
	static GridTileNo list[TILES];
	GridRect all = {0, 0, UINT32_MAX - 1, UINT32_MAX - 1};
	Grid *grid = grid_of(count, number);
	bool right = grid_list_missing(grid, &all, list, TILES) == count && grid_bytes(grid) == taken;

	for (uint32_t i = 0; i < count && right; i++)
		right = list[i].row == i && list[i].col == 3;
	grid_free(&allocator, grid);
	return right && taken == 0;
}

/* ---- age ---- */

static void
load(Grid *grid, uint32_t row)
{
	Grid *part = grid_create(&allocator, 1, 1);
	GridTileNo no = {row, 0};

	grid_put(&allocator, part, row * GRID_TILE_ROWS, 0, "x", 1, NULL, 0);
	grid_release(&allocator, part);
	used[row] = ++stamp;
	grid_merge(grid, part, &no, 1, stamp);
	grid_free(&allocator, part);
}

static void
use(Grid *grid, uint32_t row)
{
	GridRect rect = {row * GRID_TILE_ROWS, 0, row * GRID_TILE_ROWS + random_below(200), 0};

	stamp++;
	grid_touch(grid, &rect, stamp);
	for (; row <= rect.row1 / GRID_TILE_ROWS && row < TILES; row++)
		if (used[row] != 0)
			used[row] = stamp;
}

static void
hold(Grid *grid, uint32_t row)
{
	GridTile *tile;

	if (used[row] == 0 || !grid_hold_at(grid, row * GRID_TILE_ROWS, 0, ++stamp, &tile))
		return;
	used[row] = stamp;
	held[row] = true;
}

/* Takes out the oldest; false when it is another than it should be. */
static bool
evict(Grid *grid)
{
	uint64_t oldest = UINT64_MAX, found;
	uint32_t at;

	for (uint32_t row = 0; row < TILES; row++)
		if (used[row] != 0 && !held[row] && used[row] < oldest)
			oldest = used[row];
	if (!grid_oldest(grid, &found, &at))
		return oldest == UINT64_MAX;
	if (found != oldest)
		return false;
	grid_free_tile(&allocator, grid_detach(grid, at));
	for (uint32_t row = 0; row < TILES; row++)
		if (used[row] == oldest && grid_is_missing(grid, row * GRID_TILE_ROWS, 0))
			used[row] = 0;
	return true;
}

static bool
age_is_right(void)
{
	Grid *grid = grid_create(&allocator, 1, 1);
	bool right = true;

	for (uint32_t row = 0; row < TILES; row++)
	{
		grid_add_missing(&allocator, grid, row, 0);
		load(grid, row);
	}
	for (int i = 0; i < 20000 && right; i++)
	{
		uint32_t row = random_below(TILES);

		switch (random_below(8))
		{
			case 0:
				if (used[row] == 0)
					load(grid, row);
				break;
			case 1:
				use(grid, row);
				break;
			case 2:
				hold(grid, row);
				break;
			case 3:
				if (random_below(50) == 0)
				{
					grid_release(&allocator, grid);
					memset(held, 0, sizeof(held));
				}
				break;
			default:
				right = evict(grid);
				break;
		}
		right &= grid_bytes(grid) == taken;
	}
	grid_free(&allocator, grid);
	return right && taken == 0;
}

/* ---- cost ---- */

static double
seconds(void)
{
	return (double) clock() / CLOCKS_PER_SEC;
}

static double
time_of_filling(uint32_t count)
{
	double began = seconds();

	grid_free(&allocator, grid_of(count, descending));
	return seconds() - began;
}

static double
time_of_evicting(uint32_t count)
{
	Grid *grid = grid_create(&allocator, 1, 1);
	uint64_t found;
	double began;
	uint32_t at;

	for (uint32_t row = 0; row < count; row++)
		grid_put(&allocator, grid, row * GRID_TILE_ROWS, 0, "x", 1, NULL, 0);
	grid_release(&allocator, grid);
	for (uint32_t row = 0; row < count; row++)
		grid_touch(grid, &(GridRect){row * GRID_TILE_ROWS, 0, row * GRID_TILE_ROWS, 0}, 1 + row * 7919ULL % count);
	began = seconds();
	while (grid_oldest(grid, &found, &at))
		grid_free_tile(&allocator, grid_detach(grid, at));
	began = seconds() - began;
	grid_free(&allocator, grid);
	return began;
}

/* Eight times as many tiles: 8 to 12 times the time, where it was 64. */
static bool
is_linear(double (*time_of)(uint32_t count))
{
	double few = 1e9, many = 1e9;

	for (int i = 0; i < 3; i++)
	{
		double one = time_of(8192), other = time_of(65536);

		few = one < few ? one : few;
		many = other < many ? other : many;
	}
	printf("# %.1f ms, %.1f ms for eight times as many\n", few * 1e3, many * 1e3);
	return many < 32 * few + 1e-3;
}

int
main(void)
{
	TAP_OK(order_is_right(TILES, ascending) && order_is_right(1, ascending), "tiles come in ascending order");
	TAP_OK(order_is_right(TILES, descending) && order_is_right(5, descending), "tiles come in descending order");
	TAP_OK(order_is_right(TILES, both_ways), "tiles come from the middle to both ends");
	TAP_OK(order_is_right(TILES, mixed), "tiles come in no order");
	TAP_OK(age_is_right(), "the tile that was not used for longest goes first, held ones stay");
	TAP_OK(is_linear(time_of_filling), "tiles that come in descending order cost the same each");
	TAP_OK(is_linear(time_of_evicting), "tiles that go cost the same each");
	return tap_done();
}
