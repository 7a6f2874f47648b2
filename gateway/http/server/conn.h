/*
 * conn.h - a connection that speaks HTTP: heads and bodies in, answers out, one after the other; see conn.c.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;
typedef struct Conn Conn;

/* ---- for the listener ---- */
/* Takes an accepted socket over. tls: the handshake comes first. */
extern void conn_open(int fd, const struct sockaddr *from, bool tls);
/* Ends what takes too long; to be called every now and then. */
extern void conn_tick_all(void);
extern void conn_close_all(void);

/* ---- for requests: all of these take effect in a later turn of the loop ---- */
extern const char *conn_address(const Conn *conn);
/* There is something to write. */
extern void conn_wake(Conn *conn);
/* The body is not wanted just now, or is again. */
extern void conn_pause(Conn *conn, bool pause);
/* Ends the connection in the middle of whatever it does. */
extern void conn_abort(Conn *conn);

#endif
