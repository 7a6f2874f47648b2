/*
 * past.c - the cells of a sheet at a time of the past.
 *
 * From the newest version that is not after it, and the edits that have been made between. The times of a sheet's edits
 * only grow, and so do those of its versions: nothing behind the next version is read.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/replay_edit.h"
#include "journal/replay/replay_log.h"
#include "journal/replay/replay_version.h"
#include "journal/store/timeconv.h"
#include "journal/store/trim.h"
#include "utils/snapmgr.h"

typedef struct Past
{
	int64 sheet_id;
	TimestampTz at;
	int64 seq; /* of the last edit that was applied */
	GridAllocator allocator;
	Grid *grid;
} Past;

/* The newest version that is not after the time; *until is the seq of the one behind it, beyond which no edit counts.
 */
static bool
past_find_version(const Past *past, Snapshot snapshot, ReplayVersion *version, int64 *until)
{
	ReplayVersion middle;
	int64 low = 0, high;
	bool found = false;

	*until = PG_INT64_MAX;
	if (!replay_find_version(past->sheet_id, REPLAY_NEWEST, snapshot, &middle))
		return false;
	high = middle.version_id + 1;
	while (low + 1 < high)
	{
		int64 version_id = low + (high - low) / 2;

		if (!replay_find_version(past->sheet_id, version_id, snapshot, &middle))
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
		replay_corrupted(past->sheet_id, "the log lacks seq", past->seq + 1, EDIT_OK);
	(void) replay_edit_into(past->grid, &past->allocator, edit); /* the allocator raises by itself */
	past->seq = seq;
}

Grid *
journal_read_past(int64 sheet_id, TimestampTz at, JournalView *view)
{
	Past past = {.sheet_id = sheet_id, .at = at, .allocator = journal_context_allocator()};
	Snapshot snapshot = RegisterSnapshot(GetActiveSnapshot());
	ReplayVersion version;
	int64 until;

	if (past_find_version(&past, snapshot, &version, &until))
	{
		(void) replay_version(sheet_id, &version, snapshot, &past.allocator, &past.grid);
		past.seq = version.seq;
	}
	else
	{
		trim_check_past(sheet_id, at, snapshot);
		past.grid = grid_create(&past.allocator, 1, 1);
	}
	replay_edits(sheet_id, past.seq, until, snapshot, past_edit, &past);
	UnregisterSnapshot(snapshot);
	*view = (JournalView){.seq = past.seq, .rows = grid_rows(past.grid), .cols = grid_cols(past.grid), .at = at};
	return past.grid;
}
