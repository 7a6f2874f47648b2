/*
 * output.c - the output of one session: its queue of private frames, the room's stream, and the close frame.
 *
 * Order: the rest of a frame of which the socket has taken a part; private frames; frames of the room's stream; and in
 * state CLOSING the close frame. Control frames go through the private queue, so they never split a frame.
 *
 * Frames are written as soon as they are published. Waiting for POLLOUT first would cost two epoll_ctl() for each
 * receiver and commit; the loop watches the socket only while that is full.
 */
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/session/session.h"

#include <stdlib.h>
#include <string.h>

#define SESSION_PONGS_MAX	8		/* queued */
#define SESSION_WRITE_SHARE 1048576 /* bytes for one receiver, of either kind of frames, before the next one's turn */
#define SESSION_PART_BYTES	65536	/* of a text that is sent in parts */

typedef enum WriteResult
{
	WRITTEN_ALL,
	WRITTEN_PART, /* the socket is full, or has had its share */
	WRITTEN_FAILED
} WriteResult;

/* ---- the queue ---- */

/* Returns a frame that is not queued yet, NULL when there is no memory. last: it ends its message. */
static PrivateFrame *
session_make_frame(FrameOp op, bool last, const void *payload, size_t len)
{
	unsigned char header[FRAME_SENT_HEADER_MAX];
	size_t header_len = frame_header(header, op, len);
	size_t size = op == FRAME_PONG ? FRAME_CONTROL_MAX : len; /* a pong's payload may be replaced */
	PrivateFrame *frame = malloc(sizeof(PrivateFrame) + header_len + size);

	if (frame == NULL)
		return NULL;
	*frame = (PrivateFrame){.len = header_len + len, .pong = op == FRAME_PONG};
	if (!last)
		frame_continues(header);
	memcpy(frame->data, header, header_len);
	if (len > 0)
		memcpy(frame->data + header_len, payload, len);
	return frame;
}

static void
session_insert_frame(Session *session, PrivateFrame **link, PrivateFrame *frame)
{
	session->out_bytes += sizeof(PrivateFrame) + frame->len;
	session->pongs += frame->pong;
	frame->next = *link;
	*link = frame;
	if (frame->next == NULL)
		session->out_last = &frame->next;
}

/* frame NULL: there was no memory for it. */
static void
session_add_frame(Session *session, PrivateFrame *frame)
{
	if (frame == NULL)
	{
		session_fail(session);
		return;
	}
	session_insert_frame(session, session->out_last, frame);
	session_want_write(session);
}

static void
session_drop_frame(Session *session, PrivateFrame **link)
{
	PrivateFrame *frame = *link;

	snapshot_reader_end(&frame->reader);
	session->out_bytes -= sizeof(PrivateFrame) + frame->len;
	session->pongs -= frame->pong;
	*link = frame->next;
	if (*link == NULL)
		session->out_last = link;
	free(frame);
}

void
session_free_frames(Session *session)
{
	while (session->out != NULL)
		session_drop_frame(session, &session->out);
}

void
session_drop_queue(Session *session)
{
	bool begun = session->out_written > 0 || (session->out != NULL && session->out->begun);
	PrivateFrame **link = begun ? &session->out->next : &session->out;

	while (*link != NULL)
		session_drop_frame(session, link);
}

void
session_want_write(Session *session)
{
	if (session->socket != NULL)
		socket_want_write(session->socket);
}

/* ---- messages ---- */

/*
 * Nothing is queued in state CLOSING. The session may miss edits of the stream from then on, and an acknowledgement
 * would tell the client that it has all edits up to its seq.
 */

void
session_send(Session *session, Buf *payload)
{
	FrameOp op = session->binary ? FRAME_BINARY : FRAME_TEXT;

	if (session_is_open(session))
		session_add_frame(session,
						  payload->data != NULL ? session_make_frame(op, true, payload->data, payload->len) : NULL);
	buf_free(payload);
}

void
session_send_part(Session *session, const Buf *payload, bool last)
{
	FrameOp op = session->out_open ? FRAME_CONTINUATION : FRAME_TEXT;

	if (!session_is_open(session))
		return;
	session->out_open = !last;
	session_add_frame(session,
					  payload->data != NULL ? session_make_frame(op, last, payload->data, payload->len) : NULL);
}

/* Others need the snapshot's memory. */
static void
session_end_text(void *arg)
{
	session_close(arg, CLOSE_SLOW, "the sheet has not been read in time: come again");
}

void
session_send_text(Session *session, Snapshot *snapshot, const SnapshotText *text)
{
	PrivateFrame *frame;

	if (!session_is_open(session))
		return;
	frame = session_make_frame(FRAME_CONTINUATION, false, NULL, 0);
	if (frame != NULL)
	{
		frame->len = 0; /* the reader's text is written instead */
		snapshot_reader_begin(&frame->reader, snapshot, text, session_end_text, session);
	}
	session_add_frame(session, frame);
}

/* Inserts a frame with the next part of the first frame's text before that frame, or drops it at the end of the text.
 * Returns false when there is no memory. */
static bool
session_unroll_text(Session *session)
{
	const char *data;
	size_t len = snapshot_reader_take(&session->out->reader, SESSION_PART_BYTES, &data);
	PrivateFrame *frame;

	if (len == 0)
	{
		session_drop_frame(session, &session->out);
		return true;
	}
	frame = session_make_frame(FRAME_CONTINUATION, false, data, len);
	if (frame != NULL)
		session_insert_frame(session, &session->out, frame);
	return frame != NULL;
}

void
session_answer_ping(Session *session, const char *payload, size_t len)
{
	PrivateFrame *pong = session->last_pong;

	if (session->close_sent)
		return;
	/* Only the last ping must be answered (RFC 6455 5.5.3): a peer that reads nothing gets no more pongs. The last one
	 * has not begun, since others are before it. */
	if (session->pongs >= SESSION_PONGS_MAX)
	{
		session->out_bytes -= pong->len;
		pong->len = frame_header(pong->data, FRAME_PONG, len) + len;
		memcpy(pong->data + pong->len - len, payload, len);
		session->out_bytes += pong->len;
		return;
	}
	pong = session_make_frame(FRAME_PONG, true, payload, len);
	if (pong == NULL)
		return; /* the next ping will do */
	session->last_pong = pong;
	session_add_frame(session, pong);
}

void
session_on_ping_due(void *user)
{
	Session *session = user;
	PrivateFrame *ping = session->close_sent ? NULL : session_make_frame(FRAME_PING, true, NULL, 0);

	if (ping != NULL)
		session_add_frame(session, ping);
}

void
session_leave_stream(Session *session)
{
	FanoutCursor *cursor = &session->cursor;
	const char *data;
	size_t len;

	if (cursor->block != NULL && cursor->cut > 0 && fanout_peek(cursor, &data, &len))
	{
		PrivateFrame *frame = malloc(sizeof(PrivateFrame) + cursor->cut);

		if (frame != NULL)
		{
			*frame = (PrivateFrame){.len = cursor->cut, .begun = true};
			memcpy(frame->data, data, cursor->cut);
			session_insert_frame(session, &session->out, frame);
		}
		else
			socket_abort(session->socket); /* nothing may follow a part of a frame */
	}
	fanout_detach(cursor);
}

/* ---- writing ---- */

/* Writes frames of the room's stream; only_begun: only the rest of a frame of which the socket has taken a part. */
static WriteResult
session_write_stream(Session *session, bool only_begun)
{
	FanoutCursor *cursor = &session->cursor;
	size_t share = SESSION_WRITE_SHARE;
	const char *data;
	size_t len;

	while (cursor->block != NULL && (!only_begun || cursor->cut > 0) && fanout_peek(cursor, &data, &len))
	{
		ssize_t taken;

		if (only_begun)
			len = cursor->cut;
		else if (session->state == SESSION_CLOSING && session->stream_end - fanout_position(cursor) < len)
			len = (size_t) (session->stream_end - fanout_position(cursor));
		if (len == 0)
			break;
		taken = socket_write(session->socket, data, len);
		if (taken < 0)
			return WRITTEN_FAILED;
		metrics.bytes_sent += (uint64_t) taken;
		fanout_advance(cursor, (size_t) taken);
		if ((size_t) taken < len || (size_t) taken >= share)
			return WRITTEN_PART;
		share -= (size_t) taken;
	}
	return WRITTEN_ALL;
}

static WriteResult
session_write_private(Session *session)
{
	size_t share = SESSION_WRITE_SHARE;

	while (session->out != NULL)
	{
		PrivateFrame *frame = session->out;
		size_t len = frame->len - session->out_written;
		ssize_t taken;

		if (frame->reader.snapshot != NULL)
		{
			if (!session_unroll_text(session))
				return WRITTEN_FAILED;
			continue;
		}
		taken = socket_write(session->socket, frame->data + session->out_written, len);
		if (taken < 0)
			return WRITTEN_FAILED;
		metrics.bytes_sent += (uint64_t) taken;
		session->out_written += (size_t) taken;
		if ((size_t) taken < len)
			return WRITTEN_PART;
		session->out_written = 0;
		session_drop_frame(session, &session->out);
		if (session->protocol->written != NULL)
			session->protocol->written(session);
		if (len >= share)
			return WRITTEN_PART;
		share -= len;
	}
	return WRITTEN_ALL;
}

static WriteResult
session_write(Session *session)
{
	const Protocol *protocol = session->protocol;
	WriteResult written = session_write_stream(session, true);

	if (written == WRITTEN_ALL)
		written = session_write_private(session);
	if (written == WRITTEN_ALL && session->state >= SESSION_LIVE &&
		(protocol->holds_stream == NULL || !protocol->holds_stream(session)))
		written = session_write_stream(session, false);
	if (written == WRITTEN_ALL && socket_has_rest(session->socket))
		written = WRITTEN_PART;
	return written;
}

void
session_deliver(Session *session)
{
	if (session->blocked)
		return;
	session->blocked = session_write(session) != WRITTEN_ALL;
	if (session->blocked)
		session_want_write(session); /* it also notices a broken connection */
}

/* Queues the close frame, with the peer's code if the peer has closed first. Returns false when there is no memory. */
static bool
session_put_close(Session *session)
{
	int code = session->close_code != 0 ? session->close_code : session->peer_code;
	char payload[2 + sizeof(session->close_reason)] = {(char) (code >> 8), (char) code};
	size_t reason_len = strlen(session->close_reason);
	PrivateFrame *frame;

	memcpy(payload + 2, session->close_reason, reason_len);
	session_leave_stream(session);
	frame = session_make_frame(FRAME_CLOSE, true, payload, code == CLOSE_NO_CODE ? 0 : 2 + reason_len);
	if (frame == NULL)
		return false;
	session_add_frame(session, frame);
	session->close_sent = true;
	return true;
}

bool
session_on_writable(void *user)
{
	Session *session = user;
	WriteResult written;

	session->blocked = false;
	written = session_write(session);
	if (written == WRITTEN_ALL && session->state == SESSION_CLOSING && !session->close_sent)
		written = session_put_close(session) ? session_write(session) : WRITTEN_FAILED;
	if (written == WRITTEN_FAILED)
		return false;
	session->blocked = written == WRITTEN_PART;
	if (session->blocked)
		session_want_write(session);
	else if (session->close_sent && (session->peer_code != 0 || session->close_code == CLOSE_PROTOCOL))
		socket_finish(session->socket);
	return session->blocked || !session->close_sent || session->peer_code == 0;
}
