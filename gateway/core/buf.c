/*
 * buf.c - growable bytes, and JSON written into them.
 */
#include "buf.h"

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
buf_reserve(Buf *buf, size_t more)
{
	size_t size = buf->size > 0 ? buf->size : 256;

	if (buf->size - buf->len >= more && buf->data != NULL)
		return;
	while (size - buf->len < more)
		size *= 2;
	buf->data = realloc(buf->data, size);
	if (buf->data == NULL)
		abort();
	buf->size = size;
}

void
buf_put(Buf *buf, const void *data, size_t len)
{
	if (len == 0)
		return;
	buf_reserve(buf, len);
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
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
	buf_reserve(buf, (size_t) len + 1);
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

/* What follows the backslash; 'u' for the long form; 0: not escaped. */
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

void
buf_put_json(Buf *buf, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const char *end = text + len;
	const char *plain = text;
	char *to;

	buf_reserve(buf, len * 6 + 2);
	to = buf->data + buf->len;
	*to++ = '"';
	for (const char *p = text; p < end; p++)
	{
		unsigned char byte = (unsigned char) *p;
		char escape = json_escape(byte);

		if (escape == 0)
			continue;
		memcpy(to, plain, (size_t) (p - plain));
		to += p - plain;
		*to++ = '\\';
		*to++ = escape;
		if (escape == 'u')
		{
			*to++ = '0';
			*to++ = '0';
			*to++ = hex[byte >> 4];
			*to++ = hex[byte & 15];
		}
		plain = p + 1;
	}
	memcpy(to, plain, (size_t) (end - plain));
	to += end - plain;
	*to++ = '"';
	buf->len = (size_t) (to - buf->data);
}

void
buf_puts_json(Buf *buf, const char *text)
{
	buf_put_json(buf, text, strlen(text));
}

void
buf_put_number(Buf *buf, int64_t value)
{
	char digits[24];
	char *p = digits + sizeof(digits);
	uint64_t left = value < 0 ? 0 - (uint64_t) value : (uint64_t) value;

	do
		*--p = (char) ('0' + left % 10);
	while ((left /= 10) > 0);
	if (value < 0)
		*--p = '-';
	buf_put(buf, p, (size_t) (digits + sizeof(digits) - p));
}
