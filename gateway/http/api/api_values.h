/*
 * api_values.h - JSON values as contents of cells; see api_values.c.
 */
#ifndef API_VALUES_H
#define API_VALUES_H

#include "common/edit_codec.h"
#include "support/buf.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

#define VALUE_NUMBER_MAX 40 /* bytes of a number, with the final NUL */

/*
 * The content for a value: a string, a number, true, false, or null for an empty cell. raw: a string is a text,
 * whatever it looks like; otherwise it is the content itself. scratch: holds the content until the next call. Returns
 * false for other values, and numbers that no double holds.
 */
extern bool value_content(const cJSON *value, bool raw, Buf *scratch, EditText *content);
/* Does the text alone, as a content, mean something else: a number, a boolean, a date, a time or a formula? */
extern bool value_is_no_text(const char *text);
/* The content for a number, which must be finite. */
extern void value_put_number(char to[VALUE_NUMBER_MAX], double number);

#endif
