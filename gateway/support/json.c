/*
 * json.c - a strict reader of JSON that builds no tree; see json.h.
 */
#include "support/json.h"

#include "common/utf8.h"

#include <errno.h>
#include <string.h>

void
json_skip_blanks(JsonInput *input)
{
	while (input->pos < input->end &&
		   (*input->pos == ' ' || *input->pos == '\n' || *input->pos == '\t' || *input->pos == '\r'))
		input->pos++;
}

bool
json_take_word(JsonInput *input, const char *word)
{
	size_t len = strlen(word);

	json_skip_blanks(input);
	if ((size_t) (input->end - input->pos) < len || memcmp(input->pos, word, len) != 0)
		return false;
	input->pos += len;
	return true;
}

/* ---- numbers ---- */

static bool
is_digit(const JsonInput *input)
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
	while (is_digit(input) && input->pos - from < 17)
		result = result * 10 + (uint64_t) (*input->pos++ - '0');
	*value = result;
	if (input->pos == from || (*from == '0' && input->pos - from > 1) || result > JSON_MAX_NUMBER)
		return false;
	return input->pos == input->end || memchr(",]} \n\t\r", *input->pos, 7) != NULL;
}

static bool
skip_digits(JsonInput *input)
{
	const char *from = input->pos;

	while (is_digit(input))
		input->pos++;
	return input->pos > from;
}

static bool
skip_number(JsonInput *input)
{
	(void) json_take_byte(input, '-');
	if (!json_take_byte(input, '0') && !skip_digits(input))
		return false;
	if (json_take_byte(input, '.') && !skip_digits(input))
		return false;
	if (!json_take_byte(input, 'e') && !json_take_byte(input, 'E'))
		return true;
	if (!json_take_byte(input, '+'))
		(void) json_take_byte(input, '-');
	return skip_digits(input);
}

/* ---- strings ---- */

/* The four hexadecimal digits after \u. */
static bool
read_unit(JsonInput *input, uint32_t *unit)
{
	*unit = 0;
	for (int i = 0; i < 4; i++)
	{
		static const char digits[] = "0123456789abcdefABCDEF";
		const char *digit = input->pos < input->end ? memchr(digits, *input->pos, sizeof(digits) - 1) : NULL;
		uint32_t value;

		if (digit == NULL)
			return false;
		value = (uint32_t) (digit - digits);
		*unit = *unit << 4 | (value < 16 ? value : value - 6);
		input->pos++;
	}
	return true;
}

/* The character that follows a backslash; 0 if it is malformed, NUL or a lone surrogate. */
static uint32_t
read_escape(JsonInput *input)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *found = input->pos < input->end ? memchr(names, *input->pos, sizeof(names) - 1) : NULL;
	uint32_t high, low;

	if (found != NULL)
	{
		input->pos++;
		return (unsigned char) values[found - names];
	}
	if (!json_take_byte(input, 'u') || !read_unit(input, &high))
		return 0;
	if (high < 0xD800 || high > 0xDFFF)
		return high;
	if (high > 0xDBFF || !json_take_byte(input, '\\') || !json_take_byte(input, 'u') || !read_unit(input, &low) ||
		low < 0xDC00 || low > 0xDFFF)
		return 0;
	return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

bool
json_read_string(JsonInput *input, char *to, size_t *len)
{
	char *from = to;

	if (!json_take(input, '"'))
		return false;
	for (;;)
	{
		const char *plain = input->pos, *pos = plain;
		uint32_t code;

		while (pos < input->end && *pos != '"' && *pos != '\\' && (unsigned char) *pos >= 0x20)
			pos++;
		input->pos = pos;
		if (to != NULL)
		{
			memcpy(to, plain, (size_t) (pos - plain));
			to += pos - plain;
		}
		if (json_take_byte(input, '"'))
			break;
		if (!json_take_byte(input, '\\') || (code = read_escape(input)) == 0)
			return false;
		if (to != NULL)
			to = utf8_put(to, code);
	}
	if (to != NULL)
		*len = (size_t) (to - from);
	return true;
}

/* ---- values ---- */

static bool skip_value(JsonInput *input, int depth);

/* The members of an array or object, from after its opening to after its closing bracket. */
static bool
skip_members(JsonInput *input, int depth, bool object)
{
	char close = object ? '}' : ']';

	if (depth > JSON_MAX_DEPTH)
		return false;
	if (json_take(input, close))
		return true;
	do
	{
		if (object && (!json_read_string(input, NULL, NULL) || !json_take(input, ':')))
			return false;
		if (!skip_value(input, depth))
			return false;
	} while (json_take(input, ','));
	return json_take(input, close);
}

static bool
skip_value(JsonInput *input, int depth)
{
	json_skip_blanks(input);
	if (input->pos == input->end)
		return false;
	switch (*input->pos)
	{
		case '"':
			return json_read_string(input, NULL, NULL);
		case '{':
		case '[':
			return skip_members(input, depth + 1, *input->pos++ == '{');
		case 'n':
			return json_take_word(input, "null");
		case 't':
			return json_take_word(input, "true");
		case 'f':
			return json_take_word(input, "false");
		default:
			return skip_number(input);
	}
}

bool
json_skip_value(JsonInput *input)
{
	return skip_value(input, 0);
}

bool
json_check(const char *text, size_t len)
{
	JsonInput input = {text, text + len};

	if (!skip_value(&input, 0))
		return false;
	json_skip_blanks(&input);
	return input.pos == input.end;
}

#define JSON_MAX_NAMES 100 /* of the outermost object: comparing them takes quadratic time */

/* Whether cJSON may build the tree: what it allocates for each value is a multiple of the value's text. */
static bool
is_within(const char *text, size_t len, size_t max_values, int max_depth)
{
	size_t values = 1;
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++)
	{
		bool opens = text[i] == '{' || text[i] == '[';

		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string)
		{
			depth += opens - (text[i] == '}' || text[i] == ']');
			values += opens || text[i] == ',';
			if (depth > max_depth || values > max_values)
				return false;
		}
	}
	return true;
}

static bool
has_distinct_names(const cJSON *object)
{
	int names = 0;

	for (const cJSON *item = object->child; item != NULL; item = item->next)
	{
		if (++names > JSON_MAX_NAMES)
			return false;
		for (const cJSON *other = item->next; other != NULL; other = other->next)
		{
			if (strcmp(item->string, other->string) == 0)
				return false;
		}
	}
	return true;
}

JsonError
json_parse_object(const char *text, size_t len, size_t max_values, int max_depth, cJSON **object)
{
	*object = NULL;
	if (!utf8_check(text, len, NULL) || !json_check(text, len))
		return JSON_INVALID;
	if (!is_within(text, len, max_values, max_depth))
		return JSON_TOO_MANY;
	errno = 0;
	*object = cJSON_ParseWithLength(text, len);
	if (*object == NULL)
		return errno == ENOMEM ? JSON_NO_MEMORY : JSON_INVALID;
	if (cJSON_IsObject(*object) && has_distinct_names(*object))
		return JSON_OK;
	cJSON_Delete(*object);
	*object = NULL;
	return JSON_INVALID;
}
