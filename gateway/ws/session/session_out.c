/*
 * session_out.c - the output of one session: its queue of private frames, the room's stream, and the close frame.
 *
 * Order: the rest of a frame that the socket has taken a part of; private frames; frames of the room's stream; and,
 * when the session is CLOSING, the close frame. Control frames go into the private queue, so they never split a frame.
 */
#include "ws/session/deliver.h"
#include "ws/session/frame.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/session/session.h"
#include "ws/session/socket.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

#define SESSION_PONGS_MAX	8		/* waiting to be written */
#define SESSION_WRITE_SHARE 1048576 /* bytes for one receiver before the next one has its turn */
#define SESSION_PART_BYTES	65536	/* of a text that is sent in parts */

void
session_send(Session *session, const char *payload, size_t len)
{
	session_send_message(session, payload, len, false);
}

/*
 * No private message is queued in state CLOSING: the session may miss edits of the stream from then on, and an
 * acknowledgement would tell the client that it has all edits up to its seq.
 */

/* A frame, or one of several of a message; not in the queue yet. NULL: no memory. */
static PrivateFrame *
session_make_frame(FrameOp op, bool last, const void *payload, size_t len)
{
	unsigned char header[FRAME_SENT_HEADER_MAX];
	size_t header_len = frame_header(header, op, len);
	size_t room = op == FRAME_PONG ? FRAME_CONTROL_MAX : len; /* session_set_pong() */
	PrivateFrame *frame = malloc(sizeof(PrivateFrame) + header_len + room);

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

/* frame: NULL when there was no memory for it. */
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
session_send_message(Session *session, const char *payload, size_t len, bool binary)
{
	PrivateFrame *frame = NULL;

	if (session->state == SESSION_CLOSING)
		return;
	if (payload != NULL)
		frame = session_make_frame(binary ? FRAME_BINARY : FRAME_TEXT, true, payload, len);
	session_add_frame(session, frame);
}

void
session_send_part(Session *session, const char *payload, size_t len, bool last)
{
	FrameOp op = session->out_open ? FRAME_CONTINUATION : FRAME_TEXT;

	if (session->state == SESSION_CLOSING)
		return;
	session->out_open = !last;
	session_add_frame(session, payload != NULL ? session_make_frame(op, last, payload, len) : NULL);
}

/* Others need the memory, and this client has been slow. */
static void
session_end_text(void *arg)
{
	session_close(arg, CLOSE_SLOW, "the sheet has not been read in time: come again");
}

void
session_send_text(Session *session, Snapshot *snapshot, const SnapshotText *text)
{
	PrivateFrame *frame;

	if (session->state == SESSION_CLOSING)
		return;
	frame = session_make_frame(FRAME_CONTINUATION, false, NULL, 0);
	if (frame != NULL)
	{
		frame->len = 0; /* it is not written: its reader's text is */
		snapshot_reader_begin(&frame->reader, snapshot, text, session_end_text, session);
	}
	session_add_frame(session, frame);
}

/* Puts a frame with the next part of the first frame's text before that; or drops it when there is no more. False: no
 * memory. */
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

/* Without memory there is none: the next one will do as well. */
static void
session_add_control(Session *session, PrivateFrame *frame)
{
	if (frame != NULL)
		session_add_frame(session, frame);
}

/* A pong that waits answers a later ping. */
static void
session_set_pong(Session *session, PrivateFrame *pong, const char *payload, size_t len)
{
	session->out_bytes -= pong->len;
	pong->len = frame_header(pong->data, FRAME_PONG, len) + len;
	memcpy(pong->data + pong->len - len, payload, len);
	session->out_bytes += pong->len;
}

void
session_ping(Session *session, const char *payload, size_t len)
{
	PrivateFrame *pong;

	if (session->close_sent)
		return;
	/* Only the last ping need be answered (RFC 6455 5.5.3): who sends many and reads nothing gets no more pongs. The
	 * last one has not begun, as there are others before it. */
	if (session->pongs >= SESSION_PONGS_MAX)
	{
		session_set_pong(session, session->last_pong, payload, len);
		return;
	}
	pong = session_make_frame(FRAME_PONG, true, payload, len);
	if (pong != NULL)
		session->last_pong = pong;
	session_add_control(session, pong);
}

void
session_send_ping(Session *session)
{
	if (session->close_sent)
		return;
	session_add_control(session, session_make_frame(FRAME_PING, true, NULL, 0));
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
			socket_abort(session->socket); /* nothing may be written behind a part of a frame */
	}
	fanout_detach(cursor);
}

/* The frames that are for this receiver only. */
static Delivery
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
				return DELIVER_FAILED;
			continue;
		}
		taken = socket_write(session->socket, frame->data + session->out_written, len);
		if (taken < 0)
			return DELIVER_FAILED;
		metrics.bytes_sent += (uint64_t) taken;
		session->out_written += (size_t) taken;
		if ((size_t) taken < len)
			return DELIVER_BLOCKED;
		session->out_written = 0;
		session_drop_frame(session, &session->out);
		v2_resume_block(session);
		v2_read_blocks(session);
		if (len >= share)
			return DELIVER_BLOCKED;
		share -= len;
	}
	return DELIVER_DONE;
}

/* A frame that has begun goes on; then come those for this receiver, and then those of the room. */
static Delivery
session_write(Session *session)
{
	Delivery delivery = deliver_begun(session);

	if (delivery == DELIVER_DONE)
		delivery = session_write_private(session);
	if (delivery == DELIVER_DONE && (session->state == SESSION_LIVE || session->state == SESSION_CLOSING))
		delivery = deliver(session);
	if (delivery == DELIVER_DONE && socket_has_taken_more(session->socket))
		delivery = DELIVER_BLOCKED;
	return delivery;
}

void
session_deliver(Session *session)
{
	if (session->blocked)
		return;
	session->blocked = session_write(session) != DELIVER_DONE;
	if (session->blocked)
		session_want_write(session); /* a broken connection is noticed there, too */
}

/* The last frame. Its code is the peer's own when that has closed first. False: no memory, and the connection ends. */
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

void
session_peer_closes(Session *session, int code)
{
	PrivateFrame **link;

	session->peer_code = code;
	if (session->close_sent)
	{
		session_want_write(session);
		return;
	}
	/* Nobody reads what is queued; but a frame that has begun has to end before ours. */
	link =
		session->out_written > 0 || (session->out != NULL && session->out->begun) ? &session->out->next : &session->out;
	while (*link != NULL)
		session_drop_frame(session, link);
	session_leave_stream(session);
	if (session->state != SESSION_CLOSING)
		session_begin_close(session);
}

bool
session_writable(Session *session)
{
	Delivery delivery;

	session->blocked = false;
	delivery = session_write(session);
	if (delivery == DELIVER_DONE && session->state == SESSION_CLOSING && !session->close_sent)
	{
		delivery = session_put_close(session) ? session_write(session) : DELIVER_FAILED;
	}
	if (delivery == DELIVER_FAILED)
		return false;
	session->blocked = delivery == DELIVER_BLOCKED;
	if (session->blocked)
		session_want_write(session);
	else if (session->close_sent && (session->peer_code != 0 || session->close_code == CLOSE_PROTOCOL))
		socket_finish(session->socket);
	return session->blocked || !session->close_sent || session->peer_code == 0;
}

void
session_free_frames(Session *session)
{
	while (session->out != NULL)
		session_drop_frame(session, &session->out);
}
