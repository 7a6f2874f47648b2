/*
 * socket.h - one WebSocket: its bytes, plain or in TLS, its frames and its pings; see socket.c.
 */
#ifndef SOCKET_H
#define SOCKET_H

#include "support/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct Session;
typedef struct Socket Socket;

/* Takes the stream over, also when it fails; gone is called when the connection has ended. NULL: there is no memory for
 * it, or the loop cannot watch it; gone is not called. */
extern Socket *socket_open(Stream stream, void (*gone)(void *arg), void *arg);
/* Whose messages these are; must follow socket_open() at once. NULL ends the connection. */
extern void socket_set_session(Socket *socket, struct Session *session);
/* Frames that were read already; they are unmasked in place. */
extern void socket_take(Socket *socket, char *bytes, size_t len);
/* Bytes that are taken, from 0 to len; what is not taken may be given again when session_writable() is called.
 * -1: the connection is broken, which the loop's next turn sees. */
extern ssize_t socket_write(Socket *socket, const void *bytes, size_t len);
/* All of them: what the kernel does not take is kept. For a few bytes, when nothing else waits. */
extern void socket_put(Socket *socket, const void *bytes, size_t len);
/* Bytes that were taken wait for the socket: nothing may end before they are written. */
extern bool socket_has_taken_more(const Socket *socket);
/* Calls session_writable() as soon as the socket takes bytes. */
extern void socket_want_write(Socket *socket);
extern void socket_pause(Socket *socket, bool pause);
/* Ends the connection after so many seconds, whatever happens. */
extern void socket_end_after(Socket *socket, int seconds);
/* Tells the peer that no bytes follow; what it still sends is thrown away. */
extern void socket_finish(Socket *socket);
/* Ends the connection in its next turn, without a word. */
extern void socket_abort(Socket *socket);
/* Bytes that the peer's system has acknowledged. */
extern uint64_t socket_delivered(const Socket *socket);
/* To be called once a second. */
extern void socket_tick_all(void);
extern void socket_close_all(void);

#endif
