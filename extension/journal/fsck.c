/*
 * fsck.c - checks a sheet's log and versions against each other, and restores what can be rebuilt.
 *
 * The log is the truth: heads of logs and checkpoints follow from it and can always be written again. A commit writes
 * (1) the commit record at the end of the open log, (2) the head of the next log, (3) the checkpoint, in one
 * transaction, so a crash leaves all or nothing. Storage can be damaged all the same and rows can be deleted, so every
 * partial state is handled:
 *
 *   nothing but (1) missing    the log is open, as if nobody had committed: no finding
 *   (1) without (2)            the newest log ends in a commit record: its successor is opened, its checkpoint made
 *   (1), (2) without (3)       sealed logs without checkpoint, one or all: replayed from the first log, written again
 *   a hole in the log          reported with its place; nothing after it can be derived, and nothing there is
 * overwritten
 *
 * The brief check reads heads, the numbers of the batches and the last batch of each log. When it misses a
 * checkpoint, or for the full check, the whole log is replayed in order, with the state compared at each commit record.
 * What was repaired is reported as such, and a second run finds nothing.
 *
 * Locks: with repair the sheet lock is held, so that the log does not grow meanwhile; without, a snapshot is enough.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "checkpoint.h"
#include "executor/spi.h"
#include "fsck.h"
#include "journal.h"
#include "miscadmin.h"
#include "replay.h"
#include "sheetlog.h"
#include "stoppoint.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define FSCK_FETCH 64 /* batches in memory at a time */

typedef struct Fsck
{
	int64 sheet_id;
	bool full;
	bool repair;
	FsckReportFn report;
	void *report_arg;
	int findings;
	int64 head_lid;			 /* newest log that has a head */
	int64 sealed_lid;		 /* newest log that ends in a commit record */
	bool log_broken;		 /* a hole or a damaged record: what follows cannot be derived */
	bool want_replay;		 /* a checkpoint is missing */
	GridAllocator allocator; /* of the replayed grid: it outlives a batch */
	MemoryContext context;	 /* of the same life */
	TileSet *tiles;			 /* touched since the last version */
} Fsck;

static void
fsck_report(Fsck *fsck, FsckSeverity severity, bool repaired, const char *place, const char *what)
{
	fsck->findings++;
	fsck->report(fsck->report_arg, fsck->sheet_id, severity, what, place, repaired);
}

/* Runs a query with up to four bigint parameters; the first is always the sheet. */
static void
fsck_query(Fsck *fsck, const char *sql, int nargs, int64 a, int64 b, int64 c)
{
	Oid types[4] = {INT8OID, INT8OID, INT8OID, INT8OID};
	Datum values[4] = {Int64GetDatum(fsck->sheet_id), Int64GetDatum(a), Int64GetDatum(b), Int64GetDatum(c)};
	int status = SPI_execute_with_args(sql, nargs, types, values, NULL, false, 0);

	if (status < 0)
		elog(ERROR, "fsck: %s: %s", SPI_result_code_string(status), sql);
}

static int64
fsck_value(uint64 row, int column, bool *is_null)
{
	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, is_null));
}

/* Writes the missing head of a log: it begins after the last edit of the one before. */
static void
fsck_write_head(Fsck *fsck, int64 lid)
{
	fsck_query(fsck,
			   "INSERT INTO sheet.log_head (sheet_id, lid, first_seq, at) "
			   "SELECT $1, $2, coalesce(max(last_seq), 0) + 1, coalesce(max(at), clock_timestamp()) "
			   "FROM sheet.log_batch WHERE sheet_id = $1 AND lid < $2",
			   2, lid, 0, 0);
	STOP_POINT("fsck-head");
}

/* Every log from 1 to the newest one that has edits needs a head. */
static void
fsck_check_heads(Fsck *fsck)
{
	bool is_null;
	SPITupleTable *missing;
	uint64 count;

	fsck_query(fsck, "SELECT max(lid) FROM sheet.log_head WHERE sheet_id = $1", 1, 0, 0, 0);
	fsck->head_lid = fsck_value(0, 1, &is_null);
	if (is_null)
		fsck->head_lid = 0;
	fsck_query(fsck,
			   "SELECT lid FROM generate_series(1, greatest($2, coalesce((SELECT max(lid) FROM sheet.log_batch WHERE "
			   "sheet_id = $1), 1))) lid "
			   "WHERE NOT EXISTS (SELECT FROM sheet.log_head h WHERE h.sheet_id = $1 AND h.lid = lid.lid) ORDER BY 1",
			   2, fsck->head_lid, 0, 0);
	missing = SPI_tuptable;
	count = SPI_processed;
	for (uint64 i = 0; i < count; i++)
	{
		int64 lid = DatumGetInt64(SPI_getbinval(missing->vals[i], missing->tupdesc, 1, &is_null));

		if (fsck->repair)
			fsck_write_head(fsck, lid);
		fsck_report(fsck, FSCK_WARNING, fsck->repair, psprintf("log " INT64_FORMAT, lid),
					"the head of the log is missing");
		fsck->head_lid = Max(fsck->head_lid, lid);
	}
}

/* seq must be gapless over batches, and a batch must not be empty. */
static void
fsck_check_seqs(Fsck *fsck)
{
	bool is_null;

	fsck_query(
		fsck,
		"SELECT b.first_seq, b.before + 1, b.lid FROM (SELECT first_seq, last_seq, lid, "
		"  coalesce(lag(last_seq) OVER (ORDER BY first_seq), 0) AS before FROM sheet.log_batch WHERE sheet_id = $1) b "
		"WHERE b.first_seq <> b.before + 1 OR b.last_seq < b.first_seq ORDER BY 1 LIMIT 100",
		1, 0, 0, 0);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		int64 first = fsck_value(i, 1, &is_null);
		int64 expected = fsck_value(i, 2, &is_null);
		int64 lid = fsck_value(i, 3, &is_null);

		fsck->log_broken = true;
		fsck_report(fsck, FSCK_ERROR, false, psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, lid, first),
					psprintf("edits are missing or doubled: seq " INT64_FORMAT " was expected", expected));
	}
}

/* Does the stored batch end in a commit record? False also when it does not decode. */
static bool
fsck_ends_in_commit(bytea *data)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;
	EditKind last = 0;
	EditError error;

	edit_reader_init(&reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
			last = edit.kind;
		if (error != EDIT_END)
			return false;
	}
	return error == EDIT_END && last == EDIT_COMMIT;
}

/* Sealed logs end in a commit record, the newest one does not; when it does, its successor is opened. */
static void
fsck_check_sealed(Fsck *fsck)
{
	SPITupleTable *last;
	uint64 count;
	bool is_null;

	fsck_query(fsck,
			   "SELECT h.lid, b.data FROM sheet.log_head h LEFT JOIN LATERAL (SELECT data FROM sheet.log_batch b "
			   "WHERE b.sheet_id = $1 AND b.lid = h.lid ORDER BY first_seq DESC LIMIT 1) b ON true "
			   "WHERE h.sheet_id = $1 ORDER BY 1",
			   1, 0, 0, 0);
	last = SPI_tuptable;
	count = SPI_processed;
	for (uint64 i = 0; i < count; i++)
	{
		int64 lid = DatumGetInt64(SPI_getbinval(last->vals[i], last->tupdesc, 1, &is_null));
		Datum data = SPI_getbinval(last->vals[i], last->tupdesc, 2, &is_null);
		bool sealed = !is_null && fsck_ends_in_commit(DatumGetByteaPP(data));
		char *place = psprintf("log " INT64_FORMAT, lid);

		if (sealed)
			fsck->sealed_lid = lid;
		if (lid < fsck->head_lid && !sealed)
			fsck_report(fsck, FSCK_ERROR, false, place, "the sealed log does not end in a commit record");
		else if (lid == fsck->head_lid && sealed)
		{
			if (fsck->repair)
				fsck_write_head(fsck, lid + 1);
			fsck_report(fsck, FSCK_WARNING, fsck->repair, place, "the log is sealed, but the next log was not opened");
		}
	}
}

/* Every sealed log needs its checkpoint, and no other may exist. */
static void
fsck_check_checkpoints(Fsck *fsck)
{
	SPITupleTable *found;
	uint64 count;
	bool is_null;

	fsck_query(fsck,
			   "SELECT coalesce(c.cid, l.lid), c.cid IS NULL FROM generate_series(1, $2) l(lid) "
			   "FULL JOIN (SELECT cid FROM sheet.checkpoint WHERE sheet_id = $1) c ON c.cid = l.lid "
			   "WHERE c.cid IS NULL OR l.lid IS NULL ORDER BY 1",
			   2, fsck->sealed_lid, 0, 0);
	found = SPI_tuptable;
	count = SPI_processed;
	for (uint64 i = 0; i < count; i++)
	{
		int64 cid = DatumGetInt64(SPI_getbinval(found->vals[i], found->tupdesc, 1, &is_null));
		bool missing = DatumGetBool(SPI_getbinval(found->vals[i], found->tupdesc, 2, &is_null));

		if (missing)
			fsck->want_replay = true; /* reported by the replay, which knows whether it could be restored */
		else
			fsck_report(fsck, FSCK_ERROR, false, psprintf("version " INT64_FORMAT, cid),
						"the checkpoint belongs to no sealed log");
	}
}

/* ---- replay ---- */

/* Compares the stored checkpoint with the replayed state, and writes it again when it differs. */
static void
fsck_check_version(Fsck *fsck, const CheckpointHead *head, const Grid *grid, TileSet *tiles)
{
	static const char *const words[] = {
		[CHECKPOINT_SAME] = "",
		[CHECKPOINT_MISSING] = "the checkpoint is missing",
		[CHECKPOINT_ROW_DIFFERS] = "the checkpoint's row differs from the log",
		[CHECKPOINT_TILE_DIFFERS] = "the checkpoint's cells differ from the log",
	};
	CheckpointDiff diff = checkpoint_compare(head, grid, tiles);

	if (diff == CHECKPOINT_SAME)
		return;
	if (fsck->repair)
	{
		PreventCommandIfReadOnly("sheet.fsck() with repair");
		checkpoint_delete(head->sheet_id, head->cid);
		STOP_POINT("fsck-deleted");
		checkpoint_write(head, grid, tiles);
		CommandCounterIncrement();
		STOP_POINT("fsck-version");
	}
	fsck_report(fsck, diff == CHECKPOINT_MISSING ? FSCK_WARNING : FSCK_ERROR, fsck->repair,
				psprintf("version " INT64_FORMAT, head->cid), words[diff]);
}

/* The edit's old content must be what the log says; then it is applied. */
static void
fsck_replay_edit(Fsck *fsck, Grid *grid, const Edit *edit, int64 lid, int64 seq)
{
	if (edit->kind == EDIT_SET && edit->old.data != NULL)
	{
		GridCell cell;

		(void) grid_get(grid, edit->row, edit->col, &cell);
		if (cell.content_len != edit->old.len || memcmp(cell.content, edit->old.data, edit->old.len) != 0)
			fsck_report(fsck, FSCK_ERROR, false, psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, lid, seq),
						psprintf("the old content of row %u, column %u is not what the log has before it", edit->row,
								 edit->col));
	}
	if (!replay_edit_into(grid, &fsck->allocator, edit))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	tileset_add_edit(fsck->tiles, edit);
}

/* An empty set that outlives the batch. */
static TileSet *
fsck_new_tiles(Fsck *fsck)
{
	MemoryContext old = MemoryContextSwitchTo(fsck->context);
	TileSet *tiles = tileset_create();

	MemoryContextSwitchTo(old);
	return tiles;
}

/* One stored batch. False when the log cannot be followed further. */
static bool
fsck_replay_batch(Fsck *fsck, Grid *grid, int64 first_seq, int64 last_seq, int64 lid, bytea *data)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;
	EditError error;
	int64 seq = first_seq;
	char *place = psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, lid, first_seq);

	edit_reader_init(&reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		if ((int64) batch.first_seq != seq)
			break;
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			if (edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS)
				break;
			fsck_replay_edit(fsck, grid, &edit, lid, seq);
			if (edit.kind == EDIT_COMMIT)
			{
				CheckpointHead head = {fsck->sheet_id, lid,			seq, (int64) batch.at + (seq - first_seq),
									   edit.uid,	   edit.content};

				fsck_check_version(fsck, &head, grid, fsck->tiles);
				tileset_free(fsck->tiles);
				fsck->tiles = fsck_new_tiles(fsck);
			}
			seq++;
		}
		if (error != EDIT_END)
			break;
	}
	if (error == EDIT_END && seq == last_seq + 1)
		return true;
	fsck_report(fsck, FSCK_ERROR, false, place,
				error == EDIT_END || error == EDIT_OK
					? "the batch does not hold the edits that its row says"
					: psprintf("the batch does not decode: %s", edit_error_text(error)));
	return false;
}

/* Replays the whole log, comparing at each commit record. */
static void
fsck_replay(Fsck *fsck)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fsck batch", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer;
	Grid *grid;
	int64 after = 0;
	bool going = true;

	fsck->allocator = journal_context_allocator();
	fsck->context = CurrentMemoryContext;
	fsck->tiles = tileset_create();
	grid = grid_create(&fsck->allocator, 1, 1);
	if (grid == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));

	while (going)
	{
		SPITupleTable *rows;
		uint64 count;

		fsck_query(fsck,
				   "SELECT first_seq, last_seq, lid, data FROM sheet.log_batch WHERE sheet_id = $1 AND first_seq > $2 "
				   "ORDER BY first_seq LIMIT $3",
				   3, after, FSCK_FETCH, 0);
		rows = SPI_tuptable;
		count = SPI_processed;
		outer = MemoryContextSwitchTo(context);
		for (uint64 i = 0; i < count && going; i++)
		{
			bool is_null;
			HeapTuple row = rows->vals[i];
			int64 first_seq = DatumGetInt64(SPI_getbinval(row, rows->tupdesc, 1, &is_null));
			int64 last_seq = DatumGetInt64(SPI_getbinval(row, rows->tupdesc, 2, &is_null));
			int64 lid = DatumGetInt64(SPI_getbinval(row, rows->tupdesc, 3, &is_null));
			bytea *data = DatumGetByteaPP(SPI_getbinval(row, rows->tupdesc, 4, &is_null));

			going = fsck_replay_batch(fsck, grid, first_seq, last_seq, lid, data);
			after = first_seq;
		}
		MemoryContextSwitchTo(outer);
		SPI_freetuptable(rows);
		MemoryContextReset(context);
		going = going && count == FSCK_FETCH;
	}
	tileset_free(fsck->tiles);
	grid_free(&fsck->allocator, grid);
	MemoryContextDelete(context);
}

int
fsck_sheet(int64 sheet_id, bool full, bool repair, FsckReportFn report, void *arg)
{
	Fsck fsck = {.sheet_id = sheet_id, .full = full, .repair = repair, .report = report, .report_arg = arg};

	if (repair)
		journal_lock_sheet(sheet_id);
	fsck_check_heads(&fsck);
	fsck_check_seqs(&fsck);
	fsck_check_sealed(&fsck);
	fsck_check_checkpoints(&fsck);
	if (fsck.log_broken)
	{
		if (fsck.want_replay || full)
			fsck_report(&fsck, FSCK_ERROR, false, "log",
						"versions are not compared with the log, since edits are missing from it");
	}
	else if (fsck.want_replay || full)
		fsck_replay(&fsck);
	/* Heads of logs may have been written: what shared memory knows of the sheet's open log is old. */
	if (repair && fsck.findings > 0)
		journal_forget(sheet_id);
	STOP_POINT("fsck-end");
	return fsck.findings;
}
