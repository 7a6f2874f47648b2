/* log_fetch.c - single rows by their TIDs. */
#include "postgres.h"

#include "access/xlog.h"
#include "am/table/log_fetch.h"
#include "am/page/log_row.h"
#include "am/table/log_scan.h"
#include "am/page/log_space.h"
#include "am/page/log_standby.h"
#include "am/page/log_visibility.h"
#include "pgstat.h"
#include "storage/predicate.h"

typedef struct LogFetch
{
	IndexFetchTableData base; /* must be first */
	Buffer buffer;			  /* pinned: of the last row */
	LogWalk walk;			  /* stands at that row, so that ascending TIDs cost one walk over the page */
	bool replayed;			  /* the page may have been replayed since: pins do not keep rows where they are */
} LogFetch;

IndexFetchTableData *
log_fetch_begin(Relation rel)
{
	LogFetch *fetch = palloc0(sizeof(LogFetch));

	fetch->base.rel = rel;
	fetch->buffer = InvalidBuffer;
	return &fetch->base;
}

void
log_fetch_reset(IndexFetchTableData *data)
{
	LogFetch *fetch = (LogFetch *) data;

	if (BufferIsValid(fetch->buffer))
		ReleaseBuffer(fetch->buffer);
	fetch->buffer = InvalidBuffer;
}

void
log_fetch_end(IndexFetchTableData *data)
{
	log_fetch_reset(data);
	pfree(data);
}

static void
log_fetch_turn_to(LogFetch *fetch, BlockNumber block)
{
	if (BufferIsValid(fetch->buffer) && BufferGetBlockNumber(fetch->buffer) == block)
		return;
	log_fetch_reset(&fetch->base);
	fetch->buffer = log_space_read(fetch->base.rel, block, NULL);
	memset(&fetch->walk, 0, sizeof(fetch->walk));
	fetch->walk.page = BufferGetPage(fetch->buffer);
}

/* Finds the row on the locked page and asks whether the snapshot sees it. */
static bool
log_fetch_find(Relation rel, Buffer buffer, LogWalk *walk, OffsetNumber offset, Snapshot snapshot)
{
	LogVisibility visibility;

	if (!log_space_is(buffer, LOG_PAGE_DATA) || !log_walk_seek(walk, offset))
	{
		if (walk->damage != NULL)
			log_space_damaged(rel, BufferGetBlockNumber(buffer), walk->damage);
		return false;
	}
	log_visibility_begin(&visibility, rel, snapshot);
	return log_visibility_check(&visibility, walk);
}

bool
log_fetch_tuple(IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, bool *call_again,
				bool *all_dead)
{
	LogFetch *fetch = (LogFetch *) data;
	bool found;

	*call_again = false;
	if (all_dead != NULL)
		*all_dead = false;
	log_fetch_turn_to(fetch, ItemPointerGetBlockNumber(tid));
	LockBuffer(fetch->buffer, BUFFER_LOCK_SHARE);
	if (unlikely(fetch->replayed))
		fetch->walk.row.offset = 0; /* where it stands may have moved */
	fetch->replayed = RecoveryInProgress();
	found = log_fetch_find(data->rel, fetch->buffer, &fetch->walk, ItemPointerGetOffsetNumber(tid), snapshot);
	if (found)
	{
		LogSource source = log_standby_source(fetch->buffer);

		log_slot_store(slot, data->rel, &source, &fetch->walk);
		PredicateLockTID(data->rel, tid, snapshot, fetch->walk.run.xid);
	}
	LockBuffer(fetch->buffer, BUFFER_LOCK_UNLOCK);
	return found;
}

bool
log_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	Buffer buffer = log_space_read(rel, ItemPointerGetBlockNumber(tid), NULL);
	LogWalk walk = {.page = BufferGetPage(buffer)};
	bool found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = log_fetch_find(rel, buffer, &walk, ItemPointerGetOffsetNumber(tid), snapshot);
	if (found)
	{
		LogSource source = log_standby_source(buffer);

		log_slot_store(slot, rel, &source, &walk);
		PredicateLockTID(rel, tid, snapshot, walk.run.xid);
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

bool
log_fetch_tid_valid(TableScanDesc sscan, ItemPointer tid)
{
	LogScan *scan = (LogScan *) sscan;

	return ItemPointerIsValid(tid) && ItemPointerGetBlockNumber(tid) < scan->nblocks;
}

/* Rows have one version. */
void
log_fetch_latest_tid(TableScanDesc sscan, ItemPointer tid)
{
}

bool
log_fetch_satisfies(Relation rel, TupleTableSlot *slot, Snapshot snapshot)
{
	Buffer buffer = log_space_read(rel, ItemPointerGetBlockNumber(&slot->tts_tid), NULL);
	LogWalk walk = {.page = BufferGetPage(buffer)};
	bool seen;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	seen = log_fetch_find(rel, buffer, &walk, ItemPointerGetOffsetNumber(&slot->tts_tid), snapshot);
	UnlockReleaseBuffer(buffer);
	return seen;
}

/* Rows are looked at while the page is locked: nobody has to be able to see them. */
bool
log_fetch_reaches(Relation rel, BlockNumber block, const AttrNumber *columns, int64 key, int64 position)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Buffer buffer = log_space_read(rel, block, NULL);
	LogSource source = log_standby_source(buffer);
	bool found = false, isnull;
	TransactionId xid;
	LogWalk walk;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (log_space_is(buffer, LOG_PAGE_DATA))
	{
		log_walk_begin(&walk, source.page);
		while (!found && log_walk_next(&walk))
		{
			if (log_row_state(&walk, InvalidTransactionId, &xid) == LOG_STATE_DEAD)
				continue;
			log_slot_store(slot, rel, &source, &walk);
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
log_fetch_index_delete(Relation rel, TM_IndexDeleteOp *delstate)
{
	delstate->ndeltids = 0;
	return InvalidTransactionId;
}
