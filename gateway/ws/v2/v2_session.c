/*
 * v2_session.c - sessions of protocol v2: their life, and the messages that are neither operations nor questions for
 * cells.
 *
 * The first message says who is there. Until then the session is GREETING, for a limited time and with small messages
 * only. It stays GREETING while the database is asked for an access token (v2_program.c); what the client sends then is
 * ignored, as everything before the gateway's hello.
 */
#include "ws/v2/v2_session.h"

#include "auth/access_token.h"
#include "core/gateway.h"
#include "core/redirect.h"
#include "support/log.h"
#include "core/metrics.h"
#include "ws/room/admission.h"
#include "ws/room/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SessionList greeting; /* sessions that have not said hello */

/* ---- messages that wait until the client is decided ---- */

typedef struct WaitingMessage
{
	struct WaitingMessage *next;
	bool binary;
	size_t len;
	char data[];
} WaitingMessage;

/* Returns false when there is no memory. */
static bool
waiting_put(V2Session *v2, const char *data, size_t len, bool binary)
{
	WaitingMessage *message = malloc(sizeof(WaitingMessage) + len);

	if (message == NULL)
		return false;
	message->next = NULL;
	message->binary = binary;
	message->len = len;
	memcpy(message->data, data, len);
	*v2->waiting_last = message;
	v2->waiting_last = &message->next;
	return true;
}

static WaitingMessage *
waiting_take(V2Session *v2)
{
	WaitingMessage *message = v2->waiting;

	v2->waiting = message->next;
	if (v2->waiting == NULL)
		v2->waiting_last = &v2->waiting;
	return message;
}

static bool
waiting_is_due(const V2Session *v2)
{
	return v2->client == NULL || !v2->client->undecided;
}

/* ---- life ---- */

void
v2_tick(void)
{
	for (Session *session = LIST_FIRST(&greeting); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (!session->v2->asks_token && uv_now(&gateway.loop) - session->v2->opened > V2_HELLO_MS)
			session_close(session, CLOSE_TIMEOUT, "no hello in time");
	}
	v2_tick_blocks();
}

Session *
v2_session_open(Socket *socket, int64_t sheet_id, const char *link)
{
	V2Session *v2 = calloc(1, sizeof(V2Session));
	Session *session = v2 != NULL ? session_create(socket, &protocol_v2, sheet_id, link) : NULL;

	if (session == NULL)
	{
		free(v2);
		return NULL;
	}
	session->v2 = v2;
	v2->opened = uv_now(&gateway.loop);
	v2->blocks_last = &v2->blocks;
	v2->waiting_last = &v2->waiting;
	LIST_INSERT_HEAD(&greeting, session, in_room);
	return session;
}

static void
v2_gone(Session *session)
{
	if (session->uid == 0) /* hello has not come */
		LIST_REMOVE(session, in_room);
}

static void
v2_free(Session *session)
{
	v2_free_blocks(session->v2);
	while (session->v2->waiting != NULL)
		free(waiting_take(session->v2));
	free(session->v2);
}

static void
v2_leave(Session *session)
{
	v2_close_client(session);
	members_remove(session);
}

static void
v2_written(Session *session)
{
	v2_resume_large_block(session);
	v2_read_blocks(session);
}

bool
v2_is_full(const Session *session)
{
	return session->out_bytes > (size_t) gateway.config.send_queue_bytes / 2;
}

bool
v2_knows_ranges(const Session *session)
{
	return session->form >= STREAM_V2_RANGES;
}

/* Nothing more is read while the session has much to read itself, or its messages wait. */
static bool
v2_is_busy(const Session *session)
{
	return v2_is_full(session) || session->v2->waiting != NULL;
}

/* The stream waits while the database reads a block. */
static bool
v2_holds_stream(const Session *session)
{
	return session->v2->holding;
}

/* ---- who ---- */

static void
v2_send_role(Session *session, V2Role role)
{
	Buf payload = {NULL, 0, 0};

	v2_put_role(&payload, session->v2->encoding, role);
	session_send(session, &payload);
}

static void
v2_send_holder(Session *session, const SheetHolder *holder)
{
	Buf payload = {NULL, 0, 0};

	v2_put_held(&payload, session->v2->encoding, holder->held, holder->name, holder->application, holder->ms);
	session_send(session, &payload);
}

/* A session with much unsent data does not get reminders: its page asks once a minute. */
static void
v2_send_notice(Session *session, V2Notice notice)
{
	Buf payload = {NULL, 0, 0};
	uint64_t since = notice == V2_NOTICE_BOOK ? V2_VERSION_BOOKS : V2_VERSION_REMINDERS;

	if (session->v2->version < since || (notice == V2_NOTICE_REMINDERS && v2_is_full(session)))
		return;
	v2_put_notice(&payload, session->v2->encoding, notice);
	session_send(session, &payload);
}

static bool
v2_verify(Session *session, EditText token, JwtClaims *claims)
{
	if (jwt_verify(&gateway.keys, token.data, token.len, gateway_now(), claims) == JWT_OK)
		return true;
	session_close(session, CLOSE_UNAUTHORIZED, "the token is not valid");
	return false;
}

static void
v2_close_moved(Session *session, const char *address)
{
	char reason[REDIRECT_MAX + 16];

	snprintf(reason, sizeof(reason), "{\"ws\":\"%s\"}", address);
	session_close(session, CLOSE_MOVED, reason);
}

/* Returns whether the sheet is served here. Otherwise tells the client where. */
static bool
v2_check_owner(Session *session)
{
	char address[REDIRECT_MAX];
	Served served = redirect_find(session->sheet_id, REDIRECT_WEBSOCKET, address);

	if (served == SERVED_NOWHERE || (served == SERVED_HERE && gateway.stopping))
	{
		session_close(session, CLOSE_RESTART,
					  served == SERVED_HERE ? "the gateway does not serve now"
											: redirect_nowhere_reason(session->sheet_id));
		return false;
	}
	if (served == SERVED_HERE)
		return true;
	v2_close_moved(session, address);
	return false;
}

void
v2_identify(Session *session, const JwtClaims *claims)
{
	if (!v2_check_owner(session))
		return;
	if (claims->uid < 0 && (session->guest = strdup(claims->name)) == NULL)
	{
		session_fail(session);
		return;
	}
	session->uid = claims->uid;
	session->generation = claims->generation;
	session->token_id = jwt_token_id(claims);
	session->expires = claims->expires_at;
	LIST_REMOVE(session, in_room);
	session_set_state(session, SESSION_CHECKING);
	admission_check(session);
}

static void
v2_greet(Session *session, const V2Message *message)
{
	JwtClaims claims;

	session->form = (message->version < V2_VERSION_RANGES ? STREAM_V2 : STREAM_V2_RANGES) + session->v2->encoding;
	session->v2->version = message->version;
	session->binary = session->v2->encoding == V2_BINARY;
	session->v2->client_id = message->client;
	session->v2->acked = message->acked;
	session->v2->since = message->since;
	if (access_token_is(message->token.data, message->token.len))
		v2_greet_program(session, message->token);
	else if (v2_verify(session, message->token, &claims))
		v2_identify(session, &claims);
}

/* A new token of the same account. It is checked, since all tokens may have been revoked. */
static void
v2_reauthenticate(Session *session, const V2Message *message)
{
	Buf payload = {NULL, 0, 0};
	JwtClaims claims;

	if (session->scopes != SCOPE_NONE || access_token_is(message->token.data, message->token.len))
	{
		session_close(session, CLOSE_UNAUTHORIZED, "an access token is not renewed: connect again with another");
		return;
	}
	if (!v2_verify(session, message->token, &claims))
		return;
	if (claims.uid != session->uid)
	{
		session_close(session, CLOSE_UNAUTHORIZED, "the token is of another account");
		return;
	}
	session->generation = claims.generation;
	session->token_id = jwt_token_id(&claims);
	session->expires = claims.expires_at;
	admission_check(session);
	v2_put_authed(&payload, session->v2->encoding, (uint64_t) claims.expires_at);
	session_send(session, &payload);
}

/* ---- locks and selections ---- */

void
v2_deny(Session *session, const V2Message *message, V2Reason reason)
{
	Buf payload = {NULL, 0, 0};
	bool is_calc = message->type == V2_CALC;

	v2_put_denied(&payload, session->v2->encoding, is_calc ? message->rect[0] : (uint32_t) message->row,
				  is_calc ? message->rect[1] : (uint32_t) message->col, reason);
	session_send(session, &payload);
}

static void
v2_lock(Session *session, const V2Message *message)
{
	uint32_t rect[4] = {(uint32_t) message->row, (uint32_t) message->col, (uint32_t) message->row,
						(uint32_t) message->col};
	V2Reason reason = V2_REASON_BASE;

	if (!session->may_edit)
		reason = V2_REASON_ROLE;
	else if (v2_find_range(session, message->base, rect) == V2_FOUND)
		reason = members_lock_cell(session, rect[0], rect[1]);
	if (reason != V2_REASON_NONE)
		v2_deny(session, message, reason);
}

static void
v2_unlock(Session *session, const V2Message *message)
{
	uint32_t rect[4] = {(uint32_t) message->row, (uint32_t) message->col, (uint32_t) message->row,
						(uint32_t) message->col};

	/* The lock of a deleted cell has ended. */
	if (v2_find_range(session, message->base, rect) == V2_FOUND)
		(void) members_unlock_cell(session, rect[0], rect[1]);
}

/* Ranges are of version 3, and each request is compared with all locks of the sheet. Returns false if the session is
 * closed. */
static bool
v2_admit_range(Session *session)
{
	V2Session *v2 = session->v2;
	uint64_t now = uv_now(&gateway.loop);

	if (!v2_knows_ranges(session))
	{
		metrics.refused_malformed++;
		session_close(session, CLOSE_MALFORMED, "ranges are locked in version 3");
		return false;
	}
	if (v2->ranges_ms != now)
		v2->range_requests = 0;
	v2->ranges_ms = now;
	if (++v2->range_requests <= V2_RANGES_AT_ONCE)
		return true;
	session_close(session, CLOSE_SLOW, "more than 64 requests for ranges at once");
	return false;
}

static void
v2_send_blocked(Session *session, const V2Blocked *blocked)
{
	Buf payload = {NULL, 0, 0};

	v2_put_blocked(&payload, session->v2->encoding, blocked);
	session_send(session, &payload);
}

/* rect: the message's range. */
static void
v2_lock_range(Session *session, const V2Message *message, uint32_t rect[4])
{
	V2Blocked blocked = {.rect = {rect[0], rect[1], rect[2], rect[3]}, .reason = V2_REASON_BASE};
	const SheetLock *conflict = NULL;
	bool waits = message->wait != 0;

	if (!session->may_edit)
		blocked.reason = V2_REASON_ROLE;
	else if (v2_find_range(session, message->base, rect) == V2_FOUND)
		blocked.reason = members_lock_range(session, rect, &waits, &conflict);
	if (blocked.reason == V2_REASON_NONE)
		return;
	if (conflict != NULL)
	{
		blocked.waits = waits;
		blocked.at_row = rect[0] > conflict->rect[0] ? rect[0] : conflict->rect[0];
		blocked.at_col = rect[1] > conflict->rect[1] ? rect[1] : conflict->rect[1];
		blocked.session = conflict->holder.session;
		blocked.uid = (uint64_t) conflict->holder.uid;
	}
	v2_send_blocked(session, &blocked);
}

static void
v2_unlock_range(Session *session, const V2Message *message, uint32_t rect[4])
{
	V2Blocked blocked = {.rect = {rect[0], rect[1], rect[2], rect[3]}, .reason = V2_REASON_BASE};

	switch (v2_find_range(session, message->base, rect))
	{
		case V2_FOUND:
			members_unlock_range(session, rect);
			break;
		case V2_UNKNOWN:
			v2_send_blocked(session, &blocked);
			break;
		case V2_DELETED: /* has ended */
			break;
	}
}

static void
v2_move_cursor(Session *session, const V2Message *message, uint32_t rect[4])
{
	V2Session *v2 = session->v2;

	if (v2_find_range(session, message->base, rect) == V2_UNKNOWN)
		return;
	v2->cursor = (V2Cursor){session->number, rect[0], rect[1], rect[2], rect[3]};
	v2->has_cursor = true;
	v2->cursor_moved = true;
	v2_publish_cursors_soon(session->room);
}

/* ---- messages ---- */

bool
v2_may_ask(const Session *session)
{
	return session->v2->questions < V2_MAX_QUESTIONS;
}

static bool
v2_admit_question(Session *session)
{
	if (v2_may_ask(session))
		return true;
	session_close(session, CLOSE_SLOW, "too many questions at once");
	return false;
}

static void
v2_dispatch(Session *session, V2Message *message)
{
	uint32_t rect[4] = {(uint32_t) message->row, (uint32_t) message->col, (uint32_t) message->to_row,
						(uint32_t) message->to_col};

	switch (message->type)
	{
		case V2_HELLO:
			session_close(session, CLOSE_MALFORMED, "there has been a hello");
			break;
		case V2_AUTH:
			v2_reauthenticate(session, message);
			break;
		case V2_GET:
			if (v2_admit_question(session))
				v2_send_block(session, message->id, rect);
			break;
		case V2_OP:
			v2_handle_op(session, message);
			break;
		case V2_LOCK:
			v2_lock(session, message);
			break;
		case V2_UNLOCK:
			v2_unlock(session, message);
			break;
		case V2_LOCK_RANGE:
			if (v2_admit_range(session))
				v2_lock_range(session, message, rect);
			break;
		case V2_UNLOCK_RANGE:
			if (v2_admit_range(session))
				v2_unlock_range(session, message, rect);
			break;
		case V2_CURSOR:
			v2_move_cursor(session, message, rect);
			break;
		case V2_CALC:
			v2_handle_calc(session, message);
			break;
		case V2_WHO:
			if (v2_admit_question(session))
				v2_send_user(session, (int64_t) edit_uid_of_number(message->uid));
			break;
	}
}

static void
v2_handle_now(Session *session, const char *data, size_t len, bool binary)
{
	V2Message message;
	const char *wrong;

	if (!binary && !buf_reserve(&session->scratch, V2_SCRATCH(len)))
	{
		session_fail(session);
		return;
	}
	wrong = binary ? v2_read_binary(data, len, &message) : v2_read_json(data, len, session->scratch.data, &message);
	if (wrong == NULL && session->state == SESSION_GREETING && message.type != V2_HELLO)
		wrong = "the first message is hello";
	if (wrong != NULL)
	{
		metrics.refused_malformed++;
		session_close(session, CLOSE_MALFORMED, wrong);
		return;
	}
	if (session->state != SESSION_GREETING)
	{
		v2_dispatch(session, &message);
		if (v2_is_full(session) && session->room != NULL)
			room_watch(session->room); /* pauses the session */
		return;
	}
	session->v2->encoding = binary ? V2_BINARY : V2_JSON;
	v2_greet(session, &message);
}

static void
v2_receive(Session *session, const char *data, size_t len, bool binary)
{
	V2Session *v2 = session->v2;

	if (v2->asks_token)
		return;
	if (v2->waiting == NULL && waiting_is_due(v2))
	{
		v2_handle_now(session, data, len, binary);
		return;
	}
	if (!waiting_put(v2, data, len, binary))
		session_fail(session);
	if (session->room != NULL)
		room_watch(session->room); /* pauses the session */
}

void
v2_resume_messages(Session *session)
{
	V2Session *v2 = session->v2;

	while (v2->waiting != NULL && waiting_is_due(v2) && session->state == SESSION_LIVE)
	{
		WaitingMessage *message = waiting_take(v2);

		v2_handle_now(session, message->data, message->len, message->binary);
		free(message);
	}
}

/* ---- what happens in the room ---- */

/* The members' selections are moved. The told values are forgotten: they are of other cells now. */
static void
v2_moved(Room *room, const LineChange *changes, size_t n)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		V2Cursor *cursor = session->v2 != NULL ? &session->v2->cursor : NULL;
		uint32_t rect[4];

		if (cursor == NULL || !session->v2->has_cursor)
			continue;
		rect[0] = cursor->row, rect[1] = cursor->col, rect[2] = cursor->to_row, rect[3] = cursor->to_col;
		for (size_t i = 0; i < n; i++)
			lines_move_range(&changes[i], rect);
		*cursor = (V2Cursor){cursor->session, rect[0], rect[1], rect[2], rect[3]};
	}
	free(room->values);
	room->values = NULL;
}

static void
v2_free_room(Room *room)
{
	v2_free_clients(room);
	free(room->values);
}

const Protocol protocol_v2 = {
	.locks_itself = true,
	.receive = v2_receive,
	.join = v2_join,
	.close_moved = v2_close_moved,
	.closing = members_resign_soon,
	.leave = v2_leave,
	.renew = members_renew_locks,
	.gone = v2_gone,
	.free = v2_free,
	.written = v2_written,
	.is_busy = v2_is_busy,
	.holds_stream = v2_holds_stream,
	.send_role = v2_send_role,
	.send_notice = v2_send_notice,
	.send_holder = v2_send_holder,
	.publish_own = v2_publish_own,
	.publish_run = v2_publish_run,
	.moved = v2_moved,
	.publish_member = v2_publish_member,
	.acknowledge = v2_acknowledge,
	.refuse = v2_refuse,
	.free_room = v2_free_room,
};
