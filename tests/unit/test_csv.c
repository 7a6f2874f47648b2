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

static void
check(const char *text, const char *expected)
{
	const char *got = read_all(text, strlen(text));

	TAP_OK(strcmp(got, expected) == 0, "reads as %s, got %s", expected, got);
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
	check("a\"b", "stray");
	TAP_OK(csv_write(out, "plain", 5) == 5 && memcmp(out, "plain", 5) == 0, "plain values stay as they are");
	TAP_OK(csv_write(out, "a\"b", 3) == 6 && memcmp(out, "\"a\"\"b\"", 6) == 0, "quotes are doubled");
	TAP_OK(csv_write(out, "a,b", 3) == 5 && csv_write(out, "a\nb", 3) == 5, "commas and line ends are quoted");
	return tap_done();
}
