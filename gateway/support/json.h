/*
 * json.h - JSON as RFC 8259 defines it, and nothing else. cJSON accepts more (control characters in strings, numbers
 * such as 01), and other clients' parsers refuse what it accepts. All functions expect UTF-8 that the caller has
 * checked, and refuse an escaped NUL and a lone surrogate.
 */
#ifndef JSON_H
#define JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_MAX_DEPTH	256						  /* nested arrays and objects */
#define JSON_MAX_NUMBER ((UINT64_C(1) << 53) - 1) /* the largest integer that browsers represent exactly */

/* The bytes that remain to be read. */
typedef struct JsonInput
{
	const char *pos;
	const char *end;
} JsonInput;

extern void json_skip_blanks(JsonInput *input);

/* Reads this character, which must be the next one. */
static inline bool
json_take_byte(JsonInput *input, char byte)
{
	if (input->pos == input->end || *input->pos != byte)
		return false;
	input->pos++;
	return true;
}

/* Reads blanks and then this character. If false, only blanks have been read. */
static inline bool
json_take(JsonInput *input, char character)
{
	if (json_take_byte(input, character)) /* most clients write no blanks */
		return true;
	json_skip_blanks(input);
	return json_take_byte(input, character);
}

/* Reads blanks and then this word: null, true or false. */
extern bool json_take_word(JsonInput *input, const char *word);
/* Reads an integer from 0 to JSON_MAX_NUMBER that has no sign, fraction or exponent. */
extern bool json_read_number(JsonInput *input, uint64_t *value);
/* Reads a string and writes it unescaped, without a terminator, to `to`, which must have room for the rest of the
 * input. NULL: only checks the string. */
extern bool json_read_string(JsonInput *input, char *to, size_t *len);
/* Reads any value, with the blanks before it. */
extern bool json_skip_value(JsonInput *input);
/* Whether text[0..len) is one value, with blanks around it. */
extern bool json_check(const char *text, size_t len);

/* The outcome of json_parse_object(). */
typedef enum JsonError
{
	JSON_OK,
	JSON_INVALID,
	JSON_TOO_MANY, /* values, or nested too deeply */
	JSON_NO_MEMORY
} JsonError;

/*
 * The object that text[0..len) is, in UTF-8, which is checked. Refuses more than max_values values in all, nesting
 * deeper than max_depth, and more than 100 or equal names in the outermost object. The caller frees the object.
 */
extern JsonError json_parse_object(const char *text, size_t len, size_t max_values, int max_depth, cJSON **object);

#endif
