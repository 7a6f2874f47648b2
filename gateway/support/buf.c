/*
 * buf.c - growable bytes, and JSON written into them.
 */
#include "support/buf.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_free(Buf *buf)
{
	free(buf->data);
	*buf = (Buf){NULL, 0, 0};
}

void
buf_fail(Buf *buf)
{
	free(buf->data);
	*buf = (Buf){NULL, 0, BUF_FAILED};
}

bool
buf_try_reserve(Buf *buf, size_t more)
{
	size_t size = buf->size > 0 ? buf->size : 256;
	char *data;

	if (buf->data != NULL && buf->size - buf->len >= more)
		return true;
	if (buf_failed(buf) || more > BUF_MAX - buf->len)
		return false;
	while (size - buf->len < more)
		size *= 2;
	data = realloc(buf->data, size);
	if (data == NULL)
		return false;
	buf->data = data;
	buf->size = size;
	return true;
}

bool
buf_reserve(Buf *buf, size_t more)
{
	if (buf_try_reserve(buf, more))
		return true;
	buf_fail(buf);
	return false;
}

void
buf_put(Buf *buf, const void *data, size_t len)
{
	if (len == 0 || !buf_reserve(buf, len))
		return;
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
}

void
buf_put_buf(Buf *buf, const Buf *from)
{
	if (buf_failed(from))
		buf_fail(buf);
	else
		buf_put(buf, from->data, from->len);
}

void
buf_puts(Buf *buf, const char *text)
{
	buf_put(buf, text, strlen(text));
}

void
buf_printf(Buf *buf, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (!buf_reserve(buf, (size_t) len + 1))
		return;
	va_start(args, format);
	vsnprintf(buf->data + buf->len, (size_t) len + 1, format, args);
	va_end(args);
	buf->len += (size_t) len;
}

Buf
buf_take(Buf *buf)
{
	Buf taken = *buf;

	*buf = (Buf){NULL, 0, 0};
	return taken;
}

/* Returns the character after the backslash ('u': the long form), or 0 if the byte is not escaped. */
static inline char
json_escape(unsigned char byte)
{
	switch (byte)
	{
		case '"':
		case '\\':
			return (char) byte;
		case '\n':
			return 'n';
		case '\r':
			return 'r';
		case '\t':
			return 't';
		case '\b':
			return 'b';
		case '\f':
			return 'f';
		default:
			return byte < 0x20 ? 'u' : 0;
	}
}

/* Whether JSON escapes any of eight bytes. Exact up to the first such byte. */
static inline bool
json_word_has_escape(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t quote = word ^ (ones * '"');
	uint64_t backslash = word ^ (ones * '\\');

	return ((((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) &
			(ones * 0x80)) != 0;
}

char *
json_write_string(char *to, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const char *end = text + len;

	*to++ = '"';
	while (text < end)
	{
		unsigned char byte;
		char escape;

		/* Copies eight bytes at a time while none needs escaping. */
		if (end - text >= 8)
		{
			uint64_t word;

			memcpy(&word, text, 8);
			memcpy(to, &word, 8);
			if (!json_word_has_escape(word))
			{
				text += 8;
				to += 8;
				continue;
			}
		}
		byte = (unsigned char) *text++;
		escape = json_escape(byte);
		if (escape == 0)
		{
			*to++ = (char) byte;
			continue;
		}
		*to++ = '\\';
		*to++ = escape;
		if (escape == 'u')
		{
			*to++ = '0';
			*to++ = '0';
			*to++ = hex[byte >> 4];
			*to++ = hex[byte & 15];
		}
	}
	*to++ = '"';
	return to;
}

void
buf_put_json(Buf *buf, const char *text, size_t len)
{
	if (buf_reserve(buf, len * JSON_GROWTH + 2))
		buf->len = (size_t) (json_write_string(buf->data + buf->len, text, len) - buf->data);
}

void
buf_puts_json(Buf *buf, const char *text)
{
	buf_put_json(buf, text, strlen(text));
}

void
buf_puts_url(Buf *buf, const char *text)
{
	for (const unsigned char *c = (const unsigned char *) text; *c != '\0'; c++)
		buf_printf(buf, *c < 128 && (isalnum(*c) || strchr("-._~", *c) != NULL) ? "%c" : "%%%02X", *c);
}

void
buf_put_html(Buf *buf, const char *text, size_t len)
{
	const char *from = text, *end = text + len;

	for (const char *p = text; p < end; p++)
	{
		const char *name = *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : *p == '"' ? "&quot;" : NULL;

		if (name == NULL)
			continue;
		buf_put(buf, from, (size_t) (p - from));
		buf_puts(buf, name);
		from = p + 1;
	}
	buf_put(buf, from, (size_t) (end - from));
}

/* Writes the digits in front of `end`. Returns the first. */
static char *
write_digits(char *end, uint64_t value)
{
	do
		*--end = (char) ('0' + value % 10);
	while ((value /= 10) > 0);
	return end;
}

char *
json_write_number(char *to, uint32_t value)
{
	char digits[12];
	char *end = digits + sizeof(digits), *first = write_digits(end, value);

	memcpy(to, first, (size_t) (end - first));
	return to + (end - first);
}

void
buf_put_number(Buf *buf, int64_t value)
{
	char digits[24];
	char *end = digits + sizeof(digits);
	char *first = write_digits(end, value < 0 ? 0 - (uint64_t) value : (uint64_t) value);

	if (value < 0)
		*--first = '-';
	buf_put(buf, first, (size_t) (end - first));
}
