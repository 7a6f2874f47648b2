/*
 * property_value.c - keys and values of properties, as texts: what a key may be, how large a JSON value may be, and
 * which values the keys of the page have.
 */
#include "common/properties.h"

#include <stdlib.h>
#include <string.h>

bool
property_is_key(EditText key)
{
	if (key.len == 0 || key.len > PROPERTY_MAX_KEY)
		return false;
	for (uint32_t i = 0; i < key.len; i++)
	{
		char c = key.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			  (c != '\0' && strchr("_-.", c) != NULL)))
			return false;
	}
	return true;
}

/* ---- how large a value may be ---- */

/* The largest double is 1.7976931348623157e308. */
#define DOUBLE_DIGITS 17
#define DOUBLE_MAX	  UINT64_C(17976931348623157)

/* A number of JSON as it is read: whether it fits into a double depends on its first digits and the power of the first
 * one. */
typedef struct PropertyNumber
{
	uint64_t digits; /* the first DOUBLE_DIGITS of them, without leading zeros */
	uint32_t count;	 /* of them; 0: all are zero so far */
	int64_t power;	 /* of the first digit */
	uint32_t exponent;
	bool fraction, in_exponent; /* what is being read */
	bool negative;				/* the exponent is */
} PropertyNumber;

static void
number_add_digit(PropertyNumber *number, uint32_t digit)
{
	bool leading = number->count == 0;

	if (number->in_exponent)
	{
		number->exponent = number->exponent * 10 + digit;
		return;
	}
	if (leading ? number->fraction : !number->fraction)
		number->power += leading ? -1 : 1;
	if ((leading && digit == 0) || number->count == DOUBLE_DIGITS)
		return;
	number->digits = number->digits * 10 + digit;
	number->count++;
}

/* Reads the next character. Returns false if the exponent is too large. */
static bool
number_add(PropertyNumber *number, char c)
{
	if (c == 'e' || c == 'E')
		number->in_exponent = true;
	else if (c == '.')
		number->fraction = true;
	else if (c == '-' && number->in_exponent)
		number->negative = true;
	else if (c >= '0' && c <= '9')
		number_add_digit(number, (uint32_t) (c - '0'));
	return number->exponent <= PROPERTY_MAX_POWER;
}

static bool
number_is_double(const PropertyNumber *number)
{
	int64_t power = number->power + (number->negative ? -(int64_t) number->exponent : (int64_t) number->exponent);
	uint64_t digits = number->digits;

	for (uint32_t i = number->count; i < DOUBLE_DIGITS; i++)
		digits *= 10;
	return number->count == 0 || power < PROPERTY_MAX_POWER || (power == PROPERTY_MAX_POWER && digits <= DOUBLE_MAX);
}

bool
property_value_is_bounded(EditText value, bool *deep)
{
	PropertyNumber number = {0};
	uint32_t depth = 0;
	bool quoted = false, in_number = false;

	*deep = false;
	for (uint32_t i = 0; i < value.len; i++)
	{
		char c = value.data[i];

		if (quoted)
		{
			i += c == '\\';
			quoted = c != '"';
			continue;
		}
		if (!in_number && ((c >= '0' && c <= '9') || c == '-'))
		{
			in_number = true;
			number = (PropertyNumber){0};
		}
		if (in_number && c != '\0' && strchr("0123456789+-.eE", c) != NULL)
		{
			if (!number_add(&number, c))
				return false;
			continue;
		}
		if (in_number && !number_is_double(&number))
			return false;
		in_number = false;
		quoted = c == '"';
		depth += c == '[' || c == '{';
		depth -= (c == ']' || c == '}') && depth > 0;
		*deep = depth > PROPERTY_MAX_DEPTH;
		if (*deep)
			return false;
	}
	return !in_number || number_is_double(&number);
}

/* ---- the keys of the page ---- */

static void
value_skip_blanks(EditText *text)
{
	while (text->len > 0 && memchr(" \t\n\r", text->data[0], 4) != NULL)
		*text = (EditText){text->data + 1, text->len - 1};
}

/* Takes the word, and the blanks around it. */
static bool
value_take(EditText *text, const char *word)
{
	uint32_t len = (uint32_t) strlen(word);

	value_skip_blanks(text);
	if (text->len < len || memcmp(text->data, word, len) != 0)
		return false;
	*text = (EditText){text->data + len, text->len - len};
	value_skip_blanks(text);
	return true;
}

static bool
value_is(EditText text, const char *word)
{
	return value_take(&text, word) && text.len == 0;
}

#define VALUE_NUMBER_MAX 64 /* bytes of a number of pixels, rows or columns */

/* Takes a number from 0 to `most`. */
static bool
value_take_number(EditText *text, double most, double *number)
{
	char digits[VALUE_NUMBER_MAX + 1];
	uint32_t len = 0;
	char *end;

	value_skip_blanks(text);
	while (len < text->len && len < VALUE_NUMBER_MAX && text->data[len] != '\0' &&
		   strchr("0123456789+-.eE", text->data[len]) != NULL)
	{
		digits[len] = text->data[len];
		len++;
	}
	digits[len] = '\0';
	*number = strtod(digits, &end);
	*text = (EditText){text->data + len, text->len - len};
	value_skip_blanks(text);
	return len > 0 && *end == '\0' && *number >= 0 && *number <= most;
}

static bool
value_is_number(EditText text, double most)
{
	double number;

	return value_take_number(&text, most, &number) && text.len == 0;
}

/* {"rows":n,"cols":n}, or one of them, or none. */
static bool
value_is_freeze(EditText text)
{
	double number;

	if (!value_take(&text, "{"))
		return false;
	if (value_is(text, "}"))
		return true;
	do
	{
		if ((!value_take(&text, "\"rows\"") && !value_take(&text, "\"cols\"")) || !value_take(&text, ":") ||
			!value_take_number(&text, PROPERTY_MAX_FROZEN, &number) || number != (double) (uint32_t) number)
			return false;
	} while (value_take(&text, ","));
	return value_is(text, "}");
}

/* The name of a time zone as a JSON text: letters, digits, and what stands between them ("Europe/Berlin", "Etc/GMT+3").
 * Which names there are depends on the tz database of each reader. */
static bool
value_is_zone(EditText text)
{
	uint32_t len = 0;

	if (!value_take(&text, "\""))
		return false;
	while (len < text.len && len <= PROPERTY_MAX_ZONE)
	{
		char c = text.data[len];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (len > 0 && c != '\0' && strchr("0123456789/_+-", c) != NULL)))
			break;
		len++;
	}
	text = (EditText){text.data + len, text.len - len};
	return len > 0 && len <= PROPERTY_MAX_ZONE && value_is(text, "\"");
}

static bool
key_is(EditText key, const char *name)
{
	return key.len == strlen(name) && memcmp(key.data, name, key.len) == 0;
}

const char *
property_wanted_value(const Property *property)
{
	EditText key = property->key, value = property->value;

	if ((key_is(key, "width") || key_is(key, "height")) && !value_is_number(value, PROPERTY_MAX_PIXELS))
		return "a number of pixels from 0 to " TEXT_OF(PROPERTY_MAX_PIXELS);
	if (key_is(key, "hidden") && !value_is(value, "true") && !value_is(value, "false"))
		return "true or false";
	if (key_is(key, "merge") && !value_is(value, "true"))
		return "true";
	if (key_is(key, "freeze") && !value_is_freeze(value))
		return "{\"rows\": n, \"cols\": n} with whole numbers from 0 to " TEXT_OF(PROPERTY_MAX_FROZEN);
	if (key_is(key, "timezone") && !value_is_zone(value))
		return "the name of a time zone, of at most " TEXT_OF(PROPERTY_MAX_ZONE) " letters, digits and /_+-";
	return NULL;
}

bool
property_value_is_null(EditText value)
{
	return value_is(value, "null");
}
