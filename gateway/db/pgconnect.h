/*
 * pgconnect.h - opens a session: tries the addresses of the connection string, one after another.
 *
 * Each attempt has the time limit of PgConninfo, from the connection to the session that is set up and checked
 * (pgsession.h). The first address is the one that answered last. What fails is logged with its server (pgcause.h).
 */
#ifndef PGCONNECT_H
#define PGCONNECT_H

#include "db/pgcause.h"
#include "db/pgresolve.h"
#include "db/pgsession.h"

#include <uv.h>

typedef struct PgConnect PgConnect;

/*
 * pg is the session, in pipeline mode; the function owns it. NULL: no address led to one. refusal then says what an
 * administrator must change first, or is NULL.
 */
typedef void (*PgConnectFn)(void *arg, PGconn *pg, const char *refusal);

typedef struct PgConnectOptions
{
	const char *conninfo;
	const char *name;		  /* in the log, and application_name */
	const char *settings_sql; /* further settings for pgsession_setup_sql(), or NULL */
	bool durable;
	PgSufferer *sufferer;
	PgSession *session; /* is set, as is the address */
	PgAddress *address;
	PgConnectFn fn; /* called in a later iteration of the loop; the PgConnect has ended */
	void *arg;
} PgConnectOptions;

/* Returns NULL if there is no memory. What options point to must live until the end. */
extern PgConnect *pgconnect_start(uv_loop_t *loop, const PgConnectOptions *options);
/* Gives up. fn is not called. connect may be NULL. */
extern void pgconnect_stop(PgConnect *connect);

#endif
