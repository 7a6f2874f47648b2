/*
 * rect_store.c - where the rectangles of share links are and were.
 *
 * A link to a rectangle has a row for each edit that has moved it. The newest one tells where it is, by a lookup that
 * costs the same however many there are. A rollback needs the others: it brings cells back to where they were.
 *
 * A rectangle must always denote the same cells: whoever has the link would see others'. So it moves in the transaction
 * that moves its cells (property_write.c). Where that is not possible, it is lost, and the link opens nothing: all of
 * its cells were deleted, or a rollback goes to a version that is older than the link. A sheet without such links costs
 * a structure edit one index lookup.
 *
 * A revoked link does not move, and costs edits nothing: sheet.link has an index of the others. api/functions/links.c
 * deletes its rows, some at a time.
 */
#include "postgres.h"

#include "journal/store/history.h"
#include "journal/store/rect_store.h"
#include "journal/store/storage.h"

bool
rect_store_find(int64 sheet_id, int64 link_id, int64 until, Snapshot snapshot, LinkRect *rect)
{
	StorageKey keys[] = {storage_key_int64(LINK_RECT_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						 storage_key_int64(LINK_RECT_LINK_ID, BTEqualStrategyNumber, link_id),
						 storage_key_int64(LINK_RECT_SEQ, BTLessEqualStrategyNumber, until)};
	StorageScan scan;
	bool found;

	storage_scan_begin(&scan, STORAGE_LINK_RECT, snapshot, keys, lengthof(keys));
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
		*rect = (LinkRect){.link_id = storage_int64(&scan, LINK_RECT_LINK_ID),
						   .seq = storage_int64(&scan, LINK_RECT_SEQ),
						   .row0 = (uint32) storage_int64(&scan, LINK_RECT_ROW0),
						   .col0 = (uint32) storage_int64(&scan, LINK_RECT_COL0),
						   .row1 = (uint32) storage_int64(&scan, LINK_RECT_ROW1),
						   .col1 = (uint32) storage_int64(&scan, LINK_RECT_COL1),
						   .lost = storage_int64(&scan, LINK_RECT_ROW0) < 0};
	storage_scan_end(&scan);
	return found;
}

void
rect_store_insert(int64 sheet_id, const LinkRect *rect)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[LINK_RECT_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[LINK_RECT_LINK_ID - 1] = Int64GetDatum(rect->link_id),
		[LINK_RECT_SEQ - 1] = Int64GetDatum(rect->seq),
		[LINK_RECT_ROW0 - 1] = Int64GetDatum(rect->lost ? -1 : (int64) rect->row0),
		[LINK_RECT_COL0 - 1] = Int64GetDatum(rect->col0),
		[LINK_RECT_ROW1 - 1] = Int64GetDatum(rect->row1),
		[LINK_RECT_COL1 - 1] = Int64GetDatum(rect->col1),
	};

	storage_insert(STORAGE_LINK_RECT, values, NULL);
}

/* ---- while edits are appended ---- */

#define RECT_ROOM 8

void
rect_store_read(int64 sheet_id, Snapshot snapshot, SheetRects *rects)
{
	StorageKey key = storage_key_int64(1, BTEqualStrategyNumber, sheet_id);
	StorageScan scan;
	LinkRect rect;

	*rects = (SheetRects){NULL};
	storage_scan_begin(&scan, STORAGE_LINK_OF_RECTANGLE, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		if (!rect_store_find(sheet_id, storage_int64(&scan, 1), PG_INT64_MAX, snapshot, &rect))
			continue;
		if (rects->rects == NULL)
		{
			rects->room = RECT_ROOM;
			rects->rects = palloc(sizeof(LinkRect) * rects->room);
		}
		else if (rects->count == rects->room)
		{
			rects->room *= 2;
			rects->rects = repalloc_huge(rects->rects, sizeof(LinkRect) * rects->room);
		}
		rects->rects[rects->count++] = rect;
	}
	storage_scan_end(&scan);
	rects->moved = palloc0(Max(rects->count, 1));
}

static bool
rect_store_move(LinkRect *rect, const Edit *edit)
{
	LineChange change;
	LinkRect before = *rect;

	if (rect->lost || !line_change_of(edit, &change))
		return false;
	rect->lost =
		!extent_move(&change, change.rows ? &rect->row0 : &rect->col0, change.rows ? &rect->row1 : &rect->col1);
	return rect->lost || rect->row0 != before.row0 || rect->row1 != before.row1 || rect->col0 != before.col0 ||
		   rect->col1 != before.col1;
}

/* The cells are where they were at the version, so the rectangle is there too. */
static void
rect_store_restore(int64 sheet_id, LinkRect *rect, const HistoryVersion *version, Snapshot snapshot)
{
	LinkRect then;

	if (rect_store_find(sheet_id, rect->link_id, version->seq, snapshot, &then))
		*rect = then;
	else
		rect->lost = true;
}

void
rect_store_apply(int64 sheet_id, SheetRects *rects, const Edit *edit, int64 seq, Snapshot snapshot)
{
	HistoryVersion version;
	bool known = false;

	if (rects->count > 0 && edit->kind == EDIT_ROLLBACK)
		known = history_find_version(sheet_id, edit->row, snapshot, &version) && version.version_id == edit->row;
	for (Size i = 0; i < rects->count; i++)
	{
		LinkRect *rect = &rects->rects[i];

		if (edit->kind != EDIT_ROLLBACK && !rect_store_move(rect, edit))
			continue;
		if (known)
			rect_store_restore(sheet_id, rect, &version, snapshot);
		else if (edit->kind == EDIT_ROLLBACK)
			rect->lost = true;
		rect->seq = seq;
		rects->moved[i] = true;
	}
}

bool
rect_store_end(int64 sheet_id, const SheetRects *rects)
{
	bool any = false;

	for (Size i = 0; i < rects->count; i++)
	{
		if (!rects->moved[i])
			continue;
		rect_store_insert(sheet_id, &rects->rects[i]);
		any = true;
	}
	return any;
}
