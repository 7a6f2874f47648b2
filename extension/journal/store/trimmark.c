/*
 * trimmark.c - where the history of a trimmed sheet begins, and the errors about what was removed.
 *
 * sheet.log_trim has a row for each trim of a sheet; the one with the highest version counts. It distinguishes edits
 * and versions that were removed from ones that are lost.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "journal/store/storage.h"
#include "journal/store/trimmark.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

typedef enum TrimColumn
{
	TRIM_SHEET_ID = 1,
	TRIM_VERSION_ID,
	TRIM_SEQ,
	TRIM_AT,
	TRIM_UID,
	TRIM_COLUMNS = TRIM_UID
} TrimColumn;

static Relation
trim_open(LOCKMODE lockmode)
{
	return table_open(get_relname_relid("log_trim", get_namespace_oid("sheet", false)), lockmode);
}

static SysScanDesc
trim_scan(Relation rel, int64 sheet_id, Snapshot snapshot)
{
	ScanKeyData key;

	ScanKeyInit(&key, TRIM_SHEET_ID, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(sheet_id));
	return systable_beginscan(rel, RelationGetPrimaryKeyIndex(rel), true, snapshot, 1, &key);
}

static Datum
trim_column(Relation rel, HeapTuple row, TrimColumn column)
{
	bool isnull;

	return heap_getattr(row, column, RelationGetDescr(rel), &isnull);
}

void
trim_mark(int64 sheet_id, Snapshot snapshot, TrimMark *mark)
{
	Relation rel = trim_open(AccessShareLock);
	SysScanDesc scan = trim_scan(rel, sheet_id, snapshot);
	HeapTuple row;

	memset(mark, 0, sizeof(*mark));
	while ((row = systable_getnext(scan)) != NULL)
	{
		int64 version_id = DatumGetInt64(trim_column(rel, row, TRIM_VERSION_ID));

		if (version_id <= mark->version_id)
			continue;
		mark->version_id = version_id;
		mark->seq = DatumGetInt64(trim_column(rel, row, TRIM_SEQ));
		mark->at = DatumGetTimestampTz(trim_column(rel, row, TRIM_AT));
	}
	systable_endscan(scan);
	table_close(rel, NoLock);
}

void
trim_store(int64 sheet_id, int64 version_id, int64 seq, uint64 uid)
{
	Relation rel = trim_open(RowExclusiveLock);
	Datum values[TRIM_COLUMNS] = {Int64GetDatum(sheet_id), Int64GetDatum(version_id), Int64GetDatum(seq),
								  TimestampTzGetDatum(GetCurrentTimestamp()), Int64GetDatum((int64) uid)};
	bool nulls[TRIM_COLUMNS] = {0};

	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values, nulls));
	table_close(rel, NoLock);
}

void
trim_forget(int64 sheet_id)
{
	Relation rel = trim_open(RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = trim_scan(rel, sheet_id, snapshot);
	HeapTuple row;

	while ((row = systable_getnext(scan)) != NULL)
		CatalogTupleDelete(rel, &row->t_self);
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}

/* ---- errors ---- */

static void
trim_missing(int64 sheet_id, const char *what, int64 number, int64 first, const TrimMark *mark)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("sheet " INT64_FORMAT " has no %s " INT64_FORMAT, sheet_id, what, number),
					number >= 1 && number < first
						? errdetail("It was trimmed on %s; %s " INT64_FORMAT " is the oldest that is kept.",
									timestamptz_to_str(mark->at), what, first)
						: 0));
}

void
trim_no_version(int64 sheet_id, int64 version_id, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	trim_missing(sheet_id, "version", version_id, mark.version_id, &mark);
	pg_unreachable();
}

void
trim_no_segment(int64 sheet_id, int64 segment_id, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	trim_missing(sheet_id, "segment", segment_id, mark.version_id > 0 ? mark.version_id + 1 : 0, &mark);
	pg_unreachable();
}

/* Whether the sheet did not exist yet. */
static bool
trim_is_before_creation(int64 sheet_id, TimestampTz at, Snapshot snapshot)
{
	StorageScan scan;
	bool before = storage_scan_first(&scan, STORAGE_SHEET, snapshot, sheet_id, ForwardScanDirection) &&
				  at < storage_int64(&scan, storage_column(&scan, "created_at"));

	storage_scan_end(&scan);
	return before;
}

void
trim_check_past(int64 sheet_id, TimestampTz at, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	if (mark.version_id == 0 || trim_is_before_creation(sheet_id, at, snapshot))
		return;
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("sheet " INT64_FORMAT " is not known as it was at %s", sheet_id, timestamptz_to_str(at)),
					errdetail("It was trimmed on %s; version " INT64_FORMAT " is the oldest that is kept.",
							  timestamptz_to_str(mark.at), mark.version_id)));
}

void
trim_check_since(int64 sheet_id, int64 since, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	if (since >= mark.seq)
		return;
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("the edits of sheet " INT64_FORMAT " after seq " INT64_FORMAT " have been trimmed", sheet_id,
						   since),
					errdetail("The log begins after seq " INT64_FORMAT ", with version " INT64_FORMAT ".", mark.seq,
							  mark.version_id),
					errhint("Read the cells again, and go on from their seq.")));
}
