/*
 * test_index.c - the tile index of large grids: tiles that come in any order are found in theirs, and the time to add
 * them grows with their number, not with its square.
 */
#include "grid_memory.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TILES 3000

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
		grid_add_nonresident(&allocator, grid, (GridTileNo){number(i, count), 3});
	return grid;
}

static bool
order_is_right(uint32_t count, uint32_t (*number)(uint32_t i, uint32_t count))
{
	static GridTileNo list[TILES];
	GridRect all = {0, 0, UINT32_MAX - 1, UINT32_MAX - 1};
	Grid *grid = grid_of(count, number);
	bool right = grid_list_nonresident(grid, NULL, &all, list, TILES) == count && grid_bytes(grid) == taken;

	for (uint32_t i = 0; i < count && right; i++)
		right = list[i].row == i && list[i].col == 3;
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

/* Eight times as many tiles: 8 to 12 times the time, where it was 64. */
static bool
is_linear(void)
{
	double few = 1e9, many = 1e9;

	for (int i = 0; i < 3; i++)
	{
		double one = time_of_filling(8192), other = time_of_filling(65536);

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
	TAP_OK(is_linear(), "tiles that come in descending order cost the same each");
	return tap_done();
}
