/*
 * v2_join.c - how a session of protocol v2 begins: hello, and the edits that it has missed; and names of accounts.
 * v2_block.c has the cells.
 *
 * Everything up to joined_seq is before the session's position in the stream. What it has missed up to there (`since`)
 * is read from the log; what comes later is in the stream. So no edit is sent twice, and none is left out.
 *
 * Hello has the sheet's extent and locks as the room has them at that time, so rows and columns must not have moved
 * since joined_seq; otherwise the session takes a new position. Locks that have moved since `since` are sent behind the
 * missed edits, which would move them again.
 */
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/cache/accounts.h"
#include "ws/room/held.h"
#include "ws/room/members.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

#define RESUME_TAILS 4				   /* attempts, if rows and columns move meanwhile */
#define RESUME_BYTES (4 * 1024 * 1024) /* a client that has missed more reads its cells again */

static const char state_sql[] = "SELECT sheet.client_acknowledged($1, $2, $3)";
static const char tail_sql[] = "SELECT last_seq, batches FROM sheet.tail($1, $2, $3)";
static const char user_sql[] = "SELECT sheet.account_seen($1, $2)";

static bool
result_has_row(const PGresult *res)
{
	return pgresult_succeeded(res) && PQntuples(res) == 1;
}

/* ---- hello ---- */

/* Lists the other members. peers has room->session_count entries. */
static uint32_t
join_list_peers(const Session *session, V2Peer *peers)
{
	uint32_t count = 0;

	for (const Session *other = LIST_FIRST(&session->room->sessions); other != NULL; other = LIST_NEXT(other, in_room))
	{
		if (other != session && other->state != SESSION_CLOSING)
			peers[count++] = (V2Peer){other->number, (uint64_t) other->uid, other->name};
	}
	return count;
}

/* Returns the locked cells and ranges, to be freed; NULL when there is no memory. */
static V2Lock *
join_list_locks(const Room *room, uint32_t *count)
{
	V2Lock *list = calloc(room->locks.count + room->locks.range_count + 1, sizeof(V2Lock));

	*count = 0;
	for (size_t i = 0; list != NULL && i <= room->locks.bucket_count; i++)
	{
		for (const SheetLock *lock = locks_list(&room->locks, i); lock != NULL; lock = lock->next)
		{
			if (!lock->waits && members_find_holder(room, &lock->holder) != NULL)
				list[(*count)++] = v2_lock_of(lock->rect, lock->range, lock->holder);
		}
	}
	return list;
}

/* locks: they name the rows and columns of hello's seq. */
static void
join_greet(Session *session, bool resumed, bool locks)
{
	const Room *room = session->room;
	const V2Session *v2 = session->v2;
	uint32_t lock_count;
	V2Peer *peers = calloc((size_t) room->session_count + 1, sizeof(V2Peer));
	V2Lock *list = join_list_locks(room, &lock_count);
	Buf payload = {NULL, 0, 0};
	V2Hello hello = {
		.version = v2->version,
		.session = session->number,
		.uid = (uint64_t) session->uid,
		.name = session->sheet_name,
		.role = session->role,
		.seq = resumed ? v2->since : (uint64_t) v2->joined_seq,
		.epoch = (uint64_t) room->epoch,
		.rows = room->extent.rows,
		.cols = room->extent.cols,
		.landed = v2->client != NULL ? v2->client->committed : 0,
		.resumed = resumed,
		.retention = V2_RETENTION,
		.lease = (uint64_t) gateway.config.lease_seconds,
		.max_bytes = (uint64_t) gateway.config.max_frame_bytes,
		.peers = peers,
		.peer_count = peers != NULL ? join_list_peers(session, peers) : 0,
		.locks = list,
		.lock_count = locks ? lock_count : 0,
	};

	if (peers == NULL || list == NULL)
		buf_fail(&payload);
	else
		v2_put_hello(&payload, v2->encoding, &hello);
	session_send(session, &payload);
	free(peers);
	free(list);
}

static void
join_send_locks(Session *session)
{
	uint32_t count;
	V2Lock *list = join_list_locks(session->room, &count);

	if (list == NULL)
		session_fail(session);
	for (uint32_t i = 0; i < count; i++)
	{
		Buf payload = {NULL, 0, 0};

		if (list[i].range && !v2_knows_ranges(session))
			continue;
		v2_put_lock(&payload, session->v2->encoding, &list[i]);
		session_send(session, &payload);
	}
	free(list);
}

static void
join_put_properties(Session *session, Buf *edits, uint32_t count, bool more)
{
	Buf payload = {NULL, 0, 0};

	if (buf_failed(edits))
		buf_fail(&payload);
	else
		v2_put_properties(&payload, session->v2->encoding, (uint64_t) session->v2->joined_seq, more, edits->data,
						  edits->len, count);
	session_send(session, &payload);
	edits->len = 0;
}

/* Sends the sheet's properties, if it has any. */
static void
join_send_properties(Session *session)
{
	const Properties *set = &session->room->properties;
	Buf edits = {NULL, 0, 0};
	EditWriter writer;
	uint32_t count = 0;

	edit_write_edits(&writer, NULL);
	for (uint32_t i = 0; i < set->count; i++)
	{
		char text[PROPERTY_TEXT_MAX];
		Edit edit = property_edit(properties_get(set, i), text);

		edit.uid = 0;
		edits_put(&edits, &writer, &edit);
		count++;
		if (edits.len <= BATCH_PART_BYTES && i + 1 < set->count)
			continue;
		join_put_properties(session, &edits, count, i + 1 < set->count);
		count = 0;
		writer.first = true;
	}
	buf_free(&edits);
}

static void
join_admit(Session *session, bool resumed, bool locks)
{
	join_greet(session, resumed, locks);
	if (!resumed)
		join_send_properties(session);
	if (session->state != SESSION_JOINING)
		return; /* out of memory */
	session_set_state(session, SESSION_LIVE);
	session->lagging_since = 0;
	held_greet(session);
	log_event(LOG_INFO, "session joined", LOG_STR("peer", session->peer), LOG_INT("uid", session->uid),
			  LOG_INT("sheet", session->sheet_id), LOG_INT("seq", session->v2->joined_seq),
			  LOG_INT("resumed", resumed));
}

/* Publishes the others' selections once more, for the new member. */
static void
join_publish_cursors(Session *session)
{
	bool any = false;

	for (Session *other = LIST_FIRST(&session->room->sessions); other != NULL; other = LIST_NEXT(other, in_room))
	{
		if (other->v2 == NULL || !other->v2->has_cursor || other->resigned)
			continue;
		other->v2->cursor_moved = true;
		any = true;
	}
	if (any)
		v2_publish_cursors_soon(session->room);
}

/* ---- what was missed ---- */

static void
join_emit(void *arg, Buf *payload)
{
	session_send(arg, payload);
}

/* Sends the batches that are not in the stream, as one commit. */
static void
join_send_missed(Session *session, const char *batches, size_t len)
{
	EditReader reader;

	edit_reader_init(&reader, batches, len);
	v2_put_batches(session->v2->encoding, reader, session->v2->joined_seq, true, join_emit, session);
}

/* Adds structure edits among the missed ones to the room's history, for operations that were made before them. Returns
 * false when there is no memory. */
static bool
join_add_history(Session *session, const char *batches, size_t len)
{
	LinesHistory *memory = &session->room->lines;
	LinesHistory older = {0};
	EditReader reader;
	EditBatch batch;
	LineChange change;
	bool good = true;
	Edit edit;

	edit_reader_init(&reader, batches, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		int64_t last = (int64_t) (batch.first_seq + batch.count - 1);

		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			if (last <= memory->floor && line_change_of(&edit, &change))
				good = lines_history_add(&older, &change, last) && good;
		}
	}
	if (older.floor == 0)
		older.floor = (int64_t) session->v2->since;
	good = good && lines_history_add_older(memory, older.entries, older.count, older.floor);
	lines_history_free(&older);
	return good;
}

static void
join_live(Session *session)
{
	join_publish_cursors(session);
	session_want_write(session);
}

/* Takes the end of the stream as the session's position. Returns false when there is no memory. */
static bool
join_attach(Session *session)
{
	session_leave_stream(session);
	if (!fanout_attach(session->stream, &session->cursor))
	{
		session_fail(session);
		return false;
	}
	session->v2->joined_seq = session->room->published_seq;
	return true;
}

static void
join_anew(Session *session)
{
	V2Session *v2 = session->v2;

	if (!join_attach(session))
		return;
	if (v2->since > 0)
		v2->moved_seq = (uint64_t) v2->joined_seq; /* nothing says that they have not */
	join_admit(session, false, true);
	join_live(session);
}

static void
join_resumed(Session *session, const PGresult *missed)
{
	const char *batches = PQgetvalue(missed, 0, 1);
	size_t len = (size_t) PQgetlength(missed, 0, 1);
	bool moved;

	if (!join_add_history(session, batches, len))
	{
		session_fail(session);
		return;
	}
	moved = lines_history_changed_since(&session->room->lines, (int64_t) session->v2->since);
	join_admit(session, true, !moved);
	join_send_missed(session, batches, len);
	if (moved)
		join_send_locks(session);
	join_live(session);
}

/* Returns whether the answer has everything that was missed. */
static bool
join_may_resume(const Session *session, const PGresult *res)
{
	return result_has_row(res) && pgresult_int64(res, 0, 0) >= session->v2->joined_seq && !PQgetisnull(res, 0, 1);
}

static void join_resume(Session *session);

static void
join_tailed(void *arg, PGresult *res)
{
	Session *session = arg;

	if (session->state == SESSION_JOINING && session->socket != NULL)
	{
		if (res == NULL)
			session_close(session, CLOSE_RESTART, "the database does not answer");
		else if (!join_may_resume(session, res))
			join_anew(session);
		else if (lines_history_changed_since(&session->room->lines, session->v2->joined_seq))
			join_resume(session);
		else
			join_resumed(session, res);
	}
	session_query_done(session);
}

static void
join_ask(Session *session, const char *sql, PgParam *params, PgResultFn fn)
{
	session->queries++;
	if (database_query(DATABASE_READS, 0, sql, 3, params, 1, fn, session))
		return;
	session->queries--;
	session_close(session, CLOSE_RESTART, "the gateway is busy");
}

static void
join_ask_tail(Session *session)
{
	char sheet[24], since[24], bytes[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(since, (int64_t) session->v2->since),
						pgparam_int64(bytes, RESUME_BYTES)};

	join_ask(session, tail_sql, params, join_tailed);
}

static void
join_resume(Session *session)
{
	V2Session *v2 = session->v2;

	if (!join_attach(session))
		return;
	if (v2->since == 0 || (int64_t) v2->since > v2->joined_seq || v2->tails++ == RESUME_TAILS)
		join_anew(session);
	else if ((int64_t) v2->since < v2->joined_seq)
		join_ask_tail(session);
	else
	{
		join_admit(session, true, true);
		join_live(session);
	}
}

/* res: the client's last committed operation. If operations of it are under way here, the room knows better. */
static void
join_set_committed(Session *session, const PGresult *res)
{
	V2Client *client = session->v2->client;
	uint64_t acked = session->v2->acked;

	if (client != NULL && !client->known)
	{
		client->known = true;
		client->taken = client->committed = (uint64_t) pgresult_int64(res, 0, 0);
	}
	if (client != NULL && acked > client->committed && acked > client->taken)
		session_close(session, CLOSE_FORGOTTEN, "what was acknowledged to this client is not known here");
	else
		join_resume(session);
}

static void
join_state_answered(void *arg, PGresult *res)
{
	Session *session = arg;

	if (session->state == SESSION_JOINING && session->socket != NULL)
	{
		if (result_has_row(res))
			join_set_committed(session, res);
		else
			session_close(session, CLOSE_RESTART, "the database does not answer");
	}
	session_query_done(session);
}

void
v2_join(Session *session)
{
	char sheet[24], uid[24], client[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(uid, session->uid),
						pgparam_int64(client, (long long) session->v2->client_id)};

	session_set_state(session, SESSION_JOINING);
	if (!join_attach(session))
		return;
	if (session->v2->client_id != 0 && !v2_open_client(session))
		session_fail(session);
	else
		join_ask(session, state_sql, params, join_state_answered);
}

/* ---- names ---- */

typedef struct UserQuestion
{
	Session *session;
	int64_t uid;
} UserQuestion;

static void
user_send(Session *session, int64_t uid, const char *name)
{
	Buf payload = {NULL, 0, 0};

	v2_put_user(&payload, session->v2->encoding, (uint64_t) uid, name);
	session_send(session, &payload);
}

/* The name of a member who has opened the sheet by its link, and is not in the database. Guests of one link have one
 * uid, and different names. */
static const char *
user_find_here(const Room *room, int64_t uid)
{
	for (const Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (session->uid == uid && uid > 0 && session->name != NULL)
			return session->name;
	}
	return NULL;
}

/* Members must not learn who else has an account: an account that is not seen here has no name. */
static void
user_send_seen(UserQuestion *question, const char *name)
{
	Session *session = question->session;

	if (name == NULL)
		name = user_find_here(session->room, question->uid);
	if (name != NULL)
		accounts_put_seen(session->sheet_id, question->uid);
	user_send(session, question->uid, name != NULL ? name : "");
}

static void
user_answered(void *arg, PGresult *res)
{
	UserQuestion *question = arg;
	Session *session = question->session;

	session->v2->questions--;
	if (session->state == SESSION_LIVE && session->socket != NULL)
	{
		if (!pgresult_succeeded(res))
			session_close(session, CLOSE_RESTART, "the database does not answer");
		else
			user_send_seen(question, PQgetisnull(res, 0, 0) ? NULL : PQgetvalue(res, 0, 0));
	}
	free(question);
	session_query_done(session);
}

void
v2_send_user(Session *session, int64_t uid)
{
	const Account *account = accounts_is_seen(session->sheet_id, uid) ? accounts_find(uid) : NULL;
	char sheet[24], text[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(text, uid)};
	UserQuestion *question;

	if (account != NULL && account->name[0] != '\0')
	{
		user_send(session, uid, account->name);
		return;
	}
	question = calloc(1, sizeof(UserQuestion));
	if (question == NULL)
	{
		session_fail(session);
		return;
	}
	*question = (UserQuestion){session, uid};
	session->v2->questions++;
	session->queries++;
	if (!database_query(DATABASE_READS, 0, user_sql, 2, params, 0, user_answered, question))
		user_answered(question, NULL);
}
