/*
 * socket.h - one WebSocket: its bytes, plain or TLS, its frames and its pings; see socket.c.
 */
#ifndef SOCKET_H
#define SOCKET_H

#include "transport/transport.h"
#include "ws/wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Socket Socket;

/* What the socket calls on its user. */
typedef struct SocketEvents
{
	void (*receive)(void *user, const FramePiece *piece); /* a piece of a message */
	void (*control)(void *user, const FramePiece *piece); /* a ping, a pong, or the peer's close frame */
	void (*invalid)(void *user, const char *reason);	  /* the peer violates the protocol; nothing more is read */
	bool (*writable)(void *user);						  /* the socket takes bytes; false ends the connection */
	void (*ping)(void *user);							  /* a ping is due */
	void (*gone)(void *user);							  /* the connection has ended */
} SocketEvents;

/* What the socket calls on its connection. */
typedef struct SocketOwner
{
	void (*signed_in)(void *arg, int64_t uid); /* a valid token of this account was shown */
	void (*gone)(void *arg);				   /* the connection has ended */
} SocketOwner;

/* Becomes the user of the transport. Returns NULL, without a call of `gone`, when there is no memory; the transport
 * ends then. */
extern Socket *socket_open(Transport *transport, const SocketOwner *owner, void *arg);
extern void socket_sign_in(Socket *socket, int64_t uid);
/* Must follow socket_open() before the loop runs; otherwise call socket_abort(). */
extern void socket_set_user(Socket *socket, const SocketEvents *events, void *user);
/* Handles bytes that were read already. They are unmasked in place. */
extern void socket_take(Socket *socket, char *bytes, size_t len);
/* Returns the number of bytes taken, 0 to len; give the others again when writable() is called. Returns -1 when the
 * connection is broken; its next event ends it. */
extern ssize_t socket_write(Socket *socket, const void *bytes, size_t len);
/* Takes all bytes. For a few bytes, when nothing else is waiting. */
extern void socket_put(Socket *socket, const void *bytes, size_t len);
/* Returns whether bytes that were taken still wait for the kernel. */
extern bool socket_has_rest(const Socket *socket);
/* Has writable() called as soon as the socket takes bytes. */
extern void socket_want_write(Socket *socket);
extern void socket_pause(Socket *socket, bool pause);
/* Ends the connection after so many seconds, unconditionally. */
extern void socket_end_after(Socket *socket, int seconds);
/* Ends our side of the connection. Input is discarded from then on. */
extern void socket_finish(Socket *socket);
/* Ends the connection with its next event, without a close frame. */
extern void socket_abort(Socket *socket);
/* Bytes that the peer's system has acknowledged. */
extern uint64_t socket_delivered(const Socket *socket);
/* Called once a second. */
extern void socket_tick_all(void);

#endif
