/* session.c - see session.h. */
#include "session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

Session *
session_open(const char *conninfo)
{
	Session *session = allocate(sizeof(*session));

	session->conn = PQconnectdb(conninfo);
	if (PQstatus(session->conn) != CONNECTION_OK)
		fail("%s", PQerrorMessage(session->conn));
	if (clock_getcpuclockid(PQbackendPID(session->conn), &session->cpu) != 0)
		fail("the CPU clock of the backend cannot be read: run it on the server's machine");
	return session;
}

void
session_close(Session *session)
{
	PQfinish(session->conn);
	free(session);
}

PGresult *
session_check(Session *session, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		fail("%s", PQerrorMessage(session->conn));
	return result;
}

static PGresult *
session_vquery(Session *session, const char *format, va_list args)
{
	char sql[4096];

	if (vsnprintf(sql, sizeof(sql), format, args) >= (int) sizeof(sql))
		fail("a statement is too long");
	return session_check(session, PQexec(session->conn, sql));
}

PGresult *
session_query(Session *session, const char *format, ...)
{
	va_list args;
	PGresult *result;

	va_start(args, format);
	result = session_vquery(session, format, args);
	va_end(args);
	return result;
}

void
session_run(Session *session, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	PQclear(session_vquery(session, format, args));
	va_end(args);
}

int64_t
session_number(Session *session, const char *format, ...)
{
	va_list args;
	PGresult *result;
	int64_t number;

	va_start(args, format);
	result = session_vquery(session, format, args);
	va_end(args);
	if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
		fail("no number came back: %s", format);
	number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return number;
}

int64_t
session_cpu_ns(Session *session)
{
	struct timespec t;

	if (clock_gettime(session->cpu, &t) != 0)
		fail("a backend has ended");
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

Wal
session_wal(Session *session)
{
	return (Wal){.position = session_number(session, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"),
				 .bytes = session_number(session, "SELECT wal_bytes::bigint FROM pg_stat_wal")};
}

/* The statement that asks for it reports when it ends, before the client hears of that. */
void
session_report_statistics(Session *session)
{
	session_run(session, "SELECT pg_stat_force_next_flush()");
}
