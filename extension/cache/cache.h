/*
 * cache.h - grids of sheets in shared memory: directory, pins, loads, eviction, visibility.
 *
 * Needs shared_preload_libraries = 'pg_sheet'; without it cache_enabled() is false and nothing else here may be called.
 * docs/design/cache.md describes how writers, readers and loaders work together.
 *
 * Files, each of which uses those before it: cache_memory.c (the shared area and its budget), cache.c (entries),
 * cache_evict.c (the eviction policy), cache_load.c (loads), cache_stats.c (SQL functions).
 *
 * Lock order: sheet lock (heavyweight), entry's gate, entry lock, directory lock, allocator's locks. The directory lock
 * is never held while waiting for an entry's lock. No lock is held while a table is read or an error is raised.
 */
#ifndef CACHE_H
#define CACHE_H

#include "postgres.h"
#include "support/workqueue.h"
#include "grid/grid.h"
#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/snapshot.h"

/* TRUNCATE and DROP EXTENSION end the use of a relfilenode: its entries age and are evicted. A file that a transaction
 * has created is emptied in place by TRUNCATE, so nothing of it is cached. Entries of a database are removed when it is
 * dropped, since another one may get its OID, and from its template all the other numbers. */
typedef struct CacheKey
{
	Oid database;
	Oid relfilenode; /* of sheet.log_batch */
	int64 sheet_id;
} CacheKey;

/* What a writer knows of a sheet besides its cells. Exact for whoever holds the sheet lock. */
typedef struct CacheMeta
{
	int64 last_seq;
	int64 last_at;		 /* time of that edit, microseconds since the Unix epoch */
	int64 segment_id;	 /* the open log */
	int64 log_first_seq; /* first seq of the open log (of an edit, or of the one to come) */
	int64 log_bytes;	 /* of its edits that were appended since this was learned, before compression */
	int64 epoch;		 /* the highest that ever wrote or claimed ... */
	uint64 epoch_round;	 /* ... since this many resets of all epochs */
	uint32 rows, cols;	 /* extent; 0 x 0: not known */
	uint64 last_fxid;	 /* full transaction id of the last edit's writer; 0: visible to all */
	bool exists;		 /* the sheet has a row in sheet.sheet ... */
	bool trashed;		 /* ... which is in the trash */
	bool calendar;		 /* ... and which says that it is a calendar */
} CacheMeta;

/* What an entry holds. cache_set_state() has the legal transitions, and the lock that each needs. */
typedef enum CacheEntryState
{
	CACHE_FREE,		   /* no key */
	CACHE_PLACEHOLDER, /* a key, but no grid */
	CACHE_LOADING,	   /* no grid; a first load is under way, so nobody writes */
	CACHE_RESIDENT,	   /* a grid, of which tiles may be non-resident */
	CACHE_FILLING,	   /* the same, and a load of non-resident tiles is under way */
	CACHE_PINNED,	   /* a writer reads the whole grid without the lock: no tile is evicted */
	CACHE_STATES
} CacheEntryState;

typedef struct CacheEntry
{
	CacheKey key;
	LWLock lock;
	LWLock gate;			   /* of those who wait to change the entry: see cache_lock_change() */
	pg_atomic_uint32 waiting;  /* their number */
	ConditionVariable changed; /* a load ended, or a writer published or gave up */

	/* Incremented under the directory lock only: whoever holds it, and finds 0, may use the entry for another sheet. */
	pg_atomic_uint32 pins;
	dlist_node link;	   /* under the directory lock: in the LRU list or in the free list */
	dlist_node clock_link; /* likewise: in the list of the eviction clock, if ... */
	bool clocked;

	/* what the grid (or the one being loaded) has taken from the budget */
	pg_atomic_uint64 bytes;

	/* of those who pin it, without a lock: at worst a sheet is checked twice (journal/store/recheck.c) */
	bool opened;	  /* it was seen whether the sheet is to be checked */
	CheckCause check; /* it is, and the queue had no room */

	/* under the entry's lock */
	CacheEntryState state;
	uint32 hand;			  /* of the eviction clock in this grid */
	uint32 skip_loads;		  /* after a large load that found no room: the next so many do not try again */
	uint32 next_skip;		  /* and so many after another one */
	Grid *grid;				  /* NULL: see `state` */
	Grid *loading_grid;		  /* the loader's alone */
	uint64 nonresident_edits; /* published edits of non-resident tiles: they void a load that is under way */
	uint64 changes;			  /* how often the grid, or what readers find in it, has changed */
	int64 seq;				  /* of the last edit in the grid */
	uint64 last_fxid;		  /* the last transaction in the grid */
	uint64 writer_fxid;		  /* the transaction that has appended and has not ended; 0: none */
	bool meta_valid;
	CacheMeta meta;
} CacheEntry;

/* Why a reader did not use the cache. */
typedef enum CachePrivate
{
	CACHE_PRIVATE_OLD_SNAPSHOT, /* the snapshot does not see the last edit in the grid */
	CACHE_PRIVATE_OWN_EDITS,	/* the transaction has edited the sheet itself */
	CACHE_PRIVATE_NO_ROOM,		/* the grid does not fit, or no entry was free */
	CACHE_PRIVATE_WRITER,		/* the entry is a placeholder and has a writer */
	CACHE_PRIVATE_SERIALIZABLE, /* reads must be known to the predicate locks */
	CACHE_PRIVATE_EMPTY,		/* no log: a sheet that was purged, or never was */
	CACHE_PRIVATE_REASONS
} CachePrivate;

typedef struct CacheShared
{
	LWLock directory;
	int entry_tranche;
	int dsa_tranche;
	dlist_head lru;				  /* entries with a key, most recently pinned first */
	dlist_head free;			  /* entries without a key */
	dlist_head clock;			  /* entries with a grid: the hand of the eviction clock is at the first one */
	uint32 clocked;				  /* their number */
	uint64 budget;				  /* bytes of grids that may be held */
	pg_atomic_uint64 epoch_round; /* how often all epochs have been forgotten */
	pg_atomic_uint64 forgotten;	  /* how often what is known of any sheet was (writer_forget) */
	pg_atomic_uint64 used;
	pg_atomic_uint64 hits;
	pg_atomic_uint64 misses;
	pg_atomic_uint64 loads;
	pg_atomic_uint64 load_failures; /* no room */
	pg_atomic_uint64 evictions;		/* tiles */
	pg_atomic_uint64 waits;			/* for a publication or somebody else's load */
	pg_atomic_uint64 private_reads[CACHE_PRIVATE_REASONS];
} CacheShared;

/* The length of the open log. */
static inline SegmentLength
cache_tail(const CacheMeta *meta)
{
	return (SegmentLength){meta->last_seq - meta->log_first_seq + 1, meta->log_bytes};
}

extern CacheShared *CacheState; /* NULL without shared memory */
extern int cache_size_kb;		/* setting */
extern int cache_max_sheets;	/* setting */

static inline bool
cache_enabled(void)
{
	return CacheState != NULL;
}

/* ---- start-up ---- */
extern Size cache_shmem_size(void);
extern void cache_shmem_startup(void); /* under AddinShmemInitLock */

/* ---- pins ---- */
/* The entry of the key, created if there is none; NULL if all entries are pinned. A pinned entry keeps its key. */
extern CacheEntry *cache_pin(const CacheKey *key);
extern void cache_unpin(CacheEntry *entry); /* cannot fail */
/* The same for the time of one call: an error unpins (cache_release_at_abort). */
extern CacheEntry *cache_pin_reader(const CacheKey *key);
extern void cache_unpin_reader(CacheEntry *entry);
/* The sheet's last seq as far as it is known here, for estimates; 0: it is not. */
extern int64 cache_guess_seq(const CacheKey *key);
/* Its columns, in the same way. */
extern uint32 cache_guess_cols(const CacheKey *key);
/* Removes the entries of a database that nobody uses, and nobody can connect to. Waits for evictors that pin one. */
extern void cache_forget_database(Oid database);
/* From the abort callbacks of transactions and subtransactions: ends the reader's pin and the load. */
extern void cache_release_at_abort(void);

/* ---- the entry's lock ---- */
/* Exclusive, for changes. Shared locks overtake waiters for an exclusive one, so successive readers could starve a
 * writer. Hence writers wait while holding the gate, which readers pass before each read, and before each further slice
 * of a large one, when somebody waits there. */
extern void cache_lock_change(CacheEntry *entry);
extern void cache_lock_read(CacheEntry *entry); /* shared */

/* A load is under way. Caller must hold entry->lock. */
static inline bool
cache_is_loading(const CacheEntry *entry)
{
	return entry->state == CACHE_LOADING || entry->state == CACHE_FILLING;
}
/* Caller must hold the lock that the transition needs (cache.c). */
extern void cache_set_state(CacheEntry *entry, CacheEntryState to);

/* ---- memory (cache_memory.c) ---- */
extern Size cache_memory_size(void);
extern void cache_memory_startup(int tranche, bool create);
/* Attaches this process. May raise an error; called before anything is locked. */
extern void cache_memory_attach(void);
/* Takes memory for the entry's grid if the budget has room; NULL otherwise. */
extern void *cache_memory_take(CacheEntry *entry, size_t size);
/* A GridAllocator's free(); ctx is the entry, or NULL for a detached grid. */
extern void cache_memory_give(void *ctx, void *ptr, size_t size);
/* An allocator that ignores the budget, for copies that replace something larger. *balance: bytes freed less bytes
 * taken, which cache_memory_settle() accounts to the entry. */
extern GridAllocator cache_memory_replacing(int64 *balance);
extern void cache_memory_settle(CacheEntry *entry, int64 balance);

/* ---- grids ---- */
/* Takes the grid away from the entry, for cache_free_detached() after unlocking. Caller must hold entry->lock in
 * exclusive mode. */
extern Grid *cache_detach_grid(CacheEntry *entry);
extern void cache_free_detached(Grid *grid);
/* Puts the entry on the eviction clock, unless it is there; takes it off. Caller must hold the directory lock. */
extern void cache_clock_add(CacheEntry *entry);
extern void cache_clock_remove(CacheEntry *entry);
/* Tells the worker that the cells of a sheet were evicted. Caller must hold the entry's lock, or the directory lock if
 * nobody pins the entry. */
extern void cache_queue_version(const CacheEntry *entry);

/* ---- eviction (cache_evict.c) ---- */
/* Allocator for the entry's grid; evicts tiles of any sheet when there is no room. Callable under entry->lock in
 * exclusive mode: then tiles that must stay are pinned. */
extern GridAllocator cache_allocator(CacheEntry *entry);
/* Frees up to `wanted` bytes. Returns false if nothing was freed. Waits for locked entries if nothing else can be
 * evicted and the caller does not hold own->lock. */
extern bool cache_evict(CacheEntry *own, size_t wanted);

/* ---- loads (cache_load.c) ---- */
/* Starts the first load, unless another process loads, the grid is there, or a writer has appended. A large load is
 * retried ever more rarely after one that found no room. */
extern bool cache_begin_load(CacheEntry *entry, bool large);
typedef enum CacheLoaded
{
	CACHE_LOADED,		/* entry->loading_grid becomes the grid */
	CACHE_LOAD_NO_ROOM, /* do not try again with every read */
	CACHE_LOAD_EMPTY,	/* the sheet has no log */
	CACHE_LOAD_FAILED	/* an error ended it */
} CacheLoaded;
/* Ends the first load. seq and last_fxid are those of the grid. */
extern void cache_end_load(CacheEntry *entry, CacheLoaded loaded, int64 seq, uint64 last_fxid);

/* A load of non-resident tiles. */
typedef struct CachePart
{
	int64 seq;				  /* as of which they are wanted */
	uint64 nonresident_edits; /* of the entry then */
	bool changed;			  /* some are resident by now: nothing was begun */
} CachePart;
/* Returns false if another process loads, not all of the tiles are non-resident, or (of a large load) there was no room
 * lately. */
extern bool cache_begin_part(CacheEntry *entry, bool large, const GridTileNo *wanted, uint32 count, CachePart *part);
/* Merges the tiles of entry->loading_grid. Returns false if the load was void. */
extern bool cache_end_part(CacheEntry *entry, const CachePart *part, CacheLoaded loaded, const GridTileNo *wanted,
						   uint32 count);
/* Waits until no load is under way. Returns false if there was none. */
extern bool cache_wait_load(CacheEntry *entry);
/* Waits until the entry's writer is another than this. */
extern void cache_wait_writer(CacheEntry *entry, uint64 writer_fxid);

/* ---- visibility ---- */
extern bool cache_snapshot_sees(Snapshot snapshot, uint64 fxid);

static inline void
cache_count_private(CachePrivate reason)
{
	pg_atomic_fetch_add_u64(&CacheState->private_reads[reason], 1);
}

#endif
