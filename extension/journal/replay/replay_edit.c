/*
 * replay_edit.c - one edit of the log, into cells and axes.
 */
#include "postgres.h"

#include "journal/replay/replay_edit.h"

StaticAssertDecl(AXES_MAX_ROWS == SHEET_MAX_ROWS && AXES_MAX_COLS == SHEET_MAX_COLS, "axes are as long as sheets");

bool
replay_change_of(const Edit *edit, AxesChange *change)
{
	bool rows = edit_is_of_rows(edit->kind);

	change->line = rows ? AXES_ROW : AXES_COL;
	change->insert = edit->kind == EDIT_INSERT_ROWS || edit->kind == EDIT_INSERT_COLUMNS;
	change->at = rows ? edit->row : edit->col;
	return edit_lines(edit, &change->n);
}

static void
replay_require_change(const Edit *edit, AxesChange *change)
{
	if (!replay_change_of(edit, change))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a stored edit inserts or deletes what cannot be: run sheet.fsck(sheet_id, true)")));
}

bool
replay_other_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	AxesChange change;

	if (edit->kind == EDIT_RESIZE)
		grid_resize(grid, edit->row + 1, edit->col + 1);
	if (!edit_is_structure(edit->kind))
		return true;
	replay_require_change(edit, &change);
	return grid_change_axes(allocator, grid, &change);
}

bool
replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit)
{
	uint32 row = edit->row, col = edit->col;

	if (!edit_is_of_cell(edit->kind))
		return replay_other_into(grid, allocator, edit);
	axes_locate(grid_axes(grid), &row, &col);
	if (!replay_put(grid, allocator, edit, row, col))
		return false;
	grid_resize(grid, edit->row + 1, edit->col + 1);
	return true;
}

void
replay_follow_axes(AxesFollower *follower, const Edit *edit)
{
	AxesChange change;
	uint32 *extent;
	Axes *axes;

	if (edit_is_of_cell(edit->kind) || edit->kind == EDIT_RESIZE)
	{
		follower->rows = Max(follower->rows, edit->row + 1);
		follower->cols = Max(follower->cols, edit->col + 1);
	}
	if (!edit_is_structure(edit->kind))
		return;
	replay_require_change(edit, &change);
	extent = change.line == AXES_ROW ? &follower->rows : &follower->cols;
	if (!axes_change(follower->allocator, follower->axes, &change, *extent, &axes))
		elog(ERROR, "out of memory");
	axes_free(follower->allocator, follower->axes);
	follower->axes = axes;
	*extent = axes_extent(&change, *extent);
}
