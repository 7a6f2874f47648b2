/*
 * replay_find.c - where a replay begins and ends: what the rows of a sheet's versions, logs and batches say.
 *
 * Everything is read with the snapshot that is given.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "journal/store/replay_find.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"

void
replay_corrupted(int64 sheet_id, const char *what, int64 place, EditError error)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("sheet " INT64_FORMAT " is damaged: %s " INT64_FORMAT, sheet_id, what, place),
					error == EDIT_OK ? 0 : errdetail("%s.", edit_error_text(error)),
					errhint("Run sheet.fsck(" INT64_FORMAT ", true).", sheet_id)));
}

/* A sheet that was trimmed to its newest version has no batch: the version tells of its commit record. */
static void
replay_last_of_version(int64 sheet_id, Snapshot snapshot, ReplayLast *last)
{
	StorageScan scan;
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};

	storage_scan_begin(&scan, STORAGE_VERSION, snapshot, &key, 1);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		last->found = true;
		last->last_seq = storage_int64(&scan, VERSION_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, VERSION_AT));
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
}

void
replay_last(int64 sheet_id, Snapshot snapshot, ReplayLast *last)
{
	StorageScan scan;
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};

	memset(last, 0, sizeof(*last));
	storage_scan_begin(&scan, STORAGE_LOG_BATCH, snapshot, &key, 1);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		int64 first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);

		last->found = true;
		last->last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
		last->last_at = timeconv_to_unix(storage_int64(&scan, LOG_BATCH_AT)) + (last->last_seq - first_seq);
		last->writer_fxid = storage_writer_fxid(&scan);
	}
	storage_scan_end(&scan);
	if (!last->found)
		replay_last_of_version(sheet_id, snapshot, last);
}

bool
replay_open_log(int64 sheet_id, Snapshot snapshot, int64 *segment_id, int64 *first_seq)
{
	StorageScan scan;
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	bool found;

	storage_scan_begin(&scan, STORAGE_SEGMENT, snapshot, &key, 1);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
	{
		*segment_id = storage_int64(&scan, SEGMENT_SEGMENT_ID);
		*first_seq = storage_int64(&scan, SEGMENT_FIRST_SEQ);
	}
	storage_scan_end(&scan);
	return found;
}

static bytea *
replay_stored_axes(StorageScan *scan)
{
	bool isnull, copy;
	struct varlena *bytes;

	(void) slot_getattr(scan->slot, VERSION_AXES, &isnull);
	if (isnull)
		return NULL;
	bytes = storage_bytes(scan, VERSION_AXES, &copy);
	return copy ? (bytea *) bytes : (bytea *) PG_DETOAST_DATUM_COPY(PointerGetDatum(bytes));
}

bool
replay_find_version(int64 sheet_id, int64 max_cid, Snapshot snapshot, ReplayVersion *version)
{
	StorageScan scan;
	StorageKey keys[2] = {{1, BTEqualStrategyNumber, false, sheet_id}, {2, BTLessEqualStrategyNumber, false, max_cid}};
	bool found;

	storage_scan_begin(&scan, STORAGE_VERSION, snapshot, keys, 2);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
	{
		version->version_id = storage_int64(&scan, VERSION_VERSION_ID);
		version->seq = storage_int64(&scan, VERSION_SEQ);
		version->at = storage_int64(&scan, VERSION_AT);
		version->rows = (uint32) storage_int32(&scan, VERSION_ROWS);
		version->cols = (uint32) storage_int32(&scan, VERSION_COLS);
		version->tiles = storage_int32(&scan, VERSION_TILES);
		version->digest = storage_int64(&scan, VERSION_DIGEST);
		version->cause = (uint32) storage_int32(&scan, VERSION_CAUSE);
		version->axes = replay_stored_axes(&scan);
	}
	storage_scan_end(&scan);
	return found;
}

void
replay_find_version_at(int64 sheet_id, int64 until, Snapshot snapshot, ReplayVersion *version)
{
	bool found = replay_find_version(sheet_id, REPLAY_NEWEST, snapshot, version);

	while (found && version->seq > until)
		found = replay_find_version(sheet_id, version->version_id - 1, snapshot, version);
	if (!found)
		*version = (ReplayVersion){.rows = 1, .cols = 1};
}
