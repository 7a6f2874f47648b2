/*
 * load.h - from storage into the shared cache; see load.c.
 */
#ifndef LOAD_H
#define LOAD_H

#include "cache/cache.h"
#include "journal/replay/cellset.h"

typedef enum LoadResult
{
	LOAD_DONE,	  /* examine the entry again */
	LOAD_BUSY,	  /* another process loads, or has changed what could be loaded: examine the entry again */
	LOAD_NO_ROOM, /* also if a recent load of many tiles found no room, and this one was not tried */
	LOAD_EMPTY	  /* the sheet has no edit */
} LoadResult;

/* A load of this many tiles or more is not tried again at once after one found no room. */
#define LOAD_LARGE 64

/* The first load of a pinned entry: the list of all tiles, and the cells of the wanted ones. writer: the caller holds
 * the sheet lock, and may load a sheet without edits. */
extern LoadResult load_sheet(int64 sheet_id, CacheEntry *entry, const CellSetWanted *wanted, bool writer);
/* Loads tiles that are non-resident in the entry's grid. */
extern LoadResult load_tiles(int64 sheet_id, CacheEntry *entry, const GridTileNo *tiles, uint32 count);

#endif
