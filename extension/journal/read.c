/*
 * read.c - the cells that the caller's snapshot sees.
 *
 * From the shared grid when that holds exactly what the snapshot sees, else rebuilt privately from checkpoint and log.
 * The rule is proved in docs/ARCHITECTURE.md: the grid is right for a snapshot that sees its last transaction and does
 * not see the one that is writing. Both are looked at, and the cells handed over, under one hold of the entry's lock.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "cache.h"
#include "journal.h"
#include "replay.h"
#include "sheetlog.h"
#include "sheetmeta.h"
#include "storage.h"
#include "trim.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "writer.h"

/* ---- the backend's own memory as an allocator ---- */

static void *
read_context_alloc(void *ctx, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) ctx, size);
}

static void
read_context_free(void *ctx, void *ptr, size_t size)
{
	pfree(ptr);
}

GridAllocator
journal_context_allocator(void)
{
	return (GridAllocator){read_context_alloc, read_context_free, CurrentMemoryContext};
}

/* ---- reading ---- */

typedef struct ReadCall
{
	int64 sheet_id;
	const uint32 *rect;
	bool fresh;
	JournalView *view;
	JournalCellFn fn;
	void *arg;
} ReadCall;

static void
read_grid(const ReadCall *call, const Grid *grid, int64 seq)
{
	static const uint32 all[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	const uint32 *rect = call->rect != NULL ? call->rect : all;
	GridScan scan;
	GridCell cell;

	call->view->seq = seq;
	call->view->rows = grid_rows(grid);
	call->view->cols = grid_cols(grid);
	if (call->fn == NULL)
		return;
	grid_scan_init(&scan, grid, rect[0], rect[1], rect[2], rect[3]);
	while (grid_scan_next(&scan, &cell))
		call->fn(call->arg, &cell);
}

static Snapshot
read_snapshot(const ReadCall *call)
{
	if (!call->fresh || IsInParallelMode())
		return GetActiveSnapshot();
	return IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot();
}

static void
read_privately(const ReadCall *call)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "pg_sheet private grid", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(read_snapshot(call));
	Grid *grid = NULL;
	int64 seq;

	if (!replay_sheet(call->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory"); /* the allocator raises by itself */
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	read_grid(call, grid, seq);
	MemoryContextDelete(context);
}

/* Fills the entry's grid. The snapshot is taken after cache_begin_load: see "How an edit commits", 3. */
static CacheLoaded
read_load(int64 sheet_id, CacheEntry *entry)
{
	GridAllocator allocator = cache_allocator(entry);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	CacheLoaded loaded = CACHE_LOAD_EMPTY;
	ReplayLast last;
	int64 seq = 0;

	replay_last(sheet_id, snapshot, &last);
	/* Rows that a superuser has just put in may yet be rolled back. */
	if (last.found && !TransactionIdIsCurrentTransactionId((TransactionId) last.writer_fxid))
		loaded = replay_sheet(sheet_id, snapshot, &allocator, &entry->loading_grid, &seq) ? CACHE_LOADED
																						  : CACHE_LOAD_NO_ROOM;
	UnregisterSnapshot(snapshot);
	cache_end_load(entry, loaded, seq, last.writer_fxid);
	return loaded;
}

typedef enum ReadStep
{
	READ_DONE,
	READ_LOAD,		/* a stub */
	READ_WAIT_LOAD, /* somebody else loads */
	READ_WAIT_WRITER,
	READ_PRIVATE
} ReadStep;

/* One look at the entry under its lock. */
static ReadStep
read_try(const ReadCall *call, CacheEntry *entry, uint64 *writer, CachePrivate *reason)
{
	ReadStep step = READ_PRIVATE;

	LWLockAcquire(&entry->lock, LW_SHARED);
	*writer = entry->writer_fxid;
	if (*writer != 0 && TransactionIdIsCurrentTransactionId((TransactionId) *writer))
		*reason = CACHE_PRIVATE_OWN_EDITS;
	else if (entry->loading)
		step = READ_WAIT_LOAD;
	else if (entry->grid == NULL)
	{
		*reason = CACHE_PRIVATE_WRITER;
		step = *writer != 0 ? READ_PRIVATE : READ_LOAD;
	}
	else
	{
		Snapshot snapshot = read_snapshot(call);

		*reason = CACHE_PRIVATE_OLD_SNAPSHOT;
		if (!cache_snapshot_sees(snapshot, entry->last_fxid))
			step = READ_PRIVATE;
		else if (*writer != 0 && cache_snapshot_sees(snapshot, *writer))
			step = READ_WAIT_WRITER; /* committed (or aborted), and about to say so here */
		else
		{
			read_grid(call, entry->grid, entry->seq);
			step = READ_DONE;
		}
	}
	LWLockRelease(&entry->lock);
	return step;
}

/* False: the caller must rebuild privately. */
static bool
read_through_cache(const ReadCall *call, CacheEntry *entry)
{
	bool loaded = false;
	uint64 writer;
	CachePrivate reason;

	for (;;)
	{
		switch (read_try(call, entry, &writer, &reason))
		{
			case READ_DONE:
				pg_atomic_fetch_add_u64(loaded ? &CacheState->misses : &CacheState->hits, 1);
				return true;
			case READ_LOAD:
				/* While we load, others wait without the deadlock detector's eye on it: so we must not wait for locks.
				 */
				storage_lock_for_replay();
				reason = CACHE_PRIVATE_NO_ROOM;
				if (!IsInParallelMode() && !sheetlog_has_deleted() && cache_begin_load(entry, false))
				{
					CacheLoaded result = read_load(call->sheet_id, entry);

					loaded = true;
					if (result == CACHE_LOADED)
						continue;
					if (result == CACHE_LOAD_EMPTY)
						reason = CACHE_PRIVATE_EMPTY;
				}
				else if (cache_wait_load(entry))
					continue;
				break;
			case READ_WAIT_LOAD:
				loaded = true;
				(void) cache_wait_load(entry);
				continue;
			case READ_WAIT_WRITER:
				cache_wait_writer(entry, writer);
				continue;
			case READ_PRIVATE:
				break;
		}
		cache_count_private(reason);
		return false;
	}
}

void
journal_read(int64 sheet_id, const uint32 rect[4], bool fresh, JournalView *view, JournalCellFn fn, void *arg)
{
	ReadCall call = {sheet_id, rect, fresh, view, fn, arg};
	bool done = false;

	/* A standby hears nothing of commits; SERIALIZABLE must see the rows that it reads. */
	if (cache_enabled() && !RecoveryInProgress() && IsolationIsSerializable())
		cache_count_private(CACHE_PRIVATE_SERIALIZABLE);
	else if (cache_enabled() && !RecoveryInProgress())
	{
		CacheKey key;
		CacheEntry *entry;

		sheetmeta_cache_key(sheet_id, &key);
		entry = cache_pin_reader(&key);
		if (entry != NULL)
		{
			done = read_through_cache(&call, entry);
			cache_unpin_reader(entry);
		}
		else
			cache_count_private(CACHE_PRIVATE_NO_ROOM);
	}
	if (!done)
		read_privately(&call);
}

bytea *
journal_tail(int64 sheet_id, int64 since, Size max_bytes, int64 *last_seq)
{
	Snapshot snapshot;
	ReadCall call = {.fresh = true};
	bytea *tail;

	snapshot = RegisterSnapshot(read_snapshot(&call));
	trim_check_since(sheet_id, since, snapshot);
	tail = replay_tail(sheet_id, since, max_bytes, snapshot, last_seq);
	UnregisterSnapshot(snapshot);
	return tail;
}

Grid *
journal_read_version(int64 sheet_id, int64 cid, JournalView *view)
{
	GridAllocator allocator = journal_context_allocator();
	ReadCall call = {.fresh = true};
	Snapshot snapshot = RegisterSnapshot(read_snapshot(&call));
	ReplayVersion version;
	Grid *grid = NULL;

	if (!replay_find_version(sheet_id, cid, snapshot, &version) || version.cid != cid)
		trim_no_version(sheet_id, cid, snapshot);
	if (!replay_version(sheet_id, &version, snapshot, &allocator, &grid))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	view->seq = version.seq;
	view->at = version.at;
	view->rows = version.rows;
	view->cols = version.cols;
	return grid;
}
