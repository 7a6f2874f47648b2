/*
 * session_tiles.h - tiles that a session keeps of sheets that it edits without the cache; see session_tiles.c.
 */
#ifndef SESSION_TILES_H
#define SESSION_TILES_H

#include "postgres.h"
#include "cache/cache.h"
#include "grid/grid.h"
#include "lib/ilist.h"
#include "utils/hsearch.h"

typedef struct SessionTiles
{
	dlist_node link;
	CacheKey key;
	uint64 forgotten;	   /* CacheState->forgotten when they were created */
	int64 seq;			   /* the committed state of the cells */
	Size bytes;			   /* of the context, at the end of the last transaction that used them */
	bool in_use;		   /* by the current transaction */
	bool valid;			   /* false from the beginning of a change until it is complete */
	MemoryContext context; /* of all below, and of this */
	Grid *grid;			   /* NULL: nothing was read yet */
	HTAB *set;			   /* the cells that the grid has (cellset.h) */
} SessionTiles;

/* What the session has of the sheet, of a state that may be past; NULL if nothing is usable. segment_first_seq: of the
 * open segment. Caller must hold the sheet lock, here and below. */
extern SessionTiles *session_tiles_find(const CacheKey *key, int64 segment_first_seq);
/* Brings the result of session_tiles_find() to `seq`, the last committed one; creates empty ones if it is NULL. Valid
 * until the end of the transaction. */
extern SessionTiles *session_tiles_use(SessionTiles *tiles, const CacheKey *key, int64 seq);
/* Enforces the limit of memory. Cannot fail. */
extern void session_tiles_end_transaction(void);

#endif
