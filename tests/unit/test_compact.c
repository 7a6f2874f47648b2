/*
 * test_compact.c - what a dense sheet takes beyond its contents, however it was written: while it is edited, and after
 * a round of the eviction clock, when it must be hardly more than what a loaded sheet takes.
 */
#include "grid_memory.h"
#include "tap.h"

#include <stdio.h>

#define ROWS  (4 * GRID_TILE_ROWS)
#define COLS  (5 * GRID_TILE_COLS)
#define CELLS (ROWS * COLS)
#define TILES (CELLS / TILE)
#define TILE  (GRID_TILE_ROWS * GRID_TILE_COLS)

static Grid *grid;
static uint32_t lens[CELLS];
static uint32_t styles; /* bytes of the styles that are in use: the same few in each tile */
static uint32_t longest;
static uint32_t order[CELLS];
static const char letters[] =
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"
	"nopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

/* What a cell of such a length holds. */
static const char *
text_of(uint32_t at)
{
	return letters + at % 26;
}

static uint32_t
random_len(void)
{
	return longest > 0 ? random_below(longest + 1) : 0;
}

/* An edit of its own. */
static void
set(uint32_t at, uint32_t len)
{
	lens[at] = len;
	if (!grid_put(&allocator, grid, at / COLS, at % COLS, text_of(at), len, NULL, 0))
		abort();
	grid_release(&allocator, grid);
}

/* All cells of a tile in one transaction. */
static void
set_block(uint32_t tile)
{
	uint32_t row = tile / (COLS / GRID_TILE_COLS) * GRID_TILE_ROWS,
			 col = tile % (COLS / GRID_TILE_COLS) * GRID_TILE_COLS;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < TILE; i++)
		{
			uint32_t r = row + i / GRID_TILE_COLS, c = col + i % GRID_TILE_COLS, at = r * COLS + c;

			if (pass == 1)
				grid_set(grid, r, c, text_of(at), lens[at], NULL, 0);
			else if (grid_reserve(&allocator, grid, r, c, lens[at] = random_len(), 0) == NULL)
				abort();
		}
	grid_release(&allocator, grid);
}

static void
shuffle(void)
{
	for (uint32_t i = 0; i < CELLS; i++)
	{
		uint32_t at = random_below(i + 1);

		order[i] = order[at];
		order[at] = i;
	}
}

static uint64_t
content_bytes(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CELLS; i++)
		sum += lens[i];
	return sum;
}

static bool
is_right(const Grid *there)
{
	GridCell cell;

	for (uint32_t at = 0; at < CELLS; at++)
	{
		bool present = grid_get(there, at / COLS, at % COLS, &cell);

		if (cell.content_len != lens[at] || memcmp(cell.content, text_of(at), lens[at]) != 0 ||
			(styles == 0 && present != (lens[at] > 0)))
			return false;
	}
	return grid_bytes(grid) == taken;
}

/* A round of the eviction clock over tiles that were all used. */
static bool
shrink(void)
{
	uint32_t hand = 0;

	grid_touch(grid, NULL, &(GridRect){0, 0, ROWS - 1, COLS - 1});
	return grid_evict(&allocator, grid, &hand, SIZE_MAX) == 0;
}

/* Bytes a cell beyond contents and styles, in hundredths. */
static uint32_t
beyond(void)
{
	return (uint32_t) ((grid_bytes(grid) - content_bytes() - styles) * 100 / CELLS);
}

/* 8 bytes a cell, and what a tile and its place are. */
#define EXACT 816

/* Hot: what is allowed while it is edited, in hundredths of a byte a cell. */
static void
check(const char *what, uint32_t hot)
{
	uint32_t now = beyond(), idle;
	bool right = is_right(grid);

	TAP_OK(right && now <= hot, "%s: %u.%02u bytes a cell beyond the contents, of %u.%02u", what, now / 100, now % 100,
		   hot / 100, hot % 100);
	right = shrink();
	idle = beyond();
	TAP_OK(right && is_right(grid) && idle <= EXACT + (content_bytes() / CELLS + 8) * 100 / 32 && idle <= now,
		   "%s: %u.%02u after a round of the clock", what, idle / 100, idle % 100);
}

static void
begin(uint32_t len)
{
	memset(lens, 0, sizeof(lens));
	styles = 0;
	longest = len;
	grid = grid_create(&allocator, ROWS, COLS);
	shuffle();
}

static void
end(void)
{
	grid_free(&allocator, grid);
	TAP_OK(taken == 0, "every byte comes back");
}

/* As loads do it. */
static void
test_loaded(void)
{
	begin(15);
	for (uint32_t tile = 0; tile < TILES; tile++)
	{
		uint32_t row = tile / (COLS / GRID_TILE_COLS), col = tile % (COLS / GRID_TILE_COLS), sum = 0;
		GridTile *there;

		for (uint32_t i = 0; i < TILE; i++)
		{
			uint32_t at =
				(row * GRID_TILE_ROWS + i / GRID_TILE_COLS) * COLS + col * GRID_TILE_COLS + i % GRID_TILE_COLS;

			sum += lens[at] = 1 + random_below(15);
		}
		there = grid_expect(&allocator, grid, (GridTileNo){row, col}, TILE, sum);
		for (uint32_t i = 0; i < TILE; i++)
		{
			uint32_t r = row * GRID_TILE_ROWS + i / GRID_TILE_COLS, c = col * GRID_TILE_COLS + i % GRID_TILE_COLS;

			grid_tile_set(grid, there, r, c, text_of(r * COLS + c), lens[r * COLS + c], NULL, 0);
		}
	}
	TAP_OK(is_right(grid) && beyond() <= EXACT, "loaded: %u.%02u bytes a cell beyond the contents", beyond() / 100,
		   beyond() % 100);
	end();
}

/* An eighth of the contents, or a quarter in tiles that were not yet full; an average content has half of the longest.
 */
static void
test_written(uint32_t len)
{
	uint32_t mean = len * 50, eighth = EXACT + mean / 8 + mean / 20, twice = EXACT + mean * 5 / 4 + mean / 20;

	begin(len);
	for (uint32_t i = 0; i < CELLS; i++)
		set(i, random_len());
	check("written row by row", eighth);
	end();

	begin(len);
	for (uint32_t i = 0; i < CELLS; i++)
		set(order[i], random_len());
	check("written at random", eighth);
	for (uint32_t i = 0; i < 10 * CELLS; i++)
		set(random_below(CELLS), random_len());
	check("written over ten times", eighth);
	for (uint32_t tile = 0; tile < TILES; tile++)
		set_block(tile);
	check("written over by blocks", twice);
	for (uint32_t i = 0; i < CELLS; i++)
		set(order[i], lens[order[i]] / 2);
	check("shortened by half", twice);
	for (uint32_t i = 0; i < CELLS / 2; i++)
		set(order[i], 0);
	check("half of it emptied", twice);
	for (uint32_t i = CELLS / 2; i < CELLS * 99 / 100; i++)
		set(order[i], 0);
	check("a cell of a hundred left", twice);
	TAP_OK(grid_bytes(grid) < (CELLS / 100) * 10 + content_bytes() + TILES * 160 + 256,
		   "and its tiles are small: %zu bytes", grid_bytes(grid));
	end();
}

static void
test_styles(void)
{
	char style[32];

	begin(15);
	for (uint32_t i = 0; i < 2 * CELLS; i++)
	{
		uint32_t at = order[i % CELLS],
				 len = (uint32_t) snprintf(style, sizeof(style), "style %u", (i + i / CELLS) % 4);

		lens[at] = random_len();
		if (!grid_put(&allocator, grid, at / COLS, at % COLS, text_of(at), lens[at], style, len))
			abort();
		grid_release(&allocator, grid);
	}
	styles = TILES * 4 * (7 + 8);
	check("with four styles a tile", 1000);
	/* One style goes: its bytes and its number are garbage. */
	for (uint32_t at = 0; at < CELLS; at++)
		if (!grid_put(&allocator, grid, at / COLS, at % COLS, NULL, 0, "style 1", 7))
			abort();
	grid_release(&allocator, grid);
	styles = TILES * (7 + 8);
	check("with one", 1000);
	end();
}

/* Pinned tiles keep their slack. */
static void
test_pinned(void)
{
	size_t before;
	GridTile *tile;

	begin(15);
	for (uint32_t i = 0; i < 4 * CELLS; i++)
		set(order[i % CELLS], random_len());
	before = grid_bytes(grid);
	(void) grid_pin_at(grid, 0, 0, &tile);
	TAP_OK(shrink() && is_right(grid) && beyond() > EXACT && grid_bytes(grid) < before, "a pinned tile stays as it is");
	before = grid_bytes(grid);
	TAP_OK(shrink() && grid_bytes(grid) == before, "as long as it is pinned");
	grid_release(&allocator, grid);
	TAP_OK(shrink() && is_right(grid) && grid_bytes(grid) < before, "and no longer");
	for (uint32_t i = 0; i < CELLS; i++)
		set(random_below(CELLS), random_len());
	TAP_OK(is_right(grid), "a grid that was shrunk can be edited");
	end();
}

int
main(void)
{
	test_loaded();
	test_written(15);
	test_written(150);
	test_styles();
	test_pinned();
	return tap_done();
}
