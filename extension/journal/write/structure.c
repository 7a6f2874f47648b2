/*
 * structure.c - inserting and deleting rows and columns.
 *
 * No cell is moved, only the axes change (writer_axes.c). What a deletion takes away is emptied first, by edits of its
 * own that tell what was there: the log shows who removed what, old versions and rollbacks need nothing else, and the
 * lines that the axis puts behind all others are as empty as those have to be. All of it is one transaction's, so
 * others see all or nothing.
 */
#include "postgres.h"

#include "journal/write/append.h"
#include "journal/journal.h"
#include "journal/replay/replay_edit.h"
#include "journal/write/structure.h"
#include "journal/store/timeconv.h"
#include "utils/memutils.h"

#define STRUCTURE_CHUNK 4096 /* cells that are emptied at once */

void
structure_add_result(AppendResult *sum, const AppendResult *next)
{
	if (sum->first_seq == 0 && next->first_seq != 0)
	{
		sum->first_seq = next->first_seq;
		sum->at = next->at;
	}
	sum->last_seq = next->last_seq;
}

static void
structure_append_edits(WriterSheet *ws, const AppendCall *call, Edit *edits, uint32 nedits, AppendResult *result)
{
	AppendCall own = *call;
	AppendResult next;

	own.edits = edits;
	own.nedits = nedits;
	own.follows = call->follows || result->first_seq != 0;
	own.padded = false;
	append_edits(ws, &own, &next);
	structure_add_result(result, &next);
}

static GridRect
structure_lines(AxesLine line, uint32 first, uint32 n)
{
	if (line == AXES_ROW)
		return (GridRect){first, 0, first + n - 1, SHEET_MAX_COLS - 1};
	return (GridRect){0, first, SHEET_MAX_ROWS - 1, first + n - 1};
}

static void
structure_empty_cells(WriterSheet *ws, const AxesChange *change, uint64 uid, const AppendCall *call,
					  AppendResult *result)
{
	GridRect rect = structure_lines(change->line, change->at, change->n);
	Size count, done = 0;
	WriterPlace *places = writer_list_cells(ws, &rect, false, &count);
	Edit *edits = palloc(sizeof(Edit) * STRUCTURE_CHUNK);

	while (done < count)
	{
		uint32 n = 0;

		for (; n < STRUCTURE_CHUNK && done < count; done++, n++)
			edits[n] = (Edit){.kind = EDIT_SET,
							  .uid = uid,
							  .row = places[done].row,
							  .col = places[done].col,
							  .content = {"", 0},
							  .style = {"", 0}};
		structure_append_edits(ws, call, edits, n, result);
	}
}

/* Lines that an insert pushes beyond the end of sheets must be empty. */
static void
structure_check_end(WriterSheet *ws, const AxesChange *change, uint32 extent)
{
	uint32 limit = axes_limit(change->line);
	GridRect rect = structure_lines(change->line, limit - change->n, change->n);
	WriterPlace *places;
	Size count;

	if (extent <= limit - change->n)
		return;
	places = writer_list_cells(ws, &rect, true, &count);
	if (count > 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("there is no room for %u more %s", change->n, change->line == AXES_ROW ? "rows" : "columns"),
			 errdetail(
				 "Row %u, column %u holds something and would be pushed beyond the end; a sheet has at most %d rows "
				 "and %d columns.",
				 places[0].row, places[0].col, SHEET_MAX_ROWS, SHEET_MAX_COLS),
			 errhint("Delete rows or columns at the end first.")));
}

/* Of what is deleted, only what the sheet has counts. False when that is nothing. */
static bool
structure_clip(AxesChange *change, uint32 extent)
{
	if (change->at >= extent)
		return false;
	change->n = Min(change->n, extent - change->at);
	return true;
}

static void
structure_append_change(WriterSheet *ws, const Edit *edit, const AppendCall *call, AppendResult *result)
{
	AxesChange change;
	Edit own = *edit;
	char text[EDIT_LINES_MAX];
	uint32 extent;

	if (!replay_change_of(edit, &change))
		elog(ERROR, "a structure edit was not checked");
	extent = change.line == AXES_ROW ? ws->meta.rows : ws->meta.cols;
	if (change.insert)
		structure_check_end(ws, &change, extent);
	else if (structure_clip(&change, extent))
		structure_empty_cells(ws, &change, edit->uid, call, result);
	else
	{
		append_note_read(ws);
		return;
	}
	own.content = edit_lines_text(change.n, text);
	own.style = (EditText){NULL, 0};
	structure_append_edits(ws, call, &own, 1, result);
}

void
structure_append(WriterSheet *ws, const Edit *edit, const AppendCall *call, AppendResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet structure", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	result->last_seq = ws->meta.last_seq;
	(void) writer_prepare(ws, NULL, 0, NULL);
	structure_append_change(ws, edit, call, result);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

int64
journal_restructure(int64 sheet_id, EditKind kind, uint32 at, uint32 n, uint64 uid)
{
	char text[EDIT_LINES_MAX];
	bool rows = edit_is_of_rows(kind);
	Edit edit = {
		.kind = kind, .uid = uid, .row = rows ? at : 0, .col = rows ? 0 : at, .content = edit_lines_text(n, text)};
	AppendCall call = {0};
	AppendResult result = {0};
	WriterSheet *ws;

	writer_require_writable("inserting and deleting rows and columns");
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	structure_append(ws, &edit, &call, &result);
	return result.last_seq;
}
