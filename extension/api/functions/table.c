/* table.c - a sheet as a table: as_table, with columns and types from the caller, and names for the columns. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "api/scan/cells.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(sheet_as_table);
PG_FUNCTION_INFO_V1(sheet_column_names);

typedef struct TableColumn
{
	FmgrInfo input;
	Oid param;
	int32 typmod;
	bool is_text;
} TableColumn;

/* What is being converted, for the error's context. */
typedef struct TablePlace
{
	uint32 row, col;
	const char *column;
} TablePlace;

static void
table_error_context(void *arg)
{
	const TablePlace *place = arg;
	char a1[A1_MAX];

	a1_format_cell(a1, place->row, place->col);
	errcontext("cell %s, column \"%s\"", a1, place->column);
}

static bool
table_arg(FunctionCallInfo fcinfo, int arg)
{
	return !PG_ARGISNULL(arg) && PG_GETARG_BOOL(arg);
}

/* The cells of the sheet, with the values of formulas or, if they are wanted, their texts. */
static CellList *
table_read(int64 sheet_id, bool formulas)
{
	return formulas ? cells_read(sheet_id, NULL, false) : cells_read_values(sheet_id, NULL, false);
}

/* Whether the cell has a content, or shows what an array has put there. */
static bool
table_has_text(const CellList *list, Size i)
{
	return list->cells[i].content_len > 0 || cells_shown(list, i).len > 0;
}

static char *
table_shown_text(const CellList *list, Size i)
{
	CellShown shown = cells_shown(list, i);

	return pnstrdup(shown.text, shown.len);
}

static TableColumn *
table_columns(TupleDesc desc)
{
	TableColumn *columns = palloc(sizeof(TableColumn) * desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		bool preferred;
		char category;
		Oid input;

		getTypeInputInfo(TupleDescAttr(desc, i)->atttypid, &input, &columns[i].param);
		fmgr_info(input, &columns[i].input);
		columns[i].typmod = TupleDescAttr(desc, i)->atttypmod;
		get_type_category_preferred(TupleDescAttr(desc, i)->atttypid, &category, &preferred);
		columns[i].is_text = category == TYPCATEGORY_STRING;
	}
	return columns;
}

/* Null in a table: an empty cell, and a formula with an empty text. A content of one apostrophe is a text without
 * characters. */
static bool
table_is_empty(const Cell *cell, const CellShown *shown)
{
	return shown->len == 0 && (cell->content_len == 0 || cell->content[0] == '=');
}

/* errors_as_null: errors of formulas are null in columns that have no texts. One row from cells[i] on; returns the
 * index of the first cell of a later row. */
static Size
table_put_row(ReturnSetInfo *rsinfo, TableColumn *columns, const CellList *list, Size i, uint32 row,
			  bool errors_as_null)
{
	TupleDesc desc = rsinfo->setDesc;
	Datum *values = palloc0(sizeof(Datum) * desc->natts);
	bool *nulls = palloc(sizeof(bool) * desc->natts);
	TablePlace place = {row, 0, ""};
	ErrorContextCallback callback = {error_context_stack, table_error_context, &place};

	memset(nulls, true, sizeof(bool) * desc->natts);
	error_context_stack = &callback;
	for (; i < list->count && list->cells[i].row == row; i++)
	{
		const Cell *cell = &list->cells[i];
		CellShown shown = cells_shown(list, i);

		if (cell->col >= desc->natts || table_is_empty(cell, &shown) ||
			(shown.error && errors_as_null && !columns[cell->col].is_text))
			continue;
		place.col = cell->col;
		place.column = NameStr(TupleDescAttr(desc, cell->col)->attname);
		values[cell->col] = InputFunctionCall(&columns[cell->col].input, pnstrdup(shown.text, shown.len),
											  columns[cell->col].param, columns[cell->col].typmod);
		nulls[cell->col] = false;
	}
	error_context_stack = callback.previous;
	tuplestore_putvalues(rsinfo->setResult, desc, values, nulls);
	return i;
}

/* as_table(sheet_id, header, formulas, errors_as_null): rows up to the last one with content; empty ones between are
 * rows of nulls */
Datum
sheet_as_table(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	uint32 first = PG_ARGISNULL(1) || PG_GETARG_BOOL(1) ? 1 : 0;
	MemoryContext row_context, old;
	TableColumn *columns;
	CellList *list;
	Size i = 0;

	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	columns = table_columns(rsinfo->setDesc);
	list = table_read(sheet_id, table_arg(fcinfo, 2));
	while (list->count > 0 && !table_has_text(list, list->count - 1))
		list->count--;
	while (i < list->count && list->cells[i].row < first)
		i++;
	row_context = AllocSetContextCreate(CurrentMemoryContext, "row", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (uint32 row = first; i < list->count; row++)
	{
		CHECK_FOR_INTERRUPTS();
		i = table_put_row(rsinfo, columns, list, i, row, table_arg(fcinfo, 3));
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	return (Datum) 0;
}

/* ---- names ---- */

static bool
table_name_taken(char **names, uint32 count, const char *name)
{
	for (uint32 i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* At most NAMEDATALEN - 1 bytes, distinct from the names before: "total", "total_2", "total_3". */
static char *
table_distinct_name(char **names, uint32 count, const char *wanted)
{
	char *name = pnstrdup(wanted, pg_mbcliplen(wanted, strlen(wanted), NAMEDATALEN - 1));

	for (int number = 2; table_name_taken(names, count, name); number++)
	{
		char *tail = psprintf("_%d", number);

		name = psprintf("%.*s%s", pg_mbcliplen(wanted, strlen(wanted), NAMEDATALEN - 1 - strlen(tail)), wanted, tail);
	}
	return name;
}

/* column_names(sheet_id, header, formulas) */
Datum
sheet_column_names(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	bool header = PG_ARGISNULL(1) || PG_GETARG_BOOL(1);
	uint32 cols = 0;
	char **wanted, **names;
	Datum *values;
	CellList *list;

	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	list = table_read(sheet_id, table_arg(fcinfo, 2));
	wanted = palloc0(sizeof(char *) * SHEET_MAX_COLS);
	for (Size i = 0; i < list->count; i++)
	{
		const Cell *cell = &list->cells[i];

		if (!table_has_text(list, i))
			continue;
		cols = Max(cols, cell->col + 1);
		if (header && cell->row == 0)
			wanted[cell->col] = table_shown_text(list, i);
	}
	if (cols > MaxTupleAttributeNumber)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS), errmsg("the sheet uses %u columns", cols),
						errdetail("A table of SQL has at most %d.", MaxTupleAttributeNumber)));
	names = palloc(sizeof(char *) * Max(cols, 1));
	values = palloc(sizeof(Datum) * Max(cols, 1));
	for (uint32 col = 0; col < cols; col++)
	{
		char letters[A1_MAX];

		a1_format_column(letters, col);
		names[col] =
			table_distinct_name(names, col, wanted[col] != NULL && wanted[col][0] != '\0' ? wanted[col] : letters);
		values[col] = CStringGetTextDatum(names[col]);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(values, (int) cols, TEXTOID, -1, false, TYPALIGN_INT));
}
