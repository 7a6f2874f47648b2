/*
 * session.c - the life of one WebSocket, and its input. output.c sends; room/admission.c asks the database whether the
 * account may be here; v1/ and v2/ handle the messages.
 *
 * A session outlives its connection while queries that refer to it are under way.
 */
#include "ws/session/session.h"

#include "common/utf8.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "support/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_KEEP_BYTES	  262144 /* of buffers between messages */
#define SESSION_CLOSE_SECONDS 5
#define SESSION_MAX_GREETING  8192 /* bytes of a message in state GREETING */
#define SESSION_RENEW_MS	  1000

static const SocketEvents session_events;

/* ---- life ---- */

Session *
session_create(Socket *socket, const Protocol *protocol, int64_t sheet_id, const char *link)
{
	static uint64_t last_number;
	Session *session = calloc(1, sizeof(Session));

	if (session == NULL)
		return NULL;
	session->number = ++last_number;
	session->protocol = protocol;
	session->socket = socket;
	session->sheet_id = sheet_id;
	snprintf(session->link, sizeof(session->link), "%s", link);
	session->out_last = &session->out;
	socket_set_user(socket, &session_events, session);
	metrics.sessions_opened++;
	return session;
}

void
session_set_state(Session *session, SessionState state)
{
	bool expected = state == SESSION_CLOSING ? session->state != SESSION_CLOSING : state == session->state + 1;

	if (expected)
	{
		session->state = state;
		return;
	}
	log_event(LOG_ERROR, "unexpected state of a session", LOG_INT("from", session->state), LOG_INT("to", state));
	session_close(session, CLOSE_RESTART, "internal error: come again");
}

LockHolder
session_lock_holder(const Session *session)
{
	return (LockHolder){session->uid, session->protocol->locks_itself ? session->number : 0};
}

bool
session_is_open(const Session *session)
{
	return session->socket != NULL && session->state != SESSION_CLOSING;
}

static void
session_free(Session *session)
{
	session_free_frames(session);
	if (session->protocol->free != NULL)
		session->protocol->free(session);
	free(session->guest);
	free(session->name);
	free(session->sheet_name);
	buf_free(&session->name_json);
	buf_free(&session->rx);
	buf_free(&session->scratch);
	free(session);
}

void
session_query_done(Session *session)
{
	if (--session->queries == 0 && session->socket == NULL)
		session_free(session);
}

static void
session_on_gone(void *user)
{
	Session *session = user;

	session->socket = NULL;
	if (session->protocol->gone != NULL)
		session->protocol->gone(session);
	fanout_detach(&session->cursor);
	if (session->room != NULL)
		session->protocol->leave(session);
	session->room = NULL;
	metrics_count_close(session->close_code);
	log_event(LOG_INFO, "session closed", LOG_STR("request", session->request_id), LOG_STR("peer", session->peer),
			  LOG_INT("uid", session->uid), LOG_INT("sheet", session->sheet_id), LOG_INT("code", session->close_code),
			  LOG_STR("reason", session->close_reason));
	session_free_frames(session); /* also if a query keeps the session */
	session->queries++;
	session_query_done(session);
}

static void
session_begin_close(Session *session)
{
	/* A session that is joining has not been sent what comes before its position in the stream. */
	if (session->state != SESSION_LIVE)
		session_leave_stream(session);
	if (session->state == SESSION_JOINING && session->protocol->stop_joining != NULL)
		session->protocol->stop_joining(session);
	session_set_state(session, SESSION_CLOSING);
	if (session->room != NULL)
		session->protocol->closing(session);
	if (session->cursor.block != NULL)
		session->stream_end = session->stream->end;
	socket_end_after(session->socket, SESSION_CLOSE_SECONDS);
	socket_pause(session->socket, false); /* to read the peer's close frame */
	session->paused = false;
	session_want_write(session);
}

void
session_close(Session *session, int code, const char *reason)
{
	size_t len;

	if (!session_is_open(session))
		return;
	session->close_code = code;
	snprintf(session->close_reason, sizeof(session->close_reason), "%s", reason);
	/* A reason that was cut short must end with a whole character. */
	for (len = strlen(session->close_reason); len > 0 && !utf8_check(session->close_reason, len, NULL); len--)
		session->close_reason[len - 1] = '\0';
	session_begin_close(session);
}

void
session_fail(Session *session)
{
	session_close(session, CLOSE_ERROR, "out of memory");
	if (session->socket != NULL)
		session_leave_stream(session);
}

bool
session_close_ended(Session *session)
{
	if (session->ends == 0 || uv_now(&gateway.loop) < session->ends)
		return false;
	session_close(session, CLOSE_UNAUTHORIZED, "the link has ended");
	return true;
}

/* ---- input ---- */

static void
session_on_control(void *user, const FramePiece *piece)
{
	Session *session = user;
	uint64_t now = uv_now(&gateway.loop);

	switch (piece->op)
	{
		case FRAME_PING:
			session_answer_ping(session, piece->data, piece->len);
			break;
		case FRAME_PONG:
			/* Clients may send pongs at any rate. */
			if (session->room == NULL || now - session->renewed < SESSION_RENEW_MS)
				break;
			session->renewed = now;
			session->protocol->renew(session);
			break;
		default: /* the peer's close frame, its last one */
			session->peer_code = frame_close_code(piece->data, piece->len);
			if (session->close_sent)
			{
				session_want_write(session);
				break;
			}
			session_drop_queue(session);
			session_leave_stream(session);
			if (session->state != SESSION_CLOSING)
				session_begin_close(session);
	}
}

static void
session_on_invalid(void *user, const char *reason)
{
	session_close(user, CLOSE_PROTOCOL, reason);
}

static void
session_handle(Session *session, const char *data, size_t len, bool binary)
{
	session->protocol->receive(session, data, len, binary);
	/* A rare large message does not keep its memory. */
	if (session->scratch.size > SESSION_KEEP_BYTES)
		buf_free(&session->scratch);
}

static void
session_on_receive(void *user, const FramePiece *piece)
{
	Session *session = user;
	size_t limit = (size_t) gateway.config.max_frame_bytes;
	bool binary = piece->op == FRAME_BINARY;

	if (piece->first)
	{
		session->rx.len = 0;
		session->rx_incomplete = false;
	}
	if (session->state == SESSION_GREETING)
		limit = limit < SESSION_MAX_GREETING ? limit : SESSION_MAX_GREETING;
	else if (session->state != SESSION_LIVE)
		session->rx_incomplete = true; /* clients send nothing before onConn or hello */
	if (session->rx_incomplete)
		return;
	if (session_close_ended(session))
		return; /* what is sent after the end is not read, whenever the timer runs */
	if (session->rx.len + piece->len > limit)
	{
		session_close(session, CLOSE_TOO_BIG, "the message is too large");
		return;
	}
	if (piece->first && piece->last)
	{
		session_handle(session, piece->data, piece->len, binary);
		return;
	}
	buf_put(&session->rx, piece->data, piece->len);
	if (buf_failed(&session->rx))
		session_fail(session);
	else if (piece->last)
	{
		session_handle(session, session->rx.data, session->rx.len, binary);
		session->rx.len = 0;
		if (session->rx.size > SESSION_KEEP_BYTES)
			buf_free(&session->rx);
	}
}

static const SocketEvents session_events = {
	.receive = session_on_receive,
	.control = session_on_control,
	.invalid = session_on_invalid,
	.writable = session_on_writable,
	.ping = session_on_ping_due,
	.gone = session_on_gone,
};
