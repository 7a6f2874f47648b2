/* segment.c - the row that opens a log. */
#include "postgres.h"

#include "access/table.h"
#include "journal/store/segment.h"
#include "journal/store/remove.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/timestamp.h"

void
segment_write(int64 sheet_id, int64 segment_id, int64 first_seq, int64 at)
{
	Relation rel = storage_open(STORAGE_SEGMENT, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[SEGMENT_SHEET_ID - 1] = Int64GetDatum(sheet_id);
	values[SEGMENT_SEGMENT_ID - 1] = Int64GetDatum(segment_id);
	values[SEGMENT_FIRST_SEQ - 1] = Int64GetDatum(first_seq);
	values[SEGMENT_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(at));
	storage_insert(STORAGE_SEGMENT, rel, values, nulls);
	table_close(rel, NoLock);
}

static bool
segment_is(StorageScan *scan, const void *segment_id)
{
	return storage_int64(scan, SEGMENT_SEGMENT_ID) == *(const int64 *) segment_id;
}

void
segment_delete(int64 sheet_id, int64 segment_id)
{
	(void) remove_rows(STORAGE_SEGMENT, sheet_id, segment_is, &segment_id);
}
