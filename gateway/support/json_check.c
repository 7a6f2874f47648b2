/*
 * json_check.c - the grammar of RFC 8259, without building anything; see json_check.h.
 */
#include "support/json_check.h"

#include <stdint.h>
#include <string.h>

/* The bytes that are left. Every function steps over what it has accepted. */
typedef struct JsonText
{
	const char *pos;
	const char *end;
} JsonText;

static bool json_take_value(JsonText *text, int depth);

static void
json_skip_blanks(JsonText *text)
{
	while (text->pos < text->end && memchr(" \t\r\n", *text->pos, 4) != NULL)
		text->pos++;
}

static bool
json_take_byte(JsonText *text, char byte)
{
	if (text->pos == text->end || *text->pos != byte)
		return false;
	text->pos++;
	return true;
}

static bool
json_take_word(JsonText *text, const char *word)
{
	size_t len = strlen(word);

	if ((size_t) (text->end - text->pos) < len || memcmp(text->pos, word, len) != 0)
		return false;
	text->pos += len;
	return true;
}

static bool
json_take_digits(JsonText *text)
{
	const char *from = text->pos;

	while (text->pos < text->end && *text->pos >= '0' && *text->pos <= '9')
		text->pos++;
	return text->pos > from;
}

static bool
json_take_number(JsonText *text)
{
	(void) json_take_byte(text, '-');
	if (!json_take_byte(text, '0') && !json_take_digits(text))
		return false;
	if (json_take_byte(text, '.') && !json_take_digits(text))
		return false;
	if (!json_take_byte(text, 'e') && !json_take_byte(text, 'E'))
		return true;
	if (!json_take_byte(text, '+'))
		(void) json_take_byte(text, '-');
	return json_take_digits(text);
}

/* The four digits behind \u. */
static bool
json_take_unit(JsonText *text, uint32_t *unit)
{
	*unit = 0;
	for (int i = 0; i < 4; i++)
	{
		static const char digits[] = "0123456789abcdefABCDEF";
		const char *digit = text->pos < text->end ? memchr(digits, *text->pos, sizeof(digits) - 1) : NULL;
		uint32_t value;

		if (digit == NULL)
			return false;
		value = (uint32_t) (digit - digits);
		*unit = *unit << 4 | (value < 16 ? value : value - 6);
		text->pos++;
	}
	return true;
}

/* What stands behind a backslash. Surrogates come in pairs: alone they are no character, and no UTF-8 says them. */
static bool
json_take_escape(JsonText *text)
{
	uint32_t unit;

	if (text->pos < text->end && memchr("\"\\/bfnrt", *text->pos, 8) != NULL)
	{
		text->pos++;
		return true;
	}
	if (!json_take_byte(text, 'u') || !json_take_unit(text, &unit))
		return false;
	if (unit < 0xD800 || unit > 0xDFFF)
		return true;
	return unit < 0xDC00 && json_take_word(text, "\\u") && json_take_unit(text, &unit) && unit >= 0xDC00 &&
		   unit <= 0xDFFF;
}

static bool
json_take_string(JsonText *text)
{
	if (!json_take_byte(text, '"'))
		return false;
	while (text->pos < text->end)
	{
		unsigned char byte = (unsigned char) *text->pos++;

		if (byte == '"')
			return true;
		if (byte < 0x20 || (byte == '\\' && !json_take_escape(text)))
			return false;
	}
	return false;
}

/* Members up to the closing bracket; the opening one has been taken. */
static bool
json_take_members(JsonText *text, int depth, bool object)
{
	char close = object ? '}' : ']';

	if (depth > JSON_CHECK_DEPTH)
		return false;
	json_skip_blanks(text);
	if (json_take_byte(text, close))
		return true;
	do
	{
		json_skip_blanks(text);
		if (object)
		{
			if (!json_take_string(text))
				return false;
			json_skip_blanks(text);
			if (!json_take_byte(text, ':'))
				return false;
		}
		if (!json_take_value(text, depth))
			return false;
	} while (json_take_byte(text, ','));
	return json_take_byte(text, close);
}

/* A value and the blanks around it. */
static bool
json_take_value(JsonText *text, int depth)
{
	bool good;

	json_skip_blanks(text);
	if (text->pos == text->end)
		return false;
	switch (*text->pos)
	{
		case '"':
			good = json_take_string(text);
			break;
		case '{':
		case '[':
			good = json_take_members(text, depth + 1, *text->pos++ == '{');
			break;
		case 'n':
			good = json_take_word(text, "null");
			break;
		case 't':
			good = json_take_word(text, "true");
			break;
		case 'f':
			good = json_take_word(text, "false");
			break;
		default:
			good = json_take_number(text);
			break;
	}
	json_skip_blanks(text);
	return good;
}

bool
json_check(const char *text, size_t len)
{
	JsonText all = {text, text + len};

	return json_take_value(&all, 0) && all.pos == all.end;
}

/* Each value but the first of its array or object is behind a comma, that one behind the bracket. */
bool
json_has_few_values(const char *text, size_t len, size_t most)
{
	size_t values = 1;
	bool in_string = false;

	for (size_t i = 0; i < len; i++)
	{
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && (text[i] == ',' || text[i] == '[' || text[i] == '{') && ++values > most)
			return false;
	}
	return true;
}

/* Escaped backslashes are stepped over. */
bool
json_has_nul(const char *text, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
	{
		if (text[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
			return true;
		i++;
	}
	return false;
}
