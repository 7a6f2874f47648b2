/*
 * property_store.c - the stored properties of a sheet.
 *
 * A sheet that has properties has one row of sheet.property_set with all of them, which follow from its log. The
 * transaction that appends property edits or structure edits replaces the row, so visibility, rollback, crash recovery
 * and standbys treat properties as any row. A version has a copy in its own row.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "journal/store/history.h"
#include "journal/store/property_store.h"
#include "journal/store/storage.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* ---- memory ---- */

static void *
property_store_resize(void *context, void *ptr, size_t size)
{
	if (ptr == NULL)
		return MemoryContextAlloc(context, size);
	if (size > 0)
		return repalloc(ptr, size);
	pfree(ptr);
	return NULL;
}

void
property_store_init(Properties *set)
{
	properties_init(set, property_store_resize, CurrentMemoryContext);
}

/* ---- bytes ---- */

bytea *
property_store_encode(const Properties *set)
{
	bytea *bytes;

	if (set->count == 0)
		return NULL;
	bytes = palloc(VARHDRSZ + properties_encode_bound(set));
	SET_VARSIZE(bytes, VARHDRSZ + properties_encode(set, (uint8_t *) VARDATA(bytes)));
	return bytes;
}

bool
property_store_try_decode(const bytea *bytes, Properties *set)
{
	return bytes == NULL || properties_decode(set, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

void
property_store_decode(int64 sheet_id, const bytea *bytes, Properties *set)
{
	if (!property_store_try_decode(bytes, set))
		history_corrupted(sheet_id, "the properties, number", (int64) set->count + 1, EDIT_BAD_NUMBER);
}

uint64
property_store_digest(const bytea *bytes)
{
	return bytes == NULL ? 0 : properties_digest(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

bool
property_store_equal(const bytea *a, const bytea *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		   memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

/* ---- rows ---- */

/* A copy of the column of the current row; NULL if it is null. */
static bytea *
property_store_copy(StorageScan *scan, int column)
{
	bool isnull;
	Datum datum = slot_getattr(scan->slot, column, &isnull);

	return isnull ? NULL : (bytea *) PG_DETOAST_DATUM_COPY(datum);
}

bytea *
property_store_read(int64 sheet_id, Snapshot snapshot)
{
	StorageScan scan;
	bytea *bytes = NULL;

	if (storage_scan_first(&scan, STORAGE_PROPERTY_SET, snapshot, sheet_id, ForwardScanDirection))
		bytes = property_store_copy(&scan, PROPERTY_SET_DATA);
	storage_scan_end(&scan);
	return bytes;
}

bytea *
property_store_read_version(int64 sheet_id, int64 version_id, Snapshot snapshot)
{
	StorageKey keys[] = {storage_key_int64(VERSION_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						 storage_key_int64(VERSION_VERSION_ID, BTEqualStrategyNumber, version_id)};
	StorageScan scan;
	bytea *bytes = NULL;

	storage_scan_begin(&scan, STORAGE_VERSION, snapshot, keys, 2);
	if (storage_scan_next(&scan, ForwardScanDirection))
		bytes = property_store_copy(&scan, VERSION_PROPERTIES);
	storage_scan_end(&scan);
	return bytes;
}

void
property_store_write(int64 sheet_id, const Properties *set)
{
	bytea *bytes = property_store_encode(set);
	Datum values[STORAGE_MAX_COLUMNS] = {
		[PROPERTY_SET_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[PROPERTY_SET_DATA - 1] = PointerGetDatum(bytes),
	};
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	ItemPointerData tid;
	StorageScan scan;
	bool found = storage_scan_first(&scan, STORAGE_PROPERTY_SET, snapshot, sheet_id, ForwardScanDirection);

	if (found)
		tid = scan.slot->tts_tid;
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	if (bytes == NULL)
		(void) storage_delete_rows(STORAGE_PROPERTY_SET, sheet_id, NULL, NULL);
	else if (found)
		storage_update(STORAGE_PROPERTY_SET, &tid, values, NULL);
	else
		storage_insert(STORAGE_PROPERTY_SET, values, NULL);
	if (bytes != NULL)
		pfree(bytes);
}
