/*
 * test_maps.c - rows and columns that move: one map against a plain array of lines, and a grid's view against a plain
 * two-dimensional array, under random inserts, deletions and edits; maps as bytes; and room that is reserved for them.
 */
#include "grid/line_maps.h"
#include "grid_memory.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one map ---- */

#define LINES 48

static uint32_t lines[LINES]; /* the places; from line_extent on in any order */
static uint32_t line_extent;

/* Every index, the lengths of runs, that no two runs could be one, and that free lines are sorted. */
static bool
lines_agree(const LineMap *map, const uint32_t *expected, uint32_t extent)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < LINES; i++)
	{
		uint32_t place, next;
		uint32_t length = line_map_run_at(map, i, &place);

		if (line_map_locate(map, i) != place || i + length > LINES || place >= LINES)
			return false;
		seen |= UINT64_C(1) << place;
		for (uint32_t k = 0; k < length; k++)
			if (line_map_locate(map, i + k) != place + k)
				return false;
		if (i + length < LINES && line_map_locate(map, i + length) == place + length)
			return false;
		if (i < extent && place != expected[i])
			return false;
		if (i >= extent && i + 1 < LINES && (next = line_map_locate(map, i + 1)) < place)
			return false;
	}
	return seen == (UINT64_C(1) << LINES) - 1 && map->count != 1;
}

/* The lines as they should be after an insert took those that the map has at `at` now. */
static bool
lines_insert(uint32_t at, uint32_t n, const LineMap *map)
{
	uint32_t old[LINES];
	uint32_t from = at > line_extent ? at : line_extent;
	bool full = LINES - from < n;

	memcpy(old, lines, sizeof(old));
	for (uint32_t i = 0; i < n; i++)
	{
		bool was_free = false;

		lines[at + i] = line_map_locate(map, at + i);
		for (uint32_t k = full ? LINES - n : from; k < LINES; k++)
			was_free |= old[k] == lines[at + i];
		if (!was_free)
			return false;
	}
	memcpy(lines + at + n, old + at, (LINES - at - n) * sizeof(uint32_t));
	line_extent = full ? LINES : from + n;
	return true;
}

static void
lines_remove(uint32_t at, uint32_t n)
{
	memmove(lines + at, lines + at + n, (line_extent - at - n) * sizeof(uint32_t));
	line_extent -= n;
}

static void
test_map(void)
{
	LineMapRun buffers[2][LINES + LINE_MAP_GROWS];
	LineMap map = {LINES, 0, NULL};
	bool agree = true, bounded = true;
	uint32_t most = 0, full = 0;

	for (uint32_t i = 0; i < LINES; i++)
		lines[i] = i;
	line_extent = 10;
	for (int step = 0; step < (int) steps_to_run(8000, 40000) && agree; step++)
	{
		LineMapRun *to = buffers[step % 2];
		bool insert = line_extent < 3 || random_below(2) == 0;
		uint32_t end = insert ? LINES : line_extent;
		uint32_t at = random_below(end);
		uint32_t n = 1 + random_below(random_below(8) > 0 && end - at > 3 ? 3 : end - at);
		uint32_t count =
			insert ? line_map_insert(&map, at, n, line_extent, to) : line_map_remove(&map, at, n, line_extent, to);

		bounded &= count <= map.count + LINE_MAP_GROWS;
		map = (LineMap){LINES, count, to};
		full += insert && line_extent + n > LINES;
		if (insert)
			agree = lines_insert(at, n, &map);
		else
			lines_remove(at, n);
		agree &= lines_agree(&map, lines, line_extent);
		for (uint32_t i = line_extent; i < LINES; i++) /* whatever their order is now */
			lines[i] = line_map_locate(&map, i);
		most = count > most ? count : most;
	}
	TAP_OK(agree && most > LINES / 4, "40000 changes of an map, up to %u runs, agree with an array", most);
	TAP_OK(full > 1000, "%u inserts found too few free lines", full);
	TAP_OK(bounded, "a change adds at most %d runs", LINE_MAP_GROWS);
}

/* Changes of rows, one after another; the maps before are freed. */
static void
change_rows(LineMaps **maps, uint32_t *extent, bool insert, uint32_t at, uint32_t n)
{
	LineChange change = {true, insert, at, n};
	LineMaps *next = NULL;

	(void) line_maps_change(&allocator, *maps, &change, *extent, &next);
	line_maps_free(&allocator, *maps);
	*maps = next;
	*extent = extent_after(&change, *extent);
}

static uint32_t
row_runs(const LineMaps *maps)
{
	return line_maps_one(maps, LINE_ROW).count;
}

static void
test_runs(void)
{
	LineMaps *maps = NULL;
	uint32_t extent = 1000;

	change_rows(&maps, &extent, true, 5, 3);
	TAP_OK(row_runs(maps) == 4,
		   "an insert: rows before, it, rows behind with the free ones up to it, and those after it");
	change_rows(&maps, &extent, false, 5, 3);
	TAP_OK(maps == NULL, "the deletion of the same rows gives the identity");
	for (uint32_t i = 0; i < 100; i++)
		change_rows(&maps, &extent, true, 10, 3);
	TAP_OK(row_runs(maps) == 4, "inserts at one place stay one run");
	for (uint32_t i = 0; i < 100; i++)
		change_rows(&maps, &extent, true, 600 + 2 * i, 2);
	TAP_OK(row_runs(maps) == 7, "so do inserts below each other");
	change_rows(&maps, &extent, true, extent, 50);
	TAP_OK(row_runs(maps) == 7, "rows at the end need no run of their own");
	for (uint32_t i = 0; i < 20000; i++)
	{
		uint32_t at = random_below(extent - 20);

		change_rows(&maps, &extent, i % 2 == 0, i % 2 == 0 ? at : random_below(extent - 10), 1 + random_below(5));
	}
	TAP_OK(row_runs(maps) <= 2 * extent + 1, "20000 inserts and deletions leave %u runs for %u rows", row_runs(maps),
		   extent);
	change_rows(&maps, &extent, false, 0, extent);
	TAP_OK(maps == NULL, "without rows there is nothing to remember");
	TAP_OK(taken == 0, "no byte is left");
}

static void
test_extent(void)
{
	LineChange change = {false, true, 4, 3};

	TAP_OK(extent_after(&change, 10) == 13, "an insert in between extends");
	TAP_OK(extent_after(&change, 2) == 7, "an insert behind the end extends to it first");
	TAP_OK(extent_after(&change, 16383) == 16384, "not beyond the limit");
	change.insert = false;
	TAP_OK(extent_after(&change, 10) == 7 && extent_after(&change, 6) == 4 && extent_after(&change, 3) == 3,
		   "a deletion takes what is there");
	change.at = 0;
	TAP_OK(extent_after(&change, 3) == 1, "a sheet keeps one column");
}

/* ---- bytes ---- */

static LineMaps *
random_maps(uint32_t changes)
{
	LineMaps *maps = NULL;

	for (uint32_t i = 0; i < changes; i++)
	{
		LineChange change = {random_below(2), random_below(3) > 0, random_below(300), 1 + random_below(5)};
		LineMaps *next;

		(void) line_maps_change(&allocator, maps, &change, 1000, &next);
		line_maps_free(&allocator, maps);
		maps = next;
	}
	return maps;
}

static bool
line_maps_equal(const LineMaps *a, const LineMaps *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return memcmp(a->counts, b->counts, sizeof(a->counts)) == 0 &&
		   memcmp(a->runs, b->runs, (a->counts[LINE_ROW] + a->counts[LINE_COL]) * sizeof(LineMapRun)) == 0;
}

static void
test_bytes(void)
{
	bool same = true, sound = true;
	uint32_t refused = 0;

	for (uint32_t i = 0; i < 300; i++)
	{
		LineMaps *maps = random_maps(1 + random_below(60)), *back = NULL;
		uint8_t *bytes;
		size_t len;

		if (maps == NULL)
			continue;
		bytes = malloc(line_maps_encode_bound(maps) + 1);
		len = line_maps_encode(maps, bytes);
		same &= len <= line_maps_encode_bound(maps) &&
				line_maps_decode(&allocator, bytes, len, &back) == LINE_MAPS_DECODED && line_maps_equal(maps, back);
		line_maps_free(&allocator, back);
		for (uint32_t k = 0; k < 20; k++)
		{
			size_t at = random_below((uint32_t) len);
			uint8_t kept = bytes[at];
			LineMapsDecoded decoded;

			bytes[at] ^= 1 << random_below(8);
			decoded = line_maps_decode(&allocator, bytes, len - random_below(2), &back);
			refused += decoded == LINE_MAPS_DAMAGED;
			/* What is not refused is another permutation: it must give its own bytes back. */
			if (decoded == LINE_MAPS_DECODED)
			{
				uint8_t *again = malloc(line_maps_encode_bound(back));

				sound &= line_maps_encode(back, again) <= len && !line_maps_equal(maps, back);
				free(again);
			}
			line_maps_free(&allocator, back);
			bytes[at] = kept;
		}
		free(bytes);
		line_maps_free(&allocator, maps);
	}
	TAP_OK(same, "maps come back from their bytes");
	TAP_OK(sound && refused > 5000, "damaged bytes are refused (%u)", refused);
	TAP_OK(taken == 0, "no byte is left");
}

/* ---- a grid against an array ---- */

#define ROWS 200
#define COLS 70

static uint32_t cells[ROWS][COLS]; /* the number that the cell shows; 0: empty */
static uint32_t extent[2];

/* Whether nothing that is there would leave the array. */
static bool
array_change(const LineChange *change)
{
	static uint32_t old[ROWS][COLS];
	uint32_t size = change->rows ? ROWS : COLS;
	uint32_t n = change->n;

	if (change->at + n > size)
		return false;
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < COLS; col++)
		{
			uint32_t line = change->rows ? row : col;
			bool gone = change->insert ? line >= size - n : line >= change->at && line < change->at + n;

			if (gone && cells[row][col] != 0)
				return false;
		}
	memcpy(old, cells, sizeof(old));
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < COLS; col++)
		{
			uint32_t line = change->rows ? row : col;
			uint32_t from = line < change->at ? line : change->insert ? line - n : line + n;
			bool empty = change->insert ? line >= change->at && line < change->at + n : from >= size;

			cells[row][col] = empty ? 0 : change->rows ? old[from][col] : old[row][from];
		}
	extent[!change->rows] = extent_after(change, extent[!change->rows]);
	return true;
}

static void
grid_set_number(Grid *grid, uint32_t row, uint32_t col, uint32_t number)
{
	char text[16];
	int len = number == 0 ? 0 : snprintf(text, sizeof(text), "%u", number);
	uint32_t at_row = row, at_col = col;

	line_maps_locate(grid_maps(grid), &at_row, &at_col);
	(void) grid_put(&allocator, grid, at_row, at_col, text, (uint32_t) len, NULL, 0);
	grid_resize(grid, row + 1, col + 1);
	cells[row][col] = number;
	extent[0] = row >= extent[0] ? row + 1 : extent[0];
	extent[1] = col >= extent[1] ? col + 1 : extent[1];
}

static uint32_t
cell_number(const GridCell *cell)
{
	char text[16] = "";

	memcpy(text, cell->content, cell->content_len);
	return (uint32_t) strtoul(text, NULL, 10);
}

/* The rectangle by a view, in reading order, and cell by cell. */
static bool
view_agrees(const Grid *grid, const GridRect *rect)
{
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, grid_maps(grid), rect->row0, rect->col0, rect->row1, rect->col1);
	for (uint32_t row = rect->row0; row <= rect->row1 && row < ROWS; row++)
		for (uint32_t col = rect->col0; col <= rect->col1 && col < COLS; col++)
		{
			bool found = grid_view_get(grid, row, col, &cell);

			if (cell.row != row || cell.col != col || found != (cells[row][col] != 0))
				return false;
			if (!found)
				continue;
			if (cell_number(&cell) != cells[row][col] || !grid_scan_next(&scan, &cell) || cell.row != row ||
				cell.col != col || cell_number(&cell) != cells[row][col])
				return false;
		}
	return !grid_scan_next(&scan, &cell) && !grid_scan_next(&scan, &cell);
}

/* The same cells come when many are asked for at once. */
static bool
some_agree(const Grid *grid, const GridRect *rect)
{
	GridScan one, many;
	GridCell cell, some[64];
	uint32_t count;

	grid_view_init(&one, grid, grid_maps(grid), rect->row0, rect->col0, rect->row1, rect->col1);
	grid_view_init(&many, grid, grid_maps(grid), rect->row0, rect->col0, rect->row1, rect->col1);
	while ((count = grid_scan_some(&many, some, 64)) > 0)
		for (uint32_t i = 0; i < count; i++)
			if (!grid_scan_next(&one, &cell) || cell.row != some[i].row || cell.col != some[i].col ||
				cell.content != some[i].content || cell.content_len != some[i].content_len)
				return false;
	return !grid_scan_next(&one, &cell);
}

/* The parts of a rectangle have its cells, each of them once, unless they are wide. */
static bool
parts_agree(const LineMaps *maps, const GridRect *rect)
{
	LineMapsParts parts;
	GridRect part;
	uint64_t area = 0;

	line_maps_parts_init(&parts, maps, rect);
	while (line_maps_parts_next(&parts, &part))
		area += (uint64_t) (part.row1 - part.row0 + 1) * (part.col1 - part.col0 + 1);
	return parts.wide || area == (uint64_t) (rect->row1 - rect->row0 + 1) * (rect->col1 - rect->col0 + 1);
}

static GridRect
random_rect(void)
{
	uint32_t row = random_below(ROWS), col = random_below(COLS);

	return (GridRect){row, col, row + random_below(ROWS - row), col + random_below(COLS - col)};
}

/* Whoever deletes empties first. */
static void
grid_empty(Grid *grid, const LineChange *change)
{
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < COLS; col++)
		{
			uint32_t line = change->rows ? row : col;

			if (cells[row][col] != 0 && line >= change->at && line < change->at + change->n)
				grid_set_number(grid, row, col, 0);
		}
}

static void
test_grid(void)
{
	static const GridRect all = {0, 0, UINT32_MAX - 1, UINT32_MAX - 1};
	Grid *grid = grid_create(&allocator, 1, 1);
	bool agree = true, counted = true, sized = true;
	uint32_t changes = 0, next = 1;
	uint32_t steps = steps_to_run(1600, 8000);

	extent[0] = extent[1] = 1;
	for (uint32_t step = 0; step < steps && agree; step++)
	{
		LineChange change = {random_below(2), random_below(2) == 0, 0, 1 + random_below(3)};
		GridRect rect = random_rect();

		change.at = random_below(change.rows ? ROWS / 2 : COLS / 2);
		if (step % 4 == 0 && !change.insert)
			grid_empty(grid, &change);
		if (step % 4 != 0)
			grid_set_number(grid, random_below(ROWS / 2), random_below(COLS / 2), random_below(3) == 0 ? 0 : next++);
		else if (array_change(&change))
		{
			changes++;
			(void) grid_change_maps(&allocator, grid, &change);
		}
		agree = view_agrees(grid, &rect) && some_agree(grid, &rect) && parts_agree(grid_maps(grid), &rect);
		if (step % 100 == 0)
			agree &= view_agrees(grid, &all);
		counted &= grid_bytes(grid) == taken;
		sized &= grid_rows(grid) == extent[0] && grid_cols(grid) == extent[1];
		grid_release(&allocator, grid);
	}
	TAP_OK(agree, "a grid with %u inserts and deletions agrees with an array", changes);
	TAP_OK(changes > steps / 20, "many of them were possible");
	TAP_OK(sized, "so does its extent");
	TAP_OK(counted, "every byte is accounted for");
	grid_free(&allocator, grid);
	TAP_OK(taken == 0, "and given back");
}

/* ---- maps that become a grid's without failing ---- */

static void
test_adopt(void)
{
	Grid *grid = grid_create(&allocator, 100, 10);
	LineMaps *small = random_maps(3), *large = random_maps(40);

	TAP_OK(grid_reserve_maps(&allocator, grid, large) && grid_reserve_maps(&allocator, grid, small) &&
			   grid_maps(grid) == NULL,
		   "room is reserved and nothing is changed");
	grid_adopt_maps(&allocator, grid, small);
	grid_release(&allocator, grid);
	TAP_OK(line_maps_equal(grid_maps(grid), small), "maps are adopted");
	TAP_OK(grid_reserve_maps(&allocator, grid, large), "room beside those that are there");
	grid_adopt_maps(&allocator, grid, large);
	grid_release(&allocator, grid);
	TAP_OK(line_maps_equal(grid_maps(grid), large), "others take their place");
	TAP_OK(grid_reserve_maps(&allocator, grid, large), "room that will not be used");
	grid_adopt_maps(&allocator, grid, NULL);
	grid_release(&allocator, grid);
	TAP_OK(grid_maps(grid) == NULL, "back to the identity");
	TAP_OK(grid_reserve_maps(&allocator, grid, large), "room that the grid has when it goes");
	line_maps_free(&allocator, small);
	line_maps_free(&allocator, large);
	TAP_OK(grid_bytes(grid) == taken, "every byte is accounted for");
	grid_free(&allocator, grid);
	TAP_OK(taken == 0, "and given back");
}

int
main(void)
{
	test_map();
	test_runs();
	test_extent();
	test_bytes();
	test_grid();
	test_adopt();
	return tap_done();
}
