/* utf8.h - strict UTF-8: validation and counting in one pass (Unicode 15, table 3-7). */
#ifndef SHEET_UTF8_H
#define SHEET_UTF8_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UTF8_HIGH_BITS 0x8080808080808080ULL
#define UTF8_LOW_BITS  0x0101010101010101ULL

/* True when the bytes are well-formed UTF-8 without NUL; *chars (may be NULL) gets the number of code points. */
extern bool utf8_check(const char *data, size_t len, size_t *chars);

/* Whether the bytes of a word are ASCII, and none is NUL. */
static inline bool
utf8_word_is_plain(uint64_t word)
{
	return (word & UTF8_HIGH_BITS) == 0 && ((word - UTF8_LOW_BITS) & ~word & UTF8_HIGH_BITS) == 0;
}

/* The first `len` bytes at p, of which 8 may be read, and plain ones for the rest. */
static inline uint64_t
utf8_masked_word(const char *p, size_t len)
{
	uint64_t rest = len >= 8 ? 0 : UINT64_MAX << (8 * len);
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return (le64toh(word) & ~rest) | (UTF8_LOW_BITS & rest);
}

/* Whether a text of 16 bytes at most is ASCII without NUL, which is well-formed; 16 bytes may be read. Without a branch
 * on its length. */
static inline bool
utf8_short_is_plain(const char *data, size_t len)
{
	size_t first = len < 8 ? len : 8;

	return utf8_word_is_plain(utf8_masked_word(data, first)) &&
		   utf8_word_is_plain(utf8_masked_word(data + 8, len - first));
}

#endif
