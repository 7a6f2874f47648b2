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
 */
#include "gateway.h"
#include "metrics.h"
#include "v2_session.h"

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

RoomClient *
v2_open_client(Room *room, Session *session)
{
	RoomClient *client = room->clients;

	while (client != NULL && (client->uid != session->uid || client->id != session->v2->client_id))
		client = client->next;
	if (client == NULL)
	{
		client = calloc(1, sizeof(RoomClient));
		if (client == NULL)
			abort();
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
	return client;
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
		if (client->session != NULL && client->session->state == SESSION_LIVE)
			op_ack(client);
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

/* A cell that somebody else holds. Cells of our own are renewed. */
static bool
op_find_held(Session *session, const V2Message *message, Edit *held)
{
	const CellLocks *locks = &session->room->locks;
	EditReader reader;
	Edit edit;

	if (locks->count == 0)
		return false;
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		CellLock *lock = locks_find(locks, edit.row, edit.col);

		if (lock == NULL)
			continue;
		if (lock->uid != session_holder(session))
		{
			*held = edit;
			return true;
		}
		lock->expires = session_lease_end();
	}
	return false;
}

/* ---- taking ---- */

/* The operation is in the batch. */
static void
op_note(RoomBatch *batch, RoomClient *client, uint64_t n)
{
	if (client->batch != batch)
	{
		if (batch->client_count == batch->client_size)
		{
			batch->client_size = batch->client_size > 0 ? batch->client_size * 2 : 4;
			batch->clients = realloc(batch->clients, batch->client_size * sizeof(BatchClient));
			if (batch->clients == NULL)
				abort();
		}
		client->batch = batch;
		client->batch_index = batch->client_count;
		batch->clients[batch->client_count++] = (BatchClient){client, n, n};
	}
	batch->clients[client->batch_index].last = n;
	client->taken = n;
}

static void
op_take(Session *session, const V2Message *message)
{
	Room *room = session->room;
	RoomBatch *batch = room_pending_for(room, message->count, message->edits_len + message->count * 10);
	EditReader reader;
	Edit edit;

	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		edit.uid = (uint64_t) session->uid;
		room_add_edit(room, &edit);
		if (batch->has_v1 && edit.kind == EDIT_SET)
			batch_add_v1_edit(batch, &edit, edit.style.data, edit.style.len, &session->name_json);
	}
	op_note(batch, session->v2->client, message->n);
	metrics.edits_received += message->count;
}

void
v2_handle_op(Session *session, const V2Message *message)
{
	RoomClient *client = session->v2->client;
	Edit held;

	if (message->nacks != session->v2->nacks)
		return; /* sent before its sender knew of a refusal: it comes again */
	if (client != NULL && message->n <= client->taken)
	{
		if (message->n <= client->committed)
			op_ack(client);
		return; /* otherwise it is under way */
	}
	if (message->base < session->v2->moved_seq)
		op_refuse(session, message, V2_REASON_BASE, message->rect[0], message->rect[1]);
	else if (!session->may_edit || client == NULL)
		op_refuse(session, message, V2_REASON_ROLE, message->rect[0], message->rect[1]);
	else if (message->reason != V2_REASON_NONE)
		op_refuse(session, message, message->reason, message->bad_row, message->bad_col);
	else if (op_find_held(session, message, &held))
		op_refuse(session, message, V2_REASON_LOCKED, held.row, held.col);
	else
		op_take(session, message);
}
