/*
 * csv.c - RFC 4180: reading and writing comma-separated values.
 *
 * Strict where leniency would lose data: a quote is either the first byte of its field or it is doubled. Line ends
 * inside quotes belong to the content and stay as they are.
 */
#include "api/functions/csv.h"

#include <string.h>

void
csv_reader_init(CsvReader *reader, const char *text, size_t len)
{
	bool mark = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;

	*reader = (CsvReader){.pos = text + (mark ? 3 : 0), .end = text + len, .line = 1};
}

/* After a field: a comma or a line end is taken, and says where the next field is. */
static void
csv_end_field(CsvReader *reader)
{
	reader->field_due = false;
	if (reader->pos == reader->end)
		return;
	if (*reader->pos == ',')
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

static CsvStatus
csv_read_quoted(CsvReader *reader, CsvField *field)
{
	const char *p = reader->pos + 1;

	for (;; p++)
	{
		if (p == reader->end)
			return CSV_UNCLOSED;
		if (*p == '\n')
			reader->line++;
		if (*p != '"')
			continue;
		if (p + 1 == reader->end || p[1] != '"')
			break;
		p++;
	}
	field->data = reader->pos + 1;
	field->len = (size_t) (p - field->data);
	reader->pos = p + 1;
	if (reader->pos < reader->end && strchr(",\r\n", *reader->pos) == NULL)
		return CSV_STRAY_QUOTE;
	return CSV_FIELD;
}

static CsvStatus
csv_read_plain(CsvReader *reader, CsvField *field)
{
	const char *p = reader->pos;

	while (p < reader->end && *p != ',' && *p != '\r' && *p != '\n')
		if (*p++ == '"')
			return CSV_STRAY_QUOTE;
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
	CsvReader before = *reader;
	CsvStatus status;

	if (reader->pos == reader->end && (reader->more || !reader->field_due))
		return reader->more ? CSV_MORE : CSV_END;
	field->row = reader->row;
	field->col = reader->col;
	field->quoted = reader->pos < reader->end && *reader->pos == '"';
	status = field->quoted ? csv_read_quoted(reader, field) : csv_read_plain(reader, field);
	if (status == CSV_UNCLOSED ? reader->more : status == CSV_FIELD && csv_is_undecided(reader))
	{
		*reader = before;
		return CSV_MORE;
	}
	if (status == CSV_FIELD)
		csv_end_field(reader);
	return status;
}

size_t
csv_unquote(const CsvField *field, char *to)
{
	char *start = to;

	for (size_t i = 0; i < field->len; i++)
	{
		*to++ = field->data[i];
		if (field->quoted && field->data[i] == '"')
			i++; /* the second one of a pair */
	}
	return (size_t) (to - start);
}

bool
csv_needs_quotes(const char *data, size_t len, char separator)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] == '"' || data[i] == separator || data[i] == '\r' || data[i] == '\n')
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
