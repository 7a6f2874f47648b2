/*
 * pgconn.h - one PostgreSQL connection on the libuv loop: asynchronous, pipelined, reconnecting.
 *
 * Queries are sent in order and answered in order. Every query between two pgconn_sync() calls is
 * one transaction: when one fails, it gets its error, and all others of the group get PGRES_PIPELINE_ABORTED: nothing
 * of them is stored. When the commit fails, all get its error. A query is answered when its whole group is committed
 * (or has failed): a result that says yes is durable. A statement is prepared once per connection, by its text. Every
 * query has a deadline: the longest silence of the server while it is the next to be answered, its commit included.
 * When that passes, the connection is given up and opened again, and whatever was under way is answered with a NULL
 * result: *outcome unknown*. While there is no connection, queries wait (bounded, see pgconn_send).
 *
 * A server that is alive ends a statement by itself, by the timeouts that session_sql sets, which are shorter than the
 * deadline. So a connection is given up only when the server is silent for another reason.
 */
#ifndef PGCONN_H
#define PGCONN_H

#include "db/pgquery.h"

#include <stdbool.h>
#include <uv.h>

typedef struct PgConn PgConn;
struct PgItem;

/* up: a new session is ready / the session is gone. Called from the loop. */
typedef void (*PgStateFn)(void *arg, bool up);

/*
 * The deadline has passed. The callee finds out on another connection whether the server still works on the query, and
 * calls pgconn_prolong() then; otherwise the connection is given up after PGCONN_ASK_MS.
 */
typedef void (*PgOverdueFn)(PgConn *conn);
#define PGCONN_ASK_MS 3000

typedef struct PgConnOptions
{
	const char *name;		 /* goes to the log and to application_name */
	const char *session_sql; /* a query that every session begins with; NULL: none; it stays the caller's */
	PgStateFn state_fn;		 /* may be NULL */
	void *state_arg;
	PgOverdueFn overdue_fn; /* NULL: the connection is given up at once */
} PgConnOptions;

/* Connects in the background and keeps trying (0.1 s doubling to 2 s). */
extern PgConn *pgconn_open(uv_loop_t *loop, const char *conninfo, const PgConnOptions *options);
extern void pgconn_close(PgConn *conn); /* pending queries are answered with NULL; frees conn at the end of the turn */
extern bool pgconn_is_up(const PgConn *conn);
/* The server's process, and the application_name that it shows; only while the connection is up. */
extern int pgconn_server_pid(const PgConn *conn);
extern const char *pgconn_application(const PgConn *conn);
/* The server works on the query: it has its deadline once more. */
extern void pgconn_prolong(PgConn *conn);
/* Queries sent and not yet answered. */
extern int pgconn_pending(const PgConn *conn);
/*
 * The one to send the next query on: one that is up, where nothing has been under way for long, with the least to do;
 * the first of equals, so that at low load it is always the same.
 */
extern PgConn *pgconn_choose(PgConn *const *conns, int count);

/*
 * Queues a query. sql must be a constant string (its address is the key of the prepared statement). Parameter bytes
 * are copied. result_format 0 text, 1 binary. False when more than PGCONN_MAX_PENDING wait: answer "busy".
 */
#define PGCONN_MAX_PENDING 8192
extern bool pgconn_send(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						unsigned deadline_ms, PgResultFn fn, void *arg);
/* Ends the group: commits what was sent since the last sync. */
extern void pgconn_sync(PgConn *conn);
/* Sends a query that pgpool.c has made, as a group of its own. The item stays the caller's when it returns false. */
extern bool pgconn_submit(PgConn *conn, struct PgItem *item);
/* Goes on writing what the socket has not taken yet, for callers that let the loop wait: true when that was not all. A
 * failure shows later. */
extern bool pgconn_push(PgConn *conn);
/* pgconn_send + pgconn_sync. */
extern bool pgconn_query(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						 unsigned deadline_ms, PgResultFn fn, void *arg);

/*
 * A query whose rows are given one by one as they come (each a result of one row, the callee's for the call); fn then
 * gets the end, without rows, or the error. For connections where nothing else is under way. The deadline is that of
 * each row.
 */
extern bool pgconn_stream(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
						  unsigned deadline_ms, PgResultFn row_fn, PgResultFn fn, void *arg);
/* Reads nothing more, until it is resumed: the server waits. No deadline passes meanwhile. */
extern void pgconn_pause(PgConn *conn);
/* Goes on, if it is paused: answers may come from inside the call. */
extern void pgconn_resume(PgConn *conn);

#endif
