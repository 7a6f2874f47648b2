/*
 * pgpool.h - the connections for one class of statements.
 *
 * A pipelined pool sends each statement at once, behind those in progress on the connection that it chooses. It is for
 * short statements that do not wait for locks. A serial pool executes one statement at a time on each connection, and
 * the others wait in the pool. It is for statements that may take long or wait for a lock, so that no statement waits
 * behind them. It limits how many statements of an account are executed and wait; more are refused.
 */
#ifndef PGPOOL_H
#define PGPOOL_H

#include "db/pgconn.h"

#include <stdint.h>

#define PGPOOL_MAX_CONNECTIONS 64

typedef struct PgPool PgPool;

typedef struct PgPoolOptions
{
	PgConnOptions conn; /* of each connection */
	int connections;
	bool serial;
	int account_running; /* serial: maximum in progress per account; 0: no limit */
	int account_waiting; /* serial: maximum waiting per account */
	int waiting;		 /* serial: maximum waiting */
	unsigned deadline_ms;
} PgPoolOptions;

extern PgPool *pgpool_open(uv_loop_t *loop, const char *conninfo, const PgPoolOptions *options);
/* Answers pending queries with NULL. Frees the pool at the end of the iteration. */
extern void pgpool_close(PgPool *pool);
/*
 * Queues a query as pgconn_query() does. The limits per account do not apply to account 0, the gateway itself. Returns
 * false if it is refused; fn is then not called. goes_on: it reads the rest of an answer that has begun, and may wait
 * behind any number of the account's statements. row_fn, if not NULL, gets the rows (see pgconn_stream()), which only a
 * serial pool can do.
 */
extern bool pgpool_query(PgPool *pool, int64_t account, bool goes_on, const char *sql, int nparams,
						 const PgParam *params, int result_format, PgResultFn row_fn, PgResultFn fn, void *arg);
/* The best connection of a pipelined pool for the next statement. At low load this is always the first. */
extern PgConn *pgpool_choose(const PgPool *pool);
/* Whether any connection is up. */
extern bool pgpool_is_up(const PgPool *pool);
extern int pgpool_pending(const PgPool *pool);
extern int pgpool_connections(const PgPool *pool);
extern PgConn *pgpool_connection(const PgPool *pool, int i);

#endif
