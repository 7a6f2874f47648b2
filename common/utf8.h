/* utf8.h - strict UTF-8: validation and counting in one pass (Unicode 15, table 3-7). */
#ifndef SHEET_UTF8_H
#define SHEET_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UTF8_HIGH_BITS 0x8080808080808080ULL
#define UTF8_LOW_BITS  0x0101010101010101ULL

/* True when the bytes are well-formed UTF-8 without NUL; *chars (may be NULL) gets the number of code points. */
extern bool utf8_check(const char *data, size_t len, size_t *chars);

/* Writes a code point, of 1 to 4 bytes. Returns what is behind it. */
extern char *utf8_put(char *to, uint32_t code);

/* Whether the bytes of a word are ASCII, and none is NUL. */
static inline bool
utf8_word_is_plain(uint64_t word)
{
	return (word & UTF8_HIGH_BITS) == 0 && ((word - UTF8_LOW_BITS) & ~word & UTF8_HIGH_BITS) == 0;
}

#endif
