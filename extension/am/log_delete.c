/*
 * log_delete.c - DELETE, which only the purge of sheets and repair drills are allowed.
 *
 * Rows have no xmax. A deletion writes the number of one of the page's few slots for deleters into the row's tag; rows
 * that one command deletes share a slot. A slot whose transaction has failed, or whose deletions everybody sees, is
 * given up when another one is needed.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "log_space.h"
#include "log_standby.h"
#include "log_visibility.h"
#include "log_write.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

/* ---- slots ---- */

/* Gives the rows of a slot another mark: none, or dead. */
static void
log_remark_rows(Page page, int slot, uint8 mark)
{
	LogWalk walk;

	log_walk_begin(&walk, page);
	while (log_walk_next(&walk))
	{
		uint8 *tag = (uint8 *) page + walk.row.pos;

		if (log_row_deleter(*tag) == slot + 1)
			*tag = (*tag & ~LOG_ROW_DELETER) | (mark << LOG_ROW_DELETER_POS);
	}
}

/* Frees the slot if nobody needs to know of it. */
static bool
log_give_up_slot(Relation rel, Page page, int slot, TransactionId oldest_xmin)
{
	LogDeleter *by = &log_special(page)->deleters[slot];

	if (TransactionIdIsCurrentTransactionId(by->xid) || TransactionIdIsInProgress(by->xid))
		return false;
	if (TransactionIdDidCommit(by->xid))
	{
		if (!TransactionIdIsValid(oldest_xmin) || !TransactionIdPrecedes(by->xid, oldest_xmin))
			return false;
		log_standby_tell(rel, by->xid);
		log_remark_rows(page, slot, LOG_DEAD);
	}
	else
		log_remark_rows(page, slot, 0);
	*by = (LogDeleter){InvalidTransactionId, 0};
	return true;
}

/*
 * Makes one slot of two that older commands of the transaction have: the rows of the earlier one count as deleted by
 * the later. Only the transaction's own cursors from in between could tell the difference. -1: there are no two.
 */
static int
log_merge_slots(Page page, TransactionId xid)
{
	LogDeleter *deleters = log_special(page)->deleters;
	int first = -1, second = -1;

	for (int i = 0; i < LOG_DELETERS; i++)
	{
		if (deleters[i].xid != xid)
			continue;
		if (first < 0 || deleters[i].cid < deleters[first].cid)
		{
			second = first;
			first = i;
		}
		else if (second < 0 || deleters[i].cid < deleters[second].cid)
			second = i;
	}
	if (second >= 0)
		log_remark_rows(page, first, second + 1);
	return second < 0 ? -1 : first;
}

int
log_deleter_slot(Relation rel, Page page, TransactionId xid, CommandId cid, TransactionId oldest_xmin)
{
	LogDeleter *deleters = log_special(page)->deleters;
	int slot;

	for (int i = 0; i < LOG_DELETERS; i++)
		if (deleters[i].xid == xid && deleters[i].cid == cid)
			return i;
	for (int i = 0; i < LOG_DELETERS; i++)
		if (!TransactionIdIsValid(deleters[i].xid) || log_give_up_slot(rel, page, i, oldest_xmin))
		{
			deleters[i] = (LogDeleter){xid, cid};
			return i;
		}
	slot = log_merge_slots(page, xid);
	if (slot >= 0)
		deleters[slot] = (LogDeleter){xid, cid};
	return slot;
}

/* ---- deleting ---- */

static TM_Result
log_delete_failure(const LogWalk *walk, ItemPointer tid, LogDeleter by, TM_Result result, TM_FailureData *failure)
{
	failure->ctid = *tid;
	failure->xmax = by.xid;
	failure->cmax = result == TM_SelfModified ? by.cid : InvalidCommandId;
	failure->traversed = false;
	return result;
}

/* May the row be deleted now? TM_BeingModified: by->xid has to end first. */
static TM_Result
log_may_delete(const LogWalk *walk, Snapshot crosscheck, LogDeleter *by)
{
	LogJudge judge;

	*by = log_row_deleted_by(walk);
	if (log_row_deleter(walk->row.tag) == LOG_DEAD)
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
		log_judge_begin(&judge, NULL, crosscheck);
		judge.serializable = false;
		if (!log_judge_row(&judge, walk))
			return TM_Updated;
	}
	return TM_Ok;
}

static void
log_mark_deleted(Relation rel, Buffer meta, Buffer buffer, OffsetNumber offset, LogDeleter by)
{
	GenericXLogState *state = GenericXLogStart(rel);
	Page page = GenericXLogRegisterBuffer(state, buffer, 0);
	int slot = log_deleter_slot(rel, page, by.xid, by.cid, GetOldestNonRemovableTransactionId(rel));
	LogWalk walk;
	uint8 *tag;

	if (slot < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("too many transactions delete from block %u of table \"%s\"", BufferGetBlockNumber(buffer),
						RelationGetRelationName(rel)),
				 errdetail("Older transactions can still see what the last %d of them have deleted.", LOG_DELETERS),
				 errhint("Try again when those transactions have ended.")));
	log_walk_begin(&walk, page);
	(void) log_walk_to(&walk, offset);
	tag = (uint8 *) page + walk.row.pos;
	*tag = (*tag & ~LOG_ROW_DELETER) | ((slot + 1) << LOG_ROW_DELETER_POS);
	if (BufferIsValid(meta))
		log_space_note_work(GenericXLogRegisterBuffer(state, meta, 0), BufferGetBlockNumber(buffer));
	GenericXLogFinish(state);
}

TM_Result
log_delete_row(Relation rel, ItemPointer tid, CommandId cid, Snapshot crosscheck, bool wait, TM_FailureData *failure)
{
	LogDeleter me = {GetCurrentTransactionId(), cid}, by = {InvalidTransactionId, 0};
	Buffer buffer = log_space_read(rel, ItemPointerGetBlockNumber(tid), NULL), meta;
	TM_Result result;
	LogWalk walk;

	for (;;)
	{
		meta = log_space_lock_for_work(rel, buffer);
		result = TM_Invisible;
		if (log_space_is(buffer, LOG_PAGE_DATA))
		{
			log_walk_begin(&walk, BufferGetPage(buffer));
			if (log_walk_to(&walk, ItemPointerGetOffsetNumber(tid)))
				result = log_may_delete(&walk, crosscheck, &by);
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
		log_mark_deleted(rel, meta, buffer, ItemPointerGetOffsetNumber(tid), me);
	}
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
	UnlockReleaseBuffer(buffer);
	if (result == TM_Invisible)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("attempted to delete a row that is not visible")));
	if (result != TM_Ok)
		return log_delete_failure(&walk, tid, by, result, failure);
	pgstat_count_heap_delete(rel);
	return TM_Ok;
}
