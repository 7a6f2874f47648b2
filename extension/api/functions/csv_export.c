/*
 * csv_export.c - SQL functions that write cells as CSV, TSV or JSON Lines: export_csv, read_csv.
 *
 * TSV has the quotes of CSV, which spreadsheet programs and pandas expect. A row of JSON Lines is an array of strings,
 * and null for an empty cell.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "common/csv.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/json.h"

PG_FUNCTION_INFO_V1(sheet_export_csv);
PG_FUNCTION_INFO_V1(sheet_read_csv);

#define EXPORT_MAX_EMPTY 100000000 /* fields */

typedef struct CsvFormat
{
	const char *name;
	const char *row_begin, *row_end;
	char separator;
	bool json; /* fields are values of JSON */
} CsvFormat;

static const CsvFormat csv_formats[] = {
	{"csv", "", "\r\n", ',', false},
	{"tsv", "", "\r\n", '\t', false},
	{"jsonl", "[", "]\n", ',', true},
};

/* The format that the argument names; null: CSV. */
static const CsvFormat *
csv_arg_format(FunctionCallInfo fcinfo, int arg)
{
	char *name;

	if (PG_ARGISNULL(arg))
		return &csv_formats[0];
	name = text_to_cstring(PG_GETARG_TEXT_PP(arg));
	for (Size i = 0; i < lengthof(csv_formats); i++)
		if (strcmp(name, csv_formats[i].name) == 0)
			return &csv_formats[i];
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a format of exports", name),
					errhint("The formats are csv, tsv and jsonl.")));
}

/* A spreadsheet program takes what begins with one of these for a formula, and runs it. */
static bool
csv_looks_like_formula(const char *data, Size len)
{
	return len > 0 && memchr("=+-@\t\r", data[0], 6) != NULL;
}

static void
csv_append(StringInfo out, const char *data, Size len, char separator, bool escape)
{
	if (escape && csv_looks_like_formula(data, len))
	{
		char *escaped = palloc(len + 1);

		escaped[0] = '\'';
		memcpy(escaped + 1, data, len);
		csv_append(out, escaped, len + 1, separator, false);
		pfree(escaped);
		return;
	}
	enlargeStringInfo(out, (int) (2 * len + 2));
	out->len += (int) csv_write(out->data + out->len, data, len, separator);
	out->data[out->len] = '\0';
}

static void
csv_append_json(StringInfo out, const char *data, Size len)
{
	char *content = pnstrdup(data, len);

	escape_json(out, content);
	pfree(content);
}

/* A content, or the value of a formula, without an apostrophe that an import does not need. An empty text is an empty
 * field. */
static CellShown
csv_field(const CellList *list, Size i)
{
	CellShown shown = cells_value_content(list, i);

	if (csv_omits_apostrophe(shown.text, shown.len))
	{
		shown.text++;
		shown.len--;
	}
	return shown;
}

/* The rows of a rectangle, from its first row and column to the last ones that have a content. */
typedef struct CsvRows
{
	CellList *list;
	Size last;		   /* cells from here on are empty */
	Size next;		   /* the first cell that was not written */
	uint32 row, col;   /* the next field; the column counts from 0 */
	uint32 col0, cols; /* the first column, and their number */
	const CsvFormat *format;
	bool escape;
} CsvRows;

/* A content far from the others makes a field of each cell between them: a cell in the last row and column would make
 * 275 GB of commas. */
static void
csv_rows_check(const CsvRows *rows)
{
	uint64 fields, contents = 0;
	uint32 last_row;

	if (rows->last == 0)
		return;
	last_row = rows->list->cells[rows->last - 1].row;
	fields = (uint64) (last_row - rows->row + 1) * rows->cols;
	for (Size i = 0; i < rows->last; i++)
		contents += csv_field(rows->list, i).len > 0;
	if (fields - contents > EXPORT_MAX_EMPTY)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the export would have " UINT64_FORMAT " empty fields", fields - contents),
				 errdetail("Fields with a content in %s:%s: " UINT64_FORMAT ". At most %d fields may be empty.",
						   TextDatumGetCString(cells_a1(rows->row, rows->col0)),
						   TextDatumGetCString(cells_a1(last_row, rows->col0 + rows->cols - 1)), contents,
						   EXPORT_MAX_EMPTY),
				 errhint("Export ranges around the contents: sheet.export_csv(sheet_id, 'A1:Z1000'). sheet.range() "
						 "gives the cells that are not empty.")));
}

/* The arguments ref, escape_formulas, format and formulas begin at `arg`. fresh: see cells_read(). */
static void
csv_rows_begin(CsvRows *rows, FunctionCallInfo fcinfo, int64 sheet_id, int arg, bool fresh)
{
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	bool escape = !PG_ARGISNULL(arg + 1) && PG_GETARG_BOOL(arg + 1);
	const CsvFormat *format = csv_arg_format(fcinfo, arg + 2);
	CellList *list;

	if (escape && format->json)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("escape_formulas is for csv and tsv only")));
	(void) cells_arg_range(fcinfo, arg, rect);
	list = !PG_ARGISNULL(arg + 3) && PG_GETARG_BOOL(arg + 3) ? cells_read(sheet_id, rect, fresh)
															 : cells_read_values(sheet_id, rect, fresh);
	*rows = (CsvRows){.list = list, .row = rect[0], .col0 = rect[1], .format = format, .escape = escape};
	for (Size i = 0; i < list->count; i++)
		if (csv_field(list, i).len > 0)
		{
			rows->last = i + 1;
			rows->cols = Max(rows->cols, list->cells[i].col - rect[1] + 1);
		}
	csv_rows_check(rows);
}

/* Appends the next field: of the next cell, or empty. */
static void
csv_rows_append_field(const CsvRows *rows, StringInfo out, bool empty)
{
	const CsvFormat *format = rows->format;
	CellShown field = {NULL};

	if (!empty)
		field = csv_field(rows->list, rows->next);

	if (rows->col == 0)
		appendStringInfoString(out, format->row_begin);
	else
		appendStringInfoChar(out, format->separator);
	if (field.len == 0)
		appendStringInfoString(out, format->json ? "null" : "");
	else if (format->json)
		csv_append_json(out, field.text, field.len);
	else
		csv_append(out, field.text, field.len, format->separator, rows->escape);
}

/* Appends fields until all are written, or `out` has max_bytes. Returns false if all were written before. */
static bool
csv_rows_append(CsvRows *rows, StringInfo out, int max_bytes)
{
	const Cell *cells = rows->list->cells;

	if (rows->next == rows->last && rows->col == 0)
		return false;
	while ((rows->next < rows->last || rows->col > 0) && out->len < max_bytes)
	{
		const Cell *cell = rows->next < rows->last ? &cells[rows->next] : NULL;
		bool here = cell != NULL && cell->row == rows->row && cell->col == rows->col0 + rows->col;

		CHECK_FOR_INTERRUPTS();
		csv_rows_append_field(rows, out, !here);
		rows->next += here;
		rows->col++;
		if (rows->col < rows->cols)
			continue;
		while (rows->next < rows->last && cells[rows->next].row == rows->row)
			rows->next++; /* styled only, past the last column */
		appendStringInfoString(out, rows->format->row_end);
		rows->row++;
		rows->col = 0;
	}
	return true;
}

/* export_csv(sheet_id, ref, escape_formulas, format, formulas) */
Datum
sheet_export_csv(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	StringInfoData out;
	CsvRows rows;

	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	csv_rows_begin(&rows, fcinfo, sheet_id, 1, false);
	initStringInfo(&out);
	(void) csv_rows_append(&rows, &out, INT_MAX);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}

/* read_csv(sheet_id, max_bytes, ref, escape_formulas, format, formulas): all pieces have one state of the sheet. In a
 * target list, each is made when it is asked for. */
Datum
sheet_read_csv(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	StringInfoData out;

	if (SRF_IS_FIRSTCALL())
	{
		int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
		MemoryContext old;

		call = SRF_FIRSTCALL_INIT();
		if (PG_GETARG_INT32(1) < 1)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_bytes must be positive")));
		permission_require_reader(sheet_id);
		old = MemoryContextSwitchTo(call->multi_call_memory_ctx);
		call->user_fctx = palloc(sizeof(CsvRows));
		csv_rows_begin(call->user_fctx, fcinfo, sheet_id, 2, true);
		MemoryContextSwitchTo(old);
	}
	call = SRF_PERCALL_SETUP();
	initStringInfo(&out);
	if (!csv_rows_append(call->user_fctx, &out, PG_GETARG_INT32(1)))
		SRF_RETURN_DONE(call);
	SRF_RETURN_NEXT(call, PointerGetDatum(cstring_to_text_with_len(out.data, out.len)));
}
