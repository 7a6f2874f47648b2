/*
 * writer.c - what the current transaction does to sheets. Its cells are in writer_cells.c, its end in writer_end.c.
 *
 * One WriterSheet for each sheet that the transaction has locked. While it exists the sheet's entry in shared memory is
 * pinned, and once something was changed the entry names the transaction (writer_fxid). The changes are stacked:
 * ROLLBACK TO takes off those of its subtransaction, with the seqs that they had taken.
 *
 * While we hold the sheet lock and a pin, nobody but us changes the entry's grid or takes it away: it is read without
 * the entry's lock (writer_base). Readers share it with us under the lock; changing it needs the lock exclusively.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "journal.h"
#include "miscadmin.h"
#include "replay.h"
#include "sheetlog.h"
#include "sheetmeta.h"
#include "storage.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "writer.h"

#define WRITER_LOCK_CLASS 0x5348
/* What a session that edits keeps from transaction to transaction: batches of a thousand edits fit. */
#define WRITER_KEPT_EDITS	(256 * 1024)
#define WRITER_KEPT_SCRATCH (192 * 1024)
#define WRITER_BLOCK		(2 * 1024 * 1024)

dlist_head writer_sheets = DLIST_STATIC_INIT(writer_sheets);
MemoryContext writer_context = NULL;
MemoryContext writer_scratch = NULL;

/* ---- the sheet lock ---- */

void
writer_require_writable(const char *function)
{
	PreventCommandDuringRecovery(function);
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

void
writer_lock_sheet(int64 sheet_id)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) ((uint64) sheet_id >> 32), (uint32) sheet_id, WRITER_LOCK_CLASS);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* ---- finding out the present ---- */

Snapshot
writer_snapshot(void)
{
	return GetLatestSnapshot();
}

static WriterSheet *
writer_find(int64 sheet_id)
{
	dlist_iter iter;

	dlist_foreach(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (ws->sheet_id == sheet_id)
			return ws;
	}
	return NULL;
}

bool
writer_has_changes(const WriterSheet *ws)
{
	return !dlist_is_empty(unconstify(dlist_head *, &ws->changes));
}

static CacheEntry *
writer_pin(int64 sheet_id)
{
	CacheKey key;
	CacheEntry *entry;

	if (!cache_enabled())
		return NULL;
	sheetmeta_cache_key(sheet_id, &key);
	entry = cache_pin(&key);
	if (entry == NULL)
		ereport(ERROR,
				(errcode(MAKE_SQLSTATE('S', 'B', '0', '0', '1')), errmsg("too many sheets are being edited at once"),
				 errdetail("All %d entries of the sheet cache are in use.", cache_max_sheets),
				 errhint("Try again, or raise pg_sheet.max_cached_sheets.")));
	return entry;
}

/* From the entry when it knows, else from storage. Exact, since we hold the sheet lock. */
static void
writer_learn(WriterSheet *ws)
{
	bool known = false;

	if (ws->entry != NULL)
	{
		LWLockAcquire(&ws->entry->lock, LW_SHARED);
		known = ws->entry->meta_valid;
		ws->meta = ws->entry->meta;
		LWLockRelease(&ws->entry->lock);
	}
	if (!known)
		sheetmeta_load(ws->sheet_id, &ws->meta);
	else if (ws->meta.epoch_round != pg_atomic_read_u64(&CacheState->epoch_round))
		sheetmeta_load_epoch(ws->sheet_id, &ws->meta);
	ws->learned = true;
	ws->base_seq = ws->meta.last_seq;
}

void
writer_begin(void)
{
	if (writer_context != NULL)
		return;
	writer_scratch = GenerationContextCreate(TopMemoryContext, "pg_sheet call", WRITER_KEPT_SCRATCH,
											 WRITER_KEPT_SCRATCH, WRITER_BLOCK);
	writer_context =
		GenerationContextCreate(TopMemoryContext, "pg_sheet edits", WRITER_KEPT_EDITS, WRITER_KEPT_EDITS, WRITER_BLOCK);
}

static WriterSheet *
writer_new(int64 sheet_id)
{
	WriterSheet *ws;

	writer_begin();
	ws = MemoryContextAllocZero(writer_context, sizeof(WriterSheet));
	ws->sheet_id = sheet_id;
	ws->locked_in = GetCurrentSubTransactionId();
	dlist_init(&ws->changes);
	/* Pinned and linked with nothing in between that can fail, so that the pin is always given back. */
	ws->entry = writer_pin(sheet_id);
	dlist_push_head(&writer_sheets, &ws->link);
	return ws;
}

WriterSheet *
writer_open(int64 sheet_id)
{
	WriterSheet *ws;

	writer_lock_sheet(sheet_id);
	ws = writer_find(sheet_id);
	if (ws == NULL)
		ws = writer_new(sheet_id);
	if (writer_has_changes(ws))
	{
		if (ws->forget)
			sheetmeta_load_status(sheet_id, &ws->meta);
		return ws;
	}
	/* Nothing is known, or the last time we looked was before an error that a subtransaction caught. */
	writer_learn(ws);
	if (ws->forget)
		sheetmeta_load_status(sheet_id, &ws->meta);
	if (IsolationUsesXactSnapshot() && !cache_snapshot_sees(GetTransactionSnapshot(), ws->meta.last_fxid))
		ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						errmsg("could not serialize access due to concurrent update"),
						errdetail("Sheet " INT64_FORMAT " has changed since this transaction's snapshot.", sheet_id),
						errhint("The transaction might succeed if retried.")));
	return ws;
}

void
writer_require_live(WriterSheet *ws)
{
	if (!ws->meta.exists)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", ws->sheet_id)));
	if (ws->meta.trashed)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'T', '0', '0', '1')),
						errmsg("sheet " INT64_FORMAT " is in the trash", ws->sheet_id),
						errhint("Recover it with sheet.recover(" INT64_FORMAT ").", ws->sheet_id)));
	if (ws->meta.lid == 0)
		replay_corrupted(ws->sheet_id, "it has no log", 1, EDIT_OK);
}

static const Grid *writer_shared_grid(WriterSheet *ws);

void
writer_check_epoch(WriterSheet *ws, int64 epoch, const char *holder)
{
	if (epoch == 0 || (epoch == ws->meta.epoch && holder == NULL))
		return;
	if (epoch < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an epoch must not be negative")));
	if (epoch < ws->meta.epoch)
	{
		char *current = sheetmeta_holder(ws->sheet_id);

		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'F', '0', '0', '1')),
						errmsg("epoch " INT64_FORMAT " of sheet " INT64_FORMAT " is over", epoch, ws->sheet_id),
						errdetail("The owner is \"%s\" with epoch " INT64_FORMAT ".", current, ws->meta.epoch),
						errhint("Give the sheet up, and send its editors to the owner.")));
	}
	if (ws->entry != NULL && ws->base == NULL)
		(void) writer_shared_grid(ws); /* while it still can be loaded */
	(void) writer_begin_change(ws, ws->origin);
	sheetmeta_store_epoch(ws->sheet_id, epoch, holder);
	ws->meta.epoch = epoch;
	CommandCounterIncrement();
}

void
writer_forget(WriterSheet *ws)
{
	CacheMeta known = ws->meta;

	/* What this transaction has done to the sheet's rows past the journal counts from now on. */
	sheetmeta_load(ws->sheet_id, &ws->meta);
	ws->meta.last_fxid = known.last_fxid;
	ws->meta.rows = known.rows;
	ws->meta.cols = known.cols;
	ws->forget = true;
}

/* ---- cells ---- */

/* Fills the entry's grid. False when it does not fit. */
static bool
writer_load_shared(WriterSheet *ws)
{
	GridAllocator allocator = cache_allocator(ws->entry);
	Snapshot snapshot;
	int64 seq;
	bool ok;

	/* After cache_begin_load: see "How an edit commits", 3. */
	snapshot = RegisterSnapshot(writer_snapshot());
	ok = replay_sheet(ws->sheet_id, snapshot, &allocator, &ws->entry->loading_grid, &seq);
	UnregisterSnapshot(snapshot);
	cache_end_load(ws->entry, ok ? CACHE_LOADED : CACHE_LOAD_NO_ROOM, seq, ws->meta.last_fxid);
	return ok;
}

static bool
writer_has_shared_grid(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	bool there;

	LWLockAcquire(&entry->lock, LW_SHARED);
	there = entry->grid != NULL;
	LWLockRelease(&entry->lock);
	return there;
}

/* Rows that this transaction has put in or deleted past the journal may be rolled back: others are not shown them. */
static bool
writer_may_load(WriterSheet *ws)
{
	return !sheetlog_has_deleted() &&
		   (writer_has_changes(ws) || !TransactionIdIsCurrentTransactionId((TransactionId) ws->meta.last_fxid));
}

/* The entry's grid, loaded when it is not there; NULL when it cannot be. A load that is under way is waited for; it
 * ends, since readers wait for nobody in it. */
static const Grid *
writer_shared_grid(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	while (!writer_has_shared_grid(ws))
	{
		/* While we load, others wait without the deadlock detector's eye on it: so we must not wait for locks. */
		storage_lock_for_replay();
		if (writer_may_load(ws) && cache_begin_load(entry, false))
		{
			if (!writer_load_shared(ws))
				return NULL;
		}
		else if (!cache_wait_load(entry) && !writer_has_shared_grid(ws))
			return NULL;
	}
	return entry->grid;
}

static void
writer_learn_extent(WriterSheet *ws, const Grid *grid)
{
	if (ws->meta.rows != 0)
		return;
	ws->meta.rows = grid_rows(grid);
	ws->meta.cols = grid_cols(grid);
}

MemoryContext
writer_grid_context(WriterSheet *ws)
{
	if (ws->grid_context == NULL)
		ws->grid_context = AllocSetContextCreate(writer_context, "pg_sheet grids", ALLOCSET_DEFAULT_SIZES);
	return ws->grid_context;
}

static HTAB *
writer_make_tiles(MemoryContext context)
{
	HASHCTL info = {.keysize = sizeof(ReplayTile), .entrysize = sizeof(ReplayTile), .hcxt = context};

	return hash_create("pg_sheet tiles", 32, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Tiles of the state before own changes, into our own memory: for a sheet that the cache has no room for, an edit reads
 * the tiles that it touches, and the log since the last version. Own edits and those that ROLLBACK TO took back have
 * higher seqs, so this can be done at any time.
 */
static void
writer_load_tiles(WriterSheet *ws, HTAB *tiles)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());

	if (ws->base == NULL)
	{
		ws->base_tiles = writer_make_tiles(writer_grid_context(ws));
		ws->base = grid_create(&allocator, 1, 1);
	}
	replay_add_tiles(ws->sheet_id, ws->base_seq, snapshot, &allocator, ws->base, tiles);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
}

static void
writer_load_base(WriterSheet *ws)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;
	int64 seq;

	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory"); /* the allocator raises by itself */
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	ws->base = grid;
	ws->base_tiles = NULL;
}

/* After an error in between, the next attempt loads the same tiles again, over what is there. */
static void
writer_add_tiles(WriterSheet *ws, HTAB *missing)
{
	HASH_SEQ_STATUS status;
	ReplayTile *tile;

	if (ws->base != NULL && hash_get_num_entries(missing) == 0)
		return;
	writer_load_tiles(ws, missing);
	hash_seq_init(&status, missing);
	while ((tile = hash_seq_search(&status)) != NULL)
		(void) hash_search(ws->base_tiles, tile, HASH_ENTER, NULL);
	writer_learn_extent(ws, ws->base);
}

void
writer_prepare(WriterSheet *ws, const Edit *edits, uint32 nedits)
{
	const Grid *shared = NULL;
	HTAB *missing;

	if (ws->base == NULL && ws->entry != NULL)
		shared = writer_shared_grid(ws);
	if (shared != NULL || (ws->base != NULL && ws->base_tiles == NULL))
	{
		writer_learn_extent(ws, shared != NULL ? shared : ws->base);
		return;
	}
	missing = writer_make_tiles(CurrentMemoryContext);
	for (uint32 i = 0; i < nedits; i++)
	{
		ReplayTile tile = replay_tile_of(edits[i].row, edits[i].col);

		if ((edits[i].kind == EDIT_SET || edits[i].kind == EDIT_STYLE) &&
			(ws->base_tiles == NULL || hash_search(ws->base_tiles, &tile, HASH_FIND, NULL) == NULL))
			(void) hash_search(missing, &tile, HASH_ENTER, NULL);
	}
	writer_add_tiles(ws, missing);
	hash_destroy(missing);
}

/* The whole of it, for versions. */
const Grid *
writer_base(WriterSheet *ws)
{
	const Grid *grid = NULL;

	if (ws->base == NULL && ws->entry != NULL)
		grid = writer_shared_grid(ws);
	if (grid == NULL && (ws->base == NULL || ws->base_tiles != NULL))
		writer_load_base(ws);
	if (grid == NULL)
		grid = ws->base;
	writer_learn_extent(ws, grid);
	return grid;
}

/* ---- changes ---- */

/* The entry names us. Not while somebody loads: the load's snapshot would miss us. */
static void
writer_enter(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	for (;;)
	{
		LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
		if (!entry->loading)
			break;
		LWLockRelease(&entry->lock);
		(void) cache_wait_load(entry);
	}
	Assert(entry->writer_fxid == 0 || entry->writer_fxid == ws->fxid);
	entry->writer_fxid = ws->fxid;
	LWLockRelease(&entry->lock);
}

WriterChange *
writer_begin_change(WriterSheet *ws, int64 origin)
{
	WriterChange *change = MemoryContextAllocZero(writer_context, sizeof(WriterChange));

	if (!writer_has_changes(ws))
	{
		ws->fxid = U64FromFullTransactionId(GetTopFullTransactionId());
		ws->origin = origin;
		if (ws->entry != NULL)
			writer_enter(ws);
	}
	else if (ws->origin != origin)
		ws->origin = 0;
	change->subid = GetCurrentSubTransactionId();
	change->before = ws->meta;
	change->from = ws->nstaged;
	ws->meta.last_fxid = ws->fxid;
	dlist_push_tail(&ws->changes, &change->link);
	return change;
}
