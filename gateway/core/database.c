/*
 * database.c - the gateway's connections to PostgreSQL; see database.h.
 *
 * The server cancels a statement after three quarters of database-deadline-ms, and a wait for a lock earlier. If a
 * connection is silent for the whole deadline, either its commit waits, for example for a synchronous standby, or the
 * server does not work. A query on the connection for accounts tells which. In the first case the connection stays,
 * since a new one would leave a waiting server process behind.
 */
#include "core/database.h"

#include "core/gateway.h"
#include "db/pgresult.h"
#include "support/log.h"

#include <stdio.h>

#define DATABASE_NAME_PREFIX "pg_sheet "

typedef struct DatabaseKind
{
	const char *name; /* application_name of its connections */
	int connections;  /* 0: long-connections */
	bool serial;
	bool edits; /* its statements commit edits */
	unsigned lock_ms;
	int account_running, account_waiting, waiting;
} DatabaseKind;

static const DatabaseKind kinds[DATABASE_CLASSES] = {
	[DATABASE_ACCOUNTS] = {DATABASE_NAME_PREFIX "accounts", 1, false, false, 250, 0, 0, 0},
	[DATABASE_READS] = {DATABASE_NAME_PREFIX "reads", 3, false, false, 250, 0, 0, 0},
	[DATABASE_EDITS] = {DATABASE_NAME_PREFIX "edits", 2, false, true, 50, 0, 0, 0},
	[DATABASE_HELD] = {DATABASE_NAME_PREFIX "held", 2, true, true, 200, 0, 0, 1000000},
	[DATABASE_WRITES] = {DATABASE_NAME_PREFIX "writes", 2, true, false, 500, 1, 256, 4096},
	[DATABASE_LONG] = {DATABASE_NAME_PREFIX "long", 0, true, false, 500, 1, 4, 64},
};

static PgPool *pools[DATABASE_CLASSES];

/* The settings of each class's sessions. */
static char settings_sql[DATABASE_CLASSES + 2][512];
#define SETTINGS_GROUP DATABASE_CLASSES
#define SETTINGS_MORE  (DATABASE_CLASSES + 1)

/*
 * The server ends the session 25 s after the gateway has vanished with its machine or network, by default two hours:
 * the session may keep a sheet locked. Connections that wait for slow clients lock nothing, and have no such limit.
 */
static const char settings_format_sql[] =
	"set_config('lock_timeout', '%u', false), set_config('statement_timeout', '%u', false), "
	"set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), "
	"set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '25000', false)%s%s";

static const char *
database_settings_sql(int index, unsigned lock_ms, unsigned statement_ms, bool edits)
{
	char *to = settings_sql[index];

	snprintf(to, sizeof(settings_sql[index]), settings_format_sql, lock_ms, statement_ms,
			 edits ? ", set_config('pg_sheet.time_slice', '0.1ms', false)" : "",
			 edits && !gateway.config.durable ? ", set_config('synchronous_commit', 'off', false)" : "");
	return to;
}

unsigned
database_deadline(void)
{
	return (unsigned) gateway.config.database_deadline_ms;
}

/* ---- is the server working? ---- */

static const char database_works_sql[] =
	"SELECT FROM pg_catalog.pg_stat_get_activity($1::integer) WHERE application_name = $2";

static void
database_works(void *arg, PGresult *res)
{
	PgConn *conn = arg;

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) == 0)
		return; /* the connection is dropped */
	log_event(LOG_WARN, "a statement takes long, and the server still executes it",
			  LOG_STR("connection", pgconn_application(conn)), LOG_INT("server_pid", pgconn_server_pid(conn)));
	pgconn_prolong(conn);
}

static void
database_overdue(PgConn *conn)
{
	char pid[24];
	PgParam params[] = {pgparam_int64(pid, pgconn_server_pid(conn)), pgparam_text(pgconn_application(conn))};

	(void) database_query(DATABASE_ACCOUNTS, 0, database_works_sql, 2, params, 0, database_works, conn);
}

/* ---- cancelling ---- */

static const char database_cancel_sql[] =
	"SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_get_activity($1::integer) "
	"WHERE application_name = $2";

/* With the answer the signal has been sent: it cancels nothing in a process that is idle, and so not the next
 * statement. If the answer is lost, the signal may come later, so the next statement gets another process. */
static void
database_cancelled(void *arg, PGresult *res)
{
	pgconn_release(arg, !pgresult_succeeded(res));
}

void
database_cancel(PgConn *conn)
{
	char pid[24];

	if (pgconn_is_held(conn) || !pgconn_is_up(conn))
		return;
	if (database_query(DATABASE_ACCOUNTS, 0, database_cancel_sql, 2,
					   (PgParam[]){pgparam_int64(pid, pgconn_server_pid(conn)), pgparam_text(pgconn_application(conn))},
					   0, database_cancelled, conn))
		pgconn_hold(conn);
}

/* ---- opening and closing ---- */

static bool
database_open_pool(DatabaseClass class)
{
	const DatabaseKind *kind = &kinds[class];
	unsigned deadline =
		class == DATABASE_LONG ? (unsigned) gateway.config.long_statement_seconds * 1000 : database_deadline();
	PgPoolOptions options = {
		.conn = {.name = kind->name,
				 .settings_sql = database_settings_sql(class, kind->lock_ms, deadline / 4 * 3, kind->edits),
				 .relaxed = !gateway.config.durable,
				 .overdue_fn = class == DATABASE_ACCOUNTS ? NULL : database_overdue},
		.connections = kind->connections > 0 ? kind->connections : gateway.config.long_connections,
		.serial = kind->serial,
		.account_running = kind->account_running,
		.account_waiting = kind->account_waiting,
		.waiting = kind->waiting,
		.deadline_ms = deadline};

	pools[class] = pgpool_open(&gateway.loop, gateway.config.database, &options);
	return pools[class] != NULL;
}

static PgConn *
database_open_one(const char *name, const char *settings, PgOverdueFn overdue_fn)
{
	PgConnOptions options = {
		.name = name, .settings_sql = settings, .relaxed = !gateway.config.durable, .overdue_fn = overdue_fn};

	return pgconn_open(&gateway.loop, gateway.config.database, &options);
}

bool
database_open(void)
{
	bool opened = true;

	for (int i = 0; i < DATABASE_CLASSES; i++)
		opened = database_open_pool(i) && opened;
	gateway.group = database_open_one(
		DATABASE_NAME_PREFIX "group",
		database_settings_sql(SETTINGS_GROUP, kinds[DATABASE_EDITS].lock_ms, database_deadline() / 4 * 3, true),
		database_overdue);
	for (int i = 0; i < BLOCK_CONNECTIONS; i++)
	{
		gateway.blocks[i] = database_open_one(DATABASE_NAME_PREFIX "blocks", NULL, database_overdue);
		opened = opened && gateway.blocks[i] != NULL;
	}
	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
	{
		gateway.exports[i] = database_open_one(DATABASE_NAME_PREFIX "downloads", NULL, database_overdue);
		opened = opened && gateway.exports[i] != NULL;
	}
	gateway.follow = database_open_one(DATABASE_NAME_PREFIX "follow", NULL, NULL);
	return opened && gateway.group != NULL && gateway.follow != NULL;
}

PgConn *
database_open_more(const char *name)
{
	return database_open_one(
		name, database_settings_sql(SETTINGS_MORE, kinds[DATABASE_WRITES].lock_ms, database_deadline() / 4 * 3, false),
		database_overdue);
}

void
database_close(void)
{
	pgconn_close(gateway.group);
	for (int i = 0; i < BLOCK_CONNECTIONS; i++)
		pgconn_close(gateway.blocks[i]);
	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
		pgconn_close(gateway.exports[i]);
	pgconn_close(gateway.follow);
	for (int i = 0; i < DATABASE_CLASSES; i++)
		pgpool_close(pools[i]);
}

/* ---- queries ---- */

bool
database_query(DatabaseClass class, int64_t account, const char *sql, int nparams, const PgParam *params,
			   int result_format, PgResultFn fn, void *arg)
{
	return pgpool_query(pools[class], account, false, sql, nparams, params, result_format, NULL, fn, arg);
}

bool
database_stream(DatabaseClass class, int64_t account, bool goes_on, const char *sql, int nparams, const PgParam *params,
				int result_format, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	return pgpool_query(pools[class], account, goes_on, sql, nparams, params, result_format, row_fn, fn, arg);
}

PgConn *
database_choose(DatabaseClass class)
{
	return pgpool_choose(pools[class]);
}

const PgPool *
database_pool(DatabaseClass class)
{
	return pools[class];
}

const char *
database_class_name(DatabaseClass class)
{
	return kinds[class].name + sizeof(DATABASE_NAME_PREFIX) - 1;
}
