/*
 * csv_options.c - the options of an import, and the content that a field becomes under them.
 */
#include "common/csv.h"

#include "common/value.h"

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
				  const char *decimal_point, bool formulas)
{
	bool tsv = format != NULL && strcmp(format, "tsv") == 0;
	bool json = format != NULL && strcmp(format, "jsonl") == 0;

	*options = (CsvOptions){.dialect = {.separator = tsv ? '\t' : ',', .quote = '"', .lenient = lenient, .json = json},
							.guess = separator == NULL && !tsv && !json,
							.sep_line = !tsv && !json,
							.decimal_comma = decimal_point != NULL && strcmp(decimal_point, ",") == 0,
							.formulas = formulas};
	if (format != NULL && !tsv && !json && strcmp(format, "csv") != 0)
		return "the format is csv, tsv or jsonl";
	if (decimal_point != NULL && !options->decimal_comma && strcmp(decimal_point, ".") != 0)
		return "the decimal sign is . or ,";
	if (json && (separator != NULL || (quote != NULL && strcmp(quote, "\"") != 0) || lenient || options->decimal_comma))
		return "separator, quote, leniency and decimal sign are for csv and tsv only";
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
 * of which the first does not begin with 0; then a comma and digits. A text without groups and comma is left unchanged.
 * Returns whether it was one.
 */
static bool
content_with_point(char *text, size_t *len)
{
	Scan scan = {text, text + *len};
	bool leading_zero, grouped = false, comma;
	size_t digits;
	char *to = text;

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
	if ((comma && scan_digits(&scan) == 0) || scan.p != scan.end || !(comma || grouped))
		return false;
	for (size_t i = 0; i < *len; i++)
	{
		if (text[i] != '.')
			*to++ = text[i] == ',' ? '.' : text[i];
	}
	*len = (size_t) (to - text);
	return true;
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
	size_t len = csv_unquote(field, to);

	if (options->decimal_comma && content_with_point(to, &len))
		return len;
	if (csv_omits_apostrophe(to, len) || (!options->formulas && field->kind != CSV_NUMBER && content_is_code(to, len)))
	{
		memmove(to + 1, to, len++);
		to[0] = '\'';
	}
	return len;
}
