/*
 * link_write.c - sheet.link_write(): what guests of a link to a rectangle write in it.
 *
 * A guest sets contents of cells that are in the rectangle when the edit is stored, and learns nothing of other cells.
 * So his rows and columns count from the rectangle's first cell, wherever that is.
 *
 *   1 The link's row names its sheet, which never changes.
 *   2 The sheet lock is taken. No lock of this function comes before or after it, as with every edit.
 *   3 With the latest snapshot: the role of the link, and where the rectangle is. It moves only under the sheet lock,
 * so it stays there until the transaction ends. A link that was revoked, blocked or changed before this writes nothing.
 *   4 The rectangle has the size that the guest has seen, if he says so: otherwise rows or columns have come or gone
 *     inside, and his places may be of other cells.
 *   5 Each edit lies in the rectangle, and sets a content that is no formula.
 *   6 Each cell has the content that the guest has seen. Nothing is stored if one has another.
 *   7 journal_edit(): the log, the limits, and whoever follows the sheet.
 *
 * A formula could name cells outside, and its value, or a later change of its text, would tell of them. So a guest
 * writes none. What begins with = counts as one here, as it does where formulas are hidden from guests, and where
 * structure edits rewrite them. An apostrophe before it makes it a text.
 *
 * A guest may overwrite a formula of others, since he edits these cells, but only if he says that he has seen one: its
 * text is hidden from him, so no text that he has seen can stand for it. It is not compared either: he could guess it.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "journal/store/rect_store.h"
#include "journal/write/batch.h"
#include "journal/write/writer.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"

PG_FUNCTION_INFO_V1(sheet_link_write);

/* ---- the edits ---- */

static void
link_check_edit(const Edit *edit, uint32 index)
{
	if (edit->kind != EDIT_SET || edit->style.data != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an edit does not set a content alone"),
						errdetail("In edit %u of the batch.", index + 1)));
	if (grid_is_formula(edit->content.data, edit->content.len))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("guests of a rectangle write no formulas"),
						errdetail("In edit %u of the batch.", index + 1),
						errhint("An apostrophe before the = makes it a text.")));
}

/* Moves the edits, whose places count from the rectangle's first cell, to their places in the sheet. */
static void
link_place_edits(Edit *edits, uint32 n, const LinkRect *rect)
{
	for (uint32 i = 0; i < n; i++)
	{
		if (edits[i].row > rect->row1 - rect->row0 || edits[i].col > rect->col1 - rect->col0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a cell is outside of the rectangle"),
							errdetail("Row %u and column %u, counted from 0, of %u rows and %u columns.", edits[i].row,
									  edits[i].col, rect->row1 - rect->row0 + 1, rect->col1 - rect->col0 + 1)));
		edits[i].row += rect->row0;
		edits[i].col += rect->col0;
	}
}

/* ---- what the guest has seen ---- */

/* The edits in reading order, which are compared with the cells of the sheet in the same order. */
typedef struct LinkSeen
{
	const Edit **edits;
	uint32 n, done;
	const Edit *changed; /* the first one whose cell has another content */
	MemoryContext context;
	char *content; /* of that cell; NULL: a formula */
} LinkSeen;

static int
link_compare_edits(const void *a, const void *b)
{
	const Edit *left = *(const Edit *const *) a, *right = *(const Edit *const *) b;

	return grid_compare_cells(left->row, left->col, right->row, right->col);
}

/* Whether the guest has seen this content. */
static bool
link_has_seen(const Edit *edit, const char *content, uint32 len)
{
	if (grid_is_formula(content, len))
		return edit->old.data != NULL && grid_is_formula(edit->old.data, edit->old.len);
	return edit->old.data == NULL || (edit->old.len == len && memcmp(edit->old.data, content, len) == 0);
}

static void
link_compare_seen(LinkSeen *seen, const char *content, uint32 len)
{
	const Edit *edit = seen->edits[seen->done++];

	if (seen->changed != NULL || link_has_seen(edit, content, len))
		return;
	seen->changed = edit;
	if (grid_is_formula(content, len))
		return;
	seen->content = MemoryContextAlloc(seen->context, len + 1);
	memcpy(seen->content, content, len);
	seen->content[len] = '\0';
}

static void
link_seen_begin(void *arg)
{
	LinkSeen *seen = arg;

	seen->done = 0;
	seen->changed = NULL;
	seen->content = NULL;
}

/* The edits up to the cell: those before it are of cells that are empty. */
static void
link_seen_cells(void *arg, const GridCell *cells, uint32 count)
{
	LinkSeen *seen = arg;

	for (uint32 i = 0; i < count; i++)
	{
		int order;

		while (seen->done < seen->n &&
			   (order = grid_compare_cells(seen->edits[seen->done]->row, seen->edits[seen->done]->col, cells[i].row,
										   cells[i].col)) <= 0)
			link_compare_seen(seen, order == 0 ? cells[i].content : "", order == 0 ? cells[i].content_len : 0);
	}
}

/* Returns the first edit whose cell has another content than the guest has seen, and sets *content to it (NULL: a
 * formula). NULL: there is none. Caller must hold the sheet lock. */
static const Edit *
link_find_changed(int64 sheet_id, const Edit *edits, uint32 n, char **content)
{
	LinkSeen seen = {.edits = palloc(sizeof(Edit *) * Max(n, 1)), .n = n, .context = CurrentMemoryContext};
	JournalSink sink = {link_seen_begin, link_seen_cells, &seen};
	JournalView view;
	uint32 rect[4] = {SHEET_MAX_ROWS, SHEET_MAX_COLS, 0, 0};

	if (n == 0)
		return NULL;
	for (uint32 i = 0; i < n; i++)
	{
		seen.edits[i] = &edits[i];
		rect[0] = Min(rect[0], edits[i].row);
		rect[1] = Min(rect[1], edits[i].col);
		rect[2] = Max(rect[2], edits[i].row);
		rect[3] = Max(rect[3], edits[i].col);
	}
	qsort(seen.edits, n, sizeof(Edit *), link_compare_edits);
	journal_read(sheet_id, rect, true, &view, &sink);
	while (seen.done < n)
		link_compare_seen(&seen, "", 0);
	pfree(seen.edits);
	*content = seen.content;
	return seen.changed;
}

/* ---- the function ---- */

/* The sheet of the guest's link. */
static int64
link_require_part(int64 uid)
{
	int64 sheet_id = 0;

	if (permission_is_guest(uid))
		(void) permission_in_part(uid, &sheet_id);
	if (sheet_id == 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("the link is not to a part of a sheet")));
	return sheet_id;
}

/* Caller must hold the sheet lock. */
static void
link_require_editor(int64 uid, WriterSheet *ws, LinkRect *rect)
{
	int64 sheet_id;
	SheetRole role = permission_in_part(uid, &sheet_id);
	Snapshot snapshot;
	bool found;

	if (role == ROLE_NONE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION), errmsg("the link has ended"),
						errdetail("Or it is blocked, or was revoked.")));
	if (role < ROLE_EDITOR)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("the link is for viewers"),
						errhint("The owner of the sheet can change its role with sheet.change_link().")));
	writer_require_live(ws);
	snapshot = RegisterSnapshot(writer_snapshot());
	found = rect_store_find(ws->sheet_id, permission_link_of(uid), PG_INT64_MAX, snapshot, rect);
	UnregisterSnapshot(snapshot);
	if (!found || rect->lost)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("no cell of the rectangle is left"),
						errhint("Create another link with sheet.create_link().")));
}

/* SM001 unless the rectangle has so many rows and columns; 0: any. */
static void
link_require_size(const LinkRect *rect, int64 rows, int64 cols)
{
	int64 has_rows = (int64) rect->row1 - rect->row0 + 1, has_cols = (int64) rect->col1 - rect->col0 + 1;

	if ((rows != 0 && rows != has_rows) || (cols != 0 && cols != has_cols))
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'M', '0', '0', '1')), errmsg("the rectangle has another size"),
						errdetail("It has " INT64_FORMAT " rows and " INT64_FORMAT " columns.", has_rows, has_cols),
						errhint("Rows or columns were inserted or deleted in it: read its cells again.")));
}

/* link_write(edits, rows, cols, nowait, as_uid) */
Datum
sheet_link_write(PG_FUNCTION_ARGS)
{
	int64 uid, sheet_id;
	Datum values[5];
	bool nulls[5] = {true, true, true, true, true};
	const bytea *bytes;
	const Edit *changed;
	char *content = NULL;
	WriterSheet *ws;
	LinkRect rect;
	Edit *edits;
	uint32 n;

	permission_require_gateway();
	catalog_require_arg(fcinfo, 0, "edits");
	catalog_require_arg(fcinfo, 4, "as_uid");
	bytes = PG_GETARG_BYTEA_PP(0);
	uid = PG_GETARG_INT64(4);
	writer_require_writable("sheet.link_write()");
	batch_check_size(VARSIZE_ANY_EXHDR(bytes));
	sheet_id = link_require_part(uid);
	if (!PG_ARGISNULL(3) && PG_GETARG_BOOL(3) && !writer_try_lock_sheet(sheet_id))
		return catalog_return_row(fcinfo, values, nulls);
	writer_begin();
	edits = batch_decode(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), &n);
	ws = writer_open(sheet_id);
	link_require_editor(uid, ws, &rect);
	link_require_size(&rect, PG_ARGISNULL(1) ? 0 : PG_GETARG_INT32(1), PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2));
	for (uint32 i = 0; i < n; i++)
	{
		link_check_edit(&edits[i], i);
		edits[i].uid = (uint64) uid;
	}
	link_place_edits(edits, n, &rect);
	nulls[0] = false;
	values[0] = Int64GetDatum(sheet_id);
	changed = link_find_changed(sheet_id, edits, n, &content);
	if (changed == NULL)
	{
		nulls[1] = false;
		values[1] = Int64GetDatum(n > 0 ? journal_edit(sheet_id, edits, n) : ws->meta.last_seq);
		return catalog_return_row(fcinfo, values, nulls);
	}
	nulls[2] = nulls[3] = false;
	nulls[4] = content == NULL;
	values[2] = Int32GetDatum((int32) (changed->row - rect.row0));
	values[3] = Int32GetDatum((int32) (changed->col - rect.col0));
	if (content != NULL)
		values[4] = CStringGetTextDatum(content);
	return catalog_return_row(fcinfo, values, nulls);
}
