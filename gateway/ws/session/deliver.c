/*
 * deliver.c - writes frames of a room's stream to one receiver's socket.
 *
 * They go out as soon as they are published, without a turn of the loop in between to ask whether the socket takes
 * them: that would be two epoll_ctl() for each receiver and commit.
 */
#include "ws/session/deliver.h"

#include "core/metrics.h"
#include "ws/session/socket.h"
#include "ws/v2/v2_session.h"

#define DELIVER_SHARE 1048576 /* bytes for one receiver before the next one has its turn */

/* Bytes of the next `len` ones that are for it: of those behind its end, none. */
static size_t
deliver_limit(const Session *session, size_t len)
{
	uint64_t position;

	if (session->state != SESSION_CLOSING)
		return len;
	position = fanout_position(&session->cursor);
	return session->until - position < len ? (size_t) (session->until - position) : len;
}

static Delivery
deliver_frames(Session *session, bool only_begun)
{
	FanoutCursor *cursor = &session->cursor;
	size_t share = DELIVER_SHARE;
	const char *data;
	size_t len;

	while (fanout_peek(cursor, &data, &len))
	{
		ssize_t taken;

		if (only_begun && cursor->cut == 0)
			return DELIVER_DONE;
		len = only_begun ? cursor->cut : deliver_limit(session, len);
		if (len == 0)
			return DELIVER_DONE;
		taken = socket_write(session->socket, data, len);
		if (taken < 0)
			return DELIVER_FAILED;
		metrics.bytes_sent += (uint64_t) taken;
		fanout_advance(cursor, (size_t) taken);
		if ((size_t) taken < len || (size_t) taken >= share)
			return DELIVER_BLOCKED;
		share -= (size_t) taken;
	}
	return DELIVER_DONE;
}

Delivery
deliver_begun(Session *session)
{
	return session->cursor.block == NULL || session->cursor.cut == 0 ? DELIVER_DONE : deliver_frames(session, true);
}

Delivery
deliver(Session *session)
{
	if (session->cursor.block == NULL || v2_holds_stream(session)) /* what it waits for will ask to write */
		return DELIVER_DONE;
	return deliver_frames(session, false);
}
