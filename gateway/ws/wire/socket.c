/*
 * socket.c - one WebSocket: its bytes, plain or TLS, its frames and its pings.
 *
 * The user decides what is sent and when the WebSocket ends. A Socket is freed when its transport is gone, which is
 * never within a call of the user.
 *
 * TLS: SSL_write() must be called again with the bytes that it has begun to encipher. They are copied
 * to `rest`, one record at most, and count as taken.
 */
#include "ws/wire/socket.h"

#include "core/gateway.h"
#include "support/buf.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define SOCKET_TLS_RECORD  16384 /* bytes */
#define SOCKET_END_SECONDS 2	 /* so that the peer reads our close frame before a reset */

struct Socket
{
	Socket *next, *previous;
	Transport *transport;
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
	bool paused;	  /* not read */
	bool wants_write;
	bool deaf;	 /* input is discarded */
	bool done;	 /* our side of the connection has ended */
	bool full;	 /* the kernel took less than it was given */
	bool broken; /* a write has failed, or socket_abort() was called */
};

static Socket *sockets;

static bool socket_received(void *user, char *bytes, size_t len);
static bool socket_ready(void *user);
static void socket_gone(void *user);

static uint64_t
socket_now(void)
{
	return uv_now(&gateway.loop);
}

/* ---- life ---- */

Socket *
socket_open(Transport *transport, const SocketOwner *owner, void *arg)
{
	static const TransportEvents events = {socket_received, socket_ready, socket_gone};
	Socket *socket = calloc(1, sizeof(Socket));

	transport_set_user(transport, &events, socket);
	if (socket == NULL)
	{
		transport_abort(transport);
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
	transport_pause(transport, false);
	return socket;
}

static void
socket_gone(void *user)
{
	Socket *socket = user;

	if (socket == NULL)
		return; /* there was no memory for it */
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
	free(socket);
}

/* The end of the peer's side would end the connection. A peer that has sent its close frame may wait for ours. */
static void
socket_update_pause(Socket *socket)
{
	transport_pause(socket->transport, socket->paused || (socket->deaf && !socket->done));
}

void
socket_want_write(Socket *socket)
{
	socket->wants_write = true;
	if (socket->full && !socket->broken)
		transport_want_write(socket->transport);
	else
		transport_wake(socket->transport);
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
	socket_update_pause(socket);
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
	transport_end(socket->transport);
	socket_update_pause(socket);
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
	socket_update_pause(socket);
}

static bool
socket_received(void *user, char *bytes, size_t len)
{
	Socket *socket = user;

	if (socket->broken)
		return false;
	socket->heard = socket_now();
	socket_take(socket, bytes, len);
	return !socket->broken;
}

/* ---- writing ---- */

/* Sends rest. Returns true when nothing is left of it. */
static bool
socket_flush(Socket *socket)
{
	while (socket->rest_sent < socket->rest.len)
	{
		ssize_t sent = transport_write(socket->transport, socket->rest.data + socket->rest_sent,
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
		ssize_t sent = transport_write(socket->transport, bytes + taken, part);

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
	if (transport_is_tls(socket->transport))
		sent = socket_write_tls(socket, bytes, len);
	else
	{
		sent = transport_write(socket->transport, bytes, len);
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
	int queued = transport_queued(socket->transport);

	return (uint64_t) queued < socket->sent ? socket->sent - (uint64_t) queued : 0;
}

static bool
socket_ready(void *user)
{
	Socket *socket = user;

	if (socket->broken || !socket->wants_write)
		return !socket->broken;
	if (socket->full || socket->paused)
		socket->heard = socket_now(); /* the peer's system has taken bytes */
	socket->full = false;
	socket->wants_write = false;
	if (!socket_flush(socket) && !socket->broken)
		socket_want_write(socket);
	else if (!socket->broken && !socket->events->writable(socket->user))
		return false;
	return !socket->broken;
}

/* ---- time ---- */

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
	if (socket->paused && socket->full)
		transport_make_room(socket->transport); /* it may be read only when its peer has taken more */
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

	for (Socket *socket = sockets; socket != NULL; socket = socket->next)
	{
		if (!socket_tick(socket, now))
			socket_abort(socket);
	}
}
