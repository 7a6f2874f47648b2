/*
 * v1_session.c - what clients of protocol v1 send: edits, and the locks of cells.
 */
#include "ws/v1/v1_session.h"

#include "core/database.h"
#include "common/edit_codec.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/edit/pending.h"
#include "ws/edit/publish.h"
#include "common/utf8.h"
#include "ws/v1/v1_encode.h"
#include "ws/v1/v1_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS_MAX 256 /* being answered at once */

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
v1_refuse(Session *session, uint32_t row, uint32_t col, const char *reason)
{
	char sheet[24], row_text[24], col_text[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(row_text, row),
						pgparam_int64(col_text, col)};
	Refusal *refusal;

	if (!session->nack || session->state != SESSION_LIVE)
		return;
	if (session->refusals >= REFUSALS_MAX)
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

/* The reason why the cell may not be changed by this user now; NULL when it may. */
static const char *
v1_cell_barrier(Session *session, uint32_t row, uint32_t col, CellLock **lock)
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
v1_acquire(Session *session, const V1Message *message)
{
	CellLock *lock;
	const char *barrier = v1_cell_barrier(session, message->row, message->col, &lock);

	if (barrier == NULL && lock == NULL)
	{
		lock =
			locks_add(&session->room->locks, message->row, message->col, session_holder(session), session_lease_end());
		if (lock == NULL)
			barrier = "busy";
	}
	if (barrier != NULL)
	{
		v1_refuse(session, message->row, message->col, barrier);
		return;
	}
	lock->expires = session_lease_end();
	room_tell_lock(session->room, message->row, message->col, session, true);
}

static void
v1_release(Session *session, const V1Message *message)
{
	CellLock *lock = locks_find(&session->room->locks, message->row, message->col);

	if (lock == NULL)
		return;
	if (lock->uid != session_holder(session))
	{
		v1_refuse(session, message->row, message->col, "locked");
		return;
	}
	locks_remove(&session->room->locks, lock);
	room_tell_lock(session->room, message->row, message->col, session, false);
}

/* Why the edit may not be logged; NULL when it may. */
static const char *
v1_edit_barrier(Session *session, const V1Message *message)
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
v1_modify(Session *session, const V1Message *message)
{
	CellLock *lock;
	const char *barrier = v1_cell_barrier(session, message->row, message->col, &lock);
	bool styled = message->info_len > 0 && message->info[0] == '{' && message->info_len <= SHEET_MAX_STYLE_BYTES;
	RoomBatch *batch;
	Edit edit;

	if (barrier == NULL && (barrier = v1_edit_barrier(session, message)) != NULL)
		metrics.refused_range++;
	if (barrier != NULL)
	{
		v1_refuse(session, message->row, message->col, barrier);
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

void
v1_handle(Session *session, const char *text, size_t len, bool binary)
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
