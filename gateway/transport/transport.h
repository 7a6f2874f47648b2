/*
 * transport.h - the bytes of accepted connections, plain or TLS; see transport.c. Nothing here blocks.
 *
 * A transport belongs to its user until gone() is called, which is the last call for each, and frees the transport when
 * it returns. Events come from the loop only: no function declared here calls one, except transport_stop(). So an event
 * may call any of these functions on any transport. An event that returns false ends its connection: gone() follows.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct Transport Transport;
typedef struct uv_loop_s uv_loop_t;

typedef struct TransportEvents
{
	/* Bytes have arrived, which may be changed in place. They must be taken even if the transport was paused. */
	bool (*received)(void *user, char *bytes, size_t len);
	/* After transport_want_write() or transport_wake(). */
	bool (*ready)(void *user);
	/* The connection has ended: an event returned false, the peer has ended its side, or the connection is broken. */
	void (*gone)(void *user);
} TransportEvents;

typedef enum TransportPhase
{
	TRANSPORT_SILENT,	 /* TLS: the client has sent nothing */
	TRANSPORT_HANDSHAKE, /* of TLS */
	TRANSPORT_OPEN
} TransportPhase;

#define TRANSPORT_AGAIN	 (-1) /* the socket takes nothing just now */
#define TRANSPORT_BROKEN (-2)

/* connections: the most that are open at a time; more are refused far above. tls: transport_open() may be asked for it.
 * Call certificate_load() before. Returns false if there is no memory or a package is missing. */
extern bool transport_start(uv_loop_t *loop, int connections, bool tls);
/* Ends all connections. The loop must run for a moment to close their descriptors. */
extern void transport_stop(void);

/* Takes ownership of an accepted socket, even on failure. Returns NULL, without a call of gone(), when there is no
 * memory or the connection has ended already. transport_set_user() must follow before the loop runs. */
extern Transport *transport_open(int fd, bool tls);
/* Hands the transport to another user: the former one gets no further event, not even gone(). */
extern void transport_set_user(Transport *transport, const TransportEvents *events, void *user);

/* Bytes that the socket, or TLS, has taken; or one of the above. TLS: after TRANSPORT_AGAIN the next write must begin
 * with the same bytes. It takes one record at most (16 kB). */
extern ssize_t transport_write(Transport *transport, const void *from, size_t len);
/* The same for bytes in several places; of plain transports. */
extern ssize_t transport_write_parts(Transport *transport, const struct iovec *parts, size_t count);
/* Bytes that were written and that the peer's system has not acknowledged. */
extern int transport_queued(const Transport *transport);
/* Has ready() called when the socket takes bytes again. For a socket that took less than it was given. */
extern void transport_want_write(Transport *transport);
/* Has ready() called in the next iteration of the loop. */
extern void transport_wake(Transport *transport);
/* Stops or resumes reading. While a transport is paused, the end of the peer's side is not noticed: who still has to
 * answer pauses it. */
extern void transport_pause(Transport *transport, bool pause);
/* Tells the peer that nothing more comes. Reading goes on. */
extern void transport_end(Transport *transport);
/* Ends the connection in the next iteration, with no other event than gone(). */
extern void transport_abort(Transport *transport);
/* So that the peer's system sends no more than this before it is read. */
extern void transport_limit_received(Transport *transport, int bytes);
/* To be called each second while the transport is paused and takes no more of what is written, after
 * transport_limit_received(). Enlarges a full buffer of the kernel, within bounds. */
extern void transport_make_room(Transport *transport);

/* For client.c: libwebsockets' context, and its loop. */
extern struct lws_context *transport_lws(void);
extern uv_loop_t *transport_loop(void);

extern TransportPhase transport_phase(const Transport *transport);
/* False also for a client that has sent something else at a port of TLS. */
extern bool transport_is_tls(const Transport *transport);

#endif
