/*
 * backlog.c - how far the receivers of a room are behind its streams, and what waits for the database: memory that
 * grows as fast as the members send, unless they are not read.
 *
 * Looked at once a turn (turn.c), for rooms where something has happened: while every receiver has all that there is, a
 * comparison; otherwise each is looked at, in every turn until they are even.
 */
#include "ws/session/backlog.h"

#include "ws/edit/dirty.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/edit/pending.h"
#include "ws/session/session.h"
#include "ws/session/socket.h"
#include "ws/v2/v2_session.h"

#define RECEIVER_WINDOW_MS 30000 /* over which its rate is measured */
#define RECEIVER_MIN_RATE  65536 /* bytes a second */

/* Bytes of the stream by which a receiver may be behind. */
static uint64_t
room_backlog_limit(void)
{
	return (uint64_t) gateway.config.send_queue_bytes / 2;
}

/* Has a receiver that is too far behind taken nothing for stalled-receiver-seconds, or too little for long? Only what
 * its system has acknowledged counts, and only while the gateway cannot write more. */
static bool
receiver_is_stalled(Session *session, uint64_t now)
{
	uint64_t delivered = socket_delivered(session->socket);
	bool stalled;

	if (session->behind_since == 0)
	{
		session->behind_since = session->moved_at = now;
		session->behind_from = session->moved = delivered;
		return false;
	}
	if (delivered > session->moved || !session->blocked)
	{
		session->moved = delivered;
		session->moved_at = now;
	}
	if (!session->blocked)
	{
		session->behind_since = now;
		session->behind_from = delivered;
	}
	if (now - session->behind_since < RECEIVER_WINDOW_MS)
		return now - session->moved_at >= (uint64_t) gateway.config.stalled_receiver_seconds * 1000;
	stalled = delivered < session->behind_from + RECEIVER_MIN_RATE * (RECEIVER_WINDOW_MS / 1000);
	session->behind_since = now;
	session->behind_from = delivered;
	return stalled;
}

/* Is a receiver so far behind that senders must wait for it? One that does not get on is closed. */
static bool
room_has_backlog(Room *room, uint64_t now)
{
	uint64_t limit = room_backlog_limit();
	bool backlog = false;

	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if ((session->state != SESSION_LIVE && session->state != SESSION_CLOSING) || session->cursor.block == NULL)
			continue;
		if (session->stream->end - fanout_position(&session->cursor) <= limit)
		{
			session->behind_since = 0;
			continue;
		}
		if (session->state == SESSION_CLOSING)
		{
			session_leave_stream(session);
			continue;
		}
		if (receiver_is_stalled(session, now))
		{
			metrics.sessions_slow++;
			session_close(session, CLOSE_SLOW, "too far behind: come again");
			session_leave_stream(session);
			continue;
		}
		backlog = true;
	}
	return backlog;
}

void
room_control_senders(Room *room)
{
	uint32_t limit = (uint32_t) gateway.config.batch_edits;
	bool full = room->pending_edits > (room->paused ? limit / 2 : limit) ||
				room_pending_bytes(room) > (size_t) gateway.config.send_queue_bytes;
	bool pause, any;

	if (!room->uneven && room_stream_bytes(room) - room->told <= room_backlog_limit() && !room->paused && !full &&
		!gateway.draining)
		return;
	room->backlog = room_has_backlog(room, uv_now(&gateway.loop));
	pause = room->backlog || full || gateway.draining;
	if (pause && !room->paused)
		metrics.sender_pauses++;
	room->paused = any = pause;
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		bool stop = pause || v2_is_full(session) || v2_waits(session);

		if (session->socket == NULL || session->state == SESSION_CLOSING)
			continue;
		any |= stop;
		if (session->paused == stop)
			continue;
		socket_pause(session->socket, stop);
		session->paused = stop;
	}
	room->uneven = any;
	if (any && room->session_count > 0)
		room_mark_dirty(room); /* look again in the next turn; a room without members must be able to end */
}
