/*
 * fsck_replay.c - replays a sheet's logs in order, and compares each version with what comes out.
 *
 * A version that is missing is written. One that differs is replaced only when its row or its tiles, each for itself,
 * agree with the replay: then the other one is what is damaged. When row and tiles agree with each other against the
 * replay, the log may be what is wrong, and everything is left as it is.
 */
#include "postgres.h"

#include "common/a1.h"
#include "access/stratnum.h"
#include "journal/fsck/fsck_private.h"
#include "journal/journal.h"
#include "journal/replay/replay_batches.h"
#include "journal/replay/replay_edit.h"
#include "journal/replay/replay_version.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct Replay
{
	Fsck *fsck;
	GridAllocator allocator;
	Grid *grid;		/* the state so far; NULL after damage, until a version gives it again */
	TileSet *tiles; /* touched by the log that is being replayed */
	MemoryContext batch;
	int64 last_at;		/* of the last edit that was seen */
	VersionHead commit; /* of the log's commit record; seq 0: none yet. Its label is in the context of the log */
	MemoryContext log_context;
} Replay;

/* ---- versions as they are stored ---- */

static const char *
replay_tile_name(uint32 row, uint32 col)
{
	char cell[A1_MAX];

	a1_format_cell(cell, row * GRID_TILE_ROWS, col * GRID_TILE_COLS);
	return psprintf("the tile at %s", cell);
}

/* Reads a version from its tiles; NULL when a tile does not decode, or they are not the cells of the digest. */
static Grid *
replay_read_version(Fsck *fsck, const ReplayVersion *version, const char **why)
{
	GridAllocator allocator = journal_context_allocator();
	ReplayFault fault;
	Grid *grid = NULL;

	if (!replay_version_try(fsck->sheet_id, version, fsck->snapshot, &allocator, &grid, &fault))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	if (fault.error == EDIT_END && (int64) grid_digest(grid) == version->digest)
		return grid;
	*why = fault.error == EDIT_END ? "its tiles do not hold the cells of its digest"
		   : fault.axes			   ? "its rows and columns do not decode"
								   : psprintf("%s does not decode: %s", replay_tile_name(fault.row, fault.col),
											  edit_error_text(fault.error));
	grid_free(&allocator, grid);
	return NULL;
}

static bool
replay_stored_version(Fsck *fsck, int64 version_id, ReplayVersion *version)
{
	return replay_find_version(fsck->sheet_id, version_id, fsck->snapshot, version) &&
		   version->version_id == version_id;
}

/* Takes a version's own tiles for the state, when they are sound. */
static bool
replay_resume(Replay *replay, int64 version_id)
{
	ReplayVersion version;
	const char *why;

	replay->grid = NULL;
	if (!replay_stored_version(replay->fsck, version_id, &version))
		return false;
	replay->grid = replay_read_version(replay->fsck, &version, &why);
	return replay->grid != NULL;
}

static void
replay_drop_grid(Replay *replay)
{
	if (replay->grid != NULL)
		grid_free(&replay->allocator, replay->grid);
	replay->grid = NULL;
}

/* ---- comparing ---- */

/* May what is stored be replaced by the replay? */
static bool
replay_may_replace(Fsck *fsck, const VersionHead *head, const Grid *grid, VersionDiff diff)
{
	ReplayVersion stored;
	const char *why;
	Grid *cells;

	if (diff == VERSION_MISSING || !replay_stored_version(fsck, head->version_id, &stored))
		return true;
	if (stored.digest == (int64) grid_digest(grid))
		return true;
	/* The row is what differs: do the tiles hold what the replay has? */
	stored.digest = (int64) grid_digest(grid);
	stored.rows = grid_rows(grid);
	stored.cols = grid_cols(grid);
	stored.axes = version_store_axes(grid_axes(grid));
	cells = replay_read_version(fsck, &stored, &why);
	return cells != NULL;
}

static const char *
replay_describe(const Fsck *fsck, int64 version_id, VersionDiff diff, const VersionFault *fault)
{
	switch (diff)
	{
		case VERSION_MISSING:
			if (version_id < fsck->newest_version)
				return "the checkpoint is missing";
			return psprintf(
				"the commit of version " INT64_FORMAT " was interrupted %s: its checkpoint is missing", version_id,
				fsck->logs[version_id - fsck->start.version_id - 1].unopened ? "after its commit record (C2)"
																			 : "after the next log was opened (C3)");
		case VERSION_ROW_DIFFERS:
			return "the checkpoint's row differs from the log";
		case VERSION_TILE_DIFFERS:
			return psprintf("%s %s", replay_tile_name(fault->row, fault->col),
							fault->missing ? "is missing" : "differs from the log");
		default:
			return "tiles are stored that the log has not touched";
	}
}

static void
replay_write_version(Replay *replay, const FsckLog *log)
{
	fsck_before_write(replay->fsck);
	if (log->has_version || log->tiles > 0)
		version_store_delete(replay->fsck->sheet_id, log->segment_id);
	STOP_POINT("fsck-deleted");
	version_store_write(&replay->commit, replay->grid, grid_digest(replay->grid), replay->tiles);
	STOP_POINT("fsck-version");
	fsck_written(replay->fsck);
}

/* Row and tiles agree with each other, and not with the log: from here on the version is followed. */
static const char *
replay_disagrees(Replay *replay, int64 version_id)
{
	Grid *replayed = replay->grid;

	if (!replay_resume(replay, version_id))
	{
		replay->grid = replayed;
		return "the version is damaged, and not what the log has either: it is left as it is";
	}
	grid_free(&replay->allocator, replayed);
	return "the version and the log disagree, each sound in itself: both are left as they are";
}

static void
replay_check_version(Replay *replay, FsckLog *log)
{
	Fsck *fsck = replay->fsck;
	VersionFault fault = {0};
	VersionDiff diff = version_store_compare(&replay->commit, replay->grid, replay->tiles, fsck->snapshot, &fault);
	bool replace;

	if (diff == VERSION_SAME && log->tiles != (int32) hash_get_num_entries(replay->tiles))
		diff = VERSION_TILES_STRAY;
	if (diff == VERSION_SAME)
		return;
	replace = replay_may_replace(fsck, &replay->commit, replay->grid, diff);
	if (fsck->repair && replace)
		replay_write_version(replay, log);
	fsck_report(fsck, diff == VERSION_MISSING ? FSCK_WARNING : FSCK_ERROR, replace, fsck_version_place(log->segment_id),
				replace ? replay_describe(fsck, log->segment_id, diff, &fault)
						: replay_disagrees(replay, log->segment_id));
}

/* ---- the log ---- */

/* Rows or columns come and go empty: otherwise cells would be lost, or turn up where nobody has put them. */
static const char *
replay_check_change(const Grid *grid, const Edit *edit)
{
	AxesChange change;
	GridRect rect = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	GridScan scan;
	GridCell cell;
	uint32 first;

	if (!replay_change_of(edit, &change))
		return "the log inserts or deletes what cannot be";
	first = change.insert ? axes_limit(change.line) - change.n : change.at;
	if (change.line == AXES_ROW)
		rect = (GridRect){first, 0, first + change.n - 1, rect.col1};
	else
		rect = (GridRect){0, first, rect.row1, first + change.n - 1};
	grid_view_init(&scan, grid, grid_axes(grid), rect.row0, rect.col0, rect.row1, rect.col1);
	if (!grid_scan_next(&scan, &cell))
		return NULL;
	return psprintf("row %u, column %u is not empty when %s", cell.row, cell.col,
					change.insert ? "an insert pushes it beyond the end" : "it is deleted");
}

/* The edit's old content must be what the log says; then it is applied. Returns what is wrong with it. */
static const char *
replay_edit(Replay *replay, const Edit *edit, int64 segment_id, int64 seq)
{
	const char *wrong = edit_is_structure(edit->kind) ? replay_check_change(replay->grid, edit) : NULL;

	if (wrong != NULL)
		return wrong;
	if (edit_is_of_cell(edit->kind) && edit->old.data != NULL)
	{
		GridCell cell;

		(void) grid_view_get(replay->grid, edit->row, edit->col, &cell);
		if (cell.content_len != edit->old.len || memcmp(cell.content, edit->old.data, edit->old.len) != 0)
			fsck_report(replay->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, seq),
						psprintf("the old content of row %u, column %u is not what the log has before it", edit->row,
								 edit->col));
	}
	tileset_add_edit(replay->tiles, edit, grid_axes(replay->grid));
	if (!replay_edit_into(replay->grid, &replay->allocator, edit))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return NULL;
}

static void
replay_note_commit(Replay *replay, const Edit *edit, int64 segment_id, int64 seq, int64 at)
{
	replay->commit = (VersionHead){replay->fsck->sheet_id, segment_id, seq, at, edit->uid, edit->content, edit->row};
	replay->commit.label.data = MemoryContextAlloc(replay->log_context, edit->content.len + 1);
	memcpy(unconstify(char *, replay->commit.label.data), edit->content.data, edit->content.len);
}

/* The edits of a stored batch. Returns what is wrong with it, NULL when nothing is. */
static const char *
replay_batch(Replay *replay, int64 first_seq, int64 last_seq, int64 at, int64 segment_id, const struct varlena *data)
{
	EditReader reader;
	Edit edit;
	EditError error;
	int64 seq = first_seq;
	const char *wrong;

	replay_stored_edits(&reader, data, first_seq, last_seq);
	while ((error = edit_read(&reader, &edit)) == EDIT_OK)
	{
		if (edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS)
			break;
		if (replay->commit.seq != 0)
			return "the log goes on after its commit record";
		if ((wrong = replay_edit(replay, &edit, segment_id, seq)) != NULL)
			return wrong;
		if (edit.kind == EDIT_COMMIT)
			replay_note_commit(replay, &edit, segment_id, seq, at + (seq - first_seq));
		seq++;
	}
	error = replay_stored_end(&reader, error);
	if (error == EDIT_END && seq == last_seq + 1)
		return NULL;
	return error == EDIT_END || error == EDIT_OK ? "the batch does not hold the edits that its row says"
												 : psprintf("the batch does not decode: %s", edit_error_text(error));
}

static void
replay_check_time(Replay *replay, int64 at, int64 last_at, int64 segment_id, int64 seq)
{
	if (at <= replay->last_at)
		fsck_report(replay->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, seq),
					"the time is not after that of the edit before");
	replay->last_at = last_at;
}

/* The scan's current batch. False when the log cannot be followed further. */
static bool
replay_row(Replay *replay, StorageScan *scan, int64 segment_id)
{
	MemoryContext old = MemoryContextSwitchTo(replay->batch);
	int64 first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
	int64 last_seq = storage_int64(scan, LOG_BATCH_LAST_SEQ);
	int64 at = timeconv_to_unix(storage_int64(scan, LOG_BATCH_AT));
	bool copy;
	const char *wrong =
		replay_batch(replay, first_seq, last_seq, at, segment_id, storage_bytes(scan, LOG_BATCH_DATA, &copy));

	replay_check_time(replay, at, at + (last_seq - first_seq), segment_id, first_seq);
	if (wrong != NULL)
		fsck_report(replay->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, first_seq), wrong);
	MemoryContextSwitchTo(old);
	MemoryContextReset(replay->batch);
	return wrong == NULL;
}

static bool
replay_batches(Replay *replay, const FsckLog *log)
{
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, replay->fsck->sheet_id},
						 {2, BTGreaterEqualStrategyNumber, false, log->first_seq}};
	StorageScan scan;
	bool good = true;

	if (!log->has_edits)
		return true;
	storage_scan_begin(&scan, STORAGE_LOG_BATCH, replay->fsck->snapshot, keys, 2);
	while (good && storage_scan_next(&scan, ForwardScanDirection) &&
		   storage_int64(&scan, LOG_BATCH_FIRST_SEQ) <= log->last_seq)
		good = replay_row(replay, &scan, log->segment_id);
	storage_scan_end(&scan);
	return good;
}

/* A log after damage: its version gives the state again, or nothing can be said of it. */
static void
replay_after_damage(Replay *replay, const FsckLog *log)
{
	if (log->has_version ? replay_resume(replay, log->segment_id) : !log->sealed)
		return;
	fsck_report(replay->fsck, FSCK_ERROR, false, fsck_version_place(log->segment_id),
				log->has_version
					? "the version is damaged, and cannot be rebuilt since what comes before it is, too"
					: "the checkpoint is missing, and cannot be rebuilt since what comes before it is damaged");
}

static void
replay_log(Replay *replay, FsckLog *log)
{
	MemoryContext old = MemoryContextSwitchTo(replay->log_context);

	memset(&replay->commit, 0, sizeof(replay->commit));
	replay->tiles = tileset_create();
	MemoryContextSwitchTo(old);
	if (log->broken || (replay->grid != NULL && !replay_batches(replay, log)))
		replay_drop_grid(replay);
	if (replay->grid == NULL)
		replay_after_damage(replay, log);
	else if (replay->commit.seq != 0)
		replay_check_version(replay, log);
	MemoryContextReset(replay->log_context);
}

/* The state in which the history begins. */
static void
replay_begin(Replay *replay)
{
	Fsck *fsck = replay->fsck;
	ReplayVersion version;
	const char *why = "its row is missing";

	if (fsck->start.version_id == 0)
		replay->grid = grid_create(&replay->allocator, 1, 1);
	else if (replay_stored_version(fsck, fsck->start.version_id, &version))
		replay->grid = replay_read_version(fsck, &version, &why);
	if (replay->grid == NULL)
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(fsck->start.version_id),
					psprintf("the oldest version cannot be read, and what it was made of has been trimmed: %s", why));
}

void
fsck_replay(Fsck *fsck)
{
	Replay replay = {.fsck = fsck, .allocator = journal_context_allocator()};

	replay.batch = AllocSetContextCreate(CurrentMemoryContext, "fsck batch", ALLOCSET_DEFAULT_SIZES);
	replay.log_context = AllocSetContextCreate(CurrentMemoryContext, "fsck log", ALLOCSET_DEFAULT_SIZES);
	replay_begin(&replay);
	for (int i = 0; i < fsck->nlogs; i++)
		replay_log(&replay, &fsck->logs[i]);
}
