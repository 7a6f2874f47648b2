/*
 * session.c - one WebSocket: its life and its queue, and what clients of protocol v1 send. Those of v2 are
 * v2_session.c's.
 *
 * GREETING   protocol v2: nobody has said yet who is there
 * CHECKING   the token's signature is good; the database is asked about the account, the sheet and the role
 * WAITING    for the room: its lock may be another gateway's
 * JOINING    for the snapshot
 * LIVE       onConn (v2: hello) is queued; frames of the room follow it
 * CLOSING    what is queued is sent, then the close frame; a timeout ends what does not read
 *
 * A session outlives its connection while queries that know it are under way.
 */
#include "session.h"

#include "accounts.h"
#include "deliver.h"
#include "follow.h"
#include "frame.h"
#include "database.h"
#include "gateway.h"
#include "log.h"
#include "metrics.h"
#include "pending.h"
#include "publish.h"
#include "socket.h"
#include "utf8.h"
#include "v1_encode.h"
#include "v1_scan.h"
#include "v2_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_REFUSALS_MAX  256	 /* refusals being answered at once */
#define SESSION_KEEP_BYTES	  262144 /* of buffers between messages */
#define SESSION_CLOSE_SECONDS 5
#define SESSION_PONGS_MAX	  8		  /* waiting to be written */
#define SESSION_WRITE_SHARE	  1048576 /* bytes for one receiver before the next one has its turn */
#define SESSION_PART_BYTES	  65536	  /* of a text that is sent in parts */

/* ---- life ---- */

Session *
session_create(struct Socket *socket, int64_t sheet_id, const char *link, struct V2Session *v2)
{
	static uint64_t last_number;
	Session *session = calloc(1, sizeof(Session));

	if (session == NULL)
		return NULL;
	session->number = ++last_number;
	session->socket = socket;
	session->v2 = v2;
	session->sheet_id = sheet_id;
	snprintf(session->link, sizeof(session->link), "%s", link);
	session->out_last = &session->out;
	metrics.sessions_opened++;
	return session;
}

Session *
session_open(struct Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link, bool nack)
{
	Session *session = session_create(socket, sheet_id, link, NULL);

	if (session == NULL)
		return NULL;
	session->state = SESSION_CHECKING;
	session->uid = claims->uid;
	session->generation = claims->generation;
	session->expires = claims->expires_at;
	session->nack = nack;
	session_check(session);
	return session;
}

int64_t
session_holder(const Session *session)
{
	return session->v2 != NULL ? -(int64_t) session->number : session->uid;
}

static void
session_free(Session *session)
{
	PrivateFrame *next;

	for (PrivateFrame *frame = session->out; frame != NULL; frame = next)
	{
		next = frame->next;
		snapshot_reader_end(&frame->reader);
		free(frame);
	}
	v2_session_free(session);
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
session_leave_room(Session *session)
{
	if (session->room == NULL)
		return;
	fanout_detach(&session->cursor);
	v2_leave(session);
	room_remove_session(session->room, session);
	session->room = NULL;
}

void
session_gone(Session *session)
{
	session->socket = NULL;
	v2_session_gone(session);
	session_leave_room(session);
	metrics_count_close(session->close_code);
	log_event(LOG_INFO, "session closed", LOG_STR("request", session->request_id), LOG_STR("peer", session->peer),
			  LOG_INT("uid", session->uid), LOG_INT("sheet", session->sheet_id), LOG_INT("code", session->close_code),
			  LOG_STR("reason", session->close_reason));
	for (PrivateFrame *frame = session->out; frame != NULL; frame = frame->next)
		snapshot_reader_end(&frame->reader); /* also while a query keeps the session */
	session->queries++;
	session_query_done(session);
}

void
session_want_write(Session *session)
{
	if (session->socket != NULL)
		socket_want_write(session->socket);
}

/* What is queued is still sent, and a close frame behind it. */
static void
session_begin_close(Session *session)
{
	if (session->room != NULL)
		room_stop_join(session->room, session);
	session->state = SESSION_CLOSING;
	if (session->cursor.block != NULL)
		session->until = session->stream->end;
	socket_end_after(session->socket, SESSION_CLOSE_SECONDS);
	socket_pause(session->socket, false); /* for the peer's answer */
	session->paused = false;
	session_want_write(session);
}

/* A reason that is too long ends in front of a character. */
static void
session_trim_reason(Session *session)
{
	size_t len = strlen(session->close_reason);

	while (len > 0 && !utf8_check(session->close_reason, len, NULL))
		session->close_reason[--len] = '\0';
}

void
session_close(Session *session, int code, const char *reason)
{
	if (session->state == SESSION_CLOSING || session->socket == NULL)
		return;
	session->close_code = code;
	snprintf(session->close_reason, sizeof(session->close_reason), "%s", reason);
	session_trim_reason(session);
	session_begin_close(session);
}

void
session_fail(Session *session)
{
	session->failed = true;
	session_close(session, CLOSE_ERROR, "out of memory");
	if (session->socket != NULL)
		session_leave_stream(session);
}

/* ---- who and where ---- */

static const char session_check_sql[] = "SELECT a.name, a.token_generation, i.sheet_id, i.name, i.trashed, i.role "
										"FROM sheet.account_get($2) a LEFT JOIN LATERAL sheet.info($1, $2) i ON true";

/* The answer says who it is and what they may do; true when they may be here. */
static bool
session_admit(Session *session, const PGresult *res)
{
	if (PQntuples(res) == 0 || atoll(PQgetvalue(res, 0, 1)) != session->generation)
		session_close(session, CLOSE_UNAUTHORIZED, "the token has been revoked");
	else if (PQgetisnull(res, 0, 2))
		session_close(session, CLOSE_NOT_FOUND, "no such sheet");
	else if (PQgetisnull(res, 0, 5))
		session_close(session, CLOSE_FORBIDDEN, "the sheet is not shared with you");
	else if (PQgetvalue(res, 0, 4)[0] == 't')
		session_close(session, CLOSE_GONE, "the sheet is in the trash");
	else
		return true;
	return false;
}

static void
session_set_role(Session *session, const char *name)
{
	V2Role role = v2_role_of(name);

	session->may_edit = role >= V2_ROLE_EDITOR;
	if (role != session->role && session->state == SESSION_LIVE)
		v2_tell_role(session, role);
	session->role = role;
}

static void
session_checked(void *arg, PGresult *res)
{
	Session *session = arg;
	bool first = session->state == SESSION_CHECKING;
	/* Members hear of changes; who was not one yet has to ask. */
	bool changed =
		follow_has_changed(session->sheet_id, session->changes) || follow_has_changed(-session->uid, session->changes);
	bool again = session->check_again || (first && changed);

	session->checking = session->check_again = false;
	if (session->socket == NULL || session->state == SESSION_CLOSING)
		;
	else if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
	{
		if (first)
			session_close(session, CLOSE_RESTART, "the database does not answer");
		session->unchecked = true;
	}
	else if (session_admit(session, res))
	{
		accounts_put(session->uid, PQgetvalue(res, 0, 0), session->generation, session->changes);
		accounts_note_seen(session->sheet_id, session->uid);
		session_set_role(session, PQgetvalue(res, 0, 5));
		if (first)
		{
			session->name = strdup(PQgetvalue(res, 0, 0));
			session->sheet_name = strdup(PQgetvalue(res, 0, 3));
			buf_puts_json(&session->name_json, PQgetvalue(res, 0, 0));
			session->state = SESSION_WAITING;
			access_register_opening(session->sheet_id, session->uid);
			if (session->name == NULL || session->sheet_name == NULL || buf_failed(&session->name_json))
				session_fail(session);
			else
				room_add_session(session->sheet_id, session);
		}
	}
	if (again && session->socket != NULL && session->state != SESSION_CLOSING)
		session_check(session);
	session_query_done(session);
}

static const char session_link_sql[] = "SELECT sheet.open_link($1, $2, $3)";

/* Whether the link was right is told by the role that the account has now. */
static void
session_link_opened(void *arg, PGresult *res)
{
	Session *session = arg;

	session->checking = false;
	session->link[0] = '\0';
	if (session->socket != NULL && session->state != SESSION_CLOSING)
		session_check(session);
	session_query_done(session);
}

static void
session_open_link(Session *session)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_text(session->link),
						pgparam_int64(uid, session->uid)};

	session->queries++;
	if (!database_query(DATABASE_WRITES, session->uid, session_link_sql, 3, params, 0, session_link_opened, session))
		session_link_opened(session, NULL);
}

void
session_check(Session *session)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(uid, session->uid)};

	session->unchecked = false;
	if (session->checking)
	{
		session->check_again = true;
		return;
	}
	session->checking = true;
	if (session->link[0] != '\0')
	{
		session_open_link(session);
		return;
	}
	session->changes = follow_changes();
	session->queries++;
	if (!database_query(DATABASE_READS, 0, session_check_sql, 2, params, 0, session_checked, session))
	{
		session->checking = false;
		session->queries--;
		session_close(session, CLOSE_RESTART, "the gateway is busy");
	}
}

void
session_tick(Session *session, int64_t now)
{
	if (session->expires <= now)
		session_close(session, CLOSE_UNAUTHORIZED, "the token has expired");
	else if (session->unchecked && session->state != SESSION_CLOSING)
		session_check(session);
}

void
session_pong(Session *session)
{
	uint64_t now = uv_now(&gateway.loop);

	/* A client may send pongs as it likes: looking through the locks once a second is enough. */
	if (session->room == NULL || now - session->renewed < 1000)
		return;
	session->renewed = now;
	locks_renew(&session->room->locks, session_holder(session), session_lease_end());
}

/* ---- out ---- */

void
session_send(Session *session, const char *payload, size_t len)
{
	session_send_message(session, payload, len, false);
}

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

	if (session->failed || session->close_sent)
		return;
	if (payload != NULL)
		frame = session_make_frame(binary ? FRAME_BINARY : FRAME_TEXT, true, payload, len);
	session_add_frame(session, frame);
}

void
session_send_part(Session *session, const char *payload, size_t len, bool last)
{
	FrameOp op = session->out_open ? FRAME_CONTINUATION : FRAME_TEXT;

	if (session->failed || session->close_sent)
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

	if (session->failed || session->close_sent)
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

/* ---- in ---- */

/* A refusal, with what the cell holds: only for those who asked for it. */
typedef struct Refusal
{
	Session *session;
	uint32_t row, col;
	char reason[64];
} Refusal;

static const char refusal_sql[] = "SELECT cells FROM sheet.read_cells($1, $2, $3, $2, $3)";

static void
refusal_answered(void *arg, PGresult *res)
{
	Refusal *refusal = arg;
	Session *session = refusal->session;
	Edit edit = {.content = {"", 0}};

	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
	{
		EditReader reader;
		EditBatch batch;
		Edit cell;

		edit_reader_init(&reader, PQgetvalue(res, 0, 0), (size_t) PQgetlength(res, 0, 0));
		if (edit_read_batch(&reader, &batch) == EDIT_OK && edit_read(&reader, &cell) == EDIT_OK)
			edit = cell;
	}
	session->refusals--;
	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
		session_close(session, CLOSE_RESTART, "the database does not answer"); /* what the cell holds is not known */
	else if (session->socket != NULL && session->state == SESSION_LIVE)
	{
		Buf payload = {NULL, 0, 0};

		v1_put_refused(&payload, refusal->row, refusal->col, refusal->reason, edit.content.data, edit.content.len);
		session_send(session, payload.data, payload.len);
		buf_free(&payload);
		if (session->out_bytes > (size_t) gateway.config.send_queue_bytes)
			session_close(session, CLOSE_SLOW, "the answers to refused messages are not read");
	}
	free(refusal);
	session_query_done(session);
}

static void
session_refuse(Session *session, uint32_t row, uint32_t col, const char *reason)
{
	char sheet[24], row_text[24], col_text[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(row_text, row),
						pgparam_int64(col_text, col)};
	Refusal *refusal;

	if (!session->nack || session->state != SESSION_LIVE)
		return;
	if (session->refusals >= SESSION_REFUSALS_MAX)
	{
		session_close(session, CLOSE_SLOW, "too many refused messages at once");
		return;
	}
	refusal = calloc(1, sizeof(Refusal));
	if (refusal == NULL)
	{
		session_fail(session);
		return;
	}
	session->refusals++;
	refusal->session = session;
	refusal->row = row;
	refusal->col = col;
	snprintf(refusal->reason, sizeof(refusal->reason), "%s", reason);
	session->queries++;
	if (!database_query(DATABASE_READS, 0, refusal_sql, 3, params, 1, refusal_answered, refusal))
		refusal_answered(refusal, NULL);
}

uint64_t
session_lease_end(void)
{
	return uv_now(&gateway.loop) + (uint64_t) gateway.config.lease_seconds * 1000;
}

/* The reason why the cell may not be changed by this user now; NULL when it may. */
static const char *
session_cell_barrier(Session *session, uint32_t row, uint32_t col, CellLock **lock)
{
	*lock = locks_find(&session->room->locks, row, col);
	if (!session->may_edit)
	{
		metrics.refused_role++;
		return "role";
	}
	if (*lock != NULL && (*lock)->uid != session_holder(session))
	{
		metrics.refused_locked++;
		return "locked";
	}
	return NULL;
}

static void
session_acquire(Session *session, const V1Message *message)
{
	CellLock *lock;
	const char *barrier = session_cell_barrier(session, message->row, message->col, &lock);

	if (barrier == NULL && lock == NULL)
	{
		lock =
			locks_add(&session->room->locks, message->row, message->col, session_holder(session), session_lease_end());
		if (lock == NULL)
			barrier = "busy";
	}
	if (barrier != NULL)
	{
		session_refuse(session, message->row, message->col, barrier);
		return;
	}
	lock->expires = session_lease_end();
	room_tell_lock(session->room, message->row, message->col, session, true);
}

static void
session_release(Session *session, const V1Message *message)
{
	CellLock *lock = locks_find(&session->room->locks, message->row, message->col);

	if (lock == NULL)
		return;
	if (lock->uid != session_holder(session))
	{
		session_refuse(session, message->row, message->col, "locked");
		return;
	}
	locks_remove(&session->room->locks, lock);
	room_tell_lock(session->room, message->row, message->col, session, false);
}

/* Why the edit may not be logged; NULL when it may. */
static const char *
session_edit_barrier(Session *session, const V1Message *message)
{
	RoomExtent extent = room_pending_extent(session->room);
	uint64_t rows = message->row + 1 > extent.rows ? message->row + 1 : extent.rows;
	uint64_t cols = message->col + 1 > extent.cols ? message->col + 1 : extent.cols;
	size_t chars;

	if (!utf8_check(message->content, message->content_len, &chars))
		return "malformed";
	if (chars > SHEET_MAX_CHARS)
		return "size";
	if (rows * cols > ROOM_MAX_RECTANGLE && (rows > extent.rows || cols > extent.cols))
		return "range";
	return NULL;
}

static void
session_modify(Session *session, const V1Message *message)
{
	CellLock *lock;
	const char *barrier = session_cell_barrier(session, message->row, message->col, &lock);
	bool styled = message->info_len > 0 && message->info[0] == '{' && message->info_len <= SHEET_MAX_STYLE_BYTES;
	RoomBatch *batch;
	Edit edit;

	if (barrier == NULL && (barrier = session_edit_barrier(session, message)) != NULL)
		metrics.refused_range++;
	if (barrier != NULL)
	{
		session_refuse(session, message->row, message->col, barrier);
		return;
	}
	if (lock != NULL)
		lock->expires = session_lease_end();
	edit = (Edit){.kind = EDIT_SET,
				  .uid = (uint64_t) session->uid,
				  .row = message->row,
				  .col = message->col,
				  .content = {message->content, (uint32_t) message->content_len},
				  .style = {styled ? message->info : NULL, styled ? (uint32_t) message->info_len : 0}};
	batch = room_pending(session->room);
	if (batch == NULL || !batch_reserve(batch, edit_size_bound(&edit),
										V1_MODIFY_PARTS + 20 + message->content_len * JSON_GROWTH + message->info_len +
											session->name_json.len))
	{
		session_fail(session);
		return;
	}
	room_add_edit(session->room, batch, &edit);
	publish_expect(session, batch);
	metrics.edits_received++;
	batch_add_v1_edit(batch, &edit, message->info, message->info_len, &session->name_json);
}

/* RFC 6455 8.1; utf8_check() refuses NUL, too, which is UTF-8 and only malformed. */
static bool
session_text_is_utf8(const char *text, size_t len)
{
	while (len > 0)
	{
		size_t part = strnlen(text, len);

		if (!utf8_check(text, part, NULL))
			return false;
		part += part < len;
		text += part;
		len -= part;
	}
	return true;
}

static void
session_handle(Session *session, const char *text, size_t len, bool binary)
{
	V1Message message;
	V1Status status;

	if (session->v2 != NULL)
	{
		v2_handle(session, text, len, binary);
		return;
	}
	if (!buf_reserve(&session->scratch, V1_SCRATCH(len)))
	{
		session_fail(session);
		return;
	}
	status = utf8_check(text, len, NULL) ? v1_scan(text, len, session->scratch.data, &message) : V1_MALFORMED;
	if (status == V1_MALFORMED && !binary && !session_text_is_utf8(text, len))
	{
		session_close(session, CLOSE_NOT_UTF8, "the text is not UTF-8");
		return;
	}
	if (status != V1_OK)
	{
		if (status == V1_RANGE)
			metrics.refused_range++;
		else
			metrics.refused_malformed++;
		session_refuse(session, 0, 0, status == V1_RANGE ? "range" : "malformed");
		return;
	}
	if (message.type == V1_MODIFY)
		session_modify(session, &message);
	else if (message.type == V1_ACQUIRE)
		session_acquire(session, &message);
	else
		session_release(session, &message);
}

/* A rare large message does not keep its room for the session's life. */
static void
session_shrink(Session *session)
{
	if (session->scratch.size > SESSION_KEEP_BYTES)
		buf_free(&session->scratch);
	if (session->rx.len == 0 && session->rx.size > SESSION_KEEP_BYTES)
		buf_free(&session->rx);
}

void
session_receive(Session *session, const char *data, size_t len, bool first, bool last, bool binary)
{
	size_t limit = (size_t) gateway.config.max_frame_bytes;

	if (session->state == SESSION_GREETING)
		limit = limit < V2_MAX_HELLO ? limit : V2_MAX_HELLO;
	else if (session->state != SESSION_LIVE)
		return; /* nothing can be meant before onConn, nothing is wanted after the end */
	if (session->rx.len + len > limit)
	{
		session_close(session, CLOSE_TOO_BIG, "the message is too large");
		return;
	}
	if (first && last)
	{
		session_handle(session, data, len, binary);
		session_shrink(session);
		return;
	}
	buf_put(&session->rx, data, len);
	if (buf_failed(&session->rx))
		session_fail(session);
	else if (last)
	{
		session_handle(session, session->rx.data, session->rx.len, binary);
		session->rx.len = 0;
		session_shrink(session);
	}
}
