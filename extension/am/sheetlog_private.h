/* sheetlog_private.h - between the files of am/. */
#ifndef SHEETLOG_PRIVATE_H
#define SHEETLOG_PRIVATE_H

#include "postgres.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

/* sheetlog_index.c: the two callbacks of index builds; see access/tableam.h. */
extern double sheetlog_index_build_range_scan(Relation table, Relation index, IndexInfo *index_info, bool allow_sync,
											  bool anyvisible, bool progress, BlockNumber start_block,
											  BlockNumber blocks, IndexBuildCallback callback, void *callback_state,
											  TableScanDesc scan);
extern void sheetlog_index_validate_scan(Relation table, Relation index, IndexInfo *index_info, Snapshot snapshot,
										 struct ValidateIndexState *state);

/* sheetlog.c: is this the handler function of our access method? */
extern bool sheetlog_is_handler(Oid function);

/* sheetlog_ddl.c: refuses what cannot work when it is configured. */
extern void sheetlog_ddl_init(void);

#endif
