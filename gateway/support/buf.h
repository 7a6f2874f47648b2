/*
 * buf.h - growable bytes, and JSON written into them.
 *
 * A buffer that cannot grow fails: it loses its content and accepts none until it is freed. Only code that uses the
 * content must check buf_failed().
 */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Buf
{
	char *data;
	size_t len;
	size_t size;
} Buf;

#define BUF_FAILED 1			  /* size of a failed buffer */
#define BUF_MAX	   (SIZE_MAX / 4) /* maximum size */

extern void buf_free(Buf *buf);
extern void buf_fail(Buf *buf);
static inline bool
buf_failed(const Buf *buf)
{
	return buf->data == NULL && buf->size == BUF_FAILED;
}
/* Makes space for `more` bytes at data + len. If false, the buffer has failed. */
extern bool buf_reserve(Buf *buf, size_t more);
/* The same, but if false, the buffer keeps its content. */
extern bool buf_try_reserve(Buf *buf, size_t more);
extern void buf_put(Buf *buf, const void *data, size_t len);
/* Appends from's content. Fails if `from` has failed. */
extern void buf_put_buf(Buf *buf, const Buf *from);
extern void buf_puts(Buf *buf, const char *text);
extern void buf_printf(Buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the content, which the caller then owns, and leaves buf empty. */
extern Buf buf_take(Buf *buf);

/* Percent-encodes all characters but RFC 3986's unreserved ones. */
extern void buf_puts_url(Buf *buf, const char *text);
/* Escapes what is markup in HTML, also in attributes with double quotes. */
extern void buf_put_html(Buf *buf, const char *text, size_t len);

/* Appends a JSON string with its quotes. Escapes only what JSON requires: one v1 client does not decode addresses. */
extern void buf_put_json(Buf *buf, const char *text, size_t len);
#define JSON_GROWTH 6 /* maximum bytes for a byte of text */
/* The same to memory with space for JSON_GROWTH * len + 2 bytes, or 10 for a number. Return the end. */
extern char *json_write_string(char *to, const char *text, size_t len);
extern char *json_write_number(char *to, uint32_t value);
extern void buf_puts_json(Buf *buf, const char *text);
extern void buf_put_number(Buf *buf, int64_t value);

#endif
