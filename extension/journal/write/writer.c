/*
 * writer.c - what the current transaction does to sheets. The cells before it are in writer_base.c, its
 * edits in writer_cells.c, its end in writer_end.c.
 *
 * One WriterSheet for each sheet that the transaction has locked. While it exists the sheet's entry in shared memory is
 * pinned, and once something was changed the entry names the transaction (writer_fxid). The changes are stacked:
 * ROLLBACK TO takes off those of its subtransaction, with the seqs that they had taken.
 *
 * While we hold the sheet lock and a pin, nobody but us changes what the entry's grid says. Tiles may be taken out and
 * loaded again by others, but not those that we hold: these we read without the entry's lock. Readers share them with
 * us under the lock; changing them needs the lock exclusively.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "journal/store/fsck_auto.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "journal/store/replay_find.h"
#include "am/handler/sheetlog.h"
#include "journal/store/sheetmeta.h"
#include "journal/store/storage.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

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
writer_lock_tag(int64 sheet_id, LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) ((uint64) sheet_id >> 32), (uint32) sheet_id, WRITER_LOCK_CLASS);
}

void
writer_lock_sheet(int64 sheet_id)
{
	LOCKTAG tag;

	writer_lock_tag(sheet_id, &tag);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

bool
writer_try_lock_sheet(int64 sheet_id)
{
	LOCKTAG tag;

	writer_lock_tag(sheet_id, &tag);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
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
	sheetmeta_cache_key(sheet_id, RowExclusiveLock, &key);
	entry = cache_pin(&key);
	if (entry == NULL)
		ereport(ERROR,
				(errcode(MAKE_SQLSTATE('S', 'B', '0', '0', '1')), errmsg("too many sheets are being edited at once"),
				 errdetail("All %d entries of the sheet cache are in use.", cache_max_sheets),
				 errhint("Try again, change fewer sheets in one transaction, or raise pg_sheet.max_cached_sheets.")));
	return entry;
}

/* From the entry when it knows, else from storage. Exact, since we hold the sheet lock: of an entry with a pin nobody
 * else changes what it knows, so the entry's lock is not needed. */
static void
writer_learn(WriterSheet *ws)
{
	ws->learned = false; /* until all of it is there */
	if (ws->entry != NULL)
		fsck_auto_open(ws->sheet_id, ws->entry);
	if (ws->entry == NULL || !ws->entry->meta_valid)
	{
		sheetmeta_load(ws->sheet_id, &ws->meta);
		ws->forget |= storage_file_is_new(STORAGE_LOG_BATCH); /* it may be emptied where it is */
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

/* ---- bytes that go with their subtransaction ---- */

/* A stack, as subtransactions are. */
typedef struct WriterBytes
{
	dlist_node link;
	SubTransactionId subid;
	char data[FLEXIBLE_ARRAY_MEMBER];
} WriterBytes;

static dlist_head writer_bytes = DLIST_STATIC_INIT(writer_bytes);

void *
writer_alloc_bytes(Size size)
{
	WriterBytes *bytes = MemoryContextAlloc(writer_context, offsetof(WriterBytes, data) + size);

	bytes->subid = GetCurrentSubTransactionId();
	dlist_push_tail(&writer_bytes, &bytes->link);
	return bytes->data;
}

void
writer_free_bytes(void *data)
{
	WriterBytes *bytes = (WriterBytes *) ((char *) data - offsetof(WriterBytes, data));

	dlist_delete(&bytes->link);
	pfree(bytes);
}

void
writer_hand_bytes(SubTransactionId subid, SubTransactionId parent)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &writer_bytes)
	{
		WriterBytes *bytes = dlist_container(WriterBytes, link, iter.cur);

		if (bytes->subid != subid)
			break;
		bytes->subid = parent;
	}
}

void
writer_free_bytes_of(SubTransactionId subid)
{
	while (!dlist_is_empty(&writer_bytes))
	{
		WriterBytes *bytes = dlist_tail_element(WriterBytes, link, &writer_bytes);

		if (bytes->subid != subid)
			break;
		writer_free_bytes(bytes->data);
	}
}

/* Their memory goes with the context. */
void
writer_forget_bytes(void)
{
	dlist_init(&writer_bytes);
}

/* ---- opening a sheet ---- */

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

/* The transaction has changed nothing yet, and the log has another file than when the sheet was opened: others will
 * look for it under that one. Once it has changed something nobody can have it cached there before the commit, since
 * who gave the log another file keeps all others out. */
static bool
writer_has_moved(const WriterSheet *ws)
{
	return ws->entry != NULL && !writer_has_changes(ws) &&
		   ws->entry->key.relfilenode != storage_lock_file(STORAGE_LOG_BATCH, RowExclusiveLock);
}

WriterSheet *
writer_open(int64 sheet_id)
{
	WriterSheet *ws;

	writer_lock_sheet(sheet_id);
	ws = writer_find(sheet_id);
	if (ws != NULL && writer_has_moved(ws))
	{
		writer_give_up(ws);
		ws = NULL;
	}
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
	if (ws->meta.segment_id == 0)
		replay_corrupted(ws->sheet_id, "it has no log", 1, EDIT_OK);
}

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
	writer_meet_grid(ws); /* while it still can be loaded */
	(void) writer_begin_change(ws, ws->origin);
	ws->taken_over |= sheetmeta_store_epoch(ws->sheet_id, epoch, holder) && epoch > ws->meta.epoch;
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

/* ---- changes ---- */

/* The entry names us. Not during its first load, whose snapshot would miss us. */
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
	change->axes_known = ws->axes_known;
	change->axes = ws->axes;
	change->from = ws->nstaged;
	ws->meta.last_fxid = ws->fxid;
	dlist_push_tail(&ws->changes, &change->link);
	return change;
}
