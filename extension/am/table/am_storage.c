/*
 * am_storage.c - files of a table.
 *
 * An empty table is an empty file: the metapage comes with the first row. So TRUNCATE and the init fork of an unlogged
 * table need nothing of their own.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/multixact.h"
#include "access/subtrans.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "commands/progress.h"
#include "am/table/am_fetch.h"
#include "am/page/am_row.h"
#include "am/table/am_storage.h"
#include "am/page/am_visibility.h"
#include "am/table/am_write.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

void
am_storage_new(Relation rel, const CompatFileLocator *file, char persistence, TransactionId *freeze_xid,
			   MultiXactId *minmulti)
{
	SMgrRelation smgr;

	*freeze_xid = RecentXmin;
	*minmulti = GetOldestMultiXactId();
	smgr = RelationCreateStorage(*file, persistence, true);
	if (persistence == RELPERSISTENCE_UNLOGGED)
	{
		/* Written past shared buffers: synced here, and logged even when the table is not. */
		smgrcreate(smgr, INIT_FORKNUM, false);
		log_smgrcreate(file, INIT_FORKNUM);
		smgrimmedsync(smgr, INIT_FORKNUM);
	}
	smgrclose(smgr);
}

void
am_storage_truncate(Relation rel)
{
	RelationTruncate(rel, 0);
}

static void
am_copy_fork(Relation rel, SMgrRelation to, const CompatFileLocator *file, ForkNumber fork)
{
	char persistence = rel->rd_rel->relpersistence;

	if (!smgrexists(RelationGetSmgr(rel), fork))
		return;
	smgrcreate(to, fork, false);
	if (RelationIsPermanent(rel) || (persistence == RELPERSISTENCE_UNLOGGED && fork == INIT_FORKNUM))
		log_smgrcreate(file, fork);
	RelationCopyStorage(RelationGetSmgr(rel), to, fork, persistence);
}

/* SET TABLESPACE. */
void
am_storage_copy(Relation rel, const CompatFileLocator *file)
{
	SMgrRelation to = smgropen(*file, rel->rd_backend);

	FlushRelationBuffers(rel);
	RelationCreateStorage(*file, rel->rd_rel->relpersistence, true);
	RelationCopyStorage(RelationGetSmgr(rel), to, MAIN_FORKNUM, rel->rd_rel->relpersistence);
	for (ForkNumber fork = MAIN_FORKNUM + 1; fork <= MAX_FORKNUM; fork++)
		am_copy_fork(rel, to, file, fork);
	RelationDropStorage(rel);
	smgrclose(to);
}

void
am_storage_estimate(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples, double *allvisfrac)
{
	table_block_relation_estimate_size(rel, attr_widths, pages, tuples, allvisfrac, AM_ROW_HEAD_BOUND, AM_PAGE_BYTES);
}

/* ---- CLUSTER and VACUUM FULL ---- */

typedef struct AmRewrite
{
	Relation from, to;
	TransactionId oldest_xmin;
	TransactionId frozen_xid; /* relfrozenxid of the new table */
	TupleTableSlot *slot;
	Tuplesortstate *sort;
	double live, removed, recently_dead;
	double written;
	MemoryContext row_context;
} AmRewrite;

static void
am_rewrite_row(AmRewrite *rewrite, TupleTableSlot *slot, TransactionId xmin, CommandId cmin, AmDeleter deleter)
{
	MemoryContext old = MemoryContextSwitchTo(rewrite->row_context);
	AmWriter writer = {rewrite->to, xmin, cmin, 0, deleter};
	ItemPointerData tid;
	AmPrepared row;

	/* What every transaction sees is not written with an old transaction's id. */
	if (TransactionIdIsNormal(xmin) && TransactionIdPrecedes(xmin, rewrite->oldest_xmin))
		writer.xid = FrozenTransactionId;
	am_prepare_row(rewrite->to, slot, &row);
	am_write_rows(&writer, &row, 1, &tid);
	MemoryContextSwitchTo(old);
	MemoryContextReset(rewrite->row_context);
	pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, (int64) ++rewrite->written);
}

/*
 * By whom a row counts as deleted in the new table. No statement that began before has the table open, so all commands
 * of a transaction are one; and so are subtransactions that were released into the same one, as long as that is known.
 * Then few deleters need to be told apart on a page. No xid before relfrozenxid is written.
 */
static AmDeleter
am_rewrite_deleter(const AmRewrite *rewrite, TransactionId xid)
{
	TransactionId top;

	if (TransactionIdIsCurrentTransactionId(xid) || TransactionIdPrecedes(xid, TransactionXmin))
		return (AmDeleter){xid, 0};
	top = SubTransGetTopmostTransaction(xid);
	return (AmDeleter){TransactionIdPrecedes(top, rewrite->frozen_xid) ? xid : top, 0};
}

/* Takes a row of the old table over, or gives it to the sort. */
static void
am_rewrite_take(AmRewrite *rewrite)
{
	AmSlot *row = (AmSlot *) rewrite->slot;
	AmDeleter deleter = {InvalidTransactionId, 0};
	TransactionId xid;

	CHECK_FOR_INTERRUPTS();
	switch (am_visibility_state(row->xmin, row->xmax, rewrite->oldest_xmin, &xid))
	{
		case AM_STATE_DEAD:
			rewrite->removed += 1;
			return;
		case AM_STATE_RECENTLY_DEAD:
			deleter = am_rewrite_deleter(rewrite, row->xmax);
			rewrite->recently_dead += 1;
			break;
		case AM_STATE_DELETING:
			/* By us: the table is locked exclusively. */
			deleter = am_rewrite_deleter(rewrite, row->xmax);
			rewrite->live += 1;
			break;
		default:
			rewrite->live += 1;
			break;
	}
	if (rewrite->sort == NULL)
		am_rewrite_row(rewrite, rewrite->slot, row->xmin, row->cmin, deleter);
	else
	{
		HeapTuple tuple = ExecCopySlotHeapTuple(rewrite->slot);

		tuplesort_putheaptuple(rewrite->sort, tuple);
		heap_freetuple(tuple);
	}
}

static void
am_rewrite_by_index(AmRewrite *rewrite, Relation index)
{
	IndexScanDesc scan = compat_index_beginscan(rewrite->from, index, SnapshotAny, 0);

	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_INDEX_SCAN_HEAP);
	index_rescan(scan, NULL, 0, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, rewrite->slot))
		am_rewrite_take(rewrite);
	index_endscan(scan);
}

static void
am_rewrite_by_scan(AmRewrite *rewrite)
{
	TableScanDesc scan = table_beginscan(rewrite->from, SnapshotAny, 0, NULL);

	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP);
	while (table_scan_getnextslot(scan, ForwardScanDirection, rewrite->slot))
		am_rewrite_take(rewrite);
	table_endscan(scan);
}

/* Copies rows in the order of the sort. Each is read again, with its xmin and its deleter. */
static void
am_rewrite_sorted(AmRewrite *rewrite)
{
	Tuplesortstate *sort = rewrite->sort;
	HeapTuple tuple;

	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_SORT_TUPLES);
	tuplesort_performsort(sort);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP);
	rewrite->sort = NULL;
	rewrite->live = rewrite->recently_dead = 0;
	while ((tuple = tuplesort_getheaptuple(sort, true)) != NULL)
	{
		if (!am_fetch_row_version(rewrite->from, &tuple->t_self, SnapshotAny, rewrite->slot))
			elog(ERROR, "row (%u,%u) is gone", ItemPointerGetBlockNumber(&tuple->t_self),
				 ItemPointerGetOffsetNumber(&tuple->t_self));
		am_rewrite_take(rewrite);
	}
	tuplesort_end(sort);
}

/* Readers that old_snapshot_threshold passes over are waited for: see am_vacuum_limits(). */
static void
am_rewrite_limits(AmRewrite *rewrite, TransactionId oldest_xmin, TransactionId *xid_cutoff)
{
	TransactionId horizon = GetOldestNonRemovableTransactionId(rewrite->from);
	TransactionId frozen_before = rewrite->from->rd_rel->relfrozenxid;

	rewrite->oldest_xmin = TransactionIdPrecedes(horizon, oldest_xmin) ? horizon : oldest_xmin;
	if (TransactionIdPrecedes(rewrite->oldest_xmin, *xid_cutoff))
		*xid_cutoff = TransactionIdIsNormal(frozen_before) && TransactionIdPrecedes(rewrite->oldest_xmin, frozen_before)
						  ? frozen_before
						  : rewrite->oldest_xmin;
	rewrite->frozen_xid = *xid_cutoff;
}

void
am_storage_rewrite(Relation from, Relation to, Relation index, bool use_sort, TransactionId oldest_xmin,
				   TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *live, double *removed,
				   double *recently_dead)
{
	AmRewrite rewrite = {.from = from, .to = to};

	am_rewrite_limits(&rewrite, oldest_xmin, xid_cutoff);
	rewrite.slot = table_slot_create(from, NULL);
	rewrite.row_context = AllocSetContextCreate(CurrentMemoryContext, "sheetlog rewrite", ALLOCSET_DEFAULT_SIZES);
	if (use_sort)
		rewrite.sort =
			tuplesort_begin_cluster(RelationGetDescr(from), index, maintenance_work_mem, NULL, TUPLESORT_NONE);
	if (index != NULL && !use_sort)
		am_rewrite_by_index(&rewrite, index);
	else
		am_rewrite_by_scan(&rewrite);
	if (use_sort)
		am_rewrite_sorted(&rewrite);
	ExecDropSingleTupleTableSlot(rewrite.slot);
	MemoryContextDelete(rewrite.row_context);
	*live = rewrite.live;
	*removed = rewrite.removed;
	*recently_dead = rewrite.recently_dead;
}
