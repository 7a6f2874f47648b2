/*
 * pgpool.c - the connections for one class of statements; see pgpool.h.
 *
 * A serial pool has one queue. An idle connection gets the first statement whose account has fewer statements in
 * progress than its limit, so that the statements of a busy account wait for each other. In the queue accounts take
 * turns: a new statement is before those that have more of their own account's before them, and takes the place of the
 * last of these if the queue is full. So some accounts with many statements keep nobody out.
 */
#include "db/pgpool.h"

#include "db/pgpipeline.h"

#include <stdlib.h>

#define PGPOOL_TICK_MS 200

/* A connection, and the statement that a serial pool executes on it. */
typedef struct PoolSlot
{
	PgPool *pool;
	PgConn *conn;
	bool busy;
	PgQuery query;
} PoolSlot;

struct PgPool
{
	uv_loop_t *loop;
	PgPoolOptions options;
	PoolSlot slots[PGPOOL_MAX_CONNECTIONS];
	PgItemQueue waiting; /* serial */
	int waiting_count;
	uint64_t order; /* of the statement that was begun last */
	uv_timer_t tick;
	bool closing;
};

/* ---- the queue of a serial pool ---- */

static int
pool_running(const PgPool *pool, int64_t account)
{
	int count = 0;

	for (int i = 0; i < pool->options.connections; i++)
		count += pool->slots[i].busy && pool->slots[i].query.account == account;
	return count;
}

static bool
pool_may_run(const PgItem *item, void *arg)
{
	const PgPool *pool = arg;
	int64_t account = item->query.account;

	return account == 0 || pool->options.account_running == 0 ||
		   pool_running(pool, account) < pool->options.account_running;
}

static PgItem *
pool_take(PgPool *pool, bool (*fits)(const PgItem *item, void *arg), void *arg)
{
	PgItem *item = pipeline_queue_take(&pool->waiting, fits, arg);

	pool->waiting_count -= item != NULL;
	return item;
}

/* Answers an item with NULL, and frees it. */
static void
pool_answer_none(PgItem *item)
{
	if (item->query.fn != NULL)
		item->query.fn(item->query.arg, NULL);
	pipeline_item_free(item);
}

static void
pool_give_up(PgPool *pool, bool (*fits)(const PgItem *item, void *arg), void *arg)
{
	PgItem *item;

	while ((item = pool_take(pool, fits, arg)) != NULL)
		pool_answer_none(item);
}

static void pool_dispatch(PgPool *pool);

static void
pool_answered(void *arg, PGresult *res)
{
	PoolSlot *slot = arg;
	PgQuery query = slot->query;

	slot->busy = false;
	if (query.fn != NULL)
		query.fn(query.arg, res);
	pool_dispatch(slot->pool);
}

static void
pool_row(void *arg, PGresult *row)
{
	PoolSlot *slot = arg;

	slot->query.row_fn(slot->query.arg, row);
}

/* Returns a slot whose connection is up and idle, or NULL. */
static PoolSlot *
pool_idle_slot(PgPool *pool)
{
	for (int i = 0; i < pool->options.connections; i++)
	{
		if (!pool->slots[i].busy && pgconn_is_up(pool->slots[i].conn))
			return &pool->slots[i];
	}
	return NULL;
}

/* again: before those of the same order, not behind them. */
static void
pool_push(PgPool *pool, PgItem *item, bool again)
{
	PgItem **at = &pool->waiting.head;

	while (*at != NULL && ((*at)->order < item->order || ((*at)->order == item->order && !again)))
		at = &(*at)->next;
	item->next = *at;
	*at = item;
	if (item->next == NULL)
		pool->waiting.tail = &item->next;
	pool->waiting_count++;
}

static void
pool_dispatch(PgPool *pool)
{
	PoolSlot *slot;
	PgItem *item;

	while (!pool->closing && (slot = pool_idle_slot(pool)) != NULL &&
		   (item = pool_take(pool, pool_may_run, pool)) != NULL)
	{
		slot->busy = true;
		slot->query = item->query;
		pool->order = item->order > pool->order ? item->order : pool->order;
		item->query.row_fn = item->query.row_fn != NULL ? pool_row : NULL;
		item->query.fn = pool_answered;
		item->query.arg = slot;
		if (!pgconn_submit(slot->conn, item))
		{
			/* No memory. The next tick tries again: callers do not expect answers from within. */
			item->query = slot->query;
			slot->busy = false;
			pool_push(pool, item, true);
			return;
		}
	}
}

/* Returns whether another statement of the account may wait, and sets its order in the queue. *displaced: the last one
 * in the queue, which it displaces because too many wait, or NULL. Statements that go on with an answer wait beside the
 * limits: there are no more of them than connections of clients, and they neither displace others nor are displaced. */
static bool
pool_may_wait(const PgPool *pool, const PgQuery *query, uint64_t *order, const PgItem **displaced)
{
	const PgItem *last = NULL;
	int count = 0, fresh = 0;

	*displaced = NULL;
	*order = pool->order;
	for (const PgItem *item = pool->waiting.head; item != NULL; item = item->next)
	{
		if (query->account != 0 && item->query.account == query->account)
		{
			count++;
			*order = item->order + 1;
		}
		if (item->query.goes_on)
			continue;
		fresh++;
		last = item;
	}
	if (query->goes_on)
		return true;
	if (query->account != 0 && count >= pool->options.account_waiting)
		return false;
	if (fresh < pool->options.waiting)
		return true;
	*displaced = last;
	return last != NULL && last->order > *order;
}

static bool
pool_is(const PgItem *item, void *arg)
{
	return item == arg;
}

bool
pgpool_query(PgPool *pool, int64_t account, bool goes_on, const char *sql, int nparams, const PgParam *params,
			 int result_format, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	PgQuery query = {sql, nparams, params, result_format, pool->options.deadline_ms, row_fn, fn, arg, account, goes_on};
	const PgItem *last;
	PgItem *item, *displaced = NULL;
	uint64_t order;

	if (!pool->options.serial)
		return pgconn_query(pgpool_choose(pool), sql, nparams, params, result_format, query.deadline_ms, fn, arg);
	if (!pool_may_wait(pool, &query, &order, &last) || (item = pipeline_item(&query, uv_now(pool->loop))) == NULL)
		return false;
	if (last != NULL)
		displaced = pool_take(pool, pool_is, (void *) last);
	item->order = order;
	pool_push(pool, item, false);
	pool_dispatch(pool);
	if (displaced != NULL)
		pool_answer_none(displaced);
	return true;
}

PgConn *
pgpool_choose(const PgPool *pool)
{
	PgConn *best = pool->slots[0].conn;

	for (int i = 1; i < pool->options.connections; i++)
	{
		if (pgconn_is_better(pool->slots[i].conn, best))
			best = pool->slots[i].conn;
	}
	return best;
}

/* ---- opening and closing ---- */

static bool
pool_is_overdue(const PgItem *item, void *arg)
{
	return item->deadline <= *(uint64_t *) arg;
}

static bool
pool_is_any(const PgItem *item, void *arg)
{
	return true;
}

/* Expires items past their deadline, and uses connections that have come up. */
static void
pool_on_tick(uv_timer_t *timer)
{
	PgPool *pool = timer->data;
	uint64_t now = uv_now(pool->loop);

	pool_give_up(pool, pool_is_overdue, &now);
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
		pool->slots[i].pool = pool;
		pool->slots[i].conn = pgconn_open(loop, conninfo, &options->conn);
		if (pool->slots[i].conn == NULL)
			return NULL; /* start-up fails, so nothing is freed */
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
	pool->closing = true;
	pool_give_up(pool, pool_is_any, NULL);
	for (int i = 0; i < pool->options.connections; i++)
		pgconn_close(pool->slots[i].conn);
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
		count += pgconn_pending(pool->slots[i].conn);
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
	return pool->slots[i].conn;
}
