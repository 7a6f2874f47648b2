/*
 * tile.c - one block of GRID_TILE_ROWS x GRID_TILE_COLS cells.
 *
 * A tile has slots (8 bytes each) and an arena of bytes. With few cells the slots are sorted by key (row *
 * GRID_TILE_COLS + column); from half full on they are an array over all cells. A new content is appended to the arena
 * (or overwrites the old one if it fits); what it replaces becomes garbage. A reservation compacts the arena, and drops
 * styles that no cell has, if it needs space, or if more than half of the arena is garbage. Setting a cell never does.
 * The new arena has slack: an eighth, or a quarter while the tile is being filled. If it would be about as large as the
 * old one, the old one is compacted in place. tile_shrink() frees the slack of a tile that is not edited any more.
 *
 * Invariant: the space in slots, styles and arena is at least what is reserved. Setting a cell uses at most what its
 * reservation added, and subtracts exactly that, so n sets fit after n reservations in any order.
 */
#include "grid/tile.h"

#include "common/short_copy.h"

#include <string.h>

#define TILE_SLOTS_MIN	 4
#define TILE_DENSE_FROM	 (TILE_CELLS / 2)
#define TILE_ARENA_MIN	 64
#define TILE_STYLES_MIN	 4
#define TILE_STYLES_MAX	 32767
#define TILE_STYLES_KEEP 4096 /* unused styles are looked for from here on */
#define TILE_SLACK		 32	  /* less than this part of a tile is not worth the copying */

static void *
tile_alloc(const GridAllocator *allocator, size_t *bytes, size_t size)
{
	void *memory = allocator->alloc(allocator->ctx, size);

	if (memory != NULL)
		*bytes += size;
	return memory;
}

static void
tile_release(const GridAllocator *allocator, size_t *bytes, void *memory, size_t size)
{
	if (memory == NULL)
		return;
	allocator->free(allocator->ctx, memory, size);
	*bytes -= size;
}

Tile *
tile_create(const GridAllocator *allocator, size_t *bytes, uint32_t tile_row, uint32_t tile_col)
{
	Tile *tile = tile_alloc(allocator, bytes, sizeof(Tile));

	if (tile == NULL)
		return NULL;
	memset(tile, 0, sizeof(Tile));
	tile->tile_row = tile_row;
	tile->tile_col = tile_col;
	return tile;
}

size_t
tile_bytes(const Tile *tile)
{
	return sizeof(Tile) + tile->capacity * ((tile->keys != NULL ? sizeof(uint16_t) : 0) + sizeof(TileSlot)) +
		   tile->styles_capacity * sizeof(TileStyle) + tile->arena_size;
}

static void
tile_free_room(const GridAllocator *allocator, size_t *bytes, Tile *tile)
{
	tile_release(allocator, bytes, tile->keys, tile->capacity * sizeof(uint16_t));
	tile_release(allocator, bytes, tile->slots, tile->capacity * sizeof(TileSlot));
	tile_release(allocator, bytes, tile->styles, tile->styles_capacity * sizeof(TileStyle));
	tile_release(allocator, bytes, tile->arena, tile->arena_size);
}

void
tile_free(const GridAllocator *allocator, size_t *bytes, Tile *tile)
{
	tile_free_room(allocator, bytes, tile);
	tile_release(allocator, bytes, tile, sizeof(Tile));
}

void
tile_empty(const GridAllocator *allocator, size_t *bytes, Tile *tile)
{
	tile_free_room(allocator, bytes, tile);
	*tile = (Tile){.tile_row = tile->tile_row,
				   .tile_col = tile->tile_col,
				   .pinned = tile->pinned,
				   .next_pinned = tile->next_pinned};
}

/* ---- slots ---- */

/* The slots that so many cells need. */
static inline uint32_t
tile_slots_for(uint32_t cells)
{
	return cells < TILE_DENSE_FROM ? cells : TILE_CELLS;
}

/* The cells that are present, sorted by key. */
static void
tile_copy_slots(const Tile *tile, uint16_t *keys, TileSlot *slots)
{
	if (!tile_is_dense(tile))
	{
		if (tile->cells > 0)
		{
			memcpy(keys, tile->keys, tile->cells * sizeof(uint16_t));
			memcpy(slots, tile->slots, tile->cells * sizeof(TileSlot));
		}
		return;
	}
	for (uint32_t key = 0, to = 0; to < tile->cells; key++)
	{
		if (!tile_slot_present(&tile->slots[key]))
			continue;
		keys[to] = (uint16_t) key;
		slots[to++] = tile->slots[key];
	}
}

/* Puts the cells into other slots, `capacity` of them, which are enough. */
static bool
tile_move_slots(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t capacity)
{
	TileSlot *slots = tile_alloc(allocator, bytes, capacity * sizeof(TileSlot));
	uint16_t *keys = NULL;

	if (slots == NULL)
		return false;
	if (capacity < TILE_CELLS)
	{
		keys = tile_alloc(allocator, bytes, capacity * sizeof(uint16_t));
		if (keys == NULL)
		{
			tile_release(allocator, bytes, slots, capacity * sizeof(TileSlot));
			return false;
		}
		tile_copy_slots(tile, keys, slots);
	}
	else
	{
		memset(slots, 0, capacity * sizeof(TileSlot));
		for (uint32_t i = 0; i < tile->cells; i++)
			slots[tile->keys[i]] = tile->slots[i];
	}
	tile_release(allocator, bytes, tile->keys, tile->capacity * sizeof(uint16_t));
	tile_release(allocator, bytes, tile->slots, tile->capacity * sizeof(TileSlot));
	tile->keys = keys;
	tile->slots = slots;
	tile->capacity = (uint16_t) capacity;
	return true;
}

/* Room for `wanted` cells. */
static bool
tile_grow_slots(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t wanted)
{
	uint32_t capacity = tile->capacity > 0 ? tile->capacity : TILE_SLOTS_MIN;

	if (tile_is_dense(tile) || wanted <= tile->capacity)
		return true;
	while (capacity < wanted)
		capacity *= 2;
	return tile_move_slots(allocator, bytes, tile, tile_slots_for(capacity));
}

/* ---- arena and styles ---- */

/* The next slot in use at or after *at; for walking all of them. */
static TileSlot *
tile_walk(Tile *tile, uint32_t *at)
{
	uint32_t end = tile_is_dense(tile) ? TILE_CELLS : tile->cells;

	for (; *at < end; (*at)++)
	{
		if (tile_slot_present(&tile->slots[*at]))
			return &tile->slots[(*at)++];
	}
	return NULL;
}

/* Bytes of the contents and styles that are in use; marks used styles in used[]. */
static uint64_t
tile_live_bytes(Tile *tile, uint8_t used[TILE_STYLES_MAX / 8 + 1])
{
	uint64_t live = tile->content_bytes;
	uint32_t at = 0;
	TileSlot *slot;

	if (tile->styles_used == 0)
		return live;
	memset(used, 0, tile->styles_used / 8 + 1);
	while ((slot = tile_walk(tile, &at)) != NULL)
		if (slot->style > 0)
			used[slot->style / 8] |= (uint8_t) (1 << (slot->style % 8));
	for (uint32_t style = 1; style <= tile->styles_used; style++)
	{
		if (used[style / 8] & (1 << (style % 8)))
			live += tile->styles[style - 1].len;
	}
	return live;
}

#define TILE_MOVE 16

/*
 * Copies the contents of the cells into an arena of `size` bytes, behind its first `filled`; returns how many it has
 * then. The entries of the old table of styles name the new numbers. A short content goes with one move, without
 * asking how short it is, or whether there is one: what lies behind it is put there later.
 */
static uint32_t
tile_gather(Tile *tile, char *arena, uint32_t size, uint32_t filled)
{
	TileSlot *slot = tile->slots;
	TileSlot *end = slot + (tile_is_dense(tile) ? TILE_CELLS : tile->cells);
	const TileStyle *styles = tile->styles;
	const char *from = tile->arena;
	uint64_t from_size = tile->arena_size;

	for (; slot < end; slot++)
	{
		uint32_t offset = slot->offset, len = slot->len;

		if (len <= TILE_MOVE && (uint64_t) offset + TILE_MOVE <= from_size && (uint64_t) filled + TILE_MOVE <= size)
			memcpy(arena + filled, from + offset, TILE_MOVE);
		else if (len > 0)
			memcpy(arena + filled, from + offset, len);
		if (slot->style > 0)
			slot->style = styles[slot->style - 1].offset & 0x7FFF;
		slot->offset = filled;
		filled += len;
	}
	return filled;
}

/*
 * Copies what is in use into a new arena of `size` bytes and a new table of styles. A style keeps its
 * order but not its number.
 */
static bool
tile_compact(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t size, uint32_t styles_capacity,
			 const uint8_t *used)
{
	char *arena = tile_alloc(allocator, bytes, size);
	TileStyle *styles = NULL;
	uint16_t styles_used = 0;
	uint32_t filled = 0;

	if (arena == NULL)
		return false;
	if (styles_capacity > 0)
	{
		styles = tile_alloc(allocator, bytes, styles_capacity * sizeof(TileStyle));
		if (styles == NULL)
		{
			tile_release(allocator, bytes, arena, size);
			return false;
		}
	}
	/* The old table's len is kept for copying; its offset becomes the new number. */
	for (uint32_t style = 1; style <= tile->styles_used; style++)
	{
		TileStyle *old = &tile->styles[style - 1];

		if (!(used[style / 8] & (1 << (style % 8))))
			continue;
		memcpy(arena + filled, tile->arena + old->offset, old->len);
		styles[styles_used++] = (TileStyle){filled, old->len};
		filled += old->len;
		old->offset = styles_used;
	}
	filled = tile_gather(tile, arena, size, filled);
	tile_release(allocator, bytes, tile->arena, tile->arena_size);
	tile_release(allocator, bytes, tile->styles, tile->styles_capacity * sizeof(TileStyle));
	tile->arena = arena;
	tile->arena_size = size;
	tile->arena_used = filled;
	tile->style_bytes = filled - tile->content_bytes;
	tile->styles = styles;
	tile->styles_used = styles_used;
	tile->styles_capacity = (uint16_t) styles_capacity;
	return true;
}

/* Arenas of such a size are compacted where they are. */
#define TILE_GATHER_MAX 16384

/* Whether an arena of `size` bytes would be nearly the one that is there, and no styles would have to be counted. */
static inline bool
tile_size_stays(const Tile *tile, uint64_t size, uint32_t styles)
{
	return size + size / 32 >= tile->arena_size && size - size / 32 <= tile->arena_size &&
		   tile->arena_size <= TILE_GATHER_MAX && styles == 0 && tile->styles_used == 0;
}

/* The same without new memory, which would have to be found, and fetched by the processor. */
static void
tile_compact_in_place(Tile *tile)
{
	char contents[TILE_GATHER_MAX];

	tile->arena_used = tile_gather(tile, contents, TILE_GATHER_MAX, 0);
	memcpy(tile->arena, contents, tile->arena_used);
}

#define TILE_WASTE_MIN 1024 /* bytes: fewer are not worth the copying */

/* Whether more than half of the arena is garbage or slack, also after more_bytes are added. */
static inline bool
tile_is_wasteful(const Tile *tile, uint64_t more_bytes)
{
	uint64_t needed = (uint64_t) tile->content_bytes + tile->style_bytes + tile->reserved_bytes + more_bytes;

	return tile->arena_size > 2 * needed + TILE_WASTE_MIN;
}

/* Bytes beyond the `size` that is needed now: more where many cells are to come, so that they are not copied for each.
 */
static inline uint64_t
tile_ahead(const GridAllocator *allocator, const Tile *tile, uint64_t size)
{
	if (allocator->short_lived)
		return size / 4 * 3;
	return tile->cells < TILE_CELLS / 4 * 3 ? size / 4 : size / 8;
}

/* Moves the arena to one of `size` bytes, with the same bytes at the same offsets. Enough if there is no garbage. */
static bool
tile_move_arena(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t size)
{
	char *arena = tile_alloc(allocator, bytes, size);

	if (arena == NULL)
		return false;
	if (tile->arena_used > 0)
		memcpy(arena, tile->arena, tile->arena_used);
	tile_release(allocator, bytes, tile->arena, tile->arena_size);
	tile->arena = arena;
	tile->arena_size = size;
	return true;
}

/* Room for more_bytes in the arena and more_styles in the table beyond what is reserved. */
static bool
tile_grow_arena(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint64_t more_bytes, uint32_t more_styles)
{
	uint8_t used[TILE_STYLES_MAX / 8 + 1];
	uint64_t wanted = tile->reserved_bytes + more_bytes;
	uint32_t styles = tile->styles_used + tile->reserved_styles + more_styles;
	bool fits = tile->arena_used + wanted <= tile->arena_size && styles <= tile->styles_capacity;
	uint64_t live, size;

	if (fits && !tile_is_wasteful(tile, more_bytes))
		return true;
	live = tile_live_bytes(tile, used);
	size = live + wanted;
	size += tile_ahead(allocator, tile, size);
	if (size < TILE_ARENA_MIN)
		size = TILE_ARENA_MIN;
	size = (size + 7) & ~(uint64_t) 7;
	if (size > UINT32_MAX)
		return false;
	if (live == tile->arena_used && styles <= tile->styles_capacity)
		return tile_move_arena(allocator, bytes, tile, (uint32_t) size) || fits;
	if (tile_size_stays(tile, size, styles) && tile->content_bytes + wanted <= tile->arena_size)
	{
		tile_compact_in_place(tile);
		return true;
	}
	if (styles > TILE_STYLES_KEEP)
	{
		styles = tile->reserved_styles + more_styles;
		for (uint32_t style = 1; style <= tile->styles_used; style++)
			styles += (used[style / 8] >> (style % 8)) & 1;
	}
	if (styles > tile->styles_capacity)
		styles = styles < TILE_STYLES_MIN ? (styles > 0 ? TILE_STYLES_MIN : 0) : styles + styles / 2;
	else
		styles = tile->styles_capacity;
	if (styles > TILE_STYLES_MAX)
		return false;
	return tile_compact(allocator, bytes, tile, (uint32_t) size, styles, used) || fits;
}

bool
tile_expect(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t cells, uint32_t content_bytes)
{
	uint64_t wanted = (uint64_t) tile->cells + tile->reserved_cells + cells;
	uint64_t size = ((uint64_t) content_bytes + 7) & ~(uint64_t) 7;
	uint32_t slots = wanted < TILE_CELLS ? (uint32_t) wanted : TILE_CELLS;
	bool room = tile->capacity == 0 && slots > 0 ? tile_move_slots(allocator, bytes, tile, tile_slots_for(slots))
												 : tile_grow_slots(allocator, bytes, tile, slots);

	if (room && content_bytes > 0)
		room = tile->arena_size == 0 && size <= UINT32_MAX ? tile_move_arena(allocator, bytes, tile, (uint32_t) size)
														   : tile_grow_arena(allocator, bytes, tile, content_bytes, 0);
	if (room)
	{
		tile->reserved_cells += cells;
		tile->reserved_bytes += content_bytes;
	}
	return room;
}

bool
tile_shrink(const GridAllocator *allocator, size_t *bytes, Tile *tile)
{
	uint8_t used[TILE_STYLES_MAX / 8 + 1];
	uint32_t slots = tile_slots_for(tile->cells);
	uint32_t styles = 0;
	uint64_t size;

	if (tile->cells == 0)
	{
		tile_empty(allocator, bytes, tile);
		return true;
	}
	if (slots < tile->capacity && !tile_move_slots(allocator, bytes, tile, slots))
		return false;
	size = (tile_live_bytes(tile, used) + 7) & ~(uint64_t) 7;
	for (uint32_t style = 1; style <= tile->styles_used; style++)
		styles += (used[style / 8] >> (style % 8)) & 1;
	if (size == tile->arena_size && styles == tile->styles_capacity)
		return true;
	return tile_compact(allocator, bytes, tile, (uint32_t) size, styles, used);
}

bool
tile_has_slack(const Tile *tile)
{
	uint32_t slots = tile_slots_for(tile->cells);
	size_t needed = sizeof(Tile) + slots * ((slots < TILE_CELLS ? sizeof(uint16_t) : 0) + sizeof(TileSlot)) +
					tile->styles_used * sizeof(TileStyle) + tile->content_bytes + tile->style_bytes;

	return tile_bytes(tile) > needed + needed / TILE_SLACK;
}

/* NULL when there is nothing, or no room. */
static void *
tile_clone_memory(const GridAllocator *allocator, size_t *bytes, const void *from, size_t size)
{
	void *copy = from != NULL ? tile_alloc(allocator, bytes, size) : NULL;

	if (copy != NULL)
		memcpy(copy, from, size);
	return copy;
}

Tile *
tile_clone(const GridAllocator *allocator, size_t *bytes, const Tile *tile)
{
	Tile *copy = tile_clone_memory(allocator, bytes, tile, sizeof(Tile));

	if (copy == NULL)
		return NULL;
	copy->pinned = false;
	copy->next_pinned = NULL;
	copy->keys = tile_clone_memory(allocator, bytes, tile->keys, tile->capacity * sizeof(uint16_t));
	copy->slots = tile_clone_memory(allocator, bytes, tile->slots, tile->capacity * sizeof(TileSlot));
	copy->styles = tile_clone_memory(allocator, bytes, tile->styles, tile->styles_capacity * sizeof(TileStyle));
	copy->arena = tile_clone_memory(allocator, bytes, tile->arena, tile->arena_size);
	if ((copy->keys == NULL) == (tile->keys == NULL) && (copy->slots == NULL) == (tile->slots == NULL) &&
		(copy->styles == NULL) == (tile->styles == NULL) && (copy->arena == NULL) == (tile->arena == NULL))
		return copy;
	tile_free(allocator, bytes, copy);
	return NULL;
}

/* Whether so many slots are there when the reserved ones and one more are in use. */
static inline bool
tile_has_slots(const Tile *tile)
{
	return tile_is_dense(tile) || tile->cells + tile->reserved_cells < tile->capacity;
}

static inline void
tile_add_reserved(Tile *tile, uint32_t content_len, uint32_t style_len)
{
	tile->reserved_cells++;
	tile->reserved_styles += style_len > 0;
	tile->reserved_bytes += (uint64_t) content_len + style_len;
}

bool
tile_reserve_slack(Tile *tile, uint32_t content_len, uint32_t style_len)
{
	uint64_t bytes = tile->arena_used + tile->reserved_bytes + content_len + style_len;

	if (!tile_has_slots(tile) || bytes > tile->arena_size || tile_is_wasteful(tile, content_len + style_len) ||
		(style_len > 0 && tile->styles_used + tile->reserved_styles >= tile->styles_capacity))
		return false;
	tile_add_reserved(tile, content_len, style_len);
	return true;
}

bool
tile_reserve(const GridAllocator *allocator, size_t *bytes, Tile *tile, uint32_t content_len, uint32_t style_len)
{
	uint32_t wanted = tile->cells + tile->reserved_cells + 1;

	if (!tile_grow_slots(allocator, bytes, tile, wanted < TILE_CELLS ? wanted : TILE_CELLS) ||
		!tile_grow_arena(allocator, bytes, tile, (uint64_t) content_len + style_len, style_len > 0))
		return false;
	tile_add_reserved(tile, content_len, style_len);
	return true;
}

/* ---- setting ---- */

/* The number of a style of the tile, entered into the table when it is new. */
static uint32_t
tile_intern_style(Tile *tile, const char *style, uint32_t len)
{
	for (uint32_t i = tile->styles_used; i > 0; i--)
	{
		const TileStyle *known = &tile->styles[i - 1];

		if (known->len == len && memcmp(tile->arena + known->offset, style, len) == 0)
			return i;
	}
	memcpy(tile->arena + tile->arena_used, style, len);
	tile->styles[tile->styles_used] = (TileStyle){tile->arena_used, len};
	tile->arena_used += len;
	tile->style_bytes += len;
	return ++tile->styles_used;
}

/* The slot of a key, inserted empty when it is not there. */
static TileSlot *
tile_make_slot(Tile *tile, uint16_t key, bool *inserted)
{
	uint32_t at;

	*inserted = false;
	if (tile_is_dense(tile))
		return &tile->slots[key];
	at = tile_lower_bound(tile, key);
	if (at < tile->cells && tile->keys[at] == key)
		return &tile->slots[at];
	memmove(&tile->keys[at + 1], &tile->keys[at], (tile->cells - at) * sizeof(uint16_t));
	memmove(&tile->slots[at + 1], &tile->slots[at], (tile->cells - at) * sizeof(TileSlot));
	tile->keys[at] = key;
	memset(&tile->slots[at], 0, sizeof(TileSlot));
	tile->cells++;
	*inserted = true;
	return &tile->slots[at];
}

/* Takes a sparse tile's slot out again. */
static void
tile_drop_slot(Tile *tile, TileSlot *slot)
{
	uint32_t at = (uint32_t) (slot - tile->slots);

	tile->cells--;
	memmove(&tile->keys[at], &tile->keys[at + 1], (tile->cells - at) * sizeof(uint16_t));
	memmove(&tile->slots[at], &tile->slots[at + 1], (tile->cells - at) * sizeof(TileSlot));
}

void
tile_set(Tile *tile, uint16_t key, const char *content, uint32_t content_len, const char *style, uint32_t style_len)
{
	bool inserted;
	TileSlot *slot = tile_make_slot(tile, key, &inserted);
	bool before = !inserted && tile_slot_present(slot);

	if (content != NULL)
	{
		bool grows = content_len > slot->len;

		if (tile->formulas > 0 && slot->len > 0)
			tile->formulas -= grid_is_formula(tile->arena + slot->offset, slot->len);
		tile->formulas += grid_is_formula(content, content_len);
		slot->offset = grows ? tile->arena_used : slot->offset;
		tile->arena_used += grows ? content_len : 0;
		if (content_len > 0) /* there may be no arena */
			short_copy(tile->arena + slot->offset, content, content_len);
		tile->content_bytes += content_len - slot->len;
		slot->len = content_len & 0x1FFFF;
		tile->reserved_bytes -= content_len;
	}
	if (style != NULL)
	{
		slot->style = style_len > 0 ? tile_intern_style(tile, style, style_len) & 0x7FFF : 0;
		tile->reserved_bytes -= style_len;
		tile->reserved_styles -= style_len > 0;
	}
	tile->reserved_cells--;
	if (tile_is_dense(tile))
		tile->cells = (uint16_t) (tile->cells + tile_slot_present(slot) - before);
	else if (!tile_slot_present(slot))
		tile_drop_slot(tile, slot);
}
