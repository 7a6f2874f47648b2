/*
 * value.h - the values that contents of cells stand for; see value.c. Pure C, no allocation.
 */
#ifndef COMMON_VALUE_H
#define COMMON_VALUE_H

#include <stdbool.h>

#define VALUE_BYTES_MAX 40 /* of a number as a content, with the final NUL */

/* Does the text alone, as a content, mean something else: a number, a boolean, a date, a time or a formula; or another
 * text, as with an apostrophe? */
extern bool value_is_no_text(const char *text);
/* The content for a number, which must be finite. */
extern void value_put_number(char to[VALUE_BYTES_MAX], double number);

#endif
