/*
 * trimmark.c - where the history of a trimmed sheet begins, and the errors about what was removed.
 *
 * sheet.log_trim has a row for each trim of a sheet; the one with the highest version counts. It distinguishes edits
 * and versions that were removed from ones that are lost.
 */
#include "postgres.h"

#include "journal/store/storage.h"
#include "journal/store/trimmark.h"

void
trim_mark(int64 sheet_id, Snapshot snapshot, TrimMark *mark)
{
	StorageScan scan;

	memset(mark, 0, sizeof(*mark));
	if (storage_scan_first(&scan, STORAGE_LOG_TRIM, snapshot, sheet_id, BackwardScanDirection))
		*mark = (TrimMark){.version_id = storage_int64(&scan, LOG_TRIM_VERSION_ID),
						   .seq = storage_int64(&scan, LOG_TRIM_SEQ),
						   .at = storage_int64(&scan, LOG_TRIM_AT)};
	storage_scan_end(&scan);
}

void
trim_store(int64 sheet_id, int64 version_id, int64 seq, uint64 uid)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[LOG_TRIM_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[LOG_TRIM_VERSION_ID - 1] = Int64GetDatum(version_id),
		[LOG_TRIM_SEQ - 1] = Int64GetDatum(seq),
		[LOG_TRIM_AT - 1] = TimestampTzGetDatum(GetCurrentTimestamp()),
		[LOG_TRIM_UID - 1] = Int64GetDatum((int64) uid),
	};

	storage_insert(STORAGE_LOG_TRIM, values, NULL);
}

void
trim_forget(int64 sheet_id)
{
	(void) storage_delete_rows(STORAGE_LOG_TRIM, sheet_id, NULL, NULL);
}

/* ---- errors ---- */

void
trim_no_version(int64 sheet_id, int64 version_id, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("sheet " INT64_FORMAT " has no version " INT64_FORMAT, sheet_id, version_id),
					version_id >= 1 && version_id < mark.version_id
						? errdetail("It was trimmed on %s; version " INT64_FORMAT " is the oldest that is kept.",
									timestamptz_to_str(mark.at), mark.version_id)
						: 0));
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
