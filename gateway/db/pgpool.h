/*
 * pgpool.h - the connections for one class of statements.
 *
 * A pipelined pool sends each statement at once, behind those that are under way on the connection that it chooses: for
 * statements that are short and wait for nothing. A serial pool has one statement at a time on each connection, and the
 * others wait in the pool: for statements that may take long or wait for a lock, so that none of them stands before
 * another one. There each account may have so many under way and so many waiting; what is more is refused.
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
	int account_running; /* serial: of one account under way at once; 0: any number ... */
	int account_waiting; /* ... and waiting */
	int waiting;		 /* serial: of all accounts */
	unsigned deadline_ms;
} PgPoolOptions;

extern PgPool *pgpool_open(uv_loop_t *loop, const char *conninfo, const PgPoolOptions *options);
/* Frees the pool at the end of the iteration. What is under way is answered with NULL. */
extern void pgpool_close(PgPool *pool);
/*
 * Queues a query, as pgconn_query() does, on behalf of an account (0: the gateway's own, which has no bound of its
 * own). False: refused, and fn is not called.
 */
extern bool pgpool_query(PgPool *pool, int64_t account, const char *sql, int nparams, const PgParam *params,
						 int result_format, PgResultFn fn, void *arg);
/* The same for a serial pool, with the rows given one by one as they come; see pgconn_stream(). */
extern bool pgpool_stream(PgPool *pool, int64_t account, const char *sql, int nparams, const PgParam *params,
						  int result_format, PgResultFn row_fn, PgResultFn fn, void *arg);
/* The connection of a pipelined pool for the next statement. */
extern PgConn *pgpool_choose(const PgPool *pool);
extern bool pgpool_is_up(const PgPool *pool); /* any connection is */
extern int pgpool_pending(const PgPool *pool);
extern int pgpool_connections(const PgPool *pool);
extern PgConn *pgpool_connection(const PgPool *pool, int i);

#endif
