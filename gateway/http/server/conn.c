/*
 * conn.c - a connection that speaks HTTP/1.1 (RFC 9112).
 *
 * Requests of one connection are handled one after the other, so that answers are in order; what is pipelined waits in
 * `in`, which takes no more than a head's limit and one read. When a request becomes a WebSocket, server.c gets the
 * connection.
 *
 * States: HANDSHAKE (TLS) -> HEAD -> BODY -> ANSWER -> HEAD ..., and at the end LINGER: our side is closed, and what
 * the client still sends is thrown away for a moment, because closing over unread bytes would reset the connection and
 * take the answer with it. A connection is freed by conn_close() alone, at the end of a turn of its own.
 *
 * Nobody may hold a connection for ever: a head has to come within head-seconds, bodies and answers have to move
 * min-rate-bytes a second on average over stall-seconds.
 */
#include "http/server/conn.h"

#include "http/server/chunked.h"
#include "http/server/exchange.h"
#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "http/server/peers.h"
#include "http/request/request.h"
#include "http/server/server.h"
#include "support/stream.h"
#include "http/server/tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#define CONN_READ_BYTES 65536
#define CONN_TURNS		16	  /* reads and writes before the other connections have their turn ... */
#define CONN_SHARE		65536 /* ... and bytes written */
#define CONN_LINGER_MS	2000  /* for a client that is still sending to find our answer */
#define CONN_TLS_RECORD 0x16  /* the first byte of a TLS handshake */

typedef enum ConnState
{
	CONN_HANDSHAKE,
	CONN_HEAD,
	CONN_BODY,
	CONN_ANSWER,
	CONN_LINGER,
	CONN_DEAD
} ConnState;

struct Conn
{
	uv_poll_t poll; /* must be first: conn_freed() */
	Conn *next, *previous;
	Stream stream;
	Peer *peer;
	char address[48];
	ConnState state;
	int events;	   /* that poll waits for */
	bool woken;	   /* the next turn comes without an event of the socket */
	bool in_turn;  /* whoever wakes it need not ask the socket for a turn */
	bool drained;  /* the socket has been read to its end: what comes now is an event */
	bool paused;   /* the body is not wanted just now */
	bool served;   /* a request has been answered */
	bool answered; /* the answer is in `out` to its end */
	bool first_byte_seen;
	Buf in;
	size_t seen; /* of a head that has not ended */
	Buf out;
	size_t out_written;
	struct iovec rest; /* of the answer, behind `out`: where the request has it */
	Request *request;
	int64_t body_left; /* of a body whose length was told */
	Chunked chunked;   /* of one in chunks */
	uint64_t since;	   /* ms: the state's beginning, or that of the window in which bytes have to move */
	int64_t read;	   /* bytes, ever */
	int64_t written;   /* bytes, ever */
	int64_t moved;	   /* read or written, at `since` */
};

static Conn *conns;
static char conn_bytes[CONN_READ_BYTES];

static uint64_t
conn_now(void)
{
	return uv_now(&gateway.loop);
}

static void conn_on_poll(uv_poll_t *poll, int status, int events);

/* ---- life ---- */

/* Before the connection is one. */
static void
conn_drop(Conn *conn, int fd)
{
	if (conn != NULL && conn->peer != NULL)
		peers_leave(conn->peer);
	if (conn != NULL)
		tls_free(&conn->stream);
	close(fd);
	free(conn);
}

void
conn_open(int fd, const struct sockaddr *from, bool tls)
{
	Conn *conn = calloc(1, sizeof(Conn));
	int on = 1;

	if (conn != NULL)
	{
		conn->peer = peers_enter(from, conn->address);
		conn->stream.ssl = tls ? tls_new(fd) : NULL;
	}
	if (conn == NULL || conn->peer == NULL || (tls && conn->stream.ssl == NULL) ||
		uv_poll_init(&gateway.loop, &conn->poll, fd) != 0)
	{
		log_event(LOG_WARN, "a connection was not taken",
				  LOG_STR("reason", "out of memory, or its socket cannot be watched"));
		conn_drop(conn, fd);
		return;
	}
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	conn->stream.fd = fd;
	conn->state = tls ? CONN_HANDSHAKE : CONN_HEAD;
	conn->since = conn_now();
	conn->next = conns;
	if (conns != NULL)
		conns->previous = conn;
	conns = conn;
	gateway.connections++;
	conn->events = UV_READABLE;
	uv_poll_start(&conn->poll, conn->events, conn_on_poll);
}

static void
conn_freed(uv_handle_t *handle)
{
	free((Conn *) handle);
}

/* Stops watching the socket, which is somebody else's from now on, and forgets the connection. */
static void
conn_forget(Conn *conn)
{
	if (conn->request != NULL)
		request_gone(conn->request);
	conn->request = NULL;
	if (conn->next != NULL)
		conn->next->previous = conn->previous;
	if (conn->previous != NULL)
		conn->previous->next = conn->next;
	else
		conns = conn->next;
	buf_free(&conn->in);
	buf_free(&conn->out);
	uv_close((uv_handle_t *) &conn->poll, conn_freed);
}

static void
conn_close(Conn *conn)
{
	Stream stream = conn->stream;

	peers_leave(conn->peer);
	gateway.connections--;
	conn_forget(conn);
	stream_close(&stream); /* after the poll handle has let go of the descriptor */
}

void
conn_close_all(void)
{
	while (conns != NULL)
		conn_close(conns);
}

static void
conn_enter(Conn *conn, ConnState state)
{
	conn->state = state;
	conn->since = conn_now();
	conn->moved = state == CONN_ANSWER ? conn->written : conn->read;
}

/* ---- for requests ---- */

const char *
conn_address(const Conn *conn)
{
	return conn->address;
}

static void
conn_watch(Conn *conn, int events)
{
	if (events == conn->events)
		return;
	conn->events = events;
	if (events == 0)
		uv_poll_stop(&conn->poll);
	else
		uv_poll_start(&conn->poll, events, conn_on_poll);
}

/* A socket that takes bytes, as nearly all do, gives the connection its turn, unless it has it just now. */
void
conn_wake(Conn *conn)
{
	conn->woken = true;
	if (!conn->in_turn)
		conn_watch(conn, conn->events | UV_WRITABLE);
}

void
conn_pause(Conn *conn, bool pause)
{
	if (conn->paused == pause)
		return;
	conn->paused = pause;
	conn_wake(conn);
}

void
conn_abort(Conn *conn)
{
	conn->state = CONN_DEAD;
	(void) shutdown(conn->stream.fd, SHUT_RDWR); /* wakes it, also when its socket is full */
	conn_wake(conn);
}

/* ---- reading ---- */

/* What has come is no request, or not read: something is answered, and the connection ends. False: it ends at once,
 * without memory for an answer. */
static bool
conn_stop_reading(Conn *conn)
{
	buf_free(&conn->in);
	if (conn->request == NULL && (conn->request = request_create(conn)) != NULL)
		trace_begin(conn->request, NULL);
	if (conn->request == NULL)
	{
		conn->state = CONN_DEAD;
		return false;
	}
	conn->request->close = true;
	conn_enter(conn, CONN_ANSWER);
	return true;
}

static void
conn_refuse(Conn *conn, int status, const char *reason)
{
	if (conn_stop_reading(conn))
		request_error(conn->request, status, reason);
}

static void
conn_take(Conn *conn, size_t len)
{
	conn->in.len -= len;
	memmove(conn->in.data, conn->in.data + len, conn->in.len);
	conn->seen = 0;
}

/* The connection becomes a WebSocket by the request of len bytes, and ends here. */
static void
conn_hand_over(Conn *conn, Ticket *ticket, size_t len)
{
	Stream stream = conn->stream;
	Buf in = buf_take(&conn->in);

	ticket->peer = conn->peer;
	conn_forget(conn);
	server_open_websocket(stream, ticket, in.data + len, in.len - len);
	buf_free(&in);
}

/* A request whose head is len bytes of `in`. False: there is no connection any more. */
static bool
conn_begin_request(Conn *conn, size_t len)
{
	Request *request = conn->request = request_create(conn);
	Ticket *ticket = NULL;

	if (request == NULL)
	{
		conn->state = CONN_DEAD;
		return true;
	}
	conn_enter(conn, CONN_ANSWER);
	if (exchange_begin(request, conn->in.data, len, &ticket) == EXCHANGE_UPGRADE)
	{
		conn_hand_over(conn, ticket, len);
		return false;
	}
	conn_take(conn, len);
	if (request->status != 0 || !request->body_comes)
		return true;
	conn->body_left = request->content_length;
	conn->chunked = (Chunked){0};
	if (request->head.expect_continue && conn->in.len == 0)
		buf_puts(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
	conn_enter(conn, CONN_BODY);
	return true;
}

/* True: something was done; *alive tells whether there is a connection still. */
static bool
conn_read_head(Conn *conn, bool *alive)
{
	size_t blank = 0;
	long len;

	/* Empty lines before a request are to be ignored (RFC 9112 2.2): all at once, as there may be thousands. */
	while (conn->in.len - blank >= 2 && memcmp(conn->in.data + blank, "\r\n", 2) == 0)
		blank += 2;
	if (blank > 0)
		conn_take(conn, blank);
	len = conn->in.len > 0 ? head_find_end(conn->in.data, conn->in.len, &conn->seen) : 0;
	if (len < 0)
		conn_refuse(conn, 400, "the head of the request holds a control character or a line without CRLF");
	else if (len > gateway.config.max_header_bytes ||
			 (len == 0 && conn->in.len > (size_t) gateway.config.max_header_bytes))
	{
		if (memchr(conn->in.data, '\n', conn->in.len) == NULL)
			conn_refuse(conn, 414, "the address is too long");
		else
			conn_refuse(conn, 431, "the headers are too large");
	}
	else if (len == 0)
		return false;
	else
		*alive = conn_begin_request(conn, (size_t) len);
	return true;
}

/* The body ends `len` bytes into what has come. */
static void
conn_end_body(Conn *conn, size_t len)
{
	conn_take(conn, len);
	conn_enter(conn, CONN_ANSWER);
	exchange_body_end(conn->request);
}

static void
conn_read_measured(Conn *conn)
{
	size_t len = conn->in.len < (uint64_t) conn->body_left ? conn->in.len : (size_t) conn->body_left;

	conn->body_left -= (int64_t) len;
	exchange_body(conn->request, conn->in.data, len);
	if (conn->body_left == 0)
		conn_end_body(conn, len);
	else
		conn_take(conn, len);
}

/* Many small chunks are read before what they leave is moved. */
static void
conn_read_chunks(Conn *conn)
{
	ChunkedResult result = CHUNKED_PIECE;
	size_t taken = 0;

	while (result == CHUNKED_PIECE && conn->request->status == 0 && !conn->paused)
	{
		const char *piece = NULL;
		size_t used, len = 0;

		result = chunked_read(&conn->chunked, conn->in.data + taken, conn->in.len - taken, &used, &piece, &len);
		taken += used;
		if (result == CHUNKED_PIECE)
			exchange_body(conn->request, piece, len);
	}
	switch (result)
	{
		case CHUNKED_MORE:
		case CHUNKED_PIECE:
			conn_take(conn, taken);
			break;
		case CHUNKED_END:
			conn_end_body(conn, taken);
			break;
		case CHUNKED_TRAILER:
			conn_refuse(conn, 400, "a body in chunks may have no trailers here");
			break;
		case CHUNKED_MALFORMED:
			conn_refuse(conn, 400, "the body's chunks are malformed");
			break;
	}
}

static bool
conn_read_body(Conn *conn)
{
	if (conn->request->status != 0)
		conn_enter(conn, CONN_ANSWER); /* answered early: the rest is not read, and the connection ends */
	else if (conn->in.len == 0 || conn->paused)
		return false;
	else if (conn->request->head.chunked)
		conn_read_chunks(conn);
	else
		conn_read_measured(conn);
	return true;
}

static bool
conn_may_read(const Conn *conn)
{
	switch (conn->state)
	{
		case CONN_HEAD:
			return conn->in.len <= (size_t) gateway.config.max_header_bytes;
		case CONN_BODY:
			return !conn->paused;
		case CONN_HANDSHAKE:
		case CONN_LINGER:
			return true;
		default:
			return false;
	}
}

static void
conn_shake_hands(Conn *conn)
{
	char byte = 0;
	ssize_t got;

	if (!conn->first_byte_seen)
	{
		got = recv(conn->stream.fd, &byte, 1, MSG_PEEK);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			return;
		if (got <= 0)
		{
			conn->state = CONN_DEAD;
			return;
		}
		conn->first_byte_seen = true;
		if (byte != CONN_TLS_RECORD)
		{
			tls_free(&conn->stream);
			conn_refuse(conn, 400, "this address speaks HTTPS");
			return;
		}
	}
	switch (stream_handshake(&conn->stream))
	{
		case 1:
			conn_enter(conn, CONN_HEAD);
			break;
		case STREAM_BROKEN:
			conn->state = CONN_DEAD;
			break;
		default:
			break;
	}
}

static bool
conn_read(Conn *conn)
{
	ssize_t got;

	if (!conn_may_read(conn) || conn->drained)
		return false;
	if (conn->state == CONN_HANDSHAKE)
	{
		conn_shake_hands(conn);
		return conn->state != CONN_HANDSHAKE;
	}
	got = stream_read(&conn->stream, conn_bytes, sizeof(conn_bytes));
	if (got == STREAM_AGAIN)
		return false;
	if (got <= 0)
	{
		conn->state = CONN_DEAD; /* whatever was complete has been answered before */
		return true;
	}
	conn->read += got;
	conn->drained = conn->stream.ssl == NULL && (size_t) got < sizeof(conn_bytes);
	if (conn->state == CONN_LINGER)
		return true;
	if (conn->state == CONN_HEAD && conn->served && conn->in.len == 0)
		conn->since = conn_now();
	buf_put(&conn->in, conn_bytes, (size_t) got);
	if (buf_failed(&conn->in) && conn_stop_reading(conn))
		request_out_of_memory(conn->request);
	return true;
}

/* ---- writing ---- */

/* The answer is with the socket: on with the next request, or to the end. */
static void
conn_request_done(Conn *conn)
{
	bool close = conn->request->close;

	request_gone(conn->request);
	conn->request = NULL;
	conn->answered = false;
	conn->served = true;
	conn->paused = false;
	conn_enter(conn, close ? CONN_LINGER : CONN_HEAD);
	if (close)
	{
		stream_end(&conn->stream);
		buf_free(&conn->in);
	}
	buf_free(&conn->out);
}

static bool
conn_has_output(const Conn *conn)
{
	return conn->out.len > 0 || conn->rest.iov_len > 0;
}

/* Bytes that the socket takes of `out` and, behind it, of `rest`; or what stream_write() says. */
static ssize_t
conn_send(Conn *conn)
{
	struct iovec parts[2] = {{conn->out.data + conn->out_written, conn->out.len - conn->out_written}, conn->rest};

	if (conn->rest.iov_len == 0)
		return stream_write(&conn->stream, parts[0].iov_base, parts[0].iov_len);
	return stream_write_parts(&conn->stream, parts, 2);
}

static void
conn_sent(Conn *conn, size_t len)
{
	size_t first = conn->out.len - conn->out_written;

	conn->written += (int64_t) len;
	first = len < first ? len : first;
	conn->out_written += first;
	if (len > first)
	{
		conn->rest.iov_base = (char *) conn->rest.iov_base + (len - first);
		conn->rest.iov_len -= len - first;
	}
	if (conn->out_written == conn->out.len)
		conn->out.len = conn->out_written = 0;
}

static bool
conn_write(Conn *conn)
{
	bool waiting = conn->request == NULL || conn->request->status == 0 || conn->answered;
	ssize_t sent;

	/* TLS makes a record of each piece: the head and the beginning of the body are one. */
	if (!conn_has_output(conn) && !waiting)
		conn->answered = request_fill(conn->request, &conn->out, conn->stream.ssl == NULL ? &conn->rest : NULL);
	if (buf_failed(&conn->out))
	{
		conn->state = CONN_DEAD;
		return true;
	}
	if (!conn_has_output(conn))
		return false;
	sent = conn_send(conn);
	if (sent == STREAM_AGAIN)
		return false;
	if (sent < 0)
	{
		conn->state = CONN_DEAD;
		return true;
	}
	conn_sent(conn, (size_t) sent);
	if (!conn_has_output(conn) && conn->answered)
		conn_request_done(conn);
	return true;
}

/* ---- turns ---- */

static void
conn_update(Conn *conn)
{
	int events = 0;

	/* Until more comes than we want, the loop goes on watching: changing what it watches costs more than a request. */
	if (conn_may_read(conn) || conn->stream.wants_read || (conn->state == CONN_ANSWER && conn->drained))
		events |= UV_READABLE;
	if (conn_has_output(conn) || conn->woken || conn->stream.wants_write)
		events |= UV_WRITABLE;
	if (conn->state == CONN_HEAD && conn->in.len == 0)
		buf_free(&conn->in); /* an idle connection holds no memory */
	conn_watch(conn, events);
}

static void
conn_on_poll(uv_poll_t *poll, int status, int events)
{
	Conn *conn = (Conn *) poll;
	bool progress = true, alive = true;
	int64_t written = conn->written;

	if (status < 0)
		conn->state = CONN_DEAD;
	conn->in_turn = true;
	conn->drained = false;
	for (int turn = 0; progress && alive && conn->state != CONN_DEAD; turn++)
	{
		conn->woken = turn == CONN_TURNS || conn->written - written >= CONN_SHARE;
		if (conn->woken)
			break;
		progress = conn_write(conn);
		if (conn->state == CONN_HEAD)
			progress |= conn_read_head(conn, &alive);
		else if (conn->state == CONN_BODY)
			progress |= conn_read_body(conn);
		if (alive && !progress)
			progress = conn_read(conn);
	}
	if (!alive)
		return;
	conn->in_turn = false;
	if (conn->state == CONN_DEAD)
		conn_close(conn);
	else
		conn_update(conn);
}

/* ---- time ---- */

/* Bytes that the peer's side has taken: what waits in the socket does not count. */
static int64_t
conn_delivered(const Conn *conn)
{
	int queued = 0;

	if (ioctl(conn->stream.fd, SIOCOUTQ, &queued) != 0 || queued < 0)
		queued = 0;
	return conn->written - queued;
}

/* Too little has moved since the window began; a window that was good enough is followed by the next. */
static bool
conn_is_stalled(Conn *conn, int64_t total)
{
	uint64_t window_ms = (uint64_t) gateway.config.stall_seconds * 1000;

	if (conn_now() - conn->since < window_ms)
		return false;
	if (total - conn->moved < (int64_t) gateway.config.stall_seconds * gateway.config.min_rate_bytes)
		return true;
	conn->since = conn_now();
	conn->moved = total;
	return false;
}

static void
conn_time_out(Conn *conn, int status, const char *what)
{
	log_event(LOG_INFO, "connection timed out", LOG_STR("peer", conn->address), LOG_STR("reason", what));
	metrics.http_timeouts++;
	if (status == 0)
		conn_abort(conn);
	else
		conn_refuse(conn, status, what);
}

static void
conn_tick(Conn *conn)
{
	uint64_t waited = conn_now() - conn->since;
	bool due = waited >= (uint64_t) gateway.config.head_seconds * 1000;

	switch (conn->state)
	{
		case CONN_HANDSHAKE:
			if (due)
				conn_time_out(conn, 0, "the TLS handshake took too long");
			break;
		case CONN_HEAD:
			if (conn->in.len > 0 && due)
				conn_time_out(conn, 408, "the head of the request took too long");
			else if (conn->in.len == 0 &&
					 (conn->served ? waited >= (uint64_t) gateway.config.keepalive_seconds * 1000 : due))
				conn_abort(conn);
			break;
		case CONN_BODY:
			if (conn->paused)
				conn_enter(conn, CONN_BODY);
			else if (conn_is_stalled(conn, conn->read))
				conn_time_out(conn, 408, "the body of the request came too slowly");
			break;
		case CONN_ANSWER:
			if (!conn_has_output(conn) && !conn->woken) /* it is the database that is slow */
			{
				conn->since = conn_now();
				conn->moved = conn_delivered(conn);
			}
			else if (conn_is_stalled(conn, conn_delivered(conn)))
				conn_time_out(conn, 0, "the answer was read too slowly");
			break;
		case CONN_LINGER:
			if (waited >= CONN_LINGER_MS)
				conn_abort(conn);
			break;
		case CONN_DEAD:
			break;
	}
}

void
conn_tick_all(void)
{
	for (Conn *conn = conns, *next; conn != NULL; conn = next)
	{
		next = conn->next;
		conn_tick(conn);
	}
}
