/*
 * api_values.h - JSON values as contents of cells; see api_values.c.
 */
#ifndef API_VALUES_H
#define API_VALUES_H

#include "common/edit_codec.h"
#include "support/buf.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/*
 * The content for a value: a string, a number, true, false, or null for an empty cell. raw: a string is a text,
 * whatever it looks like; otherwise it is the content itself. scratch: holds the content until the next call. Returns
 * false for other values, and numbers that no double holds.
 */
extern bool value_content(const cJSON *value, bool raw, Buf *scratch, EditText *content);

#endif
