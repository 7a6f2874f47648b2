/* session.h - a connection, what its backend has cost, and what every part of a benchmark needs. */
#ifndef SESSION_H
#define SESSION_H

#include "basics.h"

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct Session
{
	PGconn *conn;
	clockid_t cpu; /* user and system time of the backend */
} Session;

/* All of them end the program when something is wrong, as fail() does. */
extern Session *session_open(const char *conninfo);
extern void session_close(Session *session);
extern PGresult *session_query(Session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern void session_run(Session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern int64_t session_number(Session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails unless the result is one of rows or of a command. */
extern PGresult *session_check(Session *session, PGresult *result);

/* The backend's CPU time since it began: the scheduler's count in nanoseconds, not the clock ticks of /proc/PID/stat.
 */
extern int64_t session_cpu_ns(Session *session);

/* WAL of the whole cluster. */
typedef struct Wal
{
	int64_t position; /* of the insertion pointer: page headers and padding are in it */
	int64_t bytes;	  /* of records, as pg_stat_wal counts them */
} Wal;
/* The backends that have written must have reported: session_report_statistics() in each. */
extern Wal session_wal(Session *session);
extern void session_report_statistics(Session *session);

#endif
