/*
 * csv_import.c - SQL functions that set cells from CSV, TSV or JSON Lines: import_csv, import_csv_into, import_file,
 * and imports in parts.
 *
 * A gateway stores a file that is uploaded in parts of its own transactions: import_begin, import_put for each part,
 * and import_end, which sets the cells in one transaction and removes the parts. So no transaction waits for the
 * client, and the text is never whole in memory; the edits are, until the commit. The parts are in unlogged tables:
 * after a crash of the server the client starts anew.
 *
 * The text is read twice. The first time checks everything and measures the sheet, so an error is found before anything
 * is stored.
 */
#include "postgres.h"

#include "api/functions/functions.h"
#include "api/functions/server_file.h"
#include "api/scan/cells.h"
#include "catalog/pg_type.h"
#include "common/csv.h"
#include "common/sql_interface.h"
#include "common/utf8.h"
#include "funcapi.h"
#include "journal/store/history.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_import_csv);
PG_FUNCTION_INFO_V1(sheet_import_csv_into);
PG_FUNCTION_INFO_V1(sheet_import_file);
PG_FUNCTION_INFO_V1(sheet_import_begin);
PG_FUNCTION_INFO_V1(sheet_import_put);
PG_FUNCTION_INFO_V1(sheet_import_end);
PG_FUNCTION_INFO_V1(sheet_import_abort);

#define IMPORT_MIN_ROWS 100
#define IMPORT_MIN_COLS 26
#define IMPORT_BYTES	(1024 * 1024) /* of the contents of a batch */
#define IMPORT_FIELD_MAX                                                                                               \
	(12 * SHEET_MAX_CHARS + 64) /* bytes of the longest field: each character is two JSON escapes */

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

/* A text in memory, or the parts of an import or of a file, of which what is not yet read is in `window`. */
typedef struct CsvInput
{
	CsvReader reader;
	CsvOptions options;
	int64 import_id;
	BufFile *file;	   /* NULL: the parts are those of import_id */
	int32 part, parts; /* the next one, and their number */
	char *window;
	Size room;
} CsvInput;

/* Makes room for `len` more bytes behind the unread text, and returns where they begin. */
static char *
input_expect(CsvInput *input, Size len, MemoryContext context)
{
	CsvReader *reader = &input->reader;
	Size unread = (Size) (reader->end - reader->pos);

	if (unread > 0)
		memmove(input->window, reader->pos, unread);
	if (unread + len > input->room)
	{
		input->room = unread + len;
		input->window =
			input->window == NULL ? MemoryContextAlloc(context, input->room) : repalloc(input->window, input->room);
	}
	reader->pos = input->window;
	reader->end = input->window + unread;
	return input->window + unread;
}

static Size
input_fill_from_import(CsvInput *input)
{
	NullableDatum args[] = {CATALOG_INT64(input->import_id), CATALOG_DATUM(Int32GetDatum(input->part))};
	CatalogScope scope;
	bytea *data;
	bool isnull;
	Size len;

	catalog_begin(&scope);
	if (catalog_run(&import_part, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("a part of the import is missing")));
	data = DatumGetByteaPP(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	len = VARSIZE_ANY_EXHDR(data);
	memcpy(input_expect(input, len, scope.caller), VARDATA_ANY(data), len);
	catalog_end(&scope);
	return len;
}

/* Appends the next part to what is unread. */
static void
input_fill(CsvInput *input)
{
	Size len;

	if (input->file != NULL)
		len = BufFileRead(input->file, input_expect(input, IMPORT_PART_BYTES, CurrentMemoryContext), IMPORT_PART_BYTES);
	else
		len = input_fill_from_import(input);
	input->part++;
	input->reader.end += len;
	input->reader.more = input->part < input->parts;
}

/* Starts at the beginning of the text, or of the first part. Reads parts until there is enough text to recognise the
 * separator. */
static void
input_begin(CsvInput *input, text *csv)
{
	CsvReader *reader = &input->reader;
	bool more = csv == NULL && input->parts > 0;

	csv_reader_init(reader, &input->options.dialect, csv != NULL ? VARDATA_ANY(csv) : NULL,
					csv != NULL ? VARSIZE_ANY_EXHDR(csv) : 0);
	input->part = 0;
	if (input->file != NULL && BufFileSeek(input->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file: %m")));
	while (more && reader->end - reader->pos < CSV_HEAD_BYTES)
	{
		input_fill(input);
		more = reader->more;
	}
	if (csv == NULL && input->parts > 0)
	{
		csv_reader_init(reader, &input->options.dialect, reader->pos, (Size) (reader->end - reader->pos));
		reader->more = more;
	}
	csv_guess(reader, &input->options);
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

/* Returns whether the field, which is longer than a content may be, is closed. Discards the text up to there. */
static bool
input_field_ends(CsvInput *input)
{
	bool quoted = false, begins = input->options.dialect.lenient;

	for (;; input_fill(input))
	{
		CHECK_FOR_INTERRUPTS();
		for (; input->reader.pos < input->reader.end; input->reader.pos++)
		{
			begins = begins && (*input->reader.pos == ' ' || *input->reader.pos == '\t');
			if (*input->reader.pos == input->reader.dialect.quote)
				quoted = !quoted;
			else if (!quoted && !begins)
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
	CsvStatus status;

	while ((status = csv_read(&input->reader, field)) == CSV_MORE &&
		   input->reader.end - input->reader.pos <= IMPORT_FIELD_MAX)
		input_fill(input);
	if (status == CSV_FIELD || status == CSV_END)
		return status == CSV_FIELD;
	if (status == CSV_MORE && (input->options.dialect.json || input_field_ends(input)))
		input_refuse_long(field->line, field->col);
	if (status == CSV_NOT_JSON)
		ereport(ERROR,
				(errcode(ERRCODE_BAD_COPY_FILE_FORMAT), errmsg("the JSON Lines are malformed"),
				 errdetail("Each line is an array of strings, numbers, booleans and nulls, in UTF-8 without NUL."),
				 INPUT_CONTEXT(field->line, field->col)));
	ereport(ERROR,
			(errcode(ERRCODE_BAD_COPY_FILE_FORMAT), errmsg("the CSV is malformed"),
			 errdetail(status == CSV_STRAY_QUOTE ? "A quote stands inside a field that is not quoted, or text follows "
												   "a closing quote."
												 : "A field that starts there has no end."),
			 errhint("Fields that contain quotes, separators or line ends are quoted, and quotes in them doubled.%s",
					 status == CSV_STRAY_QUOTE ? " A lenient import takes such a field." : ""),
			 INPUT_CONTEXT(field->line, field->col)));
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
	char *content = palloc(IMPORT_FIELD_MAX + CSV_CONTENT_MORE);
	CsvField field;

	*rows = *cols = 0;
	while (input_next(input, &field))
	{
		CHECK_FOR_INTERRUPTS();
		if (row + field.row >= SHEET_MAX_ROWS || col + field.col >= SHEET_MAX_COLS)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the CSV is too large"),
							errdetail("A sheet has at most %d rows and %d columns.", SHEET_MAX_ROWS, SHEET_MAX_COLS),
							INPUT_CONTEXT(field.line, field.col)));
		*rows = Max(*rows, field.row + 1);
		*cols = Max(*cols, field.col + 1);
		if (field.len > IMPORT_FIELD_MAX)
			input_refuse_long(field.line, field.col);
		if (field.len > 0)
			csv_check_content(content, csv_content(&input->options, &field, content), field.line, field.col);
	}
	pfree(content);
}

/* Empty fields set nothing in a new sheet, and clear the cells of one that is there. */
static int64
csv_import(CsvInput *input, int64 sheet_id, uint64 uid, uint32 row, uint32 col, bool with_empty)
{
	Edit *edits = palloc(sizeof(Edit) * SHEET_MAX_BATCH_EDITS);
	char *contents = palloc(IMPORT_BYTES + CSV_CONTENT_MORE);
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
		len = csv_content(&input->options, &field, contents + used);
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

/* The arguments format, separator, quote, lenient, decimal_point, formulas and date_order begin at `arg`. */
static void
csv_arg_options(FunctionCallInfo fcinfo, int arg, CsvOptions *options)
{
	char *texts[7] = {0};
	const char *problem;

	for (int i = 0; i < 7; i++)
		texts[i] = i == 3 || i == 5 || PG_ARGISNULL(arg + i) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(arg + i));
	problem =
		csv_options_parse(options, texts[0], texts[1], texts[2], !PG_ARGISNULL(arg + 3) && PG_GETARG_BOOL(arg + 3),
						  texts[4], !PG_ARGISNULL(arg + 5) && PG_GETARG_BOOL(arg + 5), texts[6]);
	if (problem != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", problem)));
}

/* Tells a separator other than the comma, and misplaced quotes. */
static void
csv_notice(const CsvInput *input)
{
	const CsvReader *reader = &input->reader;

	if (input->options.guess && reader->dialect.separator == '\t')
		ereport(NOTICE, (errmsg("the fields of the CSV are separated by tabs")));
	else if (input->options.guess && reader->dialect.separator != ',')
		ereport(NOTICE, (errmsg("the fields of the CSV are separated by \"%c\"", reader->dialect.separator)));
	if (reader->forgiven > 0)
		ereport(NOTICE, (errmsg("fields with misplaced quotes: " UINT64_FORMAT, reader->forgiven),
						 errdetail("The first one is in line " UINT64_FORMAT ".", reader->forgiven_line)));
}

/* The cells that an import sets: those of a new sheet with this name and role, or of an existing one from a cell on. */
typedef struct CsvTarget
{
	int64 sheet_id; /* 0: a new one, which it then has */
	NullableDatum name, link_role;
	uint32 row, col;
	bool is_empty; /* the existing sheet */
} CsvTarget;

/* Reads the text (NULL: the parts) and sets the cells. Returns the last seq; of a new sheet that is empty, 0. */
static int64
csv_run(CsvInput *input, text *csv, CsvTarget *target, int64 as_uid)
{
	uint64 uid = target->sheet_id != 0 ? permission_require(target->sheet_id, as_uid, ROLE_EDITOR, false) : 0;
	bool is_new = target->sheet_id == 0;
	uint32 rows, cols;
	int64 last_seq;

	input_begin(input, csv);
	csv_measure(input, target->row, target->col, &rows, &cols);
	if (is_new)
	{
		target->sheet_id = csv_create_sheet(target->name, target->link_role, CATALOG_INT64(as_uid), rows, cols);
		uid = (uint64) permission_uid(as_uid);
	}
	input_begin(input, csv);
	last_seq = csv_import(input, target->sheet_id, uid, target->row, target->col, !is_new && !target->is_empty);
	if (last_seq == 0 && !is_new)
	{
		HistoryLast last;

		history_last_edit(target->sheet_id, GetActiveSnapshot(), &last);
		return last.last_seq;
	}
	return last_seq;
}

/* ---- a text ---- */

static text *
csv_arg(FunctionCallInfo fcinfo, int arg)
{
	catalog_require_arg(fcinfo, arg, "CSV");
	return PG_GETARG_TEXT_PP(arg);
}

/* import_csv(name, csv, format, separator, quote, lenient, decimal_point, formulas, date_order, as_uid) */
Datum
sheet_import_csv(PG_FUNCTION_ARGS)
{
	CsvTarget target = {.name = fcinfo->args[0], .link_role = CATALOG_NULL};
	text *csv = csv_arg(fcinfo, 1);
	CsvInput input = {0};

	csv_arg_options(fcinfo, 2, &input.options);
	(void) csv_run(&input, csv, &target, catalog_arg_int64(fcinfo, 9, 0));
	csv_notice(&input);
	PG_RETURN_INT64(target.sheet_id);
}

/* import_csv_into(sheet_id, ref, csv, format, separator, quote, lenient, decimal_point, formulas, date_order, as_uid)
 */
Datum
sheet_import_csv_into(PG_FUNCTION_ARGS)
{
	CsvTarget target = {.sheet_id = catalog_arg_sheet(fcinfo, 0)};
	text *csv = csv_arg(fcinfo, 2);
	CsvInput input = {0};
	int64 seq;

	csv_arg_options(fcinfo, 3, &input.options);
	cells_parse_ref(catalog_arg_string(fcinfo, 1, "cell"), &target.row, &target.col);
	seq = csv_run(&input, csv, &target, catalog_arg_int64(fcinfo, 10, 0));
	csv_notice(&input);
	PG_RETURN_INT64(seq);
}

/* ---- a file of the server ---- */

/* import_file(path, name, into_sheet, ref, is_program, format, separator, quote, lenient, decimal_point, formulas,
 * date_order, as_uid) */
Datum
sheet_import_file(PG_FUNCTION_ARGS)
{
	char *path = catalog_arg_string(fcinfo, 0, "path");
	CsvTarget target = {
		.name = fcinfo->args[1], .link_role = CATALOG_NULL, .sheet_id = catalog_arg_int64(fcinfo, 2, 0)};
	int64 as_uid = catalog_arg_int64(fcinfo, 12, 0), size;
	CsvInput input = {0};
	Datum values[2];
	bool nulls[2] = {false};

	csv_arg_options(fcinfo, 5, &input.options);
	if ((target.sheet_id != 0) != PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("an import needs either the name of a new sheet or a sheet that is there")));
	if (target.sheet_id != 0)
	{
		cells_parse_ref(catalog_arg_string(fcinfo, 3, "cell"), &target.row, &target.col);
		(void) permission_require(target.sheet_id, as_uid, ROLE_EDITOR, false);
	}
	input.file = server_file_copy(path, !PG_ARGISNULL(4) && PG_GETARG_BOOL(4), &size);
	input.parts = (int32) ((size + IMPORT_PART_BYTES - 1) / IMPORT_PART_BYTES);
	values[1] = Int64GetDatum(csv_run(&input, NULL, &target, as_uid));
	values[0] = Int64GetDatum(target.sheet_id);
	input_end(&input);
	BufFileClose(input.file);
	csv_notice(&input);
	return catalog_return_row(fcinfo, values, nulls);
}

/* ---- in parts, in the order of an import ---- */

/* import_begin(name, link_role, as_uid) */
Datum
sheet_import_begin(PG_FUNCTION_ARGS)
{
	char *name = PG_ARGISNULL(0) ? "" : catalog_arg_string(fcinfo, 0, "sheet name");
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, 2, 0)), import_id;
	NullableDatum args[] = {CATALOG_TEXT(name), CATALOG_INT64(uid), fcinfo->args[1]};
	CatalogScope scope;

	permission_require_gateway();
	permission_refuse_guest(uid);
	if (!PG_ARGISNULL(0))
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

/* import_end(import_id, into_sheet, ref, format, separator, quote, lenient, decimal_point, formulas, date_order) */
Datum
sheet_import_end(PG_FUNCTION_ARGS)
{
	Datum values[5];
	bool nulls[5] = {false};
	CsvTarget target = {.sheet_id = catalog_arg_int64(fcinfo, 1, 0)};
	CsvInput input = {0};
	char *name, *role;
	int64 uid, seq;
	CatalogScope scope;

	permission_require_gateway();
	catalog_require_arg(fcinfo, 0, "import");
	csv_arg_options(fcinfo, 3, &input.options);
	target.is_empty = PG_ARGISNULL(2);
	if (target.sheet_id != 0 && !target.is_empty)
		cells_parse_ref(catalog_arg_string(fcinfo, 2, "cell"), &target.row, &target.col);
	input.import_id = PG_GETARG_INT64(0);
	catalog_begin(&scope);
	if (catalog_run(&import_open, fcinfo->args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("no import " INT64_FORMAT " is under way", input.import_id)));
	input.parts = (int32) catalog_int64(1, 0);
	uid = catalog_int64(2, 0);
	name = catalog_string(&scope, 3);
	role = catalog_string(&scope, 4);
	catalog_end(&scope);
	target.name = CATALOG_TEXT(name);
	target.link_role = role != NULL ? CATALOG_TEXT(role) : CATALOG_NULL;
	seq = csv_run(&input, NULL, &target, uid);
	input_end(&input);
	catalog_begin(&scope);
	import_remove(fcinfo->args);
	catalog_end(&scope);
	values[0] = Int64GetDatum(target.sheet_id);
	values[1] = Int64GetDatum(seq);
	values[2] = PointerGetDatum(cstring_to_text_with_len(&input.reader.dialect.separator, 1));
	values[3] = Int64GetDatum((int64) input.reader.forgiven);
	values[4] = Int64GetDatum((int64) input.reader.forgiven_line);
	nulls[2] = input.options.dialect.json;
	nulls[4] = input.reader.forgiven == 0;
	return catalog_return_row(fcinfo, values, nulls);
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
