/*
 * socket.c - one WebSocket: its bytes, plain or TLS, its frames and its pings.
 *
 * The user decides what is sent and when the WebSocket ends. Only socket_close() frees a Socket: at
 * the end of a poll callback, or of the tick of each second. A callback may use the socket until it
 * returns.
 *
 * TLS: SSL_write() must be called again with the bytes that it has begun to encipher. They are copied
 * to `rest`, one record at most, and count as taken.
 */
#include "ws/wire/socket.h"

#include "core/gateway.h"
#include "support/buf.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define SOCKET_READ_BYTES  65536
#define SOCKET_READS	   4	 /* per poll callback, so that no connection starves the others */
#define SOCKET_TLS_RECORD  16384 /* bytes */
#define SOCKET_END_SECONDS 2	 /* so that the peer reads our close frame before a reset */

struct Socket
{
	uv_poll_t poll; /* must be first: socket_freed() */
	Socket *next, *previous;
	Transport transport;
	FrameReader reader;
	const SocketEvents *events;
	void *user;
	const SocketOwner *owner;
	void *arg;
	Buf rest;		  /* bytes that count as taken and are not sent yet */
	size_t rest_sent; /* of rest */
	uint64_t sent;	  /* bytes that the kernel has taken */
	uint64_t heard;	  /* ms: the last sign of life */
	uint64_t pinged;  /* ms */
	uint64_t end;	  /* ms: when the connection ends; 0: not set */
	int polled;		  /* events that poll waits for */
	bool paused;	  /* not read */
	bool wants_write;
	bool deaf;	 /* input is discarded */
	bool done;	 /* our side of the connection has ended */
	bool full;	 /* the kernel took less than it was given */
	bool broken; /* a write has failed, or socket_abort() was called */
};

static Socket *sockets;
static char socket_bytes[SOCKET_READ_BYTES];

static void socket_on_poll(uv_poll_t *poll, int status, int events);

static uint64_t
socket_now(void)
{
	return uv_now(&gateway.loop);
}

/* ---- life ---- */

Socket *
socket_open(Transport transport, const SocketOwner *owner, void *arg)
{
	Socket *socket = calloc(1, sizeof(Socket));

	if (socket == NULL || uv_poll_init(&gateway.loop, &socket->poll, transport.fd) != 0)
	{
		transport_close(&transport);
		free(socket);
		return NULL;
	}
	socket->transport = transport;
	socket->owner = owner;
	socket->arg = arg;
	socket->heard = socket->pinged = socket_now();
	socket->next = sockets;
	if (sockets != NULL)
		sockets->previous = socket;
	sockets = socket;
	/* TLS may have read bytes already, for which poll reports nothing. UV_WRITABLE is reported at once. */
	socket->polled = UV_READABLE | (transport.ssl != NULL ? UV_WRITABLE : 0);
	uv_poll_start(&socket->poll, socket->polled, socket_on_poll);
	return socket;
}

static void
socket_freed(uv_handle_t *handle)
{
	free((Socket *) handle);
}

static void
socket_close(Socket *socket)
{
	Transport transport = socket->transport;

	if (socket->next != NULL)
		socket->next->previous = socket->previous;
	if (socket->previous != NULL)
		socket->previous->next = socket->next;
	else
		sockets = socket->next;
	if (socket->user != NULL)
		socket->events->gone(socket->user);
	socket->owner->gone(socket->arg);
	buf_free(&socket->rest);
	uv_close((uv_handle_t *) &socket->poll, socket_freed);
	transport_close(&transport); /* the poll handle has released the descriptor */
}

void
socket_close_all(void)
{
	while (sockets != NULL)
		socket_close(sockets);
}

static void
socket_watch(Socket *socket)
{
	int events = 0;

	if ((!socket->paused && !socket->transport.ended) || socket->transport.wants_read)
		events |= UV_READABLE;
	/* poll reports nothing for bytes that TLS has read already. */
	if (socket->wants_write || socket->broken ||
		(!socket->paused && (socket->transport.wants_write || transport_has_more(&socket->transport))))
		events |= UV_WRITABLE;
	if (events == socket->polled)
		return;
	socket->polled = events;
	if (events == 0)
		uv_poll_stop(&socket->poll);
	else
		uv_poll_start(&socket->poll, events, socket_on_poll);
}

void
socket_want_write(Socket *socket)
{
	socket->wants_write = true;
	socket_watch(socket);
}

void
socket_abort(Socket *socket)
{
	socket->broken = true;
	socket_want_write(socket);
}

void
socket_set_user(Socket *socket, const SocketEvents *events, void *user)
{
	socket->events = events;
	socket->user = user;
}

void
socket_sign_in(Socket *socket, int64_t uid)
{
	socket->owner->signed_in(socket->arg, uid);
}

void
socket_pause(Socket *socket, bool pause)
{
	socket->paused = pause;
	socket_watch(socket);
}

void
socket_end_after(Socket *socket, int seconds)
{
	socket->end = socket_now() + (uint64_t) seconds * 1000;
}

void
socket_finish(Socket *socket)
{
	if (socket->done)
		return;
	socket->deaf = socket->done = true;
	socket_end_after(socket, SOCKET_END_SECONDS);
	transport_end(&socket->transport);
}

/* ---- reading ---- */

void
socket_take(Socket *socket, char *bytes, size_t len)
{
	while (len > 0 && !socket->deaf)
	{
		FramePiece piece;
		size_t used;

		switch (frame_read(&socket->reader, bytes, len, &used, &piece))
		{
			case FRAME_MORE:
				break;
			case FRAME_PIECE:
				socket->events->receive(socket->user, &piece);
				break;
			case FRAME_CONTROL:
				socket->deaf = piece.op == FRAME_CLOSE; /* the peer's last frame */
				socket->events->control(socket->user, &piece);
				break;
			case FRAME_INVALID:
				socket->deaf = true;
				socket->events->invalid(socket->user, piece.reason);
				break;
		}
		bytes += used;
		len -= used;
	}
}

/* Returns false when the connection has ended. */
static bool
socket_read(Socket *socket)
{
	for (int reads = 0; reads < SOCKET_READS && !socket->paused && !socket->transport.ended; reads++)
	{
		ssize_t got = transport_read(&socket->transport, socket_bytes, sizeof(socket_bytes));

		/* A peer that has ended its side may still wait for our close frame. */
		if (got <= 0)
			return got == TRANSPORT_AGAIN || (got == TRANSPORT_END && socket->deaf && !socket->done);
		socket->heard = socket_now();
		socket_take(socket, socket_bytes, (size_t) got);
		if (!transport_has_more(&socket->transport))
			break; /* poll reports more */
	}
	return true;
}

/* ---- writing ---- */

/* Sends rest. Returns true when nothing is left of it. */
static bool
socket_flush(Socket *socket)
{
	while (socket->rest_sent < socket->rest.len)
	{
		ssize_t sent = transport_write(&socket->transport, socket->rest.data + socket->rest_sent,
									   socket->rest.len - socket->rest_sent);

		if (sent < 0)
		{
			socket->broken |= sent != TRANSPORT_AGAIN;
			socket->full = true;
			return false;
		}
		socket->rest_sent += (size_t) sent;
		socket->sent += (uint64_t) sent;
	}
	buf_free(&socket->rest);
	socket->rest_sent = 0;
	return true;
}

static ssize_t
socket_write_tls(Socket *socket, const char *bytes, size_t len)
{
	size_t taken = 0;

	while (taken < len)
	{
		size_t part = len - taken < SOCKET_TLS_RECORD ? len - taken : SOCKET_TLS_RECORD;
		ssize_t sent = transport_write(&socket->transport, bytes + taken, part);

		if (sent == TRANSPORT_AGAIN)
		{
			buf_put(&socket->rest, bytes + taken, part);
			socket->full = true;
			return buf_failed(&socket->rest) ? -1 : (ssize_t) (taken + part);
		}
		if (sent < 0)
			return sent;
		socket->sent += (uint64_t) sent;
		taken += (size_t) sent;
	}
	return (ssize_t) taken;
}

ssize_t
socket_write(Socket *socket, const void *bytes, size_t len)
{
	ssize_t sent;

	if (!socket->broken && !socket_flush(socket) && !socket->broken)
		return 0;
	if (socket->broken)
		return -1;
	if (socket->transport.ssl != NULL)
		sent = socket_write_tls(socket, bytes, len);
	else
	{
		sent = transport_write(&socket->transport, bytes, len);
		if (sent == TRANSPORT_AGAIN)
			sent = 0;
		socket->full |= sent >= 0 && (size_t) sent < len;
		socket->sent += sent > 0 ? (uint64_t) sent : 0;
	}
	socket->broken = sent < 0;
	return sent < 0 ? -1 : sent;
}

void
socket_put(Socket *socket, const void *bytes, size_t len)
{
	ssize_t taken = socket_write(socket, bytes, len);

	if (taken >= 0 && (size_t) taken < len)
		buf_put(&socket->rest, (const char *) bytes + taken, len - (size_t) taken);
	socket->broken |= buf_failed(&socket->rest);
	if (socket->rest.len > 0 || socket->broken)
		socket_want_write(socket);
}

bool
socket_has_rest(const Socket *socket)
{
	return socket->rest.len > 0;
}

uint64_t
socket_delivered(const Socket *socket)
{
	int queued = 0;

	if (ioctl(socket->transport.fd, SIOCOUTQ, &queued) != 0 || queued < 0)
		queued = 0;
	return (uint64_t) queued < socket->sent ? socket->sent - (uint64_t) queued : 0;
}

/* Returns false when the connection has ended. */
static bool
socket_on_writable(Socket *socket)
{
	if (socket->full || socket->paused)
		socket->heard = socket_now(); /* the peer's system has taken bytes */
	socket->full = false;
	socket->wants_write = false;
	if (!socket->broken && !socket_flush(socket) && !socket->broken)
	{
		socket->wants_write = true;
		return true;
	}
	return !socket->broken && socket->events->writable(socket->user);
}

/* ---- events ---- */

static void
socket_on_poll(uv_poll_t *poll, int status, int events)
{
	Socket *socket = (Socket *) poll;
	bool alive = status >= 0 && !socket->broken;

	if (alive && ((events & UV_READABLE) || socket->transport.wants_write || transport_has_more(&socket->transport)))
		alive = socket_read(socket);
	if (alive && socket->wants_write && ((events & UV_WRITABLE) || socket->transport.wants_read))
		alive = socket_on_writable(socket);
	if (alive && !socket->broken)
		socket_watch(socket);
	else
		socket_close(socket);
}

/* Returns false when the peer was silent for too long, or socket_end_after() has passed. */
static bool
socket_tick(Socket *socket, uint64_t now)
{
	uint64_t ping_ms = (uint64_t) gateway.config.ping_seconds * 1000;

	if (socket->broken)
		return false;
	if (socket->end != 0)
		return now < socket->end;
	/* A paused peer may have sent what is not read. It must still take what it is sent. */
	if (socket->paused && !socket->wants_write)
		socket->heard = now;
	if (now - socket->heard >= 2 * ping_ms)
		return false;
	if (now - socket->pinged >= ping_ms)
	{
		socket->pinged = now;
		socket->events->ping(socket->user);
	}
	return true;
}

void
socket_tick_all(void)
{
	uint64_t now = socket_now();

	for (Socket *socket = sockets, *next; socket != NULL; socket = next)
	{
		next = socket->next;
		if (!socket_tick(socket, now))
			socket_close(socket);
	}
}
