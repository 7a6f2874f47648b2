/*
 * writes.c - who has written which cells lately.
 *
 * A client takes back only what its user wrote last (undo). It knows the last writers of cells as of the last seq that
 * it has read, not the edits that are on their way to it. So its operation names that seq (`seen`), and the room
 * refuses the operation if somebody else has written one of its cells since: another account, or another guest of the
 * same link. The room remembers the last cells for
 * this, at their present coordinates, and of batches with many cells the range around those of each author. If it does
 * not know, the operation is refused.
 */
#include "ws/edit/writes.h"

#include <stdlib.h>
#include <string.h>

#define LARGE_BATCH			64 /* a batch of more cells is remembered by its ranges */
#define LARGE_BATCH_AUTHORS 8

uint64_t
writer_client_at(const WriterRuns *runs, uint32_t i, size_t *at)
{
	while (*at < runs->count && runs->runs[*at].first <= i)
		(*at)++;
	return *at > 0 ? runs->runs[*at - 1].client : 0;
}

bool
written_of(const Edit *edit, uint64_t client, int64_t seq, Written *written)
{
	if (edit->kind != EDIT_SET && edit->kind != EDIT_STYLE)
		return false;
	*written = (Written){seq,
						 {edit->uid, client},
						 {edit->row, edit->col, edit->row, edit->col},
						 edit->content.len > 0 && edit->content.data[0] == '='};
	return true;
}

bool
written_matches(const Written *written, const Writer *writer, const uint32_t rect[4], bool formulas)
{
	if (writer_is_same(&written->writer, writer))
		return false;
	return (formulas && written->formula) || (written->rect[0] <= rect[2] && written->rect[2] >= rect[0] &&
											  written->rect[1] <= rect[3] && written->rect[3] >= rect[1]);
}

/* Without memory nothing is remembered: what was written is unknown up to this seq. */
static bool
writes_allocate(Writes *writes)
{
	if (writes->entries == NULL)
		writes->entries = malloc(WRITES_REMEMBERED * sizeof(Written));
	return writes->entries != NULL;
}

static void
writes_put(Writes *writes, const Written *written)
{
	if (writes->count == WRITES_REMEMBERED)
	{
		size_t half = WRITES_REMEMBERED / 2;

		writes->floor = writes->entries[half - 1].seq;
		writes->count -= half;
		memmove(writes->entries, writes->entries + half, writes->count * sizeof(Written));
	}
	writes->entries[writes->count++] = *written;
}

static void
writes_move(Writes *writes, const LineChange *change)
{
	size_t count = 0;

	for (size_t i = 0; i < writes->count; i++)
	{
		if (lines_move_range(change, writes->entries[i].rect))
			writes->entries[count++] = writes->entries[i];
	}
	writes->count = count;
}

/* Adds a batch of many cells as one entry for each author. Returns false if it has too many, or structure edits. */
static bool
writes_add_ranges(Writes *writes, EditReader reader, const WriterRuns *runs, int64_t seq)
{
	Written authors[LARGE_BATCH_AUTHORS], written;
	size_t count = 0, at = 0;
	Edit edit;

	for (uint32_t n = 0; edit_read(&reader, &edit) == EDIT_OK; n++)
	{
		LineChange change;
		size_t i = 0;

		if (line_change_of(&edit, &change))
			return false;
		if (!written_of(&edit, writer_client_at(runs, n, &at), seq, &written))
			continue;
		while (i < count && !writer_is_same(&authors[i].writer, &written.writer))
			i++;
		if (i == LARGE_BATCH_AUTHORS)
			return false;
		if (i == count)
			authors[count++] = written;
		for (int side = 0; side < 2; side++)
		{
			if (written.rect[side] < authors[i].rect[side])
				authors[i].rect[side] = written.rect[side];
			if (written.rect[side] > authors[i].rect[side + 2])
				authors[i].rect[side + 2] = written.rect[side];
		}
		authors[i].formula |= written.formula;
	}
	for (size_t i = 0; i < count; i++)
		writes_put(writes, &authors[i]);
	return true;
}

void
writes_add(Writes *writes, EditReader reader, uint32_t count, const WriterRuns *runs, int64_t seq)
{
	LineChange change;
	Written written;
	size_t at = 0;
	Edit edit;

	if (!writes_allocate(writes) || (count > LARGE_BATCH && !writes_add_ranges(writes, reader, runs, seq)))
	{
		writes->count = 0;
		writes->floor = seq;
		return;
	}
	for (uint32_t n = 0; count <= LARGE_BATCH && edit_read(&reader, &edit) == EDIT_OK; n++)
	{
		if (line_change_of(&edit, &change))
			writes_move(writes, &change);
		else if (written_of(&edit, writer_client_at(runs, n, &at), seq, &written))
			writes_put(writes, &written);
	}
}

const Written *
writes_find(const Writes *writes, const Writer *writer, int64_t seq, const uint32_t rect[4], bool formulas)
{
	for (size_t i = writes->count; i > 0 && writes->entries[i - 1].seq > seq; i--)
	{
		if (written_matches(&writes->entries[i - 1], writer, rect, formulas))
			return &writes->entries[i - 1];
	}
	return NULL;
}

void
writes_free(Writes *writes)
{
	free(writes->entries);
	*writes = (Writes){0};
}
