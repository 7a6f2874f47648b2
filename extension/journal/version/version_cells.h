/*
 * version_cells.h - the cells that a version stores, and the digest of all cells; see version_cells.c.
 */
#ifndef VERSION_CELLS_H
#define VERSION_CELLS_H

#include "postgres.h"
#include "journal/store/version_store.h"
#include "grid/grid.h"
#include "journal/store/history.h"
#include "utils/snapshot.h"

typedef struct VersionCells
{
	int64 sheet_id;
	int64 seq; /* of the last edit in the grid */
	GridAllocator allocator;
	HistoryVersion before; /* the version before; version_id 0: an empty sheet */
	Grid *grid;
	TileSet *tiles; /* touched by the open segment */
	bool whole;		/* the grid has all tiles. Otherwise it has those of `tiles`, and ... */
	uint64 sum;		/* ... this is the sum of all cells' shares in the digest */
} VersionCells;

/* Begins with the cells of the version before, in the current memory context. */
extern void version_cells_begin(VersionCells *cells, int64 sheet_id, const HistoryVersion *before, Snapshot snapshot);
/* Applies the edits after cells->seq that the snapshot sees, and encodes the touched tiles. */
extern void version_cells_catch_up(VersionCells *cells, Snapshot snapshot);
extern uint64 version_cells_digest(const VersionCells *cells);
extern void version_cells_free(VersionCells *cells);

/* Returns the tiles that edits after `since` and up to `until` have touched. */
extern TileSet *version_touched_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot);

#endif
