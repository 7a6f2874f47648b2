/*
 * fsck_versions.c - replays a sheet's segments in order, and compares each version with the result.
 *
 * A version that is missing is written. A version that differs is replaced only if either its row or its tiles agree
 * with the replay: then the other one is damaged. If row and tiles agree with each other and not with the replay, the
 * log may be what is wrong, and everything is left as it is.
 */
#include "postgres.h"

#include "common/a1.h"
#include "common/formula_shift.h"
#include "access/stratnum.h"
#include "journal/fsck/fsck_private.h"
#include "journal/journal.h"
#include "journal/replay/batches.h"
#include "journal/replay/replay.h"
#include "journal/replay/replay_version.h"
#include "miscadmin.h"
#include "support/stoppoint.h"
#include "journal/store/property_store.h"
#include "journal/store/storage.h"
#include "journal/store/tab_store.h"
#include "journal/store/timeconv.h"
#include "journal/store/version_store.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct State
{
	Fsck *fsck;
	GridAllocator allocator;
	Grid *grid;			   /* the cells so far; NULL after damage, until a version can be read */
	Properties properties; /* likewise; empty without a grid */
	bool disputed;		   /* a version and the log disagreed, and the version was taken */
	TileSet *tiles;		   /* touched by the segment that is being replayed */
	int64 last_at;		   /* of the last edit */
	VersionHead commit;	   /* from the segment's commit record; seq 0: none yet. Its label is in segment_context */
	MemoryContext batch_context, segment_context;
} State;

/* ---- versions as they are stored ---- */

static const char *
version_tile_name(uint32 row, uint32 col)
{
	char cell[A1_MAX];

	a1_format_cell(cell, row * GRID_TILE_ROWS, col * GRID_TILE_COLS);
	return psprintf("the tile at %s", cell);
}

/* Reads a version from its tiles. Returns NULL if a tile does not decode, or the cells and the properties are not those
 * of the digest. */
static Grid *
version_read(Fsck *fsck, const HistoryVersion *version, const bytea *properties, const char **why)
{
	GridAllocator allocator = journal_context_allocator();
	ReplayFault fault;
	Grid *grid = NULL;

	if (!replay_version_try(fsck->sheet_id, version, fsck->snapshot, &allocator, &grid, &fault))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	if (fault.error == EDIT_END && (int64) (grid_digest(grid) + property_store_digest(properties)) == version->digest)
		return grid;
	*why = fault.error == EDIT_END ? "its tiles do not hold the cells of its digest"
		   : fault.maps			   ? "its rows and columns do not decode"
								   : psprintf("%s does not decode: %s", version_tile_name(fault.row, fault.col),
											  edit_error_text(fault.error));
	grid_free(&allocator, grid);
	return NULL;
}

static bool
version_find(Fsck *fsck, int64 version_id, HistoryVersion *version)
{
	return history_find_version(fsck->sheet_id, version_id, fsck->snapshot, version) &&
		   version->version_id == version_id;
}

static void
state_drop(State *state)
{
	if (state->grid != NULL)
		grid_free(&state->allocator, state->grid);
	state->grid = NULL;
	properties_free(&state->properties);
}

/* Sets the cells and properties to the version's. If they are damaged, returns false and changes nothing. */
static bool
state_read(State *state, const HistoryVersion *version, const char **why)
{
	Fsck *fsck = state->fsck;
	bytea *bytes = property_store_read_version(fsck->sheet_id, version->version_id, fsck->snapshot);
	Grid *grid = version_read(fsck, version, bytes, why);
	Properties properties;

	if (grid == NULL)
		return false;
	property_store_init(&properties);
	if (!property_store_try_decode(bytes, &properties))
	{
		*why = "its properties do not decode";
		grid_free(&state->allocator, grid);
		properties_free(&properties);
		return false;
	}
	state_drop(state);
	state->grid = grid;
	state->properties = properties;
	return true;
}

/* Continues with a version's own tiles and properties. If they are damaged, returns false and changes nothing. */
static bool
state_resume(State *state, int64 version_id)
{
	HistoryVersion version;
	const char *why;

	return version_find(state->fsck, version_id, &version) && state_read(state, &version, &why);
}

/* ---- comparing ---- */

/* Returns whether the stored version may be replaced by the replay. */
static bool
version_may_replace(Fsck *fsck, const VersionHead *head, const Grid *grid, const bytea *properties, VersionDiff diff)
{
	int64 digest = (int64) (grid_digest(grid) + property_store_digest(properties));
	HistoryVersion stored;
	const char *why;

	if (diff == VERSION_MISSING || !version_find(fsck, head->version_id, &stored))
		return true;
	if (stored.digest == digest)
		return true;
	/* The row differs. Do the tiles hold what the replay has? */
	stored.digest = digest;
	stored.rows = grid_rows(grid);
	stored.cols = grid_cols(grid);
	stored.maps = version_store_maps(grid_maps(grid));
	return version_read(fsck, &stored, properties, &why) != NULL;
}

static const char *
version_describe(VersionDiff diff, const VersionFault *fault)
{
	switch (diff)
	{
		case VERSION_MISSING:
			return "the version is missing";
		case VERSION_ROW_DIFFERS:
			return "the version's row differs from the log";
		case VERSION_TILE_DIFFERS:
			return psprintf("%s %s", version_tile_name(fault->row, fault->col),
							fault->missing ? "is missing" : "differs from the log");
		default:
			return "tiles are stored that the log has not touched";
	}
}

static void
version_rewrite(State *state, const FsckSegment *segment, const bytea *properties)
{
	if (segment->has_version || segment->tiles > 0)
		version_store_delete(state->fsck->sheet_id, segment->segment_id);
	STOP_POINT("fsck-deleted");
	version_store_write(&state->commit, state->grid, grid_digest(state->grid), state->tiles, properties);
	STOP_POINT("fsck-version");
	fsck_written(state->fsck);
}

/* If row and tiles agree with each other and not with the log, the replay continues with the version. */
static const char *
version_disagrees(State *state, int64 version_id)
{
	if (!state_resume(state, version_id))
		return "the version is damaged, and not what the log has either: it is left as it is";
	state->disputed = true;
	return "the version and the log disagree, each sound in itself: both are left as they are";
}

static void
version_check(State *state, FsckSegment *segment)
{
	Fsck *fsck = state->fsck;
	VersionFault fault = {0};
	bytea *properties = property_store_encode(&state->properties);
	VersionDiff diff =
		version_store_compare(&state->commit, state->grid, state->tiles, properties, fsck->snapshot, &fault);
	bool replace;

	if (diff == VERSION_SAME && segment->tiles != (int32) hash_get_num_entries(state->tiles))
		diff = VERSION_TILES_STRAY;
	if (diff == VERSION_SAME)
		return;
	replace = version_may_replace(fsck, &state->commit, state->grid, properties, diff);
	if (fsck->repair && replace)
		version_rewrite(state, segment, properties);
	fsck_report(fsck, diff == VERSION_MISSING ? FSCK_WARNING : FSCK_ERROR, replace,
				fsck_version_place(segment->segment_id),
				replace ? version_describe(diff, &fault) : version_disagrees(state, segment->segment_id));
}

/* ---- the replay ---- */

/* Rows and columns are empty when they are inserted or deleted. Otherwise the replay would lose or move cells. Returns
 * what is wrong, or NULL. */
static const char *
edit_check_structure(const Grid *grid, const Edit *edit)
{
	LineChange change;
	GridRect rect = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	GridScan scan;
	GridCell cell;
	uint32 first;

	if (!line_change_of(edit, &change))
		return "the log inserts or deletes what cannot be";
	first = change.insert ? line_limit(change.rows) - change.n : change.at;
	if (change.rows)
		rect = (GridRect){first, 0, first + change.n - 1, rect.col1};
	else
		rect = (GridRect){0, first, rect.row1, first + change.n - 1};
	grid_view_init(&scan, grid, grid_maps(grid), rect.row0, rect.col0, rect.row1, rect.col1);
	if (!grid_scan_next(&scan, &cell))
		return NULL;
	return psprintf("row %u, column %u is not empty when %s", cell.row, cell.col,
					change.insert ? "an insert pushes it beyond the end" : "it is deleted");
}

/* Applies a property edit or a structure edit to the properties. Returns what is wrong, or NULL. */
static const char *
state_apply_properties(State *state, const Edit *edit, int64 segment_id, int64 seq)
{
	const Property *before;
	Property property;

	if (edit->kind == EDIT_PROPERTY)
	{
		if (!property_of(edit, &property))
			return "the log has a property that cannot be";
		before = properties_find(&state->properties, &property.target, property.key);
		if (edit->old.len != (before != NULL ? before->value.len : 0) ||
			(before != NULL && memcmp(edit->old.data, before->value.data, edit->old.len) != 0))
			fsck_report(state->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, seq),
						"the old value of the property is not what the log has before it");
	}
	(void) properties_apply(&state->properties, edit, (uint64) seq); /* its memory raises an error */
	return NULL;
}

/* Applies an edit, whose old content must be what the log has before it. Returns what is wrong, or NULL. */
static const char *
state_apply_edit(State *state, const Edit *edit, int64 segment_id, int64 seq)
{
	const char *wrong = edit_is_structure(edit->kind) ? edit_check_structure(state->grid, edit) : NULL;

	if (wrong != NULL)
		return wrong;
	if (edit_is_of_cell(edit->kind) && edit->old.data != NULL)
	{
		GridCell cell;

		(void) grid_view_get(state->grid, edit->row, edit->col, &cell);
		if (cell.content_len != edit->old.len || memcmp(cell.content, edit->old.data, edit->old.len) != 0)
			fsck_report(state->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, seq),
						psprintf("the old content of row %u, column %u is not what the log has before it", edit->row,
								 edit->col));
	}
	tileset_add_edit(state->tiles, edit, grid_maps(state->grid));
	if (!replay_edit_into(state->grid, &state->allocator, edit))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return edit_is_of_cell(edit->kind) ? NULL : state_apply_properties(state, edit, segment_id, seq);
}

static void
state_keep_commit(State *state, const Edit *edit, int64 segment_id, int64 seq, int64 at)
{
	state->commit = (VersionHead){state->fsck->sheet_id, segment_id, seq, at, edit->uid, edit->content, edit->row};
	state->commit.label.data = MemoryContextAlloc(state->segment_context, edit->content.len + 1);
	memcpy(unconstify(char *, state->commit.label.data), edit->content.data, edit->content.len);
}

/* Applies the edits of a batch. Returns what is wrong, or NULL. */
static const char *
state_apply_edits(State *state, EditReader *reader, const StoredBatch *batch, int64 segment_id)
{
	int64 seq = batch->first_seq;
	Edit edit;
	EditError error;
	const char *wrong;

	while ((error = edit_read(reader, &edit)) == EDIT_OK)
	{
		if (!edit_is_within_limits(&edit))
			break;
		if (state->commit.seq != 0)
			return "the segment goes on after its commit record";
		if ((wrong = state_apply_edit(state, &edit, segment_id, seq)) != NULL)
			return wrong;
		if (edit.kind == EDIT_COMMIT)
			state_keep_commit(state, &edit, segment_id, seq, timeconv_to_unix(batch->at) + (seq - batch->first_seq));
		seq++;
	}
	error = batches_reader_end(reader, error);
	if (error == EDIT_END && seq == batch->last_seq + 1)
		return NULL;
	return error == EDIT_END || error == EDIT_OK ? "the batch does not hold the edits that its row says"
												 : psprintf("the batch does not decode: %s", edit_error_text(error));
}

/* Applies the current batch. Returns false if the replay cannot continue. */
static bool
state_apply_batch(State *state, BatchScan *batches, const StoredBatch *batch, int64 segment_id)
{
	int64 at = timeconv_to_unix(batch->at);
	MemoryContext old;
	EditReader reader;
	const char *wrong;

	batches_read_edits(batches, &reader);
	old = MemoryContextSwitchTo(state->batch_context);
	wrong = state_apply_edits(state, &reader, batch, segment_id);
	if (at <= state->last_at)
		fsck_report(state->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, batch->first_seq),
					"the time is not after that of the edit before");
	state->last_at = at + (batch->last_seq - batch->first_seq);
	if (wrong != NULL)
		fsck_report(state->fsck, FSCK_ERROR, false, fsck_seq_place(segment_id, batch->first_seq), wrong);
	MemoryContextSwitchTo(old);
	return wrong == NULL;
}

static bool
state_apply_segment(State *state, const FsckSegment *segment)
{
	BatchScan *batches;
	StoredBatch batch;
	bool good = true;

	if (!segment->has_edits)
		return true;
	batches = batches_begin(state->fsck->sheet_id, segment->first_seq, segment->last_seq, false, state->fsck->snapshot);
	while (good && batches_next(batches, &batch))
	{
		good = state_apply_batch(state, batches, &batch, segment->segment_id);
		MemoryContextReset(state->batch_context);
	}
	batches_end(batches);
	return good;
}

/* After damage the replay continues with the next version that can be read. */
static void
state_after_damage(State *state, const FsckSegment *segment)
{
	if (segment->has_version ? state_resume(state, segment->segment_id) : !segment->sealed)
		return;
	fsck_report(state->fsck, FSCK_ERROR, false, fsck_version_place(segment->segment_id),
				segment->has_version
					? "the version is damaged, and cannot be rebuilt since what comes before it is, too"
					: "the version is missing, and cannot be rebuilt since what comes before it is damaged");
}

static void
state_check_segment(State *state, FsckSegment *segment)
{
	MemoryContext old = MemoryContextSwitchTo(state->segment_context);

	memset(&state->commit, 0, sizeof(state->commit));
	state->tiles = tileset_create();
	MemoryContextSwitchTo(old);
	if (segment->broken || (state->grid != NULL && !state_apply_segment(state, segment)))
		state_drop(state);
	if (state->grid == NULL)
		state_after_damage(state, segment);
	else if (state->commit.seq != 0)
		version_check(state, segment);
	MemoryContextReset(state->segment_context);
}

/* Reads the version with which the history begins. */
static void
state_begin(State *state)
{
	Fsck *fsck = state->fsck;
	HistoryVersion version;
	const char *why = "its row is missing";

	if (fsck->start.version_id == 0)
		state->grid = grid_create(&state->allocator, 1, 1);
	else if (version_find(fsck, fsck->start.version_id, &version))
		(void) state_read(state, &version, &why);
	if (state->grid == NULL)
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(fsck->start.version_id),
					psprintf("the oldest version cannot be read, and what it was made of has been trimmed: %s", why));
}

/* The sheet's properties must be those at the end of the log. */
static void
state_check_properties(State *state)
{
	Fsck *fsck = state->fsck;

	if (state->grid == NULL || property_store_equal(property_store_read(fsck->sheet_id, fsck->snapshot),
													property_store_encode(&state->properties)))
		return;
	if (fsck->repair && !state->disputed)
	{
		property_store_write(fsck->sheet_id, &state->properties);
		STOP_POINT("fsck-properties");
		fsck_written(fsck);
	}
	fsck_report(fsck, FSCK_ERROR, !state->disputed, "properties", "the sheet's properties differ from the log");
}

/* Whether a formula at the end of the log has a sheet's name. */
static bool
state_has_names(const State *state)
{
	bool found = false, resident;

	for (GridTileNo no = {0, 0}; !found && grid_next_formulas(state->grid, &no, &resident); no.col++)
	{
		uint32 row = no.row * GRID_TILE_ROWS, col = no.col * GRID_TILE_COLS;
		GridScan scan;
		GridCell cell;

		CHECK_FOR_INTERRUPTS();
		grid_scan_init(&scan, state->grid, row, col, row + GRID_TILE_ROWS - 1, col + GRID_TILE_COLS - 1);
		while (!found && grid_scan_next(&scan, &cell))
			found = formula_has_names((EditText){cell.content, cell.content_len});
	}
	return found;
}

/* Then the sheet must have a row of sheet.referring; it may have one without. */
static void
state_check_names(State *state)
{
	Fsck *fsck = state->fsck;

	if (state->grid == NULL || !state_has_names(state) || tab_store_refers(fsck->sheet_id))
		return;
	if (fsck->repair)
	{
		tab_store_mark(fsck->sheet_id);
		fsck_written(fsck);
	}
	fsck_report(fsck, FSCK_ERROR, true, "formulas", "formulas have names of sheets, and sheet.referring has no row");
}

void
fsck_check_versions(Fsck *fsck)
{
	State state = {.fsck = fsck, .allocator = journal_context_allocator()};

	property_store_init(&state.properties);
	state.batch_context = AllocSetContextCreate(CurrentMemoryContext, "fsck batch", ALLOCSET_DEFAULT_SIZES);
	state.segment_context = AllocSetContextCreate(CurrentMemoryContext, "fsck segment", ALLOCSET_DEFAULT_SIZES);
	state_begin(&state);
	for (int i = 0; i < fsck->count; i++)
		state_check_segment(&state, &fsck->segments[i]);
	state_check_properties(&state);
	state_check_names(&state);
}
