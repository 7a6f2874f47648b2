/*
 * session_tiles.c - tiles that a session keeps of sheets that it edits without the cache.
 *
 * A batch stores the previous contents of its cells. If the cache has no room for the sheet, they are read from the
 * last version and the batches after it, which may be many. So the session keeps the tiles that it has read in its own
 * memory, and applies the edits that were committed since, its own among them. base.c decides which tiles to keep.
 *
 * The tiles are a committed state and only committed edits are applied to them, so aborts need no action. They are used
 * under the sheet lock, and only if the log leads from them to the present state: the open segment began at or before
 * it (a version, rollback or trim since then ends it), the log has the same file, and nobody has changed rows of the
 * sheet directly (CacheState->forgotten).
 *
 * Between transactions all sheets of a session together take at most SESSION_TILES_BYTES; the least recently used ones
 * are dropped.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/replay.h"
#include "journal/write/session_tiles.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define SESSION_TILES_BYTES (4 * 1024 * 1024)
#define SESSION_TILES_BLOCK (256 * 1024) /* the largest block of the memory context */

static dlist_head session_tiles = DLIST_STATIC_INIT(session_tiles); /* most recently used first */
static Size session_tiles_bytes = 0;

static void
session_tiles_drop(SessionTiles *tiles)
{
	session_tiles_bytes -= tiles->bytes;
	dlist_delete(&tiles->link);
	MemoryContextDelete(tiles->context);
}

SessionTiles *
session_tiles_find(const CacheKey *key, int64 segment_first_seq)
{
	dlist_iter iter;

	dlist_foreach(iter, &session_tiles)
	{
		SessionTiles *tiles = dlist_container(SessionTiles, link, iter.cur);

		if (tiles->key.sheet_id != key->sheet_id || tiles->key.relfilenode != key->relfilenode)
			continue;
		if (tiles->valid && tiles->grid != NULL && tiles->seq >= segment_first_seq - 1 &&
			tiles->forgotten == pg_atomic_read_u64(&CacheState->forgotten))
			return tiles;
		session_tiles_drop(tiles);
		break;
	}
	return NULL;
}

static SessionTiles *
session_tiles_create(const CacheKey *key, int64 seq)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pg_sheet session tiles", ALLOCSET_DEFAULT_MINSIZE,
												  ALLOCSET_DEFAULT_INITSIZE, SESSION_TILES_BLOCK);
	SessionTiles *tiles = MemoryContextAllocZero(context, sizeof(SessionTiles));

	tiles->context = context;
	tiles->key = *key;
	tiles->forgotten = pg_atomic_read_u64(&CacheState->forgotten);
	tiles->seq = seq;
	tiles->in_use = tiles->valid = true;
	dlist_push_head(&session_tiles, &tiles->link);
	return tiles;
}

/* Applies what was committed since. Returns false if the log does not lead to `seq`. */
static bool
session_tiles_advance(SessionTiles *tiles, int64 seq)
{
	MemoryContext old = MemoryContextSwitchTo(tiles->context);
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

	tiles->valid = false; /* if an error ends this */
	tiles->valid =
		replay_advance_tiles(tiles->key.sheet_id, tiles->seq, seq, snapshot, &allocator, tiles->grid, tiles->set);
	tiles->seq = seq;
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	return tiles->valid;
}

SessionTiles *
session_tiles_use(SessionTiles *tiles, const CacheKey *key, int64 seq)
{
	if (tiles != NULL)
	{
		dlist_move_head(&session_tiles, &tiles->link);
		tiles->in_use = true;
		if (tiles->seq == seq || session_tiles_advance(tiles, seq))
			return tiles;
		session_tiles_drop(tiles);
	}
	return session_tiles_create(key, seq);
}

/* Those that the transaction has used are the first. */
void
session_tiles_end_transaction(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &session_tiles)
	{
		SessionTiles *tiles = dlist_container(SessionTiles, link, iter.cur);

		if (!tiles->in_use)
			break;
		tiles->in_use = false;
		session_tiles_bytes -= tiles->bytes;
		tiles->bytes = MemoryContextMemAllocated(tiles->context, true);
		session_tiles_bytes += tiles->bytes;
		if (!tiles->valid || tiles->grid == NULL || tiles->bytes > SESSION_TILES_BYTES)
			session_tiles_drop(tiles);
	}
	while (session_tiles_bytes > SESSION_TILES_BYTES)
		session_tiles_drop(dlist_tail_element(SessionTiles, link, &session_tiles));
}
