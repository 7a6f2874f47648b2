/*
 * tunnel.c - a WebSocket over TLS: what is deciphered here goes to libwebsockets through a socket pair, and back.
 *
 * libwebsockets can do TLS itself, but it would have to do the handshake, and with it read the request's head, whose
 * parser is not strict (see head.h). Each direction holds one read at most, and reads on when that is written: a slow
 * side holds up the other through full sockets, as on one connection.
 */
#include "tunnel.h"

#include "buf.h"
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define TUNNEL_READ_BYTES 65536
#define TUNNEL_TURNS	  16
#define TUNNEL_FLUSH_MS	  10000 /* for the last bytes, when libwebsockets has closed */

typedef struct Side
{
	uv_poll_t poll; /* must be first */
	struct Tunnel *tunnel;
	Stream stream;
	Buf out; /* on the way to this side */
	size_t out_written;
	int events;
	bool shut; /* told that nothing more comes */
} Side;

typedef struct Tunnel
{
	Side sides[2]; /* the client; libwebsockets */
	struct Tunnel *next, *previous;
	int open_handles;
	bool woken;
	uint64_t ending; /* ms: since when libwebsockets' side has ended */
} Tunnel;

static Tunnel *tunnels;
static char tunnel_bytes[TUNNEL_READ_BYTES];

static void tunnel_on_poll(uv_poll_t *poll, int status, int events);

static void
tunnel_freed(uv_handle_t *handle)
{
	Tunnel *tunnel = ((Side *) handle)->tunnel;

	if (--tunnel->open_handles == 0)
		free(tunnel);
}

static void
tunnel_close(Tunnel *tunnel)
{
	if (tunnel->next != NULL)
		tunnel->next->previous = tunnel->previous;
	if (tunnel->previous != NULL)
		tunnel->previous->next = tunnel->next;
	else
		tunnels = tunnel->next;
	for (int i = 0; i < 2; i++)
	{
		buf_free(&tunnel->sides[i].out);
		uv_close((uv_handle_t *) &tunnel->sides[i].poll, tunnel_freed);
		stream_close(&tunnel->sides[i].stream);
	}
}

void
tunnel_close_all(void)
{
	while (tunnels != NULL)
		tunnel_close(tunnels);
}

/* What `to` has not taken yet goes first, then the next read of `from`. -1: the tunnel is broken; 1: bytes moved. */
static int
tunnel_move(Side *from, Side *to)
{
	ssize_t n;

	if (to->out.len == 0 && !buf_failed(&to->out))
	{
		if (from->stream.ended)
		{
			if (!to->shut)
				stream_end(&to->stream);
			to->shut = true;
			return 0;
		}
		n = stream_read(&from->stream, tunnel_bytes, sizeof(tunnel_bytes));
		if (n == STREAM_AGAIN)
			return 0;
		if (n == STREAM_BROKEN)
			return -1;
		if (n == STREAM_END)
			return 1;
		buf_put(&to->out, tunnel_bytes, (size_t) n);
	}
	if (buf_failed(&to->out))
		return -1;
	n = stream_write(&to->stream, to->out.data + to->out_written, to->out.len - to->out_written);
	if (n < 0)
		return n == STREAM_AGAIN ? 0 : -1;
	to->out_written += (size_t) n;
	if (to->out_written < to->out.len)
		return 1;
	buf_free(&to->out);
	to->out_written = 0;
	return 1;
}

static void
tunnel_watch(Side *side, const Side *other, bool woken)
{
	int events = woken ? UV_WRITABLE : 0;

	if ((other->out.len == 0 && !side->stream.ended) || side->stream.wants_read)
		events |= UV_READABLE;
	if (side->out.len > 0 || side->stream.wants_write)
		events |= UV_WRITABLE;
	if (events == side->events)
		return;
	side->events = events;
	if (events == 0)
		uv_poll_stop(&side->poll);
	else
		uv_poll_start(&side->poll, events, tunnel_on_poll);
}

static void
tunnel_on_poll(uv_poll_t *poll, int status, int events)
{
	Tunnel *tunnel = ((Side *) poll)->tunnel;
	Side *client = &tunnel->sides[0], *server = &tunnel->sides[1];
	bool woken = false, progress = true;

	for (int turn = 0; progress && status >= 0; turn++)
	{
		int in = tunnel_move(client, server);
		int out = tunnel_move(server, client);

		progress = in > 0 || out > 0;
		if (in < 0 || out < 0)
			status = -1;
		if (turn == TUNNEL_TURNS)
		{
			woken = progress;
			break;
		}
	}
	/* libwebsockets has closed, and the client has everything. */
	if (status < 0 || (server->stream.ended && client->shut))
	{
		tunnel_close(tunnel);
		return;
	}
	if (server->stream.ended && tunnel->ending == 0)
		tunnel->ending = uv_now(&gateway.loop);
	tunnel_watch(client, server, woken);
	tunnel_watch(server, client, false);
}

/* False when the socket cannot be watched. */
static bool
tunnel_add_side(Tunnel *tunnel, int i, Stream stream)
{
	Side *side = &tunnel->sides[i];

	if (uv_poll_init(&gateway.loop, &side->poll, stream.fd) != 0)
		return false;
	side->tunnel = tunnel;
	side->stream = stream;
	side->events = UV_READABLE | (i == 0 ? UV_WRITABLE : 0); /* OpenSSL may hold bytes already: a turn at once */
	tunnel->open_handles++;
	uv_poll_start(&side->poll, side->events, tunnel_on_poll);
	return true;
}

/* Before the tunnel is one. */
static void
tunnel_give_up(Tunnel *tunnel, Stream *stream, const int pair[2])
{
	if (tunnel->open_handles > 0)
		uv_close((uv_handle_t *) &tunnel->sides[0].poll, tunnel_freed);
	else
		free(tunnel);
	close(pair[0]);
	close(pair[1]);
	stream_close(stream);
}

int
tunnel_open(Stream *stream, const char *first, size_t len)
{
	Tunnel *tunnel;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
	{
		stream_close(stream);
		return -1;
	}
	tunnel = calloc(1, sizeof(Tunnel));
	if (tunnel == NULL)
	{
		close(pair[0]);
		close(pair[1]);
		stream_close(stream);
		return -1;
	}
	if (!tunnel_add_side(tunnel, 0, *stream) || !tunnel_add_side(tunnel, 1, (Stream){.fd = pair[0]}))
	{
		tunnel_give_up(tunnel, stream, pair);
		return -1;
	}
	buf_put(&tunnel->sides[1].out, first, len);
	tunnel->next = tunnels;
	if (tunnels != NULL)
		tunnels->previous = tunnel;
	tunnels = tunnel;
	return pair[1];
}

void
tunnel_tick_all(void)
{
	uint64_t now = uv_now(&gateway.loop);

	for (Tunnel *tunnel = tunnels, *next; tunnel != NULL; tunnel = next)
	{
		next = tunnel->next;
		if (tunnel->ending != 0 && now - tunnel->ending >= TUNNEL_FLUSH_MS)
			tunnel_close(tunnel);
	}
}
