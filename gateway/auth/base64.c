/*
 * base64.c - strict base64 without padding (see base64.h). Used by tokens (URL alphabet) and stored passwords.
 */
#include "auth/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static char
digit_of(Base64Alphabet alphabet, unsigned value)
{
	if (value < 62)
		return digits[value];
	if (alphabet == BASE64_URL)
		return value == 62 ? '-' : '_';
	return value == 62 ? '+' : '/';
}

/* 0..63, or -1 */
static int
value_of(Base64Alphabet alphabet, char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	if (digit == (alphabet == BASE64_URL ? '-' : '+'))
		return 62;
	if (digit == (alphabet == BASE64_URL ? '_' : '/'))
		return 63;
	return -1;
}

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
			to[length++] = digit_of(alphabet, bits >> (pending - 6) & 63);
	}
	if (pending > 0)
		to[length++] = digit_of(alphabet, bits << (6 - pending) & 63);
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
		int value = value_of(alphabet, text[i]);

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t) value;
		pending += 6;
		if (pending >= 8)
		{
			pending -= 8;
			bytes[(*decoded)++] = (uint8_t) (bits >> pending);
		}
	}
	return (bits & ((1u << pending) - 1)) == 0;
}
