/*
 * version.c - making versions: sheet.create, sheet.commit, sheet.rollback and the background worker's versions; and
 * sheet.purge.
 *
 * Making a version has three phases, in one transaction (version_seal):
 *
 *   1. A commit record ends the open segment. It is an edit that holds the account, the label and the cause.
 *   2. The next segment is opened.
 *   3. The version is stored: its row, and those tiles that the sealed segment has touched.
 *
 * A person's commit or rollback does all its work under the sheet lock. For an automatic version writers wait only for
 * these three phases. The cells are built before, without the lock: see journal_save_version().
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/journal.h"
#include "journal/replay/batches.h"
#include "journal/replay/replay.h"
#include "journal/store/history.h"
#include "journal/store/property_store.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "journal/store/trimmark.h"
#include "journal/store/version_store.h"
#include "journal/version/rollback_edits.h"
#include "journal/version/version_cells.h"
#include "journal/write/base.h"
#include "journal/write/edit_life.h"
#include "journal/write/epoch.h"
#include "miscadmin.h"
#include "support/stoppoint.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define VERSION_EDIT_CELLS 64
#define VERSION_TILE_CELLS 4096
/* More than any edit takes in the log: two contents, a style, numbers. */
#define VERSION_EDIT_BYTES (2 * SHEET_MAX_CONTENT_BYTES + SHEET_MAX_STYLE_BYTES + 64)

/* Who makes a version, and why. */
typedef struct VersionOrigin
{
	uint64 uid;		   /* 0: nobody */
	const char *label; /* NULL: none */
	int64 epoch;	   /* 0: none */
	VersionCause cause;
} VersionOrigin;

/* ---- sheet.create ---- */

/* Appends one edit that the journal makes itself. */
static void
version_append_one(WriterSheet *ws, const Edit *edit, int64 epoch, AppendResult *result)
{
	Edit own = *edit;
	AppendCall call = {.edits = &own, .nedits = 1, .epoch = epoch};

	edit_life_append(ws, &call, result);
}

void
journal_create(int64 sheet_id, uint64 uid, uint32 rows, uint32 cols)
{
	WriterSheet *ws;
	AppendResult result;
	Edit edit = {.kind = EDIT_RESIZE, .uid = uid, .row = rows - 1, .col = cols - 1, .content = {"", 0}};

	if (rows < 1 || rows > SHEET_MAX_ROWS || cols < 1 || cols > SHEET_MAX_COLS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a sheet has 1 to %d rows and 1 to %d columns", SHEET_MAX_ROWS, SHEET_MAX_COLS)));
	ws = writer_open(sheet_id);
	if (ws->meta.segment_id != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("sheet " INT64_FORMAT " has a log already", sheet_id)));
	(void) base_find_tiles(ws, NULL, 0, NULL);
	writer_begin_change(ws, 0);
	ws->meta.segment_id = 1;
	ws->meta.log_first_seq = 1;
	history_store_segment(sheet_id, 1, 1, timeconv_to_unix(GetCurrentTimestamp()));
	STOP_POINT("create-head");
	version_append_one(ws, &edit, 0, &result);
}

/* ---- the three phases ---- */

/* Returns the sheet's present cells. Without own edits that is the grid before them. With own edits it is built from
 * storage, also when they stage no cells, as rows do that are inserted or deleted at the end. */
static const Grid *
version_present(WriterSheet *ws)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot;
	Grid *grid = NULL;
	int64 seq;

	if (ws->meta.last_seq == ws->base_seq)
		return base_whole_grid(ws);
	snapshot = RegisterSnapshot(writer_snapshot());
	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	return grid;
}

/*
 * Makes a version and returns its number. The grid has the tiles that the open segment has touched, as they are now,
 * and the sheet's extent and maps; the digest is of all cells. Caller must hold the sheet lock.
 */
static int64
version_seal(WriterSheet *ws, const VersionOrigin *origin, const Grid *grid, uint64 digest, TileSet *tiles)
{
	Edit record = {.kind = EDIT_COMMIT, .uid = origin->uid, .row = origin->cause, .content = {"", 0}};
	int64 version_id = ws->meta.segment_id;
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	bytea *properties = property_store_read(ws->sheet_id, snapshot);
	AppendResult result;
	VersionHead head;

	UnregisterSnapshot(snapshot);

	if (origin->label != NULL)
		record.content = (EditText){origin->label, strlen(origin->label)};
	version_append_one(ws, &record, origin->epoch, &result);
	STOP_POINT("commit-record");

	writer_begin_change(ws, 0);
	history_store_segment(ws->sheet_id, version_id + 1, result.last_seq + 1, ws->meta.last_at);
	STOP_POINT("commit-head");
	head = (VersionHead){ws->sheet_id, version_id,	   ws->meta.last_seq, ws->meta.last_at,
						 origin->uid,  record.content, origin->cause};
	version_store_write(&head, grid, digest, tiles, properties);
	STOP_POINT("commit-version");
	ws->meta.segment_id = version_id + 1;
	ws->meta.log_first_seq = result.last_seq + 1;
	ws->meta.log_bytes = 0;
	ws->cause = origin->cause;
	CommandCounterIncrement();
	return version_id;
}

/* ---- versions that people make ---- */

/*
 * Returns whether building on the version before costs less than taking the sheet's present cells, which are mostly in
 * the cache, and digesting all of them. An edit costs about as much as digesting VERSION_EDIT_CELLS, and a tile that
 * has to be read as VERSION_TILE_CELLS. The extent stands for the number of cells.
 */
static bool
version_is_small(WriterSheet *ws, const HistoryVersion *before, TileSet *touched)
{
	int64 edits = ws->meta.last_seq - ws->meta.log_first_seq + 1;

	return before->version_id == ws->meta.segment_id - 1 && before->seq == ws->meta.log_first_seq - 1 &&
		   edits * VERSION_EDIT_CELLS + hash_get_num_entries(touched) * VERSION_TILE_CELLS <=
			   (int64) before->rows * before->cols;
}

static int64
version_commit(WriterSheet *ws, const VersionOrigin *origin)
{
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	TileSet *tiles = version_touched_tiles(ws->sheet_id, ws->meta.log_first_seq - 1, ws->meta.last_seq, snapshot);
	HistoryVersion before;
	int64 version_id;

	if (history_find_version(ws->sheet_id, HISTORY_NEWEST, snapshot, &before) && version_is_small(ws, &before, tiles))
	{
		VersionCells cells;

		version_cells_begin(&cells, ws->sheet_id, &before, snapshot);
		version_cells_catch_up(&cells, snapshot);
		version_id = version_seal(ws, origin, cells.grid, version_cells_digest(&cells), cells.tiles);
		version_cells_free(&cells);
	}
	else
	{
		const Grid *grid = version_present(ws);

		version_id = version_seal(ws, origin, grid, grid_digest(grid), tiles);
	}
	UnregisterSnapshot(snapshot);
	tileset_free(tiles);
	return version_id;
}

/* Returns whether a person has made a version of the present cells. An automatic version does not count. */
static bool
version_is_made(WriterSheet *ws)
{
	Snapshot snapshot;
	HistoryVersion version;
	bool found;

	if (ws->meta.last_seq >= ws->meta.log_first_seq)
		return false;
	snapshot = RegisterSnapshot(writer_snapshot());
	found = history_find_version(ws->sheet_id, HISTORY_NEWEST, snapshot, &version);
	UnregisterSnapshot(snapshot);
	return !found || !version_is_automatic(version.cause);
}

/* Takes the sheet lock. */
static WriterSheet *
version_open(int64 sheet_id, int64 epoch)
{
	WriterSheet *ws;

	storage_lock_for_versions();
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	epoch_check(ws, epoch, NULL);
	return ws;
}

void
journal_check_label(const char *label)
{
	if (strlen(label) > SHEET_MAX_STYLE_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a version's label has at most %d bytes", SHEET_MAX_STYLE_BYTES)));
}

int64
journal_commit(int64 sheet_id, uint64 uid, const char *label, int64 epoch)
{
	VersionOrigin origin = {.uid = uid, .label = label, .epoch = epoch, .cause = VERSION_BY_COMMIT};
	WriterSheet *ws;
	MemoryContext context, old;
	int64 version_id;

	writer_require_writable("sheet.commit()");
	if (label != NULL)
		journal_check_label(label);
	ws = version_open(sheet_id, epoch);
	if (version_is_made(ws))
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'N', '0', '0', '1')),
						errmsg("nothing has changed in sheet " INT64_FORMAT " since version " INT64_FORMAT, sheet_id,
							   ws->meta.segment_id - 1)));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet commit", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	version_id = version_commit(ws, &origin);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return version_id;
}

/* ---- rollback ---- */

/* Steps 2 to 5 of journal_rollback(), in the current memory context. */
static int64
rollback_to(WriterSheet *ws, const HistoryVersion *version, uint64 uid, int64 epoch)
{
	VersionOrigin origin = {.uid = uid, .epoch = epoch, .cause = VERSION_BY_ROLLBACK};

	rollback_edits(ws, version, version_present(ws), uid, epoch);
	STOP_POINT("rollback-edits");
	origin.label = psprintf("rollback to version " INT64_FORMAT, version->version_id);
	return version_commit(ws, &origin);
}

/*
 * A rollback removes nothing. It appends the edits that bring the version's cells back, so the log keeps what was there
 * in between, and the rollback can itself be rolled back. The steps, in one transaction:
 *
 *   1. Take the sheet lock; find the version.
 *   2. Read the version's cells from its tiles, and the sheet's present cells.
 *   3. List the edits: EDIT_ROLLBACK, which names the version; EDIT_RESIZE to its extent; EDIT_PROPERTY; EDIT_SET or
 *      EDIT_STYLE for each cell that differs, and an empty EDIT_SET for each cell that the version does not have.
 *   4. Append them in batches, as anybody's edits. Followers and gateways get them like any others.
 *   5. Make a new version of the result, labelled "rollback to version N". Its number is returned.
 */
int64
journal_rollback(int64 sheet_id, int64 version_id, uint64 uid, int64 epoch)
{
	WriterSheet *ws;
	MemoryContext context, old;
	Snapshot snapshot;
	HistoryVersion version;
	int64 new_version_id;

	writer_require_writable("sheet.rollback()");
	ws = version_open(sheet_id, epoch);
	snapshot = RegisterSnapshot(writer_snapshot());
	if (!history_find_version(sheet_id, version_id, snapshot, &version) || version.version_id != version_id)
		trim_no_version(sheet_id, version_id, snapshot);
	UnregisterSnapshot(snapshot);
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet rollback", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	new_version_id = rollback_to(ws, &version, uid, epoch);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return new_version_id;
}

/* ---- automatic versions ---- */

#define AUTOMATIC_ROUNDS 3
#define AUTOMATIC_FEW	 1000 /* edits that may be left for the time under the lock */

typedef struct AutomaticVersion
{
	int64 sheet_id;
	int64 segment_id; /* the open segment */
	int64 first_seq;  /* its first seq */
	VersionCells cells;
} AutomaticVersion;

static Snapshot
automatic_snapshot(void)
{
	return RegisterSnapshot(GetLatestSnapshot());
}

/* Decides whether a version is needed now, and builds its cells as the snapshot sees them. */
static JournalVersion
automatic_build(AutomaticVersion *automatic, const JournalVersionCall *call, Snapshot snapshot, TimestampTz *due)
{
	HistoryVersion before = {.rows = 1, .cols = 1};
	HistoryLast last;
	TimestampTz now;
	bool found;

	history_last_edit(call->sheet_id, snapshot, &last);
	if (!history_open_segment(call->sheet_id, snapshot, &automatic->segment_id, &automatic->first_seq) ||
		last.last_seq < automatic->first_seq || call->seq < automatic->first_seq)
		return JOURNAL_VERSION_NEEDLESS;
	found = history_find_version(call->sheet_id, HISTORY_NEWEST, snapshot, &before);
	/* Tiles that only a lost version has would be missing from the new one, too. */
	if ((found ? before.version_id : 0) != automatic->segment_id - 1)
		history_corrupted(call->sheet_id, "the newest version is not the one before segment", automatic->segment_id,
						  EDIT_OK);
	if (found)
		*due = TimestampTzPlusMilliseconds(before.at, call->interval_ms);
	/* After the clock was set back, the time of the version before is in the future: nothing is known of the interval.
	 */
	now = GetCurrentTimestamp();
	if (found && before.at <= now && *due > now)
		return JOURNAL_VERSION_EARLY;
	version_cells_begin(&automatic->cells, call->sheet_id, &before, snapshot);
	version_cells_catch_up(&automatic->cells, snapshot);
	return JOURNAL_VERSION_MADE;
}

/* Adds what was committed since. Returns false when somebody else has sealed the segment meanwhile: then edits after
 * ours may have been trimmed. */
static bool
automatic_catch_up(AutomaticVersion *automatic)
{
	Snapshot snapshot = automatic_snapshot();
	int64 segment_id, first_seq;
	bool open = history_open_segment(automatic->sheet_id, snapshot, &segment_id, &first_seq) &&
				segment_id == automatic->segment_id;

	if (open)
		version_cells_catch_up(&automatic->cells, snapshot);
	UnregisterSnapshot(snapshot);
	return open;
}

/* Takes the sheet lock. Returns false when somebody else has sealed the segment, or the sheet is in the trash or gone.
 */
static bool
automatic_seal(AutomaticVersion *automatic, VersionCause cause, TimestampTz *locked_at)
{
	VersionOrigin origin = {.cause = cause};
	WriterSheet *ws = writer_open(automatic->sheet_id);

	*locked_at = GetCurrentTimestamp();
	if (!ws->meta.exists || ws->meta.trashed || !automatic_catch_up(automatic))
		return false;
	if (automatic->cells.seq != ws->meta.last_seq)
		history_corrupted(automatic->sheet_id, "the log ends before seq", ws->meta.last_seq, EDIT_OK);
	STOP_POINT("automatic-locked");
	(void) version_seal(ws, &origin, automatic->cells.grid, version_cells_digest(&automatic->cells),
						automatic->cells.tiles);
	return true;
}

/*
 * Writers wait only from the third step on:
 *
 *   1. Without the lock, build the tiles that the open segment has touched, in private memory and from storage,
 *      past the cache, which may just have evicted the sheet (version_cells.c).
 *   2. Still without the lock, add what was committed meanwhile, until that is little.
 *   3. Take the sheet lock, add the last few edits, and make the version.
 *
 * Seqs have no gaps and become visible in their order, so what was committed meanwhile is what follows the last seq of
 * the cells. A person may commit a version at any time before the third step; then nothing is left to do.
 */
JournalVersion
journal_save_version(const JournalVersionCall *call, TimestampTz *due, TimestampTz *locked_at)
{
	AutomaticVersion automatic = {.sheet_id = call->sheet_id};
	Snapshot snapshot = automatic_snapshot();
	JournalVersion result = automatic_build(&automatic, call, snapshot, due);
	int64 edits = AUTOMATIC_FEW;

	UnregisterSnapshot(snapshot);
	if (result != JOURNAL_VERSION_MADE)
		return result;
	STOP_POINT("automatic-built");
	for (int i = 0; edits >= AUTOMATIC_FEW && i < AUTOMATIC_ROUNDS; i++)
	{
		edits = -automatic.cells.seq;
		if (!automatic_catch_up(&automatic))
			return JOURNAL_VERSION_NEEDLESS;
		edits += automatic.cells.seq;
	}
	return automatic_seal(&automatic, call->cause, locked_at) ? JOURNAL_VERSION_MADE : JOURNAL_VERSION_NEEDLESS;
}

/* Returns whether the batches from a seq on have so many bytes. */
static bool
version_has_bytes(int64 sheet_id, int64 first_seq, int64 bytes, Snapshot snapshot)
{
	BatchScan *batches = batches_begin(sheet_id, first_seq, PG_INT64_MAX, false, snapshot);
	StoredBatch batch;

	while (bytes > 0 && batches_next(batches, &batch))
	{
		CHECK_FOR_INTERRUPTS();
		bytes -= batches_size(batches);
	}
	batches_end(batches);
	return bytes <= 0;
}

int64
journal_long_segment(int64 sheet_id, int64 edits, int64 bytes)
{
	Snapshot snapshot = automatic_snapshot();
	HistoryLast last;
	int64 segment_id, first_seq, length = 0;
	bool is_long;

	history_last_edit(sheet_id, snapshot, &last);
	if (history_open_segment(sheet_id, snapshot, &segment_id, &first_seq))
		length = last.last_seq - first_seq + 1;
	is_long = (edits > 0 && length >= edits) || (bytes > 0 && length > bytes / VERSION_EDIT_BYTES &&
												 version_has_bytes(sheet_id, first_seq, bytes, snapshot));
	UnregisterSnapshot(snapshot);
	return is_long ? last.last_seq : 0;
}

/* ---- the end of a sheet ---- */

void
journal_purge(int64 sheet_id)
{
	static const StorageTable tables[] = {STORAGE_LOG_BATCH,	STORAGE_SEGMENT,   STORAGE_VERSION,
										  STORAGE_VERSION_TILE, STORAGE_OWNERSHIP, STORAGE_CLIENT,
										  STORAGE_PROPERTY_SET, STORAGE_LINK_RECT, STORAGE_REFERRING};
	WriterSheet *ws;

	writer_require_writable("sheet.purge()");
	ws = writer_open(sheet_id);
	/* Until the commit is published, readers must not use the cached cells. */
	writer_begin_change(ws, 0);
	for (int i = 0; i < lengthof(tables); i++)
		(void) storage_delete_rows(tables[i], sheet_id, NULL, NULL);
	trim_forget(sheet_id);
	CommandCounterIncrement();
	writer_forget(ws);
}

void
journal_lock_sheet(int64 sheet_id)
{
	writer_lock_sheet(sheet_id);
}

/* The transaction counts as the sheet's writer from here on, so that it does not load its own uncommitted changes of
 * the relations into the shared grid. */
void
journal_forget(int64 sheet_id)
{
	WriterSheet *ws = writer_open(sheet_id);

	writer_begin_change(ws, 0);
	writer_forget(ws);
}
