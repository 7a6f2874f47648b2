/*
 * pgsession.h - what a session of a gateway must be like: its settings, and whether the server can serve a gateway.
 *
 * An operator, or another program's installation, may have changed settings for the server, the database or the role.
 * A gateway sets those on which its promises and its parsers depend at the begin of each session, in two statements
 * before any other: pgsession_setup_sql() and pgsession_check_sql().
 */
#ifndef PGSESSION_H
#define PGSESSION_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>

/* The version of the extension that this gateway was made for. */
#define PGSESSION_EXTENSION "1.0"

#define PGSESSION_SERVER 256

/* A session that is in use. */
typedef struct PgSession
{
	struct PgSession *next;
	int pid;					   /* the server process; behind a pooler not that of PQbackendPID() */
	char identity[64];			   /* of the server process, among all servers: PID@START */
	bool pooled;				   /* a pooler is between */
	char server[PGSESSION_SERVER]; /* "HOST", port PORT */
	int version;				   /* of PostgreSQL: the major one */
	unsigned long timeline;		   /* of its server */
} PgSession;

typedef enum PgVerdict
{
	SESSION_GOOD,
	SESSION_UNUSABLE, /* now: the next attempt may succeed */
	SESSION_REFUSED	  /* until an administrator changes the database */
} PgVerdict;

/* Appends the setup. more: further calls of set_config(), separated by commas, or NULL. */
extern void pgsession_setup_sql(Buf *sql, PGconn *pg, bool durable, const char *more);
/* Appends the check, which must be a transaction of its own. */
extern void pgsession_check_sql(Buf *sql, PGconn *pg);
/* Judges the result of the check, and sets the session's fields. problem and hint: what is wrong, what to do. */
extern PgVerdict pgsession_check(PgSession *session, PGconn *pg, const PGresult *res, bool durable, char *problem,
								 size_t size, const char **hint);

/* The session, which has just been checked, is in use until pgsession_end(). */
extern void pgsession_begin(PgSession *session);
extern void pgsession_end(PgSession *session);
/* Why a session in use must end; NULL: it need not. */
extern const char *pgsession_must_end(const PgSession *session);

#endif
