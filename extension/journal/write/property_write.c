/*
 * property_write.c - the properties of a sheet while edits are appended.
 *
 * A call reads the sheet's properties at its first property edit or structure edit, applies its edits to them in
 * memory, and stores them once, after its last batch. Batches of cells do not read them. A structure edit of a sheet
 * without properties costs two index lookups, one of them for the rectangles of share links (rect_store.c).
 */
#include "postgres.h"

#include "access/table.h"
#include "common/a1.h"
#include "journal/store/property_store.h"
#include "journal/store/rect_store.h"
#include "journal/store/storage.h"
#include "journal/write/property_write.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

struct AppendProperties
{
	MemoryContext context;
	Properties set;
	bool changed;
	SheetRects rects; /* those of share links move with rows and columns as properties do */
};

static AppendProperties *
property_write_set(const WriterSheet *ws, AppendProperties **read)
{
	MemoryContext context, old;
	AppendProperties *properties = *read;
	Snapshot snapshot;

	if (properties != NULL)
		return properties;
	context = AllocSetContextCreate(CurTransactionContext, "pg_sheet properties", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	properties = palloc0(sizeof(AppendProperties));
	properties->context = context;
	property_store_init(&properties->set);
	/* The lock of a writer, before reading: REINDEX blocks writers while it waits for readers. */
	table_close(storage_open(STORAGE_PROPERTY_SET, RowExclusiveLock), NoLock);
	table_close(storage_open(STORAGE_LINK_RECT, RowExclusiveLock), NoLock);
	snapshot = RegisterSnapshot(writer_snapshot());
	property_store_decode(ws->sheet_id, property_store_read(ws->sheet_id, snapshot), &properties->set);
	rect_store_read(ws->sheet_id, snapshot, &properties->rects);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	*read = properties;
	return properties;
}

static void
property_write_check_limits(const Properties *set, const Property *property, const Property *before)
{
	Size freed = before != NULL ? before->key.len + before->value.len : 0;

	if (property->value.len == 0)
		return;
	if (before == NULL && set->count >= PROPERTIES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a sheet has at most %d properties", PROPERTIES_MAX),
				 errhint("Set one property for adjacent rows or columns, or remove properties.")));
	if (set->bytes - freed + property->key.len + property->value.len > PROPERTIES_MAX_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the properties of a sheet have at most %d bytes", PROPERTIES_MAX_BYTES),
						errdetail("The keys and values of its %u properties have %zu bytes.", set->count, set->bytes),
						errhint("Remove properties that are not needed.")));
	if (before == NULL && property_merged_cells(property) > 0 &&
		set->merged + property_merged_cells(property) > PROPERTIES_MAX_MERGED)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the merges of a sheet have at most %d cells", PROPERTIES_MAX_MERGED),
						errhint("Remove merges that are not needed.")));
}

bool
property_write_look_up(AppendBatch *append, Edit *edit)
{
	const Properties *set = &property_write_set(append->ws, append->properties)->set;
	const Property *before;
	Property property;

	if (!property_of(edit, &property))
		elog(ERROR, "a property edit was not checked");
	before = properties_find(set, &property.target, property.key);
	edit->old = before != NULL ? before->value : (EditText){"", 0};
	if (edit->old.len == edit->content.len && memcmp(edit->old.data, edit->content.data, edit->old.len) == 0)
		return false;
	property_write_check_limits(set, &property, before);
	return true;
}

void
property_write_check_end(const WriterSheet *ws, AppendProperties **properties, const Edit *edit)
{
	const Properties *set = &property_write_set(ws, properties)->set;
	const Property *lost = properties_pushed_out(set, edit), *widened = properties_overgrown(set, edit);
	const Property *hinders = lost != NULL ? lost : widened;
	char name[A1_RANGE_MAX];

	if (hinders == NULL)
		return;
	a1_format_range(name,
					&(A1Range){hinders->target.row0, hinders->target.col0, hinders->target.row1, hinders->target.col1});
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("there is no room for more %s", edit_is_of_rows(edit->kind) ? "rows" : "columns"),
			 lost != NULL ? errdetail("The property \"%.*s\" of %s would be pushed beyond the end; a sheet has at most "
									  "%d rows and %d columns.",
									  (int) lost->key.len, lost->key.data, name, SHEET_MAX_ROWS, SHEET_MAX_COLS)
						  : errdetail("The merge %s would be widened; a merge has at most %d cells, all merges of a "
									  "sheet at most %d.",
									  name, PROPERTY_MAX_MERGE, PROPERTIES_MAX_MERGED),
			 errhint("Remove the property first.")));
}

void
property_write_apply(AppendBatch *append, const Edit *edit)
{
	AppendProperties *properties;

	int64 seq = append->ws->meta.last_seq + append->count;

	if (edit->kind != EDIT_PROPERTY && edit->kind != EDIT_ROLLBACK && !edit_is_structure(edit->kind))
		return;
	properties = property_write_set(append->ws, append->properties);
	if (edit->kind != EDIT_PROPERTY)
	{
		Snapshot snapshot = RegisterSnapshot(writer_snapshot());

		rect_store_apply(append->ws->sheet_id, &properties->rects, edit, seq, snapshot);
		UnregisterSnapshot(snapshot);
	}
	if (edit->kind == EDIT_PROPERTY)
		(void) properties_apply(&properties->set, edit, (uint64) seq);
	properties->changed |= edit->kind == EDIT_PROPERTY || properties_move(&properties->set, edit);
}

void
property_write_end(WriterSheet *ws, AppendProperties *properties)
{
	if (properties == NULL)
		return;
	if (rect_store_end(ws->sheet_id, &properties->rects))
		CommandCounterIncrement();
	if (properties->changed)
	{
		STOP_POINT("property-store");
		property_store_write(ws->sheet_id, &properties->set);
		CommandCounterIncrement();
		STOP_POINT("property-stored");
	}
	MemoryContextDelete(properties->context);
}
