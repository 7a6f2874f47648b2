/*
 * v2_large_block.c - large blocks of cells, read row by row as their client takes them.
 *
 * All parts of a block hold at one seq, so they come from one statement, and its connection is the block's until the
 * client has taken them: a streaming connection. There are few of them (BLOCK_CONNECTIONS), apart from other reads,
 * which so never wait for a slow client. Other blocks wait in a queue, without holding their client's stream; the next
 * one is of the account with the fewest. No account has all connections, so its slow clients do not keep others
 * waiting. Nothing is read from the server while STREAMING_AHEAD bytes wait for the client, and the server stops when
 * the socket between them is full. Its statement holds a snapshot, which VACUUM has to keep, so a client is closed
 * after block-seconds. The statement is cancelled when the client has gone.
 *
 * A large block takes STREAMING_AHEAD, a row and what libpq has read, whatever its size.
 */
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/v2/v2_block.h"

#define STREAMING_AHEAD (1024 * 1024)			/* bytes; reading goes on at half of it */
#define STREAMING_SHARE (BLOCK_CONNECTIONS - 1) /* connections of an account */

/* A row is about a message (BATCH_PART_BYTES). */
static const char streaming_sql[] = "SELECT cells FROM sheet.read_cells($1, $2, $3, $4, $5, 262144)";

typedef struct Streaming
{
	BlockQuestion *question; /* NULL: free */
	uint64_t began;			 /* ms */
} Streaming;

static Streaming streams[BLOCK_CONNECTIONS];
static BlockQuestion *waiting;
static BlockQuestion **waiting_last = &waiting;

static size_t
streaming_ahead(void)
{
	size_t most = (size_t) gateway.config.send_queue_bytes / 2;

	return most < STREAMING_AHEAD ? most : STREAMING_AHEAD;
}

static PgConn *
streaming_connection(const Streaming *streaming)
{
	return gateway.blocks[streaming - streams];
}

static void streaming_use(void);

/* ---- one block ---- */

static void
streaming_row(void *arg, PGresult *row)
{
	Streaming *streaming = arg;
	BlockQuestion *question = streaming->question;

	if (!block_is_wanted(question))
		return;
	if (!block_put_cells(question, PQgetvalue(row, 0, 0), (size_t) PQgetlength(row, 0, 0)))
		session_close(question->session, CLOSE_ERROR, "the sheet's cells cannot be read");
	else if (question->session->out_bytes > streaming_ahead())
		pgconn_pause(streaming_connection(streaming));
}

static void
streaming_done(void *arg, PGresult *res)
{
	Streaming *streaming = arg;
	BlockQuestion *question = streaming->question;

	streaming->question = NULL;
	if (block_is_wanted(question))
	{
		if (pgresult_succeeded(res))
			block_put_end(question);
		else
			session_close(question->session, CLOSE_RESTART, "the database does not answer");
	}
	block_finish(question);
	streaming_use();
}

static void
streaming_begin(Streaming *streaming, BlockQuestion *question)
{
	const V2Block *block = &question->block;
	char texts[5][24];
	PgParam params[] = {pgparam_int64(texts[0], question->session->sheet_id), pgparam_int64(texts[1], block->row),
						pgparam_int64(texts[2], block->col), pgparam_int64(texts[3], block->to_row),
						pgparam_int64(texts[4], block->to_col)};

	streaming->question = question;
	streaming->began = uv_now(&gateway.loop);
	question->session->v2->holding = true;
	if (!pgconn_stream(streaming_connection(streaming), streaming_sql, 5, params, 1, database_deadline(), streaming_row,
					   streaming_done, streaming))
		streaming_done(streaming, NULL);
}

/* ---- all of them ---- */

/* Number of an account's blocks that are being read. */
static int
streaming_count_of(int64_t uid)
{
	int count = 0;

	for (const Streaming *streaming = streams; streaming < streams + BLOCK_CONNECTIONS; streaming++)
		count += streaming->question != NULL && streaming->question->session->uid == uid;
	return count;
}

/* Takes the first waiting block of the account with the fewest connections. NULL: none may have another one. */
static BlockQuestion *
streaming_next(void)
{
	BlockQuestion **best = NULL, *question;
	int fewest = STREAMING_SHARE;

	for (BlockQuestion **link = &waiting; fewest > 0 && *link != NULL; link = &(*link)->next)
	{
		int count = streaming_count_of((*link)->session->uid);

		if (count < fewest)
		{
			fewest = count;
			best = link;
		}
	}
	if (best == NULL)
		return NULL;
	question = *best;
	*best = question->next;
	if (question->next == NULL)
		waiting_last = best;
	return question;
}

/* Drops waiting blocks whose client has gone. */
static void
streaming_forget_gone(void)
{
	BlockQuestion *question = waiting;

	waiting = NULL;
	waiting_last = &waiting;
	while (question != NULL)
	{
		BlockQuestion *next = question->next;

		if (block_is_wanted(question))
		{
			question->next = NULL;
			*waiting_last = question;
			waiting_last = &question->next;
		}
		else
			block_finish(question);
		question = next;
	}
}

/* Gives free connections to waiting blocks. */
static void
streaming_use(void)
{
	streaming_forget_gone();
	for (Streaming *streaming = streams; streaming < streams + BLOCK_CONNECTIONS; streaming++)
	{
		BlockQuestion *question = streaming->question == NULL ? streaming_next() : NULL;

		if (question != NULL)
			streaming_begin(streaming, question);
	}
}

void
large_block_add(BlockQuestion *question)
{
	question->session->v2->holding = false;
	session_want_write(question->session);
	question->next = NULL;
	*waiting_last = question;
	waiting_last = &question->next;
	streaming_use();
}

void
v2_resume_large_block(const Session *session)
{
	for (Streaming *streaming = streams; streaming < streams + BLOCK_CONNECTIONS; streaming++)
	{
		if (streaming->question != NULL && streaming->question->session == session &&
			session->out_bytes <= streaming_ahead() / 2)
			pgconn_resume(streaming_connection(streaming));
	}
}

int
v2_blocks_waiting(void)
{
	int count = 0;

	for (const BlockQuestion *question = waiting; question != NULL; question = question->next)
		count++;
	return count;
}

void
v2_tick_blocks(void)
{
	uint64_t most = (uint64_t) gateway.config.block_seconds * 1000;

	streaming_use();
	for (Streaming *streaming = streams; streaming < streams + BLOCK_CONNECTIONS; streaming++)
	{
		if (streaming->question == NULL)
			continue;
		if (block_is_wanted(streaming->question) && uv_now(&gateway.loop) - streaming->began > most)
			session_close(streaming->question->session, CLOSE_SLOW,
						  "a large block has not been read in time: ask for smaller ranges");
		if (!block_is_wanted(streaming->question))
		{
			database_cancel(streaming_connection(streaming));
			pgconn_resume(streaming_connection(streaming));
		}
	}
}
