/*
 * stream.h - the bytes of a connection: a socket, or TLS on it. Nothing here blocks.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct ssl_st SSL;

typedef struct Stream
{
	int fd;
	SSL *ssl;		  /* NULL: plain */
	bool wants_write; /* a read (or the handshake) goes on when the socket takes bytes */
	bool wants_read;  /* a write goes on when there is something to read */
	bool ended;		  /* the peer has ended its side */
} Stream;

#define STREAM_END	  0	   /* the peer sends nothing more */
#define STREAM_AGAIN  (-1) /* nothing just now */
#define STREAM_BROKEN (-2)

/* Bytes read or written, or one of the above. */
extern ssize_t stream_read(Stream *stream, void *to, size_t size);
extern ssize_t stream_write(Stream *stream, const void *from, size_t len);
/* The same for bytes in several places; of plain streams. */
extern ssize_t stream_write_parts(Stream *stream, const struct iovec *parts, size_t count);
/* Bytes that were written and that the peer's system has not acknowledged. */
extern int stream_queued(const Stream *stream);
/* 1 when the TLS handshake is done, STREAM_AGAIN, or STREAM_BROKEN. */
extern int stream_handshake(Stream *stream);
/* Are there bytes that the socket does not tell of any more? */
extern bool stream_has_more(const Stream *stream);
/* Tells the peer that nothing more comes. */
extern void stream_end(Stream *stream);
extern void stream_close(Stream *stream);

#endif
