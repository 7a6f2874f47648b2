/*
 * buf.h - growable bytes, and JSON written into them.
 *
 * An allocation that fails ends the process (the supervisor starts it again): every caller's size is bounded by a
 * setting.
 */
#ifndef BUF_H
#define BUF_H

#include <stddef.h>
#include <stdint.h>

typedef struct Buf
{
	char *data;
	size_t len;
	size_t size;
} Buf;

extern void buf_free(Buf *buf);
/* Room for `more` bytes at data + len. */
extern void buf_reserve(Buf *buf, size_t more);
extern void buf_put(Buf *buf, const void *data, size_t len);
extern void buf_puts(Buf *buf, const char *text);
extern void buf_printf(Buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Hands the content over and leaves buf empty. */
extern Buf buf_take(Buf *buf);

/* Percent-encoded: all but RFC 3986's unreserved characters. */
extern void buf_puts_url(Buf *buf, const char *text);

/* A JSON string with its quotes: escapes what JSON requires and nothing else (one v1 client reads addresses undecoded).
 */
extern void buf_put_json(Buf *buf, const char *text, size_t len);
#define JSON_GROWTH 6 /* a byte of text becomes so many at most */
/* The same into memory that is there: JSON_GROWTH * len + 2 bytes; returns the end. A number takes 10 at most. */
extern char *json_write_string(char *to, const char *text, size_t len);
extern char *json_write_number(char *to, uint32_t value);
extern void buf_puts_json(Buf *buf, const char *text);
extern void buf_put_number(Buf *buf, int64_t value);

#endif
