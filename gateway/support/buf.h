/*
 * buf.h - growable bytes, and JSON written into them.
 *
 * A buffer that cannot grow fails: it has no content any more, and takes none, until it is freed. Whoever hands its
 * content to somebody looks at that, and nobody else need do so.
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

#define BUF_FAILED 1			  /* size of one that has failed */
#define BUF_MAX	   (SIZE_MAX / 4) /* bytes of one */

extern void buf_free(Buf *buf);
extern void buf_fail(Buf *buf);
static inline bool
buf_failed(const Buf *buf)
{
	return buf->data == NULL && buf->size == BUF_FAILED;
}
/* Room for `more` bytes at data + len. False: it has failed, and there is none. */
extern bool buf_reserve(Buf *buf, size_t more);
/* The same, and the content stays when there is no room. */
extern bool buf_try_reserve(Buf *buf, size_t more);
extern void buf_put(Buf *buf, const void *data, size_t len);
/* Appends from's content; fails if that has failed. */
extern void buf_put_buf(Buf *buf, const Buf *from);
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
