/*
 * pgpipeline.c - the queries of one connection, in groups.
 *
 * The life of a query: pipeline_add() puts it into the open group; pipeline_close_group() moves the group to `waiting`
 * and pipeline_send() to `sent`. First it sends a Prepare for each statement that is new to the session, with a Sync
 * of its own, so that a failing query cannot undo the preparation; then the group's queries and their Sync. All of
 * them are in `sent`, in the order of their answers. A query with a result moves to `done`. The result of its group's
 * Sync says whether the transaction is committed; only then are the group's queries answered. If the session ends
 * before, the outcome is unknown: the queries move to `lost` and are answered with NULL. The caller decides whether to
 * send such a query again, which is safe only if it is idempotent. Groups in `waiting` stay there for the next session.
 *
 * libpq facts that shape the code: in pipeline mode a query's results end with NULL, but PGRES_PIPELINE_SYNC is not
 * followed by NULL; PQgetResult() may block unless PQisBusy() returns 0.
 */
#include "db/pgpipeline.h"

#include "support/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINE_OWN_MS 5000 /* deadline of Prepare and Sync */

/* ---- queues ---- */

void
pipeline_queue_init(PgItemQueue *queue)
{
	queue->head = NULL;
	queue->tail = &queue->head;
}

static void
queue_push(PgItemQueue *queue, PgItem *item)
{
	item->next = NULL;
	*queue->tail = item;
	queue->tail = &item->next;
}

static PgItem *
queue_pop(PgItemQueue *queue)
{
	PgItem *item = queue->head;

	if (item == NULL)
		return NULL;
	queue->head = item->next;
	if (queue->head == NULL)
		queue->tail = &queue->head;
	return item;
}

PgItem *
pipeline_queue_take(PgItemQueue *queue, bool (*fits)(const PgItem *item, void *arg), void *arg)
{
	for (PgItem **at = &queue->head; *at != NULL; at = &(*at)->next)
	{
		PgItem *item = *at;

		if (!fits(item, arg))
			continue;
		*at = item->next;
		if (queue->tail == &item->next)
			queue->tail = at;
		return item;
	}
	return NULL;
}

static void
queue_move_all(PgItemQueue *to, PgItemQueue *from)
{
	if (from->head == NULL)
		return;
	*to->tail = from->head;
	to->tail = from->tail;
	pipeline_queue_init(from);
}

void
pipeline_init(PgPipeline *pipeline, const char *name)
{
	memset(pipeline, 0, sizeof(*pipeline));
	pipeline->name = name;
	pipeline_queue_init(&pipeline->open);
	pipeline_queue_init(&pipeline->waiting);
	pipeline_queue_init(&pipeline->sent);
	pipeline_queue_init(&pipeline->done);
	pipeline_queue_init(&pipeline->lost);
}

/* ---- items ---- */

/* Copies the parameters behind the item. Each gets a NUL, which text needs. */
PgItem *
pipeline_item(const PgQuery *query, uint64_t now)
{
	size_t size = sizeof(PgItem) + sizeof(PgParam) * (size_t) query->nparams;
	PgParam *params;
	char *bytes;
	PgItem *item;

	if (query->nparams > PGQUERY_MAX_PARAMS)
		return NULL;
	for (int i = 0; i < query->nparams; i++)
	{
		if (query->params[i].len < 0)
			return NULL;
		size += query->params[i].data != NULL ? (size_t) query->params[i].len + 1 : 0;
	}
	item = malloc(size);
	if (item == NULL)
		return NULL;
	memset(item, 0, sizeof(PgItem));
	item->kind = ITEM_QUERY;
	item->query = *query;
	item->since = now;
	item->deadline = now + query->deadline_ms;
	item->query.params = params = (PgParam *) (item + 1);
	bytes = (char *) (params + query->nparams);
	for (int i = 0; i < query->nparams; i++)
	{
		params[i] = query->params[i];
		if (params[i].data == NULL)
			continue;
		memcpy(bytes, params[i].data, (size_t) params[i].len);
		bytes[params[i].len] = '\0';
		params[i].data = bytes;
		bytes += params[i].len + 1;
	}
	return item;
}

void
pipeline_item_free(PgItem *item)
{
	PQclear(item->result);
	free(item);
}

/* Answers an item and frees it. */
static void
item_finish(PgPipeline *pipeline, PgItem *item, PGresult *result)
{
	if (item->kind == ITEM_QUERY)
	{
		pipeline->pending--;
		if (item->query.fn != NULL)
			item->query.fn(item->query.arg, result);
	}
	pipeline_item_free(item);
}

/* ---- queueing ---- */

/* Returns the statement's index, or -1 if the table is full. */
static int
pipeline_statement(PgPipeline *pipeline, const char *sql)
{
	for (int i = 0; i < pipeline->nstatements; i++)
	{
		if (pipeline->statements[i].sql == sql)
			return i;
	}
	if (pipeline->nstatements == PGPIPELINE_MAX_STATEMENTS)
		return -1;
	pipeline->statements[pipeline->nstatements] = (PgStatement){.sql = sql};
	return pipeline->nstatements++;
}

/* Returns false if there is no memory. */
static bool
pipeline_reserve(PgItem **item)
{
	if (*item == NULL)
		*item = calloc(1, sizeof(PgItem));
	return *item != NULL;
}

static void
pipeline_unreserve(PgItem **item)
{
	free(*item);
	*item = NULL;
}

/* All that sending needs is allocated here: a query for which there is no memory is refused, and the session stays. */
bool
pipeline_add(PgPipeline *pipeline, PgItem *item)
{
	int statement = pipeline_statement(pipeline, item->query.sql);

	if (statement < 0 || !pipeline_reserve(&pipeline->open_sync) ||
		!pipeline_reserve(&pipeline->statements[statement].prepare) ||
		!pipeline_reserve(&pipeline->statements[statement].sync))
		return false;
	item->statement = statement;
	queue_push(&pipeline->open, item);
	pipeline->pending++;
	return true;
}

bool
pipeline_close_group(PgPipeline *pipeline)
{
	if (pipeline->open.head == NULL)
		return false;
	pipeline->open_sync->kind = ITEM_SYNC;
	queue_push(&pipeline->open, pipeline->open_sync);
	pipeline->open_sync = NULL;
	queue_move_all(&pipeline->waiting, &pipeline->open);
	return true;
}

/* ---- sending ---- */

/* Appends to `sent` what libpq was given. If it failed (accepted is not 1), the session is broken. Statements that were
 * added before a Prepare has failed, and are prepared again, need memory here. */
static void
pipeline_push_sent(PgPipeline *pipeline, PgItem **reserved, PgItemKind kind, int statement, int accepted)
{
	if (accepted != 1 || !pipeline_reserve(reserved))
	{
		pipeline->broken = true;
		return;
	}
	(*reserved)->kind = kind;
	(*reserved)->statement = statement;
	queue_push(&pipeline->sent, *reserved);
	*reserved = NULL;
}

static void
pipeline_send_prepare(PgPipeline *pipeline, int number, int nparams)
{
	PgStatement *statement = &pipeline->statements[number];
	char name[16];

	snprintf(name, sizeof(name), "s%d", number);
	statement->prepared = true; /* until its answer says otherwise */
	pipeline_push_sent(pipeline, &statement->prepare, ITEM_PREPARE, number,
					   PQsendPrepare(pipeline->pg, name, statement->sql, nparams, NULL));
	if (!pipeline->broken)
		pipeline_push_sent(pipeline, &statement->sync, ITEM_SYNC, 0, PQpipelineSync(pipeline->pg));
}

static bool
pipeline_send_item(PgPipeline *pipeline, const PgItem *item)
{
	const char *values[PGQUERY_MAX_PARAMS];
	int lengths[PGQUERY_MAX_PARAMS];
	int formats[PGQUERY_MAX_PARAMS];
	char name[16];

	for (int i = 0; i < item->query.nparams; i++)
	{
		values[i] = item->query.params[i].data;
		lengths[i] = item->query.params[i].len;
		formats[i] = item->query.params[i].format;
	}
	snprintf(name, sizeof(name), "s%d", item->statement);
	return PQsendQueryPrepared(pipeline->pg, name, item->query.nparams, values, lengths, formats,
							   item->query.result_format) == 1;
}

/* Sends the first waiting group. After a failure the rest moves to `sent` as well: the server may have got any part. */
static void
pipeline_send_group(PgPipeline *pipeline)
{
	PgItem *item;

	for (item = pipeline->waiting.head; item->kind != ITEM_SYNC && !pipeline->broken; item = item->next)
	{
		if (!pipeline->statements[item->statement].prepared)
			pipeline_send_prepare(pipeline, item->statement, item->query.nparams);
	}
	do
	{
		item = queue_pop(&pipeline->waiting);
		queue_push(&pipeline->sent, item);
		if (!pipeline->broken)
			pipeline->broken =
				!(item->kind == ITEM_SYNC ? PQpipelineSync(pipeline->pg) == 1 : pipeline_send_item(pipeline, item));
	} while (item->kind != ITEM_SYNC);
}

void
pipeline_send(PgPipeline *pipeline, uint64_t now)
{
	if (pipeline->sent.head == NULL && pipeline->done.head == NULL)
		pipeline->progress = now;
	while (!pipeline->broken && pipeline->waiting.head != NULL)
		pipeline_send_group(pipeline);
}

/* ---- receiving ---- */

/* A Prepare was answered. If it failed, the queries that need it fail (26000) and the next one prepares it again. */
static void
pipeline_prepared(PgPipeline *pipeline, PgItem *item)
{
	PgStatement *statement = &pipeline->statements[item->statement];
	bool succeeded = PQresultStatus(item->result) == PGRES_COMMAND_OK;

	if (!succeeded && !statement->refused)
		log_event(LOG_ERROR, "statement not prepared", LOG_STR("connection", pipeline->name),
				  LOG_STR("sql", statement->sql), LOG_STR("reason", PQresultErrorMessage(item->result)));
	statement->prepared = succeeded;
	statement->refused = !succeeded;
}

/* The results of the first item in `sent` are complete. */
static void
pipeline_item_done(PgPipeline *pipeline)
{
	PgItem *item = queue_pop(&pipeline->sent);

	if (item->kind == ITEM_QUERY)
	{
		queue_push(&pipeline->done, item);
		return;
	}
	pipeline_prepared(pipeline, item);
	pipeline_item_free(item);
}

/* Whether a query of the group failed. The others' results then do not count, since nothing of the group is stored. */
static bool
pipeline_group_aborted(const PgPipeline *pipeline)
{
	for (const PgItem *item = pipeline->done.head; item != NULL; item = item->next)
	{
		if (PQresultStatus(item->result) == PGRES_FATAL_ERROR)
			return true;
	}
	return false;
}

/* Answers the queries of a group, which is now committed or has failed. */
static void
pipeline_group_done(PgPipeline *pipeline, PgItem *sync)
{
	PgItem *item;
	bool commit_failed = sync->result != NULL && PQresultStatus(sync->result) == PGRES_FATAL_ERROR;
	bool is_aborted = pipeline_group_aborted(pipeline);
	PGresult *aborted = is_aborted ? PQmakeEmptyPGresult(pipeline->pg, PGRES_PIPELINE_ABORTED) : NULL;

	while ((item = queue_pop(&pipeline->done)) != NULL)
	{
		if (commit_failed)
			item_finish(pipeline, item, sync->result);
		else if (is_aborted && PQresultStatus(item->result) != PGRES_FATAL_ERROR)
			item_finish(pipeline, item, aborted);
		else
			item_finish(pipeline, item, item->result);
	}
	PQclear(aborted);
	pipeline_item_free(sync);
}

/* Whether a result is available without waiting. Single-row mode must be set before libpq parses the first row. */
static bool
pipeline_has_result(PgPipeline *pipeline)
{
	PgItem *item = pipeline->sent.head;

	if (item == NULL)
		return false;
	if (item->query.row_fn != NULL && !item->single_rows)
	{
		item->single_rows = PQsetSingleRowMode(pipeline->pg) == 1;
		if (!item->single_rows)
		{
			pipeline->broken = true; /* cannot happen, and memory would not be bounded */
			return false;
		}
	}
	return !PQisBusy(pipeline->pg);
}

bool
pipeline_take(PgPipeline *pipeline, uint64_t now)
{
	PGresult *result;
	PgItem *item = pipeline->sent.head;

	if (!pipeline_has_result(pipeline))
		return false;
	result = PQgetResult(pipeline->pg);
	pipeline->progress = now;
	if (result == NULL)
	{
		if (item->kind == ITEM_SYNC)
			return item->result != NULL; /* a commit's error precedes its Sync */
		if (item->result == NULL)
			return false;
		pipeline_item_done(pipeline);
	}
	else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
	{
		PQclear(result);
		if (item->kind != ITEM_SYNC)
		{
			pipeline->broken = true; /* answers out of order: cannot happen */
			return false;
		}
		pipeline_group_done(pipeline, queue_pop(&pipeline->sent));
	}
	else if (PQresultStatus(result) == PGRES_SINGLE_TUPLE)
	{
		item->query.row_fn(item->query.arg, result);
		PQclear(result);
	}
	else
	{
		PQclear(item->result);
		item->result = result;
	}
	return true;
}

/* ---- deadlines, and the end of sessions ---- */

bool
pipeline_is_overdue(const PgPipeline *pipeline, uint64_t now)
{
	/* Queries in `done` wait for their commit. */
	const PgItem *item = pipeline->done.head != NULL ? pipeline->done.head : pipeline->sent.head;

	if (item == NULL)
		return false;
	return now - pipeline->progress >= (item->kind == ITEM_QUERY ? item->query.deadline_ms : PIPELINE_OWN_MS);
}

uint64_t
pipeline_age(const PgPipeline *pipeline, uint64_t now)
{
	const PgItem *item = pipeline->done.head != NULL ? pipeline->done.head : pipeline->sent.head;

	while (item != NULL && item->kind != ITEM_QUERY)
		item = item->next;
	return item != NULL ? now - item->since : 0;
}

void
pipeline_lose_session(PgPipeline *pipeline)
{
	pipeline->pg = NULL;
	pipeline->broken = false;
	for (int i = 0; i < pipeline->nstatements; i++)
		pipeline->statements[i].prepared = pipeline->statements[i].refused = false;
	queue_move_all(&pipeline->lost, &pipeline->done);
	queue_move_all(&pipeline->lost, &pipeline->sent);
}

void
pipeline_lose_all(PgPipeline *pipeline)
{
	pipeline_lose_session(pipeline);
	queue_move_all(&pipeline->lost, &pipeline->waiting);
	queue_move_all(&pipeline->lost, &pipeline->open);
	pipeline_unreserve(&pipeline->open_sync);
	for (int i = 0; i < pipeline->nstatements; i++)
	{
		pipeline_unreserve(&pipeline->statements[i].prepare);
		pipeline_unreserve(&pipeline->statements[i].sync);
	}
}

void
pipeline_answer_lost(PgPipeline *pipeline)
{
	PgItem *item;

	while ((item = queue_pop(&pipeline->lost)) != NULL)
		item_finish(pipeline, item, NULL);
}

/* Answers the first waiting group with NULL. */
static void
pipeline_expire_group(PgPipeline *pipeline)
{
	PgItem *item;
	PgItemKind kind;

	do
	{
		item = queue_pop(&pipeline->waiting);
		kind = item->kind;
		item_finish(pipeline, item, NULL);
	} while (kind != ITEM_SYNC);
}

void
pipeline_expire_waiting(PgPipeline *pipeline, uint64_t now)
{
	while (pipeline->waiting.head != NULL && pipeline->waiting.head->deadline <= now)
		pipeline_expire_group(pipeline);
}
