/*
 * load.h - from storage into the shared cache; see load.c.
 */
#ifndef LOAD_H
#define LOAD_H

#include "cache/cache.h"
#include "journal/replay/replay_set.h"

typedef enum LoadResult
{
	LOAD_DONE,	  /* look again */
	LOAD_BUSY,	  /* somebody else loads, or has changed what could be loaded: look again */
	LOAD_NO_ROOM, /* or it was not tried, as there was none lately */
	LOAD_EMPTY	  /* the sheet has no log */
} LoadResult;

/* Loads by so many tiles or more are not tried again at once when there was no room. */
#define LOAD_LARGE 64

/* The number of tiles that are wanted, whether there are such or not. */
extern uint64 load_tile_count(const ReplayTiles *wanted);
/* The first load of a pinned entry: knowledge of all tiles, and the cells of those that are wanted. A sheet without a
 * log is loaded by its writer only, who knows that it is new. */
extern LoadResult load_sheet(int64 sheet_id, CacheEntry *entry, const ReplayTiles *wanted, bool writer);
/* Tiles that the entry's grid misses. */
extern LoadResult load_tiles(int64 sheet_id, CacheEntry *entry, const GridTileNo *tiles, uint32 count);

#endif
