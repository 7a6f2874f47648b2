/*
 * pgsession.c - what a session of a gateway must be like; see pgsession.h.
 *
 * A pooler in transaction mode gives the server process to another connection after each transaction, so that settings,
 * prepared statements and locks of the session are lost. It is noticed by two sessions with the same server process.
 * While it is, no session behind a pooler can be used (SHARED_S): one that is not shared now will be.
 *
 * All sessions are at one server. When one finds another server as the primary, the others leave the former one, which
 * may be paused, or a primary still that has been replaced: what it commits would be lost. A promotion begins a higher
 * timeline, and pg_upgrade timeline 1 of a newer PostgreSQL. So a server with a lower version or timeline than one that
 * this process has used is a former primary, and is not used, even if no other server can be reached.
 */
#include "db/pgsession.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHARED_S 60

typedef struct SessionSetting
{
	const char *name;
	const char *value;
	int since; /* version of PostgreSQL */
} SessionSetting;

/*
 * Times and numbers come as text, names as UTF-8; statements wait as long as the gateway's classes say; group commits
 * are at read committed.
 */
static const SessionSetting settings[] = {
	{"client_encoding", "UTF8", 0},
	{"DateStyle", "ISO, MDY", 0},
	{"IntervalStyle", "postgres", 0},
	{"TimeZone", "UTC", 0},
	{"bytea_output", "hex", 0},
	{"extra_float_digits", "1", 0},
	{"standard_conforming_strings", "on", 0},
	{"array_nulls", "on", 0},
	{"transform_null_equals", "off", 0},
	{"search_path", "pg_catalog", 0},
	{"row_security", "on", 0},
	{"default_transaction_isolation", "read committed", 0},
	{"default_transaction_deferrable", "off", 0},
	{"statement_timeout", "0", 0},
	{"lock_timeout", "0", 0},
	{"idle_in_transaction_session_timeout", "0", 0},
	{"idle_session_timeout", "0", 0},
	{"transaction_timeout", "0", 170000},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* The check compares these as well, unless the class of the connection sets them. */
static const char *const set_by_class[] = {"statement_timeout", "lock_timeout"};

static PgSession *sessions;
static time_t shared_at; /* when two sessions had the same server process; 0: never */

/* The server of the newest session. No session before it has had a higher version or timeline. */
static struct
{
	char start[64]; /* when it was started, which tells servers apart; "": there was no session yet */
	char name[PGSESSION_SERVER];
	int version; /* of PostgreSQL: the major one */
	unsigned long timeline;
} server;

static time_t
session_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static bool
setting_exists(const SessionSetting *setting, PGconn *pg)
{
	return PQserverVersion(pg) >= setting->since;
}

/* ---- the setup ---- */

/*
 * The role is that which has logged in, if it may use the sheets: ALTER ROLE ... SET role may name another one. A
 * commit is acknowledged when it is on disk; local, remote_write and remote_apply are that, too, and are the operator's
 * choice of what a synchronous standby must have done. Each value is set, so that the session does not follow
 * postgresql.conf when it is reloaded.
 */
static const char setup_more_sql[] =
	", pg_catalog.set_config('role', 'none', false) FROM pg_catalog.pg_roles r "
	"WHERE r.rolname OPERATOR(pg_catalog.=) 'sheet_gateway' AND pg_catalog.pg_has_role(session_user, r.oid, 'USAGE')";
static const char setup_durable_sql[] =
	"SELECT pg_catalog.set_config('synchronous_commit', CASE WHEN s OPERATOR(pg_catalog.=) 'off' THEN 'on' ELSE s END, "
	"false) FROM pg_catalog.current_setting('synchronous_commit') s";

void
pgsession_setup_sql(Buf *sql, PGconn *pg, bool durable, const char *more)
{
	buf_puts(sql, "SELECT 1");
	for (size_t i = 0; i < SETTINGS; i++)
	{
		if (setting_exists(&settings[i], pg))
			buf_printf(sql, ", pg_catalog.set_config('%s', '%s', false)", settings[i].name, settings[i].value);
	}
	buf_printf(sql, "; SELECT 1%s; ", setup_more_sql);
	if (durable)
		buf_printf(sql, "%s; ", setup_durable_sql);
	if (more != NULL)
		buf_printf(sql, "SELECT %s", more);
}

/* ---- the check ---- */

enum
{
	CHECK_PID,
	CHECK_IDENTITY,
	CHECK_VERSION,
	CHECK_MEMBER,
	CHECK_ROLE,
	CHECK_PRELOADED,
	CHECK_READ_ONLY,
	CHECK_SYNCHRONOUS,
	CHECK_TIMELINE,
	CHECK_WRONG
};

static const char check_begin_sql[] =
	"SELECT pg_backend_pid(), pg_backend_pid() || '@' || extract(epoch FROM pg_postmaster_start_time()), "
	"(SELECT extversion FROM pg_extension WHERE extname = 'pg_sheet'), "
	"(SELECT pg_has_role(oid, 'USAGE') FROM pg_roles WHERE rolname = 'sheet_gateway'), current_user, "
	"current_setting('pg_sheet.cache_size', true) IS NOT NULL, "
	"(SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'), "
	"current_setting('synchronous_commit'), "
	"left(pg_walfile_name(pg_current_wal_lsn()), 8), " /* fails at a standby */
	"(SELECT string_agg(format('%s is \"%s\" instead of \"%s\" (%s)', s.name, s.setting, w.value, s.source), ', ') "
	"FROM pg_settings s JOIN (VALUES ('session_replication_role', 'origin')";
static const char check_end_sql[] = ") w(name, value) ON s.name = w.name AND s.setting <> w.value)";

void
pgsession_check_sql(Buf *sql, PGconn *pg)
{
	buf_puts(sql, check_begin_sql);
	for (size_t i = 0; i < SETTINGS; i++)
	{
		if (setting_exists(&settings[i], pg) && strcmp(settings[i].name, set_by_class[0]) != 0 &&
			strcmp(settings[i].name, set_by_class[1]) != 0)
			buf_printf(sql, ", ('%s', '%s')", settings[i].name, settings[i].value);
	}
	buf_puts(sql, check_end_sql);
}

/* Compares versions such as 1.2.10 by their numbers. */
static int
version_compare(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0')
	{
		char *a_end, *b_end;
		long a_number = strtol(a, &a_end, 10), b_number = strtol(b, &b_end, 10);

		if (a_number != b_number)
			return a_number < b_number ? -1 : 1;
		if (a_end == a && b_end == b && *a != '.' && *b != '.')
			return strcmp(a, b);
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	return 0;
}

static const char hint_pooler[] =
	"between the gateway and PostgreSQL is a pooler in transaction or statement mode: set its pool_mode to session for "
	"this database and user, or connect to PostgreSQL itself";

/* When its server was started. */
static const char *
session_start(const PgSession *session)
{
	return session->identity + strcspn(session->identity, "@");
}

/* Whether another session has this one's server process. */
static bool
session_has_twin(const PgSession *session)
{
	const PgSession *other = sessions;

	while (other != NULL && (other == session || strcmp(other->identity, session->identity) != 0))
		other = other->next;
	return other != NULL;
}

static bool
session_is_shared(const PgSession *session)
{
	return session->pooled && shared_at != 0 && session_now() - shared_at < SHARED_S;
}

const char *
pgsession_must_end(const PgSession *session)
{
	if (session_is_shared(session))
		return "its pooler gives the server process to other connections";
	if (strcmp(session_start(session), server.start) != 0)
		return "another server is the primary now";
	return NULL;
}

/* Returns what keeps the database from serving a gateway until it is changed, or NULL. */
static const char *
check_refusal(const PGresult *res, char *problem, size_t size)
{
	const char *version = PQgetvalue(res, 0, CHECK_VERSION);

	if (PQgetisnull(res, 0, CHECK_VERSION))
	{
		snprintf(problem, size, "the database cannot be used: the extension pg_sheet is not created in it");
		return "run CREATE EXTENSION pg_sheet in this database, or correct dbname in the setting database";
	}
	if (version_compare(version, PGSESSION_EXTENSION) < 0)
	{
		snprintf(problem, size,
				 "the database cannot be used: its extension pg_sheet %s is older than this gateway (%s)", version,
				 PGSESSION_EXTENSION);
		return "install the new version on the server and run ALTER EXTENSION pg_sheet UPDATE";
	}
	if (strcmp(PQgetvalue(res, 0, CHECK_MEMBER), "t") != 0)
	{
		snprintf(problem, size, "the database cannot be used: the role \"%s\" is not a member of sheet_gateway",
				 PQgetvalue(res, 0, CHECK_ROLE));
		return "run GRANT sheet_gateway TO this role, which must inherit its privileges";
	}
	return NULL;
}

/* Returns what keeps this session from being used, or NULL. */
static const char *
check_problem(const PGresult *res, bool durable, char *problem, size_t size)
{
	if (strcmp(PQgetvalue(res, 0, CHECK_PRELOADED), "t") != 0)
	{
		snprintf(problem, size, "the server has not loaded the library pg_sheet");
		return "add pg_sheet to shared_preload_libraries and restart the server";
	}
	if (!PQgetisnull(res, 0, CHECK_READ_ONLY))
	{
		snprintf(problem, size, "the database is read-only: default_transaction_read_only is on (%s)",
				 PQgetvalue(res, 0, CHECK_READ_ONLY));
		return "a gateway respects that; reset the setting (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE) to edit sheets";
	}
	if (!PQgetisnull(res, 0, CHECK_WRONG))
	{
		snprintf(problem, size, "the session has other settings than the gateway needs: %s",
				 PQgetvalue(res, 0, CHECK_WRONG));
		return "reset them (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE), and have a pooler keep what the session sets";
	}
	if (durable && strcmp(PQgetvalue(res, 0, CHECK_SYNCHRONOUS), "off") == 0)
	{
		snprintf(problem, size, "edits would not be durable: synchronous_commit stays off");
		return "have a pooler keep what the session sets, or set durable to false";
	}
	return NULL;
}

/* Returns what to do if the session's server was the primary before another one, or NULL. */
static const char *
check_former(const PgSession *session, char *problem, size_t size)
{
	if (session->version > server.version ||
		(session->version == server.version && session->timeline >= server.timeline))
		return NULL;
	snprintf(
		problem, size,
		"this is a former primary: its timeline %lu of PostgreSQL %d is older than timeline %lu of PostgreSQL %d of "
		"the server at %s, which this gateway has used",
		session->timeline, session->version, server.timeline, server.version, server.name);
	return "stop this server; if it is to be used, because it was restored from a backup, for example, restart all "
		   "gateways";
}

PgVerdict
pgsession_check(PgSession *session, PGconn *pg, const PGresult *res, bool durable, char *problem, size_t size,
				const char **hint)
{
	session->pid = atoi(PQgetvalue(res, 0, CHECK_PID));
	session->pooled = session->pid != PQbackendPID(pg);
	snprintf(session->identity, sizeof(session->identity), "%s", PQgetvalue(res, 0, CHECK_IDENTITY));
	snprintf(session->server, sizeof(session->server), "\"%.200s\", port %.20s", PQhost(pg), PQport(pg));
	session->version = PQserverVersion(pg) / 10000;
	session->timeline = strtoul(PQgetvalue(res, 0, CHECK_TIMELINE), NULL, 16);
	if (session->pooled && session_has_twin(session))
		shared_at = session_now();
	if (session_is_shared(session))
	{
		snprintf(problem, size, "several connections share a server process, and lose their settings and locks");
		*hint = hint_pooler;
		return SESSION_UNUSABLE;
	}
	if ((*hint = check_former(session, problem, size)) != NULL)
		return SESSION_UNUSABLE;
	if ((*hint = check_refusal(res, problem, size)) != NULL)
		return SESSION_REFUSED;
	if ((*hint = check_problem(res, durable, problem, size)) != NULL)
		return SESSION_UNUSABLE;
	return SESSION_GOOD;
}

/* ---- sessions in use ---- */

void
pgsession_begin(PgSession *session)
{
	session->next = sessions;
	sessions = session;
	snprintf(server.start, sizeof(server.start), "%s", session_start(session));
	snprintf(server.name, sizeof(server.name), "%s", session->server);
	server.version = session->version;
	server.timeline = session->timeline;
}

void
pgsession_end(PgSession *session)
{
	PgSession **at = &sessions;

	while (*at != NULL && *at != session)
		at = &(*at)->next;
	if (*at != NULL)
		*at = session->next;
}
