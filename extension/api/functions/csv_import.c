/*
 * csv_import.c - SQL functions that set cells from CSV: import_csv, import_csv_into, and imports in parts.
 *
 * A gateway stores a file that is uploaded in parts of its own transactions: import_begin, import_put for each part,
 * and import_end, which makes the sheet in one transaction and removes the parts. So no transaction waits for the
 * client, and the file is never whole in memory. The parts are in unlogged tables: after a crash of the server the
 * client starts anew.
 *
 * The text is read twice. The first time checks everything and measures the sheet, so an error is found before anything
 * is stored.
 */
#include "postgres.h"

#include "api/functions/csv.h"
#include "api/functions/functions.h"
#include "api/scan/cells.h"
#include "catalog/pg_type.h"
#include "common/utf8.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_import_csv);
PG_FUNCTION_INFO_V1(sheet_import_csv_into);
PG_FUNCTION_INFO_V1(sheet_import_begin);
PG_FUNCTION_INFO_V1(sheet_import_put);
PG_FUNCTION_INFO_V1(sheet_import_end);
PG_FUNCTION_INFO_V1(sheet_import_abort);

#define IMPORT_MIN_ROWS	  100
#define IMPORT_MIN_COLS	  26
#define IMPORT_PART_BYTES 262144
#define IMPORT_BYTES	  (1024 * 1024)						/* of the contents of a batch */
#define IMPORT_FIELD_MAX  (2 * SHEET_MAX_CONTENT_BYTES + 2) /* bytes: all quotes, doubled and quoted */

static CatalogQuery import_insert = {
	"INSERT INTO sheet.import (name, uid, link_role) VALUES ($1, $2, $3) RETURNING import_id",
	{TEXTOID, INT8OID, TEXTOID}};
/* An import that was abandoned with its gateway. One at a time: this is done whenever another one begins. */
static CatalogQuery import_expire = {
	"DELETE FROM sheet.import WHERE import_id = (SELECT import_id FROM sheet.import "
	"WHERE begun_at < now() - interval '1 day' ORDER BY begun_at LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING import_id",
	{InvalidOid}};
static CatalogQuery import_count = {"UPDATE sheet.import SET parts = parts + 1 WHERE import_id = $1 AND parts = $2",
									{INT8OID, INT4OID}};
static CatalogQuery import_put = {"INSERT INTO sheet.import_part (import_id, part, data) VALUES ($1, $2, $3)",
								  {INT8OID, INT4OID, BYTEAOID}};
static CatalogQuery import_open = {
	"SELECT parts::int8, uid, name, link_role FROM sheet.import WHERE import_id = $1 FOR UPDATE", {INT8OID}};
static CatalogQuery import_part = {"SELECT data FROM sheet.import_part WHERE import_id = $1 AND part = $2",
								   {INT8OID, INT4OID}};
static CatalogQuery import_delete = {"DELETE FROM sheet.import WHERE import_id = $1", {INT8OID}};
static CatalogQuery import_delete_parts = {"DELETE FROM sheet.import_part WHERE import_id = $1", {INT8OID}};

/* ---- the text ---- */

/* A text in memory, or the parts of an import, of which what is not yet read is in `window`. */
typedef struct CsvInput
{
	CsvReader reader;
	int64 import_id;
	int32 part, parts; /* the next one, and their number */
	char *window;
	Size room;
} CsvInput;

/* Appends the next part to what is unread. */
static void
input_fill(CsvInput *input)
{
	NullableDatum args[] = {CATALOG_INT64(input->import_id), CATALOG_DATUM(Int32GetDatum(input->part))};
	Size unread = (Size) (input->reader.end - input->reader.pos), len;
	CatalogScope scope;
	bytea *data;
	bool isnull;

	catalog_begin(&scope);
	if (catalog_run(&import_part, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("a part of the import is missing")));
	data = DatumGetByteaPP(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	len = VARSIZE_ANY_EXHDR(data);
	if (unread > 0)
		memmove(input->window, input->reader.pos, unread);
	if (unread + len > input->room)
	{
		input->room = unread + len;
		input->window = input->window == NULL ? MemoryContextAlloc(scope.caller, input->room)
											  : repalloc(input->window, input->room);
	}
	memcpy(input->window + unread, VARDATA_ANY(data), len);
	catalog_end(&scope);
	input->part++;
	if (input->part == 1)
		csv_reader_init(&input->reader, input->window, len);
	input->reader.pos = input->part == 1 ? input->reader.pos : input->window;
	input->reader.end = input->window + unread + len;
	input->reader.more = input->part < input->parts;
}

static void
input_begin(CsvInput *input, int64 import_id, int32 parts)
{
	*input = (CsvInput){.import_id = import_id, .parts = parts};
	csv_reader_init(&input->reader, NULL, 0);
	if (parts > 0)
		input_fill(input);
}

static void
input_begin_text(CsvInput *input, text *csv)
{
	*input = (CsvInput){0};
	csv_reader_init(&input->reader, VARDATA_ANY(csv), VARSIZE_ANY_EXHDR(csv));
}

static void
input_end(CsvInput *input)
{
	if (input->window != NULL)
		pfree(input->window);
}

/* The line and the column of a field, both from 1, in the form that COPY uses. The gateway parses this text
 * (http/routes/csv_import.c). */
#define INPUT_CONTEXT(line, col)                                                                                       \
	errcontext("CSV, line %llu, column %u", (unsigned long long) (line), (uint32) (col) + 1)

static void
input_refuse_long(uint64 line, uint32 col)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a content of the CSV is too long"),
					errdetail("A cell holds at most %d characters.", SHEET_MAX_CHARS), INPUT_CONTEXT(line, col)));
}

/* Whether the field that is longer than a content has an end. The rest of the text up to it is read and dropped. */
static bool
input_field_ends(CsvInput *input)
{
	bool quoted = false;

	for (;; input_fill(input))
	{
		CHECK_FOR_INTERRUPTS();
		for (; input->reader.pos < input->reader.end; input->reader.pos++)
		{
			if (*input->reader.pos == '"')
				quoted = !quoted;
			else if (!quoted)
				return true;
		}
		if (!input->reader.more)
			return !quoted;
	}
}

/* The next field; false at the end. Says what is wrong and where otherwise. */
static bool
input_next(CsvInput *input, CsvField *field)
{
	uint64 line = input->reader.line;
	uint32 col = input->reader.col;
	CsvStatus status;

	while ((status = csv_read(&input->reader, field)) == CSV_MORE &&
		   input->reader.end - input->reader.pos <= IMPORT_FIELD_MAX)
		input_fill(input);
	if (status == CSV_FIELD || status == CSV_END)
		return status == CSV_FIELD;
	if (status == CSV_MORE && input_field_ends(input))
		input_refuse_long(line, col);
	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT), errmsg("the CSV is malformed"),
			 errdetail(status == CSV_STRAY_QUOTE ? "A quote stands inside a field that is not quoted, or text follows "
												   "a closing quote."
												 : "A field that starts there has no end."),
			 errhint("Fields that contain quotes, commas or line ends are quoted, and quotes in them doubled."),
			 INPUT_CONTEXT(line, col)));
}

/* ---- from the text to cells ---- */

static void
csv_check_content(const char *content, Size len, uint64 line, uint32 col)
{
	size_t chars = 0;

	if (len <= SHEET_MAX_CONTENT_BYTES && !utf8_check(content, len, &chars))
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("the CSV is not in UTF-8"),
						errdetail("A content is not valid UTF-8 without NUL."),
						errhint("Save the file in the encoding UTF-8."), INPUT_CONTEXT(line, col)));
	if (len > SHEET_MAX_CONTENT_BYTES || chars > SHEET_MAX_CHARS)
		input_refuse_long(line, col);
}

/* How many rows and columns the CSV has; fails if it cannot be imported, before anything is stored. */
static void
csv_measure(CsvInput *input, int64 row, int64 col, uint32 *rows, uint32 *cols)
{
	uint64 line = input->reader.line;
	char *content = NULL;
	Size room = 0;
	CsvField field;

	*rows = *cols = 0;
	for (; input_next(input, &field); line = input->reader.line)
	{
		CHECK_FOR_INTERRUPTS();
		if (row + field.row >= SHEET_MAX_ROWS || col + field.col >= SHEET_MAX_COLS)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the CSV is too large"),
							errdetail("A sheet has at most %d rows and %d columns.", SHEET_MAX_ROWS, SHEET_MAX_COLS),
							INPUT_CONTEXT(line, field.col)));
		*rows = Max(*rows, field.row + 1);
		*cols = Max(*cols, field.col + 1);
		if (field.len > room)
		{
			if (content != NULL)
				pfree(content);
			room = field.len * 2;
			content = MemoryContextAllocHuge(CurrentMemoryContext, room);
		}
		if (field.len > 0)
			csv_check_content(content, csv_unquote(&field, content), line, field.col);
	}
	if (content != NULL)
		pfree(content);
}

/* Empty fields set nothing in a new sheet, and clear the cells of one that is there. */
static int64
csv_import(CsvInput *input, int64 sheet_id, uint64 uid, uint32 row, uint32 col, bool with_empty)
{
	Edit *edits = palloc(sizeof(Edit) * SHEET_MAX_BATCH_EDITS);
	char *contents = palloc(IMPORT_BYTES);
	Size used = 0;
	uint32 n = 0;
	int64 last_seq = 0;
	CsvField field;

	while (input_next(input, &field))
	{
		size_t len;

		CHECK_FOR_INTERRUPTS();
		if (field.len == 0 && !with_empty)
			continue;
		if (n == SHEET_MAX_BATCH_EDITS || used + field.len > IMPORT_BYTES)
		{
			last_seq = journal_edit(sheet_id, edits, n);
			used = n = 0;
		}
		len = csv_unquote(&field, contents + used);
		edits[n++] = cells_edit(uid, row + field.row, col + field.col, contents + used, len);
		used += len;
	}
	if (n > 0)
		last_seq = journal_edit(sheet_id, edits, n);
	pfree(contents);
	pfree(edits);
	return last_seq;
}

/* Creates a sheet for what was measured. */
static int64
csv_create_sheet(NullableDatum name, NullableDatum link_role, NullableDatum as_uid, uint32 rows, uint32 cols)
{
	LOCAL_FCINFO(create, 5);

	InitFunctionCallInfoData(*create, NULL, 5, InvalidOid, NULL, NULL);
	create->args[0] = name;
	create->args[1] = (NullableDatum){Int32GetDatum(Max((int32) rows, IMPORT_MIN_ROWS)), false};
	create->args[2] = (NullableDatum){Int32GetDatum(Max((int32) cols, IMPORT_MIN_COLS)), false};
	create->args[3] = link_role;
	create->args[4] = as_uid;
	return DatumGetInt64(sheet_create(create));
}

/* ---- a text ---- */

static text *
csv_arg(FunctionCallInfo fcinfo, int arg)
{
	catalog_require_arg(fcinfo, arg, "CSV");
	return PG_GETARG_TEXT_PP(arg);
}

/* import_csv(name, csv, as_uid) */
Datum
sheet_import_csv(PG_FUNCTION_ARGS)
{
	text *csv = csv_arg(fcinfo, 1);
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0), sheet_id;
	uint32 rows, cols;
	CsvInput input;

	input_begin_text(&input, csv);
	csv_measure(&input, 0, 0, &rows, &cols);
	sheet_id = csv_create_sheet(fcinfo->args[0], CATALOG_NULL, fcinfo->args[2], rows, cols);
	input_begin_text(&input, csv);
	csv_import(&input, sheet_id, (uint64) permission_uid(as_uid), 0, 0, false);
	PG_RETURN_INT64(sheet_id);
}

/* import_csv_into(sheet_id, ref, csv, as_uid) */
Datum
sheet_import_csv_into(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	text *csv = csv_arg(fcinfo, 2);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);
	uint32 row, col, rows, cols;
	CsvInput input;
	uint64 uid;

	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &row, &col);
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	input_begin_text(&input, csv);
	csv_measure(&input, row, col, &rows, &cols);
	input_begin_text(&input, csv);
	PG_RETURN_INT64(csv_import(&input, sheet_id, uid, row, col, true));
}

/* ---- in parts, in the order of an import ---- */

/* import_begin(name, link_role, as_uid) */
Datum
sheet_import_begin(PG_FUNCTION_ARGS)
{
	char *name = catalog_arg_string(fcinfo, 0, "sheet name");
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, 2, 0)), import_id;
	NullableDatum args[] = {CATALOG_TEXT(name), CATALOG_INT64(uid), fcinfo->args[1]};
	CatalogScope scope;

	permission_require_gateway();
	permission_refuse_guest(uid);
	catalog_check_name("sheet name", name, SHEET_NAME_MAX);
	catalog_begin(&scope);
	if (catalog_run(&import_expire, args, false) > 0)
		catalog_run(&import_delete_parts, &CATALOG_INT64(catalog_int64(1, 0)), false);
	catalog_run(&import_insert, args, false);
	import_id = catalog_int64(1, 0);
	catalog_end(&scope);
	PG_RETURN_INT64(import_id);
}

/* import_put(import_id, part, data) */
Datum
sheet_import_put(PG_FUNCTION_ARGS)
{
	int64 bytes = VARSIZE_ANY_EXHDR(PG_GETARG_BYTEA_PP(2));
	CatalogScope scope;

	permission_require_gateway();
	if (bytes < 1 || bytes > IMPORT_PART_BYTES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a part has 1 to %d bytes, this one has " INT64_FORMAT, IMPORT_PART_BYTES, bytes)));
	catalog_begin(&scope);
	if (catalog_run(&import_count, fcinfo->args, false) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("import " INT64_FORMAT " does not expect part %d", PG_GETARG_INT64(0), PG_GETARG_INT32(1)),
				 errdetail("It has ended, or another part is next.")));
	catalog_run(&import_put, fcinfo->args, false);
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* Deletes an import and its parts. Between catalog_begin() and catalog_end(). */
static void
import_remove(const NullableDatum *import_id)
{
	catalog_run(&import_delete, import_id, false);
	catalog_run(&import_delete_parts, import_id, false);
}

/* import_end(import_id) */
Datum
sheet_import_end(PG_FUNCTION_ARGS)
{
	int64 import_id = PG_GETARG_INT64(0), uid, sheet_id;
	char *name, *role;
	int32 parts;
	uint32 rows, cols;
	CatalogScope scope;
	CsvInput input;

	permission_require_gateway();
	catalog_begin(&scope);
	if (catalog_run(&import_open, fcinfo->args, false) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("no import " INT64_FORMAT " is under way", import_id)));
	parts = (int32) catalog_int64(1, 0);
	uid = catalog_int64(2, 0);
	name = catalog_string(&scope, 3);
	role = catalog_string(&scope, 4);
	catalog_end(&scope);
	input_begin(&input, import_id, parts);
	csv_measure(&input, 0, 0, &rows, &cols);
	input_end(&input);
	sheet_id = csv_create_sheet(CATALOG_TEXT(name), role != NULL ? CATALOG_TEXT(role) : CATALOG_NULL,
								CATALOG_INT64(uid), rows, cols);
	input_begin(&input, import_id, parts);
	csv_import(&input, sheet_id, (uint64) uid, 0, 0, false);
	input_end(&input);
	catalog_begin(&scope);
	import_remove(fcinfo->args);
	catalog_end(&scope);
	PG_RETURN_INT64(sheet_id);
}

/* import_abort(import_id) */
Datum
sheet_import_abort(PG_FUNCTION_ARGS)
{
	CatalogScope scope;

	permission_require_gateway();
	catalog_begin(&scope);
	import_remove(fcinfo->args);
	catalog_end(&scope);
	PG_RETURN_VOID();
}
