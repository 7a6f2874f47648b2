/*
 * storage_scan.c - scans of the journal's relations, and the columns of the current row.
 *
 * A scan goes over the table's primary key. log_batch has none: there it goes over the directory, and the conditions
 * become bounds of first_seq.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "cache/cache.h"
#include "compat.h"
#include "executor/executor.h"
#include "journal/store/storage.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static RegProcedure
storage_key_procedure(int strategy, bool is_int4)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return is_int4 ? F_INT4LT : F_INT8LT;
		case BTLessEqualStrategyNumber:
			return is_int4 ? F_INT4LE : F_INT8LE;
		case BTEqualStrategyNumber:
			return is_int4 ? F_INT4EQ : F_INT8EQ;
		case BTGreaterEqualStrategyNumber:
			return is_int4 ? F_INT4GE : F_INT8GE;
		default:
			return is_int4 ? F_INT4GT : F_INT8GT;
	}
}

static void
storage_key_init(ScanKey to, StorageTable table, const StorageKey *key)
{
	if (table == STORAGE_ACCOUNT_OF_ROLE)
		ScanKeyInit(to, key->column, key->strategy, F_NAMEEQ, CStringGetDatum(key->name));
	else
		ScanKeyInit(to, key->column, key->strategy, storage_key_procedure(key->strategy, key->is_int4),
					key->is_int4 ? Int32GetDatum((int32) key->value) : Int64GetDatum(key->value));
}

/* Converts the conditions on sheet_id and first_seq to bounds. */
static void
storage_scan_bounds(StorageScan *scan, const StorageKey *keys, int nkeys)
{
	scan->least = PG_INT64_MIN;
	scan->most = PG_INT64_MAX;
	for (int i = 0; i < nkeys; i++)
	{
		const StorageKey *key = &keys[i];

		if (key->column == LOG_BATCH_SHEET_ID)
		{
			scan->key = key->value;
			continue;
		}
		if (key->strategy >= BTEqualStrategyNumber)
			scan->least = key->value + (key->strategy == BTGreaterStrategyNumber);
		if (key->strategy <= BTEqualStrategyNumber)
			scan->most = key->value - (key->strategy == BTLessStrategyNumber);
	}
}

/* The next row of log_batch within the bounds. */
static bool
storage_scan_directory(StorageScan *scan, ScanDirection direction)
{
	bool backward = ScanDirectionIsBackward(direction);

	if (!scan->opened)
		am_lookup_begin(&scan->lookup, scan->rel, scan->index, scan->snapshot, scan->key,
						backward ? scan->most : scan->least, direction);
	scan->opened = true;
	while (am_lookup_next(&scan->lookup, scan->slot))
	{
		int64 position = storage_int64(scan, LOG_BATCH_FIRST_SEQ);

		if (backward ? position < scan->least : position > scan->most)
			return false;
		if (position >= scan->least && position <= scan->most)
			return true;
	}
	return false;
}

static void
storage_scan_open(StorageScan *scan, StorageTable table, Snapshot snapshot)
{
	scan->rel = storage_open(table, AccessShareLock);
	scan->index = storage_open_index(table);
	scan->slot = table_slot_create(scan->rel, NULL);
	scan->scan = NULL;
	scan->opened = false;
	scan->snapshot = snapshot;
}

void
storage_scan_begin(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys, int nkeys)
{
	ScanKeyData scankeys[4];

	Assert(nkeys <= 4);
	storage_scan_open(scan, table, snapshot);
	if (table == STORAGE_LOG_BATCH)
	{
		storage_scan_bounds(scan, keys, nkeys);
		return;
	}
	for (int i = 0; i < nkeys; i++)
		storage_key_init(&scankeys[i], table, &keys[i]);
	scan->scan = compat_index_beginscan(scan->rel, scan->index, snapshot, nkeys);
	index_rescan(scan->scan, scankeys, nkeys, NULL, 0);
}

bool
storage_scan_next(StorageScan *scan, ScanDirection direction)
{
	CHECK_FOR_INTERRUPTS();
	if (scan->scan == NULL)
		return storage_scan_directory(scan, direction);
	return index_getnext_slot(scan->scan, direction, scan->slot);
}

void
storage_scan_end(StorageScan *scan)
{
	if (scan->scan != NULL)
		index_endscan(scan->scan);
	else if (scan->opened)
		am_lookup_end(&scan->lookup);
	ExecDropSingleTupleTableSlot(scan->slot);
	index_close(scan->index, NoLock);
	table_close(scan->rel, NoLock);
}

bool
storage_scan_first(StorageScan *scan, StorageTable table, Snapshot snapshot, int64 sheet_id, ScanDirection direction)
{
	StorageKey key = storage_key_int64(1, BTEqualStrategyNumber, sheet_id);

	storage_scan_begin(scan, table, snapshot, &key, 1);
	return storage_scan_next(scan, direction);
}

/* ---- the rows of version_tile, keys first ---- */

int64
storage_tiles_key(StorageScan *scan, int column)
{
	TupleDesc desc = scan->scan->xs_itupdesc;
	bool isnull;
	Datum datum = index_getattr(scan->scan->xs_itup, column, desc, &isnull);

	return TupleDescAttr(desc, column - 1)->attlen == sizeof(int32) ? DatumGetInt32(datum) : DatumGetInt64(datum);
}

/* Restarts the scan at the keys of the sheet below (row, column, version): a row comparison, which positions the
 * B-tree. */
static void
storage_tiles_rescan(StorageScan *scan, int32 row, int32 col, int64 version_id)
{
	ScanKeyData keys[2] = {0};

	ScanKeyInit(&keys[0], VERSION_TILE_SHEET_ID, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(scan->key));
	ScanKeyEntryInitialize(&scan->below[0], SK_ROW_MEMBER, VERSION_TILE_ROW, BTLessStrategyNumber, InvalidOid,
						   InvalidOid, F_BTINT4CMP, Int32GetDatum(row));
	ScanKeyEntryInitialize(&scan->below[1], SK_ROW_MEMBER, VERSION_TILE_COL, BTLessStrategyNumber, InvalidOid,
						   InvalidOid, F_BTINT4CMP, Int32GetDatum(col));
	ScanKeyEntryInitialize(&scan->below[2], SK_ROW_MEMBER | SK_ROW_END, VERSION_TILE_VERSION_ID, BTLessStrategyNumber,
						   InvalidOid, InvalidOid, F_BTINT8CMP, Int64GetDatum(version_id));
	keys[1].sk_flags = SK_ROW_HEADER;
	keys[1].sk_attno = VERSION_TILE_ROW;
	keys[1].sk_strategy = BTLessStrategyNumber;
	keys[1].sk_argument = PointerGetDatum(scan->below);
	index_rescan(scan->scan, keys, lengthof(keys), NULL, 0);
}

void
storage_tiles_begin(StorageScan *scan, Snapshot snapshot, int64 sheet_id)
{
	storage_scan_open(scan, STORAGE_VERSION_TILE, snapshot);
	scan->key = sheet_id;
	scan->scan = compat_index_beginscan(scan->rel, scan->index, snapshot, 2);
	scan->scan->xs_want_itup = true;
	storage_tiles_rescan(scan, PG_INT32_MAX, PG_INT32_MAX, PG_INT64_MAX);
}

bool
storage_tiles_next(StorageScan *scan)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_tid(scan->scan, BackwardScanDirection) != NULL;
}

void
storage_tiles_skip(StorageScan *scan, int64 version_id)
{
	storage_tiles_rescan(scan, (int32) storage_tiles_key(scan, VERSION_TILE_ROW),
						 (int32) storage_tiles_key(scan, VERSION_TILE_COL), version_id);
}

bool
storage_tiles_fetch(StorageScan *scan)
{
	return index_fetch_heap(scan->scan, scan->slot);
}

/* ---- the current row ---- */

AttrNumber
storage_column(StorageScan *scan, const char *name)
{
	AttrNumber number = get_attnum(RelationGetRelid(scan->rel), name);

	if (number == InvalidAttrNumber)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("table \"sheet.%s\" has no column \"%s\"", RelationGetRelationName(scan->rel), name)));
	return number;
}

Datum
storage_value(StorageScan *scan, const char *name, bool *isnull)
{
	return slot_getattr(scan->slot, storage_column(scan, name), isnull);
}

static Datum
storage_datum(StorageScan *scan, int column)
{
	bool isnull;
	Datum datum = slot_getattr(scan->slot, column, &isnull);

	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("column %d of table \"sheet.%s\" is null", column, RelationGetRelationName(scan->rel))));
	return datum;
}

int64
storage_int64(StorageScan *scan, int column)
{
	return DatumGetInt64(storage_datum(scan, column));
}

int32
storage_int32(StorageScan *scan, int column)
{
	return DatumGetInt32(storage_datum(scan, column));
}

struct varlena *
storage_bytes(StorageScan *scan, int column, bool *copy)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(storage_datum(scan, column));
	struct varlena *bytes = pg_detoast_datum_packed(stored);

	*copy = bytes != stored;
	return bytes;
}

Size
storage_raw_size(StorageScan *scan, int column)
{
	return am_slot_raw_size(scan->slot, column);
}

uint64
storage_writer_fxid(StorageScan *scan)
{
	bool isnull;
	Datum xmin = slot_getsysattr(scan->slot, MinTransactionIdAttributeNumber, &isnull);

	if (isnull || !TransactionIdIsNormal(DatumGetTransactionId(xmin)))
		return 0;
	return compat_widen_xid(DatumGetTransactionId(xmin), ReadNextFullTransactionId());
}
