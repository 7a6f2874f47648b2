/*
 * v1_session.c - sessions of protocol v1: what they send. v1_join.c has how they begin, v1_stream.c what is
 * published to them.
 */
#include "common/edit_codec.h"
#include "common/utf8.h"
#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "ws/room/admission.h"
#include "ws/room/members.h"
#include "ws/room/pending.h"
#include "ws/room/publish.h"
#include "ws/v1/v1.h"
#include "ws/wire/v1_encode.h"
#include "ws/wire/v1_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS_MAX 256 /* under way, of a session */
#define REFUSALS_ALL                                                                                                   \
	2048 /* of all sessions; then a session has REFUSALS_FEW: others need the connections for reads                    \
		  */
#define REFUSALS_FEW 8

static int refusals; /* of all sessions */

/* ---- refusals ---- */

/* A refused message. It is answered with the cell's content, to clients that understand it. */
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

	if (pgresult_succeeded(res) && PQntuples(res) == 1)
	{
		EditReader reader;
		EditBatch batch;
		Edit cell;

		edit_reader_init(&reader, PQgetvalue(res, 0, 0), (size_t) PQgetlength(res, 0, 0));
		if (edit_read_batch(&reader, &batch) == EDIT_OK && edit_read(&reader, &cell) == EDIT_OK)
			edit = cell;
	}
	session->refusals--;
	refusals--;
	if (!pgresult_succeeded(res))
		session_close(session, CLOSE_RESTART, "the database does not answer"); /* the cell's content is not known */
	else if (session->socket != NULL && session->state == SESSION_LIVE)
	{
		Buf payload = {NULL, 0, 0};

		v1_put_refused(&payload, refusal->row, refusal->col, refusal->reason, edit.content.data, edit.content.len);
		session_send(session, &payload);
		if (session->out_bytes > (size_t) gateway.config.send_queue_bytes)
			session_close(session, CLOSE_SLOW, "the answers to refused messages are not read");
	}
	free(refusal);
	session_query_done(session);
}

static void
v1_refuse(Session *session, uint32_t row, uint32_t col, const char *reason)
{
	char sheet[24], row_text[24], col_text[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(row_text, row),
						pgparam_int64(col_text, col)};
	Refusal *refusal;

	if (!session->nack || session->state != SESSION_LIVE)
		return;
	if (session->refusals >= (refusals < REFUSALS_ALL ? REFUSALS_MAX : REFUSALS_FEW))
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
	refusals++;
	*refusal = (Refusal){.session = session, .row = row, .col = col};
	snprintf(refusal->reason, sizeof(refusal->reason), "%s", reason);
	session->queries++;
	if (!database_query(DATABASE_READS, 0, refusal_sql, 3, params, 1, refusal_answered, refusal))
		refusal_answered(refusal, NULL);
}

/* Counts why a cell cannot be changed. Returns the reason's name, NULL when there is none. */
static const char *
v1_reason(V2Reason reason)
{
	metrics.refused_role += reason == V2_REASON_ROLE;
	metrics.refused_locked += reason == V2_REASON_LOCKED;
	return reason != V2_REASON_NONE ? v2_reason_names[reason] : NULL;
}

/* ---- messages ---- */

static void
v1_acquire(Session *session, const V1Message *message)
{
	const char *reason = v1_reason(members_lock_cell(session, message->row, message->col));

	if (reason != NULL)
		v1_refuse(session, message->row, message->col, reason);
}

static void
v1_release(Session *session, const V1Message *message)
{
	if (members_unlock_cell(session, message->row, message->col) == V2_REASON_LOCKED)
		v1_refuse(session, message->row, message->col, "locked");
}

/* Returns why the session may not change the cell now, NULL when it may. Renews its lock of the cell. */
static const char *
v1_cell_problem(Session *session, uint32_t row, uint32_t col)
{
	LockHolder holder = session_lock_holder(session);
	const uint32_t rect[4] = {row, col, row, col};

	if (!session->may_edit)
		return v1_reason(V2_REASON_ROLE);
	if (locks_find_other(&session->room->locks, &holder, rect, members_lease_end()) != NULL)
		return v1_reason(V2_REASON_LOCKED);
	return NULL;
}

/* Returns why the edit cannot be taken, NULL when it can. */
static const char *
v1_edit_problem(Session *session, const V1Message *message)
{
	RoomExtent extent = pending_extent(session->room);
	uint64_t rows = message->row + 1 > extent.rows ? message->row + 1 : extent.rows;
	uint64_t cols = message->col + 1 > extent.cols ? message->col + 1 : extent.cols;
	size_t chars;

	if (!utf8_check(message->content, message->content_len, &chars))
		return "malformed";
	if (chars > SHEET_MAX_CHARS)
		return "size";
	if (rows * cols > V1_MAX_RECTANGLE && (rows > extent.rows || cols > extent.cols))
		return "range";
	return NULL;
}

static void
v1_modify(Session *session, const V1Message *message)
{
	const char *problem = v1_cell_problem(session, message->row, message->col);
	/* An info that is no style is passed on and not stored. */
	bool styled = message->info_len > 0 && message->info[0] == '{' && message->info_len <= SHEET_MAX_STYLE_BYTES;
	bool passed_on = !styled && message->info_len > 0 && message->info[0] != 'n';
	RoomBatch *batch;
	Edit edit;

	if (problem == NULL && (problem = v1_edit_problem(session, message)) != NULL)
		metrics.refused_range++;
	if (problem != NULL)
	{
		v1_refuse(session, message->row, message->col, problem);
		return;
	}
	edit = (Edit){.kind = EDIT_SET,
				  .uid = (uint64_t) session->uid,
				  .row = message->row,
				  .col = message->col,
				  .content = {message->content, (uint32_t) message->content_len},
				  .style = {styled ? message->info : NULL, styled ? (uint32_t) message->info_len : 0}};
	batch = pending_batch(session->room, 1, 0);
	if (batch == NULL || !batch_reserve(batch, edit_size_bound(&edit)) || !batch_begin_writer(batch, 0) ||
		(passed_on && !v1_put_info(batch, message->info, message->info_len)))
	{
		session_fail(session);
		return;
	}
	pending_add_edit(session->room, batch, &edit);
	publish_expect(session, batch);
	metrics.edits_received++;
}

/* RFC 6455 8.1. utf8_check() also refuses NUL, which is UTF-8. */
static bool
text_is_utf8(const char *text, size_t len)
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
v1_receive(Session *session, const char *text, size_t len, bool binary)
{
	V1Message message;
	V1Status status;

	if (!buf_reserve(&session->scratch, V1_SCRATCH(len)))
	{
		session_fail(session);
		return;
	}
	status = utf8_check(text, len, NULL) ? v1_scan(text, len, session->scratch.data, &message) : V1_MALFORMED;
	if (status == V1_MALFORMED && !binary && !text_is_utf8(text, len))
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
		v1_refuse(session, 0, 0, status == V1_RANGE ? "range" : "malformed");
		return;
	}
	if (message.type == V1_MODIFY)
		v1_modify(session, &message);
	else if (message.type == V1_ACQUIRE)
		v1_acquire(session, &message);
	else
		v1_release(session, &message);
}

/* ---- what it is told ---- */

static void
v1_close_moved(Session *session, const char *address)
{
	session_close(session, CLOSE_RESTART, address);
}

static void
v1_send_holder(Session *session, const SheetHolder *holder)
{
	Buf payload = {NULL, 0, 0};

	if (!session->nack)
		return;
	v1_put_held(&payload, holder->held, holder->name, holder->application, holder->ms);
	session_send(session, &payload);
}

const Protocol protocol_v1 = {
	.receive = v1_receive,
	.join = v1_join,
	.stop_joining = v1_stop_joining,
	.close_moved = v1_close_moved,
	.closing = members_resign_soon,
	.leave = members_remove,
	.renew = members_renew_locks,
	.send_holder = v1_send_holder,
	.publish_own = v1_publish_own,
	.publish_stored = v1_publish_stored,
	.published = v1_published,
	.moved = v1_moved,
	.free_room = v1_free_room,
};

Session *
v1_session_open(Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link, bool nack)
{
	Session *session = session_create(socket, &protocol_v1, sheet_id, link);

	if (session == NULL)
		return NULL;
	session->uid = claims->uid;
	session->generation = claims->generation;
	session->token_id = jwt_token_id(claims);
	session->expires = claims->expires_at;
	session->nack = nack;
	session_set_state(session, SESSION_CHECKING);
	admission_check(session);
	return session;
}
