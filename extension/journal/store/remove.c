/*
 * remove.c - deleting rows of the journal's relations.
 *
 * The one place that deletes what is append-only for everybody else. The rows stay visible for older snapshots, and
 * VACUUM reclaims their space when nobody can see them any more.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "journal/store/remove.h"
#include "am/handler/sheetlog.h"
#include "support/stoppoint.h"
#include "utils/snapmgr.h"

int64
remove_some_rows(StorageTable table, const StorageKey *keys, int nkeys, RemoveFilter filter, const void *arg, int *most)
{
	Relation rel = storage_open(table, RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	int64 removed = 0;

	sheetlog_begin_purge();
	storage_scan_begin(&scan, table, snapshot, keys, nkeys);
	while ((most == NULL || (*most)-- > 0) && storage_scan_next(&scan, ForwardScanDirection))
	{
		if (filter != NULL && !filter(&scan, arg))
			continue;
		simple_table_tuple_delete(rel, &scan.slot->tts_tid, snapshot);
		removed++;
		STOP_POINT("remove-row");
	}
	storage_scan_end(&scan);
	sheetlog_end_purge();
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	STOP_POINT("remove-table");
	return removed;
}

int64
remove_rows(StorageTable table, int64 sheet_id, RemoveFilter filter, const void *arg)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};

	return remove_some_rows(table, &key, 1, filter, arg, NULL);
}
