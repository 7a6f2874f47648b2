/*
 * history.c - the rows of a sheet's versions and segments, and its newest edit.
 *
 * Everything is read with the caller's snapshot.
 */
#include "postgres.h"

#include "journal/store/history.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/timestamp.h"

void
history_corrupted(int64 sheet_id, const char *what, int64 number, EditError error)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("sheet " INT64_FORMAT " is damaged: %s " INT64_FORMAT, sheet_id, what, number),
					error == EDIT_OK ? 0 : errdetail("%s.", edit_error_text(error)),
					errhint("Run sheet.fsck(" INT64_FORMAT ", true).", sheet_id)));
}

/* ---- the newest edit ---- */

/* A sheet that was trimmed to its newest version has no batch. The version's row describes its commit record. */
static void
history_last_version(int64 sheet_id, Snapshot snapshot, HistoryLast *last)
{
	StorageScan scan;

	if (storage_scan_first(&scan, STORAGE_VERSION, snapshot, sheet_id, BackwardScanDirection))
	{
		last->found = true;
		last->last_seq = storage_int64(&scan, VERSION_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, VERSION_AT));
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
}

void
history_last_edit(int64 sheet_id, Snapshot snapshot, HistoryLast *last)
{
	StorageScan scan;

	memset(last, 0, sizeof(*last));
	if (storage_scan_first(&scan, STORAGE_LOG_BATCH, snapshot, sheet_id, BackwardScanDirection))
	{
		int64 first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);

		last->found = true;
		last->last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, LOG_BATCH_AT)) + (last->last_seq - first_seq);
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
	if (!last->found)
		history_last_version(sheet_id, snapshot, last);
}

/* ---- segments ---- */

bool
history_open_segment(int64 sheet_id, Snapshot snapshot, int64 *segment_id, int64 *first_seq)
{
	StorageScan scan;
	bool found = storage_scan_first(&scan, STORAGE_SEGMENT, snapshot, sheet_id, BackwardScanDirection);

	if (found)
	{
		*segment_id = storage_int64(&scan, SEGMENT_SEGMENT_ID);
		*first_seq = storage_int64(&scan, SEGMENT_FIRST_SEQ);
	}
	storage_scan_end(&scan);
	return found;
}

void
history_store_segment(int64 sheet_id, int64 segment_id, int64 first_seq, int64 at)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[SEGMENT_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[SEGMENT_SEGMENT_ID - 1] = Int64GetDatum(segment_id),
		[SEGMENT_FIRST_SEQ - 1] = Int64GetDatum(first_seq),
		[SEGMENT_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(at)),
	};

	storage_insert(STORAGE_SEGMENT, values, NULL);
}

static bool
history_is_segment(StorageScan *scan, const void *segment_id)
{
	return storage_int64(scan, SEGMENT_SEGMENT_ID) == *(const int64 *) segment_id;
}

void
history_delete_segment(int64 sheet_id, int64 segment_id)
{
	(void) storage_delete_rows(STORAGE_SEGMENT, sheet_id, history_is_segment, &segment_id);
}

/* ---- versions ---- */

static bytea *
history_copy_maps(StorageScan *scan)
{
	bool isnull, copy;
	struct varlena *bytes;

	(void) slot_getattr(scan->slot, VERSION_LINE_MAPS, &isnull);
	if (isnull)
		return NULL;
	bytes = storage_bytes(scan, VERSION_LINE_MAPS, &copy);
	return copy ? (bytea *) bytes : (bytea *) PG_DETOAST_DATUM_COPY(PointerGetDatum(bytes));
}

bool
history_find_version(int64 sheet_id, int64 max_id, Snapshot snapshot, HistoryVersion *version)
{
	StorageScan scan;
	StorageKey keys[2] = {storage_key_int64(VERSION_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						  storage_key_int64(VERSION_VERSION_ID, BTLessEqualStrategyNumber, max_id)};
	bool found;

	storage_scan_begin(&scan, STORAGE_VERSION, snapshot, keys, 2);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
		*version = (HistoryVersion){.version_id = storage_int64(&scan, VERSION_VERSION_ID),
									.seq = storage_int64(&scan, VERSION_SEQ),
									.at = storage_int64(&scan, VERSION_AT),
									.rows = (uint32) storage_int32(&scan, VERSION_ROWS),
									.cols = (uint32) storage_int32(&scan, VERSION_COLS),
									.tiles = storage_int32(&scan, VERSION_TILES),
									.digest = storage_int64(&scan, VERSION_DIGEST),
									.cause = (uint32) storage_int32(&scan, VERSION_CAUSE),
									.maps = history_copy_maps(&scan)};
	storage_scan_end(&scan);
	return found;
}

void
history_version_at(int64 sheet_id, int64 until, Snapshot snapshot, HistoryVersion *version)
{
	bool found = history_find_version(sheet_id, HISTORY_NEWEST, snapshot, version);

	while (found && version->seq > until)
		found = history_find_version(sheet_id, version->version_id - 1, snapshot, version);
	if (!found)
		*version = (HistoryVersion){.rows = 1, .cols = 1};
}
