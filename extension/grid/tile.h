/*
 * tile.h - one block of cells of a grid; see tile.c. Private to grid/.
 */
#ifndef TILE_H
#define TILE_H

#include "grid/grid.h"

#define TILE_CELLS (GRID_TILE_ROWS * GRID_TILE_COLS)

/* A cell: where its content lies in the arena, and which of the tile's styles it has (0: none). With neither
 * it is absent. */
typedef struct TileSlot
{
	uint32_t offset;
	uint32_t len : 17;
	uint32_t style : 15;
} TileSlot;

typedef struct TileStyle
{
	uint32_t offset;
	uint32_t len;
} TileStyle;

/* What an edit of content looks at comes first. */
typedef struct Tile
{
	TileSlot *slots;
	char *arena;
	uint32_t arena_used;
	uint32_t arena_size;
	uint64_t reserved_bytes;
	uint32_t content_bytes; /* in use in the arena, without styles */
	uint32_t reserved_cells;
	uint16_t cells;	   /* present */
	uint16_t capacity; /* of slots; TILE_CELLS: dense, slots[key]; less: sorted by keys */
	bool pinned;
	uint16_t styles_used;
	uint16_t styles_capacity;
	uint16_t formulas; /* cells with one */
	uint32_t reserved_styles;
	uint32_t style_bytes;	  /* of the table's styles in the arena, used or not */
	uint16_t *keys;			  /* NULL when dense */
	TileStyle *styles;		  /* style number n is styles[n - 1] */
	struct Tile *next_pinned; /* of the grid's list */
	uint32_t tile_row;
	uint32_t tile_col;
} Tile;

/* Every function that allocates adds to *bytes what it took and subtracts what it gave back. */
extern Tile *tile_create(const GridAllocator *allocator, size_t *bytes, uint32_t tile_row, uint32_t tile_col);
/* What it has taken. */
extern size_t tile_bytes(const Tile *tile);
extern void tile_free(const GridAllocator *allocator, size_t *bytes, Tile *tile);
/* Makes it as small as its cells need; nothing is reserved. False when there is no room: it may have become smaller. */
extern bool tile_shrink(const GridAllocator *allocator, size_t *bytes, Tile *tile);
/* Whether that is worth the copying. */
extern bool tile_has_slack(const Tile *tile);
/* Its cells, and as much room as it has; NULL when there is none. */
extern Tile *tile_clone(const GridAllocator *allocator, size_t *bytes, const Tile *tile);
/* Gives back what an empty tile has for cells. */
extern void tile_empty(const GridAllocator *allocator, size_t *bytes, Tile *tile);
extern bool tile_reserve(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t content_len,
						 uint32_t style_len);
/* The same for so many cells at once, with so many bytes of content together and no styles. A tile that has nothing
 * gets room for exactly these. */
extern bool tile_expect(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t cells,
						uint32_t content_bytes);
/* The same as tile_reserve() where there is room already; false when there is not. */
extern bool tile_reserve_slack(Tile *tile, uint32_t content_len, uint32_t style_len);
/* Sets a cell in reserved room. */
extern void tile_set(Tile *tile, uint16_t key, const char *content, uint32_t content_len, const char *style,
					 uint32_t style_len);

/* ---- what scans do for each cell ---- */

static inline bool
tile_is_dense(const Tile *tile)
{
	return tile->capacity == TILE_CELLS;
}

/* Position of the first key >= key in a sparse tile. */
static inline uint32_t
tile_lower_bound(const Tile *tile, uint16_t key)
{
	uint32_t low = 0;
	uint32_t high = tile->cells;

	while (low < high)
	{
		uint32_t middle = (low + high) / 2;

		if (tile->keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline bool
tile_slot_present(const TileSlot *slot)
{
	return slot->len > 0 || slot->style > 0;
}

/* NULL if the cell is absent. */
static inline const TileSlot *
tile_find(const Tile *tile, uint16_t key)
{
	const TileSlot *slot;

	if (tile_is_dense(tile))
		slot = &tile->slots[key];
	else
	{
		uint32_t at = tile_lower_bound(tile, key);

		if (at == tile->cells || tile->keys[at] != key)
			return NULL;
		slot = &tile->slots[at];
	}
	return tile_slot_present(slot) ? slot : NULL;
}

/* The present cell of a slot, at this place of the grid. */
static inline void
tile_cell_at(const Tile *tile, const TileSlot *slot, uint32_t row, uint32_t col, GridCell *cell)
{
	uint32_t len = slot->len, style = slot->style;

	cell->row = row;
	cell->col = col;
	cell->content = len > 0 ? tile->arena + slot->offset : "";
	cell->content_len = len;
	cell->readable = len > 0 ? tile->arena_size - slot->offset : 0;
	cell->style = "";
	cell->style_len = 0;
	if (style > 0)
	{
		cell->style = tile->arena + tile->styles[style - 1].offset;
		cell->style_len = tile->styles[style - 1].len;
	}
}

static inline void
tile_cell(const Tile *tile, const TileSlot *slot, uint16_t key, GridCell *cell)
{
	tile_cell_at(tile, slot, tile->tile_row * GRID_TILE_ROWS + key / GRID_TILE_COLS,
				 tile->tile_col * GRID_TILE_COLS + key % GRID_TILE_COLS, cell);
}

static inline uint32_t
tile_row_cells_dense(const Tile *tile, uint32_t row, uint32_t col, uint32_t last, GridCell *cells, uint32_t room)
{
	const TileSlot *slots = &tile->slots[row * GRID_TILE_COLS];
	uint32_t top = tile->tile_row * GRID_TILE_ROWS, left = tile->tile_col * GRID_TILE_COLS;
	uint32_t count = 0;

	for (; col <= last && count < room; col++)
	{
		if (!tile_slot_present(&slots[col]))
			continue;
		__builtin_prefetch(tile->arena + slots[col].offset);
		tile_cell_at(tile, &slots[col], top + row, left + col, &cells[count++]);
	}
	return count;
}

static inline uint32_t
tile_row_cells_sparse(const Tile *tile, uint32_t row, uint32_t col, uint32_t last, GridCell *cells, uint32_t room)
{
	uint32_t to = row * GRID_TILE_COLS + last;
	uint32_t at = tile_lower_bound(tile, (uint16_t) (row * GRID_TILE_COLS + col));
	uint32_t count = 0;

	for (; at < tile->cells && tile->keys[at] <= to && count < room; at++)
	{
		const TileSlot *slot = &tile->slots[at];

		if (!tile_slot_present(slot))
			continue;
		__builtin_prefetch(tile->arena + slot->offset);
		tile_cell(tile, slot, tile->keys[at], &cells[count++]);
	}
	return count;
}

/* The present cells of the tile's row with a column in [col, last], the first `room` of them; columns are the tile's
 * own. */
static inline uint32_t
tile_row_cells(const Tile *tile, uint32_t row, uint32_t col, uint32_t last, GridCell *cells, uint32_t room)
{
	return tile_is_dense(tile) ? tile_row_cells_dense(tile, row, col, last, cells, room)
							   : tile_row_cells_sparse(tile, row, col, last, cells, room);
}

/* Asks the processor for what leads to the cells of a row. */
static inline void
tile_prefetch_row(const Tile *tile, uint32_t row)
{
	if (!tile_is_dense(tile))
		return;
	__builtin_prefetch(&tile->slots[row * GRID_TILE_COLS]);
	__builtin_prefetch(&tile->slots[row * GRID_TILE_COLS + GRID_TILE_COLS / 2]);
}

#endif
