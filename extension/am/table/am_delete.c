/*
 * am_delete.c - DELETE, which only the purge of sheets and repair drills are allowed.
 *
 * Rows have no xmax. A deletion writes the number of one of the page's few slots for deleters into the row's tag; rows
 * that one command deletes share a slot. When another one is needed, a slot is given up whose transaction has failed,
 * or whose deletions everybody sees; else two are made one that nobody has to tell apart, such as those of
 * subtransactions that were released into the same one. So a transaction needs more than one only while savepoints are
 * open.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "am/page/am_space.h"
#include "am/page/am_standby.h"
#include "am/page/am_visibility.h"
#include "am/table/am_write.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

/* ---- slots ---- */

/* Gives the rows of a slot another mark: none, or dead. */
static void
am_remark_rows(Page page, int slot, uint8 mark)
{
	AmWalk walk;

	am_walk_begin(&walk, page);
	while (am_walk_next(&walk))
	{
		uint8 *tag = (uint8 *) page + walk.row.pos;

		if (am_row_deleter(*tag) == slot + 1)
			*tag = (*tag & ~AM_ROW_DELETER) | (mark << AM_ROW_DELETER_POS);
	}
}

/* Frees the slot if nobody needs to know of it. */
static bool
am_give_up_slot(Relation rel, Page page, int slot, TransactionId oldest_xmin)
{
	AmDeleter *by = &am_special(page)->deleters[slot];

	if (TransactionIdIsCurrentTransactionId(by->xid) || TransactionIdIsInProgress(by->xid))
		return false;
	if (TransactionIdDidCommit(by->xid))
	{
		if (!TransactionIdPrecedes(by->xid, oldest_xmin))
			return false;
		am_standby_conflict(rel, by->xid);
		am_remark_rows(page, slot, AM_DEAD);
	}
	else
		am_remark_rows(page, slot, 0);
	*by = (AmDeleter){InvalidTransactionId, 0};
	return true;
}

/*
 * The subtransaction, of those that are open, on whose end a subtransaction of our own depends: what was released into
 * it, at any depth, stands and falls with it. All that are open have xids, since the innermost one has.
 */
static TransactionId
am_open_owner(TransactionId xid)
{
	TransactionId innermost = GetCurrentTransactionId();

	for (; TransactionIdIsValid(xid); xid = SubTransGetParent(xid))
		for (TransactionId open = innermost; TransactionIdIsValid(open); open = SubTransGetParent(open))
			if (open == xid)
				return xid;
	return InvalidTransactionId;
}

/* Names each of our own deleters by its owner, so that what we leave behind needs few slots when we have ended. */
static void
am_name_owners(Page page)
{
	AmDeleter *deleters = am_special(page)->deleters;

	for (int i = 0; i < AM_DELETERS; i++)
		if (TransactionIdIsCurrentTransactionId(deleters[i].xid))
			deleters[i].xid = am_open_owner(deleters[i].xid);
}

/*
 * Deleters of one family stand and fall together: nobody can see the rows of one as deleted, and those of another not.
 * Which subtransactions of others are open is not known: each is alone, and so is one that has failed meanwhile. Of
 * those that ended before our snapshot was taken only the names can be compared.
 */
static TransactionId
am_family(TransactionId xid)
{
	if (TransactionIdIsCurrentTransactionId(xid))
		return xid;
	if (TransactionIdIsInProgress(xid) || !TransactionIdDidCommit(xid))
		return InvalidTransactionId;
	return TransactionIdPrecedes(xid, TransactionXmin) ? xid : SubTransGetTopmostTransaction(xid);
}

/*
 * Makes one slot of two of a family; the one that became free, or -1 when there are no two. Rows of the earlier command
 * count as deleted by the later: of these two, only cursors and outer statements of our own transaction from in between
 * could tell the difference, so our own are taken when there are no others, and the oldest ones of them.
 */
static int
am_merge_slots(Page page)
{
	AmDeleter *deleters = am_special(page)->deleters;
	TransactionId families[AM_DELETERS];
	int earlier = -1, later = -1;

	for (int i = 0; i < AM_DELETERS; i++)
		families[i] = am_family(deleters[i].xid);
	for (int own = 0; own <= 1 && later < 0; own++)
		for (int i = 0; i < AM_DELETERS; i++)
			for (int j = 0; j < AM_DELETERS; j++)
				if (i != j && TransactionIdIsValid(families[i]) && families[i] == families[j] &&
					deleters[i].cid <= deleters[j].cid && TransactionIdIsCurrentTransactionId(families[i]) == own &&
					(later < 0 || deleters[j].cid < deleters[later].cid))
				{
					earlier = i;
					later = j;
				}
	if (later >= 0)
		am_remark_rows(page, earlier, later + 1);
	return earlier;
}

/* Finds a slot for the deleter on the page image, giving up those that nobody needs; -1 when all are in use. */
static int
am_deleter_slot(Relation rel, Page page, TransactionId xid, CommandId cid, TransactionId oldest_xmin)
{
	AmDeleter *deleters = am_special(page)->deleters;
	int slot;

	for (int i = 0; i < AM_DELETERS; i++)
		if (deleters[i].xid == xid && deleters[i].cid == cid)
			return i;
	am_name_owners(page);
	for (int i = 0; i < AM_DELETERS; i++)
		if (!TransactionIdIsValid(deleters[i].xid) || am_give_up_slot(rel, page, i, oldest_xmin))
		{
			deleters[i] = (AmDeleter){xid, cid};
			return i;
		}
	slot = am_merge_slots(page);
	if (slot >= 0)
		deleters[slot] = (AmDeleter){xid, cid};
	return slot;
}

/* ---- deleting ---- */

static TM_Result
am_delete_failure(const AmWalk *walk, ItemPointer tid, AmDeleter by, TM_Result result, TM_FailureData *failure)
{
	failure->ctid = *tid;
	failure->xmax = by.xid;
	failure->cmax = result == TM_SelfModified ? by.cid : InvalidCommandId;
	failure->traversed = false;
	return result;
}

/* May the row be deleted now? TM_BeingModified: by->xid has to end first. */
static TM_Result
am_may_delete(const AmWalk *walk, Snapshot crosscheck, AmDeleter *by)
{
	AmVisibility visibility;

	*by = am_row_deleted_by(walk);
	if (am_row_deleter(walk->row.tag) == AM_DEAD)
		return TM_Invisible;
	if (!walk->run.frozen && !TransactionIdIsCurrentTransactionId(walk->run.xid) &&
		(TransactionIdIsInProgress(walk->run.xid) || !TransactionIdDidCommit(walk->run.xid)))
		return TM_Invisible;
	if (TransactionIdIsValid(by->xid))
	{
		if (TransactionIdIsCurrentTransactionId(by->xid))
			return TM_SelfModified;
		if (TransactionIdIsInProgress(by->xid))
			return TM_BeingModified;
		if (TransactionIdDidCommit(by->xid))
			return TM_Deleted;
	}
	if (crosscheck != InvalidSnapshot)
	{
		am_visibility_begin(&visibility, NULL, crosscheck);
		visibility.serializable = false;
		if (!am_visibility_check(&visibility, walk))
			return TM_Updated;
	}
	return TM_Ok;
}

/* All slots are taken by deleters that have to be told apart. */
static void
am_refuse_deleter(Relation rel, Buffer buffer)
{
	const AmDeleter *deleters = am_special(BufferGetPage(buffer))->deleters;
	int own = 0, in_progress = 0;

	for (int i = 0; i < AM_DELETERS; i++)
		if (TransactionIdIsCurrentTransactionId(deleters[i].xid))
			own++;
		else if (TransactionIdIsInProgress(deleters[i].xid))
			in_progress++;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("too many transactions delete from block %u of table \"%s\"", BufferGetBlockNumber(buffer),
					RelationGetRelationName(rel)),
			 errdetail("Rows of the block were deleted by %d open subtransactions of this transaction, %d other "
					   "transactions in progress and %d that have ended, but not for all snapshots.",
					   own, in_progress, AM_DELETERS - own - in_progress),
			 own > 1 ? errhint("Release savepoints before deleting more rows.")
					 : errhint("Try again in a new transaction when those in progress, and those with older snapshots, "
							   "have ended.")));
}

static void
am_mark_deleted(Relation rel, Buffer meta, Buffer buffer, OffsetNumber offset, AmDeleter by)
{
	GenericXLogState *state = GenericXLogStart(rel);
	Page page = GenericXLogRegisterBuffer(state, buffer, 0);
	int slot = am_deleter_slot(rel, page, by.xid, by.cid, GetOldestNonRemovableTransactionId(rel));
	AmWalk walk;
	uint8 *tag;

	if (slot < 0)
		am_refuse_deleter(rel, buffer);
	am_walk_begin(&walk, page);
	(void) am_walk_to(&walk, offset);
	tag = (uint8 *) page + walk.row.pos;
	*tag = (*tag & ~AM_ROW_DELETER) | ((slot + 1) << AM_ROW_DELETER_POS);
	if (BufferIsValid(meta))
		am_space_note_work(GenericXLogRegisterBuffer(state, meta, 0), BufferGetBlockNumber(buffer));
	GenericXLogFinish(state);
}

TM_Result
am_delete_row(Relation rel, ItemPointer tid, CommandId cid, Snapshot crosscheck, bool wait, TM_FailureData *failure)
{
	AmDeleter me = {GetCurrentTransactionId(), cid}, by = {InvalidTransactionId, 0};
	Buffer buffer = am_space_read(rel, ItemPointerGetBlockNumber(tid), NULL), meta;
	TM_Result result;
	AmWalk walk;

	for (;;)
	{
		meta = am_space_lock_for_work(rel, buffer);
		result = TM_Invisible;
		if (am_space_is(buffer, AM_PAGE_DATA))
		{
			am_walk_begin(&walk, BufferGetPage(buffer));
			if (am_walk_to(&walk, ItemPointerGetOffsetNumber(tid)))
				result = am_may_delete(&walk, crosscheck, &by);
		}
		if (result != TM_BeingModified || !wait)
			break;
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (BufferIsValid(meta))
			UnlockReleaseBuffer(meta);
		XactLockTableWait(by.xid, rel, tid, XLTW_Delete);
	}
	if (result == TM_Ok)
	{
		CheckForSerializableConflictIn(rel, tid, BufferGetBlockNumber(buffer));
		am_mark_deleted(rel, meta, buffer, ItemPointerGetOffsetNumber(tid), me);
	}
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
	UnlockReleaseBuffer(buffer);
	if (result == TM_Invisible)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("attempted to delete a row that is not visible")));
	if (result != TM_Ok)
		return am_delete_failure(&walk, tid, by, result, failure);
	pgstat_count_heap_delete(rel);
	return TM_Ok;
}
