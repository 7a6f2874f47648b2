/*
 * replay_edit.h - one edit of the log, into cells and axes; see replay_edit.c.
 */
#ifndef REPLAY_EDIT_H
#define REPLAY_EDIT_H

#include "postgres.h"
#include "grid/axes.h"
#include "common/edit_codec.h"
#include "grid/grid.h"

/* What a structure edit does; false when it says something that cannot be. */
extern bool replay_change_of(const Edit *edit, AxesChange *change);

/* Applies one edit; false when the allocator has no room. */
extern bool replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit);
/* The same for one that is not of a cell. */
extern bool replay_other_into(Grid *grid, const GridAllocator *allocator, const Edit *edit);
/* Content and style into a cell at its physical place. */
static inline bool
replay_put(Grid *grid, const GridAllocator *allocator, const Edit *edit, uint32 row, uint32 col)
{
	if (edit->kind == EDIT_SET)
		return grid_put(allocator, grid, row, col, edit->content.data, edit->content.len, edit->style.data,
						edit->style.len);
	return grid_put(allocator, grid, row, col, NULL, 0, edit->style.data, edit->style.len);
}

/* Axes that change with the edits of a log, and the extent, on which it depends how they do. */
typedef struct AxesFollower
{
	const GridAllocator *allocator;
	Axes *axes;
	uint32 rows, cols;
} AxesFollower;
extern void replay_follow_axes(AxesFollower *follower, const Edit *edit);

#endif
