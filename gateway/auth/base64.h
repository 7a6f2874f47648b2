/*
 * base64.h - strict base64 without padding (RFC 4648): each value has exactly one text, so that a signed text cannot be
 * respelt.
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

/* Number of characters for len bytes, without a NUL. */
#define BASE64_LENGTH(len) (((len) *4 + 2) / 3)

/* Writes the text and a NUL. Returns its length, or 0 if size is too small or len is 0. */
extern size_t base64_encode(Base64Alphabet alphabet, const void *data, size_t len, char *to, size_t size);
/*
 * Returns false for a character outside the alphabet (padding and blanks included), an impossible length, unused bits
 * that are not zero, or if size is too small.
 */
extern bool base64_decode(Base64Alphabet alphabet, const char *text, size_t len, void *to, size_t size,
						  size_t *decoded);

#endif
