/*
 * grid.c - a sheet's cells in tiles, which a sorted index finds (grid_index.c).
 *
 * A sorted index keeps a sheet of a few cells small, makes one cell in row 16,000,000 cheap, and a scan row by row a
 * walk over neighbours. A tile of the index may be non-resident: it has cells, but they are on storage only
 * (grid_nonresident.c).
 */
#include "grid/grid.h"

#include "grid/grid_private.h"

#include <string.h>

_Static_assert(offsetof(Grid, maps) == 0, "grid_maps() reads the first field");

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
		if (grid->index[i].tile != NULL)
			tile_free(allocator, &grid->bytes, grid->index[i].tile);
	if (grid->index != NULL)
		allocator->free(allocator->ctx, grid->index - grid->lead, grid->tile_capacity * sizeof(GridIndexEntry));
	line_maps_free(allocator, grid->maps);
	line_maps_free(allocator, grid->spare);
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

/* The tile, created when there is none. Returns NULL if there is no room, or the tile is non-resident. */
static Tile *
grid_make_tile(const GridAllocator *allocator, Grid *grid, GridTileNo no)
{
	const GridIndexEntry *entry = grid_index_find(grid, no);
	Tile *tile;

	if (entry != NULL)
		return entry->tile;
	if (!grid_index_grow(allocator, grid))
		return NULL;
	tile = tile_create(allocator, &grid->bytes, no.row, no.col);
	if (tile != NULL)
		grid_index_insert(grid, no, tile);
	return tile;
}

void
grid_pin(Grid *grid, GridTile *tile)
{
	if (tile->pinned)
		return;
	tile->pinned = true;
	tile->next_pinned = grid->pinned;
	grid->pinned = tile;
}

bool
grid_pin_at(Grid *grid, uint32_t row, uint32_t col, GridTile **tile)
{
	GridIndexEntry *entry = grid_index_find(grid, grid_tile_of(row, col));

	*tile = entry != NULL ? entry->tile : NULL;
	if (entry == NULL)
		return true;
	if (entry->tile == NULL)
		return false;
	grid_mark_used(entry);
	grid_pin(grid, entry->tile);
	return true;
}

GridTile *
grid_reserve(const GridAllocator *allocator, Grid *grid, uint32_t row, uint32_t col, uint32_t content_len,
			 uint32_t style_len)
{
	Tile *tile = grid_make_tile(allocator, grid, grid_tile_of(row, col));

	if (tile == NULL)
		return NULL;
	grid_pin(grid, tile); /* before the tile grows: the allocator may evict tiles */
	return tile_reserve(allocator, &grid->bytes, tile, content_len, style_len) ? tile : NULL;
}

bool
grid_tile_reserve(Grid *grid, GridTile *tile, uint32_t content_len, uint32_t style_len)
{
	if (!tile_reserve_slack(tile, content_len, style_len))
		return false;
	grid_pin(grid, tile);
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
grid_tile_set(Grid *grid, GridTile *tile, uint32_t row, uint32_t col, const char *content, uint32_t content_len,
			  const char *style, uint32_t style_len)
{
	uint16_t formulas = tile->formulas;

	tile_set(tile, grid_key(row, col), content, content_len, style, style_len);
	grid->formulas += (uint64_t) (int64_t) (tile->formulas - formulas);
	if (grid->maps == NULL)
		grid_resize(grid, row + 1, col + 1);
}

void
grid_set(Grid *grid, uint32_t row, uint32_t col, const char *content, uint32_t content_len, const char *style,
		 uint32_t style_len)
{
	grid_tile_set(grid, grid_find_tile(grid, row, col), row, col, content, content_len, style, style_len);
}

static void
grid_free_spare(const GridAllocator *allocator, Grid *grid)
{
	if (grid->spare == NULL)
		return;
	grid->bytes -= grid->spare->size;
	line_maps_free(allocator, grid->spare);
	grid->spare = NULL;
}

/* Tiles with cells keep their room: the next batch mostly needs the same. */
void
grid_release(const GridAllocator *allocator, Grid *grid)
{
	grid_free_spare(allocator, grid);
	while (grid->pinned != NULL)
	{
		Tile *tile = grid->pinned;

		grid->pinned = tile->next_pinned;
		tile->next_pinned = NULL;
		tile->pinned = false;
		tile->reserved_cells = 0;
		tile->reserved_styles = 0;
		tile->reserved_bytes = 0;
		if (tile->cells == 0)
			tile_empty(allocator, &grid->bytes, tile);
	}
}

GridTile *
grid_expect(const GridAllocator *allocator, Grid *grid, GridTileNo no, uint32_t cells, uint32_t content_bytes)
{
	Tile *tile = grid_make_tile(allocator, grid, no);

	if (tile == NULL)
		return NULL;
	grid_pin(grid, tile);
	return tile_expect(allocator, &grid->bytes, tile, cells, content_bytes) ? tile : NULL;
}

bool
grid_shrink(const GridAllocator *allocator, Grid *grid)
{
	for (uint32_t i = 0; i < grid->tile_count; i++)
		if (grid->index[i].tile != NULL && !tile_shrink(allocator, &grid->bytes, grid->index[i].tile))
			return false;
	return true;
}

/* The index of the grid, with all of its tiles non-resident. */
static bool
grid_copy_index(const GridAllocator *allocator, const Grid *grid, Grid *copy)
{
	size_t size = grid->tile_count * sizeof(GridIndexEntry);

	if (size == 0)
		return true;
	copy->index = allocator->alloc(allocator->ctx, size);
	if (copy->index == NULL)
		return false;
	memcpy(copy->index, grid->index, size);
	for (uint32_t i = 0; i < grid->tile_count; i++)
		copy->index[i].tile = NULL;
	copy->bytes += size;
	copy->tile_count = copy->tile_capacity = copy->nonresident = grid->tile_count;
	copy->maybe = grid->maybe;
	return true;
}

bool
grid_copy(const GridAllocator *allocator, const Grid *grid, Grid **to)
{
	Grid *copy = *to = grid_create(allocator, grid->rows, grid->cols);
	LineMaps *maps;

	if (copy == NULL || !grid_copy_index(allocator, grid, copy))
		return false;
	if (grid->maps != NULL)
	{
		if (!line_maps_copy(allocator, grid->maps, &maps))
			return false;
		grid_give_maps(allocator, copy, maps);
	}
	for (uint32_t i = 0; i < grid->tile_count; i++)
	{
		const Tile *tile = grid->index[i].tile;

		if (tile == NULL)
			continue;
		copy->index[i].tile = tile_clone(allocator, &copy->bytes, tile);
		if (copy->index[i].tile == NULL)
			return false;
		copy->nonresident--;
		copy->formulas += tile->formulas;
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
	grid_tile_set(grid, tile, row, col, content, content_len, style, style_len);
	return true;
}

/* ---- reading ---- */

GridTile *
grid_find_tile(const Grid *grid, uint32_t row, uint32_t col)
{
	const GridIndexEntry *entry = grid_index_find(grid, grid_tile_of(row, col));

	return entry != NULL ? entry->tile : NULL;
}

bool
grid_tile_get(const GridTile *tile, uint32_t row, uint32_t col, GridCell *cell)
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
	return grid_tile_get(grid_find_tile(grid, row, col), row, col, cell);
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

/* ---- the row map and the column map ---- */

void
grid_give_maps(const GridAllocator *allocator, Grid *grid, LineMaps *maps)
{
	if (grid->maps != NULL)
		grid->bytes -= grid->maps->size;
	line_maps_free(allocator, grid->maps);
	if (maps != NULL)
		grid->bytes += maps->size;
	grid->maps = maps;
}

bool
grid_change_maps(const GridAllocator *allocator, Grid *grid, const LineChange *change)
{
	uint32_t *extent = change->rows ? &grid->rows : &grid->cols;
	LineMaps *maps;

	if (!line_maps_change(allocator, grid->maps, change, *extent, &maps))
		return false;
	grid_give_maps(allocator, grid, maps);
	*extent = extent_after(change, *extent);
	return true;
}

bool
grid_reserve_maps(const GridAllocator *allocator, Grid *grid, const LineMaps *maps)
{
	LineMaps *spare;

	if (grid->spare != NULL && grid->spare->size >= line_maps_bytes(maps))
		return true;
	spare = line_maps_make_room(allocator, maps);
	if (spare == NULL)
		return false;
	grid_free_spare(allocator, grid);
	grid->bytes += spare->size;
	grid->spare = spare;
	return true;
}

void
grid_adopt_maps(const GridAllocator *allocator, Grid *grid, const LineMaps *maps)
{
	LineMaps *old = grid->maps;

	if (maps == NULL)
	{
		grid_give_maps(allocator, grid, NULL);
		return;
	}
	memcpy(grid->spare->counts, maps->counts, sizeof(maps->counts));
	memcpy(grid->spare->runs, maps->runs, line_maps_bytes(maps) - sizeof(LineMaps));
	grid->maps = grid->spare;
	grid->spare = old;
}
