/*
 * grid_places.c - the sorted array of a grid's places: room for more, and the tile that was not used for longest.
 *
 * Free room lies before and behind the places, and inserting moves the shorter side: tiles come in ascending order when
 * a sheet is filled, and in descending order when a version is read. When the side is full, the free room is divided
 * anew, which n places meet about log(n) times before the array grows.
 *
 * Looking at all places for each tile that is taken out would cost more than the tile in a large grid. So one look
 * notes the oldest ones, in the array's own memory, and those are taken one after the other as long as they are what
 * they were. Stamps only grow, so what was not noted is younger than what was, whatever has happened since.
 */
#include "grid/grid_private.h"

#include <stdlib.h>

#define GRID_TILES_MIN 4

/* A place that was noted; it counts while it has this stamp. */
typedef struct GridOld
{
	uint64_t order;
	uint64_t used;
} GridOld;

/* Small grids are looked through. */
#define GRID_OLD_FROM 512 /* places */
#define GRID_OLD_MAX  1024

static uint32_t
grid_old_room(uint32_t capacity)
{
	if (capacity < GRID_OLD_FROM)
		return 0;
	return capacity / 32 < GRID_OLD_MAX ? capacity / 32 : GRID_OLD_MAX;
}

/* Behind the places, used and free. */
static GridOld *
grid_old(const Grid *grid)
{
	return (GridOld *) (grid->places - grid->lead + grid->tile_capacity);
}

/* ---- memory ---- */

size_t
grid_places_size(uint32_t capacity)
{
	return capacity * sizeof(GridPlace) + grid_old_room(capacity) * sizeof(GridOld);
}

void
grid_free_places(const GridAllocator *allocator, Grid *grid)
{
	if (grid->places != NULL)
		allocator->free(allocator->ctx, grid->places - grid->lead, grid_places_size(grid->tile_capacity));
}

bool
grid_grow_places(const GridAllocator *allocator, Grid *grid)
{
	uint32_t capacity = grid->tile_capacity > 0 ? grid->tile_capacity * 2 : GRID_TILES_MIN;
	GridPlace *places;

	if (grid->tile_count < grid->tile_capacity)
		return true;
	places = allocator->alloc(allocator->ctx, grid_places_size(capacity));
	if (places == NULL)
		return false;
	if (grid->tile_count > 0)
		memcpy(places, grid->places, grid->tile_count * sizeof(GridPlace));
	grid_free_places(allocator, grid);
	grid->bytes += grid_places_size(capacity) - grid_places_size(grid->tile_capacity);
	grid->places = places;
	grid->tile_capacity = capacity;
	grid->lead = 0;
	grid->old_count = grid->old_next = 0;
	return true;
}

/* ---- inserting and removing ---- */

/* Divides the free room, of which there is some, between both sides; the front gets what is left over, or the back. */
static void
grid_share_room(Grid *grid, bool front)
{
	uint32_t lead = (grid->tile_capacity - grid->tile_count + (front ? 1 : 0)) / 2;
	GridPlace *to = grid->places - grid->lead + lead;

	memmove(to, grid->places, grid->tile_count * sizeof(GridPlace));
	grid->places = to;
	grid->lead = lead;
}

void
grid_insert_place(Grid *grid, uint32_t tile_row, uint32_t tile_col, Tile *tile)
{
	uint32_t at = grid_lower_bound(grid, tile_row, tile_col);
	uint32_t behind = grid->tile_count - at;
	bool front = at < behind;

	if ((front ? grid->lead : grid->tile_capacity - grid->lead - grid->tile_count) == 0)
		grid_share_room(grid, front);
	if (front)
	{
		grid->places--;
		grid->lead--;
		memmove(grid->places, grid->places + 1, at * sizeof(GridPlace));
	}
	else
		memmove(&grid->places[at + 1], &grid->places[at], behind * sizeof(GridPlace));
	grid->places[at] = (GridPlace){grid_order(tile_row, tile_col), 0, tile};
	grid->tile_count++;
	grid->missing += tile == NULL;
}

void
grid_remove_place(Grid *grid, GridPlace *place)
{
	uint32_t at = (uint32_t) (place - grid->places);

	grid->missing -= place->tile == NULL;
	grid->tile_count--;
	if (at < grid->tile_count - at)
	{
		memmove(grid->places + 1, grid->places, at * sizeof(GridPlace));
		grid->places++;
		grid->lead++;
	}
	else
		memmove(place, place + 1, (grid->tile_count - at) * sizeof(GridPlace));
}

/* ---- the oldest tile ---- */

static uint64_t
grid_used(const GridPlace *place)
{
	return __atomic_load_n(&place->used, __ATOMIC_RELAXED);
}

static bool
grid_is_older(const GridOld *a, const GridOld *b)
{
	return a->used != b->used ? a->used < b->used : a->order < b->order;
}

static int
grid_compare_old(const void *a, const void *b)
{
	return grid_is_older(a, b) ? -1 : grid_is_older(b, a) ? 1 : 0;
}

static int
grid_compare_young(const void *a, const void *b)
{
	return grid_compare_old(b, a);
}

/* Puts an item in the place of the first one, the youngest, of a heap. */
static void
grid_replace_youngest(GridOld *heap, uint32_t count, const GridOld *item)
{
	uint32_t at = 0;

	for (;;)
	{
		uint32_t child = 2 * at + 1;

		if (child + 1 < count && grid_is_older(&heap[child], &heap[child + 1]))
			child++;
		if (child >= count || !grid_is_older(item, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = *item;
}

/* Notes the oldest tiles, also held ones, which may go later. */
static void
grid_note_oldest(Grid *grid)
{
	GridOld *old = grid_old(grid);
	uint32_t room = grid_old_room(grid->tile_capacity);
	uint32_t count = 0;

	for (uint32_t i = 0; i < grid->tile_count; i++)
	{
		GridOld item = {grid->places[i].order, grid_used(&grid->places[i])};

		if (grid->places[i].tile == NULL)
			continue;
		if (count < room)
		{
			old[count++] = item;
			if (count == room)
				qsort(old, count, sizeof(GridOld), grid_compare_young); /* which is a heap */
		}
		else if (grid_is_older(&item, &old[0]))
			grid_replace_youngest(old, count, &item);
	}
	qsort(old, count, sizeof(GridOld), grid_compare_old);
	grid->old_count = count;
	grid->old_next = 0;
}

/* The first one of those noted that is here, was not used since, and is not held. */
static bool
grid_find_noted(Grid *grid, uint64_t *stamp, uint32_t *at)
{
	const GridOld *old = grid_old(grid);

	for (uint32_t i = grid->old_next; i < grid->old_count; i++)
	{
		const GridPlace *place = grid_place_at(grid, (uint32_t) (old[i].order >> 32), (uint32_t) old[i].order);

		if (place == NULL || place->tile == NULL || grid_used(place) != old[i].used)
		{
			if (i == grid->old_next)
				grid->old_next++;
			continue;
		}
		if (place->tile->held)
			continue;
		*stamp = old[i].used;
		*at = (uint32_t) (place - grid->places);
		return true;
	}
	return false;
}

static bool
grid_find_oldest(const Grid *grid, uint64_t *stamp, uint32_t *at)
{
	uint64_t oldest = 0;
	bool found = false;

	for (uint32_t i = 0; i < grid->tile_count; i++)
	{
		const GridPlace *place = &grid->places[i];

		if (place->tile == NULL || place->tile->held || (found && grid_used(place) >= oldest))
			continue;
		found = true;
		oldest = grid_used(place);
		*at = i;
	}
	*stamp = oldest;
	return found;
}

bool
grid_oldest(Grid *grid, uint64_t *stamp, uint32_t *at)
{
	*stamp = 0;
	if (grid_tiles_here(grid) == 0)
		return false;
	if (grid_old_room(grid->tile_capacity) > 0)
	{
		if (grid_find_noted(grid, stamp, at))
			return true;
		grid_note_oldest(grid);
		if (grid_find_noted(grid, stamp, at))
			return true;
	}
	return grid_find_oldest(grid, stamp, at); /* of a large grid: all that were noted are held */
}
