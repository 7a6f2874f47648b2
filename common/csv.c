/*
 * csv.c - RFC 4180 and its dialects: reading and writing separated values.
 *
 * Strict where leniency would lose data: a quote is either the first byte of its field or it is doubled. Line ends
 * inside quotes belong to the content and stay as they are.
 *
 * A lenient reader takes three forms more: a quote inside an unquoted field is a character, blanks around a quoted
 * field are passed over, and text behind a closing quote is appended, quotes in it being characters. It counts the
 * fields that have one of these. A quoted field without an end is refused by both, since it would take all that
 * follows.
 */
#include "common/csv.h"

#include <string.h>

void
csv_reader_init(CsvReader *reader, const CsvDialect *dialect, const char *text, size_t len)
{
	bool mark = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;

	*reader = (CsvReader){.pos = text + (mark ? 3 : 0), .end = text + len, .line = 1, .dialect = *dialect};
}

/* ---- reading ---- */

static inline bool
csv_is_end(const CsvDialect *dialect, char c)
{
	return c == dialect->separator || c == '\r' || c == '\n';
}

static const char *
csv_skip_blanks(const CsvReader *reader, const char *p)
{
	while (p < reader->end && (*p == ' ' || *p == '\t') && *p != reader->dialect.separator)
		p++;
	return p;
}

/* After a field: a separator or a line end is taken, and says where the next field is. */
static inline void
csv_end_field(CsvReader *reader)
{
	reader->field_due = false;
	if (reader->pos == reader->end)
		return;
	if (*reader->pos == reader->dialect.separator)
	{
		reader->pos++;
		reader->col++;
		reader->field_due = true;
		return;
	}
	if (*reader->pos == '\r' && reader->pos + 1 < reader->end && reader->pos[1] == '\n')
		reader->pos++;
	reader->pos++;
	reader->row++;
	reader->col = 0;
	reader->line++;
}

/* The quote that opens the field is at `open`, behind blanks if the reader is lenient. */
static CsvStatus
csv_read_quoted(CsvReader *reader, CsvField *field, const char *open, bool *forgiven)
{
	const int quote = reader->dialect.quote;
	const char *p = open + 1;

	for (;; p++)
	{
		if (p == reader->end)
			return CSV_UNCLOSED;
		if (*p == '\n')
			reader->line++;
		if (*p != quote)
			continue;
		if (p + 1 == reader->end || p[1] != quote)
			break;
		p++;
	}
	field->data = open + 1;
	field->len = (size_t) (p - field->data);
	reader->pos = p + 1;
	if (reader->pos == reader->end || csv_is_end(&reader->dialect, *reader->pos))
		return CSV_FIELD;
	if (!reader->dialect.lenient)
		return CSV_STRAY_QUOTE;
	*forgiven = true;
	reader->pos = csv_skip_blanks(reader, reader->pos);
	if (reader->pos == reader->end || csv_is_end(&reader->dialect, *reader->pos))
		return CSV_FIELD;
	while (reader->pos < reader->end && !csv_is_end(&reader->dialect, *reader->pos))
		reader->pos++;
	field->kind = CSV_LOOSE;
	field->len = (size_t) (reader->pos - field->data);
	return CSV_FIELD;
}

static CsvStatus
csv_read_plain(CsvReader *reader, CsvField *field, bool *forgiven)
{
	const char separator = reader->dialect.separator;
	const int quote = reader->dialect.quote;
	const char *p = reader->pos, *end = reader->end;

	while (p < end && *p != separator && *p != '\r' && *p != '\n')
		if (*p++ == quote)
		{
			if (!reader->dialect.lenient)
				return CSV_STRAY_QUOTE;
			*forgiven = true;
		}
	field->data = reader->pos;
	field->len = (size_t) (p - field->data);
	reader->pos = p;
	return CSV_FIELD;
}

/*
 * A field that ends where the piece ends may continue, and so may its end: a quote may be the first of two, and LF may
 * follow CR.
 */
static bool
csv_is_undecided(const CsvReader *reader)
{
	return reader->more && (reader->pos == reader->end || (*reader->pos == '\r' && reader->pos + 1 == reader->end));
}

CsvStatus
csv_read(CsvReader *reader, CsvField *field)
{
	const char *before = reader->pos, *open;
	uint64_t line = reader->line;
	bool forgiven = false;
	CsvStatus status;

	if (reader->dialect.json)
		return csv_read_json(reader, field);
	if (reader->pos == reader->end && (reader->more || !reader->field_due))
		return reader->more ? CSV_MORE : CSV_END;
	field->row = reader->row;
	field->col = reader->col;
	field->line = line;
	field->quote = reader->dialect.quote;
	open = reader->dialect.lenient ? csv_skip_blanks(reader, before) : before;
	field->kind = open < reader->end && *open == field->quote ? CSV_QUOTED : CSV_PLAIN;
	status = field->kind == CSV_QUOTED ? csv_read_quoted(reader, field, open, &forgiven)
									   : csv_read_plain(reader, field, &forgiven);
	if (status == CSV_UNCLOSED ? reader->more : status == CSV_FIELD && csv_is_undecided(reader))
	{
		reader->pos = before;
		reader->line = line;
		return CSV_MORE;
	}
	if (status != CSV_FIELD)
		return status;
	if (forgiven || (field->kind != CSV_PLAIN && open != before))
	{
		if (reader->forgiven++ == 0)
			reader->forgiven_line = line;
	}
	csv_end_field(reader);
	return CSV_FIELD;
}

size_t
csv_unquote(const CsvField *field, char *to)
{
	const char *from = field->data, *end = from + field->len;
	char *start = to;

	if (field->kind >= CSV_STRING)
		return csv_unquote_json(field, to);
	while (field->kind != CSV_PLAIN && from < end)
	{
		if (*from == field->quote && ++from < end && *from != field->quote)
			break; /* the closing quote: the rest is literal */
		if (from < end)
			*to++ = *from++;
	}
	memcpy(to, from, (size_t) (end - from));
	return (size_t) (to - start) + (size_t) (end - from);
}

/* ---- writing ---- */

/* Bytes of which a field with one is quoted: in each dialect; and where commas separate fields. */
#define CSV_STOPS		1
#define CSV_STOPS_COMMA 2
static const unsigned char csv_stops[256] = {
	['"'] = CSV_STOPS,		 ['\r'] = CSV_STOPS,	   ['\n'] = CSV_STOPS,		[','] = CSV_STOPS_COMMA,
	[';'] = CSV_STOPS_COMMA, ['\t'] = CSV_STOPS_COMMA, ['|'] = CSV_STOPS_COMMA,
};

bool
csv_needs_quotes(const char *data, size_t len, char separator)
{
	int stops = separator == ',' ? CSV_STOPS | CSV_STOPS_COMMA : CSV_STOPS;

	for (size_t i = 0; i < len; i++)
	{
		if ((csv_stops[(unsigned char) data[i]] & stops) != 0 || data[i] == separator)
			return true;
	}
	if (separator == ',' && len >= 4 && memcmp(data, "sep=", 4) == 0)
		return true;
	return len >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0;
}

size_t
csv_write(char *to, const char *data, size_t len, char separator)
{
	char *start = to;

	if (!csv_needs_quotes(data, len, separator))
	{
		memcpy(to, data, len);
		return len;
	}
	*to++ = '"';
	for (size_t i = 0; i < len; i++)
	{
		if (data[i] == '"')
			*to++ = '"';
		*to++ = data[i];
	}
	*to++ = '"';
	return (size_t) (to - start);
}
