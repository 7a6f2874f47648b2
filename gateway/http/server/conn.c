/*
 * conn.c - a connection that speaks HTTP/1.1 (RFC 9112).
 *
 * Requests are handled one after the other. Pipelined bytes wait in `in`: a head of the largest size and a read.
 *
 * States: HANDSHAKE (TLS) -> HEAD -> BODY -> ANSWER -> HEAD ..., and LINGER at the end: our side is closed, and input
 * is discarded for a moment, because closing a socket with unread bytes resets the connection and discards the answer.
 * DEAD connections end, and those that become a WebSocket (UPGRADE) are handed over, at the end of their next event.
 *
 * The socket is read while a head or a body is due. Between a request and its answer it is paused: the client may have
 * ended its side (RFC 9112 9.6), which would end the connection.
 *
 * Slow clients: a head must arrive within head-seconds; bodies and answers must move min-rate-bytes a second on average
 * over stall-seconds.
 */
#include "http/server/conn.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "http/server/head.h"
#include "support/log.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define CONN_STEPS		 16	   /* requests and writes in one iteration of the loop ... */
#define CONN_WRITE_BYTES 65536 /* ... and bytes written */
#define CONN_LINGER_MS	 2000  /* for a client that still sends to find the answer */

typedef enum ConnState
{
	CONN_HANDSHAKE,
	CONN_HEAD,
	CONN_BODY,
	CONN_ANSWER,
	CONN_LINGER,
	CONN_UPGRADE,
	CONN_DEAD
} ConnState;

struct Conn
{
	Conn *next, *previous;
	Transport *transport;
	Place *place;
	ConnState state;
	bool admin;		  /* accepted at admin-address */
	bool woken;		  /* to be called again without an event of the socket */
	bool in_callback; /* conn_run() is running */
	bool paused;	  /* the body is not read for now */
	bool served;	  /* a request was answered */
	bool has_answer;  /* conn_answer() was called for this request */
	bool filled;	  /* the last piece of the answer is in `out` */
	bool close;		  /* the connection ends after this answer */
	Buf in;
	size_t seen; /* bytes of an incomplete head that were searched; 0: none has begun */
	Buf out;
	size_t out_written;
	struct iovec rest; /* of the answer, after `out` */
	struct Request *request;
	Chunked body;
	uint64_t since;	 /* ms: start of the state, or of the interval in which bytes have to move */
	int64_t read;	 /* bytes, ever */
	int64_t written; /* bytes, ever */
	int64_t moved;	 /* read or written, at `since` */
};

const ConnHandler *conn_handler;

static Conn *conns;

static bool conn_received(void *user, char *bytes, size_t len);
static bool conn_run(void *user);
static void conn_gone(void *user);

/* ---- life ---- */

static PlaceUse
conn_use(const void *owner)
{
	const Conn *conn = owner;

	if (conn->state == CONN_ANSWER && !conn->has_answer)
		return PLACE_SERVED;
	return conn->state <= CONN_HEAD ? PLACE_IDLE : PLACE_BUSY;
}

void
conn_open(int fd, Place *place, ConnDoor door)
{
	static const PlaceOwner owner = {conn_use, conn_abort};
	static const TransportEvents events = {conn_received, conn_run, conn_gone};
	Transport *transport = transport_open(fd, door.tls);
	Conn *conn = transport != NULL ? calloc(1, sizeof(Conn)) : NULL;

	if (transport == NULL)
	{
		place_give_up(place);
		return;
	}
	transport_set_user(transport, &events, conn);
	if (conn == NULL)
	{
		place_give_up(place);
		transport_abort(transport);
		return;
	}
	conn->transport = transport;
	conn->place = place;
	place_set_owner(place, &owner, conn);
	conn->admin = door.admin;
	conn->state = door.tls ? CONN_HANDSHAKE : CONN_HEAD;
	conn->since = uv_now(&gateway.loop);
	conn->next = conns;
	if (conns != NULL)
		conns->previous = conn;
	conns = conn;
}

/* Frees the connection. The transport and the place stay the caller's. */
static void
conn_forget(Conn *conn)
{
	if (conn->request != NULL)
		conn_handler->gone(conn->request);
	if (conn->next != NULL)
		conn->next->previous = conn->previous;
	if (conn->previous != NULL)
		conn->previous->next = conn->next;
	else
		conns = conn->next;
	buf_free(&conn->in);
	buf_free(&conn->out);
	free(conn);
}

static void
conn_gone(void *user)
{
	Conn *conn = user;

	if (conn == NULL)
		return; /* there was no memory for it */
	place_give_up(conn->place);
	conn_forget(conn);
}

static void
conn_enter(Conn *conn, ConnState state)
{
	conn->state = state;
	conn->since = uv_now(&gateway.loop);
	conn->moved = state == CONN_ANSWER ? conn->written : conn->read;
}

/* ---- for requests ---- */

Place *
conn_place(const Conn *conn)
{
	return conn->place;
}

void
conn_wake(Conn *conn)
{
	conn->woken = true;
	if (!conn->in_callback)
		transport_wake(conn->transport);
}

void
conn_answer(Conn *conn, bool close)
{
	conn->has_answer = true;
	conn->close = close;
	conn_wake(conn);
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
conn_upgrade(Conn *conn)
{
	conn->state = CONN_UPGRADE;
	conn_wake(conn);
}

void
conn_abort(void *arg)
{
	Conn *conn = arg;

	conn->state = CONN_DEAD;
	conn_wake(conn);
}

/* ---- reading ---- */

/* Without memory for a request the connection ends. */
static bool
conn_has_request(Conn *conn)
{
	if (conn->request == NULL)
		conn->request = conn_handler->create(conn, conn->admin);
	conn_enter(conn, conn->request != NULL ? CONN_ANSWER : CONN_DEAD);
	return conn->request != NULL;
}

/* Answers an error and ends the connection. Without memory for an answer the connection ends at once. */
static void
conn_refuse(Conn *conn, int status, const char *reason)
{
	buf_free(&conn->in);
	if (conn_has_request(conn))
		conn_handler->refuse(conn->request, status, reason);
}

static void
conn_take(Conn *conn, size_t len)
{
	if (len == 0)
		return;
	conn->in.len -= len;
	memmove(conn->in.data, conn->in.data + len, conn->in.len);
	conn->seen = 0;
}

/* Begins the request whose head is the first len bytes of `in`. */
static void
conn_begin_request(Conn *conn, size_t len)
{
	ConnNext next;

	if (!conn_has_request(conn))
		return;
	next = conn_handler->begin(conn->request, conn->in.data, len, &conn->body);
	conn_take(conn, len);
	if (next == CONN_NEXT_CONTINUE && conn->in.len == 0)
		buf_puts(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
	if (next == CONN_NEXT_CONTINUE || next == CONN_NEXT_BODY)
		conn_enter(conn, CONN_BODY);
}

static bool
conn_read_head(Conn *conn)
{
	long limit = gateway.config.max_header_bytes;
	size_t blank = 0;
	bool is_long;
	long len;

	/* Empty lines before a request are ignored (RFC 9112 2.2): all at once, as there may be thousands. */
	while (conn->in.len - blank >= 2 && memcmp(conn->in.data + blank, "\r\n", 2) == 0)
		blank += 2;
	conn_take(conn, blank);
	if (conn->in.len == 0 || (conn->in.len == 1 && conn->in.data[0] == '\r'))
		return false;
	if (conn->served && conn->seen == 0)
		conn->since = uv_now(&gateway.loop); /* the head begins */
	len = head_find_end(conn->in.data, conn->in.len, &conn->seen);
	is_long = len > limit || (len == 0 && conn->in.len > (size_t) limit);
	if (len < 0)
		conn_refuse(conn, 400, "the head of the request holds a control character or a line without CRLF");
	else if (is_long && memchr(conn->in.data, '\n', conn->in.len) == NULL)
		conn_refuse(conn, 414, "the address is longer than max-header-bytes");
	else if (is_long)
		conn_refuse(conn, 431, "the headers are longer than max-header-bytes");
	else if (len > 0)
		conn_begin_request(conn, (size_t) len);
	else
		return false;
	return true;
}

/* Reads as many pieces as there are before it moves the rest of `in`: they may be small. */
static bool
conn_read_body(Conn *conn)
{
	ChunkedResult result = CHUNKED_PIECE;
	size_t taken = 0;

	if (!conn->has_answer && (conn->in.len == 0 || conn->paused))
		return false;
	while (result == CHUNKED_PIECE && !conn->has_answer && !conn->paused)
	{
		const char *piece = NULL;
		size_t used, len = 0;

		result = chunked_read(&conn->body, conn->in.data + taken, conn->in.len - taken, &used, &piece, &len);
		taken += used;
		if (result == CHUNKED_PIECE)
			conn_handler->body(conn->request, piece, len);
		if (conn->body.measured && conn->body.left == 0)
			result = CHUNKED_END;
	}
	if (result == CHUNKED_MALFORMED)
		conn_refuse(conn, 400, "the body's chunks or trailers are malformed, or have more than 4096 bytes to ignore");
	else
	{
		conn_take(conn, taken);
		if (result == CHUNKED_END || conn->has_answer) /* an early answer: the rest is not read */
			conn_enter(conn, CONN_ANSWER);
		if (result == CHUNKED_END)
			conn_handler->body_end(conn->request);
	}
	return true;
}

static bool
conn_may_read(const Conn *conn)
{
	if (conn->state == CONN_HEAD)
		return conn->in.len <= (size_t) gateway.config.max_header_bytes;
	if (conn->state == CONN_BODY)
		return !conn->paused;
	return conn->state == CONN_HANDSHAKE || conn->state == CONN_LINGER;
}

static bool
conn_received(void *user, char *bytes, size_t len)
{
	Conn *conn = user;

	conn->read += (int64_t) len;
	if (conn->state == CONN_HANDSHAKE && !transport_is_tls(conn->transport))
		conn_refuse(conn, 400, "this address speaks HTTPS");
	else if (conn->state == CONN_HANDSHAKE)
		conn_enter(conn, CONN_HEAD);
	if (conn->state != CONN_LINGER && !conn->close)
		buf_put(&conn->in, bytes, len);
	if (buf_failed(&conn->in))
		conn_refuse(conn, 503, "out of memory");
	return conn_run(conn);
}

/* ---- writing ---- */

/* The answer was written: read the next request, or end. */
static void
conn_request_done(Conn *conn)
{
	conn_handler->gone(conn->request);
	conn->request = NULL;
	conn->has_answer = conn->filled = conn->paused = false;
	conn->served = true;
	conn_enter(conn, conn->close ? CONN_LINGER : CONN_HEAD);
	if (conn->close)
	{
		transport_end(conn->transport);
		buf_free(&conn->in);
	}
	buf_free(&conn->out);
}

static bool
conn_has_output(const Conn *conn)
{
	return conn->out.len > 0 || conn->rest.iov_len > 0;
}

/* Writes what is left of `out` and `rest`. Returns the bytes written, or the error of the transport. */
static ssize_t
conn_send(Conn *conn)
{
	struct iovec parts[2] = {{conn->out.data + conn->out_written, conn->out.len - conn->out_written}, conn->rest};
	ssize_t sent = conn->rest.iov_len == 0 ? transport_write(conn->transport, parts[0].iov_base, parts[0].iov_len)
										   : transport_write_parts(conn->transport, parts, 2);
	size_t first = sent > 0 && (size_t) sent < parts[0].iov_len ? (size_t) sent : parts[0].iov_len;

	if (sent < 0)
		return sent;
	conn->written += sent;
	conn->out_written += first;
	if ((size_t) sent > first)
	{
		conn->rest.iov_base = (char *) conn->rest.iov_base + ((size_t) sent - first);
		conn->rest.iov_len -= (size_t) sent - first;
	}
	if (conn->out_written == conn->out.len)
		conn->out.len = conn->out_written = 0;
	return sent;
}

static bool
conn_write(Conn *conn)
{
	ssize_t sent;

	/* TLS makes a record of each write: so the head and the beginning of the body are one. */
	if (!conn_has_output(conn) && conn->has_answer && !conn->filled)
		conn->filled =
			conn_handler->fill(conn->request, &conn->out, transport_is_tls(conn->transport) ? NULL : &conn->rest);
	if (!conn_has_output(conn) && !buf_failed(&conn->out))
		return false;
	sent = buf_failed(&conn->out) ? TRANSPORT_BROKEN : conn_send(conn);
	if (sent < 0 && sent != TRANSPORT_AGAIN)
		conn->state = CONN_DEAD;
	if (sent < 0)
		return sent != TRANSPORT_AGAIN;
	if (conn->filled && !conn_has_output(conn))
		conn_request_done(conn);
	return true;
}

/* ---- events ---- */

static void
conn_update(Conn *conn)
{
	transport_pause(conn->transport, !conn_may_read(conn));
	if (conn->woken)
		transport_wake(conn->transport);
	else if (conn_has_output(conn))
		transport_want_write(conn->transport);
	if (conn->state == CONN_HEAD && conn->in.len == 0)
		buf_free(&conn->in); /* an idle connection holds no memory */
}

/* Gives transport and place to the handler, and frees the connection. */
static void
conn_hand_over(Conn *conn)
{
	struct Request *request = conn->request;
	Transport *transport = conn->transport;
	Place *place = conn->place;
	Buf in = buf_take(&conn->in);

	conn->request = NULL;
	conn_forget(conn);
	conn_handler->upgrade(request, transport, place, in.data, in.len);
	conn_handler->gone(request);
	buf_free(&in);
}

/* Goes on as far as it can. Returns false when the connection shall end. */
static bool
conn_run(void *user)
{
	Conn *conn = user;
	bool progress = true;
	int64_t written = conn->written;

	conn->in_callback = true;
	for (int step = 0; progress && conn->state < CONN_UPGRADE; step++)
	{
		conn->woken = step == CONN_STEPS || conn->written - written >= CONN_WRITE_BYTES;
		if (conn->woken)
			break;
		progress = conn_write(conn);
		if (conn->state == CONN_HEAD)
			progress |= conn_read_head(conn);
		else if (conn->state == CONN_BODY)
			progress |= conn_read_body(conn);
	}
	conn->in_callback = false;
	if (conn->state == CONN_UPGRADE)
		conn_hand_over(conn);
	else if (conn->state != CONN_DEAD)
		conn_update(conn);
	else
		return false;
	return true;
}

/* ---- time ---- */

/* Bytes that the peer's system has acknowledged. */
static int64_t
conn_delivered(const Conn *conn)
{
	return conn->written - transport_queued(conn->transport);
}

/* Fewer bytes than required have moved in the interval that began at `since`. Starts the next interval otherwise. */
static bool
conn_is_stalled(Conn *conn, int64_t total)
{
	if (uv_now(&gateway.loop) - conn->since < (uint64_t) gateway.config.stall_seconds * 1000)
		return false;
	if (total - conn->moved < (int64_t) gateway.config.stall_seconds * gateway.config.min_rate_bytes)
		return true;
	conn->since = uv_now(&gateway.loop);
	conn->moved = total;
	return false;
}

/* status 0: nothing is answered. */
static void
conn_time_out(Conn *conn, int status, const char *reason)
{
	log_event(LOG_INFO, "connection timed out", LOG_STR("peer", place_address(conn->place)), LOG_STR("reason", reason));
	metrics.http_timeouts++;
	if (status == 0)
		conn_abort(conn);
	else
		conn_refuse(conn, status, reason);
}

static void
conn_tick(Conn *conn)
{
	uint64_t waited = uv_now(&gateway.loop) - conn->since;
	bool due = waited >= (uint64_t) gateway.config.head_seconds * 1000;
	TransportPhase phase = conn->state == CONN_HANDSHAKE ? transport_phase(conn->transport) : TRANSPORT_OPEN;
	bool idle = phase == TRANSPORT_SILENT || (conn->state == CONN_HEAD && conn->seen == 0);

	if (conn->state == CONN_HANDSHAKE && phase == TRANSPORT_OPEN)
	{
		conn_enter(conn, CONN_HEAD);
		return;
	}
	if (idle && conn->served)
		due = waited >= (uint64_t) gateway.config.keepalive_seconds * 1000;
	if ((idle && due) || (conn->state == CONN_LINGER && waited >= CONN_LINGER_MS))
		conn_abort(conn);
	else if (conn->state == CONN_HANDSHAKE && due)
		conn_time_out(conn, 0, "the TLS handshake took too long");
	else if (conn->state == CONN_HEAD && due)
		conn_time_out(conn, 408, "the head of the request took longer than head-seconds");
	else if (conn->state == CONN_BODY && conn->paused)
		conn_enter(conn, CONN_BODY);
	else if (conn->state == CONN_BODY && conn_is_stalled(conn, conn->read))
		conn_time_out(conn, 408, "the body of the request came more slowly than min-rate-bytes");
	else if (conn->state == CONN_ANSWER && !conn_has_output(conn) && !conn->woken)
	{
		conn->since = uv_now(&gateway.loop); /* it waits for the database, not for the client */
		conn->moved = conn_delivered(conn);
	}
	else if (conn->state == CONN_ANSWER && conn_is_stalled(conn, conn_delivered(conn)))
		conn_time_out(conn, 0, "the answer was read too slowly");
}

void
conn_tick_all(void)
{
	for (Conn *conn = conns; conn != NULL; conn = conn->next)
		conn_tick(conn);
}
