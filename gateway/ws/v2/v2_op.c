/*
 * v2_op.c - operations of protocol v2: all or nothing, in their sender's order, each exactly once.
 *
 * An operation is taken into the room's batch as a whole, or refused. What has landed of a client is kept by the
 * database, in the transaction that has the edits; what is under way is known here, so that an operation that comes
 * again over another connection is not taken twice. A gateway that gets a sheet reads what has landed after its claim:
 * from then on the database refuses batches of the gateway before (an older epoch), so nothing can land behind its
 * back.
 *
 * After a refusal nothing of the connection is taken until the sender has heard of it: so an operation that was refused
 * never lies below one that has landed without its sender's knowing, and "landed up to n" says all.
 *
 * Places are of the seq that the operation names (base). It is taken with the places as of the last seq that has been
 * told, and from there on moves along with them (restructure.c). One that inserts or deletes rows or columns is a batch
 * of its own, and its client is undecided until it is committed: only the database knows whether there is room.
 */
#include "ws/edit/dirty.h"
#include "ws/session/edit_buf.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/edit/pending.h"
#include "ws/edit/publish.h"
#include "ws/v1/v1_encode.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>
#include <string.h>

/* ---- clients ---- */

static void
client_free(Room *room, RoomClient *client)
{
	RoomClient **place = &room->clients;

	while (*place != client)
		place = &(*place)->next;
	*place = client->next;
	free(client);
}

/* Whether the database knows all about it, and nobody here needs it. */
static bool
client_is_idle(const RoomClient *client)
{
	return client->session == NULL && client->taken == client->committed;
}

bool
v2_open_client(Room *room, Session *session)
{
	RoomClient *client = room->clients;

	while (client != NULL && (client->uid != session->uid || client->id != session->v2->client_id))
		client = client->next;
	if (client == NULL)
	{
		client = calloc(1, sizeof(RoomClient));
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
v2_close_client(Room *room, Session *session)
{
	RoomClient *client = session->v2->client;

	session->v2->client = NULL;
	if (client == NULL)
		return;
	client->session = NULL;
	if (client_is_idle(client))
		client_free(room, client);
}

void
v2_free_clients(Room *room)
{
	while (room->clients != NULL)
		client_free(room, room->clients);
}

/* ---- acknowledging ---- */

static void
op_ack(const RoomClient *client)
{
	Buf payload = {NULL, 0, 0};

	v2_put_ack(&payload, client->session->v2->encoding, client->committed, (uint64_t) client->seq);
	v2_send(client->session, &payload);
}

void
v2_ack_batch(Room *room, RoomBatch *batch, int64_t seq)
{
	for (size_t i = 0; i < batch->client_count; i++)
	{
		RoomClient *client = batch->clients[i].client;

		client->committed = batch->clients[i].last;
		client->seq = seq;
		if (client->batch == batch)
			client->batch = NULL;
		if (batch->structural)
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
	v2_send(session, &payload);
	if (block)
		v2_send_block(session, 0, rect);
}

void
v2_refuse_batch(Room *room, RoomBatch *batch)
{
	RoomClient *client = batch->clients[0].client;
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

/* ---- cells that others hold ---- */

typedef struct HeldSearch
{
	Session *session;
	uint32_t row, col; /* of a cell that somebody else holds */
} HeldSearch;

/* False when somebody else holds it. Cells of our own are renewed. */
static bool
held_check(HeldSearch *search, CellLock *lock)
{
	if (lock->uid == session_holder(search->session))
	{
		lock->expires = session_lease_end();
		return true;
	}
	search->row = lock->row;
	search->col = lock->col;
	return false;
}

static bool
held_touch(void *arg, const uint32_t rect[4])
{
	HeldSearch *search = arg;
	const CellLocks *locks = &search->session->room->locks;

	if (rect[0] == rect[2] && rect[1] == rect[3])
	{
		CellLock *lock = locks_find(locks, rect[0], rect[1]);

		return lock == NULL || held_check(search, lock);
	}
	for (size_t i = 0; i < locks->bucket_count; i++)
	{
		for (CellLock *lock = locks->buckets[i]; lock != NULL; lock = lock->next)
		{
			if (lock->row >= rect[0] && lock->row <= rect[2] && lock->col >= rect[1] && lock->col <= rect[3] &&
				!held_check(search, lock))
				return false;
		}
	}
	return true;
}

/* Is any of the cells that the operation changes or deletes held by somebody else? */
static bool
op_find_held(HeldSearch *search, const V2Message *message)
{
	bool free_of_others = true;
	EditReader reader;
	LinesView view;
	Edit edit;

	if (search->session->room->locks.count == 0)
		return false;
	lines_view_init(&view);
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (free_of_others && edit_read(&reader, &edit) == EDIT_OK)
		free_of_others = lines_trace(&view, &edit, held_touch, search);
	if (lines_view_failed(&view))
		session_fail(search->session);
	lines_view_free(&view);
	return !free_of_others;
}

/* ---- places ---- */

bool
v2_knows_base(const Session *session, uint64_t base)
{
	const Room *room = session->room;

	return base == 0 || (base >= session->v2->moved_seq && (int64_t) base >= room->lines.floor &&
						 (int64_t) base <= room->published_seq);
}

V2Place
v2_find_place(const Session *session, uint64_t base, uint32_t *row, uint32_t *col)
{
	const LinesMemory *lines = &session->room->lines;

	if (!v2_knows_base(session, base))
		return V2_PLACE_UNKNOWN;
	for (size_t i = 0; base != 0 && i < lines->count; i++)
	{
		if (lines->entries[i].seq > (int64_t) base && !lines_move(&lines->entries[i].change, row, col))
			return V2_PLACE_GONE;
	}
	return V2_PLACE_THERE;
}

typedef struct OpTransform
{
	V2Message *message; /* for the places of now */
	Buf edits;
	EditWriter writer;
} OpTransform;

static void
op_put_edit(void *arg, const Edit *edit)
{
	OpTransform *transform = arg;

	edit_buf_put(&transform->edits, &transform->writer, edit);
	if (edit_is_structure(edit->kind))
		transform->message->changes++;
	else
		v2_widen(transform->message, edit);
	transform->message->count++;
}

/* The operation for the places as they are now. Its edits are in *edits, which is the caller's to free. False: no
 * memory. */
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
	message->count = message->changes = 0;
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

/* Does an insertion push the sheet's last row or column beyond the end? */
static bool
op_has_room(const Room *room, const V2Message *message, Edit *edit)
{
	RoomExtent present = room_pending_extent(room);
	uint64_t extents[2] = {present.rows, present.cols};
	EditReader reader;

	if (message->changes == 0)
		return true;
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, edit) == EDIT_OK)
	{
		uint64_t *extent;
		LinesChange change;

		if (edit_extends(edit))
		{
			extents[0] = edit->row >= extents[0] ? edit->row + 1 : extents[0];
			extents[1] = edit->col >= extents[1] ? edit->col + 1 : extents[1];
		}
		if (!lines_change_of(edit, &change))
			continue;
		extent = &extents[change.rows ? 0 : 1];
		if (change.insert &&
			(change.at > *extent ? change.at : *extent) + change.n > (change.rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS))
			return false;
		*extent = lines_extent(&change, (uint32_t) *extent);
	}
	return true;
}

/* ---- taking ---- */

/* There is a place for one client more. */
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

/* The operation is in the batch. */
static void
op_note(RoomBatch *batch, RoomClient *client, uint64_t n)
{
	if (client->batch != batch)
	{
		client->batch = batch;
		client->batch_index = batch->client_count;
		batch->clients[batch->client_count++] = (BatchClient){client, client->taken, n, n};
	}
	batch->clients[client->batch_index].last = n;
	client->taken = n;
}

/* Nothing of it is in the batch yet, so that no other member's edits are lost when there is no memory for it. */
static bool
op_reserve(const Session *session, const V2Message *message, RoomBatch *batch, size_t bytes)
{
	size_t frame = V1_MODIFY_PARTS + 20 + session->name_json.len;

	return batch != NULL && batch_reserve(batch, bytes, message->edits_len * JSON_GROWTH + message->count * frame) &&
		   batch_reserve_client(batch);
}

static void
op_take(Session *session, const V2Message *message)
{
	Room *room = session->room;
	size_t bytes = message->edits_len + message->count * (size_t) 10; /* with the author's uid */
	RoomBatch *batch =
		message->changes > 0 ? room_pending_structural(room) : room_pending_for(room, message->count, bytes);
	EditReader reader;
	Edit edit;

	if (!op_reserve(session, message, batch, bytes))
	{
		session_fail(session);
		return;
	}
	session->v2->client->undecided = batch->structural;
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		edit.uid = (uint64_t) session->uid;
		room_add_edit(room, batch, &edit);
		if (batch->has_v1 && !batch->structural && edit.kind == EDIT_SET)
			batch_add_v1_edit(batch, &edit, edit.style.data, edit.style.len, &session->name_json);
	}
	op_note(batch, session->v2->client, message->n);
	publish_expect(session, batch);
	room_mark_dirty(room); /* nothing may be left of it but that */
	metrics.edits_received += message->count;
}

/* The places of the operation are those of now. */
static void
op_admit(Session *session, const V2Message *message)
{
	HeldSearch held = {.session = session};
	Edit edit;

	if (message->count > V2_MAX_OP_EDITS)
		op_refuse(session, message, V2_REASON_SIZE, message->rect[0], message->rect[1]);
	else if (op_find_held(&held, message))
		op_refuse(session, message, V2_REASON_LOCKED, held.row, held.col);
	else if (session->state != SESSION_LIVE)
		return; /* there was no memory to look for them */
	else if (!op_has_room(session->room, message, &edit))
		op_refuse(session, message, V2_REASON_RANGE, edit.row, edit.col);
	else
		op_take(session, message);
}

void
v2_handle_op(Session *session, V2Message *message)
{
	RoomClient *client = session->v2->client;
	Buf edits = {NULL, 0, 0};

	if (message->nacks != session->v2->nacks)
		return; /* sent before its sender knew of a refusal: it comes again */
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
		if (message->base != 0 && lines_changed_since(&session->room->lines, (int64_t) message->base) &&
			!op_transform(session, message, &edits))
			session_fail(session);
		else
			op_admit(session, message);
	}
	buf_free(&edits);
}
