/*
 * writer.c - the sheets that the current transaction has locked, and its changes of them.
 *
 * There is a WriterSheet for each of them. While it exists, the sheet's entry in shared memory is pinned; after the
 * first change the entry names the transaction (writer_fxid). Changes are a stack: ROLLBACK TO undoes those of its
 * subtransaction, and their seqs are used again.
 *
 * While a session holds the sheet lock and a pin, no other session changes what the entry's grid says. Others may evict
 * and load tiles, but not those that the session has pinned: these it reads without the entry's lock. It changes them
 * while holding the lock in exclusive mode, since readers share them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "journal/store/history.h"
#include "journal/store/recheck.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "journal/write/publish.h"
#include "journal/write/staging.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define WRITER_LOCK_CLASS 0x5348
/* Memory that a session keeps between transactions: batches of a thousand edits fit. */
#define WRITER_KEEP_EDITS	(256 * 1024)
#define WRITER_KEEP_SCRATCH (192 * 1024)
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
writer_lock_tag(int64 sheet_id, LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) ((uint64) sheet_id >> 32), (uint32) sheet_id, WRITER_LOCK_CLASS);
}

static bool
writer_acquire_lock(int64 sheet_id, bool nowait)
{
	LOCKTAG tag;

	writer_lock_tag(sheet_id, &tag);
	return LockAcquire(&tag, ExclusiveLock, false, nowait) != LOCKACQUIRE_NOT_AVAIL;
}

void
writer_release_lock(int64 sheet_id)
{
	LOCKTAG tag;

	writer_lock_tag(sheet_id, &tag);
	(void) LockRelease(&tag, ExclusiveLock, false);
}

void
writer_lock_sheet(int64 sheet_id)
{
	(void) writer_acquire_lock(sheet_id, false);
}

bool
writer_try_lock_sheet(int64 sheet_id)
{
	return writer_acquire_lock(sheet_id, true);
}

/* ---- opening a sheet ---- */

void
writer_begin(void)
{
	if (writer_context != NULL)
		return;
	writer_scratch = GenerationContextCreate(TopMemoryContext, "pg_sheet call", WRITER_KEEP_SCRATCH,
											 WRITER_KEEP_SCRATCH, WRITER_BLOCK);
	writer_context =
		GenerationContextCreate(TopMemoryContext, "pg_sheet edits", WRITER_KEEP_EDITS, WRITER_KEEP_EDITS, WRITER_BLOCK);
}

MemoryContext
writer_grid_context(WriterSheet *ws)
{
	if (ws->grid_context == NULL)
		ws->grid_context = AllocSetContextCreate(writer_context, "pg_sheet grids", ALLOCSET_DEFAULT_SIZES);
	return ws->grid_context;
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

static CacheEntry *
writer_pin(int64 sheet_id)
{
	CacheKey key;
	CacheEntry *entry;

	if (!cache_enabled())
		return NULL;
	sheetmeta_cache_key(sheet_id, RowExclusiveLock, &key);
	entry = cache_pin(&key);
	if (entry == NULL)
		ereport(ERROR,
				(errcode(MAKE_SQLSTATE('S', 'B', '0', '0', '1')), errmsg("too many sheets are being edited at once"),
				 errdetail("All %d entries of the sheet cache are in use.", cache_max_sheets),
				 errhint("Try again, change fewer sheets in one transaction, or raise pg_sheet.max_cached_sheets.")));
	return entry;
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
	/* Nothing between the pin and the link can fail, so the pin is always released. */
	ws->entry = writer_pin(sheet_id);
	dlist_push_head(&writer_sheets, &ws->link);
	return ws;
}

/*
 * Reads the sheet's state from the entry, else from storage. The sheet lock makes it exact: nobody else changes what a
 * pinned entry knows, so the entry's lock is not needed.
 */
static void
writer_learn(WriterSheet *ws)
{
	ws->learned = false; /* until all of it is read */
	if (ws->entry != NULL)
		recheck_open(ws->sheet_id, ws->entry);
	if (ws->entry == NULL || !ws->entry->meta_valid)
	{
		sheetmeta_load(ws->sheet_id, &ws->meta);
		ws->forget |= storage_file_is_new(STORAGE_LOG_BATCH); /* TRUNCATE may empty it in place */
	}
	else
	{
		ws->meta = ws->entry->meta;
		if (ws->meta.epoch_round != pg_atomic_read_u64(&CacheState->epoch_round))
			sheetmeta_load_epoch(ws->sheet_id, &ws->meta);
	}
	ws->learned = true;
	ws->base_seq = ws->meta.last_seq;
	ws->base_fxid = ws->meta.last_fxid;
}

/*
 * Whether log_batch has another file than when the sheet was opened, and the transaction has changed nothing: other
 * sessions use the entry of the new file. After a change nobody can cache the sheet under the new file before the
 * commit, since the transaction that created the file blocks all others.
 */
static bool
writer_has_moved(const WriterSheet *ws)
{
	return ws->entry != NULL && !writer_has_changes(ws) &&
		   ws->entry->key.relfilenode != storage_lock_file(STORAGE_LOG_BATCH, RowExclusiveLock);
}

void
writer_close(WriterSheet *ws)
{
	if (ws->entry != NULL)
		cache_unpin(ws->entry);
	dlist_delete(&ws->link);
}

static void
writer_discard(WriterSheet *ws)
{
	publish_withdraw(ws);
	writer_close(ws);
	staging_drop_index(ws);
	if (ws->staged_context != NULL)
		MemoryContextDelete(ws->staged_context);
	else if (ws->staged != NULL)
		pfree(ws->staged);
	if (ws->grid_context != NULL)
		MemoryContextDelete(ws->grid_context);
	pfree(ws);
}

WriterSheet *
writer_open(int64 sheet_id)
{
	WriterSheet *ws;

	writer_lock_sheet(sheet_id);
	ws = writer_find(sheet_id);
	if (ws != NULL && writer_has_moved(ws))
	{
		writer_discard(ws);
		ws = NULL;
	}
	if (ws == NULL)
		ws = writer_new(sheet_id);
	/* Without changes the state may be unknown, or read before an error that a subtransaction caught. */
	if (!writer_has_changes(ws))
		writer_learn(ws);
	if (ws->forget)
		sheetmeta_load_status(sheet_id, &ws->meta);
	if (!writer_has_changes(ws) && IsolationUsesXactSnapshot() &&
		!cache_snapshot_sees(GetTransactionSnapshot(), ws->meta.last_fxid))
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
	if (ws->meta.segment_id == 0)
		history_corrupted(ws->sheet_id, "it lacks segment", 1, EDIT_OK);
}

/* ---- changes ---- */

/* Sets writer_fxid. Not during the entry's first load, whose snapshot would not see the transaction. */
static void
writer_enter(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	for (;;)
	{
		cache_lock_change(entry);
		if (entry->state != CACHE_LOADING)
			break;
		LWLockRelease(&entry->lock);
		(void) cache_wait_load(entry);
	}
	Assert(entry->writer_fxid == 0 || entry->writer_fxid == ws->fxid);
	entry->writer_fxid = ws->fxid;
	LWLockRelease(&entry->lock);
}

void
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
	change->line_maps_known = ws->line_maps_known;
	change->maps = ws->maps;
	change->from = ws->nstaged;
	ws->meta.last_fxid = ws->fxid;
	dlist_push_tail(&ws->changes, &change->link);
}

void
writer_forget(WriterSheet *ws)
{
	CacheMeta known = ws->meta;

	/* The transaction has changed rows of the sheet directly: from here on they count. */
	sheetmeta_load(ws->sheet_id, &ws->meta);
	ws->meta.last_fxid = known.last_fxid;
	ws->meta.rows = known.rows;
	ws->meta.cols = known.cols;
	ws->forget = true;
}

/* ---- subtransactions ---- */

static void
writer_undo_changes(WriterSheet *ws, SubTransactionId subid)
{
	while (writer_has_changes(ws))
	{
		WriterChange *change = dlist_tail_element(WriterChange, link, &ws->changes);

		if (change->subid != subid)
			break;
		ws->meta = change->before;
		ws->maps = change->line_maps_known ? change->maps : ws->base_maps;
		ws->line_maps_subid = InvalidSubTransactionId;
		staging_undo(ws, change->from);
		dlist_delete(&change->link);
		pfree(change);
	}
	if (!writer_has_changes(ws))
		staging_drop_index(ws);
}

/* The subtransaction that took the sheet lock releases it, and then nothing is known of the sheet. */
void
writer_abort_sub(WriterSheet *ws, SubTransactionId subid)
{
	writer_undo_changes(ws, subid);
	if (ws->locked_in == subid)
		writer_discard(ws);
	else if (!writer_has_changes(ws))
		publish_withdraw(ws);
}

/* Changes are a stack, like subtransactions: those of the innermost one are the last. */
void
writer_commit_sub(WriterSheet *ws, SubTransactionId subid, SubTransactionId parent)
{
	dlist_iter iter;

	if (ws->locked_in == subid)
		ws->locked_in = parent;
	if (ws->line_maps_subid == subid)
		ws->line_maps_subid = parent;
	dlist_reverse_foreach(iter, &ws->changes)
	{
		WriterChange *change = dlist_container(WriterChange, link, iter.cur);

		if (change->subid != subid)
			break;
		change->subid = parent;
	}
}

/* ---- the end of the transaction ---- */

void
writer_refuse_prepare(void)
{
	dlist_iter iter;

	dlist_foreach(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (writer_has_changes(ws) || ws->forget)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("cannot PREPARE a transaction that has edited sheets"),
							errdetail("Nothing tells this extension when a prepared transaction is committed."),
							errhint("Use COMMIT.")));
	}
}
