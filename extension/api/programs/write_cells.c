/*
 * write_cells.c - sheet.write_cells(): cells that a program sets through a gateway, below what is there, or only if
 * nobody else has set them.
 *
 * The sheet lock is taken first. What is decided under it, the row to append to and whether cells have changed, is true
 * until the transaction ends: two appends never meet, and of two writers with the same precondition one fails.
 */
#include "postgres.h"

#include "api/functions/functions.h"
#include "api/scan/cells.h"
#include "journal/replay/batches.h"
#include "journal/store/trimmark.h"
#include "journal/write/batch.h"
#include "journal/write/writer.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"

PG_FUNCTION_INFO_V1(sheet_write_cells);

#define WRITE_LOOK_BACK	 10000 /* edits after the seq of a precondition */
#define WRITE_WINDOW_MIN 64	   /* rows that are searched for the last content at once */
#define WRITE_WINDOW_MAX 16384

/* ---- the precondition ---- */

typedef struct WriteCells
{
	const uint64 *keys; /* of the cells that are written, sorted */
	uint32 count;
	bool any;	  /* any edit counts */
	bool changed; /* one of them was set */
} WriteCells;

static uint64
write_key(const Edit *edit)
{
	return (uint64) edit->row << 32 | edit->col;
}

static int
write_compare_keys(const void *a, const void *b)
{
	uint64 left = *(const uint64 *) a, right = *(const uint64 *) b;

	return left < right ? -1 : left > right;
}

/* After rows or columns have moved, the cells have other names. */
static void
write_look_at(void *arg, int64 seq, int64 at, const Edit *edit)
{
	WriteCells *cells = arg;
	uint64 key = write_key(edit);

	if (edit->kind == EDIT_SET)
		cells->changed |= cells->any || bsearch(&key, cells->keys, cells->count, sizeof(uint64), write_compare_keys);
	else
		cells->changed |= edit_is_structure(edit->kind);
}

/* Whether a content of the cells has changed since the seq, or may have. */
static bool
write_has_changed(const WriterSheet *ws, int64 since, WriteCells *cells)
{
	Snapshot snapshot;
	TrimMark mark;

	if (since == ws->meta.last_seq)
		return false;
	if (since > ws->meta.last_seq || ws->meta.last_seq - since > WRITE_LOOK_BACK)
		return true;
	snapshot = RegisterSnapshot(writer_snapshot());
	trim_mark(ws->sheet_id, snapshot, &mark);
	if (mark.version_id == 0 || since >= mark.seq)
		batches_each_edit(ws->sheet_id, since, ws->meta.last_seq, snapshot, write_look_at, cells);
	else
		cells->changed = true;
	UnregisterSnapshot(snapshot);
	return cells->changed;
}

/* Raises SM001 unless the cells have the contents that they had at the seq. */
static void
write_check_unchanged(const WriterSheet *ws, int64 since, const Edit *edits, uint32 n, bool append)
{
	uint64 *keys = palloc(sizeof(uint64) * Max(n, 1));
	WriteCells cells = {.keys = keys, .count = n, .any = append};

	for (uint32 i = 0; i < n; i++)
		keys[i] = write_key(&edits[i]);
	qsort(keys, n, sizeof(uint64), write_compare_keys);
	if (write_has_changed(ws, since, &cells))
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'M', '0', '0', '1')),
						errmsg("the cells have changed since seq " INT64_FORMAT " of sheet " INT64_FORMAT, since,
							   ws->sheet_id),
						errdetail("The last seq is " INT64_FORMAT ".", ws->meta.last_seq),
						errhint("Read the cells again. Cells whose rows or columns have moved, and those of more than "
								"%d edits ago, count as changed.",
								WRITE_LOOK_BACK)));
	pfree(keys);
}

void
write_cells_check_places(int64 sheet_id, int64 since)
{
	writer_begin();
	write_check_unchanged(writer_open(sheet_id), since, NULL, 0, false);
}

/* ---- the row to append to ---- */

static void
write_window_begin(void *arg)
{
	*(int64 *) arg = -1;
}

static void
write_window_cells(void *arg, const GridCell *cells, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		if (cells[i].content_len > 0)
			*(int64 *) arg = cells[i].row;
	}
}

/* The row below the last content. Searches from the end in windows that grow: where there are no cells, a window costs
 * the same for any number of rows. */
static uint32
write_next_row(int64 sheet_id)
{
	uint32 window = WRITE_WINDOW_MIN, to;
	JournalView view;
	int64 last = -1;
	JournalSink sink = {write_window_begin, write_window_cells, &last};

	journal_read(sheet_id, (uint32[4]){0, 0, 0, 0}, true, &view, NULL);
	for (to = view.rows; to > 0 && last < 0; window = Min(window * 4, WRITE_WINDOW_MAX))
	{
		uint32 from = to > window ? to - window : 0;

		CHECK_FOR_INTERRUPTS();
		journal_read(sheet_id, (uint32[4]){from, 0, to - 1, SHEET_MAX_COLS - 1}, true, &view, &sink);
		to = from;
	}
	return (uint32) (last + 1);
}

/* ---- the function ---- */

/* Programs set contents only. */
static Edit *
write_decode(const bytea *bytes, uint64 uid, uint32 *n)
{
	Edit *edits;

	batch_check_size(VARSIZE_ANY_EXHDR(bytes));
	edits = batch_decode(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), n);
	for (uint32 i = 0; i < *n; i++)
	{
		if (edits[i].kind != EDIT_SET || edits[i].style.data != NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an edit does not set a content alone"),
							errdetail("In edit %u of the batch.", i + 1)));
		edits[i].uid = uid;
	}
	return edits;
}

static void
write_place_below(Edit *edits, uint32 n, uint32 first)
{
	for (uint32 i = 0; i < n; i++)
	{
		cells_check_place((int64) edits[i].row + first, edits[i].col);
		edits[i].row += first;
	}
}

/* write_cells(sheet_id, edits, if_seq, append, nowait, as_uid) */
Datum
sheet_write_cells(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), as_uid = catalog_arg_int64(fcinfo, 5, 0);
	bool append = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3), nowait = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	Datum values[2];
	bool nulls[2] = {true, true};
	uint32 n, first = 0;
	WriterSheet *ws;
	Edit *edits;
	uint64 uid;

	permission_require_gateway();
	catalog_require_arg(fcinfo, 1, "edits");
	writer_require_writable("sheet.write_cells()");
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	if (nowait && !writer_try_lock_sheet(sheet_id))
		return catalog_return_row(fcinfo, values, nulls);
	writer_begin();
	edits = write_decode(PG_GETARG_BYTEA_PP(1), uid, &n);
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	if (!PG_ARGISNULL(2))
		write_check_unchanged(ws, PG_GETARG_INT64(2), edits, n, append);
	if (append)
	{
		first = write_next_row(sheet_id);
		write_place_below(edits, n, first);
	}
	values[0] = Int64GetDatum(n > 0 ? journal_edit(sheet_id, edits, n) : ws->meta.last_seq);
	values[1] = Int32GetDatum((int32) first);
	nulls[0] = false;
	nulls[1] = !append;
	return catalog_return_row(fcinfo, values, nulls);
}
