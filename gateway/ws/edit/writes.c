/*
 * writes.c - who has written which cells lately.
 *
 * A client takes back only what its user wrote last (undo). It knows the last writers of cells as of the last seq that
 * it has read, not the edits that are on their way to it. So its operation names that seq (`seen`), and the room
 * refuses the operation if another account has written one of its cells since. The room remembers the last cells for
 * this, at their present coordinates. If it does not know, the operation is refused.
 */
#include "ws/edit/writes.h"

#include <stdlib.h>
#include <string.h>

bool
written_cell_of(const Edit *edit, int64_t seq, WrittenCell *cell)
{
	if (edit->kind != EDIT_SET && edit->kind != EDIT_STYLE)
		return false;
	*cell = (WrittenCell){seq, edit->uid, edit->row, edit->col, edit->content.len > 0 && edit->content.data[0] == '='};
	return true;
}

bool
written_cell_matches(const WrittenCell *cell, uint64_t uid, const uint32_t rect[4], bool formulas)
{
	if (cell->uid == uid)
		return false;
	return (formulas && cell->formula) ||
		   (cell->row >= rect[0] && cell->row <= rect[2] && cell->col >= rect[1] && cell->col <= rect[3]);
}

/* Without memory nothing is remembered: what was written is unknown up to this seq. */
static bool
writes_allocate(Writes *writes)
{
	if (writes->cells == NULL)
		writes->cells = malloc(WRITES_REMEMBERED * sizeof(WrittenCell));
	return writes->cells != NULL;
}

static void
writes_put(Writes *writes, const WrittenCell *cell)
{
	if (writes->count == WRITES_REMEMBERED)
	{
		size_t half = WRITES_REMEMBERED / 2;

		writes->floor = writes->cells[half - 1].seq;
		writes->count -= half;
		memmove(writes->cells, writes->cells + half, writes->count * sizeof(WrittenCell));
	}
	writes->cells[writes->count++] = *cell;
}

static void
writes_move(Writes *writes, const LinesChange *change)
{
	size_t count = 0;

	for (size_t i = 0; i < writes->count; i++)
	{
		WrittenCell *cell = &writes->cells[i];

		if (lines_move(change, &cell->row, &cell->col))
			writes->cells[count++] = *cell;
	}
	writes->count = count;
}

void
writes_add(Writes *writes, EditReader reader, uint32_t count, int64_t seq)
{
	LinesChange change;
	WrittenCell cell;
	Edit edit;

	if (count > WRITES_REMEMBERED || !writes_allocate(writes))
	{
		writes->count = 0;
		writes->floor = seq;
		return;
	}
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		if (lines_change_of(&edit, &change))
			writes_move(writes, &change);
		else if (written_cell_of(&edit, seq, &cell))
			writes_put(writes, &cell);
	}
}

const WrittenCell *
writes_find(const Writes *writes, uint64_t uid, int64_t seq, const uint32_t rect[4], bool formulas)
{
	for (size_t i = writes->count; i > 0 && writes->cells[i - 1].seq > seq; i--)
	{
		if (written_cell_matches(&writes->cells[i - 1], uid, rect, formulas))
			return &writes->cells[i - 1];
	}
	return NULL;
}

void
writes_free(Writes *writes)
{
	free(writes->cells);
	*writes = (Writes){0};
}
