/*
 * sheetlog.c - the append-only table access method: its routine, and what it refuses.
 *
 *   am_page, am_row     the format: pages, rows, the slot (am_slot.c)
 *   am_space             blocks: metapage, tail, overflow pages
 *   am_visibility        which rows a snapshot sees
 *   am_write, am_delete putting rows into pages, and marking them deleted
 *   am_scan, am_fetch   reading
 *   am_storage           files, CLUSTER;  am_vacuum: VACUUM
 *   sheetlog_index        building indexes;  am_directory: the index access method that finds pages by key
 *   sheetlog_ddl          refuses at DDL what could not work later
 *
 * UPDATE and row locks are refused, and so is DELETE, except for the purge of a sheet and for repair drills of
 * superusers.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "am/table/am_fetch.h"
#include "am/table/am_scan.h"
#include "am/table/am_storage.h"
#include "am/table/am_write.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "am/handler/sheetlog.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(sheetlog_handler);

static const TableAmRoutine sheetlog_routine;
static bool sheetlog_allow_delete = false; /* setting pg_sheet.allow_log_delete */
static int sheetlog_purges = 0;			   /* open purge brackets of this transaction */
static bool sheetlog_deleted = false;	   /* this transaction has deleted rows by that setting */

void
sheetlog_begin_purge(void)
{
	sheetlog_purges++;
}

void
sheetlog_end_purge(void)
{
	Assert(sheetlog_purges > 0);
	sheetlog_purges--;
}

bool
sheetlog_has_deleted(void)
{
	return sheetlog_deleted;
}

static void
sheetlog_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
	{
		sheetlog_purges = 0;
		sheetlog_deleted = false;
	}
}

static void
sheetlog_subxact_callback(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		sheetlog_purges = 0;
}

/* ---- refusals ---- */

static void
sheetlog_refuse(Relation rel, const char *action)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot %s table \"%s\"", action, RelationGetRelationName(rel)),
			 errdetail("Tables using access method \"sheetlog\" are append-only."),
			 errhint("Append a compensating row instead, or leave with ALTER TABLE ... SET ACCESS METHOD heap.")));
}

static TM_Result
sheetlog_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
					  Snapshot crosscheck, bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					  CompatUpdateIndexes *update_indexes)
{
	sheetlog_refuse(rel, "update");
	return TM_Invisible; /* not reached */
}

static TM_Result
sheetlog_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck, bool wait,
					  TM_FailureData *tmfd, bool changing_partition)
{
	if (sheetlog_purges == 0)
	{
		if (!sheetlog_allow_delete || !superuser())
			sheetlog_refuse(rel, "delete from");
		sheetlog_deleted = true;
	}
	return am_delete_row(rel, tid, cid, crosscheck, wait, tmfd);
}

/*
 * Row locks are refused, but for one: who deletes or changes a row that a foreign key of the log references asks, with
 * this lock, whether there are rows that reference it. That they are there is all that counts, and the answer an error.
 */
static TM_Result
sheetlog_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
					LockTupleMode mode, LockWaitPolicy wait_policy, uint8 flags, TM_FailureData *tmfd)
{
	if (mode == LockTupleKeyShare && InNoForceRLSOperation())
		return am_fetch_row_version(rel, tid, snapshot, slot) ? TM_Ok : TM_Deleted;
	/* Of SELECT ... FOR UPDATE and its like; the others are about to change the row. */
	if (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS)
		sheetlog_refuse(rel, "lock rows of");
	sheetlog_refuse(rel, "update or delete rows of");
	return TM_Invisible; /* not reached */
}

/* ---- inserting ---- */

static void
sheetlog_forbid_worker(void)
{
	if (IsParallelWorker())
		ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE), errmsg("cannot insert rows in a parallel worker")));
}

static AmWriter
sheetlog_writer(Relation rel, CommandId cid, int options, uint32 token)
{
	sheetlog_forbid_worker();
	return (AmWriter){rel,
					  options & TABLE_INSERT_FROZEN ? FrozenTransactionId : GetCurrentTransactionId(),
					  cid,
					  token,
					  {InvalidTransactionId, 0}};
}

/* What the slot tells of the row that was made of it. */
static void
sheetlog_name_row(const AmWriter *writer, TupleTableSlot *slot, ItemPointer tid)
{
	slot->tts_tid = *tid;
	slot->tts_tableOid = RelationGetRelid(writer->rel);
	if (am_slot_is(slot))
	{
		AmSlot *row = (AmSlot *) slot;

		row->stored = true;
		row->xmin = writer->xid;
		row->cmin = writer->cid;
		row->xmax = InvalidTransactionId;
		row->cmax = 0;
	}
}

static void
sheetlog_insert_slots(const AmWriter *writer, TupleTableSlot **slots, int n)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "sheetlog insert", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	AmPrepared *rows = palloc(sizeof(AmPrepared) * n);
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * n);

	for (int i = 0; i < n; i++)
		am_prepare_row(writer->rel, slots[i], &rows[i]);
	am_write_rows(writer, rows, n, tids);
	for (int i = 0; i < n; i++)
		sheetlog_name_row(writer, slots[i], &tids[i]);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	pgstat_count_heap_insert(writer->rel, n);
}

static void
sheetlog_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
					  struct BulkInsertStateData *bistate)
{
	AmWriter writer = sheetlog_writer(rel, cid, options, 0);

	sheetlog_insert_slots(&writer, &slot, 1);
}

static void
sheetlog_tuple_insert_speculative(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
								  struct BulkInsertStateData *bistate, uint32 token)
{
	AmWriter writer = sheetlog_writer(rel, cid, options, token);

	sheetlog_insert_slots(&writer, &slot, 1);
}

static void
sheetlog_tuple_complete_speculative(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded)
{
	am_settle_speculative(rel, &slot->tts_tid, succeeded);
}

static void
sheetlog_multi_insert(Relation rel, TupleTableSlot **slots, int n, CommandId cid, int options,
					  struct BulkInsertStateData *bistate)
{
	AmWriter writer = sheetlog_writer(rel, cid, options, 0);

	sheetlog_insert_slots(&writer, slots, n);
}

/* ---- the handler ---- */

static const TupleTableSlotOps *
sheetlog_slot_callbacks(Relation rel)
{
	return &AmSlotOps;
}

/* Long values are in overflow pages of the table itself. */
static bool
sheetlog_needs_toast_table(Relation rel)
{
	return false;
}

static const TableAmRoutine sheetlog_routine = {
	.type = T_TableAmRoutine,
	.slot_callbacks = sheetlog_slot_callbacks,
	.scan_begin = am_scan_begin,
	.scan_end = am_scan_end,
	.scan_rescan = am_scan_rescan,
	.scan_getnextslot = am_scan_getnextslot,
	.scan_set_tidrange = am_scan_set_tidrange,
	.scan_getnextslot_tidrange = am_scan_getnextslot_tidrange,
	.parallelscan_estimate = table_block_parallelscan_estimate,
	.parallelscan_initialize = table_block_parallelscan_initialize,
	.parallelscan_reinitialize = table_block_parallelscan_reinitialize,
	.index_fetch_begin = am_fetch_begin,
	.index_fetch_reset = am_fetch_reset,
	.index_fetch_end = am_fetch_end,
	.index_fetch_tuple = am_fetch_tuple,
	.tuple_fetch_row_version = am_fetch_row_version,
	.tuple_tid_valid = am_fetch_tid_valid,
	.tuple_get_latest_tid = am_fetch_latest_tid,
	.tuple_satisfies_snapshot = am_fetch_satisfies,
	.index_delete_tuples = am_fetch_index_delete,
	.tuple_insert = sheetlog_tuple_insert,
	.tuple_insert_speculative = sheetlog_tuple_insert_speculative,
	.tuple_complete_speculative = sheetlog_tuple_complete_speculative,
	.multi_insert = sheetlog_multi_insert,
	.tuple_delete = sheetlog_tuple_delete,
	.tuple_update = sheetlog_tuple_update,
	.tuple_lock = sheetlog_tuple_lock,
	.COMPAT_RELATION_SET_NEW_FILE = am_storage_new,
	.relation_nontransactional_truncate = am_storage_truncate,
	.relation_copy_data = am_storage_copy,
	.relation_copy_for_cluster = am_storage_rewrite,
	.relation_vacuum = am_vacuum,
	.scan_analyze_next_block = am_scan_analyze_next_block,
	.scan_analyze_next_tuple = am_scan_analyze_next_tuple,
	.index_build_range_scan = sheetlog_index_build_range_scan,
	.index_validate_scan = sheetlog_index_validate_scan,
	.relation_size = table_block_relation_size,
	.relation_needs_toast_table = sheetlog_needs_toast_table,
	.relation_estimate_size = am_storage_estimate,
#if PG_VERSION_NUM < 180000
	.scan_bitmap_next_block = am_scan_bitmap_next_block,
#endif
	.scan_bitmap_next_tuple = am_scan_bitmap_next_tuple,
	.scan_sample_next_block = am_scan_sample_next_block,
	.scan_sample_next_tuple = am_scan_sample_next_tuple,
};

Datum
sheetlog_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(&sheetlog_routine);
}

bool
sheetlog_is(Relation rel)
{
	return rel->rd_tableam == &sheetlog_routine;
}

bool
sheetlog_is_handler(Oid function)
{
	FmgrInfo info;

	if (!OidIsValid(function) || get_func_rettype(function) != TABLE_AM_HANDLEROID)
		return false;
	fmgr_info(function, &info);
	return info.fn_addr == sheetlog_handler;
}

void
sheetlog_init(void)
{
	DefineCustomBoolVariable("pg_sheet.allow_log_delete",
							 "Permits superusers to delete rows of tables that use access method sheetlog.",
							 "For repair drills, such as deleting versions that sheet.fsck then restores.",
							 &sheetlog_allow_delete, false, PGC_SUSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(sheetlog_xact_callback, NULL);
	RegisterSubXactCallback(sheetlog_subxact_callback, NULL);
}
