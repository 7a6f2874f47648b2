/*
 * fuzz_csv.c - a text as CSV, in some dialects, and as JSON Lines: reading stays within it and moves forward, what is
 * read is the same again when it has been written, and a text that comes in pieces reads as the whole one. A lenient
 * reader refuses no more than a quote that is not closed, and reads what a strict one takes as that.
 */
#include "common/csv.h"

#include "fuzz.h"

static const CsvDialect strict = {.separator = ',', .quote = '"'};
static const CsvDialect dialects[] = {
	{.separator = ',', .quote = '"'},
	{.separator = ',', .quote = '"', .lenient = true},
	{.separator = ';', .quote = '\'', .lenient = true},
	{.separator = '\t', .quote = CSV_NO_QUOTE},
	{.separator = ' ', .quote = '"', .lenient = true},
	{.json = true},
};

/* A field on its own, written and read. */
static void
fuzz_write_back(const char *content, size_t len)
{
	char *text = malloc(2 * len + 2), *again = malloc(len + 1);
	size_t written = csv_write(text, content, len, ',');
	CsvReader reader;
	CsvField field;

	FUZZ_CHECK(written >= len && written <= 2 * len + 2 && csv_needs_quotes(content, len, ',') == (written > len));
	if (len > 0)
	{
		csv_reader_init(&reader, &strict, text, written);
		FUZZ_CHECK(csv_read(&reader, &field) == CSV_FIELD && field.row == 0 && field.col == 0);
		FUZZ_CHECK(csv_unquote(&field, again) == len && memcmp(again, content, len) == 0);
		FUZZ_CHECK(csv_read(&reader, &field) == CSV_END);
	}
	free(text);
	free(again);
}

/* A digest of what was read: fields with their places and contents, and how the reading ended. Their texts, not the
 * bytes: forms of one text are the same. */
static uint64_t
fuzz_digest(uint64_t digest, const CsvField *field, CsvStatus status)
{
	digest = (digest ^ (uint64_t) status) * 1099511628211u;
	if (status != CSV_FIELD)
		return digest;
	digest = (digest ^ field->row) * 1099511628211u;
	digest = (digest ^ field->col) * 1099511628211u;
	digest = (digest ^ field->line) * 1099511628211u;
	char *content = malloc(field->len + 1);
	size_t len = csv_unquote(field, content);
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ (uint8_t) content[i]) * 1099511628211u;
	free(content);
	return digest;
}

/* The same text in pieces of `piece` bytes, the first one with three more: see csv.h. */
static uint64_t
fuzz_digest_of_pieces(const CsvDialect *dialect, const char *data, size_t size, size_t piece)
{
	size_t end = size < piece + 3 ? size : piece + 3;
	char *window = fuzz_copy((const uint8_t *) data, end);
	uint64_t digest = 0;
	CsvReader reader;
	CsvField field;
	CsvStatus status;

	csv_reader_init(&reader, dialect, window, end);
	reader.more = end < size;
	while ((status = csv_read(&reader, &field)) == CSV_FIELD || status == CSV_MORE)
	{
		size_t unread = (size_t) (reader.end - reader.pos), next = size - end < piece ? size - end : piece;

		if (status == CSV_FIELD)
		{
			digest = fuzz_digest(digest, &field, status);
			continue;
		}
		FUZZ_CHECK(end < size);
		free(window);
		window = fuzz_copy((const uint8_t *) data + end - unread, unread + next);
		end += next;
		reader.pos = window;
		reader.end = window + unread + next;
		reader.more = end < size;
	}
	free(window);
	return fuzz_digest(digest, &field, status);
}

/* The field of a content that was made of a field becomes this content again. */
static void
fuzz_export(const CsvOptions *options, const char *content, size_t len)
{
	bool omits = csv_omits_apostrophe(content, len);
	CsvField field = {.data = content + omits, .len = len - omits};
	char *again = malloc(len + CSV_CONTENT_MORE);

	FUZZ_CHECK(csv_content(options, &field, again) == len && memcmp(again, content, len) == 0);
	free(again);
}

/* The content of a field has room. Without a decimal comma and dates it is its text, with an apostrophe at most. */
static void
fuzz_content(const CsvField *field, const char *text, size_t len)
{
	CsvOptions plain = {.formulas = true}, texts = {.formulas = false},
			   changed = {.decimal_comma = true, .dates = CSV_DATES_DMY};
	char *content = malloc(field->len + CSV_CONTENT_MORE);
	size_t kept, added = csv_omits_apostrophe(text, len);

	kept = csv_content(&plain, field, content);
	FUZZ_CHECK(kept == len + added && (!added || content[0] == '\'') && memcmp(content + added, text, len) == 0);
	fuzz_export(&plain, content, kept);
	kept = csv_content(&texts, field, content);
	FUZZ_CHECK((kept == len + added || (kept == len + 1 && content[0] == '\'')) &&
			   memcmp(content + kept - len, text, len) == 0);
	if (field->kind != CSV_NUMBER)
		fuzz_export(&texts, content, kept);
	FUZZ_CHECK(csv_content(&changed, field, content) <= field->len + CSV_CONTENT_MORE);
	free(content);
}

static uint64_t
fuzz_read(const CsvDialect *dialect, const char *exact, size_t size, CsvStatus *status)
{
	uint32_t row = 0, next_col = 0;
	uint64_t digest = 0;
	CsvReader reader;
	CsvField field;

	csv_reader_init(&reader, dialect, exact, size);
	while ((*status = csv_read(&reader, &field)) == CSV_FIELD)
	{
		char *content = malloc(field.len + 1);
		size_t len = csv_unquote(&field, content);

		FUZZ_CHECK(field.data >= exact && field.data + field.len <= exact + size && len <= field.len);
		FUZZ_CHECK((field.row == row && field.col == next_col) || (field.row > row && field.col == 0));
		row = field.row;
		next_col = field.col + 1;
		fuzz_content(&field, content, len);
		if (dialect == dialects)
			fuzz_write_back(content, len);
		free(content);
		digest = fuzz_digest(digest, &field, *status);
	}
	FUZZ_CHECK(*status != CSV_MORE && (*status != CSV_END || reader.pos == reader.end));
	FUZZ_CHECK(!dialect->lenient || *status == CSV_END || *status == CSV_UNCLOSED);
	FUZZ_CHECK(dialect->lenient || reader.forgiven == 0);
	return fuzz_digest(digest, &field, *status);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	CsvOptions guessing = {.dialect = strict, .guess = true, .sep_line = true};
	uint64_t digests[sizeof(dialects) / sizeof(dialects[0])];
	CsvStatus status, of_strict;
	CsvReader reader;

	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
	{
		digests[i] = fuzz_read(&dialects[i], exact, size, i == 0 ? &of_strict : &status);
		for (size_t piece = 1; piece < 8; piece += i == 0 ? 1 : 3)
			FUZZ_CHECK(fuzz_digest_of_pieces(&dialects[i], exact, size, piece) == digests[i]);
	}
	FUZZ_CHECK(of_strict != CSV_END || digests[1] == digests[0]);
	csv_reader_init(&reader, &strict, exact, size);
	csv_guess(&reader, &guessing);
	FUZZ_CHECK(reader.pos >= exact && reader.pos <= exact + size && reader.dialect.separator != '"');
	free(exact);
	return 0;
}
