/*
 * committed.c - committed batches go into the room's streams, in the order of seqs, and move what names cells.
 *
 * Pending edits, locks and selections name cells as of the last published seq. When a structure edit is published,
 * whoever made it, they are moved, and those in deleted lines are dropped. References of pending formulas move, too.
 * The room's history has the change, for edits that name cells as of an earlier seq.
 */
#include "ws/room/committed.h"

#include "common/extent.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "ws/cache/accounts.h"
#include "ws/room/members.h"
#include "ws/room/publish.h"

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
		event->is_lock = lines_move_range(&transform->changes[i], event->lock.rect);
}

static void
batch_move(RoomBatch *batch, const LineChange *changes, size_t n)
{
	BatchTransform transform = {.batch = batch, .changes = changes, .n = n};
	uint32_t count = batch->count, done = 0;
	Buf old = batch_take_edits(batch);
	size_t event = 0;
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
		if (done < count && edit_read(&reader, &edit) == EDIT_OK)
			lines_transform(&transform.view, &edit, batch_take_edit, &transform);
	} while (done++ < count);
	if (lines_view_failed(&transform.view))
		buf_fail(&batch->edits);
	batch_renew_v1_frames(batch);
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
committed_move(Room *room, const LineChange *changes, size_t n, int64_t seq)
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
	members_free_ranges(room); /* what they waited for may be deleted */
}

/* Moves what names cells by the structure edits of the reader, as of seq. Their batch is not pending any more. */
static void
committed_move_by(Room *room, EditReader reader, int64_t seq)
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
		committed_move(room, changes, n, seq);
	free(changes);
}

/* ---- the sheet's extent and properties ---- */

static void
committed_extend(Room *room, uint32_t rows, uint32_t cols)
{
	room->extent.rows = rows > room->extent.rows ? rows : room->extent.rows;
	room->extent.cols = cols > room->extent.cols ? cols : room->extent.cols;
}

/* Applies the edits to the room's extent and properties. */
static void
committed_apply_edits(Room *room, EditReader reader)
{
	LineChange change;
	Edit edit;

	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		if (!properties_apply(&room->properties, &edit, 0))
			room_fail_memory(room);
		if (line_change_of(&edit, &change))
		{
			uint32_t *extent = change.rows ? &room->extent.rows : &room->extent.cols;

			*extent = extent_after(&change, *extent);
		}
		else if (edit_extends(&edit))
			committed_extend(room, edit.row + 1, edit.col + 1);
	}
}

/* ---- batches ---- */

void
committed_publish_own(Room *room, RoomBatch *batch, int64_t seq)
{
	EditReader reader;

	room->published_batch = batch->number;
	if (batch_failed(batch))
	{
		room_fail_memory(room);
		return;
	}
	room_each_protocol(publish_own, room, batch, seq);
	edit_reader_init_edits(&reader, batch->edits.data, batch->edits.len, batch->count);
	writes_add(&room->writes, reader, batch->count, seq);
	if (batch->refusable)
	{
		committed_move_by(room, reader, seq);
		committed_apply_edits(room, reader);
	}
	else
		committed_extend(room, batch->rows, batch->cols);
	metrics.edits_committed += batch->count;
}

/* ---- own structural batches ---- */

/* Collects the edits that empty cells, but for those in deleted rows or columns, if `deletion` is what follows them:
 * the database records the contents that a deletion removes so. */
static void
collect_emptied(RoomBatch *own, const LineChange *deletion)
{
	const Edit *edits = (const Edit *) own->emptied.data;

	for (size_t i = 0; i < own->emptied.len / sizeof(Edit); i++)
	{
		uint32_t line = deletion != NULL && deletion->rows ? edits[i].row : edits[i].col;

		if (deletion == NULL || line < deletion->at || line - deletion->at >= deletion->n)
			batch_put_edit_in_parts(own, &edits[i]);
	}
	if (buf_failed(&own->emptied))
		buf_fail(&own->edits);
	own->emptied.len = 0;
}

/* Collects the edits of one of the batch's rows in the log: the database has added those that rewrite formulas. */
static void
committed_collect(RoomBatch *own, EditReader reader, int64_t last)
{
	LineChange change;
	Edit edit;

	if (own->collected == 0)
	{
		Buf sent = batch_take_edits(own);

		own->event_count = 0;
		buf_free(&sent);
	}
	own->collected = last;
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		bool deletes = line_change_of(&edit, &change) && !change.insert;

		edit.old = (EditText){NULL, 0};
		if (edit.kind == EDIT_SET && edit.content.len == 0 && edit.style.data != NULL && edit.style.len == 0)
		{
			edit.content = edit.style = (EditText){"", 0};
			buf_put(&own->emptied, &edit, sizeof(edit));
			continue;
		}
		collect_emptied(own, deletes ? &change : NULL);
		batch_put_edit_in_parts(own, &edit);
	}
}

/* ---- batches of others ---- */

/* Batches of others that are published as one, so that thousands of single edits, as of one SQL statement, are few
 * messages. */
typedef struct CommittedRun
{
	EditReader from;
	int64_t last; /* 0: none */
} CommittedRun;

static void
run_end(Room *room, CommittedRun *run)
{
	if (run->last != 0)
		room_each_protocol(publish_run, room, run->from, run->last);
	run->last = 0;
}

static bool
batch_has_structure(EditReader reader)
{
	EditKind kind;

	while (edit_read_kind(&reader, &kind) == EDIT_OK)
	{
		if (edit_is_structure(kind))
			return true;
	}
	return false;
}

/* Publishes a batch of others, which the reader `from` begins. The run ends before and behind structure edits, which
 * move what is published after them. */
static void
committed_publish_foreign(Room *room, CommittedRun *run, EditReader from, const EditBatch *batch, EditReader reader)
{
	int64_t last = (int64_t) batch->first_seq + batch->count - 1;
	bool moves = batch_has_structure(reader);

	if (moves)
		run_end(room, run);
	if (run->last == 0)
		run->from = from;
	run->last = last;
	room_each_protocol(publish_stored, room, batch, reader);
	committed_apply_edits(room, reader);
	if (moves)
	{
		run_end(room, run);
		committed_move_by(room, reader, last);
	}
	writes_add(&room->writes, reader, batch->count, last);
}

void
committed_publish_stored(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first, int64_t own_last)
{
	CommittedRun run = {.last = 0};
	EditReader reader, from;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	for (from = reader; edit_read_batch(&reader, &batch) == EDIT_OK; from = reader)
	{
		bool is_own = own != NULL && (int64_t) batch.first_seq >= own_first && (int64_t) batch.first_seq <= own_last;
		int64_t last = (int64_t) batch.first_seq + batch.count - 1;

		if (is_own)
			run_end(room, &run);
		if (is_own && own->structural)
		{
			if (last > own->collected)
				committed_collect(own, reader, last);
			if (last == own_last)
			{
				collect_emptied(own, NULL);
				committed_publish_own(room, own, own_last);
			}
		}
		else if (is_own && (int64_t) batch.first_seq == own_first)
		{
			committed_publish_own(room, own, own_last);
			last = own_last;
		}
		if (!is_own && last > room->published_seq)
			committed_publish_foreign(room, &run, from, &batch, reader);
		while (edit_read(&reader, &edit) == EDIT_OK)
			metrics.edits_foreign += !is_own && last > room->published_seq && edit_is_of_cell(edit.kind);
		if (is_own && own->structural && last < own_last)
			continue;
		if (last > room->published_seq)
			room->published_seq = last;
		room_each_protocol(published, room, false);
	}
	run_end(room, &run);
}

void
committed_end(Room *room)
{
	room->resolved = 0;
	publish_later(room);
	room_each_protocol(published, room, true);
}

int64_t
committed_find_stranger(const char *data, size_t len, int64_t own_first, int64_t own_last)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		bool own = (int64_t) batch.first_seq >= own_first && (int64_t) batch.first_seq <= own_last;

		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			if (!own && edit.uid != 0 && accounts_find((int64_t) edit.uid) == NULL)
				return (int64_t) edit.uid;
		}
	}
	return 0;
}
