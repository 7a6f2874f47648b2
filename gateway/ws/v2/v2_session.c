/*
 * v2_session.c - one WebSocket of protocol v2: who is there, and what is neither an operation nor a question for cells.
 *
 * The connection says who it is in its first message: until then it is GREETING, for a limited time and with small
 * messages only. From there on the session lives as one of protocol v1 does (session.c).
 */
#include "ws/v2/v2_session.h"

#include "ws/edit/dirty.h"
#include "core/gateway.h"
#include "core/redirect.h"
#include "support/log.h"
#include "core/metrics.h"

#include <stdlib.h>
#include <string.h>

static Session *greeting; /* sessions that have not said hello; they are in no room, so its links are used */

/* ---- messages that wait for the client's operation before them to be decided ---- */

typedef struct WaitingMessage
{
	struct WaitingMessage *next;
	bool binary;
	size_t len;
	char data[];
} WaitingMessage;

/* False: no memory. */
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

/* ---- sessions that have not said hello ---- */

static void
greeting_add(Session *session)
{
	session->prev = NULL;
	session->next = greeting;
	if (greeting != NULL)
		greeting->prev = session;
	greeting = session;
}

static void
greeting_remove(Session *session)
{
	if (session->prev != NULL)
		session->prev->next = session->next;
	else
		greeting = session->next;
	if (session->next != NULL)
		session->next->prev = session->prev;
	session->v2->greeted = true;
}

void
v2_tick(void)
{
	for (Session *session = greeting; session != NULL; session = session->next)
	{
		if (uv_now(&gateway.loop) - session->v2->opened > V2_HELLO_MS)
			session_close(session, CLOSE_TIMEOUT, "no hello in time");
	}
	v2_tick_blocks();
}

Session *
v2_session_open(struct Socket *socket, int64_t sheet_id, const char *link)
{
	V2Session *v2 = calloc(1, sizeof(V2Session));
	Session *session = v2 != NULL ? session_create(socket, sheet_id, link, v2) : NULL;

	if (session == NULL)
	{
		free(v2);
		return NULL;
	}
	session->state = SESSION_GREETING;
	session->v2->opened = uv_now(&gateway.loop);
	session->v2->blocks_last = &session->v2->blocks;
	session->v2->waiting_last = &session->v2->waiting;
	greeting_add(session);
	return session;
}

void
v2_session_gone(Session *session)
{
	if (session->v2 != NULL && !session->v2->greeted)
		greeting_remove(session);
}

void
v2_session_free(Session *session)
{
	if (session->v2 != NULL)
	{
		v2_free_blocks(session->v2);
		while (session->v2->waiting != NULL)
			free(waiting_take(session->v2));
	}
	free(session->v2);
}

void
v2_leave(Session *session)
{
	V2Session *v2 = session->v2;

	if (v2 == NULL)
		return;
	if (v2->attached)
		session->room->v2_readers[v2->encoding]--;
	v2->attached = false;
	v2_close_client(session->room, session);
}

void
v2_send(Session *session, Buf *payload)
{
	if (session->socket != NULL)
		session_send_message(session, payload->data, payload->len, session->v2->encoding == V2_BINARY);
	buf_free(payload);
}

/* ---- who ---- */

V2Role
v2_role_of(const char *name)
{
	static const char *const names[V2_ROLES] = {"viewer", "commenter", "editor", "owner"};

	for (int i = 0; i < V2_ROLES; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return (V2Role) i;
	}
	return V2_ROLE_VIEWER;
}

void
v2_tell_role(Session *session, V2Role role)
{
	Buf payload = {NULL, 0, 0};

	if (session->v2 == NULL)
		return;
	v2_put_role(&payload, session->v2->encoding, role);
	v2_send(session, &payload);
}

static bool
v2_verify(Session *session, EditText token, JwtClaims *claims)
{
	if (jwt_verify(&gateway.keys, token.data, token.len, gateway_now(), claims) == JWT_OK)
		return true;
	session_close(session, CLOSE_UNAUTHORIZED, "the token is not valid");
	return false;
}

/* The sheet is served here; otherwise the client is told where. */
static bool
v2_check_place(Session *session)
{
	char address[REDIRECT_MAX], reason[REDIRECT_MAX + 16];
	Served served = redirect_find(session->sheet_id, REDIRECT_WEBSOCKET, address);

	if (served == SERVED_NOWHERE || gateway.draining)
	{
		session_close(session, CLOSE_RESTART, "the gateway does not serve now");
		return false;
	}
	if (served == SERVED_HERE)
		return true;
	snprintf(reason, sizeof(reason), "{\"ws\":\"%s\"}", address);
	session_close(session, CLOSE_MOVED, reason);
	return false;
}

static void
v2_greet(Session *session, const V2Message *message)
{
	JwtClaims claims;

	if (!v2_verify(session, message->token, &claims) || !v2_check_place(session))
		return;
	session->uid = claims.uid;
	session->generation = claims.generation;
	session->expires = claims.expires_at;
	session->v2->client_id = message->client;
	session->v2->acked = message->acked;
	session->v2->since = message->since;
	greeting_remove(session);
	session->state = SESSION_CHECKING;
	session_check(session);
}

/* A new token of the same account. The database is asked again, since the old one may have been revoked. */
static void
v2_reauthenticate(Session *session, const V2Message *message)
{
	Buf payload = {NULL, 0, 0};
	JwtClaims claims;

	if (!v2_verify(session, message->token, &claims))
		return;
	if (claims.uid != session->uid)
	{
		session_close(session, CLOSE_UNAUTHORIZED, "the token is of another account");
		return;
	}
	session->generation = claims.generation;
	session->expires = claims.expires_at;
	session_check(session);
	v2_put_authed(&payload, session->v2->encoding, (uint64_t) claims.expires_at);
	v2_send(session, &payload);
}

/* ---- cells that are held ---- */

void
v2_deny(Session *session, uint32_t row, uint32_t col, V2Reason reason)
{
	Buf payload = {NULL, 0, 0};

	v2_put_denied(&payload, session->v2->encoding, row, col, reason);
	v2_send(session, &payload);
}

static void
v2_lock(Session *session, const V2Message *message)
{
	CellLocks *locks = &session->room->locks;
	uint32_t row = (uint32_t) message->row, col = (uint32_t) message->col;
	CellLock *lock;

	if (!session->may_edit)
	{
		v2_deny(session, (uint32_t) message->row, (uint32_t) message->col, V2_REASON_ROLE);
		return;
	}
	if (v2_find_place(session, message->base, &row, &col) != V2_PLACE_THERE)
	{
		v2_deny(session, (uint32_t) message->row, (uint32_t) message->col, V2_REASON_BASE);
		return;
	}
	lock = locks_find(locks, row, col);
	if (lock != NULL && lock->uid != session_holder(session))
		v2_deny(session, (uint32_t) message->row, (uint32_t) message->col, V2_REASON_LOCKED);
	else if (lock == NULL && (lock = locks_add(locks, row, col, session_holder(session), session_lease_end())) == NULL)
		v2_deny(session, (uint32_t) message->row, (uint32_t) message->col, V2_REASON_BUSY);
	else
	{
		lock->expires = session_lease_end();
		room_tell_lock(session->room, row, col, session, true);
	}
}

static void
v2_unlock(Session *session, const V2Message *message)
{
	CellLocks *locks = &session->room->locks;
	uint32_t row = (uint32_t) message->row, col = (uint32_t) message->col;
	CellLock *lock;

	if (v2_find_place(session, message->base, &row, &col) != V2_PLACE_THERE)
		return; /* it has ended with its cell */
	lock = locks_find(locks, row, col);
	if (lock == NULL || lock->uid != session_holder(session))
		return;
	room_tell_lock(session->room, lock->row, lock->col, session, false);
	locks_remove(locks, lock);
}

static void
v2_move_cursor(Session *session, const V2Message *message)
{
	const LinesMemory *lines = &session->room->lines;
	V2Session *v2 = session->v2;
	uint32_t rect[4] = {(uint32_t) message->row, (uint32_t) message->col, (uint32_t) message->to_row,
						(uint32_t) message->to_col};

	if (!v2_knows_base(session, message->base))
		return;
	for (size_t i = 0; message->base != 0 && i < lines->count; i++)
	{
		if (lines->entries[i].seq > (int64_t) message->base)
			lines_move_range(&lines->entries[i].change, rect);
	}
	v2->cursor = (V2Cursor){session->number, rect[0], rect[1], rect[2], rect[3]};
	v2->has_cursor = true;
	v2->cursor_moved = true;
	v2_cursor_moved(session->room);
}

/* ---- messages ---- */

/* It is to be held up until what it waits for has come: the room looks at its members in this turn. */
static void
v2_hold_up(Session *session)
{
	if (session->room == NULL)
		return;
	session->room->uneven = true;
	room_mark_dirty(session->room);
}

bool
v2_is_full(const Session *session)
{
	return session->v2 != NULL && session->out_bytes > (size_t) gateway.config.send_queue_bytes / 2;
}

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
		case V2_CURSOR:
			v2_move_cursor(session, message);
			break;
		case V2_CALC:
			v2_handle_calc(session, message);
			break;
		case V2_WHO:
			if (v2_admit_question(session))
				v2_send_user(session, (int64_t) message->uid);
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
		if (v2_is_full(session))
			v2_hold_up(session);
		return;
	}
	session->v2->encoding = binary ? V2_BINARY : V2_JSON;
	v2_greet(session, &message);
}

void
v2_handle(Session *session, const char *data, size_t len, bool binary)
{
	V2Session *v2 = session->v2;

	if (v2->waiting == NULL && waiting_is_due(v2))
	{
		v2_handle_now(session, data, len, binary);
		return;
	}
	if (!waiting_put(v2, data, len, binary))
		session_fail(session);
	v2_hold_up(session);
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
