/*
 * pgpipeline.c - queries in groups: queued, prepared, sent, answered when their group is committed.
 *
 * Queries collect in an open group, which is closed and then sent as a whole: first a Prepare for each statement that
 * this session does not know, with a Sync of their own (so that a failing query of the group cannot take the
 * preparation with it), then the queries and their Sync. What was sent stands in `sent` in the order in which answers
 * come: prepares, queries and syncs.
 *
 * libpq facts that shape the code: in pipeline mode a query's results end with NULL and a sync answers with
 * PGRES_PIPELINE_SYNC without a NULL; PQgetResult() may block unless PQisBusy() says no.
 */
#include "db/pgpipeline.h"

#include "support/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINE_OWN_MS 5000 /* what the pipeline itself asks is answered within this time */

typedef enum ItemKind
{
	ITEM_SETUP,
	ITEM_PREPARE,
	ITEM_QUERY,
	ITEM_SYNC
} ItemKind;

struct PgItem
{
	PgItem *next;
	ItemKind kind;
	PgQuery query; /* its parameters are in the same allocation */
	int statement; /* index of the prepared statement */
	uint64_t since;
	uint64_t deadline;
	bool streaming;	  /* libpq has been told to give the rows one by one */
	PGresult *result; /* the last one that came */
};

/* ---- queues ---- */

void
pipeline_queue_init(PgItemQueue *queue)
{
	queue->head = NULL;
	queue->tail = &queue->head;
}

void
pipeline_queue_push(PgItemQueue *queue, PgItem *item)
{
	item->next = NULL;
	*queue->tail = item;
	queue->tail = &item->next;
}

static PgItem *
queue_pop(PgItemQueue *queue)
{
	PgItem *item = queue->head;

	if (item != NULL)
	{
		queue->head = item->next;
		if (queue->head == NULL)
			queue->tail = &queue->head;
	}
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

/* A query with its own copy of the parameters; text ones get a NUL. */
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

const PgQuery *
pipeline_item_query(const PgItem *item)
{
	return &item->query;
}

void
pipeline_item_redirect(PgItem *item, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	item->query.row_fn = row_fn;
	item->query.fn = fn;
	item->query.arg = arg;
}

const PgItem *
pipeline_item_next(const PgItem *item)
{
	return item->next;
}

bool
pipeline_item_is_overdue(const PgItem *item, uint64_t now)
{
	return item->deadline <= now;
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

/* ---- asking ---- */

/* The statement's number; -1 when the table is full. */
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
	pipeline->statements[pipeline->nstatements] = (PgStatement){sql, false};
	return pipeline->nstatements++;
}

bool
pipeline_add(PgPipeline *pipeline, PgItem *item)
{
	int statement = pipeline_statement(pipeline, item->query.sql);

	if (pipeline->open_sync == NULL)
		pipeline->open_sync = calloc(1, sizeof(PgItem));
	if (statement < 0 || pipeline->open_sync == NULL)
		return false;
	item->statement = statement;
	pipeline_queue_push(&pipeline->open, item);
	pipeline->pending++;
	return true;
}

bool
pipeline_close_group(PgPipeline *pipeline)
{
	if (pipeline->open.head == NULL)
		return false;
	pipeline->open_sync->kind = ITEM_SYNC;
	pipeline_queue_push(&pipeline->open, pipeline->open_sync);
	pipeline->open_sync = NULL;
	queue_move_all(&pipeline->waiting, &pipeline->open);
	return true;
}

/* ---- sending ---- */

static bool
pipeline_send_sync(PgPipeline *pipeline)
{
	PgItem *item = calloc(1, sizeof(PgItem));

	if (item == NULL || PQpipelineSync(pipeline->pg) != 1)
	{
		free(item);
		return false;
	}
	item->kind = ITEM_SYNC;
	pipeline_queue_push(&pipeline->sent, item);
	return true;
}

void
pipeline_send_setup(PgPipeline *pipeline, const char *sql, uint64_t now)
{
	PgItem *item = calloc(1, sizeof(PgItem));

	pipeline->progress = now;
	if (item == NULL || PQsendQueryParams(pipeline->pg, sql, 0, NULL, NULL, NULL, NULL, 0) != 1)
	{
		free(item);
		pipeline->broken = true;
		return;
	}
	item->kind = ITEM_SETUP;
	pipeline_queue_push(&pipeline->sent, item);
	pipeline->broken = !pipeline_send_sync(pipeline);
}

static bool
pipeline_send_prepare(PgPipeline *pipeline, int statement, int nparams)
{
	PgItem *item = calloc(1, sizeof(PgItem));
	char name[16];

	snprintf(name, sizeof(name), "s%d", statement);
	if (item == NULL || PQsendPrepare(pipeline->pg, name, pipeline->statements[statement].sql, nparams, NULL) != 1)
	{
		free(item);
		return false;
	}
	item->kind = ITEM_PREPARE;
	item->statement = statement;
	pipeline->statements[statement].prepared = true; /* the answer may say otherwise */
	pipeline_queue_push(&pipeline->sent, item);
	return pipeline_send_sync(pipeline);
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

/* Prepares what the first waiting group needs. */
static bool
pipeline_prepare_group(PgPipeline *pipeline)
{
	for (PgItem *item = pipeline->waiting.head; item != NULL && item->kind != ITEM_SYNC; item = item->next)
	{
		if (!pipeline->statements[item->statement].prepared &&
			!pipeline_send_prepare(pipeline, item->statement, item->query.nparams))
			return false;
	}
	return true;
}

/* All of a group, also when it fails: the server may have got any part of it. */
static void
pipeline_send_group(PgPipeline *pipeline)
{
	PgItem *item;

	if (!pipeline_prepare_group(pipeline))
		pipeline->broken = true;
	do
	{
		item = queue_pop(&pipeline->waiting);
		pipeline_queue_push(&pipeline->sent, item);
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

/* A prepare was answered. When it failed, the queries that need it fail by themselves (26000), and the next one tries
 * again. */
static void
pipeline_prepared(PgPipeline *pipeline, PgItem *item)
{
	PgStatement *statement = &pipeline->statements[item->statement];

	if (item->result != NULL && PQresultStatus(item->result) == PGRES_COMMAND_OK)
		return;
	statement->prepared = false;
	log_event(LOG_ERROR, "statement not prepared", LOG_STR("connection", pipeline->name),
			  LOG_STR("sql", statement->sql), LOG_STR("reason", PQresultErrorMessage(item->result)));
}

/* Without what it sets a session must not be used: a statement might wait for ever. */
static void
pipeline_set_up(PgPipeline *pipeline, const PgItem *item)
{
	if (item->result != NULL && PQresultStatus(item->result) == PGRES_TUPLES_OK)
		return;
	log_event(LOG_ERROR, "session not set up", LOG_STR("connection", pipeline->name),
			  LOG_STR("reason", PQresultErrorMessage(item->result)));
	pipeline->broken = true;
}

/* The results of the first item sent are complete. */
static void
pipeline_item_done(PgPipeline *pipeline)
{
	PgItem *item = queue_pop(&pipeline->sent);

	if (item->kind == ITEM_PREPARE)
		pipeline_prepared(pipeline, item);
	if (item->kind == ITEM_SETUP)
		pipeline_set_up(pipeline, item);
	if (item->kind == ITEM_QUERY)
		pipeline_queue_push(&pipeline->done, item);
	else
		item_finish(pipeline, item, item->result);
}

/* A query of the group failed: what the others say is not true, since nothing of the group is stored. */
static bool
pipeline_group_aborted(const PgPipeline *pipeline)
{
	for (const PgItem *item = pipeline->done.head; item != NULL; item = item->next)
	{
		if (item->result == NULL || PQresultStatus(item->result) == PGRES_FATAL_ERROR)
			return true;
	}
	return false;
}

/* The group is committed, or it failed: only now its queries are answered. */
static void
pipeline_group_done(PgPipeline *pipeline, PgItem *sync)
{
	PgItem *item;
	bool failed = sync->result != NULL && PQresultStatus(sync->result) == PGRES_FATAL_ERROR;
	bool is_aborted = pipeline_group_aborted(pipeline);
	PGresult *aborted = is_aborted ? PQmakeEmptyPGresult(pipeline->pg, PGRES_PIPELINE_ABORTED) : NULL;

	while ((item = queue_pop(&pipeline->done)) != NULL)
	{
		if (failed)
			item_finish(pipeline, item, sync->result);
		else if (is_aborted && item->result != NULL && PQresultStatus(item->result) != PGRES_FATAL_ERROR)
			item_finish(pipeline, item, aborted);
		else
			item_finish(pipeline, item, item->result);
	}
	PQclear(aborted);
	item_finish(pipeline, sync, NULL);
}

/* Is there a result to take without waiting? What libpq does with rows has to be said before it looks at the first. */
static bool
pipeline_has_result(PgPipeline *pipeline)
{
	PgItem *item = pipeline->sent.head;

	if (item == NULL)
		return false;
	if (item->query.row_fn != NULL && !item->streaming)
	{
		item->streaming = PQsetSingleRowMode(pipeline->pg) == 1;
		if (!item->streaming)
		{
			pipeline->broken = true; /* something of it has been read: cannot happen, and memory would not be bounded */
			return false;
		}
	}
	return !PQisBusy(pipeline->pg);
}

static void
item_give_row(PgItem *item, PGresult *row)
{
	item->query.row_fn(item->query.arg, row);
	PQclear(row);
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
			return item->result != NULL; /* the error of a commit, before its Sync */
		if (item->result == NULL)
			return false;
		pipeline_item_done(pipeline);
	}
	else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
	{
		PQclear(result);
		if (item->kind != ITEM_SYNC)
		{
			pipeline->broken = true; /* answers out of step: cannot happen, and must not go on */
			return false;
		}
		pipeline_group_done(pipeline, queue_pop(&pipeline->sent));
	}
	else if (PQresultStatus(result) == PGRES_SINGLE_TUPLE)
		item_give_row(item, result);
	else
	{
		PQclear(item->result);
		item->result = result;
	}
	return true;
}

/* ---- time, and the end of sessions ---- */

bool
pipeline_is_overdue(const PgPipeline *pipeline, uint64_t now)
{
	/* What is done waits for its commit. */
	const PgItem *item = pipeline->done.head != NULL ? pipeline->done.head : pipeline->sent.head;

	if (item == NULL)
		return false;
	return now - pipeline->progress >= (item->kind == ITEM_QUERY ? item->query.deadline_ms : PIPELINE_OWN_MS);
}

void
pipeline_prolong(PgPipeline *pipeline, uint64_t now)
{
	pipeline->progress = now;
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
		pipeline->statements[i].prepared = false;
	queue_move_all(&pipeline->lost, &pipeline->done);
	queue_move_all(&pipeline->lost, &pipeline->sent);
}

void
pipeline_lose_all(PgPipeline *pipeline)
{
	pipeline_lose_session(pipeline);
	queue_move_all(&pipeline->lost, &pipeline->waiting);
	queue_move_all(&pipeline->lost, &pipeline->open);
	free(pipeline->open_sync);
	pipeline->open_sync = NULL;
}

void
pipeline_answer_lost(PgPipeline *pipeline)
{
	PgItem *item;

	while ((item = queue_pop(&pipeline->lost)) != NULL)
		item_finish(pipeline, item, NULL);
}

/* Answers the first group that waits with NULL. */
static void
pipeline_give_up_group(PgPipeline *pipeline)
{
	PgItem *item;
	ItemKind kind;

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
		pipeline_give_up_group(pipeline);
}
