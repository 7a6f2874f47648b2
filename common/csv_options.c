/*
 * csv_options.c - the options of an import, and the content that a field becomes under them.
 */
#include "common/csv.h"

#include "common/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static bool
options_is_character(const char *text)
{
	unsigned char c = (unsigned char) text[0];

	return c != '\0' && c < 0x80 && c != '\r' && c != '\n' && text[1] == '\0';
}

const char *
csv_options_parse(CsvOptions *options, const char *format, const char *separator, const char *quote, bool lenient,
				  const char *decimal_point, bool formulas, const char *date_order)
{
	bool tsv = format != NULL && strcmp(format, "tsv") == 0;
	bool json = format != NULL && strcmp(format, "jsonl") == 0;

	*options = (CsvOptions){.dialect = {.separator = tsv ? '\t' : ',', .quote = '"', .lenient = lenient, .json = json},
							.guess = separator == NULL && !tsv && !json,
							.sep_line = !tsv && !json,
							.decimal_comma = decimal_point != NULL && strcmp(decimal_point, ",") == 0,
							.formulas = formulas,
							.dates = date_order == NULL				  ? CSV_DATES_NONE
									 : strcmp(date_order, "dmy") == 0 ? CSV_DATES_DMY
																	  : CSV_DATES_MDY};
	if (format != NULL && !tsv && !json && strcmp(format, "csv") != 0)
		return "the format is csv, tsv or jsonl";
	if (decimal_point != NULL && !options->decimal_comma && strcmp(decimal_point, ".") != 0)
		return "the decimal sign is . or ,";
	if (date_order != NULL && options->dates == CSV_DATES_MDY && strcmp(date_order, "mdy") != 0)
		return CSV_DATES_ARE;
	if (json && (separator != NULL || (quote != NULL && strcmp(quote, "\"") != 0) || lenient ||
				 options->decimal_comma || options->dates != CSV_DATES_NONE))
		return "separator, quote, leniency, decimal sign and order of dates are for csv and tsv only";
	if (separator != NULL && strcmp(separator, "tab") == 0)
		separator = "\t";
	if (separator != NULL && !options_is_character(separator))
		return CSV_SEPARATOR_IS;
	if (quote != NULL && quote[0] != '\0' && !options_is_character(quote))
		return "the quote is one ASCII character other than a line end, or empty";
	if (separator != NULL)
		options->dialect.separator = separator[0];
	if (quote != NULL)
		options->dialect.quote = quote[0] != '\0' ? quote[0] : CSV_NO_QUOTE;
	if (!options->guess && options->dialect.quote == options->dialect.separator)
		return "separator and quote are the same character";
	return NULL;
}

/* ---- contents ---- */

#define CONTENT_TIME_BYTES 13 /* of a time, as in " 08:30:15.123" */
#define CONTENT_DATE_BYTES 32 /* of a date and a time, with the final NUL */

/* A piece of text that a pattern is compared with, from its start. */
typedef struct Scan
{
	const char *p, *end;
} Scan;

static bool
scan_take(Scan *scan, const char *any_of)
{
	if (scan->p == scan->end || *scan->p == '\0' || strchr(any_of, *scan->p) == NULL)
		return false;
	scan->p++;
	return true;
}

static size_t
scan_digits(Scan *scan)
{
	const char *from = scan->p;

	while (scan->p < scan->end && *scan->p >= '0' && *scan->p <= '9')
		scan->p++;
	return (size_t) (scan->p - from);
}

/*
 * Turns a number with a decimal comma into one with a point: [+-] digits, or groups of three with points between them,
 * of which the first does not begin with 0; then a comma and digits. What is no number without groups and comma, as
 * 007,5, and groups behind a plus sign, as of telephone numbers, are left unchanged. Returns whether it was one.
 */
static bool
content_with_point(char *text, size_t *len)
{
	Scan scan = {text, text + *len};
	bool leading_zero, grouped = false, comma, plus = *len > 0 && text[0] == '+';
	char number[64];
	size_t digits, used = 0;

	if (*len >= sizeof(number))
		return false;
	(void) scan_take(&scan, "+-");
	leading_zero = scan.p < scan.end && *scan.p == '0';
	digits = scan_digits(&scan);
	if (digits == 0)
		return false;
	while (digits <= 3 && !leading_zero && scan_take(&scan, "."))
	{
		grouped = true;
		if (scan_digits(&scan) != 3)
			return false;
	}
	comma = scan_take(&scan, ",");
	if ((comma && scan_digits(&scan) == 0) || scan.p != scan.end || !(comma || (grouped && !plus)))
		return false;
	for (size_t i = 0; i < *len; i++)
	{
		if (text[i] != '.')
			number[used++] = text[i] == ',' ? '.' : text[i];
	}
	number[used] = '\0';
	if (!value_is_no_text(number))
		return false;
	memcpy(text, number, used);
	*len = used;
	return true;
}

/* One or two digits as a number; -1: there is none. */
static int
scan_small_number(Scan *scan)
{
	const char *from = scan->p;
	size_t digits = scan_digits(scan);

	if (digits < 1 || digits > 2)
		return -1;
	return digits == 1 ? from[0] - '0' : (from[0] - '0') * 10 + from[1] - '0';
}

/*
 * Writes a date such as 31.1.2024, 31/01/2024 or 31-01-2024, which a time may follow, as 2024-01-31 to `to`; the length
 * of that, or 0: it is none.
 */
static size_t
content_iso_date(CsvDates order, const char *text, size_t len, char to[CONTENT_DATE_BYTES])
{
	Scan scan = {text, text + len};
	int first = scan_small_number(&scan), second;
	char mark[2] = {scan.p < scan.end ? *scan.p : '\0'};
	const char *year, *time;
	bool hour;

	if (first < 0 || !scan_take(&scan, "./-"))
		return 0;
	second = scan_small_number(&scan);
	if (second < 0 || !scan_take(&scan, mark))
		return 0;
	year = scan.p;
	if (scan_digits(&scan) != 4 || (scan.p < scan.end && *scan.p != ' ') || scan.end - scan.p > CONTENT_TIME_BYTES)
		return 0;
	time = scan.p;
	if (memchr(time, '\0', (size_t) (scan.end - time)) != NULL)
		return 0;
	/* 8:30 is 08:30 */
	hour = scan_take(&scan, " ") && scan_small_number(&scan) >= 0 && scan.p - time == 2;
	len = (size_t) snprintf(to, CONTENT_DATE_BYTES, "%.4s-%02d-%02d%s%.*s", year,
							order == CSV_DATES_DMY ? second : first, order == CSV_DATES_DMY ? first : second,
							hour ? " 0" : "", (int) (scan.end - time) - hour, time + hour);
	return value_is_no_text(to) ? len : 0;
}

bool
csv_is_date(CsvDates order, const char *text, size_t len)
{
	char date[CONTENT_DATE_BYTES];

	return content_iso_date(order, text, len, date) > 0;
}

/* Returns true for a formula, a number with a plus sign (+49301234), and an integer with an exponent without a sign
 * (1E5): in files of others these are texts. */
static bool
content_is_code(const char *text, size_t len)
{
	Scan scan = {text, text + len};
	bool plus, point, exponent, sign = false;

	if (len > 1 && text[0] == '=')
		return true;
	plus = scan_take(&scan, "+");
	if (!plus)
		(void) scan_take(&scan, "-");
	if (scan_digits(&scan) == 0)
		return false;
	point = scan_take(&scan, ".");
	if (point && scan_digits(&scan) == 0)
		return false;
	exponent = scan_take(&scan, "eE");
	if (exponent)
	{
		sign = scan_take(&scan, "+-");
		if (scan_digits(&scan) == 0)
			return false;
	}
	return scan.p == scan.end && (plus || (exponent && !point && !sign));
}

/*
 * Whether an apostrophe in front of this text makes it a text: without one it would be a number, a boolean, a date, a
 * time or a formula. Apostrophes at its start do not change that: ''12 is the text '12. A long one that has only
 * characters of numbers counts as a number.
 */
static bool
content_needs_apostrophe(const char *text, size_t len)
{
	char copy[64];

	while (len > 0 && *text == '\'')
	{
		text++;
		len--;
	}
	if (len > 1 && *text == '=')
		return true;
	if (len >= sizeof(copy))
	{
		Scan scan = {text, text + len};

		while (scan_take(&scan, "+-.eE0123456789"))
			;
		return scan.p == scan.end;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	return value_is_no_text(copy);
}

bool
csv_omits_apostrophe(const char *content, size_t len)
{
	return len > 0 && content[0] == '\'' && !content_needs_apostrophe(content + 1, len - 1);
}

size_t
csv_content(const CsvOptions *options, const CsvField *field, char *to)
{
	size_t len = csv_unquote(field, to), date_len = 0;
	char date[CONTENT_DATE_BYTES];

	if (options->dates != CSV_DATES_NONE && len >= 8 && to[0] >= '0' && to[0] <= '9')
		date_len = content_iso_date(options->dates, to, len, date);
	if (date_len > 0)
	{
		memcpy(to, date, date_len);
		return date_len;
	}
	if (options->decimal_comma && content_with_point(to, &len))
		return len;
	if (csv_omits_apostrophe(to, len) || (!options->formulas && field->kind != CSV_NUMBER && content_is_code(to, len)))
	{
		memmove(to + 1, to, len++);
		to[0] = '\'';
	}
	return len;
}
