/* cells.c - references, lists of cells that are read from the journal, and edits of cells. */
#include "api/scan/cells.h"

#include "common/short_copy.h"
#include "grid/line_maps.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* ---- reading ---- */

#define CELLS_ROOM_MIN	8 /* cells */
#define CELLS_BLOCK_MIN 256
#define CELLS_BLOCK_MAX (1024 * 1024)

/* Room for texts, in blocks that grow with the list. */
static char *
cells_room(CellList *list, Size bytes)
{
	if (bytes > list->end - list->free)
	{
		Size size = Max(list->block, bytes);

		list->free = MemoryContextAllocHuge(list->context, size);
		list->end = list->free + size;
		list->block = Min(list->block * 2, CELLS_BLOCK_MAX);
	}
	return list->free;
}

/* Behind a short header if possible. */
char *
cells_put_text(CellList *list, const char *bytes, uint32 len)
{
	char *at = cells_room(list, (Size) len + VARHDRSZ + sizeof(int32));
	char *text;

	if (len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(at, len + VARHDRSZ_SHORT);
		text = at + VARHDRSZ_SHORT;
	}
	else
	{
		at = (char *) INTALIGN(at);
		SET_VARSIZE(at, len + VARHDRSZ);
		text = at + VARHDRSZ;
	}
	short_copy(text, bytes, len);
	list->free = text + len;
	return text;
}

static void
cells_grow(CellList *list)
{
	list->room = list->cells == NULL ? CELLS_ROOM_MIN : list->room * 2;
	list->cells = list->cells == NULL ? MemoryContextAllocHuge(list->context, list->room * sizeof(Cell))
									  : repalloc_huge(list->cells, list->room * sizeof(Cell));
}

static void
cells_add(CellList *list, const GridCell *cell)
{
	Cell *copy;

	if (list->count == list->room)
		cells_grow(list);
	copy = &list->cells[list->count];
	copy->row = cell->row;
	copy->col = cell->col;
	copy->content_len = copy->style_len = 0;
	list->count++;
	if (list->no_texts)
		return;
	copy->content_len = cell->content_len;
	copy->content = cells_put_text(list, cell->content, cell->content_len);
	copy->style_len = cell->style_len;
	copy->style = cell->style_len > 0 ? cells_put_text(list, cell->style, cell->style_len) : NULL;
}

/* Restarts the list. The room of its texts is not reused: only reads of few cells are restarted. */
static void
cells_begin(void *arg)
{
	((CellList *) arg)->count = 0;
}

static void
cells_collect(void *arg, const GridCell *cells, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
		cells_add(arg, &cells[i]);
}

CellList *
cells_make_list(void)
{
	CellList *list = palloc0(sizeof(CellList));

	list->context = CurrentMemoryContext;
	list->block = CELLS_BLOCK_MIN;
	return list;
}

/* An allocation may fail while the cache entry's lock is held in shared mode. That is safe: the error releases the
 * lock, and readers change nothing. */
CellList *
cells_read(int64 sheet_id, const uint32 rect[4], bool fresh)
{
	CellList *list = cells_make_list();

	journal_read(sheet_id, rect, fresh, &list->view, &(JournalSink){cells_begin, cells_collect, list});
	return list;
}

static void
cells_take_maps(void *arg, const LineMaps *maps)
{
	CellList *list = arg;
	GridAllocator allocator = journal_context_allocator();

	list->maps = NULL;
	if (maps != NULL)
		(void) line_maps_copy(&allocator, maps, &list->maps);
}

CellList *
cells_read_values(int64 sheet_id, const uint32 rect[4], bool fresh)
{
	static const uint32 all[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	CellList *list = cells_make_list();
	JournalSink sink = {cells_begin, cells_collect, list, cells_take_maps};

	journal_read(sheet_id, rect, fresh, &list->view, &sink);
	cells_add_values(list, sheet_id, rect != NULL ? rect : all, fresh);
	return list;
}

LineMaps *
cells_read_maps(int64 sheet_id, JournalView *view)
{
	CellList *list = cells_make_list();
	JournalSink sink = {cells_begin, cells_collect, list, cells_take_maps};

	journal_read(sheet_id, (uint32[4]){1, 1, 0, 0}, true, view, &sink);
	return list->maps;
}

CellList *
cells_read_rect(int64 sheet_id, const uint32 rect[4], bool texts)
{
	CellList *list = cells_make_list();

	list->no_texts = !texts;
	journal_read(sheet_id, rect, false, &list->view, &(JournalSink){cells_begin, cells_collect, list});
	return list;
}

static void
cells_add_grid(CellList *list, const Grid *grid, const uint32 rect[4])
{
	GridScan scan;
	GridCell cell;

	if (rect != NULL)
		grid_view_init(&scan, grid, grid_maps(grid), rect[0], rect[1], rect[2], rect[3]);
	else
		grid_view_init(&scan, grid, grid_maps(grid), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &cell))
		cells_add(list, &cell);
}

CellList *
cells_read_version(int64 sheet_id, int64 version_id, const uint32 rect[4])
{
	CellList *list = cells_make_list();

	cells_add_grid(list, journal_read_version(sheet_id, version_id, true, &list->view), rect);
	return list;
}

CellList *
cells_read_past(int64 sheet_id, TimestampTz at, const uint32 rect[4])
{
	CellList *list = cells_make_list();

	cells_add_grid(list, journal_read_past(sheet_id, at, &list->view), rect);
	return list;
}

/* ---- the row behind the contents ---- */

#define CELLS_WINDOW_MIN 64 /* rows that are searched for the last content at once */
#define CELLS_WINDOW_MAX 16384

static void
cells_window_begin(void *arg)
{
	*(int64 *) arg = -1;
}

static void
cells_window_cells(void *arg, const GridCell *cells, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		if (cells[i].content_len > 0)
			*(int64 *) arg = cells[i].row;
	}
}

/* Searches from the end in windows that grow: where there are no cells, a window costs the same for any number of
 * rows. */
uint32
cells_next_row(int64 sheet_id, bool fresh)
{
	uint32 window = CELLS_WINDOW_MIN, to;
	JournalView view;
	int64 last = -1;
	JournalSink sink = {cells_window_begin, cells_window_cells, &last};

	journal_read(sheet_id, (uint32[4]){0, 0, 0, 0}, fresh, &view, NULL);
	for (to = view.rows; to > 0 && last < 0; window = Min(window * 4, CELLS_WINDOW_MAX))
	{
		uint32 from = to > window ? to - window : 0;

		CHECK_FOR_INTERRUPTS();
		journal_read(sheet_id, (uint32[4]){from, 0, to - 1, SHEET_MAX_COLS - 1}, fresh, &view, &sink);
		to = from;
	}
	return (uint32) (last + 1);
}

/* ---- references ---- */

static void
cells_bad_ref(const char *ref, const char *expected)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not %s", ref, expected),
					errhint("Columns are A to XFD, rows 1 to %d.", SHEET_MAX_ROWS)));
}

void
cells_parse_ref(const char *ref, uint32 *row, uint32 *col)
{
	if (!a1_parse_cell(ref, strlen(ref), row, col))
		cells_bad_ref(ref, "a cell such as B7");
}

void
cells_parse_range(Datum ref, uint32 rect[4])
{
	text *name = DatumGetTextPP(ref);
	A1Range range;

	if (!a1_parse_range(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &range))
		cells_bad_ref(text_to_cstring(name), "a range such as B7, A1:C10, B:D or 3:5");
	rect[0] = range.row0;
	rect[1] = range.col0;
	rect[2] = range.row1;
	rect[3] = range.col1;
}

bool
cells_arg_range(FunctionCallInfo fcinfo, int arg, uint32 rect[4])
{
	if (PG_ARGISNULL(arg))
		return false;
	cells_parse_range(PG_GETARG_DATUM(arg), rect);
	return true;
}

Datum
cells_a1(uint32 row, uint32 col)
{
	char name[A1_MAX];

	a1_format_cell(name, row, col);
	return CStringGetTextDatum(name);
}

void
cells_check_place(int64 row, int64 col)
{
	if (row < 0 || col < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("rows and columns start at 0")));
	if (row >= SHEET_MAX_ROWS || col >= SHEET_MAX_COLS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("row " INT64_FORMAT ", column " INT64_FORMAT " lies outside of sheets", row, col),
						errdetail("A sheet has at most %d rows and %d columns.", SHEET_MAX_ROWS, SHEET_MAX_COLS)));
}

/* ---- writing ---- */

Edit
cells_edit(uint64 uid, uint32 row, uint32 col, const char *content, Size len)
{
	if (len > SHEET_MAX_CONTENT_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the content of a cell is too long (row %u, column %u)", row, col),
						errdetail("A cell holds at most %d characters.", SHEET_MAX_CHARS)));
	return (Edit){.kind = EDIT_SET, .uid = uid, .row = row, .col = col, .content = {content, (uint32) len}};
}
