/*
 * pgpool.c - the connections for one class of statements; see pgpool.h.
 *
 * A serial pool keeps what waits in one queue. When a connection is idle, it gets the first statement of the queue
 * whose account has fewer under way than it may have. So an account that asks for much waits behind itself.
 */
#include "db/pgpool.h"

#include "db/pgpipeline.h"

#include <stdlib.h>

#define PGPOOL_TICK_MS 200

/* A statement that a serial connection works on. */
typedef struct PoolPlace
{
	PgPool *pool;
	PgConn *conn;
	bool taken;
	int64_t account;
	PgResultFn row_fn;
	PgResultFn fn;
	void *arg;
} PoolPlace;

struct PgPool
{
	uv_loop_t *loop;
	PgPoolOptions options;
	PoolPlace places[PGPOOL_MAX_CONNECTIONS];
	PgItemQueue waiting; /* serial */
	int waiting_count;
	uv_timer_t tick;
	bool closing;
};

/* ---- serial: what waits, and whose turn it is ---- */

static int
pool_running(const PgPool *pool, int64_t account)
{
	int count = 0;

	for (int i = 0; i < pool->options.connections; i++)
		count += pool->places[i].taken && pool->places[i].account == account;
	return count;
}

static bool
pool_may_run(const PgItem *item, void *arg)
{
	const PgPool *pool = arg;
	int64_t account = pipeline_item_query(item)->account;

	return account == 0 || pool->options.account_running == 0 ||
		   pool_running(pool, account) < pool->options.account_running;
}

/* Takes what `fits` out of the queue. */
static PgItem *
pool_take(PgPool *pool, bool (*fits)(const PgItem *item, void *arg), void *arg)
{
	PgItem *item = pipeline_queue_take(&pool->waiting, fits, arg);

	pool->waiting_count -= item != NULL;
	return item;
}

static void
pool_finish(PgItem *item)
{
	const PgQuery *query = pipeline_item_query(item);

	if (query->fn != NULL)
		query->fn(query->arg, NULL);
	pipeline_item_free(item);
}

static void pool_dispatch(PgPool *pool);

static void
pool_answered(void *arg, PGresult *res)
{
	PoolPlace *place = arg;
	PgResultFn fn = place->fn;

	place->taken = false;
	if (fn != NULL)
		fn(place->arg, res);
	pool_dispatch(place->pool);
}

static void
pool_row(void *arg, PGresult *row)
{
	PoolPlace *place = arg;

	place->row_fn(place->arg, row);
}

/* A connection that is up and idle; NULL when there is none. */
static PoolPlace *
pool_idle_place(PgPool *pool)
{
	for (int i = 0; i < pool->options.connections; i++)
	{
		if (!pool->places[i].taken && pgconn_is_up(pool->places[i].conn))
			return &pool->places[i];
	}
	return NULL;
}

static void
pool_dispatch(PgPool *pool)
{
	PoolPlace *place;
	PgItem *item;

	while (!pool->closing && (place = pool_idle_place(pool)) != NULL &&
		   (item = pool_take(pool, pool_may_run, pool)) != NULL)
	{
		const PgQuery *query = pipeline_item_query(item);

		place->taken = true;
		place->account = query->account;
		place->row_fn = query->row_fn;
		place->fn = query->fn;
		place->arg = query->arg;
		pipeline_item_redirect(item, query->row_fn != NULL ? pool_row : NULL, pool_answered, place);
		if (!pgconn_submit(place->conn, item))
		{
			pipeline_item_free(item);
			pool_answered(place, NULL);
		}
	}
}

static bool
pool_is_of_account(const PgItem *item, int64_t account)
{
	return pipeline_item_query(item)->account == account;
}

static bool
pool_may_wait(const PgPool *pool, int64_t account)
{
	int count = 0;

	if (pool->waiting_count >= pool->options.waiting)
		return false;
	for (const PgItem *item = pool->waiting.head; item != NULL; item = pipeline_item_next(item))
		count += pool_is_of_account(item, account);
	return account == 0 || count < pool->options.account_waiting;
}

/* ---- asking ---- */

static bool
pool_queue(PgPool *pool, const PgQuery *query)
{
	PgItem *item;

	if (!pool_may_wait(pool, query->account) || (item = pipeline_item(query, uv_now(pool->loop))) == NULL)
		return false;
	pipeline_queue_push(&pool->waiting, item);
	pool->waiting_count++;
	pool_dispatch(pool);
	return true;
}

bool
pgpool_query(PgPool *pool, int64_t account, const char *sql, int nparams, const PgParam *params, int result_format,
			 PgResultFn fn, void *arg)
{
	PgQuery query = {sql, nparams, params, result_format, pool->options.deadline_ms, NULL, fn, arg, account};

	if (pool->options.serial)
		return pool_queue(pool, &query);
	return pgconn_query(pgpool_choose(pool), sql, nparams, params, result_format, pool->options.deadline_ms, fn, arg);
}

bool
pgpool_stream(PgPool *pool, int64_t account, const char *sql, int nparams, const PgParam *params, int result_format,
			  PgResultFn row_fn, PgResultFn fn, void *arg)
{
	PgQuery query = {sql, nparams, params, result_format, pool->options.deadline_ms, row_fn, fn, arg, account};

	return pool_queue(pool, &query);
}

PgConn *
pgpool_choose(const PgPool *pool)
{
	PgConn *conns[PGPOOL_MAX_CONNECTIONS];

	for (int i = 0; i < pool->options.connections; i++)
		conns[i] = pool->places[i].conn;
	return pgconn_choose(conns, pool->options.connections);
}

/* ---- life ---- */

static bool
pool_is_overdue(const PgItem *item, void *arg)
{
	return pipeline_item_is_overdue(item, *(uint64_t *) arg);
}

static bool
pool_is_any(const PgItem *item, void *arg)
{
	return true;
}

/* What waits longer than a statement may take is given up; connections may have come up again. */
static void
pool_on_tick(uv_timer_t *timer)
{
	PgPool *pool = timer->data;
	uint64_t now = uv_now(pool->loop);
	PgItem *item;

	while ((item = pool_take(pool, pool_is_overdue, &now)) != NULL)
		pool_finish(item);
	pool_dispatch(pool);
}

PgPool *
pgpool_open(uv_loop_t *loop, const char *conninfo, const PgPoolOptions *options)
{
	PgPool *pool = calloc(1, sizeof(PgPool));

	if (pool == NULL)
		return NULL;
	pool->loop = loop;
	pool->options = *options;
	pipeline_queue_init(&pool->waiting);
	for (int i = 0; i < options->connections; i++)
	{
		pool->places[i].pool = pool;
		pool->places[i].conn = pgconn_open(loop, conninfo, &options->conn);
		if (pool->places[i].conn == NULL)
			return NULL; /* only at start-up, which fails then */
	}
	uv_timer_init(loop, &pool->tick);
	pool->tick.data = pool;
	uv_timer_start(&pool->tick, pool_on_tick, PGPOOL_TICK_MS, PGPOOL_TICK_MS);
	return pool;
}

static void
pool_freed(uv_handle_t *handle)
{
	free(handle->data);
}

void
pgpool_close(PgPool *pool)
{
	PgItem *item;

	pool->closing = true;
	while ((item = pool_take(pool, pool_is_any, NULL)) != NULL)
		pool_finish(item);
	for (int i = 0; i < pool->options.connections; i++)
		pgconn_close(pool->places[i].conn);
	uv_close((uv_handle_t *) &pool->tick, pool_freed);
}

bool
pgpool_is_up(const PgPool *pool)
{
	return pgconn_is_up(pgpool_choose(pool));
}

int
pgpool_pending(const PgPool *pool)
{
	int count = pool->waiting_count;

	for (int i = 0; i < pool->options.connections; i++)
		count += pgconn_pending(pool->places[i].conn);
	return count;
}

int
pgpool_connections(const PgPool *pool)
{
	return pool->options.connections;
}

PgConn *
pgpool_connection(const PgPool *pool, int i)
{
	return pool->places[i].conn;
}
