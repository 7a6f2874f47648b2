/*
 * v2_join.c - how a member of protocol v2 begins: how large the sheet is, what has landed of its operations, what it
 * has missed; and names for it. v2_block.c has the cells.
 *
 * Its place in the room's stream is where everything up to joined_seq has been told. What it has missed up to there is
 * read from the log (`since`), what comes later is in the stream: no edit is told twice, none is left out.
 *
 * What hello tells of the sheet's extent and of its locks is as the room has them then, so rows and columns may not
 * have moved since joined_seq: otherwise its place is taken anew. Locks that have moved since `since` are told behind
 * what was missed, which would move them again.
 */
#include "ws/room/accounts.h"
#include "core/database.h"
#include "core/gateway.h"
#include "support/log.h"
#include "db/pgresult.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

#define RESUME_TAILS 4				   /* asked for, while rows and columns come and go */
#define RESUME_BYTES (4 * 1024 * 1024) /* a client that has missed more reads its cells again */

static const char state_sql[] = "SELECT sheet.client_acknowledged($1, $2, $3)";
static const char tail_sql[] = "SELECT last_seq, batches FROM sheet.tail($1, $2, $3)";
static const char user_sql[] = "SELECT sheet.account_seen($1, $2)";

static bool
result_has_row(const PGresult *res)
{
	return res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1;
}

/* ---- hello ---- */

static uint32_t
join_list_peers(const Session *session, V2Peer *peers)
{
	uint32_t count = 0;

	for (const Session *other = session->room->sessions; other != NULL; other = other->next)
	{
		if (other != session && other->state != SESSION_CLOSING)
			peers[count++] = (V2Peer){other->number, (uint64_t) other->uid, other->name};
	}
	return count;
}

static uint32_t
join_list_locks(const Room *room, V2HeldCell *cells)
{
	uint32_t count = 0;

	for (size_t i = 0; i < room->locks.bucket_count; i++)
	{
		for (const CellLock *lock = room->locks.buckets[i]; lock != NULL; lock = lock->next)
		{
			const Session *holder = room_find_holder(room, lock->uid);

			if (holder != NULL)
				cells[count++] =
					(V2HeldCell){lock->row, lock->col, holder->v2 != NULL ? holder->number : 0, (uint64_t) holder->uid};
		}
	}
	return count;
}

/* locks: they are where they were at hello's seq. */
static void
join_greet(Session *session, bool resumed, bool locks)
{
	const Room *room = session->room;
	const V2Session *v2 = session->v2;
	V2Peer *peers = calloc((size_t) room->session_count + 1, sizeof(V2Peer));
	V2HeldCell *cells = calloc(room->locks.count + 1, sizeof(V2HeldCell));
	Buf payload = {NULL, 0, 0};
	V2Hello hello = {
		.session = session->number,
		.uid = (uint64_t) session->uid,
		.name = session->sheet_name,
		.role = session->role,
		.seq = (uint64_t) v2->joined_seq,
		.epoch = (uint64_t) room->epoch,
		.rows = room->extent.rows,
		.cols = room->extent.cols,
		.landed = v2->client != NULL ? v2->client->committed : 0,
		.resumed = resumed,
		.retention = V2_RETENTION,
		.lease = (uint64_t) gateway.config.lease_seconds,
		.max_bytes = (uint64_t) gateway.config.max_frame_bytes,
		.peers = peers,
		.locks = cells,
	};

	if (resumed)
		hello.seq = v2->since;
	if (peers == NULL || cells == NULL)
		buf_fail(&payload);
	else
	{
		hello.peer_count = join_list_peers(session, peers);
		hello.lock_count = locks ? join_list_locks(room, cells) : 0;
		v2_put_hello(&payload, v2->encoding, &hello);
	}
	v2_send(session, &payload);
	free(peers);
	free(cells);
}

static void
join_tell_locks(Session *session)
{
	const Room *room = session->room;
	V2HeldCell *cells = calloc(room->locks.count + 1, sizeof(V2HeldCell));
	uint32_t count;

	if (cells == NULL)
	{
		session_fail(session);
		return;
	}
	count = join_list_locks(room, cells);
	for (uint32_t i = 0; i < count; i++)
	{
		Buf payload = {NULL, 0, 0};

		v2_put_lock(&payload, session->v2->encoding, &cells[i]);
		v2_send(session, &payload);
	}
	free(cells);
}

static void
join_admit(Session *session, bool resumed, bool locks)
{
	join_greet(session, resumed, locks);
	if (session->state != SESSION_JOINING)
		return; /* there was no memory for it */
	session->state = SESSION_LIVE;
	session->behind_since = 0;
	held_greet(session->room, session);
	log_event(LOG_INFO, "session joined", LOG_STR("peer", session->peer), LOG_INT("uid", session->uid),
			  LOG_INT("sheet", session->sheet_id), LOG_INT("seq", session->v2->joined_seq),
			  LOG_INT("resumed", resumed));
}

/* Others' selections, for the newcomer. */
static void
join_tell_cursors(Session *session)
{
	bool any = false;

	for (Session *other = session->room->sessions; other != NULL; other = other->next)
	{
		if (other->v2 == NULL || !other->v2->has_cursor)
			continue;
		other->v2->cursor_moved = true;
		any = true;
	}
	if (any)
		v2_cursor_moved(session->room);
}

/* ---- what was missed ---- */

static void
join_emit(void *arg, const Buf *payload)
{
	Session *session = arg;

	session_send_message(session, payload->data, payload->len, session->v2->encoding == V2_BINARY);
}

/* Batches that the stream will tell are left to it. */
static void
join_send_missed(Session *session, const char *batches, size_t len)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, batches, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		int64_t last = (int64_t) (batch.first_seq + batch.count - 1);

		if (last <= session->v2->joined_seq)
			v2_put_batch(session->v2->encoding, &batch, reader, last < session->v2->joined_seq, join_emit, session);
		while (edit_read(&reader, &edit) == EDIT_OK)
			;
	}
}

/* What was missed tells of structure edits that the room may not remember: operations are made where they had not
 * happened yet. False: no memory. */
static bool
join_learn_changes(Session *session, const char *batches, size_t len)
{
	LinesMemory *memory = &session->room->lines;
	LinesMemory older = {0};
	EditReader reader;
	EditBatch batch;
	LinesChange change;
	bool good = true;
	Edit edit;

	edit_reader_init(&reader, batches, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		int64_t last = (int64_t) (batch.first_seq + batch.count - 1);

		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			if (last <= memory->floor && lines_change_of(&edit, &change))
				good = lines_remember(&older, &change, last) && good;
		}
	}
	if (older.floor == 0)
		older.floor = (int64_t) session->v2->since;
	good = good && lines_remember_older(memory, older.entries, older.count, older.floor);
	lines_forget(&older);
	return good;
}

static void
join_live(Session *session)
{
	join_tell_cursors(session);
	session_want_write(session);
}

/* Its place in the stream is here: all that the room has told is before it. False: no memory. */
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
		v2->moved_seq = (uint64_t) v2->joined_seq; /* perhaps: nothing tells that they have not */
	join_admit(session, false, true);
	join_live(session);
}

static void
join_resumed(Session *session, const PGresult *missed)
{
	const char *batches = PQgetvalue(missed, 0, 1);
	size_t len = (size_t) PQgetlength(missed, 0, 1);
	bool moved;

	if (!join_learn_changes(session, batches, len))
	{
		session_fail(session);
		return;
	}
	moved = lines_changed_since(&session->room->lines, (int64_t) session->v2->since);
	join_admit(session, true, !moved);
	join_send_missed(session, batches, len);
	if (moved)
		join_tell_locks(session);
	join_live(session);
}

/* All of what was missed is here. */
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
		else if (lines_changed_since(&session->room->lines, session->v2->joined_seq))
			join_resume(session);
		else
			join_resumed(session, res);
	}
	session_query_done(session);
}

static void
join_ask_tail(Session *session)
{
	char sheet[24], since[24], bytes[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(since, (int64_t) session->v2->since),
						pgparam_int64(bytes, RESUME_BYTES)};

	session->queries++;
	if (database_query(DATABASE_READS, 0, tail_sql, 3, params, 1, join_tailed, session))
		return;
	session->queries--;
	session_close(session, CLOSE_RESTART, "the gateway is busy");
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

/* What the database says has landed; while operations of the client are under way here, this is known better. */
static void
join_learn_landed(RoomClient *client, uint64_t landed)
{
	if (client->known)
		return;
	client->known = true;
	client->taken = client->committed = landed;
}

/* The state of the client is here. */
static void
join_learn(Session *session, const PGresult *res)
{
	V2Session *v2 = session->v2;

	if (v2->client != NULL)
		join_learn_landed(v2->client, (uint64_t) pgresult_int64(res, 0, 0));
	if (v2->client != NULL && v2->acked > v2->client->committed && v2->acked > v2->client->taken)
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
			join_learn(session, res);
		else
			session_close(session, CLOSE_RESTART, "the database does not answer");
	}
	session_query_done(session);
}

static void
join_ask_state(Session *session)
{
	char sheet[24], uid[24], client[24];
	PgParam params[] = {pgparam_int64(sheet, session->sheet_id), pgparam_int64(uid, session->uid),
						pgparam_int64(client, (long long) session->v2->client_id)};

	session->queries++;
	if (database_query(DATABASE_READS, 0, state_sql, 3, params, 1, join_state_answered, session))
		return;
	session->queries--;
	session_close(session, CLOSE_RESTART, "the gateway is busy");
}

void
v2_start_join(Room *room, Session *session)
{
	V2Session *v2 = session->v2;

	session->stream = &room->v2[v2->encoding];
	if (!join_attach(session))
		return;
	room->v2_readers[v2->encoding]++;
	v2->attached = true;
	if (v2->client_id != 0 && !v2_open_client(room, session))
		session_fail(session);
	else
		join_ask_state(session);
}

/* ---- names ---- */

typedef struct UserQuestion
{
	Session *session;
	int64_t uid;
} UserQuestion;

static void
user_tell(Session *session, int64_t uid, const char *name)
{
	Buf payload = {NULL, 0, 0};

	v2_put_user(&payload, session->v2->encoding, (uint64_t) uid, name);
	v2_send(session, &payload);
}

/* Who is here by the sheet's link alone is not in the database: their session has the name. */
static const char *
user_find_here(const Room *room, int64_t uid)
{
	for (const Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->uid == uid && session->name != NULL)
			return session->name;
	}
	return NULL;
}

/* A stranger has no name: who may be in this sheet cannot learn who else has an account. */
static void
user_tell_seen(UserQuestion *question, const char *name)
{
	Session *session = question->session;

	if (name == NULL)
		name = user_find_here(session->room, question->uid);
	if (name != NULL)
		accounts_note_seen(session->sheet_id, question->uid);
	user_tell(session, question->uid, name != NULL ? name : "");
}

static void
user_answered(void *arg, PGresult *res)
{
	UserQuestion *question = arg;
	Session *session = question->session;

	session->v2->questions--;
	if (session->state == SESSION_LIVE && session->socket != NULL)
	{
		if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
			session_close(session, CLOSE_RESTART, "the database does not answer");
		else
			user_tell_seen(question, PQgetisnull(res, 0, 0) ? NULL : PQgetvalue(res, 0, 0));
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
		user_tell(session, uid, account->name);
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
