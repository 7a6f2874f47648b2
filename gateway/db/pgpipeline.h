/*
 * pgpipeline.h - the queries of one connection, from queueing to the answer; see pgpipeline.c.
 *
 * Only libpq calls and memory: nothing waits. pgconn.c decides when the socket is read and written. Times are in
 * milliseconds of the loop's clock.
 */
#ifndef PGPIPELINE_H
#define PGPIPELINE_H

#include "db/pgquery.h"

#include <stdbool.h>
#include <stdint.h>

#define PGPIPELINE_MAX_STATEMENTS 128

typedef enum PgItemKind
{
	ITEM_PREPARE,
	ITEM_QUERY,
	ITEM_SYNC
} PgItemKind;

typedef struct PgItem
{
	struct PgItem *next;
	PgItemKind kind;
	PgQuery query;	/* its parameters are in the same allocation */
	int statement;	/* index of the prepared statement */
	uint64_t order; /* among those that wait in a pool */
	uint64_t since;
	uint64_t deadline;
	bool single_rows; /* libpq is in single-row mode for this query */
	PGresult *result; /* the last one received */
} PgItem;

typedef struct PgItemQueue
{
	PgItem *head;
	PgItem **tail;
} PgItemQueue;

typedef struct PgStatement
{
	const char *sql;
	bool prepared;
	bool refused;			/* the last Prepare of this session failed, which was logged */
	PgItem *prepare, *sync; /* for its Prepare and the Sync behind it: sending must not fail for want of memory */
} PgStatement;

typedef struct PgPipeline
{
	const char *name;	 /* the connection's, for the log */
	PGconn *pg;			 /* the session, owned by pgconn.c; NULL if there is none */
	bool broken;		 /* the session must be dropped at the next safe point */
	int pending;		 /* queries without an answer */
	uint64_t progress;	 /* when something was last received, or sent to an idle session */
	PgItemQueue open;	 /* the group that is not complete yet */
	PgItem *open_sync;	 /* the Sync for its end */
	PgItemQueue waiting; /* complete groups, not sent */
	PgItemQueue sent;
	PgItemQueue done; /* have a result, but their group's Sync has none: not committed yet */
	PgItemQueue lost; /* of a session that has ended */
	PgStatement statements[PGPIPELINE_MAX_STATEMENTS];
	int nstatements;
} PgPipeline;

extern void pipeline_init(PgPipeline *pipeline, const char *name);

/* Returns NULL if there is no memory, a parameter could not be built, or there are too many. */
extern PgItem *pipeline_item(const PgQuery *query, uint64_t now);
/* Frees an item that is in no pipeline. */
extern void pipeline_item_free(PgItem *item);
extern void pipeline_queue_init(PgItemQueue *queue);
/* Removes and returns the first item that `fits` accepts, or NULL. */
extern PgItem *pipeline_queue_take(PgItemQueue *queue, bool (*fits)(const PgItem *item, void *arg), void *arg);

/* Adds a query to the open group and takes ownership. If false, there were too many statements or no memory, and the
 * caller still owns the item. */
extern bool pipeline_add(PgPipeline *pipeline, PgItem *item);
/* Completes the open group. Returns false if it is empty. */
extern bool pipeline_close_group(PgPipeline *pipeline);

/* Gives the waiting groups to libpq. */
extern void pipeline_send(PgPipeline *pipeline, uint64_t now);
/* Takes one result; false if none is available without waiting. Answers queries, so any function may be called from
 * within. */
extern bool pipeline_take(PgPipeline *pipeline, uint64_t now);

/* Nothing was received for longer than the deadline of the first query in progress, its commit included. */
extern bool pipeline_is_overdue(const PgPipeline *pipeline, uint64_t now);
/* How long ago the oldest query in progress was queued; 0 if none is. */
extern uint64_t pipeline_age(const PgPipeline *pipeline, uint64_t now);

/* The session has ended: the queries that were sent are lost. */
extern void pipeline_lose_session(PgPipeline *pipeline);
/* The connection is closed: the waiting queries are lost, too. */
extern void pipeline_lose_all(PgPipeline *pipeline);
/* Answers the lost queries with NULL. */
extern void pipeline_answer_lost(PgPipeline *pipeline);
/* Answers the groups that are past their deadline with NULL. */
extern void pipeline_expire_waiting(PgPipeline *pipeline, uint64_t now);

#endif
