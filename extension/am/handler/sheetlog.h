/* sheetlog.h - the append-only table access method; see sheetlog.c. */
#ifndef SHEETLOG_H
#define SHEETLOG_H

#include "postgres.h"
#include "access/tableam.h"

/* Chains the hooks that refuse at DDL what cannot work at DML. Call once from _PG_init. */
extern void sheetlog_init(void);
extern bool sheetlog_is(Relation rel); /* does the table use the access method? */

/* Deletes are refused except inside this bracket, which sheet.purge uses, and with pg_sheet.allow_log_delete
 * (superusers). */
extern void sheetlog_begin_purge(void);
extern void sheetlog_end_purge(void);
/* Has this transaction deleted rows by the setting for drills? What it sees must not be shown to others. */
extern bool sheetlog_has_deleted(void); /* also ended by abort of the transaction */

#endif
