/*
 * pgconn.c - one PostgreSQL connection on the libuv loop.
 *
 * pgpipeline.c has the queries, pgconnect.c opens the session. This file has its life: when it is opened and dropped,
 * and when its socket is read and written.
 *
 * libpq facts that shape the code: PQflush() may read input, so results are taken after each flush and not only when
 * the socket is readable.
 */
#include "db/pgconn.h"

#include "support/log.h"
#include "db/pgconnect.h"
#include "db/pgpipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PGCONN_RETRY_MIN_MS 100
#define PGCONN_RETRY_MAX_MS 2000
#define PGCONN_SLOW_MS		100
#define PGCONN_TICK_MS		200 /* between checks of the deadlines */

typedef enum PgState
{
	PG_IDLE, /* until the retry timer fires */
	PG_CONNECTING,
	PG_UP,
	PG_CLOSED
} PgState;

struct PgConn
{
	uv_loop_t *loop;
	char *conninfo;
	char *name;
	PgConnOptions options;
	PgState state;
	PgPipeline pipeline;
	PgConnect *connect; /* while it is connecting */
	PgSession session;
	PgAddress address; /* of the session */
	PgSufferer sufferer;
	uv_poll_t *poll;
	int poll_fd;
	int poll_events;
	uv_timer_t retry;
	uv_timer_t tick;
	unsigned retry_ms;
	bool reading;	/* results are being taken: callbacks may queue queries */
	bool paused;	/* nothing is read */
	bool held;		/* no query is sent */
	uint64_t asked; /* ms: when overdue_fn was called; 0: no query is overdue */
	int handles;	/* to close before conn is freed */
};

static void pgconn_on_socket(uv_poll_t *handle, int status, int events);
static void pgconn_drop(PgConn *conn, const char *reason);
static void pgconn_on_retry(uv_timer_t *timer);
static void pgconn_pump(PgConn *conn);

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

static void
pgconn_watch(PgConn *conn, int events)
{
	int fd = PQsocket(conn->pipeline.pg);

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
			conn->pipeline.broken = true;
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
pgconn_on_notice(void *arg, const PGresult *res)
{
	PgConn *conn = arg;

	log_event(LOG_DEBUG, "database notice", LOG_STR("connection", conn->name),
			  LOG_STR("text", PQresultErrorMessage(res)));
}

static void
pgconn_retry(PgConn *conn)
{
	conn->state = PG_IDLE;
	uv_timer_start(&conn->retry, pgconn_on_retry, conn->retry_ms, 0);
	conn->retry_ms = conn->retry_ms * 2 > PGCONN_RETRY_MAX_MS ? PGCONN_RETRY_MAX_MS : conn->retry_ms * 2;
}

static void
pgconn_on_connected(void *arg, PGconn *pg, const char *refusal)
{
	PgConn *conn = arg;

	conn->connect = NULL;
	if (pg == NULL)
	{
		pgconn_retry(conn);
		if (refusal != NULL && conn->options.refused_fn != NULL)
			conn->options.refused_fn(conn->options.state_arg, refusal);
		return;
	}
	conn->pipeline.pg = pg;
	conn->state = PG_UP;
	conn->retry_ms = PGCONN_RETRY_MIN_MS;
	pgsession_begin(&conn->session);
	PQsetNoticeReceiver(pg, pgconn_on_notice, conn);
	log_event(LOG_INFO, "database connected", LOG_STR("connection", conn->name), LOG_STR("host", PQhost(pg)),
			  LOG_STR("port", PQport(pg)), LOG_INT("server_pid", conn->session.pid));
	if (conn->options.state_fn != NULL)
		conn->options.state_fn(conn->options.state_arg, true);
	pgconn_pump(conn);
}

static void
pgconn_on_retry(uv_timer_t *timer)
{
	PgConn *conn = timer->data;
	PgConnectOptions options = {.conninfo = conn->conninfo,
								.name = conn->name,
								.settings_sql = conn->options.settings_sql,
								.durable = !conn->options.relaxed,
								.sufferer = &conn->sufferer,
								.session = &conn->session,
								.address = &conn->address,
								.fn = pgconn_on_connected,
								.arg = conn};

	conn->pipeline.broken = conn->paused = false;
	conn->asked = 0;
	conn->state = PG_CONNECTING;
	conn->connect = pgconnect_start(conn->loop, &options);
	if (conn->connect == NULL)
		pgconn_retry(conn);
}

/* Ends the session. Queries that were sent are answered with NULL; the others wait for the next session. */
static void
pgconn_drop(PgConn *conn, const char *reason)
{
	pgcause_report(&conn->sufferer, uv_now(conn->loop), "database connection lost", conn->name, reason, "");
	pgsession_end(&conn->session);
	pgconn_unwatch(conn);
	PQfinish(conn->pipeline.pg);
	pipeline_lose_session(&conn->pipeline);
	pgconn_retry(conn);
	if (conn->options.state_fn != NULL)
		conn->options.state_fn(conn->options.state_arg, false);
	pipeline_answer_lost(&conn->pipeline);
}

/* ---- sending ---- */

/* Whether the session is usable. */
static bool
pgconn_serves(const PgConn *conn)
{
	return conn->state == PG_UP && !conn->pipeline.broken;
}

/* Writes what libpq has buffered. Returns true if the socket is full. */
static bool
pgconn_flush(PgConn *conn)
{
	int flushed = pgconn_serves(conn) ? PQflush(conn->pipeline.pg) : 0;

	if (flushed < 0)
		conn->pipeline.broken = true;
	/* libpq may have closed its socket. The next socket of the process gets its number and must not be polled here. */
	if (conn->pipeline.broken && PQsocket(conn->pipeline.pg) < 0)
		pgconn_unwatch(conn);
	return flushed == 1;
}

/* Sends the waiting groups, then what libpq has buffered. */
static void
pgconn_pump(PgConn *conn)
{
	bool full;

	if (pgconn_serves(conn) && !conn->held)
		pipeline_send(&conn->pipeline, uv_now(conn->loop));
	full = pgconn_flush(conn);
	if (pgconn_serves(conn))
		pgconn_watch(conn, (conn->paused ? 0 : UV_READABLE) | (full ? UV_WRITABLE : 0));
}

/* The poll for UV_WRITABLE remains: libpq may have read results here, which are taken when it fires. */
bool
pgconn_push(PgConn *conn)
{
	return (conn->poll_events & UV_WRITABLE) != 0 && pgconn_flush(conn);
}

static bool
pgconn_add(PgConn *conn, PgItem *item)
{
	return conn->pipeline.pending < PGCONN_MAX_PENDING && pipeline_add(&conn->pipeline, item);
}

static bool
pgconn_queue(PgConn *conn, const PgQuery *query)
{
	PgItem *item = pipeline_item(query, uv_now(conn->loop));

	if (item == NULL || pgconn_add(conn, item))
		return item != NULL;
	pipeline_item_free(item);
	return false;
}

/* A failure is handled by the next tick: callers do not expect answers from within. */
void
pgconn_sync(PgConn *conn)
{
	if (pipeline_close_group(&conn->pipeline) && !conn->reading)
		pgconn_pump(conn);
}

bool
pgconn_submit(PgConn *conn, PgItem *item)
{
	if (!pgconn_add(conn, item))
		return false;
	pgconn_sync(conn);
	return true;
}

bool
pgconn_send(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			PgResultFn fn, void *arg)
{
	PgQuery query = {sql, nparams, params, result_format, deadline_ms, NULL, fn, arg, 0, false};

	return pgconn_queue(conn, &query);
}

bool
pgconn_stream(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
			  unsigned deadline_ms, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	PgQuery query = {sql, nparams, params, result_format, deadline_ms, row_fn, fn, arg, 0, false};

	if (!pgconn_queue(conn, &query))
		return false;
	pgconn_sync(conn);
	return true;
}

bool
pgconn_query(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			 PgResultFn fn, void *arg)
{
	return pgconn_stream(conn, sql, nparams, params, result_format, deadline_ms, NULL, fn, arg);
}

/* ---- receiving ---- */

/* Takes all available results. Returns false if there were none. */
static bool
pgconn_take(PgConn *conn)
{
	bool taken = false;

	conn->reading = true;
	while (pgconn_serves(conn) && !conn->paused && pipeline_take(&conn->pipeline, uv_now(conn->loop)))
		taken = true;
	conn->reading = false;
	return taken;
}

/* Reads input, answers queries, and sends what their callbacks have queued. */
static void
pgconn_work(PgConn *conn)
{
	if (conn->reading || conn->state != PG_UP)
		return;
	if (!conn->paused && PQconsumeInput(conn->pipeline.pg) != 1)
		conn->pipeline.broken = true;
	(void) pgconn_take(conn);
	/* PQflush() may have read complete results, which would otherwise wait for the next byte. */
	do
		pgconn_pump(conn);
	while (pgconn_take(conn));
	if (conn->state == PG_UP && conn->pipeline.broken)
		pgconn_drop(conn, PQerrorMessage(conn->pipeline.pg));
}

void
pgconn_pause(PgConn *conn)
{
	conn->paused = true;
}

void
pgconn_resume(PgConn *conn)
{
	if (!conn->paused)
		return;
	conn->paused = false;
	conn->pipeline.progress = uv_now(conn->loop);
	pgconn_work(conn);
}

void
pgconn_hold(PgConn *conn)
{
	conn->held = true;
}

bool
pgconn_is_held(const PgConn *conn)
{
	return conn->held;
}

void
pgconn_release(PgConn *conn, bool anew)
{
	conn->held = false;
	if (conn->state == PG_UP && anew)
		pgconn_drop(conn, "it is not known whether a statement will be cancelled");
	else
		pgconn_pump(conn);
}

static void
pgconn_on_socket(uv_poll_t *handle, int status, int events)
{
	PgConn *conn = handle->data;

	if (status < 0)
		pgconn_drop(conn, uv_strerror(status));
	else
		pgconn_work(conn);
}

/* Whether the connection must be dropped because the server is silent. */
static bool
pgconn_is_silent(PgConn *conn, uint64_t now)
{
	if (conn->paused || !pipeline_is_overdue(&conn->pipeline, now))
		conn->asked = 0;
	else if (conn->options.overdue_fn == NULL)
		return true;
	else if (conn->asked != 0)
		return now - conn->asked >= PGCONN_ASK_MS;
	else
	{
		conn->asked = now;
		conn->options.overdue_fn(conn);
	}
	return false;
}

void
pgconn_prolong(PgConn *conn)
{
	conn->asked = 0;
	conn->pipeline.progress = uv_now(conn->loop);
}

static void
pgconn_on_tick(uv_timer_t *timer)
{
	PgConn *conn = timer->data;
	uint64_t now = uv_now(conn->loop);
	const char *reason;

	if (conn->state == PG_UP && conn->pipeline.broken)
		pgconn_drop(conn, PQerrorMessage(conn->pipeline.pg));
	else if (conn->state == PG_UP && (reason = pgsession_must_end(&conn->session)) != NULL)
		pgconn_drop(conn, reason);
	else if (conn->state == PG_UP && pgconn_is_silent(conn, now))
	{
		pgresolve_set_fails(&conn->address);
		pgconn_drop(conn, "no answer within the deadline");
	}
	if (conn->state != PG_UP)
		pipeline_expire_waiting(&conn->pipeline, now);
}

/* ---- opening and closing ---- */

PgConn *
pgconn_open(uv_loop_t *loop, const char *conninfo, const PgConnOptions *options)
{
	PgConn *conn = calloc(1, sizeof(PgConn));

	if (conn == NULL)
		return NULL;
	conn->loop = loop;
	conn->conninfo = strdup(conninfo);
	conn->name = strdup(options->name);
	if (conn->conninfo == NULL || conn->name == NULL)
	{
		free(conn->conninfo);
		free(conn->name);
		free(conn);
		return NULL;
	}
	conn->options = *options;
	pgcause_add(&conn->sufferer);
	conn->retry_ms = PGCONN_RETRY_MIN_MS;
	pipeline_init(&conn->pipeline, conn->name);
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
	conn->state = PG_CLOSED;
	pgconnect_stop(conn->connect);
	pgcause_remove(&conn->sufferer);
	pgsession_end(&conn->session);
	pgconn_unwatch(conn);
	PQfinish(conn->pipeline.pg);
	pipeline_lose_all(&conn->pipeline);
	pipeline_answer_lost(&conn->pipeline);
	uv_close((uv_handle_t *) &conn->retry, pgconn_handle_closed);
	uv_close((uv_handle_t *) &conn->tick, pgconn_handle_closed);
}

bool
pgconn_is_up(const PgConn *conn)
{
	return conn->state == PG_UP;
}

int
pgconn_server_pid(const PgConn *conn)
{
	return conn->session.pid;
}

const char *
pgconn_application(const PgConn *conn)
{
	const char *name = PQparameterStatus(conn->pipeline.pg, "application_name");

	return name != NULL ? name : "";
}

int
pgconn_pending(const PgConn *conn)
{
	return conn->pipeline.pending;
}

/* The oldest query in progress takes long, and a query sent now would wait behind it. */
static bool
pgconn_is_slow(const PgConn *conn)
{
	return pipeline_age(&conn->pipeline, uv_now(conn->loop)) > PGCONN_SLOW_MS;
}

bool
pgconn_is_better(const PgConn *conn, const PgConn *than)
{
	if (pgconn_is_up(conn) != pgconn_is_up(than))
		return pgconn_is_up(conn);
	if (pgconn_is_slow(conn) != pgconn_is_slow(than))
		return !pgconn_is_slow(conn);
	return conn->pipeline.pending < than->pipeline.pending;
}
