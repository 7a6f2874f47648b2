/*
 * pgconn.h - one PostgreSQL connection on the libuv loop: asynchronous, pipelined, reconnecting.
 *
 * Queries are sent and answered in order. The queries between two calls of pgconn_sync() are a group, which is one
 * transaction. If one of them fails, it gets its error and the others get PGRES_PIPELINE_ABORTED; if the commit fails,
 * all get its error. A query is answered after its group's commit, so a successful result is durable. Each statement is
 * prepared once per session.
 *
 * The deadline of a query limits the server's silence while that query is the next to be answered, its commit
 * included. After that the connection is dropped and opened again, and the queries in progress are answered with a
 * NULL result: outcome unknown. A working server cancels a statement earlier, by the timeouts that settings_sql sets.
 * While there is no session, queries wait, at most PGCONN_MAX_PENDING and until their deadline.
 */
#ifndef PGCONN_H
#define PGCONN_H

#include "db/pgquery.h"

#include <stdbool.h>
#include <uv.h>

typedef struct PgConn PgConn;
struct PgItem;

/* A session is ready (up), or has ended. */
typedef void (*PgStateFn)(void *arg, bool up);

/* The server has answered, and an administrator must change something there before it can be used (pgsession.h). */
typedef void (*PgRefusedFn)(void *arg, const char *reason);

/*
 * The deadline has passed. The function asks on another connection whether the server still executes the query, and
 * then calls pgconn_prolong(). Otherwise the connection is dropped after PGCONN_ASK_MS.
 */
typedef void (*PgOverdueFn)(PgConn *conn);
#define PGCONN_ASK_MS 3000

typedef struct PgConnOptions
{
	const char *name;		  /* in the log, and application_name */
	const char *settings_sql; /* settings of each session, as calls of set_config(); may be NULL; must outlive it */
	bool relaxed;			  /* commits need not be on disk: synchronous_commit may be off */
	PgStateFn state_fn;		  /* may be NULL */
	PgRefusedFn refused_fn;	  /* may be NULL */
	void *state_arg;
	PgOverdueFn overdue_fn; /* NULL: the connection is dropped at once */
} PgConnOptions;

/* Connects in the background, to each server of conninfo in turn. Retries after 0.1 s, doubling to 2 s. */
extern PgConn *pgconn_open(uv_loop_t *loop, const char *conninfo, const PgConnOptions *options);
/* Answers pending queries with NULL. Frees conn at the end of the iteration. */
extern void pgconn_close(PgConn *conn);
extern bool pgconn_is_up(const PgConn *conn);
/* The server process, and its application_name. The connection must be up. */
extern int pgconn_server_pid(const PgConn *conn);
extern const char *pgconn_application(const PgConn *conn);
/* Restarts the deadline of the query in progress. */
extern void pgconn_prolong(PgConn *conn);
/* Number of queries without an answer. */
extern int pgconn_pending(const PgConn *conn);
/* Whether the connection is the better one for the next query: up, no long query in progress, fewer queries. */
extern bool pgconn_is_better(const PgConn *conn, const PgConn *than);

/*
 * Queues a query. sql must be a constant string: its address identifies the prepared statement. Parameters are copied.
 * result_format: 0 text, 1 binary. Returns false if PGCONN_MAX_PENDING queries wait or there is no memory.
 */
#define PGCONN_MAX_PENDING 8192
extern bool pgconn_send(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						unsigned deadline_ms, PgResultFn fn, void *arg);
/* Ends the group: what was queued since the last call is committed. */
extern void pgconn_sync(PgConn *conn);
/* pgconn_send() and pgconn_sync(). */
extern bool pgconn_query(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						 unsigned deadline_ms, PgResultFn fn, void *arg);
/*
 * Like pgconn_query(), but row_fn gets each row as it arrives, in a result that is valid during the call. fn then gets
 * the end, without rows, or the error. No other query may be in progress. The deadline applies to each row.
 */
extern bool pgconn_stream(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						  unsigned deadline_ms, PgResultFn row_fn, PgResultFn fn, void *arg);
/* Sends an item of pgpool.c as a group of its own. If false, the caller still owns the item. */
extern bool pgconn_submit(PgConn *conn, struct PgItem *item);
/* Writes more of what the socket did not take. Returns true if bytes remain. A failure is reported later. */
extern bool pgconn_push(PgConn *conn);

/* Queries that were not sent wait for pgconn_release(). */
extern void pgconn_hold(PgConn *conn);
extern bool pgconn_is_held(const PgConn *conn);
/* Sends them; with `anew` in another session, if there is one now. Queries in progress may be answered from within. */
extern void pgconn_release(PgConn *conn, bool anew);

/* Stops reading, so that the server waits. No deadline passes meanwhile. */
extern void pgconn_pause(PgConn *conn);
/* Resumes reading. Queries may be answered from within. */
extern void pgconn_resume(PgConn *conn);

#endif
