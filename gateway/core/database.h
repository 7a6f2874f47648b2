/*
 * database.h - the gateway's connections to PostgreSQL, by what their statements may take.
 *
 * No statement stands behind one that may wait for a lock or take long, except behind one of the same account:
 *
 *   accounts  sign-in, who somebody is, and whether the server answers; short and pipelined
 *   reads     other short reads; pipelined
 *   edits     sheet.apply and sheet.claim without waiting for the sheet, and tails; pipelined
 *   held      the same for sheets that another transaction has held: they wait for it, for a moment
 *   writes    statements that change a row or two, and may wait for its lock
 *   long      statements that may take long, or wait for a sheet: saving and restoring versions, trashing, sharing,
 *             whole sheets, logs
 *
 * The last three are serial (pgpool.h). Besides these there are: the connection of groups (gateway.group,
 * ws/room/schedule.c), the ones for large blocks of cells (gateway.blocks), and one that follows changes
 * (gateway.follow).
 */
#ifndef DATABASE_H
#define DATABASE_H

#include "db/pgpool.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum DatabaseClass
{
	DATABASE_ACCOUNTS,
	DATABASE_READS,
	DATABASE_EDITS,
	DATABASE_HELD,
	DATABASE_WRITES,
	DATABASE_LONG,
	DATABASE_CLASSES
} DatabaseClass;

/* Opens all connections, which come up while the loop runs; false: no memory. */
extern bool database_open(void);
extern void database_close(void);
/*
 * Asks on behalf of an account (0: the gateway's own need). False: the class has as much to do as it may, for this
 * account or in all; fn is not called. Result and errors: pgconn.h.
 */
extern bool database_query(DatabaseClass class, int64_t account, const char *sql, int nparams, const PgParam *params,
						   int result_format, PgResultFn fn, void *arg);
/* The same for a serial class, with the rows given one by one as they come; see pgconn_stream(). */
extern bool database_stream(DatabaseClass class, int64_t account, const char *sql, int nparams, const PgParam *params,
							int result_format, PgResultFn row_fn, PgResultFn fn, void *arg);
/* The connection of a pipelined class for the next statement. */
extern PgConn *database_choose(DatabaseClass class);
extern const PgPool *database_pool(DatabaseClass class);
extern const char *database_class_name(DatabaseClass class);
/* The silence after which a connection is given up, ms. */
extern unsigned database_deadline(void);

#endif
