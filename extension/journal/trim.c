/*
 * trim.c - removing the oldest edits and versions of a sheet, for those who must not or will not keep all of them.
 *
 * After a trim at version cid the sheet's history begins there:
 *
 *   log_batch        edits after the version's seq          log_head          logs after cid
 *   checkpoint       versions from cid on                   checkpoint_tile   what those consist of
 *
 * A version is the newest row of each tile up to it, so rows of older versions stay where nothing newer covers them for
 * cid. A row of sheet.log_trim says where the history begins: whoever looks can tell removed from lost. What is removed
 * can be derived from nothing, so all of the sheet is compared with its log first, and the version is read back from
 * what is left before the transaction may commit.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "fsck.h"
#include "journal.h"
#include "remove.h"
#include "replay.h"
#include "stoppoint.h"
#include "storage.h"
#include "trim.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "writer.h"

/* ---- the mark: sheet.log_trim ---- */

typedef enum TrimColumn
{
	TRIM_SHEET_ID = 1,
	TRIM_CID,
	TRIM_SEQ,
	TRIM_AT,
	TRIM_UID,
	TRIM_COLUMNS = TRIM_UID
} TrimColumn;

static Relation
trim_open(LOCKMODE lockmode)
{
	return table_open(get_relname_relid("log_trim", get_namespace_oid("sheet", false)), lockmode);
}

static SysScanDesc
trim_scan(Relation rel, int64 sheet_id, Snapshot snapshot)
{
	ScanKeyData key;

	ScanKeyInit(&key, TRIM_SHEET_ID, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(sheet_id));
	return systable_beginscan(rel, RelationGetPrimaryKeyIndex(rel), true, snapshot, 1, &key);
}

static Datum
trim_column(Relation rel, HeapTuple row, TrimColumn column)
{
	bool isnull;

	return heap_getattr(row, column, RelationGetDescr(rel), &isnull);
}

/* The last one counts. */
void
trim_mark(int64 sheet_id, Snapshot snapshot, TrimMark *mark)
{
	Relation rel = trim_open(AccessShareLock);
	SysScanDesc scan = trim_scan(rel, sheet_id, snapshot);
	HeapTuple row;

	memset(mark, 0, sizeof(*mark));
	while ((row = systable_getnext(scan)) != NULL)
	{
		int64 cid = DatumGetInt64(trim_column(rel, row, TRIM_CID));

		if (cid <= mark->cid)
			continue;
		mark->cid = cid;
		mark->seq = DatumGetInt64(trim_column(rel, row, TRIM_SEQ));
		mark->at = DatumGetTimestampTz(trim_column(rel, row, TRIM_AT));
	}
	systable_endscan(scan);
	table_close(rel, NoLock);
}

static void
trim_store(int64 sheet_id, const ReplayVersion *version, uint64 uid)
{
	Relation rel = trim_open(RowExclusiveLock);
	Datum values[TRIM_COLUMNS] = {Int64GetDatum(sheet_id), Int64GetDatum(version->cid), Int64GetDatum(version->seq),
								  TimestampTzGetDatum(GetCurrentTimestamp()), Int64GetDatum((int64) uid)};
	bool nulls[TRIM_COLUMNS] = {0};

	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values, nulls));
	table_close(rel, NoLock);
}

void
trim_forget(int64 sheet_id)
{
	Relation rel = trim_open(RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = trim_scan(rel, sheet_id, snapshot);
	HeapTuple row;

	while ((row = systable_getnext(scan)) != NULL)
		CatalogTupleDelete(rel, &row->t_self);
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}

/* ---- what is said of what is not there ---- */

static void
trim_missing(int64 sheet_id, const char *what, int64 number, int64 first, const TrimMark *mark)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("sheet " INT64_FORMAT " has no %s " INT64_FORMAT, sheet_id, what, number),
					number >= 1 && number < first
						? errdetail("It was trimmed on %s; %s " INT64_FORMAT " is the oldest that is kept.",
									timestamptz_to_str(mark->at), what, first)
						: 0));
}

void
trim_no_version(int64 sheet_id, int64 cid, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	trim_missing(sheet_id, "version", cid, mark.cid, &mark);
	pg_unreachable();
}

void
trim_no_log(int64 sheet_id, int64 lid, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	trim_missing(sheet_id, "log", lid, mark.cid > 0 ? mark.cid + 1 : 0, &mark);
	pg_unreachable();
}

void
trim_check_since(int64 sheet_id, int64 since, Snapshot snapshot)
{
	TrimMark mark;

	trim_mark(sheet_id, snapshot, &mark);
	if (since >= mark.seq)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg("the edits of sheet " INT64_FORMAT " after seq " INT64_FORMAT " have been trimmed", sheet_id, since),
		 errdetail("The log begins after seq " INT64_FORMAT ", with version " INT64_FORMAT ".", mark.seq, mark.cid),
		 errhint("Read the cells again, and go on from their seq.")));
}

/* ---- checking ---- */

static void
trim_found(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("sheet " INT64_FORMAT " is not sound: nothing was trimmed", sheet_id),
					errdetail("%s: %s", place, what), errhint("Run sheet.fsck(" INT64_FORMAT ", true).", sheet_id)));
}

/* The version as readers build it must be the one that was committed. */
static void
trim_check_version(int64 sheet_id, const ReplayVersion *version)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;

	if (!replay_version(sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	if ((int64) grid_digest(grid) != version->digest)
		trim_found(NULL, sheet_id, FSCK_ERROR, "the cells cannot be read back from the version's tiles",
				   psprintf("version " INT64_FORMAT, version->cid), false);
	grid_free(&allocator, grid);
}

static void
trim_find_version(WriterSheet *ws, int64 cid, ReplayVersion *version, TrimMark *mark)
{
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());

	trim_mark(ws->sheet_id, snapshot, mark);
	if (!replay_find_version(ws->sheet_id, cid, snapshot, version) || version->cid != cid)
		trim_no_version(ws->sheet_id, cid, snapshot);
	UnregisterSnapshot(snapshot);
}

/* ---- removing ---- */

static bool
trim_batch_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, LOG_BATCH_LAST_SEQ) <= ((const ReplayVersion *) version)->seq;
}

static bool
trim_head_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, LOG_HEAD_LID) <= ((const ReplayVersion *) version)->cid;
}

static bool
trim_version_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, CHECKPOINT_CID) < ((const ReplayVersion *) version)->cid;
}

typedef struct TileRow
{
	int32 row, col; /* the key */
	int64 cid;		/* the newest up to the version */
} TileRow;

#define TILE_KEY_SIZE offsetof(TileRow, cid)

/* Of each tile, which row the version consists of. */
static HTAB *
trim_newest_tiles(int64 sheet_id, int64 cid)
{
	HASHCTL info = {.keysize = TILE_KEY_SIZE, .entrysize = sizeof(TileRow), .hcxt = CurrentMemoryContext};
	HTAB *newest = hash_create("pg_sheet newest tiles", 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;

	storage_scan_begin(&scan, STORAGE_CHECKPOINT_TILE, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		TileRow tile = {storage_int32(&scan, CHECKPOINT_TILE_ROW), storage_int32(&scan, CHECKPOINT_TILE_COL),
						storage_int64(&scan, CHECKPOINT_TILE_CID)};
		TileRow *held;
		bool found;

		if (tile.cid > cid)
			continue;
		held = hash_search(newest, &tile, HASH_ENTER, &found);
		held->cid = found ? Max(held->cid, tile.cid) : tile.cid;
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return newest;
}

static bool
trim_tile_is_old(StorageScan *scan, const void *newest)
{
	TileRow tile = {storage_int32(scan, CHECKPOINT_TILE_ROW), storage_int32(scan, CHECKPOINT_TILE_COL), 0};
	TileRow *held = hash_search(unconstify(HTAB *, (const HTAB *) newest), &tile, HASH_FIND, NULL);

	return held != NULL && storage_int64(scan, CHECKPOINT_TILE_CID) < held->cid;
}

static void
trim_remove(int64 sheet_id, const ReplayVersion *version)
{
	HTAB *newest = trim_newest_tiles(sheet_id, version->cid);

	(void) remove_rows(STORAGE_LOG_BATCH, sheet_id, trim_batch_is_old, version);
	(void) remove_rows(STORAGE_LOG_HEAD, sheet_id, trim_head_is_old, version);
	(void) remove_rows(STORAGE_CHECKPOINT, sheet_id, trim_version_is_old, version);
	(void) remove_rows(STORAGE_CHECKPOINT_TILE, sheet_id, trim_tile_is_old, newest);
	hash_destroy(newest);
}

static int64
trim_to_version(WriterSheet *ws, int64 cid, uint64 uid)
{
	ReplayVersion version;
	TrimMark mark;

	trim_find_version(ws, cid, &version, &mark);
	if (cid == mark.cid)
		return 0;
	(void) fsck_sheet(ws->sheet_id, true, false, trim_found, NULL);
	STOP_POINT("trim-checked");
	trim_remove(ws->sheet_id, &version);
	trim_store(ws->sheet_id, &version, uid);
	CommandCounterIncrement();
	trim_check_version(ws->sheet_id, &version);
	STOP_POINT("trim-done");
	return version.seq - mark.seq;
}

int64
journal_trim(int64 sheet_id, int64 cid, uint64 uid)
{
	MemoryContext context, old;
	WriterSheet *ws;
	int64 removed;

	writer_require_writable("sheet.trim()");
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	/* Own edits are looked up from versions before them, which might go. */
	if (writer_has_changes(ws))
		ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
						errmsg("cannot trim sheet " INT64_FORMAT " in a transaction that has changed it", sheet_id),
						errhint("Commit first.")));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet trim", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	removed = trim_to_version(ws, cid, uid);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return removed;
}
