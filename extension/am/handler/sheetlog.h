/* sheetlog.h - the append-only table access method; see sheetlog.c. */
#ifndef SHEETLOG_H
#define SHEETLOG_H

#include "postgres.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

/* Both are called once from _PG_init. */
extern void sheetlog_init(void);
extern void sheetlog_ddl_init(void);   /* sheetlog_ddl.c */
extern bool sheetlog_is(Relation rel); /* does the table use the access method? */

/* Deletes are refused except inside this bracket, which sheet.purge uses, and with pg_sheet.allow_log_delete
 * (superusers). */
extern void sheetlog_begin_purge(void);
extern void sheetlog_end_purge(void);
/* Has this transaction deleted rows by the setting for drills? What it sees must not be shown to others. */
extern bool sheetlog_has_deleted(void); /* also ended by abort of the transaction */

extern bool sheetlog_is_handler(Oid function); /* is this the handler function of the access method? */

/* sheetlog_index.c: the two callbacks of index builds; see access/tableam.h. */
extern double sheetlog_index_build_range_scan(Relation table, Relation index, IndexInfo *index_info, bool allow_sync,
											  bool anyvisible, bool progress, BlockNumber start_block,
											  BlockNumber blocks, IndexBuildCallback callback, void *callback_state,
											  TableScanDesc scan);
extern void sheetlog_index_validate_scan(Relation table, Relation index, IndexInfo *index_info, Snapshot snapshot,
										 struct ValidateIndexState *state);

#endif
