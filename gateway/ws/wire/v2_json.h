/*
 * v2_json.h - JSON as it stands in a message, read strictly (RFC 8259) and without a tree; see v2_json.c. Pure C.
 */
#ifndef V2_JSON_H
#define V2_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct JsonInput
{
	const char *pos;
	const char *end;
} JsonInput;

extern void json_skip_blanks(JsonInput *input);
/* Blanks, then this character; false leaves the input where it was but for the blanks. */
extern bool json_take(JsonInput *input, char character);
/* A whole number from 0 to V2_MAX_NUMBER. */
extern bool json_read_number(JsonInput *input, uint64_t *value);
/* A string, unescaped to `to`, which has room for the bytes that are left; NUL and lone surrogates are refused. */
extern bool json_read_string(JsonInput *input, char *to, size_t *len);
/* The word null. */
extern bool json_take_null(JsonInput *input);
/* Steps over an object, which json_check() has to look at: only its brackets and strings are. */
extern bool json_find_object(JsonInput *input);

#endif
