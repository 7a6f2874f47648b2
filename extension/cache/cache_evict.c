/*
 * cache_evict.c - which tiles go when there is no room: those that were not used for longest, of all sheets.
 *
 * Every use of a tile gives it a new stamp, which costs a reader nothing but a store. Entries wait in a heap, ordered
 * by a stamp that none of their tiles' is below: it was right once, and stamps only grow. So the first entry is asked
 * for its oldest tile: when that is not newer than what the heap says of the next entry, it is the oldest of all, and
 * goes; otherwise the entry is put back with what is true now. The order is exactly that of the last uses, but for
 * tiles that are held and for entries that are locked at the moment: these are passed over, and keep their places.
 * What tiles do not need themselves goes before (cache_slack.c).
 *
 * Lock order: the entry that memory is wanted for may be locked by the caller; the lock of any other is taken if it is
 * free, since who loads one sheet is not to wait for those who read another. Only when nothing else can go, and the
 * caller has locked nothing, is it waited for. The directory's is taken in between, with nothing waited for under it.
 */
#include "postgres.h"

#include "cache/cache_private.h"
#include "grid/tile.h"

/* ---- the queue, under the directory's lock ---- */

static int
cache_compare_queued(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	uint64 x = pairingheap_const_container(CacheEntry, queue_node, a)->oldest;
	uint64 y = pairingheap_const_container(CacheEntry, queue_node, b)->oldest;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The heap is in shared memory, its functions are this process's. */
static pairingheap
cache_queue_open(void)
{
	return (pairingheap){cache_compare_queued, NULL, CacheState->queue};
}

void
cache_queue(CacheEntry *entry, uint64 oldest)
{
	pairingheap heap = cache_queue_open();

	if (entry->queued)
		return;
	entry->queued = true;
	entry->oldest = oldest;
	pairingheap_add(&heap, &entry->queue_node);
	CacheState->queue = heap.ph_root;
}

void
cache_unqueue(CacheEntry *entry)
{
	pairingheap heap = cache_queue_open();

	if (!entry->queued)
		return;
	entry->queued = false;
	pairingheap_remove(&heap, &entry->queue_node);
	CacheState->queue = heap.ph_root;
}

static CacheEntry *
cache_queue_first(void)
{
	return CacheState->queue == NULL ? NULL : pairingheap_container(CacheEntry, queue_node, CacheState->queue);
}

/* ---- taking tiles out ---- */

#define EVICTION_PASSED_MAX 16

typedef struct Eviction
{
	bool wait; /* for entries that are locked */
	size_t wanted;
	uint64 started; /* what is newer was used meanwhile */
	size_t freed;
	bool passed_over; /* some entries were locked; of these the first ... */
	uint32 npassed;
	CacheEntry *passed[EVICTION_PASSED_MAX]; /* ... are pinned and out of the queue, to be put back as they were */
} Eviction;

/* Frees tiles that are chained, and a grid of which nothing is left. Nothing is locked but, maybe, the caller's entry.
 */
static void
cache_free_evicted(CacheEntry *entry, GridTile *tiles, Grid *grid)
{
	GridAllocator allocator = cache_allocator(entry);

	while (tiles != NULL)
	{
		GridTile *next = tiles->next_held;

		grid_free_tile(&allocator, tiles);
		tiles = next;
	}
	if (grid != NULL)
		grid_free(&allocator, grid);
}

/* The entry has what a writer holds: it stands behind all others until the writer's end (cache_unpass). */
static uint64
cache_evict_pass(CacheEntry *entry, const Eviction *eviction)
{
	if (entry->passed == 0)
		entry->passed = Max(entry->oldest, 1);
	return eviction->started + 1;
}

/*
 * Takes tiles with stamps up to `bound` out of a locked entry. Returns the stamp with which to queue the entry again,
 * 0: not at all.
 */
static uint64
cache_evict_tiles(CacheEntry *entry, uint64 bound, Eviction *eviction, GridTile **tiles)
{
	uint64 stamp;
	uint32 at;

	if (entry->grid == NULL)
		return 0;
	if (entry->kept)
		return cache_evict_pass(entry, eviction);
	while (grid_oldest(entry->grid, &stamp, &at))
	{
		GridTile *tile;
		size_t before = grid_bytes(entry->grid);

		if (stamp > bound || eviction->freed >= eviction->wanted)
			return Max(stamp, 1);
		tile = grid_detach(entry->grid, at);
		tile->next_held = *tiles;
		*tiles = tile;
		eviction->freed += before - grid_bytes(entry->grid);
		pg_atomic_fetch_add_u64(&CacheState->evictions, 1);
	}
	return grid_tiles_here(entry->grid) > 0 ? cache_evict_pass(entry, eviction) : 0;
}

/* False when somebody else has it locked who is not waited for. */
static bool
cache_evict_lock(CacheEntry *entry, Eviction *eviction, bool *own)
{
	*own = LWLockHeldByMe(&entry->lock);
	if (*own || LWLockConditionalAcquire(&entry->lock, LW_EXCLUSIVE))
		return true;
	if (eviction->wait)
		LWLockAcquire(&entry->lock, LW_EXCLUSIVE);
	else
		eviction->passed_over = true;
	return eviction->wait;
}

/* The entry is pinned, locked, and out of the queue; the lock is given back unless it was our own before. */
static uint64
cache_evict_from(CacheEntry *entry, bool own, uint64 bound, Eviction *eviction)
{
	GridTile *tiles = NULL;
	Grid *grid = NULL;
	uint64 again;

	again = cache_evict_tiles(entry, bound, eviction, &tiles);
	/* What it knows of missing tiles goes with the last of those that were here. */
	if (!own && entry->grid != NULL && grid_tiles_here(entry->grid) == 0 && !entry->kept && !entry->loading &&
		entry->writer_fxid == 0)
	{
		grid = entry->grid;
		eviction->freed += grid_bytes(grid);
		entry->grid = NULL;
		entry->states++;
		cache_note_eviction(entry);
	}
	else if (again == 0 && entry->grid != NULL)
		again = eviction->started + 1; /* tiles may come, or it may go later */
	if (!own)
		LWLockRelease(&entry->lock);
	cache_free_evicted(entry, tiles, grid);
	return again;
}

/* Takes the first entry out of the queue, and pins it; NULL when none has what may go. */
static CacheEntry *
cache_evict_next(const Eviction *eviction, uint64 *bound)
{
	CacheEntry *entry, *next;

	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	entry = cache_queue_first();
	if (entry != NULL && entry->oldest > eviction->started)
		entry = NULL;
	if (entry != NULL)
	{
		cache_unqueue(entry);
		next = cache_queue_first();
		*bound = next != NULL ? Min(next->oldest, eviction->started) : eviction->started;
		pg_atomic_fetch_add_u32(&entry->pins, 1);
	}
	LWLockRelease(&CacheState->directory);
	return entry;
}

/* again: the stamp with which it is queued, 0: not at all. */
static void
cache_evict_put_back(CacheEntry *entry, uint64 again)
{
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	pg_atomic_fetch_sub_u32(&entry->pins, 1);
	if (again > 0)
		cache_queue(entry, again);
	LWLockRelease(&CacheState->directory);
}

/* Who has taken it out of the queue at the moment puts it back as passed over: so seldom that nobody waits for it. */
void
cache_unpass(CacheEntry *entry, uint64 passed)
{
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	if (entry->queued && entry->oldest > passed)
	{
		cache_unqueue(entry);
		cache_queue(entry, passed);
	}
	LWLockRelease(&CacheState->directory);
}

/* One walk along the queue, until something has gone. */
static void
cache_evict_some(Eviction *eviction)
{
	CacheEntry *entry;
	uint64 bound;
	bool own;

	while (eviction->freed == 0 && (entry = cache_evict_next(eviction, &bound)) != NULL)
	{
		if (cache_evict_lock(entry, eviction, &own))
			cache_evict_put_back(entry, cache_evict_from(entry, own, bound, eviction));
		else if (eviction->npassed < EVICTION_PASSED_MAX)
			eviction->passed[eviction->npassed++] = entry;
		else
			cache_evict_put_back(entry, eviction->started + 1);
	}
	while (eviction->npassed > 0)
	{
		entry = eviction->passed[--eviction->npassed];
		cache_evict_put_back(entry, Max(entry->oldest, 1));
	}
}

bool
cache_evict(CacheEntry *own, size_t wanted)
{
	Eviction eviction = {.wanted = wanted, .started = cache_stamp()};

	Assert(wanted > 0);
	if (cache_take_slack(wanted))
		return true;
	cache_evict_some(&eviction);
	if (eviction.freed == 0 && eviction.passed_over && !LWLockHeldByMe(&own->lock))
	{
		eviction.wait = true;
		eviction.started = cache_stamp();
		cache_evict_some(&eviction);
	}
	return eviction.freed > 0;
}
