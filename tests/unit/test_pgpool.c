/*
 * test_pgpool.c - a serial pool (db/pgpool.c) on connections that may refuse a statement: nobody is answered from
 * within the call that queues a statement, and what was refused is sent later. An account has a limited number of
 * statements, but for those that go on with an answer.
 */
#include "db/pgpool.h"
#include "db/pgpipeline.h"

#include <stdlib.h>

#include "tap.h"

/* ---- connections that only count ---- */

struct PgConn
{
	PgItem *item;
};

static struct PgConn connection;
static int refusals, submitted;

PgConn *
pgconn_open(uv_loop_t *loop, const char *conninfo, const PgConnOptions *options)
{
	return &connection;
}

void
pgconn_close(PgConn *conn)
{
}

bool
pgconn_is_up(const PgConn *conn)
{
	return true;
}

int
pgconn_pending(const PgConn *conn)
{
	return conn->item != NULL;
}

bool
pgconn_is_better(const PgConn *conn, const PgConn *than)
{
	return false;
}

bool
pgconn_query(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			 PgResultFn fn, void *arg)
{
	return false;
}

bool
pgconn_submit(PgConn *conn, PgItem *item)
{
	if (refusals > 0)
	{
		refusals--;
		return false;
	}
	submitted++;
	conn->item = item;
	return true;
}

static void
answer(void)
{
	PgItem *item = connection.item;

	connection.item = NULL;
	item->query.fn(item->query.arg, NULL);
	pipeline_item_free(item);
}

/* ---- the test ---- */

static int answered[2], of_account, of_other;

static void
on_answer(void *arg, PGresult *res)
{
	++*(int *) arg;
}

int
main(void)
{
	PgPoolOptions options = {
		.connections = 1, .serial = true, .account_waiting = 4, .waiting = 4, .deadline_ms = 600000};
	uv_loop_t *loop = uv_default_loop();
	PgPool *pool = pgpool_open(loop, "", &options);
	bool queued;

	refusals = 2;
	queued = pgpool_query(pool, 0, false, "first", 0, NULL, 0, NULL, on_answer, &answered[0]);
	TAP_OK(queued && answered[0] == 0, "a statement that could not be submitted is not answered from within");
	queued = pgpool_query(pool, 0, false, "second", 0, NULL, 0, NULL, on_answer, &answered[1]);
	TAP_OK(queued && answered[0] == 0 && answered[1] == 0, "nor by the call of another one");
	TAP_OK(submitted == 0 && pgpool_pending(pool) == 2, "both wait");
	for (int i = 0; i < 100 && submitted == 0; i++)
		uv_run(loop, UV_RUN_ONCE);
	TAP_OK(submitted == 1 && connection.item->query.sql[0] == 'f', "the first one is sent later, and first");
	answer();
	TAP_OK(answered[0] == 1 && submitted == 2 && connection.item->query.sql[0] == 's', "then the second one");
	answer();
	TAP_OK(answered[0] == 1 && answered[1] == 1 && pgpool_pending(pool) == 0, "each is answered once");

	for (int i = 0; i < 6; i++)
		queued = pgpool_query(pool, 7, false, "of an account", 0, NULL, 0, NULL, on_answer, &of_account);
	TAP_OK(!queued && pgpool_pending(pool) == 5, "one is executed for an account, and four wait: more are refused");
	queued = pgpool_query(pool, 7, true, "the next page", 0, NULL, 0, NULL, on_answer, &of_account);
	TAP_OK(queued && pgpool_pending(pool) == 6, "but not the next page of an answer that has begun");
	for (int i = 0; i < 8; i++)
		queued = queued && pgpool_query(pool, 7, true, "more pages", 0, NULL, 0, NULL, on_answer, &of_account);
	TAP_OK(queued && pgpool_pending(pool) == 14, "however many");
	queued = pgpool_query(pool, 8, false, "of another account", 0, NULL, 0, NULL, on_answer, &of_other);
	TAP_OK(queued && of_account == 1 && pgpool_pending(pool) == 14,
		   "another account takes the place of a statement, and of no page");
	for (int i = 0; i < 14; i++)
		answer();
	TAP_OK(of_account == 14 && of_other == 1 && pgpool_pending(pool) == 0, "each is answered once");
	pgpool_close(pool);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	return tap_done();
}
