/*
 * import_rows.c - sheet.import_rows(): the rows of a query become cells.
 *
 * The query runs to its end before the sheet is locked. So a slow query delays nobody who edits the sheet, and a query
 * that reads the sheet never sees what it becomes. Its rows are in a tuplestore meanwhile, on disk if they take more
 * than work_mem.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "catalog/pg_type.h"
#include "common/utf8.h"
#include "common/value.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(sheet_import_rows);

#define ROWS_BATCH_BYTES (1024 * 1024) /* of the contents of a batch */

/* How a column's values become contents. */
typedef struct RowsColumn
{
	const char *name;
	FmgrInfo output;
	bool boolean;
	bool text; /* a text stays one: "12" and "=A1" get an apostrophe in front */
} RowsColumn;

typedef struct RowsImport
{
	int64 sheet_id;
	uint64 uid;
	uint32 row, col; /* of the upper left corner */
	bool formulas;
	int ncolumns;
	RowsColumn *columns;
	/* the batch */
	Edit *edits;
	uint32 nedits;
	char *contents;
	Size used;
	int64 last_seq;
} RowsImport;

/* ---- the batch ---- */

static void
rows_flush(RowsImport *import)
{
	import->last_seq = journal_edit(import->sheet_id, import->edits, import->nedits);
	import->nedits = 0;
	import->used = 0;
}

/* Sets the cell to a content, or to a text. */
static void
rows_add(RowsImport *import, uint32 row, uint32 col, const char *content, bool text)
{
	bool escape = text && value_is_no_text(content);
	Size len = strlen(content) + escape;
	size_t chars;
	char *to;

	if (len > SHEET_MAX_CONTENT_BYTES ||
		(len > SHEET_MAX_CHARS && utf8_check(content, len - escape, &chars) && chars + escape > SHEET_MAX_CHARS))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a value is too long for a cell"),
						errdetail("A cell holds at most %d characters.", SHEET_MAX_CHARS)));
	if (import->nedits == SHEET_MAX_BATCH_EDITS || import->used + len > ROWS_BATCH_BYTES)
		rows_flush(import);
	to = import->contents + import->used;
	if (escape)
		*to = '\'';
	memcpy(to + escape, content, len - escape);
	import->edits[import->nedits++] = cells_edit(import->uid, row, col, to, len);
	import->used += len;
}

/* ---- rows ---- */

static bool
rows_is_text(Oid type)
{
	switch (getBaseType(type))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case NUMERICOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case BOOLOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
			return false;
		default:
			return true;
	}
}

static void
rows_set_columns(RowsImport *import, TupleDesc desc)
{
	import->ncolumns = desc->natts;
	import->columns = palloc0(sizeof(RowsColumn) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		RowsColumn *column = &import->columns[i];
		Oid type = TupleDescAttr(desc, i)->atttypid, function;
		bool varlena;

		cells_check_place(import->row, (int64) import->col + i);
		getTypeOutputInfo(type, &function, &varlena);
		fmgr_info(function, &column->output);
		column->name = pstrdup(NameStr(TupleDescAttr(desc, i)->attname));
		column->boolean = getBaseType(type) == BOOLOID;
		column->text = !import->formulas && rows_is_text(type);
	}
}

static void
rows_add_row(RowsImport *import, uint32 row, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	for (int i = 0; i < import->ncolumns; i++)
	{
		RowsColumn *column = &import->columns[i];
		const char *content = "";

		if (!slot->tts_isnull[i] && column->boolean)
			content = DatumGetBool(slot->tts_values[i]) ? "TRUE" : "FALSE";
		else if (!slot->tts_isnull[i])
			content = OutputFunctionCall(&column->output, slot->tts_values[i]);
		rows_add(import, row, import->col + i, content, column->text);
	}
}

typedef struct RowsPlace
{
	uint64 row; /* of the query, from 1 */
} RowsPlace;

static void
rows_error_context(void *arg)
{
	errcontext("row " UINT64_FORMAT " of the query", ((RowsPlace *) arg)->row);
}

static void
rows_add_all(RowsImport *import, Tuplestorestate *rows, TupleDesc desc, uint32 header)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet row", ALLOCSET_DEFAULT_SIZES), old;
	RowsPlace place = {0};
	ErrorContextCallback callback = {error_context_stack, rows_error_context, &place};

	error_context_stack = &callback;
	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		place.row++;
		cells_check_place((int64) (import->row + header + place.row - 1), import->col);
		old = MemoryContextSwitchTo(context);
		rows_add_row(import, (uint32) (import->row + header + place.row - 1), slot);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	error_context_stack = callback.previous;
	rows_flush(import);
	MemoryContextDelete(context);
	ExecDropSingleTupleTableSlot(slot);
}

/* ---- the query ---- */

/* Runs it with the rights of the caller, as it would run by itself. */
static Tuplestorestate *
rows_run(const char *query, TupleDesc *desc)
{
	SPIPlanPtr plan = SPI_prepare(query, 0, NULL);
	SPIExecuteOptions options = {.must_return_tuples = true};
	Tuplestorestate *rows;

	if (plan == NULL)
		elog(ERROR, "could not prepare the query: %s", SPI_result_code_string(SPI_result));
	if (!SPI_is_cursor_plan(plan))
		ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("the query must be one statement that returns rows")));
	*desc = CreateTupleDescCopy(((CachedPlanSource *) linitial(SPI_plan_get_plan_sources(plan)))->resultDesc);
	rows = tuplestore_begin_heap(false, false, work_mem);
	options.dest = CreateDestReceiver(DestTuplestore);
	SetTuplestoreDestReceiverParams(options.dest, rows, CurrentMemoryContext, true, NULL, NULL);
	SPI_execute_plan_extended(plan, &options);
	options.dest->rDestroy(options.dest);
	return rows;
}

/* Dates have the form of contents, and numbers all their digits, whatever the session has set. */
static int
rows_set_formats(void)
{
	int level = NewGUCNestLevel();

	(void) set_config_option("datestyle", "ISO, YMD", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("extra_float_digits", "1", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("intervalstyle", "iso_8601", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* import_rows(sheet_id, query, ref, header, formulas, as_uid) */
Datum
sheet_import_rows(PG_FUNCTION_ARGS)
{
	RowsImport import = {.sheet_id = catalog_arg_sheet(fcinfo, 0)};
	int64 as_uid = catalog_arg_int64(fcinfo, 5, 0);
	bool header = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
	Tuplestorestate *rows;
	TupleDesc desc;
	int level;

	import.formulas = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	cells_parse_ref(catalog_arg_string(fcinfo, 2, "cell"), &import.row, &import.col);
	(void) permission_require(import.sheet_id, as_uid, ROLE_EDITOR, false);
	SPI_connect();
	rows = rows_run(catalog_arg_string(fcinfo, 1, "query"), &desc);
	/* The query may have taken long. */
	import.uid = permission_require(import.sheet_id, as_uid, ROLE_EDITOR, false);
	rows_set_columns(&import, desc);
	import.edits = palloc(sizeof(Edit) * SHEET_MAX_BATCH_EDITS);
	import.contents = palloc(ROWS_BATCH_BYTES);
	level = rows_set_formats();
	for (int i = 0; header && i < import.ncolumns; i++)
		rows_add(&import, import.row, import.col + i, import.columns[i].name, true);
	rows_add_all(&import, rows, desc, header);
	AtEOXact_GUC(true, level);
	tuplestore_end(rows);
	SPI_finish();
	PG_RETURN_INT64(import.last_seq);
}
