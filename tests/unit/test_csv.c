/* test_csv.c - CSV is read, strictly or leniently, in its dialects, and written so that it reads back the same. */
#include "common/csv.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static CsvDialect dialect = {.separator = ',', .quote = '"'};

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
	csv_reader_init(&reader, &dialect, copy, len);
	while ((status = csv_read(&reader, &field)) == CSV_FIELD)
	{
		size_t n = csv_unquote(&field, content);

		used +=
			(size_t) snprintf(out + used, sizeof(out) - used, "%u:%u=%.*s|", field.row, field.col, (int) n, content);
	}
	if (status != CSV_END)
		snprintf(out + used, sizeof(out) - used,
				 status == CSV_UNCLOSED	  ? "unclosed"
				 : status == CSV_NOT_JSON ? "no json"
										  : "stray");
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
	csv_reader_init(&reader, &dialect, text, end);
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
		snprintf(out + used, sizeof(out) - used,
				 status == CSV_UNCLOSED	  ? "unclosed"
				 : status == CSV_NOT_JSON ? "no json"
										  : "stray");
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

/* given: the separator that the caller names, or NULL. */
static void
check_given(const char *given, const char *text, size_t len, char separator, size_t skip)
{
	CsvOptions options;
	CsvReader reader;

	csv_options_parse(&options, NULL, given, NULL, false, NULL, true, NULL);
	csv_reader_init(&reader, &options.dialect, text, len);
	csv_guess(&reader, &options);
	TAP_OK(reader.dialect.separator == separator && reader.pos == text + skip, "the separator of %.20s is %c, got %c",
		   text, separator, reader.dialect.separator);
}

static void
check_guess(const char *text, size_t len, char separator, size_t skip)
{
	check_given(NULL, text, len, separator, skip);
}

/* What is not complete in the first CSV_HEAD_BYTES does not count. */
static void
check_guess_head(void)
{
	static char text[2 * CSV_HEAD_BYTES];
	size_t len = 0;

	while (len < CSV_HEAD_BYTES - 8)
		len += (size_t) sprintf(text + len, "a;b\n");
	memset(text + len, ',', 4000);
	check_guess(text, len + 4000, ';', 0);
	while (len < sizeof(text) - 8)
		len += (size_t) sprintf(text + len, "a,b\n");
	check_guess(text, len, ';', 0);
}

static void
check_options(const char *text, const char *expected, CsvOptions options)
{
	CsvField field = {.data = text, .len = strlen(text)};
	char content[64];
	size_t len = csv_content(&options, &field, content);

	TAP_OK(len == strlen(expected) && memcmp(content, expected, len) == 0, "%s becomes %s, got %.*s", text, expected,
		   (int) len, content);
}

static void
check_content(const char *text, const char *expected, bool decimal_comma, bool formulas)
{
	check_options(text, expected, (CsvOptions){.decimal_comma = decimal_comma, .formulas = formulas});
}

/* dmy, mdy: the contents under these orders of dates; NULL: the text. */
static void
check_date(const char *text, const char *dmy, const char *mdy)
{
	check_options(text, dmy != NULL ? dmy : text, (CsvOptions){.dates = CSV_DATES_DMY});
	check_options(text, mdy != NULL ? mdy : text, (CsvOptions){.dates = CSV_DATES_MDY});
	check_options(text, text, (CsvOptions){.dates = CSV_DATES_NONE});
	TAP_OK(csv_is_date(CSV_DATES_DMY, text, strlen(text)) == (dmy != NULL) &&
			   csv_is_date(CSV_DATES_MDY, text, strlen(text)) == (mdy != NULL),
		   "the orders of %s", text);
}

static void
check_dates(void)
{
	static const char *const none[] = {"",
									   "1.1.24",
									   "1.1",
									   "1.1.2024.",
									   "1.1/2024",
									   "1.1.20245",
									   "32.13.2024",
									   "30.2.2024",
									   "29.2.1900",
									   "0.1.2024",
									   "1.0.2024",
									   "001.1.2024",
									   "1.1.2024x",
									   "1.1.2024 x",
									   "1.1.2024 25:00",
									   "1.1.2024 ",
									   "1..2024",
									   "1.1.1899",
									   "+1.1.2024",
									   " 1.1.2024",
									   "1 1 2024",
									   "2024-01-31",
									   "1.1.2024 08:30:15.1234"};

	check_date("31.01.2024", "2024-01-31", NULL);
	check_date("1/31/2024", NULL, "2024-01-31");
	check_date("2/1/2024", "2024-01-02", "2024-02-01");
	check_date("29-2-2024", "2024-02-29", NULL);
	check_date("1.1.2024 8:30", "2024-01-01 08:30", "2024-01-01 08:30");
	check_date("13.1.2024 08:30:15.123", "2024-01-13 08:30:15.123", NULL);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		check_date(none[i], NULL, NULL);
	TAP_OK(!csv_is_date(CSV_DATES_DMY, "1.1.2024 8:30\0x", 15), "a date does not end with NUL");
	check_options("1.234,5", "1234.5", (CsvOptions){.dates = CSV_DATES_DMY, .decimal_comma = true});
	check_content("+1,5", "+1.5", true, false);
	check_content("+49.301.234", "+49.301.234", true, false);
	check_content("007,5", "007,5", true, false);
	check_content("1.234.567.890.123.456.789", "1.234.567.890.123.456.789", true, false);
	check_options("1.12.2024", "2024-12-01", (CsvOptions){.dates = CSV_DATES_DMY, .decimal_comma = true});
}

/* A field of a file of others, and how an export writes the content again: both show the same text. */
static void
check_apostrophe(const char *text, const char *content, const char *exported)
{
	bool omits = csv_omits_apostrophe(content, strlen(content));

	check_content(text, content, false, true);
	check_content(text, content, false, false);
	TAP_OK(strcmp(content + omits, exported) == 0, "%s is exported as %s, got %s", content, exported, content + omits);
}

static void
check_apostrophes(void)
{
	static const char *const needed[] = {"'12",
										 "''12",
										 "'''12",
										 "'=A1",
										 "''=A1",
										 "'-1.5e3",
										 "'1E5",
										 "'+49301",
										 "'TRUE",
										 "'0:30",
										 "'36:00:00",
										 "'1900-01-01",
										 "'2024-02-29",
										 "'2024-01-31T10:30",
										 "'0.30000000000000004"};
	static const char *const texts[] = {
		"'s-Hertogenbosch",	  "'",	   "''",		  "'007",		 "'''007",	  "'=",	 "'MAR1", "'1E999",
		"'12345678901234567", "'true", "'1899-12-31", "'2023-02-29", "'10000:00", "'1,5"};
	char content[64];

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		check_apostrophe(needed[i], needed[i], needed[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		sprintf(content, "'%s", texts[i]);
		check_apostrophe(texts[i], content, texts[i]);
	}
	TAP_OK(csv_omits_apostrophe("'007", 4) && csv_omits_apostrophe("'", 1) && !csv_omits_apostrophe("007", 3) &&
			   !csv_omits_apostrophe("", 0),
		   "an apostrophe that a text does not need is not exported");
	memset(content, '1', sizeof(content));
	content[0] = '\'';
	TAP_OK(csv_omits_apostrophe(content, 64), "a number of many digits is a text");
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
	TAP_OK(csv_needs_quotes("a;b", 3, ',') && csv_needs_quotes("a|b", 3, ',') && csv_needs_quotes("sep=;", 5, ',') &&
			   !csv_needs_quotes("a;b", 3, '\t'),
		   "between commas, other separators are quoted");

	dialect.lenient = true;
	check("a\"b,\"c\"d\"e\" , \"f,\" ,\"\"x", "0:0=a\"b|0:1=cd\"e\" |0:2=f,|0:3=x|");
	check("\"a\" \r\n \"b\"", "0:0=a|1:0=b|");
	check("\"a", "unclosed");
	dialect = (CsvDialect){.separator = '\t', .quote = CSV_NO_QUOTE};
	check("\"a\tb\"\n\xFF", "0:0=\"a|0:1=b\"|1:0=\xFF|");
	dialect = (CsvDialect){.separator = ';', .quote = '\''};
	check("'a;''b'';';c,\"d", "0:0=a;'b';|0:1=c,\"d|");
	dialect = (CsvDialect){.json = true};
	check("[\"a\",1.5e3,null,true]\r\n\n[]\n [ \"\\u00e4\\n\\ud83d\\ude42\" ] ",
		  "0:0=a|0:1=1.5e3|0:2=|0:3=TRUE|2:0=\xC3\xA4\n\xF0\x9F\x99\x82|");
	check("[1", "no json");
	check("[1],", "no json");
	check("[[]]", "no json");

	check_guess("a;b", 3, ';', 0);
	check_guess("a,b;c", 5, ',', 0);
	check_guess("1,5;c", 5, ';', 0);
	check_guess("a\"\";b\nc;d", 9, ';', 0);
	check_guess("\"a;\"\";\",b\n", 11, ',', 0);
	check_guess("sep=|\r\na", 8, '|', 7);
	check_guess("sep=;x\na,b", 10, ',', 0);
	check_guess("", 0, ',', 0);
	check_given(";", "sep=;\na;b", 9, ';', 6);
	check_given(",", "sep=;\na;b", 9, ',', 0);
	check_given("|", "a;b", 3, '|', 0);
	check_guess_head();

	check_content("-50,00", "-50.00", true, true);
	check_content("1.234,56", "1234.56", true, true);
	check_content("1.234", "1234", true, true);
	check_content("1.23,4", "1.23,4", true, true);
	check_content("+49301234", "'+49301234", false, false);
	check_content("+1.5", "'+1.5", false, false);
	check_content("1E5", "'1E5", false, false);
	check_content("-12e3", "'-12e3", false, false);
	check_content("1.5E3", "1.5E3", false, false);
	check_content("1e-05", "1e-05", false, false);
	check_content("1E+16", "1E+16", false, false);
	check_content("1E5", "1E5", false, true);
	check_content("+1.234,5", "+1234.5", true, false);
	check_content("'=1", "'=1", false, false);
	check_content("007", "007", false, false);
	check_content("=1", "'=1", false, false);
	check_content("=", "=", false, false);
	check_content("1,5E", "1,5E", true, false);
	check_content("=1", "=1", true, true);
	check_content("'1,5", "''1,5", true, false);
	check_dates();
	check_apostrophes();
	return tap_done();
}
