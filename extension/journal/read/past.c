/*
 * past.c - earlier states of a sheet: versions, the cells at a time, stored batches; and what a list shows of a sheet.
 *
 * The cells at a time are those of the newest version that is not after it, and of the edits between. The times of a
 * sheet's edits only increase, and so do those of its versions: nothing after the next version is read.
 *
 * So after the clock was set back, edits get times that are still to come, each a microsecond after the one before. A
 * reader who asks for the present must see them. Hence a time that is not before the start of the statement, or is
 * now(), stands for the present: everything that the snapshot sees.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/journal.h"
#include "journal/read/read.h"
#include "journal/replay/batches.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_version.h"
#include "journal/store/property_store.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "journal/store/trimmark.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* ---- what a list shows: read without replaying the log or loading the sheet ---- */

bool
journal_edited_at(int64 sheet_id, Snapshot snapshot, TimestampTz *at)
{
	HistoryLast last;

	history_last_edit(sheet_id, snapshot, &last);
	*at = timeconv_from_unix(last.last_at);
	return last.found;
}

int64
journal_newest_version(int64 sheet_id, Snapshot snapshot, uint32 *cols)
{
	StorageScan scan;
	int64 version_id = 0;

	if (storage_scan_first(&scan, STORAGE_VERSION, snapshot, sheet_id, BackwardScanDirection))
	{
		version_id = storage_int64(&scan, VERSION_VERSION_ID);
		*cols = (uint32) storage_int32(&scan, VERSION_COLS);
	}
	storage_scan_end(&scan);
	if (cache_enabled())
	{
		CacheKey key;
		uint32 guess;

		sheetmeta_cache_key(sheet_id, AccessShareLock, &key);
		guess = cache_guess_cols(&key);
		if (guess > 0)
			*cols = guess;
	}
	return version_id;
}

int64
journal_guess_seq(int64 sheet_id, Snapshot snapshot)
{
	HistoryLast last;
	int64 seq = 0;

	if (cache_enabled())
	{
		CacheKey key;

		sheetmeta_cache_key(sheet_id, AccessShareLock, &key);
		seq = cache_guess_seq(&key);
	}
	if (seq > 0)
		return seq;
	history_last_edit(sheet_id, snapshot, &last);
	return last.last_seq;
}

/* ---- batches and versions ---- */

bytea *
journal_tail(int64 sheet_id, int64 since, Size max_bytes, int64 *last_seq)
{
	Snapshot snapshot = RegisterSnapshot(read_snapshot(true));
	bytea *tail;

	trim_check_since(sheet_id, since, snapshot);
	tail = batches_tail(sheet_id, since, max_bytes, snapshot, last_seq);
	UnregisterSnapshot(snapshot);
	return tail;
}

Grid *
journal_read_version(int64 sheet_id, int64 version_id, bool cells, JournalView *view)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(read_snapshot(true));
	HistoryVersion version;
	Grid *grid = NULL;

	if (!history_find_version(sheet_id, version_id, snapshot, &version) || version.version_id != version_id)
		trim_no_version(sheet_id, version_id, snapshot);
	if (cells)
		(void) replay_version(sheet_id, &version, snapshot, &allocator, &grid);
	UnregisterSnapshot(snapshot);
	*view = (JournalView){.seq = version.seq, .rows = version.rows, .cols = version.cols, .at = version.at};
	return grid;
}

/* ---- the cells at a time ---- */

typedef struct Past
{
	int64 sheet_id;
	TimestampTz at;
	int64 seq; /* of the last edit that was applied */
	GridAllocator allocator;
	Grid *grid;
	Properties *properties;
} Past;

/* DT_NOEND for the present. */
static TimestampTz
past_time(TimestampTz at)
{
	if (at >= GetCurrentStatementStartTimestamp() || at == GetCurrentTransactionStartTimestamp())
		return DT_NOEND;
	return at;
}

/* The newest version that is not after the time; *until: the seq of the next version. */
static bool
past_find_version(const Past *past, Snapshot snapshot, HistoryVersion *version, int64 *until)
{
	HistoryVersion middle;
	int64 low = 0, high;
	bool found = false;

	*until = PG_INT64_MAX;
	if (!history_find_version(past->sheet_id, HISTORY_NEWEST, snapshot, &middle))
		return false;
	high = middle.version_id + 1;
	while (low + 1 < high)
	{
		int64 version_id = low + (high - low) / 2;

		if (!history_find_version(past->sheet_id, version_id, snapshot, &middle))
			low = version_id;
		else if (middle.at <= past->at)
		{
			low = version_id;
			*version = middle;
			found = true;
		}
		else
		{
			high = middle.version_id;
			*until = middle.seq;
		}
	}
	return found;
}

static void
past_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	Past *past = arg;

	if (timeconv_from_unix(at) > past->at)
		return;
	if (seq != past->seq + 1)
		history_corrupted(past->sheet_id, "the log lacks seq", past->seq + 1, EDIT_OK);
	/* Their memory raises an error. */
	if (past->properties == NULL)
		(void) replay_edit_into(past->grid, &past->allocator, edit);
	else if (!edit_is_of_cell(edit->kind))
		(void) properties_apply(past->properties, edit, (uint64) seq);
	past->seq = seq;
}

Grid *
journal_read_past(int64 sheet_id, TimestampTz at, JournalView *view)
{
	Past past = {.sheet_id = sheet_id, .at = past_time(at), .allocator = journal_context_allocator()};
	Snapshot snapshot = RegisterSnapshot(GetActiveSnapshot());
	HistoryVersion version;
	int64 until;

	if (past_find_version(&past, snapshot, &version, &until))
	{
		(void) replay_version(sheet_id, &version, snapshot, &past.allocator, &past.grid);
		past.seq = version.seq;
	}
	else
	{
		trim_check_past(sheet_id, past.at, snapshot);
		past.grid = grid_create(&past.allocator, 1, 1);
	}
	batches_each_edit(sheet_id, past.seq, until, snapshot, past_edit, &past);
	UnregisterSnapshot(snapshot);
	*view = (JournalView){.seq = past.seq, .rows = grid_rows(past.grid), .cols = grid_cols(past.grid), .at = at};
	return past.grid;
}

/* ---- properties ---- */

void
journal_read_properties(int64 sheet_id, Snapshot snapshot, Properties *set)
{
	property_store_decode(sheet_id, property_store_read(sheet_id, snapshot), set);
}

void
journal_read_version_properties(int64 sheet_id, int64 version_id, Properties *set)
{
	Snapshot snapshot = RegisterSnapshot(read_snapshot(true));
	HistoryVersion version;

	if (!history_find_version(sheet_id, version_id, snapshot, &version) || version.version_id != version_id)
		trim_no_version(sheet_id, version_id, snapshot);
	property_store_decode(sheet_id, property_store_read_version(sheet_id, version_id, snapshot), set);
	UnregisterSnapshot(snapshot);
}

void
journal_read_past_properties(int64 sheet_id, TimestampTz at, Properties *set)
{
	Past past = {.sheet_id = sheet_id, .at = past_time(at), .properties = set};
	Snapshot snapshot = RegisterSnapshot(GetActiveSnapshot());
	HistoryVersion version;
	int64 until;

	if (past_find_version(&past, snapshot, &version, &until))
	{
		property_store_decode(sheet_id, property_store_read_version(sheet_id, version.version_id, snapshot), set);
		past.seq = version.seq;
	}
	else
		trim_check_past(sheet_id, past.at, snapshot);
	batches_each_edit(sheet_id, past.seq, until, snapshot, past_edit, &past);
	UnregisterSnapshot(snapshot);
}
