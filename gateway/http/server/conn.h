/*
 * conn.h - a connection that speaks HTTP: heads and bodies in, answers out, one request after the other; see conn.c.
 *
 * The layers above are called through a ConnHandler: a connection knows neither requests nor routes.
 */
#ifndef CONN_H
#define CONN_H

#include "http/server/chunked.h"
#include "http/server/peers.h"
#include "support/buf.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

struct Request;
typedef struct Conn Conn;

/* What follows the head of a request. */
typedef enum ConnNext
{
	CONN_NEXT_ANSWER,
	CONN_NEXT_BODY,
	CONN_NEXT_CONTINUE /* a body, for which the client waits for 100 Continue */
} ConnNext;

typedef struct ConnHandler
{
	/* admin: the connection was accepted at admin-address. NULL: out of memory. */
	struct Request *(*create)(Conn *conn, bool admin);
	/* The head of the request. Sets how its body is framed, if one follows. */
	ConnNext (*begin)(struct Request *request, const char *head, size_t len, Chunked *body);
	void (*body)(struct Request *request, const char *data, size_t len);
	void (*body_end)(struct Request *request);
	/* Answers an error that the connection has found. No further bytes of the request are read. */
	void (*refuse)(struct Request *request, int status, const char *reason);
	/* After conn_answer(): appends the next piece of the answer, or nothing if it has to be fetched first. True: that
	 * was the last piece. rest: bytes to be sent after it, which stay where they are until gone(); NULL: all is
	 * appended. */
	bool (*fill)(struct Request *request, Buf *to, struct iovec *rest);
	/* Takes over transport and place of a connection that ends here. read: bytes that followed the head. */
	void (*upgrade)(struct Request *request, Transport *transport, Place *place, char *read, size_t len);
	/* The answer is sent, or the connection has ended. */
	void (*gone)(struct Request *request);
} ConnHandler;

/* Handler of all connections; set before the first one. */
extern const ConnHandler *conn_handler;

/* Where a connection was accepted. */
typedef struct ConnDoor
{
	bool admin; /* at admin-address: operators' routes only */
	bool tls;
} ConnDoor;

/* Takes over an accepted socket and its place. */
extern void conn_open(int fd, Place *place, ConnDoor door);
/* Ends connections that take too long. Called four times a second. */
extern void conn_tick_all(void);

/* ---- for requests: all of these take effect in a later iteration of the loop ---- */
extern Place *conn_place(const Conn *conn);
static inline const char *
conn_address(const Conn *conn)
{
	return place_address(conn_place(conn));
}
/* The answer begins. close: the connection ends after it. */
extern void conn_answer(Conn *conn, bool close);
/* There is a further piece of the answer. */
extern void conn_wake(Conn *conn);
/* Stops or resumes reading the body. */
extern void conn_pause(Conn *conn, bool pause);
/* Hands the connection over by upgrade(); the request has no answer. */
extern void conn_upgrade(Conn *conn);
/* Ends the connection in whatever state it is. */
extern void conn_abort(void *conn);

#endif
