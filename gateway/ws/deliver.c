/*
 * deliver.c - writes frames of a room's stream to one receiver's socket.
 *
 * They go out as soon as they are published, without a turn of the loop and the library's asking for POLLOUT in
 * between: that would be two epoll_ctl() for each receiver and commit. The socket is the library's, and both write to
 * it, which is safe because every write from here ends with a frame, and happens only while the library has nothing
 * buffered: when the socket takes less, the library is given the rest of the frame that was cut, and buffers it in
 * front of its own PING, PONG or CLOSE. The gateway speaks plain TCP; with TLS in the library this would have to be its
 * write.
 */
#include "deliver.h"

#include "metrics.h"
#include "v2_session.h"

#include <errno.h>
#include <libwebsockets.h>
#include <sys/socket.h>

#define DELIVER_SHARE 1048576 /* bytes for one receiver before the next one has its turn */

Delivery
deliver(Session *session)
{
	FanoutCursor *cursor = &session->cursor;
	size_t share = DELIVER_SHARE;
	const char *data;
	size_t len;

	if (cursor->block == NULL || v2_holds_stream(session)) /* what it waits for will ask for POLLOUT */
		return DELIVER_DONE;
	if (lws_partial_buffered(session->wsi))
		return DELIVER_BLOCKED;
	while (fanout_peek(cursor, &data, &len))
	{
		ssize_t sent = send(lws_get_socket_fd(session->wsi), data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		size_t end;

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR ? DELIVER_BLOCKED : DELIVER_FAILED;
		end = fanout_frame_end(cursor, (size_t) sent);
		metrics.bytes_sent += end;
		if (end > (size_t) sent &&
			lws_write(session->wsi, (unsigned char *) data + sent, end - (size_t) sent, LWS_WRITE_HTTP) < 0)
			return DELIVER_FAILED;
		fanout_advance(cursor, end);
		if (end < len || (size_t) sent < end || end >= share)
			return DELIVER_BLOCKED;
		share -= end;
	}
	return DELIVER_DONE;
}
