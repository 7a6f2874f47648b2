/*
 * rollback_edits.c - the edits of a rollback: those that turn the present sheet into a version.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_version.h"
#include "journal/store/property_store.h"
#include "journal/version/rollback_edits.h"
#include "journal/write/edit_life.h"
#include "utils/snapmgr.h"

typedef struct RollbackEdits
{
	Edit *edits;
	Size count, room;
	uint64 uid;
} RollbackEdits;

static void
rollback_add(RollbackEdits *list, EditKind kind, uint32 row, uint32 col, EditText content, EditText style)
{
	if (list->count == list->room)
	{
		list->room = Max(list->room * 2, 1024);
		list->edits = list->edits == NULL ? palloc(sizeof(Edit) * list->room)
										  : repalloc_huge(list->edits, sizeof(Edit) * list->room);
	}
	list->edits[list->count++] =
		(Edit){.kind = kind, .uid = list->uid, .row = row, .col = col, .content = content, .style = style};
}

static bool
rollback_same(const char *a, uint32 a_len, const char *b, uint32 b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* Lists the edits that turn the present cells into the version's. Their texts are the version's. */
static void
rollback_compare(const Grid *version, const Grid *present, RollbackEdits *list)
{
	GridScan scan;
	GridCell then, now;
	const EditText empty = {"", 0};

	grid_view_init(&scan, version, grid_maps(version), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &then))
	{
		EditText content = {then.content, then.content_len}, style = {then.style, then.style_len};
		bool found = grid_view_get(present, then.row, then.col, &now);
		bool same_content =
			found ? rollback_same(content.data, content.len, now.content, now.content_len) : content.len == 0;

		if (!same_content)
			rollback_add(list, EDIT_SET, then.row, then.col, content, style);
		else if (!found || !rollback_same(style.data, style.len, now.style, now.style_len))
			rollback_add(list, EDIT_STYLE, then.row, then.col, empty, style);
	}
	grid_view_init(&scan, present, grid_maps(present), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &now))
		if (!grid_view_get(version, now.row, now.col, &then))
			rollback_add(list, EDIT_SET, now.row, now.col, empty, empty);
}

static void
rollback_add_property(RollbackEdits *list, const Property *property, EditText value)
{
	Property edited = *property;
	Edit edit;

	edited.value = value;
	edit = property_edit(&edited, palloc(PROPERTY_TEXT_MAX));
	rollback_add(list, EDIT_PROPERTY, edit.row, edit.col, edit.content, edit.style);
}

/* Lists the edits that turn the present properties into the version's: first those that remove or shorten a value, so
 * that the limits of properties are kept. The edits refer to the sets, which live in the current memory context. */
static void
rollback_compare_properties(int64 sheet_id, int64 version_id, Snapshot snapshot, RollbackEdits *list)
{
	Properties then, now;

	property_store_init(&then);
	property_store_init(&now);
	property_store_decode(sheet_id, property_store_read_version(sheet_id, version_id, snapshot), &then);
	property_store_decode(sheet_id, property_store_read(sheet_id, snapshot), &now);
	for (uint32 i = 0; i < now.count; i++)
	{
		const Property *property = properties_get(&now, i);

		if (properties_find(&then, &property->target, property->key) == NULL)
			rollback_add_property(list, property, (EditText){"", 0});
	}
	for (uint32 i = 0; i < 2 * then.count; i++)
	{
		const Property *property = properties_get(&then, i % then.count);
		const Property *present = properties_find(&now, &property->target, property->key);
		bool longer = present == NULL || property->value.len > present->value.len;

		if (longer == (i >= then.count)) /* an edit that sets the present value changes nothing */
			rollback_add_property(list, property, property->value);
	}
}

/* Appends the edits in batches within the limits of any batch. */
static void
rollback_append(WriterSheet *ws, RollbackEdits *list, int64 epoch)
{
	Size done = 0;

	while (done < list->count)
	{
		AppendCall call = {.edits = list->edits + done, .epoch = epoch};
		AppendResult result;
		Size bytes = 0;

		while (done < list->count && call.nedits < SHEET_MAX_BATCH_EDITS && bytes < SHEET_MAX_BATCH_BYTES / 2)
		{
			bytes += edit_size_bound(&list->edits[done++]);
			call.nedits++;
		}
		edit_life_append(ws, &call, &result);
	}
}

void
rollback_edits(WriterSheet *ws, const HistoryVersion *version, const Grid *present, uint64 uid, int64 epoch)
{
	/* The version's grid lives as long as the transaction, since the staged edits point into it. */
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	RollbackEdits list = {.uid = uid};
	Grid *grid = NULL;

	if (!replay_version(ws->sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	rollback_add(&list, EDIT_ROLLBACK, (uint32) version->version_id, 0, (EditText){"", 0}, (EditText){NULL, 0});
	/* Rows and columns may have been deleted since. The resize changes nothing in a sheet that has as many. */
	rollback_add(&list, EDIT_RESIZE, grid_rows(grid) - 1, grid_cols(grid) - 1, (EditText){"", 0}, (EditText){NULL, 0});
	rollback_compare_properties(ws->sheet_id, version->version_id, snapshot, &list);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	rollback_compare(grid, present, &list);
	rollback_append(ws, &list, epoch);
}
