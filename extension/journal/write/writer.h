/*
 * writer.h - the sheets that the current transaction has locked; see writer.c.
 *
 * Words for the end of a change in this folder:
 *
 *   publish    at commit: the staged edits are set in the shared grid, and the entry has no writer
 *   withdraw   at abort, or without changes: nothing is set, and the entry has no writer
 *   unpin      a part of both: pinned tiles and reserved room of the shared grid are free again
 *   close      after either: the WriterSheet leaves writer_sheets, and its entry is unpinned
 *   discard    withdraw, close, and free the memory: the same transaction may open the sheet again
 *   undo       ROLLBACK TO: the changes of a subtransaction are removed
 *   forget     at commit: what shared memory knows of the sheet is dropped, because its rows were changed
 */
#ifndef WRITER_H
#define WRITER_H

#include "postgres.h"
#include "access/xact.h"
#include "cache/cache.h"
#include "common/edit_codec.h"
#include "grid/line_maps.h"
#include "lib/ilist.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"

/* One append or claim: the unit that ROLLBACK TO undoes. */
typedef struct WriterChange
{
	dlist_node link;
	SubTransactionId subid;
	CacheMeta before;
	bool line_maps_known;
	LineMaps *maps; /* before the change, if known */
	uint32 from;	/* its first edit in ws->staged; the next change's first one ends it */
} WriterChange;

typedef struct WriterSheet
{
	dlist_node link;
	int64 sheet_id;
	SubTransactionId locked_in; /* the subtransaction that holds the sheet lock */
	CacheEntry *entry;			/* pinned; NULL without shared memory */
	uint64 fxid;				/* 0 until the first change */
	CacheMeta meta;				/* the present state, own changes included */
	bool learned;				/* meta is complete */
	dlist_head changes;			/* oldest first */
	/* the state before own changes */
	int64 base_seq;
	uint64 base_fxid;			  /* the transaction of its last edit */
	Grid *base;					  /* a private copy, if the tiles cannot be pinned in the shared grid ... */
	HTAB *base_set;				  /* ... of these cells only, unless NULL */
	struct SessionTiles *session; /* the owner of both; NULL: the transaction */
	/* the row map and column map */
	bool line_maps_known;
	LineMaps *maps;					  /* at present, own changes included */
	LineMaps *base_maps;			  /* before own changes; the same address without any */
	SubTransactionId line_maps_subid; /* that made the present ones; invalid: a rollback may need them */
	/* edits of all changes */
	struct StagedEdit *staged; /* staging.h */
	uint32 nstaged, staged_size;
	bool ascending;		/* they are of cells in reading order, each once */
	uint32 *newest;		/* index of `staged`: by the hash of a cell, its newest edit; NULL: not built ... */
	uint32 newest_size; /* ... a power of two */
	/* the end of the transaction */
	bool pins;			/* tiles of the shared grid, or all of it */
	bool forget;		/* drop what the entry knows at commit */
	bool taken_over;	/* claimed from a holder that did not release the sheet */
	bool drop_grid;		/* a reservation failed: the next reader loads the sheet again */
	int64 origin;		/* of all changes; 0 if they differ */
	VersionCause cause; /* of the version that was made, if meta.segment_id says that there is one */

	MemoryContext staged_context; /* of many staged edits; NULL: they are few */
	MemoryContext grid_context;	  /* for private grids and versions; NULL: not needed yet */
} WriterSheet;

static inline bool
writer_has_changes(const WriterSheet *ws)
{
	return !dlist_is_empty(unconstify(dlist_head *, &ws->changes));
}

/* A snapshot that sees all that is committed and the transaction's own changes. Caller must hold the sheet lock. */
static inline Snapshot
writer_snapshot(void)
{
	return GetLatestSnapshot();
}

extern dlist_head writer_sheets;
/*
 * Memory that a session keeps for its next transaction, so that its pages are not returned to the system: what lives as
 * long as the transaction, and what a call allocates and frees with pfree(). Exist after writer_begin().
 */
extern MemoryContext writer_context;
extern MemoryContext writer_scratch;
extern void writer_begin(void);
/* For private grids of the sheet, until the end of the transaction: freed memory is reused there. */
extern MemoryContext writer_grid_context(WriterSheet *ws);
/* Raises an error where nothing may be written. `function`: the SQL function's name. */
extern void writer_require_writable(const char *function);
extern void writer_lock_sheet(int64 sheet_id);
/* Without waiting; false if another transaction holds the lock. */
extern bool writer_try_lock_sheet(int64 sheet_id);
/* Undoes one of these, before anything of the sheet was read. The subtransaction must be the same. */
extern void writer_release_lock(int64 sheet_id);
/* The sheet lock in PostgreSQL's lock table. */
extern void writer_lock_tag(int64 sheet_id, LOCKTAG *tag);
/* Takes the sheet lock and reads the sheet's present state. 40001 if a transaction-wide snapshot does not see it. */
extern WriterSheet *writer_open(int64 sheet_id);
/* 42704 if the sheet does not exist, ST001 if it is in the trash. */
extern void writer_require_live(WriterSheet *ws);
/* Begins a change: from here on readers know that the transaction writes. The caller may alter meta after it. */
extern void writer_begin_change(WriterSheet *ws, int64 origin);
/* At commit, drops what shared memory knows of the sheet. */
extern void writer_forget(WriterSheet *ws);
/* The ends of subtransactions, of the transaction, and PREPARE; for edit_life.c. */
extern void writer_abort_sub(WriterSheet *ws, SubTransactionId subid);
extern void writer_commit_sub(WriterSheet *ws, SubTransactionId subid, SubTransactionId parent);
extern void writer_refuse_prepare(void);
extern void writer_close(WriterSheet *ws);

#endif
