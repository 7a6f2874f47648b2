/*
 * csv_json.c - reads JSON Lines: each line is an array of strings, numbers, booleans and nulls, and becomes a row.
 *
 * A number keeps its characters. Empty lines are passed over. A content holds no NUL, and UTF-8 no half of a surrogate
 * pair, so a string with one of these is refused.
 */
#include "common/csv.h"

#include "common/utf8.h"

#include <string.h>

/* The end of a value, or the reason why the text has no value there. */
typedef struct JsonEnd
{
	const char *p;
	CsvStatus status;
} JsonEnd;

static JsonEnd
json_cut(const CsvReader *reader)
{
	return (JsonEnd){reader->end, reader->more ? CSV_MORE : CSV_NOT_JSON};
}

static JsonEnd
json_wrong(const char *p)
{
	return (JsonEnd){p, CSV_NOT_JSON};
}

static const char *
json_skip_blanks(const CsvReader *reader, const char *p)
{
	while (p < reader->end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static inline int
json_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number of four hexadecimal digits; -1: they are none. */
static int
json_hex(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++)
	{
		int digit = json_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* An escape, whose backslash is at p. */
static JsonEnd
json_escape(const CsvReader *reader, const char *p)
{
	int unit;

	if (reader->end - p < 2)
		return json_cut(reader);
	if (p[1] != 'u')
		return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL ? (JsonEnd){p + 2, CSV_FIELD} : json_wrong(p);
	if (reader->end - p < 6)
		return json_cut(reader);
	unit = json_hex(p + 2);
	if (unit <= 0 || (unit & 0xFC00) == 0xDC00)
		return json_wrong(p);
	if ((unit & 0xFC00) != 0xD800)
		return (JsonEnd){p + 6, CSV_FIELD};
	if (reader->end - p < 12)
		return json_cut(reader);
	if (p[6] != '\\' || p[7] != 'u' || (unit = json_hex(p + 8)) < 0 || (unit & 0xFC00) != 0xDC00)
		return json_wrong(p);
	return (JsonEnd){p + 12, CSV_FIELD};
}

/* A string, whose quote is at p. */
static JsonEnd
json_string(const CsvReader *reader, CsvField *field, const char *p)
{
	JsonEnd end = {p + 1, CSV_FIELD};

	field->kind = CSV_STRING;
	field->data = end.p;
	while (end.status == CSV_FIELD)
	{
		if (end.p == reader->end)
			return json_cut(reader);
		if (*end.p == '"')
			break;
		if (*end.p == '\\')
			end = json_escape(reader, end.p);
		else if ((unsigned char) *end.p < 0x20)
			return json_wrong(end.p);
		else
			end.p++;
	}
	field->len = (size_t) (end.p - field->data);
	end.p++;
	return end;
}

static const char *
json_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

static bool
json_is_number(const char *p, const char *end)
{
	const char *from;

	p += *p == '-';
	from = p;
	p = json_digits(p, end);
	if (p == from || (*from == '0' && p > from + 1))
		return false;
	if (p < end && *p == '.')
	{
		from = ++p;
		p = json_digits(p, end);
		if (p == from)
			return false;
	}
	if (p < end && (*p == 'e' || *p == 'E'))
	{
		p++;
		p += p < end && (*p == '+' || *p == '-');
		from = p;
		p = json_digits(p, end);
		if (p == from)
			return false;
	}
	return p == end;
}

static bool
json_is_word(const CsvField *field, const char *word)
{
	return field->len == strlen(word) && memcmp(field->data, word, field->len) == 0;
}

/* A number, a boolean or null, at p. */
static JsonEnd
json_word(const CsvReader *reader, CsvField *field, const char *p)
{
	const char *start = p;

	while (p < reader->end && *p != ',' && *p != ']' && *p != ' ' && *p != '\t' && *p != '\r' && *p != '\n')
		p++;
	if (p == reader->end)
		return json_cut(reader);
	field->data = start;
	field->len = (size_t) (p - start);
	field->kind = CSV_BOOLEAN;
	if (json_is_word(field, "null"))
		field->len = 0;
	else if (field->len > 0 && !json_is_word(field, "true") && !json_is_word(field, "false"))
	{
		field->kind = CSV_NUMBER;
		if (!json_is_number(start, p))
			return json_wrong(start);
	}
	else if (field->len == 0)
		return json_wrong(start);
	return (JsonEnd){p, CSV_FIELD};
}

/* The end of a line, behind the array and blanks. */
static JsonEnd
json_line_end(CsvReader *reader, const char *p)
{
	p = json_skip_blanks(reader, p);
	if (p == reader->end)
		return reader->more ? json_cut(reader) : (JsonEnd){p, CSV_FIELD};
	if (*p == '\r' && p + 1 == reader->end && reader->more)
		return json_cut(reader);
	if (*p == '\r' && p + 1 < reader->end && p[1] == '\n')
		p++;
	return *p == '\n' || *p == '\r' ? (JsonEnd){p + 1, CSV_FIELD} : json_wrong(p);
}

static void
json_end_line(CsvReader *reader, const char *p)
{
	reader->pos = p;
	reader->line++;
	reader->col = 0;
	reader->field_due = false;
}

/* The next line that is not empty: *p is where its first value begins. Rows without values are passed. */
static CsvStatus
json_begin_row(CsvReader *reader, const char **p)
{
	for (;;)
	{
		const char *from = json_skip_blanks(reader, reader->pos);
		bool is_row;
		JsonEnd end;

		if (from == reader->end && reader->more)
			return CSV_MORE;
		if (from == reader->end)
		{
			reader->pos = from;
			return CSV_END;
		}
		is_row = *from == '[';
		if (is_row)
		{
			*p = json_skip_blanks(reader, from + 1);
			if (*p == reader->end)
				return json_cut(reader).status;
			if (**p != ']')
				return CSV_FIELD;
			from = *p + 1;
		}
		end = json_line_end(reader, from);
		if (end.status != CSV_FIELD)
			return end.status;
		json_end_line(reader, end.p);
		reader->row += is_row;
	}
}

CsvStatus
csv_read_json(CsvReader *reader, CsvField *field)
{
	const char *p = reader->pos;
	CsvStatus begun = reader->field_due ? CSV_FIELD : json_begin_row(reader, &p);
	JsonEnd end;

	*field = (CsvField){.row = reader->row, .col = reader->col, .line = reader->line};
	if (begun != CSV_FIELD)
		return begun;
	p = json_skip_blanks(reader, p);
	if (p == reader->end)
		return json_cut(reader).status;
	end = *p == '"' ? json_string(reader, field, p) : json_word(reader, field, p);
	if (end.status != CSV_FIELD)
		return end.status;
	p = json_skip_blanks(reader, end.p);
	if (p == reader->end)
		return json_cut(reader).status;
	if (*p == ',')
	{
		reader->pos = p + 1;
		reader->col++;
		reader->field_due = true;
		return CSV_FIELD;
	}
	if (*p != ']')
		return CSV_NOT_JSON;
	end = json_line_end(reader, p + 1);
	if (end.status == CSV_FIELD)
	{
		json_end_line(reader, end.p);
		reader->row++;
	}
	return end.status;
}

/* ---- the text of a value ---- */

size_t
csv_unquote_json(const CsvField *field, char *to)
{
	static const char escapes[] = "b\bf\fn\nr\rt\t";
	const char *from = field->data, *end = from + field->len;
	char *start = to;

	for (; from < end; from++)
	{
		if (field->kind == CSV_BOOLEAN)
			*to++ = (char) (*from & ~0x20);
		else if (field->kind != CSV_STRING || *from != '\\')
			*to++ = *from;
		else if (*++from == 'u')
		{
			uint32_t code = (uint32_t) json_hex(from + 1);

			from += 4;
			if ((code & 0xFC00) == 0xD800)
			{
				code = 0x10000 + ((code & 0x3FF) << 10) + ((uint32_t) json_hex(from + 3) & 0x3FF);
				from += 6;
			}
			to = utf8_put(to, code);
		}
		else
		{
			const char *escape = strchr(escapes, *from);

			*to++ = escape != NULL ? escape[1] : *from;
		}
	}
	return (size_t) (to - start);
}
