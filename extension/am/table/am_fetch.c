/* am_fetch.c - single rows by their TIDs. */
#include "postgres.h"

#include "access/xlog.h"
#include "am/table/am_fetch.h"
#include "am/page/am_row.h"
#include "am/table/am_scan.h"
#include "am/page/am_space.h"
#include "am/page/am_standby.h"
#include "am/page/am_visibility.h"
#include "pgstat.h"
#include "storage/predicate.h"

typedef struct AmFetch
{
	IndexFetchTableData base; /* must be first */
	Buffer buffer;			  /* pinned: of the last row */
	AmWalk walk;			  /* stands at that row, so that ascending TIDs cost one walk over the page */
	bool replayed;			  /* the page may have been replayed since: pins do not keep rows where they are */
} AmFetch;

IndexFetchTableData *
am_fetch_begin(Relation rel)
{
	AmFetch *fetch = palloc0(sizeof(AmFetch));

	fetch->base.rel = rel;
	fetch->buffer = InvalidBuffer;
	return &fetch->base;
}

void
am_fetch_reset(IndexFetchTableData *data)
{
	AmFetch *fetch = (AmFetch *) data;

	if (BufferIsValid(fetch->buffer))
		ReleaseBuffer(fetch->buffer);
	fetch->buffer = InvalidBuffer;
}

void
am_fetch_end(IndexFetchTableData *data)
{
	am_fetch_reset(data);
	pfree(data);
}

static void
am_fetch_turn_to(AmFetch *fetch, BlockNumber block)
{
	if (BufferIsValid(fetch->buffer) && BufferGetBlockNumber(fetch->buffer) == block)
		return;
	am_fetch_reset(&fetch->base);
	fetch->buffer = am_space_read(fetch->base.rel, block, NULL);
	memset(&fetch->walk, 0, sizeof(fetch->walk));
	fetch->walk.page = BufferGetPage(fetch->buffer);
}

/* Finds the row on the locked page and asks whether the snapshot sees it. */
static bool
am_fetch_find(Relation rel, Buffer buffer, AmWalk *walk, OffsetNumber offset, Snapshot snapshot)
{
	AmVisibility visibility;

	if (!am_space_is(buffer, AM_PAGE_DATA) || !am_walk_seek(walk, offset))
	{
		if (walk->damage != NULL)
			am_space_damaged(rel, BufferGetBlockNumber(buffer), walk->damage);
		return false;
	}
	am_visibility_begin(&visibility, rel, snapshot);
	return am_visibility_check(&visibility, walk);
}

bool
am_fetch_tuple(IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, bool *call_again,
			   bool *all_dead)
{
	AmFetch *fetch = (AmFetch *) data;
	bool found;

	*call_again = false;
	if (all_dead != NULL)
		*all_dead = false;
	am_fetch_turn_to(fetch, ItemPointerGetBlockNumber(tid));
	LockBuffer(fetch->buffer, BUFFER_LOCK_SHARE);
	if (unlikely(fetch->replayed))
		fetch->walk.row.offset = 0; /* where it stands may have moved */
	fetch->replayed = RecoveryInProgress();
	found = am_fetch_find(data->rel, fetch->buffer, &fetch->walk, ItemPointerGetOffsetNumber(tid), snapshot);
	if (found)
	{
		AmSource source = am_standby_source(fetch->buffer);

		am_slot_store(slot, data->rel, &source, &fetch->walk);
		PredicateLockTID(data->rel, tid, snapshot, fetch->walk.run.xid);
	}
	LockBuffer(fetch->buffer, BUFFER_LOCK_UNLOCK);
	return found;
}

bool
am_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	Buffer buffer = am_space_read(rel, ItemPointerGetBlockNumber(tid), NULL);
	AmWalk walk = {.page = BufferGetPage(buffer)};
	bool found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = am_fetch_find(rel, buffer, &walk, ItemPointerGetOffsetNumber(tid), snapshot);
	if (found)
	{
		AmSource source = am_standby_source(buffer);

		am_slot_store(slot, rel, &source, &walk);
		PredicateLockTID(rel, tid, snapshot, walk.run.xid);
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

bool
am_fetch_tid_valid(TableScanDesc sscan, ItemPointer tid)
{
	AmScan *scan = (AmScan *) sscan;

	return ItemPointerIsValid(tid) && ItemPointerGetBlockNumber(tid) < scan->nblocks;
}

/* Rows have one version. */
void
am_fetch_latest_tid(TableScanDesc sscan, ItemPointer tid)
{
}

bool
am_fetch_satisfies(Relation rel, TupleTableSlot *slot, Snapshot snapshot)
{
	Buffer buffer = am_space_read(rel, ItemPointerGetBlockNumber(&slot->tts_tid), NULL);
	AmWalk walk = {.page = BufferGetPage(buffer)};
	bool seen;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	seen = am_fetch_find(rel, buffer, &walk, ItemPointerGetOffsetNumber(&slot->tts_tid), snapshot);
	UnlockReleaseBuffer(buffer);
	return seen;
}

/* Rows are looked at while the page is locked: nobody has to be able to see them. */
bool
am_fetch_reaches(Relation rel, BlockNumber block, const AttrNumber *columns, int64 key, int64 position)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Buffer buffer = am_space_read(rel, block, NULL);
	AmSource source = am_standby_source(buffer);
	bool found = false, isnull;
	TransactionId xid;
	AmWalk walk;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (am_space_is(buffer, AM_PAGE_DATA))
	{
		am_walk_begin(&walk, source.page);
		while (!found && am_walk_next(&walk))
		{
			if (am_row_state(&walk, InvalidTransactionId, &xid) == AM_STATE_DEAD)
				continue;
			am_slot_store(slot, rel, &source, &walk);
			found = DatumGetInt64(slot_getattr(slot, columns[0], &isnull)) == key &&
					DatumGetInt64(slot_getattr(slot, columns[1], &isnull)) >= position;
		}
	}
	ExecDropSingleTupleTableSlot(slot);
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * Index entries go with VACUUM only. Saying so must not be an error: B-trees ask when a key is inserted again after an
 * abort.
 */
TransactionId
am_fetch_index_delete(Relation rel, TM_IndexDeleteOp *delstate)
{
	delstate->ndeltids = 0;
	return InvalidTransactionId;
}
