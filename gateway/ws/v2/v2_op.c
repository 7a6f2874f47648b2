/*
 * v2_op.c - operations of protocol v2: all or nothing, in their sender's order, each exactly once.
 *
 * An operation is taken into the room's batch as a whole, or refused. The database stores each client's last committed
 * operation in the transaction that has its edits. Operations under way are known here (V2Client), so that one that
 * is sent again over another connection is not taken twice. A gateway reads a client's last operation after its claim
 * of the sheet: from then on the database refuses batches of the gateway before (an older epoch).
 *
 * After a refusal nothing of the connection is taken until the sender has heard of it. So no refused operation is below
 * a committed one without its sender's knowledge, and "committed up to n" says all.
 *
 * An operation names cells as of a seq (base). It is taken for the cells as of the last published seq, and is moved
 * with them from then on (move.c). One with structure edits or properties is a batch of its own, and its client is
 * undecided until it is committed: only the database knows whether the sheet has room for them.
 */
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/room/members.h"
#include "ws/room/pending.h"
#include "ws/room/publish.h"
#include "ws/room/schedule.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

/* ---- clients ---- */

static void
client_free(Room *room, V2Client *client)
{
	V2Client **link = &room->clients;

	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	free(client);
}

/* Returns whether the client is not connected and has nothing under way. */
static bool
client_is_idle(const V2Client *client)
{
	return client->session == NULL && client->taken == client->committed;
}

bool
v2_open_client(Session *session)
{
	Room *room = session->room;
	V2Client *client = room->clients;

	while (client != NULL && (client->uid != session->uid || client->id != session->v2->client_id))
		client = client->next;
	if (client == NULL)
	{
		client = calloc(1, sizeof(V2Client));
		if (client == NULL)
			return false;
		client->uid = session->uid;
		client->id = session->v2->client_id;
		client->next = room->clients;
		room->clients = client;
	}
	else if (client->session != NULL)
	{
		client->session->v2->client = NULL;
		session_close(client->session, CLOSE_REPLACED, "the same client has connected again");
	}
	client->session = session;
	session->v2->client = client;
	return true;
}

void
v2_close_client(Session *session)
{
	V2Client *client = session->v2->client;

	session->v2->client = NULL;
	if (client == NULL)
		return;
	client->session = NULL;
	if (client_is_idle(client))
		client_free(session->room, client);
}

void
v2_free_clients(Room *room)
{
	while (room->clients != NULL)
		client_free(room, room->clients);
}

/* ---- acknowledging ---- */

static void
op_ack(const V2Client *client)
{
	Buf payload = {NULL, 0, 0};

	v2_put_ack(&payload, client->session->v2->encoding, client->committed, (uint64_t) client->seq);
	session_send(client->session, &payload);
}

void
v2_acknowledge(Room *room, RoomBatch *batch)
{
	for (size_t i = 0; i < batch->client_count; i++)
	{
		V2Client *client = batch->clients[i].client;

		client->committed = batch->clients[i].last;
		client->seq = batch->seq;
		if (client->batch == batch)
			client->batch = NULL;
		if (batch->refusable)
			client->undecided = false;
		if (client->session != NULL && client->session->state == SESSION_LIVE)
		{
			op_ack(client);
			v2_resume_messages(client->session);
		}
		if (client_is_idle(client))
			client_free(room, client);
	}
}

/* ---- refusing ---- */

static void
op_refuse(Session *session, const V2Message *message, V2Reason reason, uint32_t row, uint32_t col)
{
	const uint32_t *rect = message->rect;
	bool block = message->bounded &&
				 (uint64_t) (rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1) <= V2_MAX_BLOCK_CELLS &&
				 v2_may_ask(session);
	Buf payload = {NULL, 0, 0};

	if (reason == V2_REASON_ROLE)
		metrics.refused_role++;
	else if (reason == V2_REASON_LOCKED)
		metrics.refused_locked++;
	else
		metrics.refused_range++;
	session->v2->nacks++;
	v2_put_nack(&payload, session->v2->encoding, message->n, reason, row, col, block);
	session_send(session, &payload);
	if (block)
		v2_send_block(session, 0, rect);
}

void
v2_refuse(Room *room, RoomBatch *batch)
{
	V2Client *client = batch->clients[0].client;
	const V2Message message = {.n = batch->clients[0].last};
	Session *session = client->session;

	client->taken = batch->clients[0].before;
	client->batch = NULL;
	client->undecided = false;
	if (session != NULL && session->state == SESSION_LIVE)
	{
		op_refuse(session, &message, V2_REASON_SIZE, 0, 0);
		v2_resume_messages(session);
	}
	else if (client_is_idle(client))
		client_free(room, client);
}

/* ---- cells that others have locked ---- */

typedef struct LockSearch
{
	Session *session;
	LockHolder holder; /* the session */
	uint64_t expires;  /* of its own locks that the operation touches */
	uint32_t row, col; /* of a cell that another has locked */
} LockSearch;

/* Returns false when another has locked a cell. Renews the session's own locks. */
static bool
search_touch(void *arg, const uint32_t rect[4])
{
	LockSearch *search = arg;
	const SheetLock *lock = locks_find_other(&search->session->room->locks, &search->holder, rect, search->expires);

	if (lock == NULL)
		return true;
	search->row = lock->rect[0] > rect[0] ? lock->rect[0] : rect[0];
	search->col = lock->rect[1] > rect[1] ? lock->rect[1] : rect[1];
	return false;
}

/* Returns whether another has locked a cell that the operation changes or deletes. */
static bool
op_find_locked(LockSearch *search, const V2Message *message)
{
	bool found = false;
	EditReader reader;
	LinesView view;
	Edit edit;

	if (search->session->room->locks.count + search->session->room->locks.range_count == 0)
		return false;
	lines_view_init(&view);
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (!found && edit_read(&reader, &edit) == EDIT_OK)
		found = !lines_trace(&view, &edit, search_touch, search);
	if (lines_view_failed(&view))
		session_fail(search->session);
	lines_view_free(&view);
	return found;
}

/* ---- cells that others have written ---- */

typedef struct WriteSearch
{
	const Room *room;
	const V2Message *message;
	Writer writer;
	uint64_t pending; /* number of edits of others that are pending */
	Written found;
	bool is_found;
} WriteSearch;

/* More comparisons of pending edits with cells of an operation than the loop has time for. */
#define SEARCH_MAX 4000000

/* The uid of a guest is the link's, so it needs the client, too. */
static Writer
op_writer(const Session *session)
{
	return (Writer){(uint64_t) session->uid, session->uid < 0 ? session->v2->client_id : 0};
}

/* The number of edits of others in these batches. */
static uint64_t
count_others(const RoomBatch *batch, const Writer *writer)
{
	uint64_t others = 0;

	for (; batch != NULL; batch = batch->next)
	{
		EditReader reader;
		size_t at = 0;
		Edit edit;

		edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
		for (uint32_t i = 0; edit_read(&reader, &edit) == EDIT_OK; i++)
		{
			Writer of = {edit.uid, writer_client_at(&batch->writers, i, &at)};

			others += !writer_is_same(&of, writer);
		}
	}
	return others;
}

/* Edits that are pending come before the operation, too. */
static bool
search_batches(WriteSearch *search, const RoomBatch *batch, const uint32_t rect[4])
{
	for (; batch != NULL; batch = batch->next)
	{
		EditReader reader;
		size_t at = 0;
		Edit edit;

		edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
		for (uint32_t i = 0; edit_read(&reader, &edit) == EDIT_OK; i++)
		{
			if (written_of(&edit, writer_client_at(&batch->writers, i, &at), 0, &search->found) &&
				written_matches(&search->found, &search->writer, rect, search->message->changes > 0))
				return false;
		}
	}
	return true;
}

static bool
search_written(void *arg, const uint32_t rect[4])
{
	WriteSearch *search = arg;
	const Room *room = search->room;
	const Written *written = writes_find(&room->writes, &search->writer, (int64_t) search->message->seen, rect,
										 search->message->changes > 0);

	if (written != NULL)
		search->found = *written;
	search->is_found = written != NULL || (search->pending > 0 && (!search_batches(search, room->sent, rect) ||
																   !search_batches(search, room->pending, rect)));
	/* A range that somebody has written concerns this cell of the operation. */
	for (int side = 0; search->is_found && side < 2; side++)
		if (search->found.rect[side] < rect[side] && search->found.rect[side + 2] >= rect[side])
			search->found.rect[side] = rect[side];
	return !search->is_found;
}

/*
 * Returns whether somebody else has written a cell that the operation changes or deletes, since `seen`; or, if the
 * operation has structure edits, a formula, which may refer to what it deletes.
 */
static bool
op_find_written(WriteSearch *search, Session *session)
{
	const Room *room = session->room;
	const V2Message *message = search->message;
	EditReader reader;
	LinesView view;
	Edit edit;

	if (message->seen == 0)
		return false;
	search->pending = count_others(room->sent, &search->writer) + count_others(room->pending, &search->writer);
	if ((int64_t) message->seen < room->writes.floor || (int64_t) message->seen > room->published_seq ||
		search->pending * message->count > SEARCH_MAX)
		return true;
	lines_view_init(&view);
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (!search->is_found && edit_read(&reader, &edit) == EDIT_OK)
		(void) lines_trace(&view, &edit, search_written, search);
	if (lines_view_failed(&view))
		session_fail(session);
	lines_view_free(&view);
	return search->is_found;
}

/* ---- moved cells ---- */

bool
v2_knows_base(const Session *session, uint64_t base)
{
	const Room *room = session->room;

	return base == 0 || (base >= session->v2->moved_seq && (int64_t) base >= room->lines.floor &&
						 (int64_t) base <= room->published_seq);
}

V2Found
v2_find_range(const Session *session, uint64_t base, uint32_t rect[4])
{
	const LinesHistory *lines = &session->room->lines;
	bool left = true;

	if (!v2_knows_base(session, base))
		return V2_UNKNOWN;
	for (size_t i = 0; base != 0 && i < lines->count; i++)
	{
		if (lines->entries[i].seq > (int64_t) base)
			left = lines_move_range(&lines->entries[i].change, rect) && left;
	}
	return left ? V2_FOUND : V2_DELETED;
}

typedef struct OpTransform
{
	V2Message *message; /* for the present cells */
	Buf edits;
	EditWriter writer;
} OpTransform;

static void
op_put_edit(void *arg, const Edit *edit)
{
	OpTransform *transform = arg;

	edits_put(&transform->edits, &transform->writer, edit);
	if (edit_is_structure(edit->kind))
		transform->message->changes++;
	else if (edit->kind == EDIT_PROPERTY)
		transform->message->properties++;
	else
		v2_widen(transform->message, edit);
	transform->message->count++;
}

/* Makes the operation one of the present cells. Its edits are in *edits, which the caller frees. Returns false when
 * there is no memory. */
static bool
op_transform(const Session *session, V2Message *message, Buf *edits)
{
	OpTransform transform = {.message = message};
	EditReader reader;
	LinesView view;
	bool failed;
	Edit edit;

	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	lines_view_since(&view, &session->room->lines, (int64_t) message->base);
	edit_write_edits(&transform.writer, NULL);
	message->count = message->changes = message->properties = 0;
	message->bounded = false;
	while (edit_read(&reader, &edit) == EDIT_OK)
		lines_transform(&view, &edit, op_put_edit, &transform);
	failed = lines_view_failed(&view) || buf_failed(&transform.edits);
	lines_view_free(&view);
	message->edits = (const uint8_t *) transform.edits.data;
	message->edits_len = transform.edits.len;
	*edits = transform.edits;
	return !failed;
}

/* Returns false, and the edit, if an insertion pushes the last row or column beyond the largest sheet. */
static bool
op_fits(const Room *room, const V2Message *message, Edit *edit)
{
	RoomExtent present = pending_extent(room);
	uint64_t extents[2] = {present.rows, present.cols};
	EditReader reader;

	if (message->changes == 0)
		return true;
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, edit) == EDIT_OK)
	{
		uint64_t *extent;
		LineChange change;

		if (edit_extends(edit))
		{
			extents[0] = edit->row >= extents[0] ? edit->row + 1 : extents[0];
			extents[1] = edit->col >= extents[1] ? edit->col + 1 : extents[1];
		}
		if (!line_change_of(edit, &change))
			continue;
		extent = &extents[change.rows ? 0 : 1];
		if (change.insert &&
			(change.at > *extent ? change.at : *extent) + change.n > (change.rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS))
			return false;
		*extent = extent_after(&change, (uint32_t) *extent);
	}
	return true;
}

/* ---- taking ---- */

/* Returns false when there is no memory for one more client. */
static bool
batch_reserve_client(RoomBatch *batch)
{
	size_t size = batch->client_size > 0 ? batch->client_size * 2 : 4;
	BatchClient *clients;

	if (batch->client_count < batch->client_size)
		return true;
	clients = realloc(batch->clients, size * sizeof(BatchClient));
	if (clients == NULL)
		return false;
	batch->clients = clients;
	batch->client_size = size;
	return true;
}

/* Registers that the operation is in the batch. */
static void
op_register(RoomBatch *batch, V2Client *client, uint64_t n)
{
	if (client->batch != batch)
	{
		client->batch = batch;
		client->batch_index = batch->client_count;
		batch->clients[batch->client_count++] = (BatchClient){client, client->uid, client->id, client->taken, n, n};
	}
	batch->clients[client->batch_index].last = n;
	client->taken = n;
}

static void
op_take(Session *session, const V2Message *message)
{
	Room *room = session->room;
	size_t bytes = message->edits_len + message->count * (size_t) 10; /* with the author's uid */
	bool refusable = message->changes > 0 || message->properties > 0;
	RoomBatch *batch = refusable ? pending_refusable_batch(room) : pending_batch(room, message->count, bytes);
	EditReader reader;
	Edit edit;

	/* Before anything is put, so that the edits of others in the batch are not lost for want of memory. */
	if (batch == NULL || !batch_reserve(batch, bytes) || !batch_reserve_client(batch) ||
		!batch_begin_writer(batch, op_writer(session).client))
	{
		session_fail(session);
		return;
	}
	batch->structural = message->changes > 0;
	session->v2->client->undecided = batch->refusable;
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		edit.uid = (uint64_t) session->uid;
		pending_add_edit(room, batch, &edit);
	}
	op_register(batch, session->v2->client, message->n);
	publish_expect(session, batch);
	room_mark_dirty(room); /* all its edits may have been of deleted cells */
	metrics.edits_received += message->count;
}

/* The operation names present cells. */
static void
op_admit(Session *session, const V2Message *message)
{
	LockSearch search = {.session = session, .holder = session_lock_holder(session), .expires = members_lease_end()};
	WriteSearch writes = {.room = session->room, .message = message, .writer = op_writer(session)};
	Edit edit;

	if (message->count > V2_MAX_OP_EDITS)
		op_refuse(session, message, V2_REASON_SIZE, message->rect[0], message->rect[1]);
	else if (op_find_locked(&search, message))
		op_refuse(session, message, V2_REASON_LOCKED, search.row, search.col);
	else if (op_find_written(&writes, session))
		op_refuse(session, message, V2_REASON_BASE, writes.found.rect[0], writes.found.rect[1]);
	else if (session->state != SESSION_LIVE)
		return; /* out of memory */
	else if (!op_fits(session->room, message, &edit))
		op_refuse(session, message, V2_REASON_RANGE, edit.row, edit.col);
	else
		op_take(session, message);
}

void
v2_handle_op(Session *session, V2Message *message)
{
	V2Client *client = session->v2->client;
	Buf edits = {NULL, 0, 0};

	if (message->nacks != session->v2->nacks)
		return; /* sent before its sender knew of a refusal, and will be sent again */
	if (client != NULL && message->n <= client->taken)
	{
		if (message->n <= client->committed)
			op_ack(client);
		return; /* otherwise it is under way */
	}
	if (!v2_knows_base(session, message->base))
		op_refuse(session, message, V2_REASON_BASE, message->rect[0], message->rect[1]);
	else if (!session->may_edit || client == NULL)
		op_refuse(session, message, V2_REASON_ROLE, message->rect[0], message->rect[1]);
	else if (message->reason != V2_REASON_NONE)
		op_refuse(session, message, message->reason, message->bad_row, message->bad_col);
	else
	{
		if (message->base != 0 && lines_history_changed_since(&session->room->lines, (int64_t) message->base) &&
			!op_transform(session, message, &edits))
			session_fail(session);
		else
			op_admit(session, message);
	}
	buf_free(&edits);
}
