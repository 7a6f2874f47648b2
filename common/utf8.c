/*
 * utf8.c - strict UTF-8 validation and counting (Unicode 15, table 3-7: no surrogates, no overlong forms, nothing over
 * U+10FFFF).
 */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the sequence at p, 0 when it is not well-formed or NUL. */
static inline size_t
utf8_sequence(const uint8_t *p, size_t left)
{
	uint8_t low = 0x80;
	uint8_t high = 0xBF;
	size_t len;

	if (p[0] < 0x80)
		return p[0] != 0;
	if (p[0] < 0xC2 || p[0] > 0xF4)
		return 0;
	len = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
	if (left < len)
		return 0;
	if (p[0] == 0xE0)
		low = 0xA0;
	else if (p[0] == 0xED)
		high = 0x9F;
	else if (p[0] == 0xF0)
		low = 0x90;
	else if (p[0] == 0xF4)
		high = 0x8F;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
	{
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	return len;
}

/* Fewer than eight bytes, but one at least, as a word in which some of them stand more than once. */
static inline uint64_t
utf8_short_word(const uint8_t *p, size_t len)
{
	uint32_t first;
	uint32_t last;

	if (len < 4)
		return UTF8_LOW_BITS << 24 | (uint64_t) p[0] << 16 | (uint64_t) p[len / 2] << 8 | p[len - 1];
	memcpy(&first, p, 4);
	memcpy(&last, p + len - 4, 4);
	return (uint64_t) first << 32 | last;
}

bool
utf8_check(const char *data, size_t len, size_t *chars)
{
	const uint8_t *p = (const uint8_t *) data;
	const uint8_t *end = p + len;
	size_t count = 0;

	while (p < end)
	{
		size_t left = (size_t) (end - p);
		size_t step = left < 8 ? left : 8;
		uint64_t word;

		/* Eight bytes at a time, and what is left at the end, while they are plain. */
		if (left >= 8)
			memcpy(&word, p, 8);
		else
			word = utf8_short_word(p, left);
		if (utf8_word_is_plain(word))
		{
			p += step;
			count += step;
			continue;
		}
		step = utf8_sequence(p, left);
		if (step == 0)
			return false;
		p += step;
		count++;
	}
	if (chars != NULL)
		*chars = count;
	return true;
}

char *
utf8_put(char *to, uint32_t code)
{
	if (code < 0x80)
	{
		*to++ = (char) code;
		return to;
	}
	if (code < 0x800)
		*to++ = (char) (0xC0 | code >> 6);
	else
	{
		if (code < 0x10000)
			*to++ = (char) (0xE0 | code >> 12);
		else
		{
			*to++ = (char) (0xF0 | code >> 18);
			*to++ = (char) (0x80 | (code >> 12 & 0x3F));
		}
		*to++ = (char) (0x80 | (code >> 6 & 0x3F));
	}
	*to++ = (char) (0x80 | (code & 0x3F));
	return to;
}
