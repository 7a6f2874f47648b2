/*
 * utf8.c - strict UTF-8 validation and counting (Unicode 15, table 3-7: no surrogates, no overlong forms, nothing over
 * U+10FFFF).
 */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

#define UTF8_HIGH_BITS 0x8080808080808080ULL
#define UTF8_LOW_BITS  0x0101010101010101ULL

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

bool
utf8_check(const char *data, size_t len, size_t *chars)
{
	const uint8_t *p = (const uint8_t *) data;
	const uint8_t *end = p + len;
	size_t count = 0;

	while (p < end)
	{
		uint64_t word;
		size_t step;

		/* Eight bytes at a time while they are ASCII and none is NUL. */
		if (end - p >= 8)
		{
			memcpy(&word, p, 8);
			if ((word & UTF8_HIGH_BITS) == 0 && ((word - UTF8_LOW_BITS) & ~word & UTF8_HIGH_BITS) == 0)
			{
				p += 8;
				count += 8;
				continue;
			}
		}
		step = utf8_sequence(p, (size_t) (end - p));
		if (step == 0)
			return false;
		p += step;
		count++;
	}
	if (chars != NULL)
		*chars = count;
	return true;
}
