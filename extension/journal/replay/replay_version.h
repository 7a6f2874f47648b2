/*
 * replay_version.h - the cells of a version, from its stored tiles; see replay_version.c.
 *
 * Functions return false if the allocator has no room. *grid is set as soon as the grid exists, so that the caller can
 * free it. Damage raises an error.
 */
#ifndef REPLAY_VERSION_H
#define REPLAY_VERSION_H

#include "postgres.h"
#include "grid/line_maps.h"
#include "grid/grid.h"
#include "journal/replay/cellset.h"
#include "journal/store/history.h"

extern bool replay_version(int64 sheet_id, const HistoryVersion *version, Snapshot snapshot,
						   const GridAllocator *allocator, Grid **grid);
/* The same for the wanted tiles only; the grid lists the others as non-resident. */
extern bool replay_version_tiles(int64 sheet_id, const HistoryVersion *version, const CellSetWanted *wanted,
								 Snapshot snapshot, const GridAllocator *allocator, Grid **grid);
/* Adds the cells of a set to a grid that does not have them yet; sets its extent and maps to the version's. */
extern bool replay_version_add(int64 sheet_id, const HistoryVersion *version, HTAB *set, Snapshot snapshot,
							   const GridAllocator *allocator, Grid *grid);

/* The first damage of a version; error EDIT_END: none. */
typedef struct ReplayFault
{
	EditError error;
	bool maps;		 /* the row map and column map do not decode, or else ... */
	uint32 row, col; /* ... the tile with these numbers */
} ReplayFault;
/* The whole version; reports damage instead of raising it. */
extern bool replay_version_try(int64 sheet_id, const HistoryVersion *version, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, ReplayFault *fault);

/* The row map and column map alone, NULL for the identity. The allocator must raise an error if it has no room. */
extern LineMaps *replay_version_maps(int64 sheet_id, const HistoryVersion *version, const GridAllocator *allocator);

#endif
