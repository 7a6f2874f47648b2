/*
 * v2_block.c - blocks of cells for members of protocol v2.
 *
 * A block is read when everything that the stream has is committed, so it is at least as new; and while it is being
 * read the stream waits, so nothing newer than the block is sent before it. The blocks of a client are read one after
 * the other, and none while it has much to read.
 *
 * Most blocks are small: one statement on a connection for reads, one row. A larger one returns two rows, which are
 * dropped, and is read again by v2_large_block.c. So what waits in memory for a client is the limit of v2_is_full() and
 * one small block at most.
 */
#include "ws/v2/v2_block.h"

#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"

#include <stdlib.h>

/* A second row means that the block is larger than two megabytes. */
static const char block_sql[] = "SELECT seq, cells FROM sheet.read_cells($1, $2, $3, $4, $5, 2097152) LIMIT 2";

bool
block_is_wanted(const BlockQuestion *question)
{
	return question->session->state == SESSION_LIVE && question->session->socket != NULL;
}

/* ---- answering ---- */

static void
block_send_part(BlockQuestion *question, bool more)
{
	Buf payload = {NULL, 0, 0};

	question->block.more = more;
	if (buf_failed(&question->edits))
		buf_fail(&payload);
	else
		v2_put_block(&payload, question->session->v2->encoding, &question->block, question->edits.data,
					 question->edits.len, question->count);
	session_send(question->session, &payload);
	question->edits.len = 0;
	question->count = 0;
	question->writer.first = true;
}

static void
block_put_cell(BlockQuestion *question, const Edit *cell)
{
	if (question->edits.len > BATCH_PART_BYTES)
		block_send_part(question, true);
	edits_put(&question->edits, &question->writer, cell);
	question->count++;
}

bool
block_put_cells(BlockQuestion *question, const char *cells, size_t len)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit cell;

	edit_reader_init(&reader, cells, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		question->block.seq = batch.first_seq;
		room_catch_up(question->session->room, (int64_t) batch.first_seq); /* the client waits for the edits up to it */
		while ((error = edit_read(&reader, &cell)) == EDIT_OK)
			block_put_cell(question, &cell);
		if (error != EDIT_END)
			return false;
	}
	return error == EDIT_END;
}

void
block_put_end(BlockQuestion *question)
{
	(void) buf_reserve(&question->edits, 1);
	block_send_part(question, false);
}

void
block_finish(BlockQuestion *question)
{
	Session *session = question->session;

	session->v2->questions--;
	session->v2->reading = NULL;
	session->v2->holding = false;
	session_want_write(session);
	buf_free(&question->edits);
	free(question);
	v2_read_blocks(session);
	session_query_done(session);
}

/* ---- asking ---- */

static void
block_answered(void *arg, PGresult *res)
{
	BlockQuestion *question = arg;
	Session *session = question->session;

	if (block_is_wanted(question))
	{
		if (!pgresult_succeeded(res) || PQntuples(res) == 0)
			session_close(session, CLOSE_RESTART, "the database does not answer");
		else if (PQntuples(res) > 1)
		{
			large_block_add(question);
			return;
		}
		else if (block_put_cells(question, PQgetvalue(res, 0, 1), (size_t) PQgetlength(res, 0, 1)))
			block_put_end(question);
		else
			session_close(session, CLOSE_ERROR, "the sheet's cells cannot be read");
	}
	block_finish(question);
}

static void
block_ask(BlockQuestion *question)
{
	Session *session = question->session;
	const V2Block *block = &question->block;
	char texts[5][24];
	PgParam params[] = {pgparam_int64(texts[0], session->sheet_id), pgparam_int64(texts[1], block->row),
						pgparam_int64(texts[2], block->col), pgparam_int64(texts[3], block->to_row),
						pgparam_int64(texts[4], block->to_col)};

	session->v2->reading = question;
	session->v2->holding = true;
	session->queries++;
	if (!database_query(DATABASE_READS, 0, block_sql, 5, params, 1, block_answered, question))
		block_answered(question, NULL);
}

void
v2_read_blocks(Session *session)
{
	V2Session *v2 = session->v2;
	BlockQuestion *question;

	if (v2->blocks == NULL || v2->reading != NULL || session->state != SESSION_LIVE || session->socket == NULL ||
		v2_is_full(session))
		return;
	question = v2->blocks;
	v2->blocks = question->next;
	if (v2->blocks == NULL)
		v2->blocks_last = &v2->blocks;
	block_ask(question);
}

void
v2_send_block(Session *session, uint64_t id, const uint32_t rect[4])
{
	V2Session *v2 = session->v2;
	BlockQuestion *question = calloc(1, sizeof(BlockQuestion));

	if (question == NULL)
	{
		session_fail(session);
		return;
	}
	question->session = session;
	question->block = (V2Block){.id = id, .row = rect[0], .col = rect[1], .to_row = rect[2], .to_col = rect[3]};
	question->writer.first = true;
	*v2->blocks_last = question;
	v2->blocks_last = &question->next;
	v2->questions++;
	v2_read_blocks(session);
}

void
v2_free_blocks(V2Session *v2)
{
	BlockQuestion *next;

	for (BlockQuestion *question = v2->blocks; question != NULL; question = next)
	{
		next = question->next;
		free(question);
	}
}
