/*
 * grid_index.c - the tile index of a grid: an array sorted by tile row and tile column.
 *
 * Free entries lie before and behind the used ones, and an insertion moves the shorter side: tiles come in ascending
 * order when a sheet is filled, and in descending order when a version is read. When one side is full, the free
 * entries are divided again, which happens about log(n) times before the array grows.
 */
#include "grid/grid_private.h"

#define GRID_INDEX_MIN 4

/* The result of the comparison is added, not branched on: half of the branches would be mispredicted. */
uint32_t
grid_index_lower_bound(const Grid *grid, GridTileNo no)
{
	uint64_t order = grid_order(no);
	uint32_t low = 0;
	uint32_t count = grid->tile_count;

	if (count == 0)
		return 0;
	while (count > 1)
	{
		uint32_t half = count / 2;

		low += (grid_order(grid->index[low + half - 1].no) < order) * half;
		count -= half;
	}
	return low + (grid_order(grid->index[low].no) < order);
}

static inline bool
grid_index_is(const Grid *grid, uint64_t at, uint64_t order)
{
	return at < grid->tile_count && grid_order(grid->index[at].no) == order;
}

/*
 * Mostly all rows are filled up to one column. Then the position follows from the number of tiles in a row: that of the
 * filled columns, which are fewer than the grid's, and one more while the last row is incomplete; or, if a cell stands
 * far below the others, that of the grid's columns.
 */
GridIndexEntry *
grid_index_find(const Grid *grid, GridTileNo no)
{
	uint64_t order = grid_order(no), at;
	uint32_t tiles;

	if (grid->tile_count == 0)
		return NULL;
	tiles = grid->tile_count / (grid->index[grid->tile_count - 1].no.row + 1);
	at = (uint64_t) no.row * tiles + no.col;
	if (!grid_index_is(grid, at, order))
		at += no.row;
	if (!grid_index_is(grid, at, order))
		at = (uint64_t) no.row * ((grid->cols - 1) / GRID_TILE_COLS + 1) + no.col;
	if (!grid_index_is(grid, at, order))
		at = grid_index_lower_bound(grid, no);
	return grid_index_is(grid, at, order) ? &grid->index[at] : NULL;
}

bool
grid_index_grow(const GridAllocator *allocator, Grid *grid)
{
	uint32_t capacity = grid->tile_capacity > 0 ? grid->tile_capacity * 2 : GRID_INDEX_MIN;
	GridIndexEntry *index;

	if (grid->tile_count < grid->tile_capacity)
		return true;
	index = allocator->alloc(allocator->ctx, capacity * sizeof(GridIndexEntry));
	if (index == NULL)
		return false;
	if (grid->tile_count > 0)
		memcpy(index, grid->index, grid->tile_count * sizeof(GridIndexEntry));
	if (grid->index != NULL)
		allocator->free(allocator->ctx, grid->index - grid->lead, grid->tile_capacity * sizeof(GridIndexEntry));
	grid->bytes += (capacity - grid->tile_capacity) * sizeof(GridIndexEntry);
	grid->index = index;
	grid->tile_capacity = capacity;
	grid->lead = 0;
	return true;
}

/* Divides the free entries, of which there is at least one. `front`: the odd one goes to the front. */
static void
grid_index_center(Grid *grid, bool front)
{
	uint32_t lead = (grid->tile_capacity - grid->tile_count + (front ? 1 : 0)) / 2;
	GridIndexEntry *to = grid->index - grid->lead + lead;

	memmove(to, grid->index, grid->tile_count * sizeof(GridIndexEntry));
	grid->index = to;
	grid->lead = lead;
}

void
grid_index_insert(Grid *grid, GridTileNo no, Tile *tile)
{
	uint32_t at = grid_index_lower_bound(grid, no);
	uint32_t behind = grid->tile_count - at;
	bool front = at < behind;

	if ((front ? grid->lead : grid->tile_capacity - grid->lead - grid->tile_count) == 0)
		grid_index_center(grid, front);
	if (front)
	{
		grid->index--;
		grid->lead--;
		memmove(grid->index, grid->index + 1, at * sizeof(GridIndexEntry));
	}
	else
		memmove(&grid->index[at + 1], &grid->index[at], behind * sizeof(GridIndexEntry));
	grid->index[at] = (GridIndexEntry){.no = no, .used = true, .maybe = tile == NULL, .tile = tile};
	grid->tile_count++;
	grid->nonresident += tile == NULL;
	grid->maybe += tile == NULL;
}

void
grid_index_remove(Grid *grid, GridIndexEntry *entry)
{
	uint32_t at = (uint32_t) (entry - grid->index);

	grid->nonresident -= entry->tile == NULL;
	grid->maybe -= entry->maybe;
	grid->tile_count--;
	if (at < grid->tile_count - at)
	{
		memmove(grid->index + 1, grid->index, at * sizeof(GridIndexEntry));
		grid->index++;
		grid->lead++;
	}
	else
		memmove(entry, entry + 1, (grid->tile_count - at) * sizeof(GridIndexEntry));
}
