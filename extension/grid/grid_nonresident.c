/*
 * grid_nonresident.c - tiles that are on storage only: finding, loading and evicting them; and which tiles may have
 * formulas.
 *
 * Eviction is a second-chance clock over the index: grid_evict() clears the `used` mark of a tile that was used since
 * the last pass, and shrinks it when edits have left it with slack; a tile without the mark is evicted.
 *
 * Structure edits look for formulas. Resident tiles count them (tile_set). An evicted tile leaves a mark in the index
 * if it had some; one that was never resident has the mark, since nobody knows.
 */
#include "grid/grid_private.h"

/* ---- finding and loading ---- */

bool
grid_add_nonresident(const GridAllocator *allocator, Grid *grid, GridTileNo no)
{
	if (grid_index_find(grid, no) != NULL)
		return true;
	if (!grid_index_grow(allocator, grid))
		return false;
	grid_index_insert(grid, no, NULL);
	return true;
}

uint32_t
grid_tiles_resident(const Grid *grid)
{
	return grid->tile_count - grid->nonresident;
}

uint32_t
grid_tiles_nonresident(const Grid *grid)
{
	return grid->nonresident;
}

bool
grid_is_nonresident(const Grid *grid, uint32_t row, uint32_t col)
{
	const GridIndexEntry *entry;

	if (grid->nonresident == 0)
		return false;
	entry = grid_index_find(grid, grid_tile_of(row, col));
	return entry != NULL && entry->tile == NULL;
}

/* Iterates over the entries of the tiles that a physical rectangle touches. Begin with *at = 0. */
static GridIndexEntry *
grid_next_touched(const Grid *grid, const GridRect *rect, uint32_t *at)
{
	uint32_t first_col = rect->col0 / GRID_TILE_COLS;
	uint32_t last_col = rect->col1 / GRID_TILE_COLS;
	uint32_t last_row = rect->row1 / GRID_TILE_ROWS;

	if (*at == 0)
		*at = grid_index_lower_bound(grid, grid_tile_of(rect->row0, rect->col0));
	while (*at < grid->tile_count)
	{
		GridIndexEntry *entry = &grid->index[*at];
		GridTileNo no = entry->no;

		if (no.row > last_row)
			return NULL;
		if (no.col >= first_col && no.col <= last_col)
		{
			(*at)++;
			return entry;
		}
		*at = grid_index_lower_bound(grid, (GridTileNo){no.col < first_col ? no.row : no.row + 1, first_col});
	}
	return NULL;
}

uint32_t
grid_list_nonresident(const Grid *grid, const LineMaps *maps, const GridRect *rect, GridTileNo *list, uint32_t room)
{
	const GridIndexEntry *entry;
	LineMapsParts parts;
	GridRect part;
	uint32_t count = 0;

	if (grid->nonresident == 0)
		return 0;
	line_maps_parts_init(&parts, maps, rect);
	while (line_maps_parts_next(&parts, &part))
		for (uint32_t at = 0; (entry = grid_next_touched(grid, &part, &at)) != NULL;)
		{
			if (entry->tile != NULL)
				continue;
			if (count < room)
				list[count] = entry->no;
			count++;
		}
	return count;
}

void
grid_touch(Grid *grid, const LineMaps *maps, const GridRect *rect)
{
	GridIndexEntry *entry;
	LineMapsParts parts;
	GridRect part;

	line_maps_parts_init(&parts, maps, rect);
	while (line_maps_parts_next(&parts, &part))
		for (uint32_t at = 0; (entry = grid_next_touched(grid, &part, &at)) != NULL;)
			grid_mark_used(entry);
}

void
grid_merge(Grid *grid, Grid *part, const GridTileNo *wanted, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		GridIndexEntry *entry = grid_index_find(grid, wanted[i]);
		GridIndexEntry *from = grid_index_find(part, wanted[i]);
		size_t bytes;

		if (entry == NULL || entry->tile != NULL)
			continue;
		if (from == NULL || from->tile->cells == 0)
		{
			grid_index_remove(grid, entry);
			continue;
		}
		bytes = tile_bytes(from->tile);
		entry->tile = from->tile;
		entry->used = true;
		grid->nonresident--;
		grid->maybe -= entry->maybe;
		entry->maybe = false;
		grid->bytes += bytes;
		grid->formulas += from->tile->formulas;
		part->bytes -= bytes;
		part->formulas -= from->tile->formulas;
		from->tile = NULL;
		part->nonresident++;
	}
}

/* ---- eviction ---- */

/* Returns true if the tile is gone from the index, too: it had no cells. */
static bool
grid_evict_tile(const GridAllocator *allocator, Grid *grid, GridIndexEntry *entry)
{
	Tile *tile = entry->tile;
	bool empty = tile->cells == 0;

	grid->formulas -= tile->formulas;
	entry->maybe = tile->formulas > 0;
	grid->maybe += entry->maybe;
	tile_free(allocator, &grid->bytes, tile);
	entry->tile = NULL;
	grid->nonresident++;
	if (empty)
		grid_index_remove(grid, entry);
	return empty;
}

uint32_t
grid_evict(const GridAllocator *allocator, Grid *grid, uint32_t *hand, size_t wanted)
{
	size_t until = grid->bytes > wanted ? grid->bytes - wanted : 0;
	uint32_t evicted = 0;

	while (*hand < grid->tile_count && grid->bytes > until)
	{
		GridIndexEntry *entry = &grid->index[(*hand)++];

		if (entry->tile == NULL || entry->tile->pinned)
			continue;
		if (entry->used)
		{
			entry->used = false;
			if (tile_has_slack(entry->tile))
				(void) tile_shrink(allocator, &grid->bytes, entry->tile);
			continue;
		}
		*hand -= grid_evict_tile(allocator, grid, entry);
		evicted++;
	}
	if (*hand >= grid->tile_count)
		*hand = 0;
	return evicted;
}

/* ---- formulas ---- */

bool
grid_next_formulas(const Grid *grid, GridTileNo *no, bool *resident)
{
	uint32_t at = grid->formulas > 0 || grid->maybe > 0 ? grid_index_lower_bound(grid, *no) : grid->tile_count;

	for (; at < grid->tile_count; at++)
	{
		const GridIndexEntry *entry = &grid->index[at];

		if (entry->tile != NULL ? entry->tile->formulas == 0 : !entry->maybe)
			continue;
		*no = entry->no;
		*resident = entry->tile != NULL;
		return true;
	}
	return false;
}

void
grid_note_formula(Grid *grid, uint32_t row, uint32_t col)
{
	GridIndexEntry *entry = grid_index_find(grid, grid_tile_of(row, col));

	if (entry == NULL || entry->tile != NULL || entry->maybe)
		return;
	entry->maybe = true;
	grid->maybe++;
}
