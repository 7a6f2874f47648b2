/*
 * cache.h - grids of sheets in shared memory: directory, LRU, pins, loads, visibility.
 *
 * Needs shared_preload_libraries = 'pg_sheet'; without it cache_enabled() is false and nothing else here may be called.
 * The protocol between writers, readers and loaders is told in docs/ARCHITECTURE.md ("How an edit commits").
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
#include "lib/pairingheap.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/snapshot.h"

/* TRUNCATE gives the log a new relfilenode, DROP EXTENSION too: entries of the old one just grow old. (A file that is
 * the transaction's own is emptied where it is; nothing of it is cached.) Those of a database are forgotten when it is
 * dropped: another one may get its number, and from its template all the others. */
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
} CacheMeta;

typedef struct CacheEntry
{
	CacheKey key;
	LWLock lock;
	LWLock gate;			   /* of those who wait to change it, see cache_lock_change() ... */
	pg_atomic_uint32 waiting;  /* ... and how many they are */
	ConditionVariable changed; /* a load ended, or a writer published or gave up */

	/* more of them only under the directory lock: who has it, and finds none, may use the entry for another sheet */
	pg_atomic_uint32 pins;

	/* under the directory lock */
	dlist_node link; /* in the LRU list, or in the free list */
	bool used;
	bool queued;   /* for eviction, by ... */
	uint64 oldest; /* ... a stamp that none of its tiles' is below */
	pairingheap_node queue_node;
	bool slack_queued; /* some tiles have been edited; it becomes true under the entry's lock, too */
	dlist_node slack_link;
	uint64 slack_looked; /* CacheState->asked when they were looked at */

	/* what the grid (or the one being loaded) has taken from the budget */
	pg_atomic_uint64 bytes;

	/* of those who pin it, without a lock: at worst a sheet is checked twice (journal/recheck.c) */
	bool opened;	  /* it was seen whether the sheet is to be checked */
	CheckCause check; /* it is, and the queue had no room */

	/* under the entry's lock */
	bool loading;		/* somebody loads; nobody else does. Without a grid nobody writes meanwhile */
	uint32 slack_at;	/* the tile that is looked at next for room that it does not need */
	bool kept;			/* a writer reads all of the grid without the lock: no tile is taken out */
	uint64 passed;		/* its place in the order when it was passed over for what a writer holds; 0: it was not */
	uint32 skip_loads;	/* after a large load that found no room: so many do not try again ... */
	uint32 next_skip;	/* ... and so many after the next one */
	Grid *grid;			/* NULL: a stub. Tiles may be missing; those that a writer holds are not taken out */
	Grid *loading_grid; /* the loader's alone, while `loading` */
	uint64 missed;		/* edits published of tiles that are missing: a load of tiles that this overtakes is void */
	uint64 states;		/* how often the grid, or what readers find in it, has become another */
	int64 seq;			/* the state of the grid */
	uint64 last_fxid;	/* the last transaction in the grid */
	uint64 writer_fxid; /* the transaction that has appended and has not ended; 0: none */
	bool meta_valid;
	CacheMeta meta;
} CacheEntry;

/* Why a reader did not use the cache. */
typedef enum CachePrivate
{
	CACHE_PRIVATE_OLD_SNAPSHOT, /* the snapshot does not see the last edit in the grid */
	CACHE_PRIVATE_OWN_EDITS,	/* the transaction has edited the sheet itself */
	CACHE_PRIVATE_NO_ROOM,		/* the grid does not fit, or no entry was free */
	CACHE_PRIVATE_WRITER,		/* the entry is a stub and has a writer */
	CACHE_PRIVATE_SERIALIZABLE, /* reads must be known to the predicate locks */
	CACHE_PRIVATE_EMPTY,		/* no log: a sheet that was purged, or never was */
	CACHE_PRIVATE_REASONS
} CachePrivate;

typedef struct CacheShared
{
	LWLock directory;
	int entry_tranche;
	int dsa_tranche;
	dlist_head lru;				  /* most recently used first */
	dlist_head free;			  /* entries without a key */
	pairingheap_node *queue;	  /* entries with tiles, the one with the oldest first */
	dlist_head slack;			  /* entries with edited tiles, those that were not looked at for longest first */
	uint64 budget;				  /* bytes of grids that may be held */
	pg_atomic_uint64 epoch_round; /* how often all epochs have been forgotten */
	pg_atomic_uint64 forgotten;	  /* how often what is known of any sheet was (writer_forget) */
	pg_atomic_uint64 used;
	pg_atomic_uint64 asked; /* bytes for which there was no room at first */
	pg_atomic_uint64 hits;
	pg_atomic_uint64 misses;
	pg_atomic_uint64 loads;
	pg_atomic_uint64 load_failures; /* no room */
	pg_atomic_uint64 evictions;		/* tiles */
	pg_atomic_uint64 clock;			/* stamps of uses */
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
extern int cache_size_kb;		/* GUC */
extern int cache_max_sheets;	/* GUC */

static inline bool
cache_enabled(void)
{
	return CacheState != NULL;
}

/* ---- start-up ---- */
extern Size cache_shmem_size(void);
extern void cache_shmem_startup(void); /* under AddinShmemInitLock */

/* ---- pins ---- */
/* The entry of the key, made when there is none; NULL when all entries are pinned. A pinned entry stays what it is. */
extern CacheEntry *cache_pin(const CacheKey *key);
extern void cache_unpin(CacheEntry *entry); /* cannot fail */
/* The same for the time of one call: an error unpins (cache_release_at_abort). */
extern CacheEntry *cache_pin_reader(const CacheKey *key);
extern void cache_unpin_reader(CacheEntry *entry);
/* The sheet's last seq as far as it is known here, for estimates; 0: it is not. */
extern int64 cache_guess_seq(const CacheKey *key);
/* Its columns, in the same way. */
extern uint32 cache_guess_cols(const CacheKey *key);
/* Nobody is in the database, and nobody can enter it. Waits for those who are just making room for others. */
extern void cache_forget_database(Oid database);
/* From the abort callbacks of transactions and subtransactions: ends the reader's pin and the load. */
extern void cache_release_at_abort(void);

/* ---- the entry's lock ---- */
/* Takes it to change something (exclusive). Shared locks overtake those who wait for an exclusive one, so that readers
 * who follow one another would keep it for ever. So those who wait stand in a gate, which readers pass before each
 * read, and before each further slice of a large one, when somebody is there. */
extern void cache_lock_change(CacheEntry *entry);
extern void cache_lock_read(CacheEntry *entry); /* shared */

/* ---- grids ---- */
/* Allocator for the entry's grid; takes out the tiles that were not used for longest, of any sheet, when there is no
 * room. Callable under the entry's lock (exclusive): then tiles that must stay are held. */
extern GridAllocator cache_allocator(CacheEntry *entry);
/* The allocator's way to make room for an entry: has tiles give back what they do not need, or takes some out, until
 * `wanted` bytes are free or nothing is left that may go. False when nothing went. When the entry's lock is not held,
 * others that are locked are waited for, if nothing else can go. */
extern bool cache_evict(CacheEntry *own, size_t wanted);
/* Tiles of the entry's grid, which is locked, have been edited. Cannot fail. */
extern void cache_note_edited(CacheEntry *entry);
/* When a writer holds nothing more: gives back the place in the order that the entry had when it was passed over. */
extern void cache_unpass(CacheEntry *entry, uint64 passed);
/* A stamp for grid_touch(). */
static inline uint64
cache_stamp(void)
{
	return pg_atomic_add_fetch_u64(&CacheState->clock, 1);
}
/* Starts the first load, unless somebody else loads, the grid is there, or a writer has appended. A large one is not
 * tried each time when there was no room. */
extern bool cache_begin_load(CacheEntry *entry, bool large);
typedef enum CacheLoaded
{
	CACHE_LOADED,		/* entry->loading_grid becomes the grid */
	CACHE_LOAD_NO_ROOM, /* do not try again with every read */
	CACHE_LOAD_EMPTY,	/* the sheet has no log */
	CACHE_LOAD_FAILED	/* an error ended it */
} CacheLoaded;
/* Ends it. seq and last_fxid are those of the grid. */
extern void cache_end_load(CacheEntry *entry, CacheLoaded loaded, int64 seq, uint64 last_fxid);

/* A load of tiles that the entry's grid misses. */
typedef struct CachePart
{
	int64 seq;	   /* as of which they are wanted */
	uint64 missed; /* entry->missed then */
	bool changed;  /* some are not missing any more: nothing was begun */
} CachePart;
/* False when somebody else loads, or not all of the tiles are missing, or (for a large one) there was no room lately.
 */
extern bool cache_begin_part(CacheEntry *entry, bool large, const GridTileNo *wanted, uint32 count, CachePart *part);
/* Merges the tiles of entry->loading_grid; false when what was loaded was no longer right. */
extern bool cache_end_part(CacheEntry *entry, const CachePart *part, CacheLoaded loaded, const GridTileNo *wanted,
						   uint32 count);
/* Waits until no load is under way; false when there was none. */
extern bool cache_wait_load(CacheEntry *entry);
/* Waits until the entry's writer is another than this. */
extern void cache_wait_writer(CacheEntry *entry, uint64 writer_fxid);
/* Takes the grid away from the entry (exclusive lock held); free it after unlocking. */
extern Grid *cache_detach_grid(CacheEntry *entry);
extern void cache_free_detached(Grid *grid);

/* ---- visibility ---- */
extern bool cache_snapshot_sees(Snapshot snapshot, uint64 fxid);
/* The full id of a transaction id that is on disk. */
extern uint64 cache_full_xid(TransactionId xid);

static inline void
cache_count_private(CachePrivate reason)
{
	pg_atomic_fetch_add_u64(&CacheState->private_reads[reason], 1);
}

#endif
