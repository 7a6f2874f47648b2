/*
 * fuzz_csv.c - a text as CSV: reading stays within it and moves forward, and what is read is the same again when it has
 * been written.
 */
#include "api/functions/csv.h"

#include "fuzz.h"

/* A field on its own, written and read. */
static void
fuzz_write_back(const char *content, size_t len)
{
	char *text = malloc(2 * len + 2), *again = malloc(len + 1);
	size_t written = csv_write(text, content, len);
	CsvReader reader;
	CsvField field;

	FUZZ_CHECK(written >= len && written <= 2 * len + 2 && csv_needs_quotes(content, len) == (written > len));
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	uint32_t row = 0, next_col = 0;
	CsvReader reader;
	CsvField field;
	CsvStatus status;

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
	}
	FUZZ_CHECK(status != CSV_END || reader.pos == reader.end);
	free(exact);
	return 0;
}
