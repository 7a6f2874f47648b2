/*
 * sheetlog_index.c - building indexes on a log.
 *
 * After heap's own builders (src/backend/access/heap/heapam_handler.c), without what a log does not have: there are no
 * updates, so no HOT chains and no versions of a row; a row is dead only when its insertion was aborted or its sheet
 * purged.
 *
 * A plain build holds ShareLock on the table, reads every row (SnapshotAny) and decides by HeapTupleSatisfiesVacuum; a
 * concurrent build reads with a registered MVCC snapshot, and validates by merging the sorted TIDs of the index with
 * the table.
 */
#include "postgres.h"

#include "compat.h"
#include "access/genam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "am/table/am_scan.h"
#include "am/page/am_visibility.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "am/handler/sheetlog.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

/* What evaluating an index needs. */
typedef struct IndexEval
{
	EState *estate;
	ExprContext *econtext;
	ExprState *predicate;
	TupleTableSlot *slot;
} IndexEval;

static void
sheetlog_eval_begin(IndexEval *eval, Relation table, IndexInfo *index_info)
{
	eval->estate = CreateExecutorState();
	eval->econtext = GetPerTupleExprContext(eval->estate);
	eval->slot = table_slot_create(table, NULL);
	eval->econtext->ecxt_scantuple = eval->slot;
	eval->predicate = ExecPrepareQual(index_info->ii_Predicate, eval->estate);
}

static void
sheetlog_eval_end(IndexEval *eval, IndexInfo *index_info)
{
	ExecDropSingleTupleTableSlot(eval->slot);
	FreeExecutorState(eval->estate);
	/* These may have been pointing to the now-gone estate. */
	index_info->ii_ExpressionsState = NIL;
	index_info->ii_PredicateState = NULL;
}

typedef enum IndexRowAction
{
	ROW_SKIP,  /* dead to everybody */
	ROW_ALIVE, /* index it, it counts for uniqueness */
	ROW_DYING, /* index it for old snapshots, it does not count for uniqueness */
	ROW_WAIT,  /* wait for *wait_for and look again */
} IndexRowAction;

/* What to do with a row of a SnapshotAny scan. */
static IndexRowAction
sheetlog_classify_row(const AmSlot *row, TransactionId oldest_xmin, bool unique, bool anyvisible,
					  TransactionId *wait_for)
{
	bool wait;
	AmRowState state = am_visibility_state(row->xmin, row->xmax, oldest_xmin, wait_for);

	wait = unique && !anyvisible && !TransactionIdIsCurrentTransactionId(*wait_for);
	switch (state)
	{
		case AM_STATE_DEAD:
			return ROW_SKIP;
		case AM_STATE_RECENTLY_DEAD:
			return ROW_DYING;
		case AM_STATE_INSERTING:
			return wait ? ROW_WAIT : ROW_ALIVE;
		case AM_STATE_DELETING:
			return wait ? ROW_WAIT : ROW_DYING;
		default:
			return ROW_ALIVE;
	}
}

/* Judges the slot's row, waiting for other transactions where uniqueness depends on them. */
static IndexRowAction
sheetlog_settle_row(Relation table, TupleTableSlot *slot, TransactionId oldest_xmin, bool unique, bool anyvisible)
{
	for (;;)
	{
		TransactionId wait_for = InvalidTransactionId;
		IndexRowAction verdict = sheetlog_classify_row((AmSlot *) slot, oldest_xmin, unique, anyvisible, &wait_for);

		if (verdict != ROW_WAIT)
			return verdict;
		XactLockTableWait(wait_for, table, &slot->tts_tid, XLTW_InsertIndexUnique);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
sheetlog_report_blocks(const AmScan *scan, BlockNumber *reported, bool done)
{
	BlockNumber block = done ? scan->nblocks : scan->source.block;

	if (block == *reported || block == InvalidBlockNumber)
		return;
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block);
	*reported = block;
}

double
sheetlog_index_build_range_scan(Relation table, Relation index, IndexInfo *index_info, bool allow_sync, bool anyvisible,
								bool progress, BlockNumber start_block, BlockNumber blocks, IndexBuildCallback callback,
								void *callback_state, TableScanDesc scan)
{
	bool unique = index_info->ii_Unique || index_info->ii_ExclusionOps != NULL;
	TransactionId oldest_xmin = InvalidTransactionId;
	BlockNumber reported = InvalidBlockNumber;
	Snapshot registered = NULL;
	double rows = 0;
	IndexEval eval;

	sheetlog_eval_begin(&eval, table, index_info);
	if (!IsBootstrapProcessingMode() && !index_info->ii_Concurrent)
		oldest_xmin = GetOldestNonRemovableTransactionId(table);
	if (scan == NULL)
	{
		Snapshot snapshot = SnapshotAny;

		if (!TransactionIdIsValid(oldest_xmin))
			snapshot = registered = RegisterSnapshot(GetTransactionSnapshot());
		scan = table_beginscan_strat(table, snapshot, 0, NULL, true, allow_sync);
		if (!allow_sync)
			am_scan_set_limits((AmScan *) scan, start_block, blocks);
	}
	/* A worker of a parallel build gets its scan, and with it the snapshot. */
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, ((AmScan *) scan)->nblocks);

	while (table_scan_getnextslot(scan, ForwardScanDirection, eval.slot))
	{
		IndexRowAction verdict = ROW_ALIVE;
		Datum values[INDEX_MAX_KEYS];
		bool nulls[INDEX_MAX_KEYS];

		CHECK_FOR_INTERRUPTS();
		if (progress)
			sheetlog_report_blocks((AmScan *) scan, &reported, false);
		if (scan->rs_snapshot == SnapshotAny)
			verdict = sheetlog_settle_row(table, eval.slot, oldest_xmin, unique, anyvisible);
		if (verdict == ROW_SKIP)
			continue;
		rows += verdict == ROW_ALIVE;
		MemoryContextReset(eval.econtext->ecxt_per_tuple_memory);
		if (eval.predicate != NULL && !ExecQual(eval.predicate, eval.econtext))
			continue;
		FormIndexDatum(index_info, eval.slot, eval.estate, values, nulls);
		callback(index, &eval.slot->tts_tid, values, nulls, verdict == ROW_ALIVE, callback_state);
	}
	if (progress)
		sheetlog_report_blocks((AmScan *) scan, &reported, true);

	table_endscan(scan);
	if (registered != NULL)
		UnregisterSnapshot(registered);
	sheetlog_eval_end(&eval, index_info);
	return rows;
}

/* The next TID that the index has; false at their end. */
static bool
sheetlog_next_indexed(struct ValidateIndexState *state, ItemPointer tid)
{
	Datum value;
	bool is_null;

	if (!compat_tuplesort_getdatum(state->tuplesort, &value, &is_null))
		return false;
	Assert(!is_null);
	itemptr_decode(tid, DatumGetInt64(value));
	return true;
}

void
sheetlog_index_validate_scan(Relation table, Relation index, IndexInfo *index_info, Snapshot snapshot,
							 struct ValidateIndexState *state)
{
	/* Not synchronised: TIDs must come in ascending order to be merged with the sorted ones of the index. */
	TableScanDesc scan = table_beginscan_strat(table, snapshot, 0, NULL, true, false);
	IndexUniqueCheck check = index_info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO;
	ItemPointerData indexed;
	bool more;
	IndexEval eval;

	sheetlog_eval_begin(&eval, table, index_info);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, ((AmScan *) scan)->nblocks);
	more = sheetlog_next_indexed(state, &indexed);
	while (table_scan_getnextslot(scan, ForwardScanDirection, eval.slot))
	{
		Datum values[INDEX_MAX_KEYS];
		bool nulls[INDEX_MAX_KEYS];

		CHECK_FOR_INTERRUPTS();
		state->htups += 1;
		while (more && ItemPointerCompare(&indexed, &eval.slot->tts_tid) < 0)
			more = sheetlog_next_indexed(state, &indexed);
		if (more && ItemPointerCompare(&indexed, &eval.slot->tts_tid) == 0)
			continue;
		MemoryContextReset(eval.econtext->ecxt_per_tuple_memory);
		if (eval.predicate != NULL && !ExecQual(eval.predicate, eval.econtext))
			continue;
		FormIndexDatum(index_info, eval.slot, eval.estate, values, nulls);
		(void) index_insert(index, values, nulls, &eval.slot->tts_tid, table, check, false, index_info);
		state->tups_inserted += 1;
	}
	table_endscan(scan);
	sheetlog_eval_end(&eval, index_info);
}
