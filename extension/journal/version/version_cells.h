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
	HistoryVersion before; /* on which it builds; version_id 0: an empty sheet */
	Grid *grid;
	TileSet *tiles; /* those that the open log has touched */
	bool whole;		/* the grid has all tiles; otherwise those of `tiles`, and ... */
	uint64 sum;		/* ... this is what all cells of the sheet add to the digest */
} VersionCells;

/* As of the version before, in the current memory context. */
extern void version_cells_begin(VersionCells *cells, int64 sheet_id, const HistoryVersion *before, Snapshot snapshot);
/* Takes in what the snapshot sees after cells->seq, and encodes the tiles. Returns the number of edits. */
extern int64 version_cells_catch_up(VersionCells *cells, Snapshot snapshot);
extern uint64 version_cells_digest(const VersionCells *cells);
extern void version_cells_free(VersionCells *cells);

/* The tiles that edits after `since` and up to `until` have touched. */
extern TileSet *version_touched_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot);

#endif
