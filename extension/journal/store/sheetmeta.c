/*
 * sheetmeta.c - what a writer must know of a sheet besides its cells, from storage; and the sheet's ownership.
 *
 * Read under the sheet lock, so that it stays true, and only if shared memory does not have it.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "compat.h"
#include "miscadmin.h"
#include "journal/store/history.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

void
sheetmeta_cache_key(int64 sheet_id, LOCKMODE lockmode, CacheKey *key)
{
	key->database = MyDatabaseId;
	key->relfilenode = storage_lock_file(STORAGE_LOG_BATCH, lockmode);
	key->sheet_id = sheet_id;
}

static void
sheetmeta_read_status(int64 sheet_id, Snapshot snapshot, CacheMeta *meta)
{
	StorageScan scan;
	bool isnull;

	meta->exists = storage_scan_first(&scan, STORAGE_SHEET, snapshot, sheet_id, ForwardScanDirection);
	meta->trashed = meta->exists && !slot_attisnull(scan.slot, storage_column(&scan, "trashed_at"));
	meta->calendar =
		meta->exists && DatumGetBool(slot_getattr(scan.slot, storage_column(&scan, "calendar"), &isnull)) && !isnull;
	storage_scan_end(&scan);
}

/* Read it before taking the snapshot: the snapshot must see every reset that is counted in it. */
static uint64
sheetmeta_epoch_round(void)
{
	return cache_enabled() ? pg_atomic_read_u64(&CacheState->epoch_round) : 0;
}

void
sheetmeta_lock_epochs(void)
{
	table_close(storage_open(STORAGE_OWNERSHIP, RowExclusiveLock), NoLock);
}

static void
sheetmeta_read_epoch(int64 sheet_id, Snapshot snapshot, CacheMeta *meta)
{
	StorageScan scan;

	sheetmeta_lock_epochs(); /* the caller may store a higher one */
	meta->epoch = storage_scan_first(&scan, STORAGE_OWNERSHIP, snapshot, sheet_id, ForwardScanDirection)
					  ? storage_int64(&scan, OWNERSHIP_EPOCH)
					  : 0;
	storage_scan_end(&scan);
}

void
sheetmeta_load(int64 sheet_id, CacheMeta *meta)
{
	uint64 round = sheetmeta_epoch_round();
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	HistoryLast last;

	memset(meta, 0, sizeof(*meta));
	meta->epoch_round = round;
	history_last_edit(sheet_id, snapshot, &last);
	meta->last_seq = last.last_seq;
	meta->last_at = last.last_at;
	meta->last_fxid = last.writer_fxid;
	(void) history_open_segment(sheet_id, snapshot, &meta->segment_id, &meta->log_first_seq);
	sheetmeta_read_epoch(sheet_id, snapshot, meta);
	sheetmeta_read_status(sheet_id, snapshot, meta);
	UnregisterSnapshot(snapshot);
}

void
sheetmeta_load_epoch(int64 sheet_id, CacheMeta *meta)
{
	uint64 round = sheetmeta_epoch_round();
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

	meta->epoch_round = round;
	sheetmeta_read_epoch(sheet_id, snapshot, meta);
	UnregisterSnapshot(snapshot);
}

void
sheetmeta_load_status(int64 sheet_id, CacheMeta *meta)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

	sheetmeta_read_status(sheet_id, snapshot, meta);
	UnregisterSnapshot(snapshot);
}

/* ---- ownership ---- */

/* The sheet's row of sheet.ownership. */
typedef struct SheetOwnership
{
	bool found;
	ItemPointerData tid;
	int64 epoch;
	const char *holder; /* "": released, or not known */
} SheetOwnership;

static void
sheetmeta_find_ownership(int64 sheet_id, SheetOwnership *row)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;

	*row = (SheetOwnership){.holder = ""};
	row->found = storage_scan_first(&scan, STORAGE_OWNERSHIP, snapshot, sheet_id, ForwardScanDirection);
	if (row->found)
	{
		bool copy;

		row->tid = scan.slot->tts_tid;
		row->epoch = storage_int64(&scan, OWNERSHIP_EPOCH);
		row->holder = text_to_cstring((text *) storage_bytes(&scan, OWNERSHIP_HOLDER, &copy));
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
}

const char *
sheetmeta_holder(int64 sheet_id)
{
	SheetOwnership row;

	sheetmeta_find_ownership(sheet_id, &row);
	return row.holder;
}

static void
sheetmeta_put_ownership(int64 sheet_id, int64 epoch, const char *holder, SheetOwnership *row)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[OWNERSHIP_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[OWNERSHIP_EPOCH - 1] = Int64GetDatum(epoch),
		[OWNERSHIP_HOLDER - 1] = CStringGetTextDatum(holder),
	};

	if (row->found)
		storage_update(STORAGE_OWNERSHIP, &row->tid, values, NULL);
	else
		storage_insert(STORAGE_OWNERSHIP, values, NULL);
}

bool
sheetmeta_store_epoch(int64 sheet_id, int64 epoch, const char *holder)
{
	SheetOwnership row;

	/* Before the row is read: the lock may have to wait while all epochs are deleted. */
	sheetmeta_lock_epochs();
	sheetmeta_find_ownership(sheet_id, &row);
	sheetmeta_put_ownership(sheet_id, epoch, holder != NULL ? holder : "", &row);
	return row.found && row.holder[0] != '\0';
}

bool
sheetmeta_release(int64 sheet_id, int64 epoch)
{
	SheetOwnership row;

	sheetmeta_lock_epochs();
	sheetmeta_find_ownership(sheet_id, &row);
	if (!row.found || row.epoch != epoch)
		return false;
	if (row.holder[0] != '\0')
		sheetmeta_put_ownership(sheet_id, epoch, "", &row);
	return true;
}

void
sheetmeta_delete_epochs(void)
{
	Relation rel = storage_open(STORAGE_OWNERSHIP, ShareRowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	TupleTableSlot *slot = table_slot_create(rel, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		simple_table_tuple_delete(rel, &slot->tts_tid, snapshot);
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}
