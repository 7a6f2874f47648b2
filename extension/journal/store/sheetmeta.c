/*
 * sheetmeta.c - what a writer must know of a sheet besides its cells, from storage.
 *
 * Read only when shared memory does not know it, and under the sheet lock, so that what is read stays true.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "compat.h"
#include "miscadmin.h"
#include "journal/store/replay_find.h"
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

static StorageKey
sheetmeta_key(int64 sheet_id)
{
	return (StorageKey){1, BTEqualStrategyNumber, false, sheet_id};
}

static void
sheetmeta_read_status(int64 sheet_id, Snapshot snapshot, CacheMeta *meta)
{
	StorageScan scan;
	StorageKey key = sheetmeta_key(sheet_id);

	storage_scan_begin(&scan, STORAGE_SHEET, snapshot, &key, 1);
	meta->exists = storage_scan_next(&scan, ForwardScanDirection);
	meta->trashed = meta->exists && !slot_attisnull(scan.slot, storage_column(&scan, "trashed_at"));
	storage_scan_end(&scan);
}

/*
 * Before the snapshot is taken: a reset that commits in between must not be taken for one whose effect was read.
 */
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
	StorageKey key = sheetmeta_key(sheet_id);

	sheetmeta_lock_epochs(); /* the caller may store a higher one */
	storage_scan_begin(&scan, STORAGE_OWNERSHIP, snapshot, &key, 1);
	meta->epoch = storage_scan_next(&scan, ForwardScanDirection) ? storage_int64(&scan, OWNER_EPOCH) : 0;
	storage_scan_end(&scan);
}

void
sheetmeta_load(int64 sheet_id, CacheMeta *meta)
{
	uint64 round = sheetmeta_epoch_round();
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	ReplayLast last;

	memset(meta, 0, sizeof(*meta));
	meta->epoch_round = round;
	replay_last(sheet_id, snapshot, &last);
	meta->last_seq = last.last_seq;
	meta->last_at = last.last_at;
	meta->last_fxid = last.writer_fxid;
	(void) replay_open_log(sheet_id, snapshot, &meta->segment_id, &meta->log_first_seq);
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

char *
sheetmeta_holder(int64 sheet_id)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	StorageKey key = sheetmeta_key(sheet_id);
	char *holder = "";

	storage_scan_begin(&scan, STORAGE_OWNERSHIP, snapshot, &key, 1);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		bool copy;
		struct varlena *bytes = storage_bytes(&scan, OWNER_HOLDER, &copy);

		holder = text_to_cstring((text *) bytes);
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return holder;
}

/* The sheet's row. */
typedef struct SheetmetaOwner
{
	bool found;
	ItemPointerData tid;
	int64 epoch;
	bool released; /* there is no holder */
} SheetmetaOwner;

static void
sheetmeta_find_owner(int64 sheet_id, Snapshot snapshot, SheetmetaOwner *owner)
{
	StorageScan scan;
	StorageKey key = sheetmeta_key(sheet_id);

	memset(owner, 0, sizeof(*owner));
	storage_scan_begin(&scan, STORAGE_OWNERSHIP, snapshot, &key, 1);
	owner->found = storage_scan_next(&scan, ForwardScanDirection);
	if (owner->found)
	{
		bool copy;

		owner->tid = scan.slot->tts_tid;
		owner->epoch = storage_int64(&scan, OWNER_EPOCH);
		owner->released = VARSIZE_ANY_EXHDR(storage_bytes(&scan, OWNER_HOLDER, &copy)) == 0;
	}
	storage_scan_end(&scan);
}

static void
sheetmeta_put_owner(int64 sheet_id, int64 epoch, const char *holder, Relation rel, SheetmetaOwner *owner)
{
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[OWNER_SHEET_ID - 1] = Int64GetDatum(sheet_id);
	values[OWNER_EPOCH - 1] = Int64GetDatum(epoch);
	values[OWNER_HOLDER - 1] = CStringGetTextDatum(holder);
	if (owner->found)
		storage_update(STORAGE_OWNERSHIP, rel, &owner->tid, values, nulls);
	else
		storage_insert(STORAGE_OWNERSHIP, rel, values, nulls);
}

bool
sheetmeta_store_epoch(int64 sheet_id, int64 epoch, const char *holder)
{
	Relation rel = storage_open(STORAGE_OWNERSHIP, RowExclusiveLock);
	/* Behind the lock, for which it may have waited while all epochs were deleted. */
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	SheetmetaOwner owner;

	sheetmeta_find_owner(sheet_id, snapshot, &owner);
	sheetmeta_put_owner(sheet_id, epoch, holder != NULL ? holder : "", rel, &owner);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return owner.found && !owner.released;
}

bool
sheetmeta_release(int64 sheet_id, int64 epoch)
{
	Relation rel = storage_open(STORAGE_OWNERSHIP, RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	SheetmetaOwner owner;
	bool mine;

	sheetmeta_find_owner(sheet_id, snapshot, &owner);
	mine = owner.found && owner.epoch == epoch;
	if (mine && !owner.released)
		sheetmeta_put_owner(sheet_id, epoch, "", rel, &owner);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return mine;
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
