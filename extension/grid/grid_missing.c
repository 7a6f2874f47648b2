/*
 * grid_missing.c - which tiles of a grid are in memory.
 *
 * A grid may know of tiles that it does not hold, since they are on storage. Places carry the stamp of their tile's
 * last use, given by the caller, so that the tile that was not used for longest can be told (grid_places.c).
 */
#include "grid/grid_private.h"

bool
grid_add_missing(const GridAllocator *allocator, Grid *grid, uint32_t tile_row, uint32_t tile_col)
{
	if (grid_place_at(grid, tile_row, tile_col) != NULL)
		return true;
	if (!grid_grow_places(allocator, grid))
		return false;
	grid_insert_place(grid, tile_row, tile_col, NULL);
	return true;
}

uint32_t
grid_tiles_here(const Grid *grid)
{
	return grid->tile_count - grid->missing;
}

uint32_t
grid_tiles_missing(const Grid *grid)
{
	return grid->missing;
}

bool
grid_is_missing(const Grid *grid, uint32_t row, uint32_t col)
{
	const GridPlace *place;

	if (grid->missing == 0)
		return false;
	place = grid_place_at(grid, row / GRID_TILE_ROWS, col / GRID_TILE_COLS);
	return place != NULL && place->tile == NULL;
}

/* ---- rectangles of cells ---- */

/* The places of the tiles that a rectangle touches, one after the other; begin with at = 0. */
static GridPlace *
grid_next_place(const Grid *grid, const GridRect *rect, uint32_t *at)
{
	uint32_t first_col = rect->col0 / GRID_TILE_COLS;
	uint32_t last_col = rect->col1 / GRID_TILE_COLS;
	uint32_t last_row = rect->row1 / GRID_TILE_ROWS;

	if (*at == 0)
		*at = grid_lower_bound(grid, rect->row0 / GRID_TILE_ROWS, first_col);
	while (*at < grid->tile_count)
	{
		GridPlace *place = &grid->places[*at];
		uint32_t row = (uint32_t) (place->order >> 32);
		uint32_t col = (uint32_t) place->order;

		if (row > last_row)
			return NULL;
		if (col >= first_col && col <= last_col)
		{
			(*at)++;
			return place;
		}
		*at = grid_lower_bound(grid, col < first_col ? row : row + 1, first_col);
	}
	return NULL;
}

uint32_t
grid_list_missing(const Grid *grid, const GridRect *rect, GridTileNo *list, uint32_t room)
{
	const GridPlace *place;
	uint32_t at = 0;
	uint32_t count = 0;

	if (grid->missing == 0)
		return 0;
	while ((place = grid_next_place(grid, rect, &at)) != NULL)
	{
		if (place->tile != NULL)
			continue;
		if (count < room)
			list[count] = (GridTileNo){(uint32_t) (place->order >> 32), (uint32_t) place->order};
		count++;
	}
	return count;
}

void
grid_touch(Grid *grid, const GridRect *rect, uint64_t stamp)
{
	GridPlace *place;
	uint32_t at = 0;

	while ((place = grid_next_place(grid, rect, &at)) != NULL)
		__atomic_store_n(&place->used, stamp, __ATOMIC_RELAXED);
}

bool
grid_hold_at(Grid *grid, uint32_t row, uint32_t col, uint64_t stamp, GridTile **tile)
{
	GridPlace *place = grid_place_at(grid, row / GRID_TILE_ROWS, col / GRID_TILE_COLS);

	*tile = place != NULL ? place->tile : NULL;
	if (place == NULL)
		return true;
	if (place->tile == NULL)
		return false;
	__atomic_store_n(&place->used, stamp, __ATOMIC_RELAXED);
	grid_hold(grid, place->tile);
	return true;
}

/* ---- in and out ---- */

void
grid_merge(Grid *grid, Grid *part, const GridTileNo *wanted, uint32_t count, uint64_t stamp)
{
	for (uint32_t i = 0; i < count; i++)
	{
		GridPlace *place = grid_place_at(grid, wanted[i].row, wanted[i].col);
		GridPlace *from = grid_place_at(part, wanted[i].row, wanted[i].col);
		size_t bytes;

		if (place == NULL || place->tile != NULL)
			continue;
		if (from == NULL || from->tile->cells == 0)
		{
			grid_remove_place(grid, place);
			continue;
		}
		part->edited -= from->tile->edited != TILE_PACKED;
		from->tile->edited = TILE_PACKED;
		bytes = tile_bytes(from->tile);
		place->tile = from->tile;
		place->used = stamp;
		grid->missing--;
		grid->bytes += bytes;
		grid->cells += from->tile->cells;
		part->bytes -= bytes;
		part->cells -= from->tile->cells;
		from->tile = NULL;
		part->missing++;
	}
}

GridTile *
grid_detach(Grid *grid, uint32_t at)
{
	GridPlace *place = &grid->places[at];
	Tile *tile = place->tile;

	grid->bytes -= tile_bytes(tile);
	grid->cells -= tile->cells;
	grid->edited -= tile->edited != TILE_PACKED;
	grid->missing++;
	place->tile = NULL;
	if (tile->cells == 0)
		grid_remove_place(grid, place);
	return tile;
}

void
grid_free_tile(const GridAllocator *allocator, GridTile *tile)
{
	size_t bytes = tile_bytes(tile);

	tile_free(allocator, &bytes, tile);
}
