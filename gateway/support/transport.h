/*
 * transport.h - the bytes of a connection: a socket, or TLS on it. Nothing here blocks.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct ssl_st SSL;

typedef struct Transport
{
	int fd;
	SSL *ssl;		  /* NULL: plain */
	bool wants_write; /* a read (or the handshake) goes on when the socket takes bytes */
	bool wants_read;  /* a write goes on when there is something to read */
	bool ended;		  /* the peer has ended its side */
} Transport;

#define TRANSPORT_END	 0	  /* the peer sends nothing more */
#define TRANSPORT_AGAIN	 (-1) /* nothing just now */
#define TRANSPORT_BROKEN (-2)

/* Bytes read or written, or one of the above. */
extern ssize_t transport_read(Transport *transport, void *to, size_t size);
extern ssize_t transport_write(Transport *transport, const void *from, size_t len);
/* The same for bytes in several places; of plain transports. */
extern ssize_t transport_write_parts(Transport *transport, const struct iovec *parts, size_t count);
/* Bytes that were written and that the peer's system has not acknowledged. */
extern int transport_queued(const Transport *transport);
/* 1 when the TLS handshake is done, TRANSPORT_AGAIN, or TRANSPORT_BROKEN. */
extern int transport_handshake(Transport *transport);
/* Are there bytes that the socket does not tell of any more? */
extern bool transport_has_more(const Transport *transport);
/* Tells the peer that nothing more comes. */
extern void transport_end(Transport *transport);
extern void transport_close(Transport *transport);

#endif
