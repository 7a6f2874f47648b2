/* utf8.h - strict UTF-8: validation and counting in one pass (Unicode 15, table 3-7). */
#ifndef SHEET_UTF8_H
#define SHEET_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* True when the bytes are well-formed UTF-8 without NUL; *chars (may be NULL) gets the number of code points. */
extern bool utf8_check(const char *data, size_t len, size_t *chars);

#endif
