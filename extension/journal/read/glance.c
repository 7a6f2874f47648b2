/*
 * glance.c - what a list shows of a sheet: when it was edited last, how many versions it has, how wide it is.
 *
 * Nothing here replays the log or loads the sheet. The last edit is found through the last entry of the directory of
 * log_batch, the newest version through the last entry of its primary key.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "cache/cache.h"
#include "journal/read/glance.h"
#include "journal/store/replay_find.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"

bool
glance_edited_at(int64 sheet_id, Snapshot snapshot, TimestampTz *at)
{
	ReplayLast last;

	replay_last(sheet_id, snapshot, &last);
	*at = timeconv_from_unix(last.last_at);
	return last.found;
}

int64
glance_version(int64 sheet_id, Snapshot snapshot, uint32 *cols)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;
	int64 version_id = 0;

	storage_scan_begin(&scan, STORAGE_VERSION, snapshot, &key, 1);
	if (storage_scan_next(&scan, BackwardScanDirection))
	{
		version_id = storage_int64(&scan, VERSION_VERSION_ID);
		*cols = (uint32) storage_int32(&scan, VERSION_COLS);
	}
	storage_scan_end(&scan);
	if (cache_enabled())
	{
		CacheKey cached;
		uint32 guess;

		sheetmeta_cache_key(sheet_id, AccessShareLock, &cached);
		guess = cache_guess_cols(&cached);
		if (guess > 0)
			*cols = guess;
	}
	return version_id;
}
