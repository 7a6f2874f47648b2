/*
 * fuzz_csv.c - a text as CSV: reading stays within it and moves forward, what is read is the same again when it has
 * been written, and a text that comes in pieces reads as the whole one.
 */
#include "api/functions/csv.h"

#include "fuzz.h"

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
		csv_reader_init(&reader, text, written);
		FUZZ_CHECK(csv_read(&reader, &field) == CSV_FIELD && field.row == 0 && field.col == 0);
		FUZZ_CHECK(csv_unquote(&field, again) == len && memcmp(again, content, len) == 0);
		FUZZ_CHECK(csv_read(&reader, &field) == CSV_END);
	}
	free(text);
	free(again);
}

/* What was read, in a number: fields with their places and contents, and how the reading ended. */
static uint64_t
fuzz_digest(uint64_t digest, const CsvField *field, CsvStatus status)
{
	digest = (digest ^ (uint64_t) status) * 1099511628211u;
	if (status != CSV_FIELD)
		return digest;
	digest = (digest ^ field->row) * 1099511628211u;
	digest = (digest ^ field->col) * 1099511628211u;
	for (size_t i = 0; i < field->len; i++)
		digest = (digest ^ (uint8_t) field->data[i]) * 1099511628211u;
	return digest;
}

/* The same text in pieces of `piece` bytes, the first one with three more: see csv.h. */
static uint64_t
fuzz_digest_of_pieces(const char *data, size_t size, size_t piece)
{
	size_t end = size < piece + 3 ? size : piece + 3;
	char *window = fuzz_copy((const uint8_t *) data, end);
	uint64_t digest = 0;
	CsvReader reader;
	CsvField field;
	CsvStatus status;

	csv_reader_init(&reader, window, end);
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	uint32_t row = 0, next_col = 0;
	CsvReader reader;
	CsvField field;
	CsvStatus status;
	uint64_t digest = 0;

	csv_reader_init(&reader, exact, size);
	while ((status = csv_read(&reader, &field)) == CSV_FIELD)
	{
		char *content = malloc(field.len + 1);
		size_t len = csv_unquote(&field, content);

		FUZZ_CHECK(field.data >= exact && field.data + field.len <= exact + size && len <= field.len);
		FUZZ_CHECK((field.row == row && field.col == next_col) || (field.row > row && field.col == 0));
		row = field.row;
		next_col = field.col + 1;
		fuzz_write_back(content, len);
		free(content);
		digest = fuzz_digest(digest, &field, status);
	}
	digest = fuzz_digest(digest, &field, status);
	for (size_t piece = 1; piece < 8; piece++)
		FUZZ_CHECK(fuzz_digest_of_pieces(exact, size, piece) == digest);
	FUZZ_CHECK(status != CSV_END || reader.pos == reader.end);
	free(exact);
	return 0;
}
