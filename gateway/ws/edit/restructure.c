/*
 * restructure.c - what rows and columns that come or go do to a room.
 *
 * Edits that the room has taken and that are not committed, cells that are held, and selections name places as of the
 * last seq that has been told. So when a structure edit is told, whoever made it, all of them move along, and what is
 * in lines that go is gone. The room remembers the change, for those who name places as of an earlier seq. Members of
 * protocol v1 cannot be told: they come again, and get the cells where they are now.
 */
#include "ws/edit/restructure.h"

#include "core/gateway.h"
#include "ws/session/session.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>

/* ---- edits that wait for their commit ---- */

typedef struct BatchTransform
{
	LinesView view;
	RoomBatch *batch;
} BatchTransform;

static void
batch_take_edit(void *arg, const Edit *edit)
{
	batch_put_edit(((BatchTransform *) arg)->batch, edit);
}

/* What happened there comes behind the edits that it came behind; a cell that is gone is held by nobody. */
static void
batch_move_event(BatchTransform *transform, RoomEvent *event)
{
	RoomBatch *batch = transform->batch;

	event->edits_len = batch->edits.len;
	event->count = batch->count;
	batch->writer.first = true;
	if (event->is_lock && !lines_view_place(&transform->view, &event->cell.row, &event->cell.col))
		event->is_lock = false;
}

static void
batch_move(RoomBatch *batch, const LinesChange *changes, size_t n)
{
	BatchTransform transform = {.batch = batch};
	uint32_t left = batch->count, done = 0;
	Buf old = batch_take_edits(batch);
	size_t event = 0;
	EditReader reader;
	Edit edit;

	lines_view_init(&transform.view);
	for (size_t i = 0; i < n; i++)
		lines_view_change(&transform.view, &changes[i]);
	edit_reader_init_edits(&reader, old.data, old.len, left);
	do
	{
		while (event < batch->event_count && batch->events[event].count == done)
			batch_move_event(&transform, &batch->events[event++]);
		if (done < left && edit_read(&reader, &edit) == EDIT_OK)
			lines_transform(&transform.view, &edit, batch_take_edit, &transform);
	} while (done++ < left);
	if (lines_view_failed(&transform.view))
		buf_fail(&batch->edits);
	batch_renew_v1_frames(batch);
	lines_view_free(&transform.view);
	buf_free(&old);
}

static void
room_move_batches(Room *room, const LinesChange *changes, size_t n)
{
	for (RoomBatch *batch = room->pending; batch != NULL; batch = batch->next)
	{
		room->pending_edits -= batch->count;
		batch_move(batch, changes, n);
		room->pending_edits += batch->count;
	}
}

/* ---- cells that are held, and selections ---- */

static bool
lock_move(const void *arg, uint32_t *row, uint32_t *col)
{
	return lines_move(arg, row, col);
}

static void
room_move_cursors(Room *room, const LinesChange *change)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		V2Cursor *cursor;
		uint32_t rect[4];

		if (session->v2 == NULL || !session->v2->has_cursor)
			continue;
		cursor = &session->v2->cursor;
		rect[0] = cursor->row, rect[1] = cursor->col, rect[2] = cursor->to_row, rect[3] = cursor->to_col;
		lines_move_range(change, rect);
		*cursor = (V2Cursor){cursor->session, rect[0], rect[1], rect[2], rect[3]};
	}
}

/* ---- members of protocol v1 ---- */

/* They are told what came before, as far as their sockets take it, and nothing of what comes behind. */
static void
room_close_v1(Room *room)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
	{
		if (session->v2 != NULL)
			continue;
		if (session->state == SESSION_LIVE)
			session_deliver(session);
		session_close(session, CLOSE_RESTART, "rows or columns have moved: the sheet has to be read again");
		session_leave_stream(session);
	}
}

static void
room_restructure(Room *room, const LinesChange *changes, size_t n, int64_t seq)
{
	room_move_batches(room, changes, n);
	for (size_t i = 0; i < n; i++)
	{
		if (!lines_remember(&room->lines, &changes[i], seq))
			room_fail_memory(room);
		locks_move(&room->locks, lock_move, &changes[i]); /* whoever knows of a lock moves it by himself */
		room_move_cursors(room, &changes[i]);
	}
	free(room->values); /* their places are others now */
	room->values = NULL;
	room_close_v1(room);
}

void
room_restructure_by(Room *room, EditReader reader, int64_t seq)
{
	LinesChange *changes = NULL;
	size_t n = 0;
	Edit edit;

	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		LinesChange change, *more;

		if (!lines_change_of(&edit, &change))
			continue;
		more = realloc(changes, (n + 1) * sizeof(LinesChange));
		if (more == NULL)
		{
			room_fail_memory(room);
			break;
		}
		changes = more;
		changes[n++] = change;
	}
	if (n > 0)
		room_restructure(room, changes, n, seq);
	free(changes);
}
