/*
 * replay.h - from stored versions and batches to cells, and single edits into cells, row map and column map; see
 * replay.c.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "grid/line_maps.h"
#include "grid/grid.h"
#include "journal/replay/cellset.h"
#include "utils/snapshot.h"

/* ---- cells ---- */
/* The cells that the snapshot sees: the newest version and the batches after it. *grid is set as soon as the grid
 * exists, so that the caller can free it. False if the allocator has no room. */
extern bool replay_sheet(int64 sheet_id, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq);
/* The same in the current memory context. */
extern Grid *replay_sheet_privately(int64 sheet_id, Snapshot snapshot, int64 *seq);
/* The same for the wanted tiles only; the grid lists the others as non-resident. */
extern bool replay_sheet_tiles(int64 sheet_id, const CellSetWanted *wanted, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, int64 *seq);
/*
 * Adds the cells of a set, as of seq `until`, to a grid that does not have them yet; sets the grid's extent and maps to
 * those of the sheet. *seq: the last edit found, `until` unless the log ends before it. False if the allocator has no
 * room.
 */
extern bool replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
							 HTAB *set, int64 *seq);
/* Advances a grid with the cells of a set from seq `since` to `until`. False if the log does not lead there, or the
 * allocator has no room. */
extern bool replay_advance_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot,
								 const GridAllocator *allocator, Grid *grid, HTAB *set);

/* ---- one edit ---- */
/* Applies one edit; false if the allocator has no room. */
extern bool replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit);

/* ---- the row map and column map alone ---- */
typedef struct LineMapsFollower
{
	const GridAllocator *allocator; /* which raises an error if it has no room */
	LineMaps *maps;
	uint32 rows, cols; /* the extent, on which structure edits depend */
} LineMapsFollower;
extern void replay_follow_maps(LineMapsFollower *follower, const Edit *edit);
/* Sets the follower to the state after the edit at seq `until`. */
extern void replay_find_maps(int64 sheet_id, int64 until, Snapshot snapshot, LineMapsFollower *follower);

#endif
