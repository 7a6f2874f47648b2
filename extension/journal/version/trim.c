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

#include "access/stratnum.h"
#include "access/xact.h"
#include "journal/fsck/fsck.h"
#include "journal/journal.h"
#include "journal/store/remove.h"
#include "journal/replay/replay_version.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/trim.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

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
	FsckCall check = {.sheet_id = ws->sheet_id, .full = true, .report = trim_found};
	ReplayVersion version;
	TrimMark mark;

	trim_find_version(ws, cid, &version, &mark);
	if (cid == mark.cid)
		return 0;
	(void) fsck_sheet(&check);
	STOP_POINT("trim-checked");
	trim_remove(ws->sheet_id, &version);
	trim_store(ws->sheet_id, version.cid, version.seq, uid);
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
	storage_lock_for_versions();
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
