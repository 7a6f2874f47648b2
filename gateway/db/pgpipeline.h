/*
 * pgpipeline.h - the queries of one connection, from asking to the answer; see pgpipeline.c.
 *
 * Everything here is libpq's calls and memory: nothing waits, and whose turn it is to write and to read the socket is
 * decided by pgconn.c.
 */
#ifndef PGPIPELINE_H
#define PGPIPELINE_H

#include "db/pgquery.h"

#include <stdbool.h>
#include <stdint.h>

#define PGPIPELINE_MAX_STATEMENTS 128

typedef struct PgItem PgItem;

typedef struct PgItemQueue
{
	PgItem *head;
	PgItem **tail;
} PgItemQueue;

typedef struct PgStatement
{
	const char *sql;
	bool prepared;
} PgStatement;

typedef struct PgPipeline
{
	const char *name;	 /* of the connection, for the log */
	PGconn *pg;			 /* the session, its user's; NULL while there is none */
	bool broken;		 /* the session is to be given up at the next safe point */
	int pending;		 /* queries that are not answered */
	uint64_t progress;	 /* ms: the last time something was sent to an idle session, or came */
	PgItemQueue open;	 /* the group that is not closed yet */
	PgItem *open_sync;	 /* for its end */
	PgItemQueue waiting; /* closed groups, not sent */
	PgItemQueue sent;
	PgItemQueue done; /* answered, but their group's Sync is not: not committed yet */
	PgItemQueue lost; /* of a session that has ended */
	PgStatement statements[PGPIPELINE_MAX_STATEMENTS];
	int nstatements;
} PgPipeline;

/* A query: its sql is a constant string, whose address is the key of the prepared statement. */
typedef struct PgQuery
{
	const char *sql;
	int nparams;
	const PgParam *params; /* copied */
	int result_format;
	unsigned deadline_ms;
	PgResultFn row_fn; /* NULL: all rows come together */
	PgResultFn fn;
	void *arg;
	int64_t account; /* on whose behalf; for pgpool.c */
} PgQuery;

extern void pipeline_init(PgPipeline *pipeline, const char *name);

/* A query with a copy of its parameters; NULL: no memory, or a parameter that could not be built, or too many of them.
 * now: of the loop's clock, ms, here and below. */
extern PgItem *pipeline_item(const PgQuery *query, uint64_t now);
extern const PgQuery *pipeline_item_query(const PgItem *item);
/* Gives the answer to somebody else. */
extern void pipeline_item_redirect(PgItem *item, PgResultFn row_fn, PgResultFn fn, void *arg);
/* The one behind it in its queue. */
extern const PgItem *pipeline_item_next(const PgItem *item);
/* Frees an item that is in no pipeline. */
extern void pipeline_item_free(PgItem *item);
extern void pipeline_queue_init(PgItemQueue *queue);
extern void pipeline_queue_push(PgItemQueue *queue, PgItem *item);
/* Takes out the first item for which `fits` says yes; NULL when there is none. */
extern PgItem *pipeline_queue_take(PgItemQueue *queue, bool (*fits)(const PgItem *item, void *arg), void *arg);
extern bool pipeline_item_is_overdue(const PgItem *item, uint64_t now);

/* Sends a statement that every session begins with. */
extern void pipeline_send_setup(PgPipeline *pipeline, const char *sql, uint64_t now);
/* Puts a query into the open group and owns it from then on. False, and the item is the caller's still: too many
 * statements, or no memory. */
extern bool pipeline_add(PgPipeline *pipeline, PgItem *item);
/* The open group is complete; false when there is none. */
extern bool pipeline_close_group(PgPipeline *pipeline);

/* Gives libpq the groups that wait. */
extern void pipeline_send(PgPipeline *pipeline, uint64_t now);
/* Takes one result; false when there is none without waiting. Answers queries: anything may be called from there. */
extern bool pipeline_take(PgPipeline *pipeline, uint64_t now);

/* Nothing has come for longer than the first query under way, or its commit, may take. */
extern bool pipeline_is_overdue(const PgPipeline *pipeline, uint64_t now);
/* That time begins anew. */
extern void pipeline_prolong(PgPipeline *pipeline, uint64_t now);
/* How long the oldest query under way has been in the pipeline, ms; 0 when none is. */
extern uint64_t pipeline_age(const PgPipeline *pipeline, uint64_t now);

/* The session has gone: what was sent has no answer. */
extern void pipeline_lose_session(PgPipeline *pipeline);
/* The connection has gone: neither has what waits. */
extern void pipeline_lose_all(PgPipeline *pipeline);
/* Answers what was lost with NULL. */
extern void pipeline_answer_lost(PgPipeline *pipeline);
/* Groups that have waited too long without a session are answered with NULL. */
extern void pipeline_expire_waiting(PgPipeline *pipeline, uint64_t now);

#endif
