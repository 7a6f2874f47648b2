/*
 * move.c - when a structure edit is published, whoever made it, moves what names cells.
 *
 * Pending edits, locks and selections name cells as of the last published seq. Those in deleted lines are dropped.
 * References of pending formulas move, too. The room's history has the change, for edits that name cells as of an
 * earlier seq.
 */
#include "ws/room/move.h"

#include "ws/room/schedule.h"

#include <stdlib.h>

/* ---- pending edits ---- */

typedef struct BatchTransform
{
	LinesView view;
	RoomBatch *batch;
	const LineChange *changes; /* that the view has */
	size_t n;
} BatchTransform;

static void
batch_take_edit(void *arg, const Edit *edit)
{
	batch_put_edit(((BatchTransform *) arg)->batch, edit);
}

/* Keeps the event behind the edits that it came behind. The lock of deleted cells is not told. */
static void
batch_move_event(BatchTransform *transform, RoomEvent *event)
{
	RoomBatch *batch = transform->batch;

	event->edits_len = batch->edits.len;
	event->count = batch->count;
	batch->writer.first = true;
	for (size_t i = 0; event->is_lock && i < transform->n; i++)
		event->is_lock = lines_move_range(&transform->changes[i], event->rect);
}

static void
batch_move(RoomBatch *batch, const LineChange *changes, size_t n)
{
	BatchTransform transform = {.batch = batch, .changes = changes, .n = n};
	uint32_t count = batch->count, done = 0;
	WriterRun *runs = batch->writers.runs;
	Buf old = batch_take_edits(batch);
	size_t event = 0, run = 0;
	EditReader reader;
	Edit edit;

	lines_view_init(&transform.view);
	for (size_t i = 0; i < n; i++)
		lines_view_change(&transform.view, &changes[i]);
	edit_reader_init_edits(&reader, old.data, old.len, count);
	do
	{
		while (event < batch->event_count && batch->events[event].count == done)
			batch_move_event(&transform, &batch->events[event++]);
		while (run < batch->writers.count && runs[run].first == done)
			runs[run++].first = batch->count;
		if (done < count && edit_read(&reader, &edit) == EDIT_OK)
			lines_transform(&transform.view, &edit, batch_take_edit, &transform);
	} while (done++ < count);
	if (lines_view_failed(&transform.view))
		buf_fail(&batch->edits);
	lines_view_free(&transform.view);
	buf_free(&old);
}

/* ---- structure edits ---- */

static bool
lock_move(const void *arg, uint32_t rect[4])
{
	return lines_move_range(arg, rect);
}

static void
move_by_changes(Room *room, const LineChange *changes, size_t n, int64_t seq)
{
	for (RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
	{
		room->pending_edits -= batch->count;
		batch_move(batch, changes, n);
		room->pending_edits += batch->count;
	}
	for (size_t i = 0; i < n; i++)
	{
		if (!lines_history_add(&room->lines, &changes[i], seq))
			room_fail_memory(room);
		locks_move(&room->locks, lock_move, &changes[i]); /* clients move the locks that they know */
	}
	room_each_protocol(moved, room, changes, n);
	room->ranges_freed = true; /* what they waited for may be deleted */
	room_mark_dirty(room);
}

void
move_by_edits(Room *room, EditReader reader, int64_t seq)
{
	LineChange *changes = NULL;
	size_t n = 0;
	Edit edit;

	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		LineChange change, *more;

		if (!line_change_of(&edit, &change))
			continue;
		more = realloc(changes, (n + 1) * sizeof(LineChange));
		if (more == NULL)
		{
			room_fail_memory(room);
			break;
		}
		changes = more;
		changes[n++] = change;
	}
	if (n > 0)
		move_by_changes(room, changes, n, seq);
	free(changes);
}
