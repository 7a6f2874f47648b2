/* references.c - SQL functions that set and read cells by reference, and insert and delete rows and columns. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "api/scan/cells.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_set_ref);
PG_FUNCTION_INFO_V1(sheet_set_place);
PG_FUNCTION_INFO_V1(sheet_set_range);
PG_FUNCTION_INFO_V1(sheet_insert_rows);
PG_FUNCTION_INFO_V1(sheet_delete_rows);
PG_FUNCTION_INFO_V1(sheet_insert_columns);
PG_FUNCTION_INFO_V1(sheet_delete_columns);
PG_FUNCTION_INFO_V1(sheet_get);
PG_FUNCTION_INFO_V1(sheet_diff);

/* ---- setting ---- */

/* content NULL: clears the cell, as an empty one does. */
static Edit
references_edit(uint64 uid, uint32 row, uint32 col, const text *content)
{
	if (content == NULL)
		return cells_edit(uid, row, col, "", 0);
	return cells_edit(uid, row, col, VARDATA_ANY(content), VARSIZE_ANY_EXHDR(content));
}

static int64
references_set(int64 sheet_id, uint32 row, uint32 col, FunctionCallInfo fcinfo, int arg)
{
	uint64 uid = permission_require(sheet_id, 0, ROLE_EDITOR, false);
	Edit edit = references_edit(uid, row, col, PG_ARGISNULL(arg) ? NULL : PG_GETARG_TEXT_PP(arg));

	return journal_edit(sheet_id, &edit, 1);
}

/* set(sheet_id, ref, content) */
Datum
sheet_set_ref(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	uint32 row, col;

	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &row, &col);
	PG_RETURN_INT64(references_set(sheet_id, row, col, fcinfo, 2));
}

/* set(sheet_id, row, col, content) */
Datum
sheet_set_place(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the row and the column must not be null")));
	cells_check_place(PG_GETARG_INT32(1), PG_GETARG_INT32(2));
	PG_RETURN_INT64(references_set(sheet_id, PG_GETARG_INT32(1), PG_GETARG_INT32(2), fcinfo, 3));
}

/* set_range(sheet_id, ref, content text[][], as_uid): ref is the upper left corner; nulls clear */
Datum
sheet_set_range(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);
	ArrayType *array;
	Datum *values;
	bool *nulls;
	int count, cols;
	uint32 row, col, n = 0;
	int64 last_seq = 0;
	uint64 uid;
	Edit *edits;

	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &row, &col);
	catalog_require_arg(fcinfo, 2, "contents");
	array = PG_GETARG_ARRAYTYPE_P(2);
	if (ARR_NDIM(array) > 2)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the contents have %d dimensions, a sheet has two", ARR_NDIM(array))));
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
	if (count == 0) /* nothing to apply: the sheet's seq */
		PG_RETURN_INT64(cells_read(sheet_id, (uint32[4]){0, 0, 0, 0}, true)->view.seq);
	cols = ARR_DIMS(array)[ARR_NDIM(array) - 1];
	cells_check_place((int64) row + count / cols - 1, (int64) col + cols - 1);
	edits = palloc(sizeof(Edit) * Min(count, SHEET_MAX_BATCH_EDITS));
	for (int i = 0; i < count; i++)
	{
		edits[n++] = references_edit(uid, row + i / cols, col + i % cols, nulls[i] ? NULL : DatumGetTextPP(values[i]));
		if (n == SHEET_MAX_BATCH_EDITS || i + 1 == count)
		{
			last_seq = journal_edit(sheet_id, edits, n);
			n = 0;
		}
	}
	PG_RETURN_INT64(last_seq);
}

/* ---- rows and columns ---- */

static void
references_check_lines(bool rows, int32 at, int32 n)
{
	int32 limit = rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS;
	const char *what = rows ? "row" : "column";

	if (at < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("rows and columns start at 0")));
	if (n < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one %s must be named", what)));
	if (at >= limit || n > limit - at)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("%ss %d to " INT64_FORMAT " lie outside of sheets", what, at, (int64) at + n - 1),
						errdetail("A sheet has at most %d rows and %d columns.", SHEET_MAX_ROWS, SHEET_MAX_COLS)));
}

/* f(sheet_id, at, n, as_uid) */
static Datum
references_change(FunctionCallInfo fcinfo, bool rows, bool insert)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);
	char text[LINE_CHANGE_TEXT];
	LineChange change = {.rows = rows, .insert = insert};
	Edit edit;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("where, and how many, must not be null")));
	references_check_lines(rows, PG_GETARG_INT32(1), PG_GETARG_INT32(2));
	change.at = (uint32) PG_GETARG_INT32(1);
	change.n = (uint32) PG_GETARG_INT32(2);
	edit = line_change_edit(&change, permission_require(sheet_id, as_uid, ROLE_EDITOR, false), text);
	PG_RETURN_INT64(journal_edit(sheet_id, &edit, 1));
}

Datum
sheet_insert_rows(PG_FUNCTION_ARGS)
{
	return references_change(fcinfo, true, true);
}

Datum
sheet_delete_rows(PG_FUNCTION_ARGS)
{
	return references_change(fcinfo, true, false);
}

Datum
sheet_insert_columns(PG_FUNCTION_ARGS)
{
	return references_change(fcinfo, false, true);
}

Datum
sheet_delete_columns(PG_FUNCTION_ARGS)
{
	return references_change(fcinfo, false, false);
}

/* ---- reading ---- */

/* get(sheet_id, ref) */
Datum
sheet_get(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	uint32 row, col;
	CellList *list;

	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &row, &col);
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	list = cells_read(sheet_id, (uint32[4]){row, col, row, col}, false);
	if (list->count == 0 || list->cells[0].content_len == 0)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(cells_text(list->cells[0].content, list->cells[0].content_len));
}

/* ---- differences ---- */

static int
references_compare(const CellList *a, Size i, const CellList *b, Size j)
{
	if (i == a->count)
		return 1;
	if (j == b->count)
		return -1;
	return grid_compare_cells(a->cells[i].row, a->cells[i].col, b->cells[j].row, b->cells[j].col);
}

static void
references_put_difference(ReturnSetInfo *rsinfo, const Cell *old, const Cell *new)
{
	const Cell *cell = old != NULL ? old : new;
	Datum values[5] = {Int32GetDatum((int32) cell->row), Int32GetDatum((int32) cell->col),
					   cells_a1(cell->row, cell->col)};
	bool nulls[5] = {false, false, false, old == NULL || old->content_len == 0, new == NULL || new->content_len == 0};

	if (nulls[3] && nulls[4])
		return;
	if (!nulls[3] && !nulls[4] && old->content_len == new->content_len &&
		memcmp(old->content, new->content, old->content_len) == 0)
		return;
	if (!nulls[3])
		values[3] = cells_text(old->content, old->content_len);
	if (!nulls[4])
		values[4] = cells_text(new->content, new->content_len);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* diff(sheet_id, version_id_a, version_id_b, as_uid): cells whose content differs; both lists are in reading order */
Datum
sheet_diff(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	CellList *a, *b;

	catalog_require_arg(fcinfo, 1, "version");
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 3, 0), ROLE_VIEWER, false);
	InitMaterializedSRF(fcinfo, 0);
	a = cells_read_version(sheet_id, PG_GETARG_INT64(1), NULL);
	b = PG_ARGISNULL(2) ? cells_read(sheet_id, NULL, false) : cells_read_version(sheet_id, PG_GETARG_INT64(2), NULL);
	for (Size i = 0, j = 0; i < a->count || j < b->count;)
	{
		int order = references_compare(a, i, b, j);

		CHECK_FOR_INTERRUPTS();
		references_put_difference(rsinfo, order <= 0 ? &a->cells[i] : NULL, order >= 0 ? &b->cells[j] : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return (Datum) 0;
}
