/*
 * trim.c - removing the oldest edits and versions of a sheet, for those who must not or will not keep all of them.
 *
 * After a trim at version version_id the sheet's history begins there:
 *
 *   log_batch        edits after the version's seq          segment          logs after version_id
 *   checkpoint       versions from version_id on                   version_tile   what those consist of
 *
 * A version is the newest row of each tile up to it, so rows of older versions stay where nothing newer covers them for
 * version_id. A row of sheet.log_trim says where the history begins: whoever looks can tell removed from lost. What is
 * removed can be derived from nothing, so all of the sheet is compared with its log first, and the version is read back
 * from what is left before the transaction may commit.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "journal/fsck/fsck.h"
#include "journal/journal.h"
#include "journal/store/storage.h"
#include "journal/replay/replay_version.h"
#include "support/stoppoint.h"
#include "journal/store/trimmark.h"
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
trim_check_version(int64 sheet_id, const HistoryVersion *version)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;

	if (!replay_version(sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	if ((int64) grid_digest(grid) != version->digest)
		trim_found(NULL, sheet_id, FSCK_ERROR, "the cells cannot be read back from the version's tiles",
				   psprintf("version " INT64_FORMAT, version->version_id), false);
	grid_free(&allocator, grid);
}

static void
trim_find_version(WriterSheet *ws, int64 version_id, HistoryVersion *version, TrimMark *mark)
{
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());

	trim_mark(ws->sheet_id, snapshot, mark);
	if (!history_find_version(ws->sheet_id, version_id, snapshot, version) || version->version_id != version_id)
		trim_no_version(ws->sheet_id, version_id, snapshot);
	UnregisterSnapshot(snapshot);
}

/* ---- removing ---- */

static bool
trim_batch_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, LOG_BATCH_LAST_SEQ) <= ((const HistoryVersion *) version)->seq;
}

static bool
trim_head_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, SEGMENT_SEGMENT_ID) <= ((const HistoryVersion *) version)->version_id;
}

static bool
trim_version_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, VERSION_VERSION_ID) < ((const HistoryVersion *) version)->version_id;
}

typedef struct TileRow
{
	int32 row, col;	  /* the key */
	int64 version_id; /* the newest up to the version */
} TileRow;

#define TILE_KEY_SIZE offsetof(TileRow, version_id)

/* Of each tile, which row the version consists of. */
static HTAB *
trim_newest_tiles(int64 sheet_id, int64 version_id)
{
	HASHCTL info = {.keysize = TILE_KEY_SIZE, .entrysize = sizeof(TileRow), .hcxt = CurrentMemoryContext};
	HTAB *newest = hash_create("pg_sheet newest tiles", 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;

	storage_scan_begin(&scan, STORAGE_VERSION_TILE, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		TileRow tile = {storage_int32(&scan, VERSION_TILE_ROW), storage_int32(&scan, VERSION_TILE_COL),
						storage_int64(&scan, VERSION_TILE_VERSION_ID)};
		TileRow *held;
		bool found;

		if (tile.version_id > version_id)
			continue;
		held = hash_search(newest, &tile, HASH_ENTER, &found);
		held->version_id = found ? Max(held->version_id, tile.version_id) : tile.version_id;
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return newest;
}

static bool
trim_tile_is_old(StorageScan *scan, const void *newest)
{
	TileRow tile = {storage_int32(scan, VERSION_TILE_ROW), storage_int32(scan, VERSION_TILE_COL), 0};
	TileRow *held = hash_search(unconstify(HTAB *, (const HTAB *) newest), &tile, HASH_FIND, NULL);

	return held != NULL && storage_int64(scan, VERSION_TILE_VERSION_ID) < held->version_id;
}

static void
trim_remove(int64 sheet_id, const HistoryVersion *version)
{
	HTAB *newest = trim_newest_tiles(sheet_id, version->version_id);

	(void) storage_delete_rows(STORAGE_LOG_BATCH, sheet_id, trim_batch_is_old, version);
	(void) storage_delete_rows(STORAGE_SEGMENT, sheet_id, trim_head_is_old, version);
	(void) storage_delete_rows(STORAGE_VERSION, sheet_id, trim_version_is_old, version);
	(void) storage_delete_rows(STORAGE_VERSION_TILE, sheet_id, trim_tile_is_old, newest);
	hash_destroy(newest);
}

static int64
trim_to_version(WriterSheet *ws, int64 version_id, uint64 uid)
{
	FsckCall check = {.sheet_id = ws->sheet_id, .full = true, .report = trim_found};
	HistoryVersion version;
	TrimMark mark;

	trim_find_version(ws, version_id, &version, &mark);
	if (version_id == mark.version_id)
		return 0;
	(void) fsck_sheet(&check);
	STOP_POINT("trim-checked");
	trim_remove(ws->sheet_id, &version);
	trim_store(ws->sheet_id, version.version_id, version.seq, uid);
	CommandCounterIncrement();
	trim_check_version(ws->sheet_id, &version);
	STOP_POINT("trim-done");
	return version.seq - mark.seq;
}

int64
journal_trim(int64 sheet_id, int64 version_id, uint64 uid)
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
	removed = trim_to_version(ws, version_id, uid);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return removed;
}
