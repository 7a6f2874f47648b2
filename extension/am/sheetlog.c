/*
 * sheetlog.c - the append-only table access method.
 *
 * Derived from heap's routine: pages, WAL, visibility, VACUUM, scans and TOAST are heap's own, so crash safety,
 * replication, checksums and every tool that reads heap pages hold as they are. What makes it a log:
 *
 *   - UPDATE and row locks are refused, and so is DELETE, except for the purge of a sheet and for repair drills of
 * superusers;
 *   - what could never work is refused when it is configured (sheetlog_ddl.c);
 *   - index builds are our own (sheetlog_index.c), since heap's insist on heap.
 *
 * TOAST tables of a log are plain heap tables.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "sheetlog.h"
#include "sheetlog_private.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(sheetlog_handler);

static TableAmRoutine sheetlog_routine;
static const TableAmRoutine *heap_routine = NULL;
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
					  bool *update_indexes)
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
	return heap_routine->tuple_delete(rel, tid, cid, snapshot, crosscheck, wait, tmfd, changing_partition);
}

static TM_Result
sheetlog_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
					LockTupleMode mode, LockWaitPolicy wait_policy, uint8 flags, TM_FailureData *tmfd)
{
	sheetlog_refuse(rel, "lock rows of");
	return TM_Invisible; /* not reached */
}

static Oid
sheetlog_relation_toast_am(Relation rel)
{
	return HEAP_TABLE_AM_OID;
}

/* ---- the handler ---- */

static void
sheetlog_make_routine(void)
{
	heap_routine = GetHeapamTableAmRoutine();
	sheetlog_routine = *heap_routine;
	sheetlog_routine.tuple_update = sheetlog_tuple_update;
	sheetlog_routine.tuple_delete = sheetlog_tuple_delete;
	sheetlog_routine.tuple_lock = sheetlog_tuple_lock;
	sheetlog_routine.relation_toast_am = sheetlog_relation_toast_am;
	sheetlog_routine.index_build_range_scan = sheetlog_index_build_range_scan;
	sheetlog_routine.index_validate_scan = sheetlog_index_validate_scan;
}

Datum
sheetlog_handler(PG_FUNCTION_ARGS)
{
	if (heap_routine == NULL)
		sheetlog_make_routine();
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
							 "Lets superusers delete rows of tables that use access method sheetlog.",
							 "For repair drills, such as deleting checkpoints to see sheet.fsck restore them.",
							 &sheetlog_allow_delete, false, PGC_SUSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(sheetlog_xact_callback, NULL);
	RegisterSubXactCallback(sheetlog_subxact_callback, NULL);
	sheetlog_ddl_init();
}
