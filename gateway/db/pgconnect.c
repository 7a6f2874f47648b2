/*
 * pgconnect.c - opens a session; see pgconnect.h.
 *
 * libpq facts that shape the code: PQconnectPoll() may close its socket and open another one, which may get the same
 * number, for example to try without encryption. The poll handle must not outlive the socket, so each step has its
 * own. A connection that is established is set up with simple queries, before it enters pipeline mode.
 */
#include "db/pgconnect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum ConnectStep
{
	CONNECT_RESOLVING,
	CONNECT_POLLING, /* PQconnectPoll() */
	CONNECT_SETUP,	 /* the answer to the setup is awaited */
	CONNECT_CHECK	 /* that to the check */
} ConnectStep;

struct PgConnect
{
	uv_loop_t *loop;
	PgConnectOptions options;
	ConnectStep step;
	PgResolve resolve;
	PgAddresses *addresses;
	int first;	/* index of the first address */
	int tried;	/* addresses */
	PGconn *pg; /* of the attempt; NULL: there is none */
	uv_poll_t *poll;
	uv_timer_t timer; /* time limit of the attempt; frees the PgConnect when it is closed */
	PGresult *result; /* of the check */
	char problem[512];
	const char *hint;
	char refusal[1024]; /* the last one; "": none */
};

static void connect_next(PgConnect *connect);
static void connect_on_socket(uv_poll_t *poll, int status, int events);

/* ---- handles ---- */

static void
connect_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void
connect_unwatch(PgConnect *connect)
{
	if (connect->poll == NULL)
		return;
	uv_poll_stop(connect->poll);
	uv_close((uv_handle_t *) connect->poll, connect_poll_closed);
	connect->poll = NULL;
}

/* Returns false if there is no memory. */
static bool
connect_watch(PgConnect *connect, int events)
{
	uv_poll_t *poll = calloc(1, sizeof(uv_poll_t));

	connect_unwatch(connect);
	if (poll == NULL || uv_poll_init(connect->loop, poll, PQsocket(connect->pg)) != 0)
	{
		free(poll);
		return false;
	}
	poll->data = connect;
	connect->poll = poll;
	return uv_poll_start(poll, events, connect_on_socket) == 0;
}

static void
connect_freed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Ends the attempt. */
static void
connect_drop(PgConnect *connect)
{
	connect_unwatch(connect);
	PQclear(connect->result);
	PQfinish(connect->pg);
	connect->result = NULL;
	connect->pg = NULL;
}

void
pgconnect_stop(PgConnect *connect)
{
	if (connect == NULL)
		return;
	pgresolve_forget(&connect->resolve);
	pgresolve_unref(connect->addresses);
	connect_drop(connect);
	uv_close((uv_handle_t *) &connect->timer, connect_freed);
}

/* Ends with what was achieved. */
static void
connect_finish(PgConnect *connect)
{
	PGconn *pg = connect->pg;

	connect_unwatch(connect);
	connect->pg = NULL;
	pgconnect_stop(connect);
	connect->options.fn(connect->options.arg, pg, connect->refusal[0] != '\0' ? connect->refusal : NULL);
}

/* ---- attempts ---- */

static const PgAddress *
connect_address(const PgConnect *connect)
{
	return &connect->addresses->list[(connect->first + connect->tried - 1) % connect->addresses->count];
}

/* The SQLSTATE in a message of a connection that is verbose: "FATAL:  28P01: ...". */
static const char *
message_sqlstate(const char *message)
{
	for (const char *at = message; (at = strstr(at, ":  ")) != NULL; at++)
	{
		const char *state = at + 3;
		int len = 0;

		while (isdigit((unsigned char) state[len]) || isupper((unsigned char) state[len]))
			len++;
		if (len == 5 && state[5] == ':')
			return state;
	}
	return "";
}

/* What to do about a failed connection; "" if libpq's message says it. */
static const char *
connect_hint(const char *message)
{
	static const struct
	{
		const char *sqlstate, *hint;
	} hints[] = {
		{"28P01", "correct the user or its password (in the password file, ~/.pgpass)"},
		{"28000", "correct the user in the setting database, its rights (LOGIN) or pg_hba.conf"},
		{"3D000", "create the database, or correct dbname in the setting database"},
		{"42501", "GRANT CONNECT ON DATABASE to this user"},
		{"53300", "raise max_connections, or the CONNECTION LIMIT of the role or database: a gateway needs 15 "
				  "connections and long-connections more"},
		{"08P01", "correct the settings of the pooler between the gateway and PostgreSQL"},
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
	{
		if (strncmp(message_sqlstate(message), hints[i].sqlstate, 5) == 0)
			return hints[i].hint;
	}
	return "";
}

/* Writes "HOST (ADDRESS), port PORT", or "socket PATH". */
static void
connect_name_server(const PgConnect *connect, char *to, size_t size)
{
	const PgAddress *address = connect_address(connect);
	const char *host = address->host->host, *port = address->host->port;

	if (host[0] == '\0' && address->address[0] == '\0')
		snprintf(to, size, "the default socket, port %s", port);
	else if (address->address[0] == '\0' || strcmp(address->address, host) == 0)
		snprintf(to, size, "\"%s\", port %s", host, port);
	else if (host[0] == '\0')
		snprintf(to, size, "\"%s\", port %s", address->address, port);
	else
		snprintf(to, size, "\"%s\" (%s), port %s", host, address->address, port);
}

/*
 * The attempt has failed. message: libpq's, which does not name the host of an address; NULL: that is
 * connect->problem.
 */
static void
connect_fail(PgConnect *connect, const char *message)
{
	char server[400], text[1024];
	bool named = message != NULL && strncmp(message, "connection to server", 20) == 0;
	const char *cause = named ? strstr(message, " failed: ") : NULL;

	connect_name_server(connect, server, sizeof(server));
	if (named && (cause == NULL || connect_address(connect)->address[0] == '\0'))
		snprintf(text, sizeof(text), "%s", message);
	else
		snprintf(text, sizeof(text), "connection to server at %s failed: %s", server,
				 cause != NULL	   ? cause + 9
				 : message != NULL ? message
								   : connect->problem);
	pgcause_report(connect->options.sufferer, uv_now(connect->loop), "database not reachable", connect->options.name,
				   text, message != NULL ? connect_hint(message) : connect->hint);
	connect_drop(connect);
	pgresolve_set_fails(connect_address(connect));
	connect_next(connect);
}

static void
connect_fail_memory(PgConnect *connect)
{
	connect_fail(connect, "out of memory");
}

/* Tries the next address. Ends if all were tried. */
static void
connect_next(PgConnect *connect)
{
	const PgConninfo *info = pgconninfo_get(connect->options.conninfo);
	const PgAddress *address;

	uv_timer_stop(&connect->timer);
	if (connect->tried == connect->addresses->count)
	{
		connect_finish(connect);
		return;
	}
	connect->tried++;
	address = connect_address(connect);
	connect->step = CONNECT_POLLING;
	connect->pg = pgconninfo_start(info, address->host, address->address, connect->options.name);
	if (connect->pg == NULL)
		connect_fail_memory(connect);
	else if (PQstatus(connect->pg) == CONNECTION_BAD)
		connect_fail(connect, PQerrorMessage(connect->pg));
	else
	{
		/* with the SQLSTATE */
		(void) PQsetErrorVerbosity(connect->pg, PQERRORS_VERBOSE);
		uv_timer_start(&connect->timer, connect->timer.timer_cb, info->attempt_ms, 0);
		if (!connect_watch(connect, UV_WRITABLE))
			connect_fail_memory(connect);
	}
}

/* ---- an established connection ---- */

/* Sends a statement whose answer is awaited next. */
static void
connect_ask(PgConnect *connect, ConnectStep step, Buf *sql)
{
	int flushed;

	buf_put(sql, "", 1); /* its end */
	connect->step = step;
	if (buf_failed(sql))
		connect_fail_memory(connect);
	else if (PQsendQuery(connect->pg, sql->data) != 1 || (flushed = PQflush(connect->pg)) < 0)
		connect_fail(connect, PQerrorMessage(connect->pg));
	else if (!connect_watch(connect, UV_READABLE | (flushed == 1 ? UV_WRITABLE : 0)))
		connect_fail_memory(connect);
}

static void
connect_on_notice(void *arg, const PGresult *res)
{
}

static void
connect_set_up(PgConnect *connect)
{
	Buf sql = {0};

	(void) PQsetErrorVerbosity(connect->pg, PQERRORS_DEFAULT);
	PQsetNoticeReceiver(connect->pg, connect_on_notice, NULL);
	pgsession_setup_sql(&sql, connect->pg, connect->options.durable, connect->options.settings_sql);
	connect_ask(connect, CONNECT_SETUP, &sql);
	buf_free(&sql);
}

static void
connect_check(PgConnect *connect)
{
	Buf sql = {0};

	pgsession_check_sql(&sql, connect->pg);
	connect_ask(connect, CONNECT_CHECK, &sql);
	buf_free(&sql);
}

/* The check is answered. */
static void
connect_judge(PgConnect *connect)
{
	PgVerdict verdict =
		pgsession_check(connect->options.session, connect->pg, connect->result, connect->options.durable,
						connect->problem, sizeof(connect->problem), &connect->hint);

	if (verdict == SESSION_REFUSED)
		snprintf(connect->refusal, sizeof(connect->refusal), "%s; %s", connect->problem, connect->hint);
	if (verdict != SESSION_GOOD)
		connect_fail(connect, NULL);
	else if (PQenterPipelineMode(connect->pg) != 1)
		connect_fail(connect, PQerrorMessage(connect->pg));
	else
	{
		*connect->options.address = *connect_address(connect);
		pgresolve_set_answers(connect->options.address);
		pgcause_end(connect->options.sufferer, uv_now(connect->loop));
		connect_finish(connect);
	}
}

/* Takes the results of a statement. */
static void
connect_take(PgConnect *connect)
{
	PGresult *result;

	if (PQflush(connect->pg) < 0 || PQconsumeInput(connect->pg) != 1)
	{
		connect_fail(connect, PQerrorMessage(connect->pg));
		return;
	}
	while (!PQisBusy(connect->pg))
	{
		result = PQgetResult(connect->pg);
		if (result == NULL && connect->step == CONNECT_SETUP)
			connect_check(connect);
		else if (result == NULL)
			connect_judge(connect);
		else if (PQresultStatus(result) == PGRES_TUPLES_OK)
		{
			PQclear(connect->result);
			connect->result = result;
			continue;
		}
		else
		{
			snprintf(connect->problem, sizeof(connect->problem), "the session cannot be set up: %s",
					 PQresultErrorMessage(result));
			connect->hint = "";
			PQclear(result);
			connect_fail(connect, NULL);
		}
		return;
	}
}

static void
connect_poll(PgConnect *connect)
{
	PostgresPollingStatusType status;

	/* libpq may close the socket and open another one. */
	connect_unwatch(connect);
	status = PQconnectPoll(connect->pg);
	if (status == PGRES_POLLING_OK && PQsetnonblocking(connect->pg, 1) == 0)
		connect_set_up(connect);
	else if (status != PGRES_POLLING_READING && status != PGRES_POLLING_WRITING)
		connect_fail(connect, PQerrorMessage(connect->pg));
	else if (!connect_watch(connect, status == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE))
		connect_fail_memory(connect);
}

/* An error of the socket is libpq's to report. */
static void
connect_on_socket(uv_poll_t *poll, int status, int events)
{
	PgConnect *connect = poll->data;

	if (connect->step == CONNECT_POLLING)
		connect_poll(connect);
	else
		connect_take(connect);
}

/* ---- start ---- */

static void
connect_on_resolved(void *arg, PgAddresses *addresses, const char *problem)
{
	PgConnect *connect = arg;

	if (problem[0] != '\0')
		pgcause_report(connect->options.sufferer, uv_now(connect->loop), "database not reachable",
					   connect->options.name, problem, "correct the hosts in the setting database, or the name server");
	connect->addresses = addresses;
	connect->first = pgresolve_first(addresses);
	connect_next(connect);
}

/* The start, or the end of a time limit. */
static void
connect_on_timer(uv_timer_t *timer)
{
	PgConnect *connect = timer->data;
	unsigned limit = pgconninfo_get(connect->options.conninfo)->attempt_ms;

	if (connect->step != CONNECT_RESOLVING)
	{
		snprintf(connect->problem, sizeof(connect->problem), "no answer within %u ms", limit);
		connect->hint = "";
		connect_fail(connect, NULL);
	}
	else if (connect->resolve.fn == NULL)
	{
		connect->resolve = (PgResolve){.fn = connect_on_resolved, .arg = connect};
		uv_timer_start(timer, connect_on_timer, limit, 0);
		pgresolve(connect->loop, connect->options.conninfo, &connect->resolve);
	}
	else if (!pgresolve_hurry(&connect->resolve))
		uv_timer_start(timer, connect_on_timer, limit, 0);
}

PgConnect *
pgconnect_start(uv_loop_t *loop, const PgConnectOptions *options)
{
	PgConnect *connect = calloc(1, sizeof(PgConnect));

	if (connect == NULL)
		return NULL;
	connect->loop = loop;
	connect->options = *options;
	uv_timer_init(loop, &connect->timer);
	connect->timer.data = connect;
	uv_timer_start(&connect->timer, connect_on_timer, 0, 0);
	return connect;
}
