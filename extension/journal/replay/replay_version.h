/*
 * replay_version.h - the cells of a version, from its stored tiles; see replay_version.c.
 *
 * False when the allocator has no room. A grid is put into *grid as soon as it exists, for the caller's clean-up.
 * Damage is raised.
 */
#ifndef REPLAY_VERSION_H
#define REPLAY_VERSION_H

#include "postgres.h"
#include "grid/axes.h"
#include "grid/grid.h"
#include "journal/store/replay_find.h"
#include "journal/replay/replay_set.h"

extern bool replay_version(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot,
						   const GridAllocator *allocator, Grid **grid);
/* The same, but only the tiles that are wanted; the grid notes the others as missing. */
extern bool replay_version_tiles(int64 sheet_id, const ReplayVersion *version, const ReplayTiles *wanted,
								 Snapshot snapshot, const GridAllocator *allocator, Grid **grid);
/* Adds the tiles, or cells, of a set to a grid that does not hold them yet; it gets the version's axes and extent. */
extern bool replay_version_add(int64 sheet_id, const ReplayVersion *version, HTAB *set, Snapshot snapshot,
							   const GridAllocator *allocator, Grid *grid);

/* The whole version, but damage is told and not raised: the first tile that does not decode, or error EDIT_END. */
typedef struct ReplayFault
{
	EditError error;
	bool axes;		 /* it is the axes that do not decode, or else ... */
	uint32 row, col; /* ... the tile of these numbers */
} ReplayFault;
extern bool replay_version_try(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, ReplayFault *fault);

/* The axes alone, NULL for the identity; the allocator raises by itself when it has no room. */
extern Axes *replay_version_axes(int64 sheet_id, const ReplayVersion *version, const GridAllocator *allocator);

#endif
