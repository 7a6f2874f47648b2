/*
 * test_grid.c - the cell grid against a plain array of all cells, with an allocator that counts every byte and fails
 * at random: whatever fails, readers see what they saw, and reserved edits always fit.
 */
#include "common/edit_codec.h"
#include "grid/grid_private.h"
#include "random.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- an allocator that counts and fails ---- */

typedef struct Meter
{
	size_t bytes;
	uint64_t calls;
	int fail_percent;
	bool frozen; /* nothing may be asked of it */
	bool touched;
} Meter;

static void *
meter_alloc(void *ctx, size_t size)
{
	Meter *meter = ctx;
	void *memory;

	meter->touched |= meter->frozen;
	if (meter->fail_percent > 0 && random_below(100) < (uint32_t) meter->fail_percent)
		return NULL;
	memory = malloc(size);
	memset(memory, 0xA5, size); /* nothing may rely on zeroes */
	meter->bytes += size;
	meter->calls++;
	return memory;
}

static void
meter_free(void *ctx, void *memory, size_t size)
{
	Meter *meter = ctx;

	meter->touched |= meter->frozen;
	memset(memory, 0x5A, size); /* a wrong size or a late read is seen by the sanitizer or the comparison */
	meter->bytes -= size;
	free(memory);
}

static Meter meter;
static const GridAllocator allocator = {meter_alloc, meter_free, &meter, false};

/* ---- the oracle: every cell of a small window, with texts of its own ---- */

#define ORACLE_ROWS 150
#define ORACLE_COLS 40
#define ORACLE_TEXT 6000

typedef struct Text
{
	char *data;
	uint32_t len;
} Text;

typedef struct Oracle
{
	Text content[ORACLE_ROWS][ORACLE_COLS];
	Text style[ORACLE_ROWS][ORACLE_COLS];
	uint32_t rows, cols;
} Oracle;

static Oracle oracle;

static void
text_set(Text *text, const char *data, uint32_t len)
{
	text->data = realloc(text->data, len + 1);
	if (len > 0)
		memcpy(text->data, data, len);
	text->len = len;
}

static bool
text_equals(const Text *text, const char *data, uint32_t len)
{
	return text->len == len && (len == 0 || memcmp(text->data, data, len) == 0);
}

static void
oracle_clear(void)
{
	for (int r = 0; r < ORACLE_ROWS; r++)
	{
		for (int c = 0; c < ORACLE_COLS; c++)
		{
			free(oracle.content[r][c].data);
			free(oracle.style[r][c].data);
		}
	}
	memset(&oracle, 0, sizeof(oracle));
	oracle.rows = oracle.cols = 1;
}

/* One edit, as it is reserved and later set. */
typedef struct Change
{
	uint32_t row, col;
	char *content, *style; /* NULL: kept */
	uint32_t content_len, style_len;
	GridTile *tile; /* where room is reserved */
} Change;

static char *
random_text(uint32_t len)
{
	char *text = malloc(len);

	for (uint32_t i = 0; i < len; i++)
		text[i] = (char) ('a' + random_below(26));
	return text;
}

/* The window hot: few cells, so that a cell is written again and again. */
static Change
random_change(bool hot)
{
	Change change = {.row = random_below(hot ? 3 : ORACLE_ROWS), .col = random_below(hot ? 3 : ORACLE_COLS)};
	uint32_t kind = random_below(10);

	if (kind < 8)
	{
		change.content_len = random_below(12) == 0	? random_below(ORACLE_TEXT)
							 : random_below(4) == 0 ? 0
													: random_below(20);
		change.content = random_text(change.content_len);
	}
	if (kind >= 6)
	{
		/* Few different styles, and now and then one of its own. */
		change.style_len = random_below(4) == 0 ? 0 : random_below(5) == 0 ? random_below(300) : 1;
		change.style = random_text(change.style_len);
		if (change.style_len == 1)
			change.style[0] = (char) ('A' + random_below(3));
	}
	return change;
}

static void
change_free(Change *change)
{
	free(change->content);
	free(change->style);
}

static void
oracle_set(const Change *change)
{
	if (change->content != NULL)
		text_set(&oracle.content[change->row][change->col], change->content, change->content_len);
	if (change->style != NULL)
		text_set(&oracle.style[change->row][change->col], change->style, change->style_len);
	if (oracle.rows <= change->row)
		oracle.rows = change->row + 1;
	if (oracle.cols <= change->col)
		oracle.cols = change->col + 1;
}

static bool
oracle_present(uint32_t row, uint32_t col)
{
	return oracle.content[row][col].len > 0 || oracle.style[row][col].len > 0;
}

/* What is said to be readable can be read: the arena it lies in has exactly its size, under AddressSanitizer. */
static bool
cell_is_readable(const GridCell *cell)
{
	volatile const char *content = cell->content;

	if (cell->content_len == 0)
		return cell->readable == 0;
	(void) content[cell->readable - 1];
	return cell->readable >= cell->content_len;
}

static bool
cell_is_right(const GridCell *cell, uint32_t row, uint32_t col)
{
	return cell_is_readable(cell) && cell->row == row && cell->col == col &&
		   text_equals(&oracle.content[row][col], cell->content, cell->content_len) &&
		   text_equals(&oracle.style[row][col], cell->style, cell->style_len);
}

#define SOME 70 /* more than a row of a tile has */

/* A scan of the rectangle gives exactly the oracle's cells, in order, when it is asked for at most `some` at a time. */
static bool
scan_gives(const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1, uint32_t some)
{
	GridScan scan;
	GridCell cells[SOME];
	uint32_t count = 0, at = 0;

	grid_scan_init(&scan, grid, row0, col0, row1, col1);
	for (uint32_t row = row0; row <= row1 && row < ORACLE_ROWS; row++)
	{
		for (uint32_t col = col0; col <= col1 && col < ORACLE_COLS; col++)
		{
			if (!oracle_present(row, col))
				continue;
			if (at == count)
				count = grid_scan_some(&scan, cells, some), at = 0;
			if (at == count || count > some || !cell_is_right(&cells[at++], row, col))
				return false;
		}
	}
	return at == count && grid_scan_some(&scan, cells, some) == 0 && grid_scan_some(&scan, cells, some) == 0;
}

static bool
scan_is_right(const Grid *grid, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	return scan_gives(grid, row0, col0, row1, col1, 1) && scan_gives(grid, row0, col0, row1, col1, 7) &&
		   scan_gives(grid, row0, col0, row1, col1, SOME);
}

static bool
grid_is_right(const Grid *grid)
{
	uint64_t in_tile[ORACLE_ROWS / GRID_TILE_ROWS + 1][ORACLE_COLS / GRID_TILE_COLS + 1] = {0};

	for (uint32_t row = 0; row < ORACLE_ROWS; row++)
	{
		for (uint32_t col = 0; col < ORACLE_COLS; col++)
		{
			GridCell cell;
			bool present = oracle_present(row, col);

			if (grid_get(grid, row, col, &cell) != present || !cell_is_right(&cell, row, col))
				return false;
			in_tile[row / GRID_TILE_ROWS][col / GRID_TILE_COLS] += present;
		}
	}
	for (uint32_t row = 0; row <= ORACLE_ROWS / GRID_TILE_ROWS; row++)
	{
		for (uint32_t col = 0; col <= ORACLE_COLS / GRID_TILE_COLS; col++)
		{
			const GridIndexEntry *entry = grid_index_find(grid, (GridTileNo){row, col});

			if ((entry != NULL && entry->tile != NULL ? entry->tile->cells : 0) != in_tile[row][col])
				return false;
		}
	}
	return grid_rows(grid) == oracle.rows && grid_cols(grid) == oracle.cols && grid_bytes(grid) == meter.bytes &&
		   scan_is_right(grid, 0, 0, UINT32_MAX - 1, UINT32_MAX - 1);
}

/* Evicts all tiles, none of which is pinned; each takes its bytes along. */
static bool
tiles_can_go(Grid *grid)
{
	bool exact = true;
	uint32_t hand = 0;

	for (uint32_t left = 3 * grid_tiles_resident(grid); left > 0; left--)
	{
		(void) grid_evict(&allocator, grid, &hand, 1);
		exact &= grid_bytes(grid) == meter.bytes;
	}
	return exact && grid_tiles_resident(grid) == 0;
}

/* Packing makes a grid no larger and changes no cell; a copy has the same cells in as many bytes at most. Both may find
 * no room, and then nothing is lost. */
static bool
copies_are_right(Grid *grid)
{
	size_t before = grid_bytes(grid);
	bool failed = false;
	Grid *copy;

	meter.fail_percent = 20;
	for (int i = 0; i < 20; i++)
	{
		failed |= !grid_shrink(&allocator, grid);
		failed |= !grid_copy(&allocator, grid, &copy);
		if (copy != NULL)
			grid_free(&allocator, copy);
	}
	meter.fail_percent = 0;
	if (!failed || !grid_shrink(&allocator, grid) || grid_bytes(grid) > before || !grid_is_right(grid))
		return false;
	before = meter.bytes;
	grid_pin(grid, grid_find_tile(grid, 0, 0));
	if (!grid_copy(&allocator, grid, &copy) || grid_bytes(copy) != meter.bytes - before ||
		grid_bytes(copy) > grid_bytes(grid))
		return false;
	grid_release(&allocator, grid);
	meter.bytes -= before; /* of the copy alone */
	if (!grid_is_right(copy) || !tiles_can_go(copy))
		return false;
	meter.bytes += before;
	grid_free(&allocator, copy);
	return grid_is_right(grid);
}

/* ---- the tests ---- */

#define BATCH_MAX 400

/* Room for a change, in one of the two ways; the one that needs no allocator is tried with the allocator locked. */
static bool
reserve(Grid *grid, Change *change)
{
	GridTile *tile = grid_find_tile(grid, change->row, change->col);
	bool there = false;

	if (tile != NULL && random_below(2) == 0)
	{
		meter.frozen = true;
		there = grid_tile_reserve(grid, tile, change->content_len, change->style_len);
		meter.frozen = false;
	}
	change->tile =
		there ? tile : grid_reserve(&allocator, grid, change->row, change->col, change->content_len, change->style_len);
	return change->tile != NULL;
}

static void
set_reserved(Grid *grid, const Change *change)
{
	if (random_below(2) == 0)
		grid_set(grid, change->row, change->col, change->content, change->content_len, change->style,
				 change->style_len);
	else
		grid_tile_set(grid, change->tile, change->row, change->col, change->content, change->content_len, change->style,
					  change->style_len);
	oracle_set(change);
}

/*
 * Batches: n reserves, some of which fail, then all or a part of the sets in their order, or none, then the release.
 * Between them the grid must equal the oracle, and no set may ask the allocator for anything.
 */
static void
test_batches(int fail_percent, bool hot, int rounds)
{
	static Change changes[BATCH_MAX];
	bool right = true;
	bool unchanged = true;
	uint64_t failures = 0;
	Grid *grid;

	oracle_clear();
	meter.fail_percent = 0;
	grid = grid_create(&allocator, 1, 1);
	for (int round = 0; round < rounds && right && unchanged; round++)
	{
		uint32_t asked = 1 + random_below(random_below(4) == 0 ? BATCH_MAX : 10);
		uint32_t count = 0;
		uint32_t used;

		meter.fail_percent = fail_percent;
		for (uint32_t i = 0; i < asked; i++)
		{
			Change change = random_change(hot);

			if (reserve(grid, &change))
				changes[count++] = change;
			else
			{
				failures++;
				change_free(&change);
			}
		}
		meter.fail_percent = 0;
		if (round % 8 == 0)
			unchanged = grid_is_right(grid);
		used = random_below(4) == 0 ? random_below(count + 1) : count;
		meter.frozen = true;
		for (uint32_t i = 0; i < used; i++)
			set_reserved(grid, &changes[i]);
		meter.frozen = false;
		for (uint32_t i = 0; i < count; i++)
			change_free(&changes[i]);
		if (random_below(3) > 0 || used < count)
			grid_release(&allocator, grid);
		meter.fail_percent = fail_percent;
		meter.fail_percent = 0;
		if (round % 8 == 0 || used < count)
			right = grid_is_right(grid);
	}
	right = right && grid_is_right(grid);
	TAP_OK(unchanged, "%s cells, %d %% failing: a reservation changes nothing that can be read", hot ? "hot" : "all",
		   fail_percent);
	TAP_OK(right, "%s cells, %d %% failing: the grid equals the oracle", hot ? "hot" : "all", fail_percent);
	TAP_OK(!meter.touched, "%s cells, %d %% failing: no set asks the allocator", hot ? "hot" : "all", fail_percent);
	TAP_OK((failures > 0) == (fail_percent > 0), "%llu reservations failed", (unsigned long long) failures);
	grid_release(&allocator, grid);
	TAP_OK(copies_are_right(grid), "%s cells, %d %% failing: shrunk and copied it is the same", hot ? "hot" : "all",
		   fail_percent);
	grid_free(&allocator, grid);
	TAP_OK(meter.bytes == 0, "grid_free gives every byte back");
}

static void
test_scans(void)
{
	bool right = true;
	Grid *grid = grid_create(&allocator, 1, 1);

	oracle_clear();
	for (int i = 0; i < 1500; i++)
	{
		Change change = random_change(false);

		right &= grid_put(&allocator, grid, change.row, change.col, change.content, change.content_len, change.style,
						  change.style_len);
		oracle_set(&change);
		change_free(&change);
	}
	for (int i = 0; i < 2000 && right; i++)
	{
		uint32_t row0 = random_below(ORACLE_ROWS + 10);
		uint32_t col0 = random_below(ORACLE_COLS + 10);

		right = scan_is_right(grid, row0, col0, row0 + random_below(ORACLE_ROWS), col0 + random_below(ORACLE_COLS));
	}
	TAP_OK(right, "2000 random rectangles are scanned as the oracle says");
	grid_free(&allocator, grid);
	oracle_clear();
}

static void
test_extremes(void)
{
	static char big[SHEET_MAX_CONTENT_BYTES];
	Grid *grid = grid_create(&allocator, 0, 0);
	uint32_t rows[] = {0, 63, 64, 1000000, SHEET_MAX_ROWS - 1};
	uint32_t cols[] = {0, 15, 16, SHEET_MAX_COLS - 1};
	GridScan scan;
	GridCell cell;
	int seen = 0;
	bool right = true;
	size_t before;

	TAP_OK(grid_rows(grid) == 1 && grid_cols(grid) == 1, "a grid has at least one cell");
	for (int r = 4; r >= 0; r--)
	{
		for (int c = 3; c >= 0; c--)
			right &= grid_put(&allocator, grid, rows[r], cols[c], "x", 1, NULL, 0);
	}
	TAP_OK(right && grid_rows(grid) == SHEET_MAX_ROWS && grid_cols(grid) == SHEET_MAX_COLS,
		   "cells at the corners of the largest sheet");
	TAP_OK(grid_bytes(grid) < 8192, "20 cells far apart take %zu bytes", grid_bytes(grid));
	grid_scan_init(&scan, grid, 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	for (; grid_scan_next(&scan, &cell); seen++)
		right &= seen < 20 && cell.row == rows[seen / 4] && cell.col == cols[seen % 4];
	TAP_OK(right && seen == 20, "they are scanned row by row");
	grid_scan_init(&scan, grid, 65, 17, SHEET_MAX_ROWS - 2, SHEET_MAX_COLS - 2);
	TAP_OK(!grid_scan_next(&scan, &cell), "a rectangle between them is empty");

	memset(big, 'b', sizeof(big));
	TAP_OK(grid_put(&allocator, grid, 5, 5, big, sizeof(big), NULL, 0) && grid_get(grid, 5, 5, &cell) &&
			   cell.content_len == sizeof(big) && memcmp(cell.content, big, sizeof(big)) == 0,
		   "the longest content of a cell fits");
	before = grid_bytes(grid);
	for (int i = 0; i < 200; i++)
		right &= grid_put(&allocator, grid, 5, 5, "", 0, NULL, 0) &&
				 grid_put(&allocator, grid, 5, 5, big, sizeof(big), NULL, 0);
	TAP_OK(right && grid_bytes(grid) < 6 * before, "garbage of replaced contents is used again: %zu bytes, before %zu",
		   grid_bytes(grid), before);
	grid_free(&allocator, grid);
}

/* Every cell of a tile gets a style of its own, many times over: numbers of styles must not run out. */
static void
test_many_styles(void)
{
	Grid *grid = grid_create(&allocator, 1, 1);
	bool right = true;
	GridCell cell;
	char style[32];

	for (uint32_t i = 0; i < 60 * 1024 && right; i++)
	{
		int len = snprintf(style, sizeof(style), "{\"n\":%u}", i);

		right = grid_put(&allocator, grid, i / 16 % 64, i % 16, NULL, 0, style, (uint32_t) len);
	}
	TAP_OK(right, "61440 different styles, one after another, in one tile");
	for (uint32_t i = 59 * 1024; i < 60 * 1024 && right; i++)
	{
		int len = snprintf(style, sizeof(style), "{\"n\":%u}", i);

		right = grid_get(grid, i / 16 % 64, i % 16, &cell) && cell.style_len == (uint32_t) len &&
				memcmp(cell.style, style, (size_t) len) == 0;
	}
	TAP_OK(right, "each cell has its last one");
	TAP_OK(grid_bytes(grid) < 2 * 1024 * 1024 && grid_bytes(grid) == meter.bytes, "they take %zu bytes",
		   grid_bytes(grid));
	grid_free(&allocator, grid);
}

/* A tile has room for so many styles, and for no more at once. */
static void
test_reserved_styles(void)
{
	Grid *grid = grid_create(&allocator, 1, 1);
	uint32_t count = 0;

	while (count < 100000 && grid_reserve(&allocator, grid, 0, 0, 0, 8) != NULL)
		count++;
	TAP_OK(count >= 1024 && count < 32768, "room for %u styles at once in one tile", count);
	grid_free(&allocator, grid);
}

/* The same cells by other ways have the same digest; any difference another one. */
static void
test_digest(void)
{
	Grid *one = grid_create(&allocator, 10, 5);
	Grid *two = grid_create(&allocator, 10, 5);
	uint64_t digest;

	for (uint32_t i = 0; i < 3000; i++)
	{
		char text[16];
		uint32_t len = (uint32_t) snprintf(text, sizeof(text), "%u", i);
		uint32_t back = 2999 - i;
		char other[16];
		uint32_t other_len = (uint32_t) snprintf(other, sizeof(other), "%u", back);

		grid_put(&allocator, one, i / 30, i % 30, text, len, i % 7 == 0 ? "s" : NULL, 1);
		grid_put(&allocator, two, back / 30, back % 30, "wrong", 5, "t", 1);
		grid_put(&allocator, two, back / 30, back % 30, other, other_len, back % 7 == 0 ? "s" : "", back % 7 == 0);
	}
	digest = grid_digest(one);
	TAP_OK(digest == grid_digest(two), "equal sheets made in another order have equal digests");
	grid_put(&allocator, two, 3, 3, "93 ", 3, NULL, 0);
	TAP_OK(digest != grid_digest(two), "another content, another digest");
	grid_put(&allocator, two, 3, 3, "93", 2, NULL, 0);
	TAP_OK(digest == grid_digest(two), "changed back, the same digest");
	grid_put(&allocator, two, 3, 3, "93", 2, "u", 1);
	TAP_OK(digest != grid_digest(two), "another style, another digest");
	grid_put(&allocator, two, 3, 3, NULL, 0, "", 0);
	grid_resize(two, 500, 1);
	TAP_OK(digest != grid_digest(two), "another extent, another digest");
	TAP_OK(grid_rows(two) == 500 && grid_cols(two) == 30, "a resize only grows");
	digest = grid_digest(one);
	for (uint32_t i = 0; i < 3000; i++)
	{
		GridCell cell;

		grid_get(one, i / 30, i % 30, &cell);
		digest -= grid_digest_cell(&cell);
	}
	TAP_OK(digest == grid_digest_shape(one), "it is a sum of cells, extent and maps");
	grid_put(&allocator, two, 70, 20, "moved", 5, NULL, 0);
	grid_free(&allocator, two);
	two = grid_create(&allocator, grid_rows(one), grid_cols(one));
	TAP_OK(grid_digest(two) == digest, "without cells it is that of an empty sheet");
	grid_free(&allocator, one);
	grid_free(&allocator, two);
	TAP_OK(meter.bytes == 0, "grid_free gives every byte back");
}

/* A tile gives what room it has, for cells and for bytes, to the last, and not more: AddressSanitizer looks on. */
static void
test_last_room(void)
{
	static const char text[2048];
	Grid *grid = grid_create(&allocator, 1, 1);
	GridTile *tile = grid_reserve(&allocator, grid, 0, 0, 1, 0);
	uint32_t cells = 1, len = sizeof(text), hand = 0;
	bool right = true;
	GridCell cell;

	while (grid_tile_reserve(grid, tile, 1, 0))
		cells++;
	for (uint32_t i = 0; i < cells; i++)
		grid_tile_set(grid, tile, i, 0, text + i, 1, NULL, 0);
	for (uint32_t i = 0; i < cells; i++)
		right &= grid_get(grid, i, 0, &cell) && cell.content_len == 1;
	TAP_OK(right && cells > 1, "the room of a new tile is that of %u cells", cells);

	tile = grid_reserve(&allocator, grid, 64, 0, 1000, 0);
	grid_tile_set(grid, tile, 64, 0, text, 1000, NULL, 0);
	while (len > 0 && !grid_tile_reserve(grid, tile, len, 0))
		len--;
	grid_tile_set(grid, tile, 65, 0, text, len, NULL, 0);
	TAP_OK(len > 0 && grid_get(grid, 65, 0, &cell) && cell.content_len == len, "%u bytes fill a tile", len);
	tile = grid_reserve(&allocator, grid, 0, 0, 8, 0);
	grid_release(&allocator, grid);
	TAP_OK(grid_tile_reserve(grid, tile, 1, 0) && grid_evict(&allocator, grid, &hand, SIZE_MAX) == 0 &&
			   grid_evict(&allocator, grid, &hand, SIZE_MAX) == 1 && grid_find_tile(grid, 0, 0) == tile,
		   "a tile in which room is reserved stays");
	grid_free(&allocator, grid);
}

#define SLACK_ROWS	192
#define SLACK_COLS	48
#define SLACK_CELLS (SLACK_ROWS * SLACK_COLS)

/* Sets a cell to a text of such a length; an edit of its own, as of a transaction: a tile that has the room is not
 * asked to grow. */
static bool
slack_set(Grid *grid, uint16_t *lens, uint32_t at, uint32_t len)
{
	static char text[4096];

	uint32_t row = at / SLACK_COLS, col = at % SLACK_COLS;
	GridTile *tile = grid_find_tile(grid, row, col);

	lens[at] = (uint16_t) len;
	if (tile == NULL || !grid_tile_reserve(grid, tile, len, 0))
		tile = grid_reserve(&allocator, grid, row, col, len, 0);
	if (tile == NULL)
		return false;
	grid_tile_set(grid, tile, row, col, text, len, NULL, 0);
	return true;
}

static size_t
slack_content(const uint16_t *lens)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < SLACK_CELLS; i++)
		sum += lens[i];
	return sum;
}

/* What a dense sheet may take that is edited: its contents and an eighth of what they were when a tile grew (here not
 * much more than they are), 8 bytes a cell, and what tiles are. */
static bool
slack_is_small(const Grid *grid, const uint16_t *lens)
{
	size_t tiles = SLACK_CELLS / (GRID_TILE_ROWS * GRID_TILE_COLS);

	return meter.bytes == grid_bytes(grid) &&
		   grid_bytes(grid) <= slack_content(lens) * 115 / 100 + SLACK_CELLS * 8 + tiles * 160 + 1024;
}

/* Memory follows the contents, whatever has been edited how often. */
static void
test_slack(void)
{
	GridScan scan;
	GridCell cell;
	static uint16_t lens[SLACK_CELLS];
	Grid *grid = grid_create(&allocator, 1, 1);
	bool right = true, small = true;

	for (uint32_t i = 0; i < SLACK_CELLS; i++)
		right &= slack_set(grid, lens, i, 12 + random_below(4));
	grid_release(&allocator, grid);
	TAP_OK(right && slack_is_small(grid, lens),
		   "a sheet that was filled cell by cell takes %zu bytes, its contents %zu", grid_bytes(grid),
		   slack_content(lens));
	for (uint32_t i = 0; i < 40 * SLACK_CELLS; i++)
	{
		right &= slack_set(grid, lens, random_below(SLACK_CELLS), 12 + random_below(4));
		if (i % 1000 == 0)
			grid_release(&allocator, grid);
		small &= i % SLACK_CELLS != 0 || slack_is_small(grid, lens);
	}
	TAP_OK(right && small, "edited 40 times over, %zu bytes with contents of %zu", grid_bytes(grid),
		   slack_content(lens));

	for (uint32_t i = 0; i < SLACK_CELLS; i++)
		right &= slack_set(grid, lens, i, 2000);
	for (uint32_t i = 0; i < SLACK_CELLS; i++)
		right &= slack_set(grid, lens, i, 10);
	grid_release(&allocator, grid);
	TAP_OK(right && grid_bytes(grid) < 2 * slack_content(lens) + SLACK_CELLS * 8 + 36 * 1024,
		   "contents became shorter: %zu bytes with contents of %zu", grid_bytes(grid), slack_content(lens));
	for (uint32_t i = 0; i < SLACK_CELLS; i++)
		right &= slack_set(grid, lens, i, 0);
	grid_release(&allocator, grid);
	grid_scan_init(&scan, grid, 0, 0, UINT32_MAX - 1, UINT32_MAX - 1);
	right &= !grid_scan_next(&scan, &cell);
	TAP_OK(right && grid_bytes(grid) < 4096, "a sheet without cells takes %zu bytes", grid_bytes(grid));
	grid_free(&allocator, grid);
}

#define EXPECT_CELLS (GRID_TILE_ROWS * GRID_TILE_COLS)

static bool
expect_is_right(const Grid *grid, const char *text, const uint32_t *lens)
{
	bool right = true;

	for (uint32_t at = 0; at < EXPECT_CELLS; at++)
	{
		GridCell cell;

		grid_get(grid, at / GRID_TILE_COLS, at % GRID_TILE_COLS, &cell);
		right &= cell.content_len == lens[at] && memcmp(cell.content, text + at, lens[at]) == 0;
	}
	return right;
}

/* A tile that is filled with what was expected asks for memory once, and takes no more than its cells need. */
static void
test_expect(void)
{
	static uint32_t lens[EXPECT_CELLS];
	static char text[EXPECT_CELLS + 64];
	Grid *grid = grid_create(&allocator, GRID_TILE_ROWS, GRID_TILE_COLS);
	uint32_t sum = 0;
	GridTile *tile;
	size_t bytes;

	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (char) ('a' + random_below(26));
	for (uint32_t i = 0; i < EXPECT_CELLS; i++)
		sum += lens[i] = 1 + random_below(24);
	meter.fail_percent = 100;
	TAP_OK(grid_expect(&allocator, grid, (GridTileNo){0, 0}, EXPECT_CELLS, sum) == NULL,
		   "no tile is expected without room");
	meter.fail_percent = 0;
	tile = grid_expect(&allocator, grid, (GridTileNo){0, 0}, EXPECT_CELLS, sum);
	bytes = grid_bytes(grid);
	meter.frozen = true;
	meter.touched = false;
	for (uint32_t at = 0; at < EXPECT_CELLS; at++)
		grid_tile_set(grid, tile, at / GRID_TILE_COLS, at % GRID_TILE_COLS, text + at, lens[at], NULL, 0);
	meter.frozen = false;
	TAP_OK(!meter.touched && expect_is_right(grid, text, lens), "cells that were expected need no more memory");
	grid_release(&allocator, grid);
	TAP_OK(grid_bytes(grid) == bytes && bytes < sum + 8 * EXPECT_CELLS + 400, "they take %zu bytes, their contents %u",
		   bytes, sum);

	/* The tile has no room at all: it grows, with all that is in it. */
	lens[7] = 60;
	(void) grid_put(&allocator, grid, 0, 7, text + 7, 60, NULL, 0);
	TAP_OK(expect_is_right(grid, text, lens) && grid_bytes(grid) > bytes, "a full tile grows when a cell does");
	tile = grid_expect(&allocator, grid, (GridTileNo){0, 0}, 1, 64);
	grid_tile_set(grid, tile, 0, 9, text + 9, lens[9] = 64, NULL, 0);
	TAP_OK(expect_is_right(grid, text, lens) && meter.bytes == grid_bytes(grid), "a cell is expected in a full tile");
	grid_free(&allocator, grid);
}

/* ---- a tile whose contents take as much room as before ---- */

#define STEADY_CELLS (GRID_TILE_ROWS * GRID_TILE_COLS)

typedef struct Steady
{
	char text[24];
	uint8_t len;
} Steady;

static bool
steady_put(Grid *grid, uint32_t at, const Steady *content)
{
	return grid_put(&allocator, grid, at / GRID_TILE_COLS, at % GRID_TILE_COLS, content->text, content->len, NULL, 0);
}

static bool
steady_right(const Grid *grid, const Steady *cells)
{
	GridCell cell;

	for (uint32_t i = 0; i < STEADY_CELLS; i++)
		if (!grid_get(grid, i / GRID_TILE_COLS, i % GRID_TILE_COLS, &cell) || cell.content_len != cells[i].len ||
			memcmp(cell.content, cells[i].text, cells[i].len) != 0)
			return false;
	return true;
}

/* Cells change their contents with each other: no memory is asked for, however often the arena is compacted. */
static void
test_steady(void)
{
	static Steady cells[STEADY_CELLS];
	Grid *grid = grid_create(&allocator, 1, 1);
	bool right = true;

	for (uint32_t i = 0; i < STEADY_CELLS; i++)
	{
		cells[i].len = (uint8_t) (1 + random_below(sizeof(cells[i].text)));
		memset(cells[i].text, 'a' + (int) random_below(26), cells[i].len);
		right &= steady_put(grid, i, &cells[i]);
	}
	for (uint32_t i = 0; i < 40 * STEADY_CELLS; i++)
	{
		Steady *a = &cells[random_below(STEADY_CELLS)], *b = &cells[random_below(STEADY_CELLS)], kept = *a;

		*a = *b;
		*b = kept;
		right &= steady_put(grid, (uint32_t) (a - cells), a) && steady_put(grid, (uint32_t) (b - cells), b);
		meter.frozen = i >= 10 * STEADY_CELLS;
		if (i % 1000 == 0)
			right &= steady_right(grid, cells);
	}
	meter.frozen = false;
	TAP_OK(right && steady_right(grid, cells), "cells that change places hold what they should");
	TAP_OK(!meter.touched, "contents that take as much room as before need no memory");
	meter.touched = false;
	grid_free(&allocator, grid);
}

static void
test_no_room(void)
{
	GridCell cell;
	Grid *grid;

	meter.fail_percent = 100;
	TAP_OK(grid_create(&allocator, 1, 1) == NULL, "no grid without room");
	meter.fail_percent = 0;
	grid = grid_create(&allocator, 1, 1);
	grid_put(&allocator, grid, 0, 0, "kept", 4, NULL, 0);
	meter.fail_percent = 100;
	TAP_OK(!grid_put(&allocator, grid, 100, 100, "x", 1, NULL, 0) && !grid_get(grid, 100, 100, &cell) &&
			   grid_rows(grid) == 1,
		   "a cell without room is not there");
	meter.fail_percent = 0;
	TAP_OK(grid_get(grid, 0, 0, &cell) && cell.content_len == 4 && memcmp(cell.content, "kept", 4) == 0,
		   "the others are");
	grid_free(&allocator, grid);
}

int
main(void)
{
	test_batches(0, false, 600);
	test_batches(0, true, 1500);
	test_batches(30, false, 600);
	test_batches(30, true, 1500);
	test_scans();
	test_extremes();
	test_many_styles();
	test_reserved_styles();
	test_last_room();
	test_digest();
	test_slack();
	test_expect();
	test_steady();
	test_no_room();
	oracle_clear();
	return tap_done();
}
