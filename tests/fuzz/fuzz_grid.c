/*
 * fuzz_grid.c - the bytes are operations on a grid: cells are set, read, scanned, tiles taken out and loaded again,
 * rows and columns inserted and deleted, with an allocator that fails when it is told to. The grid must be what a plain
 * list of cells says, and count every byte.
 */
#include "grid/line_maps.h"

#include "fuzz.h"

#define FUZZ_CELLS 64

typedef struct FuzzCell
{
	uint32_t row, col, len;
	uint8_t letter, style; /* the content is the letter len times; style 0: none */
} FuzzCell;

typedef struct Fuzz
{
	const uint8_t *data, *end;
	FuzzCell cells[FUZZ_CELLS];
	size_t count;
	Grid *grid;
	uint32_t hand; /* of the eviction clock */
} Fuzz;

static size_t fuzz_taken;
static int fuzz_fails; /* so many allocations fail */

static void *
fuzz_alloc(void *ctx, size_t size)
{
	(void) ctx;
	if (fuzz_fails > 0)
	{
		fuzz_fails--;
		return NULL;
	}
	fuzz_taken += size;
	return malloc(size);
}

static void
fuzz_free(void *ctx, void *memory, size_t size)
{
	(void) ctx;
	fuzz_taken -= size;
	free(memory);
}

static const GridAllocator fuzz_allocator = {fuzz_alloc, fuzz_free, NULL, false};

static uint8_t
fuzz_byte(Fuzz *fuzz)
{
	return fuzz->data < fuzz->end ? *fuzz->data++ : 0;
}

static uint32_t
fuzz_row(Fuzz *fuzz)
{
	static const uint32_t rows[] = {0, 1, 63, 64, 65, 127, 128, 5000, 16777151, 16777152, 16777215};

	return rows[fuzz_byte(fuzz) % (sizeof(rows) / sizeof(rows[0]))];
}

static uint32_t
fuzz_col(Fuzz *fuzz)
{
	static const uint32_t cols[] = {0, 1, 15, 16, 17, 31, 32, 16367, 16368, 16383};

	return cols[fuzz_byte(fuzz) % (sizeof(cols) / sizeof(cols[0]))];
}

static GridRect
fuzz_rect(Fuzz *fuzz)
{
	uint32_t row = fuzz_row(fuzz), col = fuzz_col(fuzz), row1 = fuzz_row(fuzz), col1 = fuzz_col(fuzz);

	return (GridRect){row < row1 ? row : row1, col < col1 ? col : col1, row < row1 ? row1 : row,
					  col < col1 ? col1 : col};
}

static FuzzCell *
fuzz_find(Fuzz *fuzz, uint32_t row, uint32_t col)
{
	for (size_t i = 0; i < fuzz->count; i++)
		if (fuzz->cells[i].row == row && fuzz->cells[i].col == col)
			return &fuzz->cells[i];
	return NULL;
}

static void
fuzz_check_cell(const FuzzCell *expected, const GridCell *cell)
{
	if (cell->content_len != expected->len || cell->style_len != (expected->style > 0) ||
		(expected->style > 0 && (uint8_t) cell->style[0] != expected->style))
		abort();
	for (uint32_t i = 0; i < cell->content_len; i++)
		if ((uint8_t) cell->content[i] != expected->letter)
			abort();
}

/* Puts the cells of a tile into the grid, as from storage. */
static int
fuzz_load_tile(Fuzz *fuzz, Grid *part, GridTileNo tile)
{
	char content[256];

	for (size_t i = 0; i < fuzz->count; i++)
	{
		const FuzzCell *cell = &fuzz->cells[i];
		char style = (char) cell->style;
		uint32_t row = cell->row, col = cell->col;

		line_maps_locate(grid_maps(fuzz->grid), &row, &col);
		if (row / GRID_TILE_ROWS != tile.row || col / GRID_TILE_COLS != tile.col ||
			(cell->len == 0 && cell->style == 0))
			continue;
		memset(content, cell->letter, cell->len);
		if (!grid_put(&fuzz_allocator, part, row, col, content, cell->len, &style, cell->style > 0))
			return 0;
	}
	return 1;
}

static void
fuzz_load(Fuzz *fuzz, const GridRect *rect)
{
	GridTileNo missing[FUZZ_CELLS];
	uint32_t listed = grid_list_nonresident(fuzz->grid, grid_maps(fuzz->grid), rect, missing, FUZZ_CELLS);
	uint32_t count = listed < FUZZ_CELLS ? listed : FUZZ_CELLS;
	Grid *part = grid_create(&fuzz_allocator, 1, 1);
	int whole = part != NULL;

	for (uint32_t i = 0; whole && i < count; i++)
		whole = fuzz_load_tile(fuzz, part, missing[i]);
	if (whole)
	{
		grid_release(&fuzz_allocator, part);
		grid_merge(fuzz->grid, part, missing, count);
		if (listed == count && grid_list_nonresident(fuzz->grid, grid_maps(fuzz->grid), rect, NULL, 0) != 0)
			abort();
	}
	if (part != NULL)
		grid_free(&fuzz_allocator, part);
}

/* False when there is no room, or the tile is not here. */
static int
fuzz_put(Fuzz *fuzz, uint32_t row, uint32_t col, const char *content, uint32_t len, int style)
{
	uint32_t at_row = row, at_col = col;
	GridTile *tile;

	line_maps_locate(grid_maps(fuzz->grid), &at_row, &at_col);
	tile = grid_reserve(&fuzz_allocator, fuzz->grid, at_row, at_col, len, style > 0);
	if (tile == NULL)
		return 0;
	grid_tile_set(fuzz->grid, tile, at_row, at_col, content, len, style > 0 ? "S" : "", style > 0);
	grid_resize(fuzz->grid, row + 1, col + 1);
	return 1;
}

static void
fuzz_set(Fuzz *fuzz, int style)
{
	uint32_t row = fuzz_row(fuzz), col = fuzz_col(fuzz);
	FuzzCell *cell = fuzz_find(fuzz, row, col);
	char content[256];
	uint8_t len = fuzz_byte(fuzz);

	if (cell == NULL && fuzz->count == FUZZ_CELLS)
		return;
	memset(content, len, len);
	if (!fuzz_put(fuzz, row, col, content, len, style))
		return;
	if (cell == NULL)
		cell = &fuzz->cells[fuzz->count++];
	*cell = (FuzzCell){row, col, len, len, style > 0 ? 'S' : 0};
}

/* Empties what is deleted, and says whether the change is one that may be made. */
static int
fuzz_prepare_change(Fuzz *fuzz, LineChange *change)
{
	uint32_t limit = line_limit(change->rows);
	uint32_t extent = change->rows ? grid_rows(fuzz->grid) : grid_cols(fuzz->grid);

	if (!change->insert && change->at < extent && change->n > extent - change->at)
		change->n = extent - change->at;
	if (change->n > limit - change->at || (!change->insert && change->at >= extent))
		return 0;
	for (size_t i = 0; i < fuzz->count; i++)
	{
		FuzzCell *cell = &fuzz->cells[i];
		uint32_t line = change->rows ? cell->row : cell->col;
		int empty = cell->len == 0 && cell->style == 0;

		if (empty || (change->insert ? line < limit - change->n : line < change->at || line - change->at >= change->n))
			continue;
		if (change->insert || !fuzz_put(fuzz, cell->row, cell->col, "", 0, 0))
			return 0;
		cell->len = cell->style = 0;
	}
	return 1;
}

/* Inserts or deletes rows or columns. */
static void
fuzz_change(Fuzz *fuzz, bool rows, int insert)
{
	LineChange change = {rows, insert != 0, rows ? fuzz_row(fuzz) : fuzz_col(fuzz), 1 + fuzz_byte(fuzz) % 80};
	size_t kept = 0;

	if (!fuzz_prepare_change(fuzz, &change) || !grid_change_maps(&fuzz_allocator, fuzz->grid, &change))
		return;
	for (size_t i = 0; i < fuzz->count; i++)
	{
		FuzzCell cell = fuzz->cells[i];
		uint32_t *at = change.rows ? &cell.row : &cell.col;

		if (!change.insert && *at >= change.at && *at - change.at < change.n)
			continue;
		if (*at >= change.at)
			*at = change.insert ? *at + change.n : *at - change.n;
		if (*at < line_limit(change.rows))
			fuzz->cells[kept++] = cell;
	}
	fuzz->count = kept;
}

static void
fuzz_read(Fuzz *fuzz, const GridRect *rect)
{
	uint32_t expected = 0, found = 0;
	GridScan scan;
	GridCell cell;

	if (grid_list_nonresident(fuzz->grid, grid_maps(fuzz->grid), rect, NULL, 0) > 0)
		return;
	for (size_t i = 0; i < fuzz->count; i++)
	{
		const FuzzCell *one = &fuzz->cells[i];

		if (one->row < rect->row0 || one->row > rect->row1 || one->col < rect->col0 || one->col > rect->col1)
			continue;
		expected += one->len > 0 || one->style > 0;
		(void) grid_view_get(fuzz->grid, one->row, one->col, &cell);
		fuzz_check_cell(one, &cell);
	}
	grid_view_init(&scan, fuzz->grid, grid_maps(fuzz->grid), rect->row0, rect->col0, rect->row1, rect->col1);
	while (grid_scan_next(&scan, &cell))
	{
		const FuzzCell *one = fuzz_find(fuzz, cell.row, cell.col);

		if (one == NULL)
			abort();
		fuzz_check_cell(one, &cell);
		found++;
	}
	if (found != expected)
		abort();
	grid_touch(fuzz->grid, grid_maps(fuzz->grid), rect);
}

static void
fuzz_step(Fuzz *fuzz)
{
	static const GridRect all = {0, 0, 16777215, 16383};
	uint8_t op = fuzz_byte(fuzz);

	fuzz_fails = op & 7;
	switch (op >> 4)
	{
		case 1:
			fuzz_set(fuzz, op & 8);
			break;
		case 2: {
			GridRect rect = fuzz_rect(fuzz);

			fuzz_read(fuzz, op & 8 ? &all : &rect);
			break;
		}
		case 3:
		case 7:
			(void) grid_evict(&fuzz_allocator, fuzz->grid, &fuzz->hand, op & 8 ? SIZE_MAX : 1);
			break;
		case 4: {
			GridRect rect = fuzz_rect(fuzz);

			fuzz_load(fuzz, op & 8 ? &all : &rect);
			break;
		}
		case 5:
			fuzz_change(fuzz, true, op & 8);
			break;
		case 6:
			fuzz_change(fuzz, false, op & 8);
			break;
		default:
			grid_release(&fuzz_allocator, fuzz->grid);
			break;
	}
	fuzz_fails = 0;
	if (grid_bytes(fuzz->grid) != fuzz_taken)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const GridRect all = {0, 0, 16777215, 16383};
	Fuzz fuzz = {.data = data, .end = data + size};

	fuzz_taken = 0;
	fuzz.grid = grid_create(&fuzz_allocator, 1, 1);
	while (fuzz.data < fuzz.end)
		fuzz_step(&fuzz);
	fuzz_load(&fuzz, &all);
	fuzz_read(&fuzz, &all);
	grid_free(&fuzz_allocator, fuzz.grid);
	if (fuzz_taken != 0)
		abort();
	return 0;
}
