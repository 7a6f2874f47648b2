/*
 * base64.c - strict base64 without padding (RFC 4648): each value has exactly one text. See base64.h.
 */
#include "auth/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[][65] = {
	[BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

size_t
base64_encode(Base64Alphabet alphabet, const void *data, size_t len, char *to, size_t size)
{
	const uint8_t *bytes = data;
	uint32_t bits = 0;
	unsigned pending = 0;
	size_t length = 0;

	if (size < BASE64_LENGTH(len) + 1)
		return 0;
	for (size_t i = 0; i < len; i++)
	{
		bits = bits << 8 | bytes[i];
		for (pending += 8; pending >= 6; pending -= 6)
			to[length++] = digits[alphabet][bits >> (pending - 6) & 63];
	}
	if (pending > 0)
		to[length++] = digits[alphabet][bits << (6 - pending) & 63];
	to[length] = '\0';
	return length;
}

bool
base64_decode(Base64Alphabet alphabet, const char *text, size_t len, void *to, size_t size, size_t *decoded)
{
	uint8_t *bytes = to;
	uint32_t bits = 0;
	unsigned pending = 0;

	*decoded = 0;
	if (len % 4 == 1 || len / 4 * 3 + len % 4 * 3 / 4 > size)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		const char *digit = memchr(digits[alphabet], text[i], 64);

		if (digit == NULL)
			return false;
		bits = bits << 6 | (uint32_t) (digit - digits[alphabet]);
		pending += 6;
		if (pending >= 8)
		{
			pending -= 8;
			bytes[(*decoded)++] = (uint8_t) (bits >> pending);
		}
	}
	return (bits & ((1u << pending) - 1)) == 0;
}
