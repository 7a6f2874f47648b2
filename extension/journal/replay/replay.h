/*
 * replay.h - from stored checkpoints and batches to cells; see replay.c.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "postgres.h"
#include "grid/grid.h"
#include "journal/replay/replay_edit.h"
#include "journal/replay/replay_set.h"
#include "utils/snapshot.h"

/* The cells that the snapshot sees: newest version plus the batches after it. The grid is put into *grid as soon as it
 * exists, for the caller's clean-up. False when the allocator has no room. */
extern bool replay_sheet(int64 sheet_id, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq);
/* The same, but only the tiles that are wanted; the grid notes the others as missing. */
extern bool replay_sheet_tiles(int64 sheet_id, const ReplayTiles *wanted, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, int64 *seq);
/*
 * Adds the tiles, or cells, of a set as they were at seq `until` to a grid that does not hold them yet; its extent
 * becomes the whole sheet's. *seq is where the log ended, at `until` unless it is shorter. False when the allocator has
 * no room.
 */
extern bool replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
							 HTAB *tiles, int64 *seq);
/* Advances a grid that holds the cells of a set as they were at seq `since`. False when the log does not lead to
 * `until`, or the allocator has no room. */
extern bool replay_advance_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot,
								 const GridAllocator *allocator, Grid *grid, HTAB *tiles);
/* Makes it what it is after the edit at seq `until`. The axes come from its allocator. */
extern void replay_find_axes(int64 sheet_id, int64 until, Snapshot snapshot, AxesFollower *follower);

#endif
