/*
 * cell_values.c - the values of formulas in a list of cells.
 *
 * A value belongs to a cell as long as the cell has a formula, whichever that is: what was computed last stays until
 * something newer is. The list tells whether that is the state that it shows (cells_is_stale). A value that an array
 * has put into a cell counts while the cell is empty.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "utils/memutils.h"

#define CELL_VALUES_MIN 64

/* A cell that has nothing but a value, which an array has put there. */
typedef struct FilledCell
{
	uint32 row, col;
	CellValue value;
} FilledCell;

typedef struct ValuesTaken
{
	CellList *list;
	Size next; /* the cell behind the last one that was found: mostly the next one wanted */
	FilledCell *filled;
	Size count, room;
} ValuesTaken;

static bool
cell_values_is_formula(const Cell *cell)
{
	return cell->content_len > 1 && cell->content[0] == '=';
}

static int
cell_values_compare_places(uint32 row, uint32 col, uint32 other_row, uint32 other_col)
{
	if (row != other_row)
		return row < other_row ? -1 : 1;
	return col < other_col ? -1 : col > other_col;
}

/* ---- values of cells in the list ---- */

/* The first cell that is not before the place. */
static Size
cell_values_find(const ValuesTaken *taken, uint32 row, uint32 col)
{
	const Cell *cells = taken->list->cells;
	Size low = 0, high = taken->list->count;

	if (taken->next < high && cells[taken->next].row == row && cells[taken->next].col == col)
		return taken->next;
	while (low < high)
	{
		Size middle = low + (high - low) / 2;

		if (cell_values_compare_places(cells[middle].row, cells[middle].col, row, col) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
cell_values_keep_filled(ValuesTaken *taken, uint32 row, uint32 col, CellValue value)
{
	if (taken->count == taken->room)
	{
		taken->room = Max(taken->room * 2, CELL_VALUES_MIN);
		taken->filled = taken->filled == NULL
							? MemoryContextAllocHuge(taken->list->context, taken->room * sizeof(FilledCell))
							: repalloc_huge(taken->filled, taken->room * sizeof(FilledCell));
	}
	taken->filled[taken->count++] = (FilledCell){row, col, value};
}

/* No cell has a value yet. */
static void
cell_values_make_room(CellList *list)
{
	Size size = Max(list->count, 1) * sizeof(CellValue);

	if (list->values != NULL)
		return;
	list->values = MemoryContextAllocHuge(list->context, size);
	memset(list->values, 0, size);
}

static void
cell_values_take(void *arg, uint32 row, uint32 col, const ValueEntry *entry)
{
	ValuesTaken *taken = arg;
	CellList *list = taken->list;
	Size at = cell_values_find(taken, row, col);
	bool found = at < list->count && list->cells[at].row == row && list->cells[at].col == col;
	CellValue value = {NULL, entry->len};

	if (found ? entry->filled != (list->cells[at].content_len == 0) ||
					(!entry->filled && !cell_values_is_formula(&list->cells[at]))
			  : !entry->filled)
		return;
	value.text = cells_put_text(list, entry->text, entry->len);
	if (!found)
	{
		cell_values_keep_filled(taken, row, col, value);
		return;
	}
	cell_values_make_room(list);
	list->values[at] = value;
	taken->next = at + 1;
}

/* ---- cells that are not in the list ---- */

static int
cell_values_compare(const void *a, const void *b)
{
	const FilledCell *left = a, *right = b;

	return cell_values_compare_places(left->row, left->col, right->row, right->col);
}

/* Merges them into the list; both are in reading order. */
static void
cell_values_add_filled(CellList *list, const FilledCell *filled, Size filled_count)
{
	Size count = list->count + filled_count, i = 0, j = 0;
	Cell *cells = MemoryContextAllocHuge(list->context, count * sizeof(Cell));
	CellValue *values = MemoryContextAllocHuge(list->context, count * sizeof(CellValue));

	for (Size to = 0; to < count; to++)
	{
		if (j == filled_count || (i < list->count && cell_values_compare_places(list->cells[i].row, list->cells[i].col,
																				filled[j].row, filled[j].col) < 0))
		{
			cells[to] = list->cells[i];
			values[to] = list->values[i++];
			continue;
		}
		cells[to] = (Cell){.row = filled[j].row, .col = filled[j].col, .content = cells_put_text(list, "", 0)};
		values[to] = filled[j++].value;
	}
	list->cells = cells;
	list->values = values;
	list->count = list->room = count;
}

void
cells_add_values(CellList *list, int64 sheet_id, const uint32 rect[4], bool fresh)
{
	ValuesTaken taken = {.list = list};

	if (!journal_read_values(sheet_id, rect, list->maps, fresh, &list->computed, cell_values_take, &taken))
		return;
	cell_values_make_room(list);
	if (taken.count > 1)
		qsort(taken.filled, taken.count, sizeof(FilledCell), cell_values_compare);
	if (taken.count > 0)
		cell_values_add_filled(list, taken.filled, taken.count);
}

/* ---- what a cell shows ---- */

/* Whether a value is an error such as #DIV/0! or #N/A. A text that looks like one is stored with an apostrophe. */
static bool
cell_values_is_error(const CellValue *value)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_";

	if (value->len < 3 || value->text[0] != '#')
		return false;
	for (uint32 i = 1; i < value->len - 1; i++)
		if (strchr(letters, value->text[i]) == NULL || value->text[i] == '\0')
			return false;
	return strchr("!?", value->text[value->len - 1]) != NULL ||
		   (value->len == 4 && memcmp(value->text, "#N/A", 4) == 0);
}

CellShown
cells_value_content(const CellList *list, Size i)
{
	const Cell *cell = &list->cells[i];
	const CellValue *value = list->values != NULL ? &list->values[i] : NULL;

	if (value != NULL && value->text != NULL)
	{
		bool empty = value->len == 1 && value->text[0] == '\'';

		return (CellShown){value->text, empty ? 0 : value->len, cell_values_is_error(value)};
	}
	if (list->values != NULL && cell_values_is_formula(cell))
		return (CellShown){CELLS_BUSY, strlen(CELLS_BUSY), true};
	return (CellShown){cell->content, cell->content_len, false};
}

CellShown
cells_shown(const CellList *list, Size i)
{
	CellShown shown = cells_value_content(list, i);

	if (shown.len > 0 && shown.text[0] == '\'')
	{
		shown.text++;
		shown.len--;
	}
	return shown;
}

bool
cells_is_stale(const CellList *list, Size i)
{
	const Cell *cell = &list->cells[i];

	if (list->values == NULL || (list->values[i].text == NULL && !cell_values_is_formula(cell)))
		return false;
	return list->values[i].text == NULL || list->computed < list->view.seq;
}
