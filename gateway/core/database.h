/*
 * database.h - the gateway's connections to PostgreSQL, by class of statement.
 *
 * No statement waits behind one that may wait for a lock or take long, except behind one of the same account:
 *
 *   accounts  sign-in, accounts, and whether the server answers: short, pipelined
 *   reads     other short reads: pipelined
 *   edits     sheet.apply and sheet.claim without waiting for the sheet, and tails: pipelined
 *   held      the same for sheets that another transaction has locked: they wait for a short time
 *   writes    statements that change a few rows and may wait for their locks
 *   long      statements that may take long or wait for a sheet: saving and restoring versions, trashing, sharing,
 *             whole sheets, logs
 *
 * The last three are serial (pgpool.h). Further connections: gateway.group for groups (ws/room/schedule.c),
 * gateway.blocks for large blocks of cells (ws/v2), gateway.exports for sheets that are downloaded
 * (http/routes/csv_export.c), gateway.follow for changes by others (ws/room/follow.c), and those of mail/mail.c.
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

/* Opens all connections, which come up while the loop runs. Returns false if there is no memory. */
extern bool database_open(void);
extern void database_close(void);
/* Opens a connection of the caller's, for transactions that it begins and ends. NULL: there is no memory. */
extern PgConn *database_open_more(const char *name);
/*
 * Queues a query on behalf of an account (0: the gateway itself). Returns false if the class has too many statements,
 * of this account or in all; fn is then not called. Otherwise fn is called once, after this function has returned. For
 * results and errors see pgconn.h.
 */
extern bool database_query(DatabaseClass class, int64_t account, const char *sql, int nparams, const PgParam *params,
						   int result_format, PgResultFn fn, void *arg);
/* The same for a serial class, with a function that gets each row; see pgconn_stream(). goes_on: the query reads the
 * rest of an answer that has begun, and is not refused for other statements of the account. */
extern bool database_stream(DatabaseClass class, int64_t account, bool goes_on, const char *sql, int nparams,
							const PgParam *params, int result_format, PgResultFn row_fn, PgResultFn fn, void *arg);
/*
 * Has the server cancel the statement in progress, which then ends with an error, unless it ends before. May be called
 * again until it has ended. The server does not cancel while it waits for the connection to be read. Only for a
 * connection with one statement at a time; the next one is sent when it cannot be cancelled any more.
 */
extern void database_cancel(PgConn *conn);
/* The connection of a pipelined class for the next statement. */
extern PgConn *database_choose(DatabaseClass class);
extern const PgPool *database_pool(DatabaseClass class);
extern const char *database_class_name(DatabaseClass class);
/* The silence after which a connection is dropped, ms. */
extern unsigned database_deadline(void);

#endif
