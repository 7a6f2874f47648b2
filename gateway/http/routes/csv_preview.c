/*
 * csv_preview.c - the options of an import in the query, and POST /v2/sheets/import/preview: what the first bytes of a
 * file would become under them. Nothing is stored.
 */
#include "common/utf8.h"
#include "http/routes/routes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREVIEW_ROWS 20

/* ---- options ---- */

/* An argument that is absent leaves the default. False: it is too long. */
static bool
options_read_text(Request *request, const char *name, char *to, size_t size)
{
	return !request_has_arg(request, name) || request_arg(request, name, to, size);
}

static bool
options_read_bool(Request *request, const char *name, bool *value)
{
	char text[8] = "";

	if (!request_has_arg(request, name))
		return true;
	if (!request_arg(request, name, text, sizeof(text)))
		return false;
	*value = strcmp(text, "true") == 0;
	return *value || strcmp(text, "false") == 0;
}

const char *
import_quote(const ImportOptions *options)
{
	return options->quote[0] != '\0' || options->no_quote ? options->quote : NULL;
}

/* Refuses forms: curl -d sends the file as one, without its line ends. False: answered. */
static bool
import_check_type(Request *request)
{
	const char *type = head_field(&request->head, "content-type");

	if (type == NULL ||
		(strncasecmp(type, "application/x-www-form-urlencoded", 33) != 0 && strncasecmp(type, "multipart/", 10) != 0))
		return true;
	request_error(request, 415,
				  "the body must be the file itself, and no form: curl -H 'Content-Type: text/csv' --data-binary @FILE "
				  "sends it");
	return false;
}

bool
import_check_head(Request *request, const char *head, size_t len)
{
	static const char *const marks[] = {"PK\3\4", "PK\5\6", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "\x1F\x8B"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
	{
		size_t mark_len = strlen(marks[i]);

		if (len < mark_len || memcmp(head, marks[i], mark_len) != 0)
			continue;
		request_error_code(request, 415, "csv_workbook",
						   "the file is a workbook or compressed, and no text: workbooks (.xlsx, .xls, .ods) are not "
						   "read; save the sheet as CSV first");
		return false;
	}
	return true;
}

bool
import_read_options(Request *request, ImportOptions *options)
{
	bool lenient = false, formulas = false;
	char encoding[24] = "";
	const char *problem = NULL;

	*options = (ImportOptions){0};
	if (!import_check_type(request))
		return false;
	if (!options_read_text(request, "format", options->format, sizeof(options->format)))
		problem = "the format is csv, tsv or jsonl";
	else if (!options_read_text(request, "separator", options->separator, sizeof(options->separator)) ||
			 (request_has_arg(request, "separator") && options->separator[0] == '\0'))
		problem = CSV_SEPARATOR_IS;
	else if (!options_read_text(request, "quote", options->quote, sizeof(options->quote)))
		problem = "the quote is one ASCII character other than a line end, or empty";
	else if (!options_read_text(request, "decimal", options->decimal, sizeof(options->decimal)))
		problem = "the decimal sign is . or ,";
	else if (!options_read_text(request, "dates", options->dates, sizeof(options->dates)))
		problem = CSV_DATES_ARE;
	else if (!options_read_bool(request, "lenient", &lenient))
		problem = "lenient is true or false";
	else if (!options_read_bool(request, "formulas", &formulas))
		problem = "formulas is true or false";
	else if (request_has_arg(request, "encoding") && (!request_arg(request, "encoding", encoding, sizeof(encoding)) ||
													  (options->encoding = charset_find(encoding)) == NULL))
		problem = "the encoding is one of " CHARSET_NAMES;
	options->no_quote = request_has_arg(request, "quote") && options->quote[0] == '\0';
	if (problem == NULL)
		problem = csv_options_parse(&options->csv, options->format[0] != '\0' ? options->format : NULL,
									options->separator[0] != '\0' ? options->separator : NULL, import_quote(options),
									lenient, options->decimal[0] != '\0' ? options->decimal : NULL, formulas,
									options->dates[0] != '\0' ? options->dates : NULL);
	if (problem != NULL)
		request_error(request, 400, problem);
	return problem == NULL;
}

/* ---- the preview ---- */

/* A reader at the start of the text. cut: the text goes on. */
static CsvReader
preview_reader(const ImportOptions *options, const Buf *text, bool cut)
{
	CsvReader reader;

	csv_reader_init(&reader, &options->csv.dialect, text->data != NULL ? text->data : "", text->len);
	reader.more = cut;
	csv_guess(&reader, &options->csv);
	return reader;
}

/* Appends the first rows as arrays of contents; of a text that is cut, only complete ones, and whether there is none.
 */
static void
preview_put_rows(Buf *to, CsvReader *reader, const CsvOptions *options, bool cut, char *content)
{
	Buf row = {NULL, 0, 0};
	CsvField field;
	CsvStatus status;
	uint32_t at = 0;

	buf_puts(to, ",\"rows\":[");
	for (;;)
	{
		status = csv_read(reader, &field);
		for (; at < PREVIEW_ROWS && (status == CSV_FIELD ? at < field.row : status == CSV_END && row.len > 0); at++)
		{
			buf_puts(to, at > 0 ? ",[" : "[");
			buf_put_buf(to, &row);
			buf_puts(to, "]");
			buf_free(&row);
		}
		if (status != CSV_FIELD || at >= PREVIEW_ROWS)
			break;
		if (row.len > 0)
			buf_puts(&row, ",");
		buf_put_json(&row, content, csv_content(options, &field, content));
	}
	buf_printf(to, "],\"incomplete\":%s", cut && at == 0 && status == CSV_MORE ? "true" : "false");
	buf_free(&row);
}

/* Appends the place of what a strict reader refuses, or null. */
static void
preview_put_malformed(Buf *to, const ImportOptions *options, const Buf *text, bool cut)
{
	CsvReader reader = preview_reader(options, text, cut);
	CsvField field;
	CsvStatus status;

	reader.dialect.lenient = false;
	while ((status = csv_read(&reader, &field)) == CSV_FIELD)
		;
	if (status == CSV_END || status == CSV_MORE)
		buf_puts(to, ",\"malformed\":null");
	else
		buf_printf(to, ",\"malformed\":{\"line\":%llu,\"column\":%u}", (unsigned long long) field.line, field.col + 1);
}

/* Appends the orders in which all dates that end with the year make sense; none if there is no such date. */
static void
preview_put_dates(Buf *to, const ImportOptions *options, const Buf *text, bool cut, char *content)
{
	CsvReader reader = preview_reader(options, text, cut);
	CsvOptions plain = options->csv;
	uint32_t dmy = 0, mdy = 0, any = 0;
	CsvField field;

	plain.dates = CSV_DATES_NONE;
	while (!plain.dialect.json && csv_read(&reader, &field) == CSV_FIELD)
	{
		size_t len = csv_content(&plain, &field, content);
		bool is_dmy = csv_is_date(CSV_DATES_DMY, content, len), is_mdy = csv_is_date(CSV_DATES_MDY, content, len);

		dmy += is_dmy;
		mdy += is_mdy;
		any += is_dmy || is_mdy;
	}
	buf_printf(to, ",\"dates\":[%s%s%s]", any > 0 && dmy == any ? "\"dmy\"" : "",
			   any > 0 && dmy == any && mdy == any ? "," : "", any > 0 && mdy == any ? "\"mdy\"" : "");
}

static void
preview_put_character(Buf *to, const char *name, const CsvOptions *options, int character)
{
	char text[2] = {(char) character, '\0'};

	if (options->dialect.json)
		buf_printf(to, ",\"%s\":null", name);
	else
		routes_put_member(to, name, character == CSV_NO_QUOTE ? "" : text);
}

static void
preview_answer(Request *request, const ImportOptions *options, const char *encoding, const Buf *text, bool cut)
{
	char *content = malloc(text->len + CSV_CONTENT_MORE);
	CsvReader reader = preview_reader(options, text, cut);
	Buf body = {NULL, 0, 0};

	if (content == NULL)
	{
		request_out_of_memory(request);
		return;
	}
	buf_printf(&body, "{\"encoding\":\"%s\"", encoding);
	preview_put_character(&body, "separator", &options->csv, reader.dialect.separator);
	preview_put_character(&body, "quote", &options->csv, reader.dialect.quote);
	preview_put_malformed(&body, options, text, cut);
	preview_put_dates(&body, options, text, cut, content);
	preview_put_rows(&body, &reader, &options->csv, cut, content);
	buf_puts(&body, "}");
	free(content);
	request_json(request, 200, &body);
}

/* The length of the longest start of the text that is UTF-8 without NUL. */
static size_t
preview_valid_length(const Buf *text)
{
	size_t at = 0;

	if (utf8_check(text->data, text->len, NULL))
		return text->len;
	for (size_t len = 1; len <= 4 && at + len <= text->len; len++)
	{
		if (utf8_check(text->data + at, len, NULL))
		{
			at += len;
			len = 0;
		}
	}
	return at;
}

void
route_preview_import(Request *request)
{
	bool cut = request->body.len == CSV_HEAD_BYTES;
	const char *head = request->body.data != NULL ? request->body.data : "";
	ImportOptions options;
	Charset charset = {0};
	Buf text = {NULL, 0, 0};

	if (!import_read_options(request, &options))
		return;
	if (request->body.len > CSV_HEAD_BYTES)
	{
		request_error(request, 413, "the body has at most 65536 bytes: the first ones of the file");
		return;
	}
	if (!import_check_head(request, head, request->body.len))
		return;
	if (options.encoding == NULL)
		options.encoding = charset_guess(head, request->body.len, !cut);
	if (!charset_begin(&charset, options.encoding))
		request_error(request, 400, "this system has no converter for the encoding");
	else if (!charset_convert(&charset, head, request->body.len, &text) || (!cut && !charset_end(&charset, &text)))
		import_refuse_encoding(request, &charset);
	else if (buf_failed(&text))
		request_out_of_memory(request);
	else
	{
		size_t valid = preview_valid_length(&text);

		charset.offset = (int64_t) valid; /* of UTF-8, which was not converted; of others, that of a NUL in UTF-8 */
		if (valid == text.len || (cut && text.len - valid < 4))
		{
			text.len = valid;
			preview_answer(request, &options, charset.name, &text, cut);
		}
		else
			import_refuse_encoding(request, &charset);
	}
	charset_free(&charset);
	buf_free(&text);
}
