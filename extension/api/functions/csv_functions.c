/* csv_functions.c - SQL functions that turn CSV into cells and back: import_csv, import_csv_into, export_csv. */
#include "postgres.h"

#include "permission/catalog.h"
#include "api/scan/cells.h"
#include "api/functions/csv.h"
#include "api/functions/functions.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_import_csv);
PG_FUNCTION_INFO_V1(sheet_import_csv_into);
PG_FUNCTION_INFO_V1(sheet_export_csv);

#define IMPORT_MIN_ROWS 100
#define IMPORT_MIN_COLS 26

static text *
csv_arg(FunctionCallInfo fcinfo, int arg)
{
	catalog_require_arg(fcinfo, arg, "CSV");
	return PG_GETARG_TEXT_PP(arg);
}

/* The next field; false at the end. Says what is wrong and where otherwise. */
static bool
csv_next(CsvReader *reader, CsvField *field)
{
	uint64 line = reader->line;
	CsvStatus status = csv_read(reader, field);

	if (status == CSV_FIELD || status == CSV_END)
		return status == CSV_FIELD;
	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
			 errmsg("the CSV is malformed in line %llu", (unsigned long long) line),
			 errdetail(status == CSV_UNCLOSED ? "A quoted field that starts there has no end."
											  : "A quote stands inside a field that is not quoted, or text follows "
												"a closing quote."),
			 errhint("Fields that contain quotes, commas or line ends are quoted, and quotes in them doubled.")));
}

/* How many rows and columns the CSV has; fails when it is malformed, before anything is stored. */
static void
csv_measure(text *csv, uint32 *rows, uint32 *cols)
{
	CsvReader reader;
	CsvField field;

	*rows = *cols = 0;
	csv_reader_init(&reader, VARDATA_ANY(csv), VARSIZE_ANY_EXHDR(csv));
	while (csv_next(&reader, &field))
	{
		CHECK_FOR_INTERRUPTS();
		*rows = Max(*rows, field.row + 1);
		*cols = Max(*cols, field.col + 1);
	}
}

/* Empty fields set nothing in a new sheet, and clear the cells of one that is there. */
static int64
csv_import(int64 sheet_id, uint64 uid, uint32 row, uint32 col, text *csv, bool with_empty)
{
	CsvReader reader;
	CsvField field;
	CellWriter writer;
	char *content = palloc(VARSIZE_ANY_EXHDR(csv) + 1);

	cells_write_begin(&writer, sheet_id, uid);
	csv_reader_init(&reader, VARDATA_ANY(csv), VARSIZE_ANY_EXHDR(csv));
	while (csv_next(&reader, &field))
	{
		size_t len = csv_unquote(&field, content);

		CHECK_FOR_INTERRUPTS();
		if (len > 0 || with_empty)
			cells_write(&writer, EDIT_SET, row + field.row, col + field.col, content, len);
	}
	pfree(content);
	return cells_write_end(&writer);
}

/* import_csv(name, csv, as_uid) */
Datum
sheet_import_csv(PG_FUNCTION_ARGS)
{
	text *csv = csv_arg(fcinfo, 1);
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0);
	LOCAL_FCINFO(create, 5);
	uint32 rows, cols;
	Datum sheet_id;

	csv_measure(csv, &rows, &cols);
	if (rows > 0)
		cells_check_place((int64) rows - 1, (int64) cols - 1);
	InitFunctionCallInfoData(*create, NULL, 5, InvalidOid, NULL, NULL);
	create->args[0] = fcinfo->args[0];
	create->args[1] = (NullableDatum){Int32GetDatum(Max((int32) rows, IMPORT_MIN_ROWS)), false};
	create->args[2] = (NullableDatum){Int32GetDatum(Max((int32) cols, IMPORT_MIN_COLS)), false};
	create->args[3] = (NullableDatum){(Datum) 0, true};
	create->args[4] = fcinfo->args[2];
	sheet_id = sheet_create(create);
	csv_import(DatumGetInt64(sheet_id), (uint64) permission_uid(as_uid), 0, 0, csv, false);
	return sheet_id;
}

/* import_csv_into(sheet_id, ref, csv, as_uid) */
Datum
sheet_import_csv_into(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	text *csv = csv_arg(fcinfo, 2);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);
	uint32 row, col, rows, cols;

	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &row, &col);
	permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	csv_measure(csv, &rows, &cols);
	if (rows > 0)
		cells_check_place((int64) row + rows - 1, (int64) col + cols - 1);
	PG_RETURN_INT64(csv_import(sheet_id, (uint64) permission_uid(as_uid), row, col, csv, true));
}

/* A spreadsheet program takes what begins with one of these for a formula, and runs it. */
static bool
csv_looks_like_formula(const char *data, Size len)
{
	return len > 0 && memchr("=+-@\t\r", data[0], 6) != NULL;
}

static void
csv_append(StringInfo out, const char *data, Size len, bool escape)
{
	if (escape && csv_looks_like_formula(data, len))
	{
		char *escaped = palloc(len + 1);

		escaped[0] = '\'';
		memcpy(escaped + 1, data, len);
		csv_append(out, escaped, len + 1, false);
		pfree(escaped);
		return;
	}
	enlargeStringInfo(out, (int) (2 * len + 2));
	out->len += (int) csv_write(out->data + out->len, data, len);
	out->data[out->len] = '\0';
}

/* export_csv(sheet_id, ref, escape_formulas): from the range's first row and column to the last ones that hold
 * something */
Datum
sheet_export_csv(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	bool escape = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	uint32 cols = 0;
	CellList *list;
	StringInfoData out;
	Size last = 0;

	(void) cells_arg_range(fcinfo, 1, rect);
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	list = cells_read(sheet_id, rect, false);
	for (Size i = 0; i < list->count; i++)
		if (list->cells[i].content_len > 0)
		{
			last = i + 1;
			cols = Max(cols, list->cells[i].col - rect[1] + 1);
		}
	initStringInfo(&out);
	for (Size i = 0, row = rect[0]; i < last; row++)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 col = 0; col < cols; col++)
		{
			if (col > 0)
				appendStringInfoChar(&out, ',');
			while (i < last && list->cells[i].row == row && list->cells[i].col < rect[1] + col)
				i++;
			if (i < last && list->cells[i].row == row && list->cells[i].col == rect[1] + col)
			{
				csv_append(&out, list->cells[i].content, list->cells[i].content_len, escape);
				i++;
			}
		}
		while (i < last && list->cells[i].row == row)
			i++; /* styled only, past the last column */
		appendStringInfoString(&out, "\r\n");
	}
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
