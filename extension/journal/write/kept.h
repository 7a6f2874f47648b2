/*
 * kept.h - cells that a session keeps of the sheets that it edits without the cache; see kept.c.
 */
#ifndef KEPT_H
#define KEPT_H

#include "postgres.h"
#include "cache/cache.h"
#include "grid/grid.h"
#include "lib/ilist.h"
#include "utils/hsearch.h"

typedef struct KeptSheet
{
	dlist_node link;
	CacheKey key;
	uint64 forgotten;	   /* CacheState->forgotten when it was made */
	int64 seq;			   /* the state of the cells; committed */
	Size bytes;			   /* of the context, when the last transaction that has opened it ended */
	bool opened;		   /* by the current transaction */
	bool right;			   /* false from the beginning of a change until it is complete */
	MemoryContext context; /* of all below, and of this */
	Grid *grid;			   /* NULL: nothing has been read yet */
	HTAB *tiles;		   /* the set of the cells that are known (replay_make_set) */
} KeptSheet;

/* Caller must hold the sheet lock. */
/* What the session keeps of the sheet, of a state that may be past; NULL when that is nothing. log_first_seq is the
 * first of the open log. */
extern KeptSheet *kept_find(const CacheKey *key, int64 log_first_seq);
/* The same (it was just found) as of `seq`, the sheet's last committed one; made when it is NULL. Valid until the
 * transaction ends. */
extern KeptSheet *kept_open(KeptSheet *kept, const CacheKey *key, int64 seq);
/* At the end of a transaction: makes what is kept as small as it may be. Cannot fail. */
extern void kept_end_transaction(void);

#endif
