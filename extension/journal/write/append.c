/*
 * append.c - edits into the log.
 *
 * The one place where edits get their seq and their time. A call's edits are one row of the log, or several when they
 * are many bytes, with the contents that they replace. The caller has opened the sheet (writer_open), checked the
 * edits, and put their texts where they live to the end of the transaction, since they are set in the shared grid then.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "journal/write/append.h"
#include "miscadmin.h"
#include "journal/replay/replay_edit.h"
#include "journal/store/replay_find.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* Between so many edits, to be cancelled. */
#define APPEND_PATIENCE 1024

/* So many edits before a cell is looked up the processor is asked for its place, and for its content half as many. */
#define APPEND_AHEAD 16

/* A row ends behind so many bytes: those who follow the log read whole rows, and edits of a few bytes can replace long
 * contents, which are stored with them. */
#define APPEND_ROW_BYTES (4 * 1024 * 1024)

/* A batch on its way. */
typedef struct Append
{
	WriterSheet *ws;
	const AppendCall *call;
	AppendResult *result; /* of the rows that are stored */
	bool note;			  /* own edits are noted for lookups */
	bool changed;		  /* a change has been begun */
	CacheMeta meta;		  /* the extent as it will be */
	/* the row to come */
	uint32 kept; /* edits that change something */
	bytea *data; /* these, encoded, without the batch's header, which the row has */
	Size room;
	EditWriter writer;
} Append;

static bool
append_same(EditText a, EditText b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Whether the edit of a cell would change it. */
static bool
append_changes_cell(const Edit *edit, const WriterCell *cell)
{
	if (edit->kind == EDIT_STYLE)
		return !append_same(edit->style, cell->style);
	return !append_same(edit->content, cell->content) ||
		   (edit->style.data != NULL && !append_same(edit->style, cell->style));
}

/* ---- encoding ---- */

static void
append_encode_init(Append *append, Size expected)
{
	append->room = VARHDRSZ + expected;
	append->data = MemoryContextAllocHuge(writer_scratch, append->room);
	edit_write_edits(&append->writer, (uint8_t *) VARDATA(append->data));
}

static Size
append_used(const Append *append)
{
	return append->writer.pos - (uint8_t *) append->data;
}

static void
append_encode_grow(Append *append, Size used, Size more)
{
	append->room = Max(append->room * 2, used + more);
	append->data = repalloc_huge(append->data, append->room);
	append->writer.pos = (uint8_t *) append->data + used;
}

/* old_readable: of the edit's old content. */
static void
append_encode(Append *append, const Edit *edit, bool padded, uint32 old_readable)
{
	Size used = append_used(append);
	Size more = edit_size_bound(edit);

	if (used + more > append->room)
		append_encode_grow(append, used, more);
	edit_write_readable(&append->writer, edit, padded ? WRITER_PAD : 0, old_readable);
}

static bytea *
append_encoded(Append *append)
{
	SET_VARSIZE(append->data, append_used(append));
	return append->data;
}

/* ---- rows ---- */

/* A row of log_batch, but for its data. */
typedef struct AppendRow
{
	int64 sheet_id;
	int64 segment_id;
	int64 first_seq, last_seq;
	int64 at; /* Unix microseconds */
	int64 epoch, origin, batch_no;
} AppendRow;

static void
append_store(const AppendRow *row, bytea *data)
{
	Relation rel = storage_open(STORAGE_LOG_BATCH, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[LOG_BATCH_SHEET_ID - 1] = Int64GetDatum(row->sheet_id);
	values[LOG_BATCH_FIRST_SEQ - 1] = Int64GetDatum(row->first_seq);
	values[LOG_BATCH_LAST_SEQ - 1] = Int64GetDatum(row->last_seq);
	values[LOG_BATCH_SEGMENT_ID - 1] = Int64GetDatum(row->segment_id);
	values[LOG_BATCH_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(row->at));
	values[LOG_BATCH_EPOCH - 1] = Int64GetDatum(row->epoch);
	values[LOG_BATCH_ORIGIN - 1] = Int64GetDatum(row->origin);
	values[LOG_BATCH_BATCH_NO - 1] = Int64GetDatum(row->batch_no);
	values[LOG_BATCH_DATA - 1] = PointerGetDatum(data);
	storage_insert(STORAGE_LOG_BATCH, rel, values, nulls);
	table_close(rel, NoLock);
}

/* Time never goes back within a sheet, and goes on from row to row of a call. */
static int64
append_begin_time(const Append *append)
{
	int64 next = append->ws->meta.last_at + 1;
	int64 now = append->call->follows ? next : timeconv_to_unix(GetCurrentTimestamp());

	return Max(next, now);
}

/* Stores what has been encoded, and begins anew. */
static void
append_end_row(Append *append)
{
	WriterSheet *ws = append->ws;
	const AppendCall *call = append->call;
	AppendResult *result = append->result;
	bool first = result->first_seq == 0;
	AppendRow row = {.sheet_id = ws->sheet_id,
					 .segment_id = ws->meta.segment_id,
					 .first_seq = ws->meta.last_seq + 1,
					 .last_seq = ws->meta.last_seq + append->kept,
					 .at = first ? append_begin_time(append) : ws->meta.last_at + 1,
					 .epoch = call->epoch,
					 .origin = call->origin,
					 .batch_no = call->batch_no};

	ws->meta.last_seq = row.last_seq;
	ws->meta.last_at = row.at + append->kept - 1;
	STOP_POINT("append-store");
	append_store(&row, append_encoded(append));
	ws->meta.log_bytes += VARSIZE(append->data);
	if (first)
	{
		result->first_seq = row.first_seq;
		result->at = row.at;
	}
	result->last_seq = row.last_seq;
	append->kept = 0;
	edit_write_edits(&append->writer, (uint8_t *) VARDATA(append->data));
}

/* ---- one edit ---- */

static void
append_change_axes(Append *append, const Edit *edit)
{
	uint32 *extent = edit_is_of_rows(edit->kind) ? &append->meta.rows : &append->meta.cols;
	AxesChange change;

	if (!replay_change_of(edit, &change))
		elog(ERROR, "a structure edit was not checked");
	writer_change_axes(append->ws, &change, *extent);
	*extent = axes_extent(&change, *extent);
}

/* Encoded before room is reserved for it, since reserving may move the old content. placed: with its physical place. */
static void
append_keep(Append *append, const Edit *edit, const Edit *placed, const WriterCell *cell)
{
	if (!append->changed)
		(void) writer_begin_change(append->ws, append->call->origin);
	append->changed = true;
	if (append_used(append) >= APPEND_ROW_BYTES)
		append_end_row(append);
	append->kept++;
	append_encode(append, edit, append->call->padded, cell != NULL ? cell->readable : 0);
	if (edit->kind == EDIT_COMMIT || edit->kind == EDIT_ROLLBACK)
		return;
	if (edit_is_structure(edit->kind))
	{
		append_change_axes(append, edit);
		return;
	}
	append->meta.rows = Max(append->meta.rows, edit->row + 1);
	append->meta.cols = Max(append->meta.cols, edit->col + 1);
	writer_stage(append->ws, placed, append->call->padded, cell);
}

/* The first edit of a sheet gives it its size, also when that is 1 x 1, which is what no edits give. */
static bool
append_resizes(const Append *append, const Edit *edit)
{
	return append->meta.last_seq == 0 || edit->row >= append->meta.rows || edit->col >= append->meta.cols;
}

/* Keeps the edit, with the cell's old content, unless it changes nothing. It sees those before it in the same batch. */
static void
append_edit(Append *append, Edit *edit, const Edit *placed, GridTile *tile)
{
	WriterCell cell;

	edit->old.data = NULL;
	edit->old.len = 0;
	if (!edit_is_of_cell(edit->kind))
	{
		if (edit->kind != EDIT_RESIZE || append_resizes(append, edit))
			append_keep(append, edit, placed, NULL);
		return;
	}
	writer_lookup(append->ws, placed, tile, append->note, &cell);
	if (!append_changes_cell(edit, &cell))
		return;
	/* Not as a struct, which has just been written in parts. */
	edit->old.data = cell.content.data;
	edit->old.len = cell.content.len;
	append_keep(append, edit, placed, &cell);
}

static void
append_all(Append *append, const Edit *placed, GridTile *const *tiles)
{
	Edit *edits = append->call->edits;
	uint32 n = append->call->nedits;

	writer_expect(append->ws, n);
	for (uint32 i = 0; i < n + APPEND_AHEAD; i++)
	{
		uint32 content = i - APPEND_AHEAD / 2, now = i - APPEND_AHEAD;

		if (i % APPEND_PATIENCE == 0)
		{
			STOP_POINT("append-edits");
			CHECK_FOR_INTERRUPTS();
		}
		if (i < n)
			grid_prefetch_cell(tiles[i], placed[i].row, placed[i].col);
		if (i >= APPEND_AHEAD / 2 && content < n)
			grid_prefetch_content(tiles[content], placed[content].row, placed[content].col);
		if (i >= APPEND_AHEAD)
			append_edit(append, &edits[now], &placed[now], tiles[now]);
	}
}

/* An edit that changes nothing has read all the same: who changes what it has seen must be known to the predicate
 * locks, as with every other read in SERIALIZABLE. */
void
append_note_read(const WriterSheet *ws)
{
	ReplayLast last;

	if (IsolationIsSerializable())
		replay_last(ws->sheet_id, GetTransactionSnapshot(), &last);
}

/* The single edit of a transaction is not noted: a second call builds what it needs, and mostly there is none. Where
 * the table is there, as it is after edits that have changed nothing, it must have all of them. */
static bool
append_notes(const WriterSheet *ws, const AppendCall *call)
{
	return call->nedits > 1 || writer_has_changes(ws) || ws->newest != NULL;
}

void
append_edits(WriterSheet *ws, const AppendCall *call, AppendResult *result)
{
	Append append = {.ws = ws, .call = call, .result = result, .note = append_notes(ws, call)};
	GridTile **tiles = MemoryContextAlloc(writer_scratch, sizeof(GridTile *) * Max(call->nedits, 1));
	Edit *placed = call->edits;
	bool record;

	*result = (AppendResult){0, ws->meta.last_seq, ws->meta.last_at};

	/* A commit record touches no cell: nobody need load a sheet for it that may have been evicted. */
	record = call->nedits == 1 && call->edits[0].kind == EDIT_COMMIT;
	if (!record)
		placed = writer_prepare(ws, call->edits, call->nedits, tiles);
	append.meta = ws->meta;
	append_encode_init(&append, (Size) call->nedits * 64 + 64);
	STOP_POINT("append-stage");
	if (record)
		append_edit(&append, &call->edits[0], placed, NULL);
	else
		append_all(&append, placed, tiles);
	if (placed != call->edits)
		pfree(placed);
	pfree(tiles);
	ws->meta.rows = append.meta.rows;
	ws->meta.cols = append.meta.cols;
	if (append.kept > 0)
	{
		append_end_row(&append);
		STOP_POINT("append-staged");
	}
	pfree(append.data);
	if (result->first_seq != 0)
		CommandCounterIncrement();
	else
		append_note_read(ws);
}

void
append_commit_record(const VersionHead *head)
{
	Append append = {0};
	Edit record = {.kind = EDIT_COMMIT, .uid = head->uid, .row = head->cause, .content = head->label};
	AppendRow row = {.sheet_id = head->sheet_id,
					 .segment_id = head->version_id,
					 .first_seq = head->seq,
					 .last_seq = head->seq,
					 .at = head->at};

	writer_begin();
	append_encode_init(&append, edit_size_bound(&record));
	append_encode(&append, &record, false, 0);
	append_store(&row, append_encoded(&append));
	pfree(append.data);
}
