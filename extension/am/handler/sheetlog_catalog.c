/*
 * sheetlog_catalog.c - rows of the system catalogs that the caches do not have: just made, or without a cache.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "am/handler/sheetlog_private.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

bool
sheetlog_find_row(const SheetlogRows *rows, SheetlogRowFn fn, void *arg)
{
	Relation rel = table_open(rows->catalog, AccessShareLock);
	bool found = false;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;

	ScanKeyInit(&key, rows->column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rows->oid));
	scan =
		systable_beginscan(rel, rows->index, OidIsValid(rows->index), rows->just_made ? SnapshotSelf : NULL, 1, &key);
	while (!found && HeapTupleIsValid(row = systable_getnext(scan)))
		found = fn(row, RelationGetDescr(rel), arg);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}
