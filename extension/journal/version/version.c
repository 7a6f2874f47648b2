/*
 * version.c - the life of a sheet's logs: birth, versions, rollback, purge.
 *
 * Committing a version: (1) a commit record ends the open log, (2) the next log is opened, (3) the checkpoint is
 * stored, as those tiles that the sealed log has touched. One transaction makes the three atomic.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/write/append.h"
#include "journal/store/version_store.h"
#include "journal/journal.h"
#include "journal/store/segment.h"
#include "journal/store/remove.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_log.h"
#include "journal/replay/replay_version.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "journal/store/trim.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/version/version.h"
#include "journal/version/version_cells.h"
#include "journal/write/writer.h"

#define VERSION_EDIT_CELLS 64
#define VERSION_TILE_CELLS 4096

/* ---- birth ---- */

/* One edit that the journal makes itself. */
static void
version_append_one(WriterSheet *ws, const Edit *edit, int64 epoch, AppendResult *result)
{
	Edit own = *edit;
	AppendCall call = {.edits = &own, .nedits = 1, .epoch = epoch};

	append_edits(ws, &call, result);
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
	(void) writer_prepare(ws, NULL, 0, NULL);
	(void) writer_begin_change(ws, 0);
	ws->meta.segment_id = 1;
	ws->meta.log_first_seq = 1;
	segment_write(sheet_id, 1, 1, timeconv_to_unix(GetCurrentTimestamp()));
	STOP_POINT("create-head");
	version_append_one(ws, &edit, 0, &result);
}

/* ---- committing a version ---- */

/* The sheet's present state. Without own edits it is the grid before them; with them it is built from storage: also
 * when they stage nothing, as rows that come or go at the end do. */
static const Grid *
version_present(WriterSheet *ws)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot;
	Grid *grid = NULL;
	int64 seq;

	if (ws->meta.last_seq == ws->base_seq)
		return writer_base(ws);
	snapshot = RegisterSnapshot(writer_snapshot());
	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	return grid;
}

int64
version_seal(WriterSheet *ws, const VersionNote *note, const Grid *grid, uint64 digest, TileSet *tiles)
{
	Edit record = {.kind = EDIT_COMMIT, .uid = note->uid, .row = note->cause, .content = {"", 0}};
	int64 version_id = ws->meta.segment_id;
	AppendResult result;
	VersionHead head;

	if (note->label != NULL)
		record.content = (EditText){note->label, strlen(note->label)};
	version_append_one(ws, &record, note->epoch, &result);
	STOP_POINT("commit-record");

	(void) writer_begin_change(ws, 0);
	segment_write(ws->sheet_id, version_id + 1, result.last_seq + 1, ws->meta.last_at);
	STOP_POINT("commit-head");
	head = (VersionHead){ws->sheet_id, version_id,	   ws->meta.last_seq, ws->meta.last_at,
						 note->uid,	   record.content, note->cause};
	version_store_write(&head, grid, digest, tiles);
	STOP_POINT("commit-checkpoint");
	ws->meta.segment_id = version_id + 1;
	ws->meta.log_first_seq = result.last_seq + 1;
	ws->meta.log_bytes = 0;
	ws->cause = note->cause;
	CommandCounterIncrement();
	return version_id;
}

/*
 * Is it better to build on the version before than to take the sheet's present state, which is mostly in the cache, and
 * to digest all of it? An edit costs about as much as digesting VERSION_EDIT_CELLS, and a tile that has to be read as
 * VERSION_TILE_CELLS. The extent stands for the number of cells.
 */
static bool
version_is_small(WriterSheet *ws, const ReplayVersion *before, TileSet *touched)
{
	int64 edits = ws->meta.last_seq - ws->meta.log_first_seq + 1;

	return before->version_id == ws->meta.segment_id - 1 && before->seq == ws->meta.log_first_seq - 1 &&
		   edits * VERSION_EDIT_CELLS + hash_get_num_entries(touched) * VERSION_TILE_CELLS <=
			   (int64) before->rows * before->cols;
}

static int64
version_commit(WriterSheet *ws, const VersionNote *note)
{
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	TileSet *tiles = version_touched_tiles(ws->sheet_id, ws->meta.log_first_seq - 1, ws->meta.last_seq, snapshot);
	ReplayVersion before;
	int64 version_id;

	if (replay_find_version(ws->sheet_id, REPLAY_NEWEST, snapshot, &before) && version_is_small(ws, &before, tiles))
	{
		VersionCells cells;

		version_cells_begin(&cells, ws->sheet_id, &before, snapshot);
		(void) version_cells_catch_up(&cells, snapshot);
		version_id = version_seal(ws, note, cells.grid, version_cells_digest(&cells), cells.tiles);
		version_cells_free(&cells);
	}
	else
	{
		const Grid *grid = version_present(ws);

		version_id = version_seal(ws, note, grid, grid_digest(grid), tiles);
	}
	UnregisterSnapshot(snapshot);
	tileset_free(tiles);
	return version_id;
}

/* Is there nothing to keep? A version that was made by itself does not keep people from making theirs. */
static bool
version_is_settled(WriterSheet *ws)
{
	Snapshot snapshot;
	ReplayVersion version;
	bool found;

	if (ws->meta.last_seq >= ws->meta.log_first_seq)
		return false;
	snapshot = RegisterSnapshot(writer_snapshot());
	found = replay_find_version(ws->sheet_id, REPLAY_NEWEST, snapshot, &version);
	UnregisterSnapshot(snapshot);
	return !found || !ckpt_is_automatic(version.cause);
}

static void
version_check_label(const char *label)
{
	if (label != NULL && strlen(label) > SHEET_MAX_STYLE_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a version's label has at most %d bytes", SHEET_MAX_STYLE_BYTES)));
}

static WriterSheet *
version_open(int64 sheet_id, int64 epoch)
{
	WriterSheet *ws;

	storage_lock_for_versions();
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	writer_check_epoch(ws, epoch, NULL);
	return ws;
}

int64
journal_commit(int64 sheet_id, uint64 uid, const char *label, int64 epoch)
{
	VersionNote note = {.uid = uid, .label = label, .epoch = epoch, .cause = CKPT_BY_COMMIT};
	WriterSheet *ws;
	MemoryContext context, old;
	int64 version_id;

	writer_require_writable("sheet.commit()");
	version_check_label(label);
	ws = version_open(sheet_id, epoch);
	if (version_is_settled(ws))
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'N', '0', '0', '1')),
						errmsg("nothing has changed in sheet " INT64_FORMAT " since version " INT64_FORMAT, sheet_id,
							   ws->meta.segment_id - 1)));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet commit", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	version_id = version_commit(ws, &note);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return version_id;
}

/* ---- rollback ---- */

typedef struct RollbackEdits
{
	Edit *edits;
	Size count, room;
	uint64 uid;
} RollbackEdits;

static void
rollback_add(RollbackEdits *list, EditKind kind, uint32 row, uint32 col, EditText content, EditText style)
{
	if (list->count == list->room)
	{
		list->room = Max(list->room * 2, 1024);
		list->edits = list->edits == NULL ? palloc(sizeof(Edit) * list->room)
										  : repalloc_huge(list->edits, sizeof(Edit) * list->room);
	}
	list->edits[list->count++] =
		(Edit){.kind = kind, .uid = list->uid, .row = row, .col = col, .content = content, .style = style};
}

static bool
rollback_same(const char *a, uint32 a_len, const char *b, uint32 b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* The edits that turn the present into the version. Their texts are the version's. */
static void
rollback_compare(const Grid *version, const Grid *present, RollbackEdits *list)
{
	GridScan scan;
	GridCell then, now;
	const EditText empty = {"", 0};

	grid_view_init(&scan, version, grid_axes(version), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &then))
	{
		EditText content = {then.content, then.content_len}, style = {then.style, then.style_len};
		bool held = grid_view_get(present, then.row, then.col, &now);
		bool same_content =
			held ? rollback_same(content.data, content.len, now.content, now.content_len) : content.len == 0;

		if (!same_content)
			rollback_add(list, EDIT_SET, then.row, then.col, content, style);
		else if (!held || !rollback_same(style.data, style.len, now.style, now.style_len))
			rollback_add(list, EDIT_STYLE, then.row, then.col, empty, style);
	}
	grid_view_init(&scan, present, grid_axes(present), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &now))
		if (!grid_view_get(version, now.row, now.col, &then))
			rollback_add(list, EDIT_SET, now.row, now.col, empty, empty);
}

/* In batches within the limits, as everybody's are. */
static void
rollback_append(WriterSheet *ws, RollbackEdits *list, int64 epoch)
{
	Size done = 0;

	while (done < list->count)
	{
		AppendCall call = {.edits = list->edits + done, .epoch = epoch};
		AppendResult result;
		Size bytes = 0;

		while (done < list->count && call.nedits < SHEET_MAX_BATCH_EDITS && bytes < SHEET_MAX_BATCH_BYTES / 2)
		{
			bytes += edit_size_bound(&list->edits[done++]);
			call.nedits++;
		}
		append_edits(ws, &call, &result);
	}
}

/* The version's grid lives as long as the transaction: the staged edits point into it. */
static int64
version_rollback(WriterSheet *ws, const ReplayVersion *version, uint64 uid, int64 epoch)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	VersionNote note = {.uid = uid, .epoch = epoch, .cause = CKPT_BY_ROLLBACK};
	RollbackEdits list = {.uid = uid};
	Grid *grid = NULL;

	if (!replay_version(ws->sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	rollback_add(&list, EDIT_ROLLBACK, (uint32) version->version_id, 0, (EditText){"", 0}, (EditText){NULL, 0});
	/* Rows and columns that have been deleted since; a sheet that has as many is not resized. */
	rollback_add(&list, EDIT_RESIZE, grid_rows(grid) - 1, grid_cols(grid) - 1, (EditText){"", 0}, (EditText){NULL, 0});
	rollback_compare(grid, version_present(ws), &list);
	rollback_append(ws, &list, epoch);
	STOP_POINT("rollback-edits");
	note.label = psprintf("rollback to version " INT64_FORMAT, version->version_id);
	return version_commit(ws, &note);
}

int64
journal_rollback(int64 sheet_id, int64 version_id, uint64 uid, int64 epoch)
{
	WriterSheet *ws;
	MemoryContext context, old;
	Snapshot snapshot;
	ReplayVersion version;
	int64 new_cid;
	bool found;

	writer_require_writable("sheet.rollback()");
	ws = version_open(sheet_id, epoch);
	snapshot = RegisterSnapshot(writer_snapshot());
	found = replay_find_version(sheet_id, version_id, snapshot, &version) && version.version_id == version_id;
	if (!found)
		trim_no_version(sheet_id, version_id, snapshot);
	UnregisterSnapshot(snapshot);
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet rollback", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	new_cid = version_rollback(ws, &version, uid, epoch);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return new_cid;
}

/* ---- the end of a sheet ---- */

void
journal_purge(int64 sheet_id)
{
	static const StorageTable tables[] = {STORAGE_LOG_BATCH,	STORAGE_SEGMENT,   STORAGE_VERSION,
										  STORAGE_VERSION_TILE, STORAGE_OWNERSHIP, STORAGE_CLIENT};
	WriterSheet *ws;

	writer_require_writable("sheet.purge()");
	ws = writer_open(sheet_id);
	/* Readers must not take the cached cells for present between our commit and its publication. */
	(void) writer_begin_change(ws, 0);
	for (int i = 0; i < lengthof(tables); i++)
		(void) remove_rows(tables[i], sheet_id, NULL, NULL);
	trim_forget(sheet_id);
	CommandCounterIncrement();
	writer_forget(ws);
}

void
journal_lock_sheet(int64 sheet_id)
{
	writer_lock_sheet(sheet_id);
}

/*
 * From here on the transaction counts as the sheet's writer, so that what it does to the relations is not loaded by
 * itself into the shared grid before it has committed.
 */
void
journal_forget(int64 sheet_id)
{
	WriterSheet *ws = writer_open(sheet_id);

	(void) writer_begin_change(ws, 0);
	writer_forget(ws);
}
