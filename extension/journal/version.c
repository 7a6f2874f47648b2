/*
 * version.c - the life of a sheet's logs: birth, versions, rollback, purge.
 *
 * Committing a version: (1) a commit record ends the open log, (2) the next log is opened, (3) the checkpoint is
 * stored, as those tiles that the sealed log has touched. One transaction makes the three atomic.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "append.h"
#include "journal.h"
#include "replay.h"
#include "sheetlog.h"
#include "storage.h"
#include "timeconv.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "writer.h"

/* ---- birth ---- */

static void
version_open_log(int64 sheet_id, int64 lid, int64 first_seq, int64 at)
{
	Relation rel = storage_open(STORAGE_LOG_HEAD, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[LOG_HEAD_SHEET_ID - 1] = Int64GetDatum(sheet_id);
	values[LOG_HEAD_LID - 1] = Int64GetDatum(lid);
	values[LOG_HEAD_FIRST_SEQ - 1] = Int64GetDatum(first_seq);
	values[LOG_HEAD_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(at));
	storage_insert(STORAGE_LOG_HEAD, rel, values, nulls);
	table_close(rel, NoLock);
}

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
	if (ws->meta.lid != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("sheet " INT64_FORMAT " has a log already", sheet_id)));
	writer_prepare(ws, NULL, 0);
	(void) writer_begin_change(ws, 0);
	ws->meta.lid = 1;
	ws->meta.log_first_seq = 1;
	ws->meta.rows = ws->meta.cols = 0; /* 1 x 1 is a size that is logged, too */
	version_open_log(sheet_id, 1, 1, timeconv_to_unix(GetCurrentTimestamp()));
	version_append_one(ws, &edit, 0, &result);
}

/* ---- committing a version ---- */

typedef struct TileKey
{
	uint32 row, col; /* numbers of tiles */
} TileKey;

static void
version_note_tile(void *arg, int64 seq, int64 at, const Edit *edit)
{
	TileKey key = {edit->row / GRID_TILE_ROWS, edit->col / GRID_TILE_COLS};

	if (edit->kind == EDIT_SET || edit->kind == EDIT_STYLE)
		(void) hash_search((HTAB *) arg, &key, HASH_ENTER, NULL);
}

static HTAB *
version_changed_tiles(WriterSheet *ws, Snapshot snapshot)
{
	HASHCTL info = {.keysize = sizeof(TileKey), .entrysize = sizeof(TileKey), .hcxt = CurrentMemoryContext};
	HTAB *tiles = hash_create("pg_sheet tiles", 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	replay_edits(ws->sheet_id, ws->meta.log_first_seq - 1, ws->meta.last_seq, snapshot, version_note_tile, tiles);
	return tiles;
}

/* The tile's cells as one batch; empty when it holds nothing. */
static bytea *
version_encode_tile(const Grid *grid, const TileKey *key, int64 seq, int64 at)
{
	uint32 row0 = key->row * GRID_TILE_ROWS, col0 = key->col * GRID_TILE_COLS;
	EditBatch batch = {seq, at, 0};
	Size bound = VARHDRSZ + EDIT_BATCH_HEAD_MAX;
	EditWriter writer;
	GridScan scan;
	GridCell cell;
	bytea *data;

	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	for (; grid_scan_next(&scan, &cell); batch.count++)
		bound += 64 + cell.content_len + cell.style_len;
	data = palloc(bound);
	if (batch.count == 0)
	{
		SET_VARSIZE(data, VARHDRSZ);
		return data;
	}
	edit_write_batch(&writer, (uint8_t *) VARDATA(data), &batch);
	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	while (grid_scan_next(&scan, &cell))
	{
		Edit edit = {.kind = EDIT_SET, .row = cell.row, .col = cell.col, .content = {cell.content, cell.content_len}};

		if (cell.style_len > 0)
			edit.style = (EditText){cell.style, cell.style_len};
		edit_write(&writer, &edit);
	}
	SET_VARSIZE(data, (char *) writer.pos - (char *) data);
	return data;
}

/* Returns the number of tiles. */
static int32
version_store_tiles(WriterSheet *ws, const Grid *grid, HTAB *tiles, int64 cid)
{
	Relation rel = storage_open(STORAGE_CHECKPOINT_TILE, RowExclusiveLock);
	HASH_SEQ_STATUS status;
	TileKey *key;
	int32 count = 0;

	hash_seq_init(&status, tiles);
	while ((key = hash_seq_search(&status)) != NULL)
	{
		Datum values[STORAGE_MAX_COLUMNS] = {0};
		bool nulls[STORAGE_MAX_COLUMNS] = {0};
		bytea *data = version_encode_tile(grid, key, ws->meta.last_seq, ws->meta.last_at);

		values[CHECKPOINT_TILE_SHEET_ID - 1] = Int64GetDatum(ws->sheet_id);
		values[CHECKPOINT_TILE_ROW - 1] = Int32GetDatum((int32) key->row);
		values[CHECKPOINT_TILE_COL - 1] = Int32GetDatum((int32) key->col);
		values[CHECKPOINT_TILE_CID - 1] = Int64GetDatum(cid);
		values[CHECKPOINT_TILE_DATA - 1] = PointerGetDatum(data);
		storage_insert(STORAGE_CHECKPOINT_TILE, rel, values, nulls);
		pfree(data);
		count++;
	}
	table_close(rel, NoLock);
	return count;
}

static void
version_store_checkpoint(WriterSheet *ws, const Grid *grid, int64 cid, int32 tiles, uint64 uid, const char *label)
{
	Relation rel = storage_open(STORAGE_CHECKPOINT, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[CHECKPOINT_SHEET_ID - 1] = Int64GetDatum(ws->sheet_id);
	values[CHECKPOINT_CID - 1] = Int64GetDatum(cid);
	values[CHECKPOINT_SEQ - 1] = Int64GetDatum(ws->meta.last_seq);
	values[CHECKPOINT_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(ws->meta.last_at));
	values[CHECKPOINT_UID - 1] = Int64GetDatum((int64) uid);
	values[CHECKPOINT_LABEL - 1] = label != NULL ? CStringGetTextDatum(label) : (Datum) 0;
	nulls[CHECKPOINT_LABEL - 1] = label == NULL;
	values[CHECKPOINT_ROWS - 1] = Int32GetDatum((int32) grid_rows(grid));
	values[CHECKPOINT_COLS - 1] = Int32GetDatum((int32) grid_cols(grid));
	values[CHECKPOINT_TILES - 1] = Int32GetDatum(tiles);
	values[CHECKPOINT_DIGEST - 1] = Int64GetDatum((int64) grid_digest(grid));
	storage_insert(STORAGE_CHECKPOINT, rel, values, nulls);
	table_close(rel, NoLock);
}

static bool
version_has_staged(WriterSheet *ws)
{
	dlist_iter iter;

	dlist_foreach(iter, &ws->changes)
	{
		if (dlist_container(WriterChange, link, iter.cur)->nedits > 0)
			return true;
	}
	return false;
}

/* The sheet's present state. Without own edits it is the grid before them; with them it is built from storage. */
static const Grid *
version_present(WriterSheet *ws)
{
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot;
	Grid *grid = NULL;
	int64 seq;

	if (!version_has_staged(ws))
		return writer_base(ws);
	snapshot = RegisterSnapshot(writer_snapshot());
	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	return grid;
}

static int64
version_commit(WriterSheet *ws, uint64 uid, const char *label, int64 epoch)
{
	Edit record = {.kind = EDIT_COMMIT, .uid = uid, .content = {"", 0}};
	int64 cid = ws->meta.lid;
	const Grid *grid;
	AppendResult result;
	HTAB *tiles;
	Snapshot snapshot;
	int32 ntiles;

	grid = version_present(ws);
	snapshot = RegisterSnapshot(writer_snapshot());
	tiles = version_changed_tiles(ws, snapshot);
	UnregisterSnapshot(snapshot);
	if (label != NULL)
		record.content = (EditText){label, strlen(label)};
	version_append_one(ws, &record, epoch, &result);

	(void) writer_begin_change(ws, 0);
	version_open_log(ws->sheet_id, cid + 1, result.last_seq + 1, ws->meta.last_at);
	ntiles = version_store_tiles(ws, grid, tiles, cid);
	version_store_checkpoint(ws, grid, cid, ntiles, uid, label);
	ws->meta.lid = cid + 1;
	ws->meta.log_first_seq = result.last_seq + 1;
	hash_destroy(tiles);
	CommandCounterIncrement();
	return cid;
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
	WriterSheet *ws = writer_open(sheet_id);

	writer_require_live(ws);
	writer_check_epoch(ws, epoch, NULL);
	return ws;
}

int64
journal_commit(int64 sheet_id, uint64 uid, const char *label, int64 epoch)
{
	WriterSheet *ws;
	MemoryContext context, old;
	int64 cid;

	writer_require_writable("sheet.commit()");
	version_check_label(label);
	ws = version_open(sheet_id, epoch);
	if (ws->meta.last_seq < ws->meta.log_first_seq)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'N', '0', '0', '1')),
						errmsg("nothing has changed in sheet " INT64_FORMAT " since version " INT64_FORMAT, sheet_id,
							   ws->meta.lid - 1)));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet commit", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	cid = version_commit(ws, uid, label, epoch);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return cid;
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

	grid_scan_init(&scan, version, 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &then))
	{
		EditText content = {then.content, then.content_len}, style = {then.style, then.style_len};
		bool held = grid_get(present, then.row, then.col, &now);
		bool same_content =
			held ? rollback_same(content.data, content.len, now.content, now.content_len) : content.len == 0;

		if (!same_content)
			rollback_add(list, EDIT_SET, then.row, then.col, content, style);
		else if (!held || !rollback_same(style.data, style.len, now.style, now.style_len))
			rollback_add(list, EDIT_STYLE, then.row, then.col, empty, style);
	}
	grid_scan_init(&scan, present, 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &now))
		if (!grid_get(version, now.row, now.col, &then))
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

/* The version's grid lives in ws->context: the staged edits point into it. */
static int64
version_rollback(WriterSheet *ws, const ReplayVersion *version, uint64 uid, int64 epoch)
{
	MemoryContext old = MemoryContextSwitchTo(ws->context);
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	RollbackEdits list = {.uid = uid};
	Grid *grid = NULL;

	if (!replay_version(ws->sheet_id, version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	rollback_add(&list, EDIT_ROLLBACK, (uint32) version->cid, 0, (EditText){"", 0}, (EditText){NULL, 0});
	rollback_compare(grid, version_present(ws), &list);
	rollback_append(ws, &list, epoch);
	return version_commit(ws, uid, psprintf("rollback to version " INT64_FORMAT, version->cid), epoch);
}

int64
journal_rollback(int64 sheet_id, int64 cid, uint64 uid, int64 epoch)
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
	found = replay_find_version(sheet_id, cid, snapshot, &version) && version.cid == cid;
	UnregisterSnapshot(snapshot);
	if (!found)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("sheet " INT64_FORMAT " has no version " INT64_FORMAT, sheet_id, cid)));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet rollback", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	new_cid = version_rollback(ws, &version, uid, epoch);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return new_cid;
}

/* ---- the end of a sheet ---- */

static void
purge_table(StorageTable table, int64 sheet_id, Snapshot snapshot)
{
	Relation rel = storage_open(table, RowExclusiveLock);
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;

	storage_scan_begin(&scan, table, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
		simple_table_tuple_delete(rel, &scan.slot->tts_tid, snapshot);
	storage_scan_end(&scan);
	table_close(rel, NoLock);
}

void
journal_purge(int64 sheet_id)
{
	WriterSheet *ws;
	Snapshot snapshot;

	writer_require_writable("sheet.purge()");
	ws = writer_open(sheet_id);
	/* Readers must not take the cached cells for present between our commit and its publication. */
	(void) writer_begin_change(ws, 0);
	snapshot = RegisterSnapshot(writer_snapshot());
	sheetlog_begin_purge();
	purge_table(STORAGE_LOG_BATCH, sheet_id, snapshot);
	purge_table(STORAGE_LOG_HEAD, sheet_id, snapshot);
	purge_table(STORAGE_CHECKPOINT, sheet_id, snapshot);
	purge_table(STORAGE_CHECKPOINT_TILE, sheet_id, snapshot);
	sheetlog_end_purge();
	purge_table(STORAGE_OWNER, sheet_id, snapshot);
	UnregisterSnapshot(snapshot);
	writer_forget(ws);
	CommandCounterIncrement();
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
