/*
 * trim.c - sheet.trim: removes the oldest edits and versions of a sheet.
 *
 * After a trim at version N the sheet's history begins there. What is left:
 *
 *   log_batch      edits after the seq of N        segment        segments after N
 *   version        versions from N on              version_tile   the tiles of these versions
 *
 * A version consists of the newest row of each tile up to it. So tile rows of older versions stay where no newer row
 * replaces them for N. A row of sheet.log_trim says where the history begins, which tells removed from lost.
 *
 * What is removed cannot be derived again. So the whole sheet is first compared with its log, and the version is read
 * back from what is left before the transaction may commit.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "journal/fsck/fsck.h"
#include "journal/journal.h"
#include "journal/store/property_store.h"
#include "journal/store/storage.h"
#include "journal/replay/replay_version.h"
#include "support/stoppoint.h"
#include "journal/store/trimmark.h"
#include "utils/builtins.h"
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

/* Readers must still get the cells that were committed as the version. */
static void
trim_check_version(int64 sheet_id, const HistoryVersion *version)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;
	bytea *properties;

	if (!replay_version(sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	properties = property_store_read_version(sheet_id, version->version_id, snapshot);
	UnregisterSnapshot(snapshot);
	if ((int64) (grid_digest(grid) + property_store_digest(properties)) != version->digest)
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
trim_segment_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, SEGMENT_SEGMENT_ID) <= ((const HistoryVersion *) version)->version_id;
}

static bool
trim_version_is_old(StorageScan *scan, const void *version)
{
	return storage_int64(scan, VERSION_VERSION_ID) < ((const HistoryVersion *) version)->version_id;
}

typedef struct TrimTiles
{
	int64 sheet_id;
	int64 version_id; /* the oldest version from now on */
	Snapshot snapshot;
} TrimTiles;

/* Returns whether the version consists of a newer row of the same tile. */
static bool
trim_tile_is_old(StorageScan *scan, const void *arg)
{
	const TrimTiles *tiles = arg;
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, tiles->sheet_id},
						 {2, BTEqualStrategyNumber, true, storage_int32(scan, VERSION_TILE_ROW)},
						 {3, BTEqualStrategyNumber, true, storage_int32(scan, VERSION_TILE_COL)},
						 {4, BTLessEqualStrategyNumber, false, tiles->version_id}};
	StorageScan newest;
	bool old;

	storage_scan_begin(&newest, STORAGE_VERSION_TILE, tiles->snapshot, keys, 4);
	old = storage_scan_next(&newest, BackwardScanDirection) &&
		  storage_int64(&newest, VERSION_TILE_VERSION_ID) > storage_int64(scan, VERSION_TILE_VERSION_ID);
	storage_scan_end(&newest);
	return old;
}

static void
trim_remove(int64 sheet_id, const HistoryVersion *version)
{
	TrimTiles tiles = {sheet_id, version->version_id, RegisterSnapshot(writer_snapshot())};

	(void) storage_delete_rows(STORAGE_LOG_BATCH, sheet_id, trim_batch_is_old, version);
	(void) storage_delete_rows(STORAGE_SEGMENT, sheet_id, trim_segment_is_old, version);
	(void) storage_delete_rows(STORAGE_VERSION, sheet_id, trim_version_is_old, version);
	(void) storage_delete_rows(STORAGE_VERSION_TILE, sheet_id, trim_tile_is_old, &tiles);
	UnregisterSnapshot(tiles.snapshot);
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
	/* The transaction's own edits are read from the versions before them, which the trim might remove. */
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
