/*
 * pgconn.c - one PostgreSQL connection on the libuv loop: asynchronous, pipelined, reconnecting.
 *
 * Queries collect in an open group; pgconn_sync() closes it. A closed group is sent as a whole: first a Prepare for
 * each statement that this session does not know, with a Sync of their own (so that a failing query of the group cannot
 * take the preparation with it), then the queries and their Sync. What was sent stands in `sent` in the order in which
 * answers come: prepares, queries and syncs.
 *
 * libpq facts that shape the code: PQflush() may read input, so results are looked for after each flush, not only when
 * the socket is readable; in pipeline mode a query's results end with NULL and a sync answers with PGRES_PIPELINE_SYNC
 * without a NULL; PQgetResult() may block unless PQisBusy() says no; the socket changes while connecting to several
 * hosts, so the poll handle is made anew for each.
 */
#include "pgconn.h"

#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PGCONN_RETRY_MIN_MS	  100
#define PGCONN_RETRY_MAX_MS	  2000
#define PGCONN_CONNECT_MS	  5000
#define PGCONN_SLOW_MS		  100
#define PGCONN_TICK_MS		  200 /* how often deadlines are looked at */
#define PGCONN_MAX_STATEMENTS 128

typedef enum ItemKind
{
	ITEM_PREPARE,
	ITEM_QUERY,
	ITEM_SYNC
} ItemKind;

typedef struct Item
{
	struct Item *next;
	ItemKind kind;
	const char *sql;
	int nparams;
	PgParam *params; /* with their bytes in the same allocation */
	int result_format;
	uint64_t since; /* of the loop's clock, ms: when it was queued */
	unsigned deadline_ms;
	uint64_t deadline;
	PgResultFn row_fn; /* NULL: all rows come together */
	bool streaming;	   /* libpq has been told so */
	PgResultFn fn;
	void *arg;
	PGresult *result; /* the last one that came */
	int statement;	  /* index of the prepared statement */
} Item;

typedef struct ItemQueue
{
	Item *head;
	Item **tail;
} ItemQueue;

typedef enum PgState
{
	PG_IDLE, /* waiting for the retry timer */
	PG_CONNECTING,
	PG_UP,
	PG_CLOSED
} PgState;

typedef struct Statement
{
	const char *sql;
	bool prepared;
} Statement;

struct PgConn
{
	uv_loop_t *loop;
	char *conninfo;
	char *name;
	PgStateFn state_fn;
	void *state_arg;
	PgState state;
	PGconn *pg;
	uv_poll_t *poll;
	int poll_fd;
	int poll_events;
	uv_timer_t retry;
	uv_timer_t tick;
	uint64_t connect_deadline;
	unsigned retry_ms;
	ItemQueue open;	   /* the group that is not closed yet */
	ItemQueue waiting; /* closed groups, not sent */
	ItemQueue sent;
	ItemQueue done; /* answered, but their group's Sync is not: not committed yet */
	int pending;
	bool reading; /* in the result loop: callbacks may send */
	bool paused;  /* nothing is read */
	bool broken;  /* give the session up at the next safe point */
	int handles;  /* to close before freeing */
	Statement statements[PGCONN_MAX_STATEMENTS];
	int nstatements;
};

static void pgconn_connect(PgConn *conn);
static void pgconn_drop(PgConn *conn, const char *reason);
static void pgconn_pump(PgConn *conn);

/* ---- queues ---- */

static void
queue_init(ItemQueue *queue)
{
	queue->head = NULL;
	queue->tail = &queue->head;
}

static void
queue_push(ItemQueue *queue, Item *item)
{
	item->next = NULL;
	*queue->tail = item;
	queue->tail = &item->next;
}

static Item *
queue_pop(ItemQueue *queue)
{
	Item *item = queue->head;

	if (item != NULL)
	{
		queue->head = item->next;
		if (queue->head == NULL)
			queue->tail = &queue->head;
	}
	return item;
}

static void
queue_move_all(ItemQueue *to, ItemQueue *from)
{
	if (from->head == NULL)
		return;
	*to->tail = from->head;
	to->tail = from->tail;
	queue_init(from);
}

/* Answers an item and frees it. */
static void
item_finish(PgConn *conn, Item *item, PGresult *result)
{
	if (item->kind == ITEM_QUERY)
	{
		conn->pending--;
		if (item->fn != NULL)
			item->fn(item->arg, result);
	}
	PQclear(item->result);
	free(item);
}

/* ---- parameters ---- */

PgParam
pgparam_text(const char *text)
{
	return (PgParam){text, text != NULL ? (int) strlen(text) : 0, 0};
}

PgParam
pgparam_bytes(const void *data, int len)
{
	return (PgParam){data, len, 1};
}

PgParam
pgparam_int64(char buffer[24], long long value)
{
	snprintf(buffer, 24, "%lld", value);
	return pgparam_text(buffer);
}

PgParam
pgparam_null(void)
{
	return (PgParam){NULL, 0, 0};
}

const char *
pgresult_sqlstate(const PGresult *res)
{
	const char *state = res != NULL ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;

	return state != NULL ? state : "";
}

/* An item with its own copy of the parameters; text ones get a NUL. */
static Item *
item_create(const char *sql, int nparams, const PgParam *params)
{
	size_t size = sizeof(Item) + sizeof(PgParam) * (size_t) nparams;
	char *bytes;
	Item *item;

	for (int i = 0; i < nparams; i++)
		size += params[i].data != NULL ? (size_t) params[i].len + 1 : 0;
	item = malloc(size);
	if (item == NULL)
		return NULL;
	memset(item, 0, sizeof(Item));
	item->sql = sql;
	item->nparams = nparams;
	item->params = (PgParam *) (item + 1);
	bytes = (char *) (item->params + nparams);
	for (int i = 0; i < nparams; i++)
	{
		item->params[i] = params[i];
		if (params[i].data == NULL)
			continue;
		memcpy(bytes, params[i].data, (size_t) params[i].len);
		bytes[params[i].len] = '\0';
		item->params[i].data = bytes;
		bytes += params[i].len + 1;
	}
	return item;
}

/* ---- handles ---- */

static void
pgconn_handle_closed(uv_handle_t *handle)
{
	PgConn *conn = handle->data;

	if (handle->type == UV_POLL)
		free(handle);
	if (--conn->handles > 0 || conn->state != PG_CLOSED)
		return;
	free(conn->conninfo);
	free(conn->name);
	free(conn);
}

static void
pgconn_unwatch(PgConn *conn)
{
	if (conn->poll == NULL)
		return;
	uv_poll_stop(conn->poll);
	uv_close((uv_handle_t *) conn->poll, pgconn_handle_closed);
	conn->poll = NULL;
	conn->poll_events = 0;
}

static void pgconn_on_socket(uv_poll_t *handle, int status, int events);

static void
pgconn_watch(PgConn *conn, int events)
{
	int fd = PQsocket(conn->pg);

	if (fd < 0)
		return;
	if (conn->poll != NULL && conn->poll_fd != fd)
		pgconn_unwatch(conn);
	if (conn->poll == NULL)
	{
		conn->poll = calloc(1, sizeof(uv_poll_t));
		if (conn->poll == NULL || uv_poll_init(conn->loop, conn->poll, fd) != 0)
		{
			free(conn->poll);
			conn->poll = NULL;
			conn->broken = true;
			return;
		}
		conn->poll->data = conn;
		conn->poll_fd = fd;
		conn->handles++;
	}
	if (conn->poll_events != events)
	{
		uv_poll_start(conn->poll, events, pgconn_on_socket);
		conn->poll_events = events;
	}
}

/* ---- connecting ---- */

static void
pgconn_on_retry(uv_timer_t *timer)
{
	pgconn_connect(timer->data);
}

static void
pgconn_ignore_notice(void *arg, const PGresult *res)
{
	PgConn *conn = arg;

	log_event(LOG_DEBUG, "database notice", LOG_STR("connection", conn->name),
			  LOG_STR("text", PQresultErrorMessage(res)));
}

static void
pgconn_connect(PgConn *conn)
{
	const char *keywords[] = {"dbname", "fallback_application_name", "connect_timeout", NULL};
	const char *values[] = {conn->conninfo, conn->name, "5", NULL};

	conn->state = PG_CONNECTING;
	conn->broken = conn->paused = false;
	conn->connect_deadline = uv_now(conn->loop) + PGCONN_CONNECT_MS;
	conn->pg = PQconnectStartParams(keywords, values, 1);
	if (conn->pg == NULL || PQstatus(conn->pg) == CONNECTION_BAD)
	{
		pgconn_drop(conn, conn->pg != NULL ? PQerrorMessage(conn->pg) : "out of memory");
		return;
	}
	PQsetNoticeReceiver(conn->pg, pgconn_ignore_notice, conn);
	pgconn_watch(conn, UV_WRITABLE);
}

static void
pgconn_connect_step(PgConn *conn)
{
	switch (PQconnectPoll(conn->pg))
	{
		case PGRES_POLLING_READING:
			pgconn_watch(conn, UV_READABLE);
			return;
		case PGRES_POLLING_WRITING:
			pgconn_watch(conn, UV_WRITABLE);
			return;
		case PGRES_POLLING_OK:
			break;
		default:
			pgconn_drop(conn, PQerrorMessage(conn->pg));
			return;
	}
	if (PQsetnonblocking(conn->pg, 1) != 0 || PQenterPipelineMode(conn->pg) != 1)
	{
		pgconn_drop(conn, PQerrorMessage(conn->pg));
		return;
	}
	conn->state = PG_UP;
	conn->retry_ms = PGCONN_RETRY_MIN_MS;
	log_event(LOG_INFO, "database connected", LOG_STR("connection", conn->name),
			  LOG_INT("server_pid", PQbackendPID(conn->pg)));
	if (conn->state_fn != NULL)
		conn->state_fn(conn->state_arg, true);
	pgconn_pump(conn);
}

/* Everything that was sent is answered with NULL; what was not sent waits for the next session. */
static void
pgconn_drop(PgConn *conn, const char *reason)
{
	ItemQueue lost = {NULL, &lost.head};
	bool was_up = conn->state == PG_UP;
	char text[256];
	Item *item;

	snprintf(text, sizeof(text), "%.*s", (int) strcspn(reason, "\n"), reason);
	log_event(LOG_WARN, was_up ? "database connection lost" : "database not reachable",
			  LOG_STR("connection", conn->name), LOG_STR("reason", text));
	conn->state = PG_IDLE;
	pgconn_unwatch(conn);
	PQfinish(conn->pg);
	conn->pg = NULL;
	conn->broken = false;
	for (int i = 0; i < conn->nstatements; i++)
		conn->statements[i].prepared = false;
	queue_move_all(&lost, &conn->done);
	queue_move_all(&lost, &conn->sent);
	uv_timer_start(&conn->retry, pgconn_on_retry, conn->retry_ms, 0);
	conn->retry_ms = conn->retry_ms * 2 > PGCONN_RETRY_MAX_MS ? PGCONN_RETRY_MAX_MS : conn->retry_ms * 2;
	if (was_up && conn->state_fn != NULL)
		conn->state_fn(conn->state_arg, false);
	while ((item = queue_pop(&lost)) != NULL)
		item_finish(conn, item, NULL);
}

/* ---- sending ---- */

/* The statement's number; -1 when the table is full. */
static int
pgconn_statement(PgConn *conn, const char *sql)
{
	for (int i = 0; i < conn->nstatements; i++)
	{
		if (conn->statements[i].sql == sql)
			return i;
	}
	if (conn->nstatements == PGCONN_MAX_STATEMENTS)
		return -1;
	conn->statements[conn->nstatements] = (Statement){sql, false};
	return conn->nstatements++;
}

static bool
pgconn_send_sync(PgConn *conn)
{
	Item *item = calloc(1, sizeof(Item));

	if (item == NULL || PQpipelineSync(conn->pg) != 1)
	{
		free(item);
		return false;
	}
	item->kind = ITEM_SYNC;
	queue_push(&conn->sent, item);
	return true;
}

static bool
pgconn_send_prepare(PgConn *conn, int statement, int nparams)
{
	Item *item = calloc(1, sizeof(Item));
	char name[16];

	snprintf(name, sizeof(name), "s%d", statement);
	if (item == NULL || PQsendPrepare(conn->pg, name, conn->statements[statement].sql, nparams, NULL) != 1)
	{
		free(item);
		return false;
	}
	item->kind = ITEM_PREPARE;
	item->statement = statement;
	conn->statements[statement].prepared = true; /* the answer may say otherwise */
	queue_push(&conn->sent, item);
	return pgconn_send_sync(conn);
}

static bool
pgconn_send_item(PgConn *conn, const Item *item)
{
	const char *values[32];
	int lengths[32];
	int formats[32];
	char name[16];

	for (int i = 0; i < item->nparams; i++)
	{
		values[i] = item->params[i].data;
		lengths[i] = item->params[i].len;
		formats[i] = item->params[i].format;
	}
	snprintf(name, sizeof(name), "s%d", item->statement);
	return PQsendQueryPrepared(conn->pg, name, item->nparams, values, lengths, formats, item->result_format) == 1;
}

/* Prepares what the first waiting group needs. */
static bool
pgconn_prepare_group(PgConn *conn)
{
	for (Item *item = conn->waiting.head; item != NULL && item->kind != ITEM_SYNC; item = item->next)
	{
		if (!conn->statements[item->statement].prepared && !pgconn_send_prepare(conn, item->statement, item->nparams))
			return false;
	}
	return true;
}

/* Writes what libpq has buffered; true when the socket is full. */
static bool
pgconn_flush(PgConn *conn)
{
	int flushed = conn->state == PG_UP && !conn->broken ? PQflush(conn->pg) : 0;

	if (flushed < 0)
		conn->broken = true;
	/* libpq may have closed its socket: the next one that is opened has its number, and is not to be taken for it. */
	if (conn->broken && PQsocket(conn->pg) < 0)
		pgconn_unwatch(conn);
	return flushed == 1;
}

/* Sends the waiting groups, then what libpq has buffered. */
static void
pgconn_pump(PgConn *conn)
{
	bool full;

	while (conn->state == PG_UP && !conn->broken && conn->waiting.head != NULL)
	{
		Item *item;
		ItemKind kind;

		if (!pgconn_prepare_group(conn))
			conn->broken = true;
		do
		{
			item = queue_pop(&conn->waiting);
			kind = item->kind;
			queue_push(&conn->sent, item);
			if (!conn->broken && !(kind == ITEM_SYNC ? PQpipelineSync(conn->pg) == 1 : pgconn_send_item(conn, item)))
				conn->broken = true;
		} while (kind != ITEM_SYNC);
	}
	full = pgconn_flush(conn);
	if (conn->state == PG_UP && !conn->broken)
		pgconn_watch(conn, (conn->paused ? 0 : UV_READABLE) | (full ? UV_WRITABLE : 0));
}

/* POLLOUT stays asked for: libpq may have read results, and they are looked at then. */
bool
pgconn_push(PgConn *conn)
{
	return (conn->poll_events & UV_WRITABLE) != 0 && pgconn_flush(conn);
}

static bool
pgconn_queue(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			 PgResultFn row_fn, PgResultFn fn, void *arg)
{
	int statement = pgconn_statement(conn, sql);
	Item *item;

	if (conn->pending >= PGCONN_MAX_PENDING || statement < 0 || nparams > 32)
		return false;
	item = item_create(sql, nparams, params);
	if (item == NULL)
		return false;
	item->kind = ITEM_QUERY;
	item->statement = statement;
	item->result_format = result_format;
	item->since = uv_now(conn->loop);
	item->deadline_ms = deadline_ms;
	item->deadline = item->since + deadline_ms;
	item->row_fn = row_fn;
	item->fn = fn;
	item->arg = arg;
	queue_push(&conn->open, item);
	conn->pending++;
	return true;
}

bool
pgconn_send(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			PgResultFn fn, void *arg)
{
	return pgconn_queue(conn, sql, nparams, params, result_format, deadline_ms, NULL, fn, arg);
}

static void pgconn_work(PgConn *conn);

void
pgconn_sync(PgConn *conn)
{
	Item *item;

	if (conn->open.head == NULL)
		return;
	item = calloc(1, sizeof(Item));
	if (item == NULL)
		abort(); /* 100 bytes: nothing sensible is left to do */
	item->kind = ITEM_SYNC;
	queue_push(&conn->open, item);
	queue_move_all(&conn->waiting, &conn->open);
	if (!conn->reading)
		pgconn_pump(conn);
	/* A failure is dealt with by the next tick: callers do not expect answers from inside a send. */
}

bool
pgconn_query(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			 PgResultFn fn, void *arg)
{
	if (!pgconn_send(conn, sql, nparams, params, result_format, deadline_ms, fn, arg))
		return false;
	pgconn_sync(conn);
	return true;
}

bool
pgconn_stream(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
			  unsigned deadline_ms, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	if (!pgconn_queue(conn, sql, nparams, params, result_format, deadline_ms, row_fn, fn, arg))
		return false;
	pgconn_sync(conn);
	return true;
}

/* ---- receiving ---- */

/* A prepare was answered. When it failed, the queries that need it fail by themselves (26000), and the next one tries
 * again. */
static void
pgconn_prepared(PgConn *conn, Item *item)
{
	Statement *statement = &conn->statements[item->statement];

	if (item->result != NULL && PQresultStatus(item->result) == PGRES_COMMAND_OK)
		return;
	statement->prepared = false;
	log_event(LOG_ERROR, "statement not prepared", LOG_STR("connection", conn->name), LOG_STR("sql", statement->sql),
			  LOG_STR("reason", PQresultErrorMessage(item->result)));
}

/* The results of the first item sent are complete. */
static void
pgconn_item_done(PgConn *conn)
{
	Item *item = queue_pop(&conn->sent);

	if (item->kind == ITEM_PREPARE)
		pgconn_prepared(conn, item);
	if (item->kind == ITEM_QUERY)
		queue_push(&conn->done, item);
	else
		item_finish(conn, item, item->result);
}

/* A query of the group failed: what the others say is not true, since nothing of the group is stored. */
static PGresult *
pgconn_group_aborted(PgConn *conn)
{
	for (const Item *item = conn->done.head; item != NULL; item = item->next)
	{
		if (item->result == NULL || PQresultStatus(item->result) == PGRES_FATAL_ERROR)
			return PQmakeEmptyPGresult(conn->pg, PGRES_PIPELINE_ABORTED);
	}
	return NULL;
}

/* The group is committed, or it failed: only now its queries are answered. */
static void
pgconn_group_done(PgConn *conn, Item *sync)
{
	Item *item;
	bool failed = sync->result != NULL && PQresultStatus(sync->result) == PGRES_FATAL_ERROR;
	PGresult *aborted = pgconn_group_aborted(conn);

	while ((item = queue_pop(&conn->done)) != NULL)
	{
		if (failed)
			item_finish(conn, item, sync->result);
		else if (aborted != NULL && item->result != NULL && PQresultStatus(item->result) != PGRES_FATAL_ERROR)
			item_finish(conn, item, aborted);
		else
			item_finish(conn, item, item->result);
	}
	PQclear(aborted);
	item_finish(conn, sync, NULL);
}

/* Is there a result to take without waiting? What libpq does with rows has to be said before it looks at the first. */
static bool
pgconn_has_result(PgConn *conn)
{
	Item *item = conn->sent.head;

	if (item == NULL || conn->paused)
		return false;
	if (item->row_fn != NULL && !item->streaming)
	{
		item->streaming = PQsetSingleRowMode(conn->pg) == 1;
		if (!item->streaming)
		{
			conn->broken = true; /* something of it has been read: cannot happen, and memory would not be bounded */
			return false;
		}
	}
	return !PQisBusy(conn->pg);
}

static void
pgconn_give_row(PgConn *conn, Item *item, PGresult *row)
{
	item->deadline = uv_now(conn->loop) + item->deadline_ms;
	item->row_fn(item->arg, row);
	PQclear(row);
}

/* Takes one result; false when there is none without waiting. */
static bool
pgconn_take_result(PgConn *conn)
{
	PGresult *result;
	Item *item = conn->sent.head;

	if (!pgconn_has_result(conn))
		return false;
	result = PQgetResult(conn->pg);
	if (result == NULL)
	{
		if (item->kind == ITEM_SYNC)
			return item->result != NULL; /* the error of a commit, before its Sync */
		if (item->result == NULL)
			return false;
		pgconn_item_done(conn);
	}
	else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
	{
		PQclear(result);
		if (item->kind != ITEM_SYNC)
		{
			conn->broken = true; /* answers out of step: cannot happen, and must not go on */
			return false;
		}
		pgconn_group_done(conn, queue_pop(&conn->sent));
	}
	else if (PQresultStatus(result) == PGRES_SINGLE_TUPLE)
		pgconn_give_row(conn, item, result);
	else
	{
		PQclear(item->result);
		item->result = result;
	}
	return true;
}

/* Reads what is there, answers, sends what the answers brought about. */
static void
pgconn_work(PgConn *conn)
{
	if (conn->reading || conn->state != PG_UP)
		return;
	conn->reading = true;
	if (!conn->paused && PQconsumeInput(conn->pg) != 1)
		conn->broken = true;
	while (conn->state == PG_UP && !conn->broken && pgconn_take_result(conn))
		;
	conn->reading = false;
	if (conn->state == PG_UP && !conn->broken)
		pgconn_pump(conn);
	/* PQflush may have read: results that are complete already would wait for the next byte otherwise. */
	while (conn->state == PG_UP && !conn->broken && pgconn_has_result(conn))
	{
		conn->reading = true;
		if (!pgconn_take_result(conn))
		{
			conn->reading = false;
			break;
		}
		conn->reading = false;
		pgconn_pump(conn);
	}
	if (conn->state == PG_UP && conn->broken)
		pgconn_drop(conn, PQerrorMessage(conn->pg));
}

void
pgconn_pause(PgConn *conn)
{
	conn->paused = true;
}

void
pgconn_resume(PgConn *conn)
{
	Item *item = conn->sent.head;

	if (!conn->paused)
		return;
	conn->paused = false;
	if (item != NULL)
		item->deadline = uv_now(conn->loop) + item->deadline_ms;
	pgconn_work(conn);
}

static void
pgconn_on_socket(uv_poll_t *handle, int status, int events)
{
	PgConn *conn = handle->data;

	if (status < 0)
		pgconn_drop(conn, uv_strerror(status));
	else if (conn->state == PG_CONNECTING)
		pgconn_connect_step(conn);
	else
		pgconn_work(conn);
}

/* Queries that have waited too long without a session are answered with NULL. */
static void
pgconn_expire_waiting(PgConn *conn, uint64_t now)
{
	while (conn->waiting.head != NULL && conn->waiting.head->deadline <= now)
	{
		Item *item;
		ItemKind kind;

		do
		{
			item = queue_pop(&conn->waiting);
			kind = item->kind;
			item_finish(conn, item, NULL);
		} while (kind != ITEM_SYNC);
	}
}

static void
pgconn_on_tick(uv_timer_t *timer)
{
	PgConn *conn = timer->data;
	uint64_t now = uv_now(conn->loop);

	if (conn->state == PG_CONNECTING && now >= conn->connect_deadline)
		pgconn_drop(conn, "no answer to the connection attempt");
	else if (conn->state == PG_UP && conn->broken)
		pgconn_drop(conn, PQerrorMessage(conn->pg));
	for (Item *item = conn->sent.head; item != NULL && conn->state == PG_UP; item = item->next)
	{
		if (item->kind != ITEM_QUERY)
			continue;
		if (item->deadline <= now && !conn->paused)
			pgconn_drop(conn, "no answer within the deadline");
		break;
	}
	if (conn->state != PG_UP)
		pgconn_expire_waiting(conn, now);
}

/* ---- life ---- */

PgConn *
pgconn_open(uv_loop_t *loop, const char *conninfo, const char *name, PgStateFn state_fn, void *state_arg)
{
	PgConn *conn = calloc(1, sizeof(PgConn));

	if (conn == NULL)
		return NULL;
	conn->loop = loop;
	conn->conninfo = strdup(conninfo);
	conn->name = strdup(name);
	conn->state_fn = state_fn;
	conn->state_arg = state_arg;
	conn->retry_ms = PGCONN_RETRY_MIN_MS;
	queue_init(&conn->open);
	queue_init(&conn->waiting);
	queue_init(&conn->sent);
	queue_init(&conn->done);
	uv_timer_init(loop, &conn->retry);
	uv_timer_init(loop, &conn->tick);
	conn->retry.data = conn->tick.data = conn;
	conn->handles = 2;
	uv_timer_start(&conn->retry, pgconn_on_retry, 0, 0);
	uv_timer_start(&conn->tick, pgconn_on_tick, PGCONN_TICK_MS, PGCONN_TICK_MS);
	return conn;
}

void
pgconn_close(PgConn *conn)
{
	ItemQueue lost = {NULL, &lost.head};
	Item *item;

	conn->state = PG_CLOSED;
	pgconn_unwatch(conn);
	PQfinish(conn->pg);
	conn->pg = NULL;
	queue_move_all(&lost, &conn->done);
	queue_move_all(&lost, &conn->sent);
	queue_move_all(&lost, &conn->waiting);
	queue_move_all(&lost, &conn->open);
	while ((item = queue_pop(&lost)) != NULL)
		item_finish(conn, item, NULL);
	uv_close((uv_handle_t *) &conn->retry, pgconn_handle_closed);
	uv_close((uv_handle_t *) &conn->tick, pgconn_handle_closed);
}

bool
pgconn_is_up(const PgConn *conn)
{
	return conn->state == PG_UP;
}

int
pgconn_pending(const PgConn *conn)
{
	return conn->pending;
}

/* The oldest query under way takes long: what is sent now would wait behind it. */
static bool
pgconn_is_slow(const PgConn *conn)
{
	const Item *item = conn->done.head != NULL ? conn->done.head : conn->sent.head;

	while (item != NULL && item->kind != ITEM_QUERY)
		item = item->next;
	return item != NULL && uv_now(conn->loop) - item->since > PGCONN_SLOW_MS;
}

static bool
pgconn_is_better(const PgConn *conn, const PgConn *than)
{
	if (pgconn_is_up(conn) != pgconn_is_up(than))
		return pgconn_is_up(conn);
	if (pgconn_is_slow(conn) != pgconn_is_slow(than))
		return !pgconn_is_slow(conn);
	return conn->pending < than->pending;
}

PgConn *
pgconn_choose(PgConn *const *conns, int count)
{
	PgConn *best = conns[0];

	for (int i = 1; i < count; i++)
	{
		if (pgconn_is_better(conns[i], best))
			best = conns[i];
	}
	return best;
}
