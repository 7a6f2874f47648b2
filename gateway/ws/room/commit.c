/*
 * commit.c - sends a room's pending edits to the database, and reads those of others.
 *
 * A room has one statement under way on the edit connections (RoomWork). Meanwhile edits are collected (pending.c), and
 * are the next batch: large under load, one edit at low load, without a timer. A batch is published only after its
 * commit, in the order of seqs: first what others committed before it (`missed`, in sheet.apply's answer), then the
 * batch itself (publish.c).
 *
 * If the outcome of a batch is unknown (connection lost, deadline), the same bytes are sent again under the same
 * number, and the database says whether they are stored. If they are, behind more than one answer can hold, the rest of
 * that is fetched (FINDING), and the batch is published at its position. So is a batch with structure edits, to which
 * the database adds edits that rewrite formulas. Several rooms' batches may share a transaction
 * (schedule.c).
 *
 * When others have inserted or deleted rows or columns, the database refuses the batch (SR001): the room catches up,
 * which moves its pending edits (move.c), and sends them again. It does the same when others have committed more
 * than one answer can hold (SR002). Both errors say that the batch is not stored and never will be under its number.
 * After a final refusal the members are closed: they connect again and read what is stored. Only an operation with
 * structure edits or properties, a batch of its own, is refused by a nack.
 */
#include "ws/room/commit.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/cache/cached_range.h"
#include "ws/room/held.h"
#include "ws/room/pending.h"
#include "ws/room/publish.h"
#include "ws/room/schedule.h"

#include <string.h>

#define RETRY_MS 200

static const char apply_sql[] =
	"SELECT first_seq, last_seq, duplicate, missed, held FROM sheet.apply($1, $2, $3, $4, $5, $6, $7, $8)";
static const char tail_sql[] = "SELECT last_seq, batches FROM sheet.tail($1, $2)";

/* ---- own batches ---- */

/* The room's work when no statement is under way. */
static RoomWork
commit_resting(const Room *room)
{
	if (room->found_first != 0)
		return ROOM_FINDING;
	return room->held.listed ? ROOM_HELD : ROOM_IDLE;
}

/* Nothing is under way, and no outcome is unknown. */
static bool
commit_is_idle(const Room *room)
{
	return room->work == ROOM_IDLE || (room->work == ROOM_HELD && room->sent == NULL && !room->held.trying);
}

/* The batch is not under way any more. The caller owns it. */
static RoomBatch *
commit_take_sent(Room *room, RoomWork work)
{
	RoomBatch *batch = room->sent;

	room->sent = NULL;
	room->found_first = 0;
	room->refused.failures = 0;
	room_set_work(room, work);
	return batch;
}

/*
 * Another transaction holds the sheet, or a tab that refers to it (0: either); nothing is stored. The edits go back to
 * the pending ones, so that they are moved when that transaction inserts or deletes rows. A batch that may be stored
 * must be sent again as it is.
 */
static void
commit_yield(Room *room, int64_t sheet_id)
{
	if (room->sent->uncertain)
		room_set_work(room, ROOM_HELD);
	else
		pending_put_back(room, commit_take_sent(room, ROOM_HELD));
	held_wait(room, sheet_id);
}

/* The batch is stored, up to seq `last`, and published, as is everything before it. */
static void
commit_finish(Room *room, int64_t last)
{
	RoomBatch *batch = commit_take_sent(room, ROOM_IDLE);

	metrics.batches++;
	metrics_observe(&metrics.commit_us, (uv_hrtime() - room->sent_at) / 1000);
	metrics_observe(&metrics.batch_edits, batch->count);
	publish_acknowledge_later(room, batch, last);
	publish_end(room);
	room_mark_dirty(room);
}

/* The batch is stored, behind more than the answer holds, or with edits that it does not hold. */
static void
commit_find_rest(Room *room, int64_t first, int64_t last)
{
	room->found_first = first;
	room->sent->seq = last;
	room->sent->uncertain = false;
	room_set_work(room, ROOM_FINDING);
	publish_end(room);
}

/* How a batch that sheet.apply has taken is stored. */
typedef enum Applied
{
	APPLIED,		   /* as it was sent, behind `missed` */
	APPLIED_AND_MORE,  /* the same, with edits that the database has added: they are read from the log */
	APPLIED_BEFORE,	   /* it had been sent before, and is among `missed`, or behind them */
	APPLIED_ELSEWHERE, /* its operations were committed with another batch, which is among `missed` */
} Applied;

/* res: the answer of sheet.apply. */
static Applied
commit_how_applied(const RoomBatch *batch, const PGresult *res)
{
	bool duplicate = PQgetvalue(res, 0, 2)[0] != 0;
	bool has_seqs = pgresult_int64(res, 0, 0) != 0;

	if (duplicate)
		return has_seqs ? APPLIED_BEFORE : APPLIED_ELSEWHERE;
	return batch->structural && has_seqs ? APPLIED_AND_MORE : APPLIED;
}

/* The batch is committed. */
static void
commit_applied(Room *room, const PGresult *res)
{
	RoomBatch *batch = room->sent;
	Applied applied = commit_how_applied(batch, res);
	int64_t first = pgresult_int64(res, 0, 0);
	int64_t last = pgresult_int64(res, 0, 1);
	const char *missed = PQgetvalue(res, 0, 3);
	size_t missed_len = PQgetisnull(res, 0, 3) ? 0 : (size_t) PQgetlength(res, 0, 3);

	cached_range_committed(room_sheet_id(room), last);
	publish_stored(room, missed, missed_len, applied == APPLIED_BEFORE ? batch : NULL, first, last);
	if (applied == APPLIED)
		publish_batch(room, batch, last);
	metrics.duplicates += applied == APPLIED_BEFORE || applied == APPLIED_ELSEWHERE;
	if ((applied == APPLIED_BEFORE || applied == APPLIED_AND_MORE) && room->published_seq < last)
	{
		commit_find_rest(room, first, last);
		return;
	}
	if (last > room->published_seq)
		room->published_seq = last;
	commit_finish(room, last);
}

/* Returns whether the same batch may succeed later. */
static bool
sqlstate_is_retryable(const char *state)
{
	static const char *const retryable[] = {"40", "53", "57", "08", "55P03", "SB001", "25006"};

	for (size_t i = 0; i < sizeof(retryable) / sizeof(retryable[0]); i++)
	{
		if (strncmp(state, retryable[i], strlen(retryable[i])) == 0)
			return true;
	}
	return false;
}

/*
 * The edits are sent again, under another number, after the edits of others have been published, which are too many for
 * one answer, or move the batch's cells. A second refusal without anything new published in between would repeat
 * forever.
 */
static void
commit_fall_back(Room *room)
{
	pending_put_back(room, commit_take_sent(room, ROOM_IDLE));
	if (room->refused_seq == room->published_seq)
	{
		room_fail(room, CLOSE_ERROR, "the edits cannot be stored");
		return;
	}
	room->refused_seq = room->published_seq;
	room->must_catch_up = true;
}

/* The same batch is sent again. */
static void
commit_retry(Room *room, unsigned delay_ms)
{
	room_set_work(room, ROOM_RETRYING);
	room->sent_at = uv_hrtime() + (uint64_t) delay_ms * 1000000;
}

/* The database cannot store the operation. Its sender is told; nothing has been moved by it yet. */
static void
commit_refuse_operation(Room *room)
{
	RoomBatch *batch = commit_take_sent(room, ROOM_IDLE);

	room_each_protocol(refuse, room, batch);
	batch_free(batch);
}

/* Returns whether only the operation is at fault: no room for rows, columns or properties, or a value of a property
 * that the database cannot store (JSON with a number that is too large). */
static bool
commit_is_final(const char *state)
{
	return strcmp(state, "54000") == 0 || strcmp(state, "22P02") == 0 || strcmp(state, "22003") == 0;
}

#define COMMIT_ATTEMPTS 2 /* of an operation for which the database needs too long */

static bool
commit_takes_too_long(RoomBatch *batch, const char *state)
{
	return strcmp(state, "57014") == 0 && ++batch->cancelled >= COMMIT_ATTEMPTS;
}

static void
commit_log_refused(const Room *room, const PGresult *res)
{
	log_event(LOG_WARN, "batch refused", LOG_INT("sheet", room_sheet_id(room)),
			  LOG_STR("sqlstate", pgresult_sqlstate(res)),
			  LOG_STR("reason", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)));
}

static void
commit_refused(Room *room, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	if (room->held.listed && strcmp(state, "55P03") == 0)
	{
		commit_yield(room, room->sent->structural ? 0 : room_sheet_id(room));
		return;
	}
	held_end(room);
	room->alone = true;
	if (room->sent->refusable && !room->sent->uncertain &&
		(commit_is_final(state) || commit_takes_too_long(room->sent, state)))
	{
		commit_log_refused(room, res);
		commit_refuse_operation(room);
		return;
	}
	if (sqlstate_is_retryable(state))
	{
		if (repeat_failed(&room->refused, uv_now(&gateway.loop), state))
			commit_log_refused(room, res);
		commit_retry(room, RETRY_MS);
		return;
	}
	commit_log_refused(room, res);
	if (strcmp(state, "SR001") == 0 || strcmp(state, "SR002") == 0)
	{
		commit_fall_back(room);
		return;
	}
	room_set_work(room, ROOM_IDLE);
	if (strcmp(state, "SF001") == 0)
		room_fail(room, CLOSE_RESTART, "another gateway has the sheet");
	else if (strcmp(state, "ST001") == 0)
		room_fail(room, CLOSE_GONE, "the sheet is in the trash");
	else if (strcmp(state, "42704") == 0)
		room_fail(room, CLOSE_NOT_FOUND, "no such sheet");
	else if (strcmp(state, "22023") == 0) /* the server has lost edits that this room has published */
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again");
	else
		room_fail(room, CLOSE_ERROR, "the edits cannot be stored");
}

static void
commit_answered(void *arg, PGresult *res)
{
	Room *room = arg;

	if (!room_is_open(room))
		cached_range_invalidate(room_sheet_id(room)); /* the batch is not published, and may be stored */
	else if (pgresult_succeeded(res) && !PQgetisnull(res, 0, 4))
		commit_yield(room, pgresult_int64(res, 0, 4));
	else if (res == NULL || pgresult_is_libpq_error(res))
	{
		held_end(room);
		/* The outcome is unknown. The database recognises the batch by its number. */
		room->sent->uncertain = true;
		commit_retry(room, res == NULL ? 0 : RETRY_MS);
		metrics.batches_resent++;
	}
	else if (PQresultStatus(res) == PGRES_TUPLES_OK)
	{
		room->alone = false;
		held_end(room);
		repeat_ended(&room->refused, uv_now(&gateway.loop), "batch taken after refusals",
					 LOG_INT("sheet", room_sheet_id(room)));
		commit_applied(room, res);
	}
	else if (PQresultStatus(res) == PGRES_PIPELINE_ABORTED)
		commit_retry(room, 0); /* another batch of the group failed: nothing is stored */
	else
		commit_refused(room, res);
	room_mark_dirty(room);
	room_query_done(room);
}

/* The clients of the batch's operations, as sheet.apply's `clients`. */
static PgParam
batch_clients(const RoomBatch *batch, Buf *text)
{
	if (batch->client_count == 0)
		return pgparam_null();
	for (size_t i = 0; i < batch->client_count; i++)
	{
		const BatchClient *entry = &batch->clients[i];

		buf_printf(text, "%c%lld,%llu,%llu,%llu", i > 0 ? ',' : '{', (long long) entry->uid,
				   (unsigned long long) entry->id, (unsigned long long) entry->first, (unsigned long long) entry->last);
	}
	buf_puts(text, "}");
	return pgparam_buf(text, 0);
}

/* Sends room->sent. On gateway.group it is committed at the end of the iteration; conn NULL: on a connection that waits
 * for a held sheet. */
static bool
commit_ask(PgConn *conn, const PgParam *params, Room *room)
{
	if (conn == NULL)
		return database_query(DATABASE_HELD, 0, apply_sql, 8, params, 1, commit_answered, room);
	if (!pgconn_send(conn, apply_sql, 8, params, 1, database_deadline(), commit_answered, room))
		return false;
	if (conn != gateway.group)
		pgconn_sync(conn);
	return true;
}

static void
commit_send_batch(Room *room, PgConn *conn)
{
	RoomBatch *batch = room->sent;
	char sheet[24], known[24], epoch[24], origin[24], number[24];
	EditBatch head = {0, 0, batch->count};
	EditWriter writer;
	Buf edits = {NULL, 0, 0};
	Buf clients = {NULL, 0, 0};

	if (buf_reserve(&edits, EDIT_BATCH_HEAD_MAX + batch->edits.len))
	{
		edit_write_batch(&writer, (uint8_t *) edits.data, &head);
		edits.len = (size_t) ((char *) writer.pos - edits.data);
		buf_put_buf(&edits, &batch->edits);
	}
	{
		PgParam params[] = {
			pgparam_int64(sheet, room_sheet_id(room)),
			pgparam_buf(&edits, 1),
			pgparam_int64(known, room->published_seq),
			pgparam_int64(epoch, room->epoch),
			pgparam_int64(origin, gateway.origin),
			pgparam_int64(number, room->batch_no),
			batch_clients(batch, &clients),
			pgparam_text(conn == NULL && !room->held.asks ? "false" : "true"),
		};

		room_set_work(room, ROOM_APPLYING);
		room->sent_at = uv_hrtime();
		room->queries++;
		if (!commit_ask(conn, params, room))
		{
			room->queries--;
			commit_retry(room, RETRY_MS);
		}
	}
	buf_free(&edits);
	buf_free(&clients);
}

/* ---- edits made elsewhere ---- */

static void
commit_tailed(Room *room, const PGresult *res)
{
	const char *batches = PQgetvalue(res, 0, 1);
	size_t len = PQgetisnull(res, 0, 1) ? 0 : (size_t) PQgetlength(res, 0, 1);
	bool finding = room->found_first != 0;
	int64_t last = finding ? room->sent->seq : 0;

	if (len == 0 && finding)
	{
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again"); /* another server, without the batch */
		return;
	}
	if (len == 0)
	{
		room->wanted_seq = 0; /* that was all */
		room->must_catch_up = false;
	}
	publish_stored(room, batches, len, finding ? room->sent : NULL, room->found_first, last);
	if (finding && room->published_seq >= last)
		commit_finish(room, last);
	else
		publish_end(room);
}

static void
commit_tail_refused(Room *room, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	if (repeat_failed(&room->unread, uv_now(&gateway.loop), state))
		log_event(LOG_WARN, "tail not read", LOG_INT("sheet", room_sheet_id(room)),
				  LOG_STR("reason", pgresult_reason(res)));
	if (strcmp(state, "22023") == 0)
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again");
	else if (sqlstate_is_retryable(state) || pgresult_is_libpq_error(res))
		room->tail_at = uv_hrtime() + RETRY_MS * UINT64_C(1000000);
	else if (room->must_catch_up || room->found_first != 0)
		room_fail(room, CLOSE_ERROR, "the edits of others cannot be read");
	else
		room->wanted_seq = 0;
}

static void
commit_tail_answered(void *arg, PGresult *res)
{
	Room *room = arg;

	if (room_is_open(room))
	{
		room_set_work(room, commit_resting(room));
		if (pgresult_succeeded(res) && PQntuples(res) == 1)
		{
			repeat_ended(&room->unread, uv_now(&gateway.loop), "tail is read again",
						 LOG_INT("sheet", room_sheet_id(room)));
			commit_tailed(room, res);
		}
		else if (res != NULL)
			commit_tail_refused(room, res);
	}
	room_mark_dirty(room);
	room_query_done(room);
}

static void
commit_fetch_tail(Room *room)
{
	char sheet[24], since[24];
	int64_t known = room->found_first != 0 && room->sent->collected != 0 ? room->sent->collected : room->published_seq;
	PgParam params[] = {pgparam_int64(sheet, room_sheet_id(room)), pgparam_int64(since, known)};

	room->queries++;
	if (database_query(DATABASE_EDITS, 0, tail_sql, 2, params, 1, commit_tail_answered, room))
		room_set_work(room, ROOM_TAILING);
	else
	{
		room->queries--;
		room_mark_dirty(room); /* the class is busy */
	}
}

/* ---- in each iteration ---- */

/* Sends the oldest pending batch. */
static void
commit_send_next(Room *room, PgConn *conn)
{
	if (batch_failed(room->pending))
	{
		room_fail_memory(room);
		return;
	}
	room->sent = pending_take(room);
	room->sent->uncertain = false;
	room->batch_no++;
	commit_send_batch(room, conn);
}

/* Sends what a held sheet waits with, on the connections that may wait. Returns false when it cannot be sent now. */
static bool
commit_try_held(Room *room)
{
	if (room->work != ROOM_HELD || gateway.suspended)
		return false;
	if (room->state == ROOM_UNCLAIMED)
		return room_claim_again(room);
	if (room->sent != NULL)
		commit_send_batch(room, NULL);
	else if (room->pending == NULL || room->must_catch_up)
	{
		held_end(room);
		room_set_work(room, ROOM_IDLE);
		room_mark_dirty(room);
		return false;
	}
	else
		commit_send_next(room, NULL);
	return true;
}

void
commit_send(Room *room)
{
	RoomBatch *batch;
	PgConn *conn;

	if (room->held.listed && room->held.due)
	{
		room->held.due = false;
		room->held.trying = commit_try_held(room);
	}
	if (room->work == ROOM_RETRYING && uv_hrtime() >= room->sent_at && !gateway.suspended &&
		(conn = schedule_connection(room, room->sent)) != NULL && pgconn_is_up(conn))
		commit_send_batch(room, conn);
	/* A batch without edits needs no commit. It is published when nothing is before it. */
	while (commit_is_idle(room) && (batch = room->pending) != NULL && batch->count == 0 && batch->client_count == 0)
	{
		pending_take(room);
		publish_batch(room, batch, room->published_seq);
		batch_free(batch);
		publish_end(room);
	}
	if (room->work == ROOM_IDLE && room->pending != NULL && !room->must_catch_up && !gateway.suspended &&
		(conn = schedule_connection(room, room->pending)) != NULL)
		commit_send_next(room, conn);
}

void
commit_fetch(Room *room)
{
	bool wants = room->work == ROOM_FINDING ||
				 (commit_is_idle(room) && (room->must_catch_up || room->wanted_seq > room->published_seq));

	/* Others may commit any amount, and this gateway cannot pause them. */
	if (wants && room->flow != ROOM_LAGGING)
	{
		if (uv_hrtime() >= room->tail_at)
			commit_fetch_tail(room);
		else
			room_mark_dirty(room);
	}
	if (room->work == ROOM_RETRYING || (room->pending != NULL && gateway.suspended))
		room_mark_dirty(room);
}
