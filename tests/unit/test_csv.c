/* test_csv.c - CSV is read strictly and written so that it reads back the same. */
#include "api/functions/csv.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

/* All fields as "row:col=content|", or what stopped the reading. */
static const char *
read_all(const char *text, size_t len)
{
	static char out[1024];
	char *copy = malloc(len ? len : 1); /* exact, so that the sanitizer sees reads past the end */
	CsvReader reader;
	CsvField field;
	CsvStatus status;
	char content[256];
	size_t used = 0;

	memcpy(copy, text, len);
	out[0] = '\0';
	csv_reader_init(&reader, copy, len);
	while ((status = csv_read(&reader, &field)) == CSV_FIELD)
	{
		size_t n = csv_unquote(&field, content);

		used +=
			(size_t) snprintf(out + used, sizeof(out) - used, "%u:%u=%.*s|", field.row, field.col, (int) n, content);
	}
	if (status != CSV_END)
		snprintf(out + used, sizeof(out) - used, status == CSV_UNCLOSED ? "unclosed" : "stray");
	free(copy);
	return out;
}

/* The same of a text that comes in pieces of `piece` bytes, the first one with `first` at least. */
static const char *
read_pieces(const char *text, size_t len, size_t first, size_t piece)
{
	static char out[1024];
	size_t used = 0, end = len < first ? len : first;
	char content[256], *copy = NULL;
	CsvReader reader;
	CsvField field;
	CsvStatus status;

	out[0] = '\0';
	csv_reader_init(&reader, text, end);
	reader.more = end < len;
	while ((status = csv_read(&reader, &field)) == CSV_FIELD || status == CSV_MORE)
	{
		size_t unread = (size_t) (reader.end - reader.pos), n;

		if (status == CSV_FIELD)
		{
			n = csv_unquote(&field, content);
			used += (size_t) snprintf(out + used, sizeof(out) - used, "%u:%u=%.*s|", field.row, field.col, (int) n,
									  content);
			continue;
		}
		n = len - end < piece ? len - end : piece;
		free(copy);
		copy = malloc(unread + n);
		memcpy(copy, text + end - unread, unread + n);
		end += n;
		reader.pos = copy;
		reader.end = copy + unread + n;
		reader.more = end < len;
	}
	if (status != CSV_END)
		snprintf(out + used, sizeof(out) - used, status == CSV_UNCLOSED ? "unclosed" : "stray");
	free(copy);
	return out;
}

static void
check(const char *text, const char *expected)
{
	size_t len = strlen(text);
	const char *got = read_all(text, len);
	bool same = true;

	TAP_OK(strcmp(got, expected) == 0, "reads as %s, got %s", expected, got);
	for (size_t first = 3; first < 8; first++)
		for (size_t piece = 1; piece < 5; piece++)
			same = same && strcmp(read_pieces(text, len, first, piece), expected) == 0;
	TAP_OK(same, "and in pieces");
}

int
main(void)
{
	char out[64];

	check("", "");
	check("a", "0:0=a|");
	check("a,b\r\nc,d\r\n", "0:0=a|0:1=b|1:0=c|1:1=d|");
	check("a\n\nb", "0:0=a|1:0=|2:0=b|");
	check("a,", "0:0=a|0:1=|");
	check("\xEF\xBB\xBF"
		  "a",
		  "0:0=a|");
	check("\"a \"\"b\"\", c\"", "0:0=a \"b\", c|");
	check("\"x\r\ny\",z", "0:0=x\r\ny|0:1=z|");
	check("\"\"", "0:0=|");
	check(" a , b ", "0:0= a |0:1= b |");
	check("\"a", "unclosed");
	check("\"a\"b", "stray");
	check("a,b\rc,d\r\n,\r\n\"e\r\n\"\"\",f\n", "0:0=a|0:1=b|1:0=c|1:1=d|2:0=|2:1=|3:0=e\r\n\"|3:1=f|");
	check("a\"b", "stray");
	TAP_OK(csv_write(out, "plain", 5, ',') == 5 && memcmp(out, "plain", 5) == 0, "plain values stay as they are");
	TAP_OK(csv_write(out, "a\"b", 3, ',') == 6 && memcmp(out, "\"a\"\"b\"", 6) == 0, "quotes are doubled");
	TAP_OK(csv_write(out, "a,b", 3, ',') == 5 && csv_write(out, "a\nb", 3, ',') == 5,
		   "commas and line ends are quoted");
	TAP_OK(csv_write(out, "a\tb", 3, '\t') == 5 && csv_write(out, "a,b", 3, '\t') == 3,
		   "between tabs, tabs are quoted instead");
	return tap_done();
}
