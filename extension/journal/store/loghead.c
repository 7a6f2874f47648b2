/* loghead.c - the row that opens a log. */
#include "postgres.h"

#include "access/table.h"
#include "journal/store/loghead.h"
#include "journal/store/remove.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/timestamp.h"

void
loghead_write(int64 sheet_id, int64 lid, int64 first_seq, int64 at)
{
	Relation rel = storage_open(STORAGE_LOG_HEAD, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[LOG_HEAD_SHEET_ID - 1] = Int64GetDatum(sheet_id);
	values[LOG_HEAD_LID - 1] = Int64GetDatum(lid);
	values[LOG_HEAD_FIRST_SEQ - 1] = Int64GetDatum(first_seq);
	values[LOG_HEAD_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(at));
	storage_insert(STORAGE_LOG_HEAD, rel, values, nulls);
	table_close(rel, NoLock);
}

static bool
loghead_is(StorageScan *scan, const void *lid)
{
	return storage_int64(scan, LOG_HEAD_LID) == *(const int64 *) lid;
}

void
loghead_delete(int64 sheet_id, int64 lid)
{
	(void) remove_rows(STORAGE_LOG_HEAD, sheet_id, loghead_is, &lid);
}
