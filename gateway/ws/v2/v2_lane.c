/*
 * v2_lane.c - large blocks of cells: read row by row, no faster than their client takes them.
 *
 * All parts of a block hold at one seq, so they come from one statement, and its connection is the block's until the
 * client has taken them: a lane. Lanes are connections of their own, so that other reads do not wait behind a slow
 * client; there are few, and who waits for one waits in a queue, without holding up its stream. The next one goes to
 * the account that has the fewest. Nothing is read from
 * the server while LANE_AHEAD bytes wait for the client; the server stops when the socket between them is full. As its
 * statement holds a snapshot (VACUUM has to keep what that sees), a client gets block-seconds for a block and is closed
 * then. What is left of it, and of blocks whose client has gone, is read and dropped: the connection is free in a
 * moment.
 *
 * In memory a large block costs LANE_AHEAD, a row and what libpq has read, however large it is.
 */
#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/v2/v2_block.h"

#define LANE_AHEAD (1024 * 1024) /* bytes; half of it left: go on reading */

/* A row is about a message (V2_PART_BYTES). */
static const char lane_sql[] = "SELECT cells FROM sheet.read_cells($1, $2, $3, $4, $5, 262144)";

typedef struct Lane
{
	BlockQuestion *question; /* NULL: free */
	uint64_t began;			 /* ms */
} Lane;

static Lane lanes[BLOCK_CONNECTIONS];
static BlockQuestion *waiting;
static BlockQuestion **waiting_last = &waiting;

static size_t
lane_ahead(void)
{
	size_t most = (size_t) gateway.config.send_queue_bytes / 2;

	return most < LANE_AHEAD ? most : LANE_AHEAD;
}

static PgConn *
lane_connection(const Lane *lane)
{
	return gateway.blocks[lane - lanes];
}

static void lane_use(void);

/* ---- one block ---- */

static void
lane_row(void *arg, PGresult *row)
{
	Lane *lane = arg;
	BlockQuestion *question = lane->question;

	if (!block_is_wanted(question))
		return;
	if (!block_put_cells(question, PQgetvalue(row, 0, 0), (size_t) PQgetlength(row, 0, 0)))
		session_close(question->session, CLOSE_ERROR, "the sheet's cells cannot be read");
	else if (question->session->out_bytes > lane_ahead())
		pgconn_pause(lane_connection(lane));
}

static void
lane_done(void *arg, PGresult *res)
{
	Lane *lane = arg;
	BlockQuestion *question = lane->question;

	lane->question = NULL;
	if (block_is_wanted(question))
	{
		if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
			block_put_end(question);
		else
			session_close(question->session, CLOSE_RESTART, "the database does not answer");
	}
	block_finish(question);
	lane_use();
}

static void
lane_begin(Lane *lane, BlockQuestion *question)
{
	const V2Block *block = &question->block;
	char texts[5][24];
	PgParam params[] = {pgparam_int64(texts[0], question->session->sheet_id), pgparam_int64(texts[1], block->row),
						pgparam_int64(texts[2], block->col), pgparam_int64(texts[3], block->to_row),
						pgparam_int64(texts[4], block->to_col)};

	lane->question = question;
	lane->began = uv_now(&gateway.loop);
	question->session->v2->holding = true;
	if (!pgconn_stream(lane_connection(lane), lane_sql, 5, params, 1, database_deadline(), lane_row, lane_done, lane))
		lane_done(lane, NULL);
}

/* ---- all of them ---- */

/* Blocks of an account that are being read. */
static int
lane_count_of(int64_t uid)
{
	int count = 0;

	for (const Lane *lane = lanes; lane < lanes + BLOCK_CONNECTIONS; lane++)
		count += lane->question != NULL && lane->question->session->uid == uid;
	return count;
}

/* Whose account has the fewest lanes, the first of them: nobody keeps the others out by asking often and reading
 * slowly. */
static BlockQuestion *
lane_next(void)
{
	BlockQuestion **best = &waiting, *question;
	int fewest = lane_count_of(waiting->session->uid);

	for (BlockQuestion **place = &waiting->next; fewest > 0 && *place != NULL; place = &(*place)->next)
	{
		int count = lane_count_of((*place)->session->uid);

		if (count < fewest)
		{
			fewest = count;
			best = place;
		}
	}
	question = *best;
	*best = question->next;
	if (question->next == NULL)
		waiting_last = best;
	return question;
}

/* Those whose client has gone give up their places. */
static void
lane_forget_gone(void)
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

/* Free lanes take those that wait. */
static void
lane_use(void)
{
	lane_forget_gone();
	for (Lane *lane = lanes; lane < lanes + BLOCK_CONNECTIONS && waiting != NULL; lane++)
	{
		if (lane->question == NULL)
			lane_begin(lane, lane_next());
	}
}

void
lane_add(BlockQuestion *question)
{
	question->session->v2->holding = false;
	session_want_write(question->session);
	question->next = NULL;
	*waiting_last = question;
	waiting_last = &question->next;
	lane_use();
}

void
v2_resume_block(const Session *session)
{
	for (Lane *lane = lanes; lane < lanes + BLOCK_CONNECTIONS; lane++)
	{
		if (lane->question != NULL && lane->question->session == session && session->out_bytes <= lane_ahead() / 2)
			pgconn_resume(lane_connection(lane));
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

	lane_use();
	for (Lane *lane = lanes; lane < lanes + BLOCK_CONNECTIONS; lane++)
	{
		if (lane->question == NULL)
			continue;
		if (block_is_wanted(lane->question) && uv_now(&gateway.loop) - lane->began > most)
			session_close(lane->question->session, CLOSE_SLOW,
						  "a large block has not been read in time: ask for smaller ranges");
		if (!block_is_wanted(lane->question))
			pgconn_resume(lane_connection(lane));
	}
}
