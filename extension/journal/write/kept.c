/*
 * kept.c - cells that a session keeps of the sheets that it edits without the cache.
 *
 * A batch stores the old contents of its cells. Where the cache has no room for the sheet, they are read from the last
 * version and the log behind it, which may be long. So the session keeps the tiles that it has read, in its own memory,
 * and brings them up to date with the edits that were committed since, its own among them. writer_base.c decides which
 * tiles are worth that.
 *
 * What is kept is a committed state, and is changed by committed edits only: the abort of a transaction or of a
 * subtransaction needs nothing. It is used under the sheet lock, and only when the log leads from it to the present:
 * the open log began at or before it (a version, a rollback or a trim since then ends it), the log has the same file,
 * and nobody has changed the sheet's rows past its log since (CacheState->forgotten).
 *
 * All sheets of a session together take KEPT_BYTES at most between transactions: those that were not edited for longest
 * go.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/write/kept.h"
#include "journal/replay/replay.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

#define KEPT_BYTES (4 * 1024 * 1024)
#define KEPT_BLOCK (256 * 1024) /* the largest that is taken at once for small pieces */

static dlist_head kept_sheets = DLIST_STATIC_INIT(kept_sheets); /* most recently opened first */
static Size kept_bytes = 0;										/* of them */

static void
kept_drop(KeptSheet *kept)
{
	kept_bytes -= kept->bytes;
	dlist_delete(&kept->link);
	MemoryContextDelete(kept->context);
}

static KeptSheet *
kept_search(const CacheKey *key)
{
	dlist_iter iter;

	dlist_foreach(iter, &kept_sheets)
	{
		KeptSheet *kept = dlist_container(KeptSheet, link, iter.cur);

		if (kept->key.sheet_id == key->sheet_id && kept->key.relfilenode == key->relfilenode)
			return kept;
	}
	return NULL;
}

KeptSheet *
kept_find(const CacheKey *key, int64 log_first_seq)
{
	KeptSheet *kept = kept_search(key);

	if (kept == NULL || (kept->right && kept->grid != NULL && kept->seq >= log_first_seq - 1 &&
						 kept->forgotten == pg_atomic_read_u64(&CacheState->forgotten)))
		return kept;
	kept_drop(kept);
	return NULL;
}

static KeptSheet *
kept_make(const CacheKey *key, int64 seq)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pg_sheet kept cells", ALLOCSET_DEFAULT_MINSIZE,
												  ALLOCSET_DEFAULT_INITSIZE, KEPT_BLOCK);
	KeptSheet *kept = MemoryContextAllocZero(context, sizeof(KeptSheet));

	kept->context = context;
	kept->key = *key;
	kept->forgotten = pg_atomic_read_u64(&CacheState->forgotten);
	kept->seq = seq;
	kept->opened = kept->right = true;
	dlist_push_head(&kept_sheets, &kept->link);
	return kept;
}

/* Applies what was committed since. False when the log does not lead to `seq`. */
static bool
kept_catch_up(KeptSheet *kept, int64 seq)
{
	MemoryContext old = MemoryContextSwitchTo(kept->context);
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());

	kept->right = false;
	kept->right =
		replay_advance_tiles(kept->key.sheet_id, kept->seq, seq, snapshot, &allocator, kept->grid, kept->tiles);
	kept->seq = seq;
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	return kept->right;
}

KeptSheet *
kept_open(KeptSheet *kept, const CacheKey *key, int64 seq)
{
	if (kept != NULL)
	{
		dlist_move_head(&kept_sheets, &kept->link);
		kept->opened = true;
		if (kept->seq == seq || kept_catch_up(kept, seq))
			return kept;
		kept_drop(kept);
	}
	return kept_make(key, seq);
}

/* Those that the transaction has opened are the first. */
void
kept_end_transaction(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &kept_sheets)
	{
		KeptSheet *kept = dlist_container(KeptSheet, link, iter.cur);

		if (!kept->opened)
			break;
		kept->opened = false;
		kept_bytes -= kept->bytes;
		kept->bytes = MemoryContextMemAllocated(kept->context, true);
		kept_bytes += kept->bytes;
		if (!kept->right || kept->grid == NULL || kept->bytes > KEPT_BYTES)
			kept_drop(kept);
	}
	while (kept_bytes > KEPT_BYTES)
		kept_drop(dlist_tail_element(KeptSheet, link, &kept_sheets));
}
