/*
 * commit.c - pending edits become a batch, the batch a commit, the commit frames for all; and edits that were made
 * elsewhere.
 *
 * A room has one place on the edit connections. While it is taken, edits and frames collect (pending.c); when it is
 * free, what has collected is the next batch: large under load, one edit at low load, no timer. Frames are published
 * only after the commit, in the order of seqs: first what others committed in between (`missed`, told by sheet.apply
 * itself), then the own ones (tell.c). They are written when the next batches are under way (publish.c).
 *
 * When the outcome of a batch is unknown (connection lost, deadline), the same bytes are sent again under the same
 * number, and the database says whether they had arrived. If they had, behind more than one answer tells, the rest of
 * that is fetched, and the batch is told at its place. Batches of several rooms may share a transaction (group.c).
 *
 * When others have inserted or deleted rows or columns, the database refuses the batch (SR001): the room catches up,
 * which moves its edits to where their cells are (restructure.c), and sends it again; so it does when others have
 * committed more than one answer tells (SR002). Both say that the batch is not stored, and never will be under its
 * number. When the database refuses it for good, the members are closed: they come again and get the truth. Only an
 * operation with structure edits, which is a batch of its own, is refused like that by a nack.
 */
#include "ws/edit/commit.h"

#include "ws/room/accounts.h"
#include "ws/edit/dirty.h"
#include "core/database.h"
#include "core/gateway.h"
#include "ws/edit/group.h"
#include "support/log.h"
#include "core/metrics.h"
#include "ws/edit/pending.h"
#include "db/pgresult.h"
#include "ws/edit/publish.h"
#include "ws/session/session.h"
#include "ws/room/tell.h"
#include "ws/v2/v2_session.h"
#include "ws/cells/window.h"

#include <stdlib.h>
#include <string.h>

#define RESOLVE_MAX 256 /* names asked for in a row */
#define RETRY_MS	200

static const char apply_sql[] =
	"SELECT first_seq, last_seq, duplicate, missed FROM sheet.apply($1, $2, $3, $4, $5, $6, $7, $8)";
static const char tail_sql[] = "SELECT last_seq, batches FROM sheet.tail($1, $2)";
static const char name_sql[] = "SELECT uid, name FROM sheet.account_get($1)";

/* ---- names ---- */

static void room_applied(Room *room, PGresult *res);
static void room_tailed(Room *room, PGresult *res);

static void
room_name_answered(void *arg, PGresult *res)
{
	Room *room = arg;
	PGresult *answer = room->answer;

	room->answer = NULL;
	if (room->state == ROOM_SERVING && answer != NULL)
	{
		if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
			accounts_put(atoll(PQgetvalue(res, 0, 0)), PQgetvalue(res, 0, 1), -1, 0);
		if (room->sent != NULL && room->found_first == 0)
			room_applied(room, answer);
		else
			room_tailed(room, answer);
	}
	PQclear(answer);
	room_mark_dirty(room); /* edits may have come meanwhile */
	room_query_done(room);
}

/* Asks for a name and keeps the answer until it is there. False when it cannot be asked: go on without. */
static bool
room_resolve(Room *room, const PGresult *answer, int64_t uid)
{
	char text[24];
	PgParam param = pgparam_int64(text, uid);

	if (room->resolved++ >= RESOLVE_MAX)
		return false;			  /* more people than the table remembers at once: some names stay empty */
	accounts_put(uid, "", -1, 0); /* if nothing is found: no second question */
	room->answer = PQcopyResult(answer, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	if (room->answer == NULL)
		return false;
	room->queries++;
	if (database_query(DATABASE_READS, 0, name_sql, 1, &param, 0, room_name_answered, room))
	{
		room->busy = ROOM_RESOLVING;
		return true;
	}
	room->queries--;
	PQclear(room->answer);
	room->answer = NULL;
	return false;
}

/* ---- own batches ---- */

/* What the room's place is used for when no statement of its own is under way. */
static RoomBusy
room_resting(const Room *room)
{
	if (room->found_first != 0)
		return ROOM_FINDING;
	return room->held.listed ? ROOM_HELD : ROOM_IDLE;
}

/* Nothing is under way, and nothing may be stored of which it is not known whether it is. */
static bool
room_is_idle(const Room *room)
{
	return room->busy == ROOM_IDLE || (room->busy == ROOM_HELD && room->sent == NULL && !room->held.trying);
}

/*
 * Another transaction holds the sheet, and nothing is stored. The edits wait with the others, so that they move along
 * when that transaction inserts or deletes rows; but a batch that may have been stored before must go as it is.
 */
static void
room_yield(Room *room)
{
	if (!room->uncertain)
	{
		room_return_pending(room, room->sent);
		room->sent = NULL;
	}
	room->busy = ROOM_HELD;
	held_wait(room);
}

/* The batch is in the sheet, whose seq was `last` with it, and is told, as is all before it. */
static void
room_finish_batch(Room *room, int64_t last)
{
	RoomBatch *batch = room->sent;

	room->sent = NULL;
	room->found_first = 0;
	room->busy = ROOM_IDLE;
	metrics.batches++;
	metrics_observe(&metrics.commit_us, (uv_hrtime() - room->sent_at) / 1000);
	metrics_observe(&metrics.batch_edits, batch->count);
	tell_done(room);
	publish_ack_later(room, batch, last);
	room_mark_dirty(room);
}

/* The batch is stored, behind more than the database has told. */
static void
room_find_rest(Room *room, int64_t first, int64_t last)
{
	room->found_first = first;
	room->sent->seq = last;
	room->uncertain = false;
	room->busy = ROOM_FINDING;
	tell_done(room);
}

/* The batch is committed. */
static void
room_applied(Room *room, PGresult *res)
{
	RoomBatch *batch = room->sent;
	int64_t first = pgresult_int64(res, 0, 0);
	int64_t last = pgresult_int64(res, 0, 1);
	bool duplicate = PQgetvalue(res, 0, 2)[0] != 0;
	/* Its operations had landed with another batch (first 0): that one is told as anybody's is. */
	bool is_there = duplicate && first != 0;
	const char *missed = PQgetvalue(res, 0, 3);
	size_t missed_len = PQgetisnull(res, 0, 3) ? 0 : (size_t) PQgetlength(res, 0, 3);
	int64_t uid = tell_unknown_uid(missed, missed_len, first, is_there ? last : -1);

	window_committed(room_sheet_id(room), last);
	if (uid != 0 && room_resolve(room, res, uid))
		return;
	tell_missed(room, missed, missed_len, is_there ? batch : NULL, first, last);
	if (!duplicate)
		tell_own(room, batch, last);
	else
		metrics.duplicates++;
	if (is_there && room->published_seq < last)
	{
		room_find_rest(room, first, last);
		return;
	}
	if (last > room->published_seq)
		room->published_seq = last;
	room_finish_batch(room, last);
}

/* Errors after which the same batch may succeed. */
static bool
sqlstate_is_passing(const char *state)
{
	static const char *const passing[] = {"40", "53", "57", "08", "55P03", "SB001", "25006"};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
	{
		if (strncmp(state, passing[i], strlen(passing[i])) == 0)
			return true;
	}
	return false;
}

/*
 * The edits go again, under another number, but first what others have committed is told: it is too much for one
 * answer, or moves the batch's places. A refusal that comes again when nothing new was to be told would come for ever.
 */
static void
room_fall_back(Room *room)
{
	room->busy = ROOM_IDLE;
	if (room->refused_seq == room->published_seq)
	{
		room_fail(room, CLOSE_ERROR, "the edits cannot be stored");
		return;
	}
	room->refused_seq = room->published_seq;
	room_return_pending(room, room->sent);
	room->sent = NULL;
	room->behind = true;
}

/* The same batch goes again. */
static void
room_retry(Room *room, unsigned delay_ms)
{
	room->busy = ROOM_RETRYING;
	room->sent_at = uv_hrtime() + (uint64_t) delay_ms * 1000000;
}

/*
 * The database has no room for what an operation inserts, and its sender is told. Nothing else waits for what it would
 * have moved, since edits name places of before until it is committed.
 */
static void
room_refuse_structural(Room *room)
{
	RoomBatch *batch = room->sent;

	room->sent = NULL;
	room->busy = ROOM_IDLE;
	v2_refuse_batch(room, batch);
	batch_free(batch);
}

static void
room_refused(Room *room, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

	if (room->held.listed && strcmp(state, "55P03") == 0)
	{
		room_yield(room);
		return;
	}
	held_end(room);
	room->alone = true;
	log_event(LOG_WARN, "batch refused", LOG_INT("sheet", room_sheet_id(room)), LOG_STR("sqlstate", state),
			  LOG_STR("reason", reason));
	if (sqlstate_is_passing(state))
	{
		room_retry(room, RETRY_MS);
		return;
	}
	if (strcmp(state, "SR001") == 0 || strcmp(state, "SR002") == 0)
	{
		room_fall_back(room);
		return;
	}
	if (strcmp(state, "54000") == 0 && room->sent->structural && !room->uncertain)
	{
		room_refuse_structural(room);
		return;
	}
	room->busy = ROOM_IDLE;
	if (strcmp(state, "SF001") == 0)
		room_fail(room, CLOSE_RESTART, "another gateway has the sheet");
	else if (strcmp(state, "ST001") == 0)
		room_fail(room, CLOSE_GONE, "the sheet is in the trash");
	else if (strcmp(state, "42704") == 0)
		room_fail(room, CLOSE_NOT_FOUND, "no such sheet");
	else if (strcmp(state, "22023") == 0) /* what came before them is not there any more */
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again");
	else
		room_fail(room, CLOSE_ERROR, "the edits cannot be stored");
}

static void
room_apply_answered(void *arg, PGresult *res)
{
	Room *room = arg;

	if (room->state != ROOM_SERVING)
		window_doubt(room_sheet_id(room)); /* nobody is told of the batch, and it may be stored */
	else if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQgetisnull(res, 0, 1))
		room_yield(room);
	else if (res == NULL || pgresult_is_libpq_error(res))
	{
		held_end(room);
		/* Unknown: perhaps committed. The number tells the database, when it comes again. */
		room->uncertain = true;
		room_retry(room, res == NULL ? 0 : RETRY_MS);
		metrics.batches_resent++;
	}
	else if (PQresultStatus(res) == PGRES_TUPLES_OK)
	{
		room->alone = false;
		held_end(room);
		room_applied(room, res);
	}
	else if (PQresultStatus(res) == PGRES_PIPELINE_ABORTED)
		room_retry(room, 0); /* another sheet's batch failed: nothing of the group is stored */
	else
		room_refused(room, res);
	room_mark_dirty(room);
	room_query_done(room);
}

/* Whose operations are in the batch, as sheet.apply's `clients`. */
static PgParam
batch_clients(const RoomBatch *batch, Buf *text)
{
	if (batch->client_count == 0)
		return pgparam_null();
	for (size_t i = 0; i < batch->client_count; i++)
	{
		const BatchClient *entry = &batch->clients[i];

		buf_printf(text, "%c%lld,%llu,%llu,%llu", i > 0 ? ',' : '{', (long long) entry->client->uid,
				   (unsigned long long) entry->client->id, (unsigned long long) entry->first,
				   (unsigned long long) entry->last);
	}
	buf_puts(text, "}");
	return pgparam_buf(text, 0);
}

/*
 * Sends room->sent. On the group's connection it goes with the others' at the end of the iteration. conn NULL: on one
 * that waits for a sheet that another transaction holds.
 */
static bool
room_ask(PgConn *conn, const PgParam *params, Room *room)
{
	if (conn == NULL)
		return database_query(DATABASE_HELD, 0, apply_sql, 8, params, 1, room_apply_answered, room);
	if (!pgconn_send(conn, apply_sql, 8, params, 1, database_deadline(), room_apply_answered, room))
		return false;
	if (conn != gateway.group)
		pgconn_sync(conn);
	return true;
}

static void
room_send(Room *room, PgConn *conn)
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
			pgparam_text(conn == NULL ? "false" : "true"),
		};

		room->busy = ROOM_APPLYING;
		room->sent_at = uv_hrtime();
		room->queries++;
		if (!room_ask(conn, params, room))
		{
			room->queries--;
			room_retry(room, RETRY_MS);
		}
	}
	buf_free(&edits);
	buf_free(&clients);
}

/* ---- edits made elsewhere ---- */

static void
room_tailed(Room *room, PGresult *res)
{
	const char *batches = PQgetvalue(res, 0, 1);
	size_t len = PQgetisnull(res, 0, 1) ? 0 : (size_t) PQgetlength(res, 0, 1);
	bool finding = room->found_first != 0;
	int64_t first = finding ? room->found_first : -1, last = finding ? room->sent->seq : -2;
	int64_t uid = tell_unknown_uid(batches, len, first, last);

	if (uid != 0 && room_resolve(room, res, uid))
		return;
	room->busy = room_resting(room);
	if (len == 0 && finding)
	{
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again"); /* the database is another one */
		return;
	}
	if (len == 0)
	{
		room->wanted_seq = 0; /* that was all, or somebody was wrong */
		room->behind = false;
	}
	tell_missed(room, batches, len, finding ? room->sent : NULL, first, last);
	if (finding && room->published_seq >= last)
		room_finish_batch(room, last);
	else
		tell_done(room);
}

static void
room_tail_refused(Room *room, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	log_event(LOG_WARN, "tail not read", LOG_INT("sheet", room_sheet_id(room)),
			  LOG_STR("reason", pgresult_reason(res)));
	if (strcmp(state, "22023") == 0)
		room_fail(room, CLOSE_RESTART, "the sheet has to be read again");
	else if (sqlstate_is_passing(state) || pgresult_is_libpq_error(res))
		room->tail_at = uv_hrtime() + RETRY_MS * UINT64_C(1000000);
	else if (room->behind || room->found_first != 0)
		room_fail(room, CLOSE_ERROR, "the edits of others cannot be read");
	else
		room->wanted_seq = 0;
}

static void
room_tail_answered(void *arg, PGresult *res)
{
	Room *room = arg;

	if (room->state == ROOM_SERVING)
	{
		room->busy = room_resting(room);
		if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
			room_tailed(room, res);
		else if (res != NULL)
			room_tail_refused(room, res);
	}
	room_mark_dirty(room);
	room_query_done(room);
}

static void
room_fetch_tail(Room *room)
{
	char sheet[24], since[24];
	PgParam params[] = {pgparam_int64(sheet, room_sheet_id(room)), pgparam_int64(since, room->published_seq)};

	room->queries++;
	if (database_query(DATABASE_EDITS, 0, tail_sql, 2, params, 1, room_tail_answered, room))
		room->busy = ROOM_TAILING;
	else
	{
		room->queries--;
		room_mark_dirty(room); /* too much is waiting: later */
	}
}

void
room_catch_up(Room *room, int64_t seq)
{
	if (seq > room->wanted_seq)
		room->wanted_seq = seq;
	if (room->wanted_seq > room->published_seq)
		room_mark_dirty(room);
}

/* ---- the turn ---- */

/* The oldest pending edits become the batch under way. */
static void
room_send_next(Room *room, PgConn *conn)
{
	if (batch_failed(room->pending))
	{
		room_fail_memory(room);
		return;
	}
	room->sent = room_take_pending(room);
	room->batch_no++;
	room->uncertain = false;
	room_send(room, conn);
}

/* Frames without edits need no commit; they go out when nothing is before them. */
void
commit_send(Room *room)
{
	PgConn *conn;

	if (room->busy == ROOM_RETRYING && uv_hrtime() >= room->sent_at && !gateway.suspended &&
		(conn = group_place(room, room->sent)) != NULL && pgconn_is_up(conn))
		room_send(room, conn);
	while (room_is_idle(room) && room->pending != NULL && room->pending->count == 0 && room->pending->client_count == 0)
	{
		RoomBatch *batch = room_take_pending(room);

		tell_own(room, batch, room->published_seq);
		batch_free(batch);
		tell_done(room);
	}
	if (room->busy == ROOM_IDLE && room->pending != NULL && !room->behind && !gateway.suspended &&
		(conn = group_place(room, room->pending)) != NULL)
		room_send_next(room, conn);
}

bool
commit_try_held(Room *room)
{
	if (room->state != ROOM_SERVING || room->busy != ROOM_HELD || gateway.suspended)
		return false;
	if (!room->claimed)
		return room_claim_held(room);
	if (room->sent != NULL)
		room_send(room, NULL);
	else if (room->pending == NULL || room->behind)
	{
		held_end(room); /* it catches up first */
		room->busy = ROOM_IDLE;
		room_mark_dirty(room);
		return false;
	}
	else
		room_send_next(room, NULL);
	return true;
}

void
commit_follow(Room *room)
{
	bool wants =
		room->busy == ROOM_FINDING || (room_is_idle(room) && (room->behind || room->wanted_seq > room->published_seq));

	/* Not while receivers are behind: what others commit may be any amount, and they are not held back. */
	if (wants && !room->backlog)
	{
		if (uv_hrtime() >= room->tail_at)
			room_fetch_tail(room);
		else
			room_mark_dirty(room);
	}
	if (room->busy == ROOM_RETRYING || (room->pending != NULL && gateway.suspended))
		room_mark_dirty(room);
}
