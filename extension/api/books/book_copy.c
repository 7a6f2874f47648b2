/*
 * book_copy.c - a copy of a sheet: its cells, styles, properties and size, as edits of a new sheet. Neither the history
 * nor the values of formulas are copied: these are computed anew.
 */
#include "postgres.h"

#include "api/books/books.h"
#include "api/functions/functions.h"
#include "api/scan/cells.h"
#include "access/xact.h"
#include "journal/store/property_store.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define COPY_BATCH_BYTES (4 * 1024 * 1024)

typedef struct Copy
{
	int64 sheet_id;
	uint64 author;
	Edit *edits;
	uint32 count;
	Size bytes;
} Copy;

static void
copy_flush(Copy *copy)
{
	if (copy->count > 0)
		(void) journal_edit(copy->sheet_id, copy->edits, copy->count);
	copy->count = 0;
	copy->bytes = 0;
}

/* The texts of the edit are used until the next flush. */
static void
copy_add(Copy *copy, Edit edit)
{
	CHECK_FOR_INTERRUPTS();
	if (copy->count == SHEET_MAX_BATCH_EDITS || copy->bytes > COPY_BATCH_BYTES)
		copy_flush(copy);
	edit.uid = copy->author;
	copy->bytes += edit_size_bound(&edit);
	copy->edits[copy->count++] = edit;
}

static void
copy_cells(Copy *copy, const CellList *list)
{
	for (Size i = 0; i < list->count; i++)
	{
		const Cell *cell = &list->cells[i];
		Edit edit = {.kind = cell->content_len > 0 ? EDIT_SET : EDIT_STYLE, .row = cell->row, .col = cell->col};

		edit.content = cell->content_len > 0 ? (EditText){cell->content, cell->content_len} : (EditText){"", 0};
		if (cell->style_len > 0)
			edit.style = (EditText){cell->style, cell->style_len};
		copy_add(copy, edit);
	}
	copy_flush(copy);
}

static void
copy_properties(Copy *copy, const Properties *set)
{
	for (uint32 i = 0; i < set->count; i++)
		copy_add(copy, property_edit(properties_get(set, i), palloc(PROPERTY_TEXT_MAX)));
	copy_flush(copy);
}

int64
book_copy_sheet(int64 source, const char *name, int64 owner, int64 author)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "pg_sheet copy of a sheet", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	SheetMaking sheet = {.name = name, .owner = owner, .author = author};
	Copy copy = {.author = (uint64) author};
	Properties properties;
	CellList *list;

	/* Cells and properties are those that one snapshot sees. */
	PushActiveSnapshot(IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot());
	list = cells_read(source, NULL, false);
	property_store_init(&properties);
	property_store_decode(source, property_store_read(source, GetActiveSnapshot()), &properties);
	PopActiveSnapshot();
	if (list->view.rows == 0) /* purged since permission was checked */
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", source)));
	sheet.rows = (int32) list->view.rows;
	sheet.cols = (int32) list->view.cols;
	copy.sheet_id = sheets_make(&sheet);
	copy.edits = palloc(sizeof(Edit) * SHEET_MAX_BATCH_EDITS);
	copy_properties(&copy, &properties);
	copy_cells(&copy, list);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return copy.sheet_id;
}
