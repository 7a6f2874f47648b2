/*
 * v2_json.c - JSON as it stands in a message: read strictly (RFC 8259), without a tree and without memory of its own.
 *
 * Bytes are taken as UTF-8 that somebody else checks.
 */
#include "ws/wire/v2_json.h"

#include "ws/wire/v2.h"

#include <string.h>

void
json_skip_blanks(JsonInput *input)
{
	while (input->pos < input->end &&
		   (*input->pos == ' ' || *input->pos == '\n' || *input->pos == '\t' || *input->pos == '\r'))
		input->pos++;
}

bool
json_take(JsonInput *input, char character)
{
	if (input->pos < input->end && *input->pos == character) /* mostly nobody writes blanks */
	{
		input->pos++;
		return true;
	}
	json_skip_blanks(input);
	if (input->pos == input->end || *input->pos != character)
		return false;
	input->pos++;
	return true;
}

static bool
json_is_digit(const JsonInput *input)
{
	return input->pos < input->end && *input->pos >= '0' && *input->pos <= '9';
}

bool
json_read_number(JsonInput *input, uint64_t *value)
{
	const char *from;
	uint64_t result = 0;

	json_skip_blanks(input);
	from = input->pos;
	while (json_is_digit(input) && input->pos - from < 17)
		result = result * 10 + (uint64_t) (*input->pos++ - '0');
	*value = result;
	if (input->pos == from || (*from == '0' && input->pos - from > 1) || result > V2_MAX_NUMBER)
		return false;
	return input->pos == input->end || memchr(",]} \n\t\r", *input->pos, 7) != NULL;
}

/* ---- strings ---- */

static int
json_hex(const char *digits)
{
	int value = 0;

	for (int i = 0; i < 4; i++)
	{
		char c = digits[i];

		if (c >= '0' && c <= '9')
			value = value << 4 | (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value << 4 | ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

static char *
json_put_char(char *to, uint32_t code)
{
	if (code < 0x80)
		*to++ = (char) code;
	else if (code < 0x800)
	{
		*to++ = (char) (0xC0 | code >> 6);
		*to++ = (char) (0x80 | (code & 0x3F));
	}
	else if (code < 0x10000)
	{
		*to++ = (char) (0xE0 | code >> 12);
		*to++ = (char) (0x80 | (code >> 6 & 0x3F));
		*to++ = (char) (0x80 | (code & 0x3F));
	}
	else
	{
		*to++ = (char) (0xF0 | code >> 18);
		*to++ = (char) (0x80 | (code >> 12 & 0x3F));
		*to++ = (char) (0x80 | (code >> 6 & 0x3F));
		*to++ = (char) (0x80 | (code & 0x3F));
	}
	return to;
}

/* The four digits behind \u, and the second half of a pair; 0: NUL, a lone half, or no digits. */
static uint32_t
json_read_unicode(JsonInput *input)
{
	int code, low;

	if (input->end - input->pos < 4 || (code = json_hex(input->pos)) < 0)
		return 0;
	input->pos += 4;
	if (code < 0xD800 || code > 0xDFFF)
		return (uint32_t) code;
	if (code > 0xDBFF || input->end - input->pos < 6 || input->pos[0] != '\\' || input->pos[1] != 'u')
		return 0;
	low = json_hex(input->pos + 2);
	if (low < 0xDC00 || low > 0xDFFF)
		return 0;
	input->pos += 6;
	return 0x10000 + ((uint32_t) (code - 0xD800) << 10) + (uint32_t) (low - 0xDC00);
}

/* What is behind a backslash. */
static char *
json_read_escape(JsonInput *input, char *to)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *found;
	uint32_t code;

	if (input->pos == input->end)
		return NULL;
	if (*input->pos == 'u')
	{
		input->pos++;
		code = json_read_unicode(input);
		return code != 0 ? json_put_char(to, code) : NULL;
	}
	found = memchr(names, *input->pos, sizeof(names) - 1);
	if (found == NULL)
		return NULL;
	input->pos++;
	*to++ = values[found - names];
	return to;
}

bool
json_read_string(JsonInput *input, char *to, size_t *len)
{
	char *from = to;

	if (!json_take(input, '"'))
		return false;
	while (input->pos < input->end)
	{
		unsigned char byte = (unsigned char) *input->pos++;

		if (byte == '"')
		{
			*len = (size_t) (to - from);
			return true;
		}
		if (byte < 0x20)
			return false;
		if (byte != '\\')
			*to++ = (char) byte;
		else if ((to = json_read_escape(input, to)) == NULL)
			return false;
	}
	return false;
}

/* ---- values that are passed over ---- */

bool
json_take_null(JsonInput *input)
{
	json_skip_blanks(input);
	if (input->end - input->pos < 4 || memcmp(input->pos, "null", 4) != 0)
		return false;
	input->pos += 4;
	return true;
}

/* Behind the string that begins here, or at the end. */
static void
json_skip_string(JsonInput *input)
{
	for (input->pos++; input->pos < input->end && *input->pos != '"'; input->pos++)
		input->pos += *input->pos == '\\' && input->pos + 1 < input->end;
	input->pos += input->pos < input->end;
}

bool
json_find_object(JsonInput *input)
{
	const char *from;
	int depth = 0;

	json_skip_blanks(input);
	from = input->pos;
	do
	{
		if (input->pos == input->end)
			return false;
		if (*input->pos == '"')
		{
			json_skip_string(input);
			continue;
		}
		depth += (*input->pos == '{') - (*input->pos == '}');
		input->pos++;
	} while (depth > 0);
	return *from == '{';
}
