/*
 * base64.h - base64 without padding (RFC 4648), strict: one text for one value, so that nothing signed can be respelt.
 */
#ifndef BASE64_H
#define BASE64_H

#include <stdbool.h>
#include <stddef.h>

typedef enum Base64Alphabet
{
	BASE64_STANDARD, /* + and / */
	BASE64_URL,		 /* - and _ */
} Base64Alphabet;

/* Characters that len bytes take, without a NUL. */
#define BASE64_LENGTH(len) (((len) *4 + 2) / 3)

/* Writes the text and a NUL; returns its length, or 0 when size is too small (or len is 0). */
extern size_t base64_encode(Base64Alphabet alphabet, const void *data, size_t len, char *to, size_t size);
/*
 * False for any character outside the alphabet (padding and blanks too), an impossible length, unused bits that are
 * not zero, or when size is too small.
 */
extern bool base64_decode(Base64Alphabet alphabet, const char *text, size_t len, void *to, size_t size,
						  size_t *decoded);

#endif
