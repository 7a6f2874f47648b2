/*
 * tab_store.c - the books and names of sheets, and which sheets refer to others by name (docs/design/books.md).
 *
 * A sheet that has, or had, a formula with a sheet's name has a row of sheet.referring. It is inserted with the first
 * one, in the same transaction, and stays until the sheet is purged.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "journal/store/storage.h"
#include "journal/store/tab_store.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

int64
tab_store_book(int64 sheet_id)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	int64 book_id = 0;

	if (storage_scan_first(&scan, STORAGE_BOOK_TAB, snapshot, sheet_id, ForwardScanDirection))
		book_id = storage_int64(&scan, BOOK_TAB_BOOK_ID);
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return book_id;
}

char *
tab_store_name(int64 sheet_id)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	char *name = NULL;
	bool isnull;

	if (storage_scan_first(&scan, STORAGE_SHEET, snapshot, sheet_id, ForwardScanDirection))
		name = TextDatumGetCString(storage_value(&scan, "name", &isnull));
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return name;
}

static bool
tab_store_find_mark(int64 sheet_id, Snapshot snapshot)
{
	StorageScan scan;
	bool found = storage_scan_first(&scan, STORAGE_REFERRING, snapshot, sheet_id, ForwardScanDirection);

	storage_scan_end(&scan);
	return found;
}

bool
tab_store_refers(int64 sheet_id)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	bool found = tab_store_find_mark(sheet_id, snapshot);

	UnregisterSnapshot(snapshot);
	return found;
}

void
tab_store_mark(int64 sheet_id)
{
	Datum values[STORAGE_MAX_COLUMNS] = {[REFERRING_SHEET_ID - 1] = Int64GetDatum(sheet_id)};

	storage_insert(STORAGE_REFERRING, values, NULL);
}

static int
tab_store_compare(const void *a, const void *b)
{
	int64 x = *(const int64 *) a, y = *(const int64 *) b;

	return (x > y) - (x < y);
}

int64 *
tab_store_referring(int64 book_id, int *count)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	int64 *tabs = NULL;
	int room = 0;
	bool more = storage_scan_first(&scan, STORAGE_TAB_OF_BOOK, snapshot, book_id, ForwardScanDirection);

	*count = 0;
	for (; more; more = storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 sheet_id = storage_int64(&scan, BOOK_TAB_SHEET_ID);

		if (!tab_store_find_mark(sheet_id, snapshot))
			continue;
		if (*count == room)
		{
			room = Max(2 * room, 16);
			tabs = tabs == NULL ? palloc(sizeof(int64) * room) : repalloc(tabs, sizeof(int64) * room);
		}
		tabs[(*count)++] = sheet_id;
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	if (*count > 1)
		qsort(tabs, *count, sizeof(int64), tab_store_compare);
	return tabs;
}
