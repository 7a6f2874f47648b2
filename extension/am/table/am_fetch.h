/* am_fetch.h - single rows by their TIDs, and the end of a row's life as indexes ask for it; see am_fetch.c. */
#ifndef AM_FETCH_H
#define AM_FETCH_H

#include "postgres.h"
#include "access/tableam.h"

extern IndexFetchTableData *am_fetch_begin(Relation rel);
extern void am_fetch_reset(IndexFetchTableData *data);
extern void am_fetch_end(IndexFetchTableData *data);
extern bool am_fetch_tuple(IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot,
						   bool *call_again, bool *all_dead);

extern bool am_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot);
extern bool am_fetch_tid_valid(TableScanDesc sscan, ItemPointer tid);
extern void am_fetch_latest_tid(TableScanDesc sscan, ItemPointer tid);
/* Has the block a row that is not dead with columns[0] = key and columns[1] >= position? */
extern bool am_fetch_reaches(Relation rel, BlockNumber block, const AttrNumber *columns, int64 key, int64 position);
extern bool am_fetch_satisfies(Relation rel, TupleTableSlot *slot, Snapshot snapshot);
extern TransactionId am_fetch_index_delete(Relation rel, TM_IndexDeleteOp *delstate);

#endif
