/* am_visibility.c - see am_visibility.h. */
#include "postgres.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "am/page/am_visibility.h"
#include "storage/predicate.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

/* ---- MVCC ---- */

static bool
am_mvcc_inserted(const AmRun *run, Snapshot snapshot)
{
	if (run->frozen)
		return true;
	if (TransactionIdIsCurrentTransactionId(run->xid))
		return run->cid < snapshot->curcid;
	if (XidInMVCCSnapshot(run->xid, snapshot))
		return false;
	return TransactionIdDidCommit(run->xid);
}

static bool
am_mvcc_deleted(AmDeleter by, Snapshot snapshot)
{
	if (!TransactionIdIsValid(by.xid))
		return false;
	if (TransactionIdIsCurrentTransactionId(by.xid))
		return by.cid < snapshot->curcid;
	if (XidInMVCCSnapshot(by.xid, snapshot))
		return false;
	return TransactionIdDidCommit(by.xid);
}

/* ---- the present, for unique checks ---- */

/* For SNAPSHOT_DIRTY, returns the transaction in progress, so that the caller can wait for it. */
static bool
am_now_inserted(const AmRun *run, Snapshot snapshot)
{
	if (run->frozen || TransactionIdIsCurrentTransactionId(run->xid))
		return true;
	if (TransactionIdIsInProgress(run->xid))
	{
		if (snapshot->snapshot_type != SNAPSHOT_DIRTY)
			return false;
		snapshot->xmin = run->xid;
		snapshot->speculativeToken = run->token;
		return true;
	}
	return TransactionIdDidCommit(run->xid);
}

static bool
am_now_deleted(AmDeleter by, Snapshot snapshot)
{
	if (!TransactionIdIsValid(by.xid))
		return false;
	if (TransactionIdIsCurrentTransactionId(by.xid))
		return true;
	if (TransactionIdIsInProgress(by.xid))
	{
		if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
			snapshot->xmax = by.xid;
		return false;
	}
	return TransactionIdDidCommit(by.xid);
}

static bool
am_now_visible(const AmWalk *walk, Snapshot snapshot)
{
	if (snapshot->snapshot_type == SNAPSHOT_DIRTY)
	{
		snapshot->xmin = snapshot->xmax = InvalidTransactionId;
		snapshot->speculativeToken = 0;
	}
	return am_now_inserted(&walk->run, snapshot) && !am_now_deleted(am_row_deleted_by(walk), snapshot);
}

/* ---- who might need it ---- */

AmRowState
am_visibility_state(TransactionId xmin, TransactionId xmax, TransactionId oldest_xmin, TransactionId *xid)
{
	*xid = xmin;
	if (xmin != FrozenTransactionId)
	{
		if (TransactionIdIsCurrentTransactionId(xmin) || TransactionIdIsInProgress(xmin))
		{
			if (!TransactionIdIsValid(xmax) || !TransactionIdIsCurrentTransactionId(xmax))
				return AM_STATE_INSERTING;
			return AM_STATE_DELETING;
		}
		if (!TransactionIdDidCommit(xmin))
			return AM_STATE_DEAD;
	}
	if (!TransactionIdIsValid(xmax))
		return AM_STATE_LIVE;
	*xid = xmax;
	if (TransactionIdIsCurrentTransactionId(xmax) || TransactionIdIsInProgress(xmax))
		return AM_STATE_DELETING;
	if (!TransactionIdDidCommit(xmax))
		return AM_STATE_LIVE;
	return TransactionIdIsValid(oldest_xmin) && TransactionIdPrecedes(xmax, oldest_xmin) ? AM_STATE_DEAD
																						 : AM_STATE_RECENTLY_DEAD;
}

AmRowState
am_row_state(const AmWalk *walk, TransactionId oldest_xmin, TransactionId *xid)
{
	*xid = walk->run.xid;
	if (am_row_deleter(walk->row.tag) == AM_DEAD)
		return AM_STATE_DEAD;
	return am_visibility_state(walk->run.frozen ? FrozenTransactionId : walk->run.xid, am_row_deleted_by(walk).xid,
							   oldest_xmin, xid);
}

bool
am_run_has_failed(const AmRun *run)
{
	return !run->frozen && !TransactionIdIsCurrentTransactionId(run->xid) && !TransactionIdIsInProgress(run->xid) &&
		   !TransactionIdDidCommit(run->xid);
}

static bool
am_not_vacuumable(const AmWalk *walk, Snapshot snapshot)
{
	TransactionId xid;

	switch (am_row_state(walk, InvalidTransactionId, &xid))
	{
		case AM_STATE_DEAD:
			return false;
		case AM_STATE_RECENTLY_DEAD:
			return !GlobalVisTestIsRemovableXid(snapshot->vistest, xid);
		default:
			return true;
	}
}

/* ---- visibility checks ---- */

void
am_visibility_begin(AmVisibility *visibility, Relation rel, Snapshot snapshot)
{
	visibility->snapshot = snapshot;
	visibility->rel = rel;
	visibility->serializable =
		snapshot != NULL && IsMVCCSnapshot(snapshot) && CheckForSerializableConflictOutNeeded(rel, snapshot);
	visibility->run_pos = 0;
}

/* A serializable reader must know of writers that it does not see. */
static void
am_conflict_out(AmVisibility *visibility, TransactionId xid)
{
	if (!TransactionIdIsNormal(xid) || TransactionIdIsCurrentTransactionId(xid) ||
		TransactionIdPrecedes(xid, TransactionXmin))
		return;
	xid = SubTransGetTopmostTransaction(xid);
	if (TransactionIdPrecedes(xid, TransactionXmin) || TransactionIdEquals(xid, GetTopTransactionIdIfAny()))
		return;
	CheckForSerializableConflictOut(visibility->rel, xid, visibility->snapshot);
}

static bool
am_visibility_mvcc(AmVisibility *visibility, const AmWalk *walk)
{
	AmDeleter by;

	if (visibility->run_pos != walk->run.pos)
	{
		visibility->run_pos = walk->run.pos;
		visibility->run_visible = am_mvcc_inserted(&walk->run, visibility->snapshot);
		if (visibility->serializable && !visibility->run_visible)
			am_conflict_out(visibility, walk->run.xid);
	}
	if (!visibility->run_visible)
		return false;
	if (likely(am_row_deleter(walk->row.tag) == 0))
		return true;
	by = am_row_deleted_by(walk);
	if (visibility->serializable)
		am_conflict_out(visibility, by.xid);
	return !am_mvcc_deleted(by, visibility->snapshot);
}

bool
am_visibility_check(AmVisibility *visibility, const AmWalk *walk)
{
	if (unlikely(am_row_deleter(walk->row.tag) == AM_DEAD))
		return false;
	switch (visibility->snapshot->snapshot_type)
	{
		case SNAPSHOT_MVCC:
			return am_visibility_mvcc(visibility, walk);
		case SNAPSHOT_SELF:
		case SNAPSHOT_DIRTY:
			return am_now_visible(walk, visibility->snapshot);
		case SNAPSHOT_NON_VACUUMABLE:
			return am_not_vacuumable(walk, visibility->snapshot);
		case SNAPSHOT_ANY:
			return true;
		default:
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("access method \"sheetlog\" cannot be read with this kind of snapshot")));
	}
	return false; /* not reached */
}
