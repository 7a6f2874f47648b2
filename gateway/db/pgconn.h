/*
 * pgconn.h - one PostgreSQL connection on the libuv loop: asynchronous, pipelined, reconnecting.
 *
 * Queries are sent in order and answered in order. Every query between two pgconn_sync() calls is
 * one transaction: when one fails, it gets its error, and all others of the group get PGRES_PIPELINE_ABORTED: nothing
 * of them is stored. When the commit fails, all get its error. A query is answered when its whole group is committed
 * (or has failed): a result that says yes is durable. A statement is prepared once per connection, by its text. Every
 * query has a deadline: when it passes, the connection is given up and opened again, and whatever was under way is
 * answered with a NULL result: *outcome unknown*. While there is no connection, queries wait (bounded, see
 * pgconn_send).
 */
#ifndef PGCONN_H
#define PGCONN_H

#include "pgquery.h"

#include <stdbool.h>
#include <uv.h>

typedef struct PgConn PgConn;

/* up: a new session is ready / the session is gone. Called from the loop. */
typedef void (*PgStateFn)(void *arg, bool up);

/* Connects in the background and keeps trying (0.1 s doubling to 2 s). name goes to the log and application_name. */
extern PgConn *pgconn_open(uv_loop_t *loop, const char *conninfo, const char *name, PgStateFn state_fn,
						   void *state_arg);
extern void pgconn_close(PgConn *conn); /* pending queries are answered with NULL; frees conn at the end of the turn */
extern bool pgconn_is_up(const PgConn *conn);
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
