/*
 * csv_options.c - the options of an import, and the content that a field becomes under them.
 */
#include "common/csv.h"

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
	if (options->dialect.quote == options->dialect.separator)
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
 * of which the first does not begin with 0; then a comma and digits. One of the two is there, or it is left unchanged.
 * Returns the length.
 */
static size_t
content_with_point(char *text, size_t len)
{
	Scan scan = {text, text + len};
	bool leading_zero, grouped = false, comma;
	size_t digits;
	char *to = text;

	(void) scan_take(&scan, "+-");
	leading_zero = scan.p < scan.end && *scan.p == '0';
	digits = scan_digits(&scan);
	if (digits == 0)
		return len;
	while (digits <= 3 && !leading_zero && scan_take(&scan, "."))
	{
		grouped = true;
		if (scan_digits(&scan) != 3)
			return len;
	}
	comma = scan_take(&scan, ",");
	if ((comma && scan_digits(&scan) == 0) || scan.p != scan.end || !(comma || grouped))
		return len;
	for (size_t i = 0; i < len; i++)
	{
		if (text[i] != '.')
			*to++ = text[i] == ',' ? '.' : text[i];
	}
	return (size_t) (to - text);
}

/* Would a grid show other characters than these: of a formula, of what begins with an apostrophe, or of a number with a
 * plus sign or an exponent, as in +49301234 and 1E5? */
static bool
content_shows_otherwise(const char *text, size_t len)
{
	Scan scan = {text, text + len};
	bool plus, exponent;

	if (len > 0 && (text[0] == '\'' || (text[0] == '=' && len > 1)))
		return true;
	plus = scan_take(&scan, "+");
	if (!plus)
		(void) scan_take(&scan, "-");
	if (scan_digits(&scan) == 0 || (scan_take(&scan, ".") && scan_digits(&scan) == 0))
		return false;
	exponent = scan_take(&scan, "eE");
	if (exponent)
	{
		(void) scan_take(&scan, "+-");
		if (scan_digits(&scan) == 0)
			return false;
	}
	return scan.p == scan.end && (plus || exponent);
}

size_t
csv_content(const CsvOptions *options, const CsvField *field, char *to)
{
	size_t len = csv_unquote(field, to);

	if (options->decimal_comma)
		len = content_with_point(to, len);
	if (!options->formulas && field->kind != CSV_NUMBER && content_shows_otherwise(to, len))
	{
		memmove(to + 1, to, len++);
		to[0] = '\'';
	}
	return len;
}
