/* structure_api.c - SQL functions that insert and delete rows and columns. */
#include "postgres.h"

#include "permission/catalog.h"
#include "journal/journal.h"
#include "permission/permission.h"

PG_FUNCTION_INFO_V1(sheet_insert_rows);
PG_FUNCTION_INFO_V1(sheet_delete_rows);
PG_FUNCTION_INFO_V1(sheet_insert_columns);
PG_FUNCTION_INFO_V1(sheet_delete_columns);

static void
structure_check_lines(bool rows, int32 at, int32 n)
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
structure_change(FunctionCallInfo fcinfo, EditKind kind)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("where, and how many, must not be null")));
	structure_check_lines(edit_is_of_rows(kind), PG_GETARG_INT32(1), PG_GETARG_INT32(2));
	permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	PG_RETURN_INT64(journal_restructure(sheet_id, kind, (uint32) PG_GETARG_INT32(1), (uint32) PG_GETARG_INT32(2),
										(uint64) permission_uid(as_uid)));
}

Datum
sheet_insert_rows(PG_FUNCTION_ARGS)
{
	return structure_change(fcinfo, EDIT_INSERT_ROWS);
}

Datum
sheet_delete_rows(PG_FUNCTION_ARGS)
{
	return structure_change(fcinfo, EDIT_DELETE_ROWS);
}

Datum
sheet_insert_columns(PG_FUNCTION_ARGS)
{
	return structure_change(fcinfo, EDIT_INSERT_COLUMNS);
}

Datum
sheet_delete_columns(PG_FUNCTION_ARGS)
{
	return structure_change(fcinfo, EDIT_DELETE_COLUMNS);
}
