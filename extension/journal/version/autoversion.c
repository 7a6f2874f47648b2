/*
 * autoversion.c - versions that the background worker makes.
 *
 * A version like any other: the same commit record, next log and tiles (version_seal). What differs is who waits. A
 * person's commit does everything under the sheet lock; here writers are kept out only while rows are stored:
 *
 *   1. without the lock, with a snapshot of our own: the tiles that the open log has touched are built from storage in
 *      our memory, past the cache (which may have evicted the sheet just now), and encoded (version_cells.c);
 *   2. still without it: what was committed meanwhile is applied to the cells, and its tiles are encoded again, until
 *      that is little;
 *   3. under the lock: the same for the last few edits; then the log is sealed and the tiles are stored.
 *
 * Seqs have no gaps and become visible in their order, so "what was committed meanwhile" is what follows the last seq
 * that we have. Somebody else may seal the log between 1 and 3: then there is nothing left to do.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "miscadmin.h"
#include "journal/replay/replay.h"
#include "journal/replay/batches.h"
#include "journal/store/history.h"
#include "journal/store/sheetmeta.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "journal/version/version.h"
#include "journal/version/version_cells.h"

#define AUTOVERSION_ROUNDS 3
#define AUTOVERSION_LITTLE 1000 /* edits that are left for the time under the lock */

typedef struct AutoVersion
{
	int64 sheet_id;
	int64 segment_id; /* the log that is to be sealed */
	int64 first_seq;  /* its first */
	VersionCells cells;
} AutoVersion;

static Snapshot
autoversion_snapshot(void)
{
	return RegisterSnapshot(GetLatestSnapshot());
}

/* ---- looking ---- */

/* The version before the open log, which the new one builds on. False for a sheet's first. */
static bool
autoversion_before(const AutoVersion *av, Snapshot snapshot, HistoryVersion *version)
{
	bool found = history_find_version(av->sheet_id, HISTORY_NEWEST, snapshot, version);
	int64 version_id = found ? version->version_id : 0;

	/* Tiles that only a lost version has would be missing from ours, too. */
	if (version_id != av->segment_id - 1)
		history_corrupted(av->sheet_id, "the newest version is not the one before log", av->segment_id, EDIT_OK);
	if (!found)
		*version = (HistoryVersion){.rows = 1, .cols = 1};
	return found;
}

/* Is there a log that should be sealed now? */
static JournalVersion
autoversion_look(AutoVersion *av, const JournalVersionCall *call, Snapshot snapshot, HistoryVersion *before,
				 TimestampTz *due)
{
	HistoryLast last;

	history_last_edit(av->sheet_id, snapshot, &last);
	if (!history_open_segment(av->sheet_id, snapshot, &av->segment_id, &av->first_seq) || last.last_seq < av->first_seq)
		return JOURNAL_VERSION_NEEDLESS;
	if (call->seq < av->first_seq)
		return JOURNAL_VERSION_NEEDLESS; /* a version has been made since it was asked for */
	if (autoversion_before(av, snapshot, before))
	{
		*due = TimestampTzPlusMilliseconds(before->at, call->interval_ms);
		if (*due > GetCurrentTimestamp())
			return JOURNAL_VERSION_EARLY;
	}
	return JOURNAL_VERSION_MADE;
}

/* False when somebody else has sealed the log meanwhile. What comes after our last seq may have been trimmed then. */
static bool
autoversion_prepare(AutoVersion *av)
{
	int64 edits = AUTOVERSION_LITTLE;
	bool open = true;

	for (int i = 0; open && edits >= AUTOVERSION_LITTLE && i < AUTOVERSION_ROUNDS; i++)
	{
		Snapshot snapshot = autoversion_snapshot();
		int64 segment_id, first_seq;

		open = history_open_segment(av->sheet_id, snapshot, &segment_id, &first_seq) && segment_id == av->segment_id;
		if (open)
			edits = version_cells_catch_up(&av->cells, snapshot);
		UnregisterSnapshot(snapshot);
	}
	return open;
}

/* ---- sealing ---- */

/* Under the sheet lock: is the log still the open one, of a sheet that people can have? */
static bool
autoversion_is_open(const AutoVersion *av, const WriterSheet *ws)
{
	return ws->meta.exists && !ws->meta.trashed && ws->meta.segment_id == av->segment_id &&
		   ws->meta.log_first_seq == av->first_seq;
}

static bool
autoversion_seal(AutoVersion *av, CkptCause cause, TimestampTz *locked_at)
{
	VersionNote note = {.cause = cause};
	WriterSheet *ws = writer_open(av->sheet_id);
	Snapshot snapshot;

	*locked_at = GetCurrentTimestamp();
	if (!autoversion_is_open(av, ws))
		return false;
	snapshot = autoversion_snapshot();
	(void) version_cells_catch_up(&av->cells, snapshot);
	UnregisterSnapshot(snapshot);
	if (av->cells.seq != ws->meta.last_seq)
		history_corrupted(av->sheet_id, "the log ends before seq", ws->meta.last_seq, EDIT_OK);
	STOP_POINT("autoversion-locked");
	(void) version_seal(ws, &note, av->cells.grid, version_cells_digest(&av->cells), av->cells.tiles);
	return true;
}

JournalVersion
journal_save_version(const JournalVersionCall *call, TimestampTz *due, TimestampTz *locked_at)
{
	AutoVersion av = {.sheet_id = call->sheet_id};
	Snapshot snapshot = autoversion_snapshot();
	HistoryVersion before;
	JournalVersion result = autoversion_look(&av, call, snapshot, &before, due);

	if (result == JOURNAL_VERSION_MADE)
	{
		version_cells_begin(&av.cells, av.sheet_id, &before, snapshot);
		(void) version_cells_catch_up(&av.cells, snapshot);
	}
	UnregisterSnapshot(snapshot);
	if (result != JOURNAL_VERSION_MADE)
		return result;
	STOP_POINT("autoversion-built");
	return autoversion_prepare(&av) && autoversion_seal(&av, call->cause, locked_at) ? JOURNAL_VERSION_MADE
																					 : JOURNAL_VERSION_NEEDLESS;
}

/* ---- searching ---- */

int64 *
journal_list_sheets(int64 after, int limit, int *count)
{
	int64 *ids = palloc(sizeof(int64) * limit);
	StorageKey key = {1, BTGreaterStrategyNumber, false, after};
	Snapshot snapshot = autoversion_snapshot();
	StorageScan scan;

	*count = 0;
	storage_scan_begin(&scan, STORAGE_SHEET, snapshot, &key, 1);
	while (*count < limit && storage_scan_next(&scan, ForwardScanDirection))
		ids[(*count)++] = storage_int64(&scan, 1);
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return ids;
}

/* More than any edit takes in the log: two contents, a style, numbers. */
#define AUTOVERSION_EDIT_BYTES (2 * SHEET_MAX_CONTENT_BYTES + SHEET_MAX_STYLE_BYTES + 64)

/* Have the batches from a seq on so many bytes? */
static bool
autoversion_has_bytes(int64 sheet_id, int64 first_seq, int64 bytes, Snapshot snapshot)
{
	BatchScan *batches = batches_begin(sheet_id, first_seq, PG_INT64_MAX, false, snapshot);
	StoredBatch batch;

	while (bytes > 0 && batches_next(batches, &batch))
	{
		CHECK_FOR_INTERRUPTS();
		bytes -= batches_size(batches);
	}
	batches_end(batches);
	return bytes <= 0;
}

bool
journal_log_is_long(int64 sheet_id, int64 edits, int64 bytes, int64 *last_seq)
{
	Snapshot snapshot = autoversion_snapshot();
	HistoryLast last;
	int64 segment_id, first_seq, length = 0;
	bool is_long;

	history_last_edit(sheet_id, snapshot, &last);
	if (history_open_segment(sheet_id, snapshot, &segment_id, &first_seq))
		length = last.last_seq - first_seq + 1;
	is_long = (edits > 0 && length >= edits) || (bytes > 0 && length > bytes / AUTOVERSION_EDIT_BYTES &&
												 autoversion_has_bytes(sheet_id, first_seq, bytes, snapshot));
	UnregisterSnapshot(snapshot);
	*last_seq = last.last_seq;
	return is_long;
}
