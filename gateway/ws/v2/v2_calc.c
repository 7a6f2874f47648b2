/*
 * v2_calc.c - values of formulas that clients of protocol v2 have computed: published to others, never stored.
 *
 * A value is the sender's claim about the cells as of the seq that it names. It is published for the present position
 * of its cell. A value older than one that was published for the same cell is dropped; the room's table knows that for
 * as many cells as it has entries, and is cleared when rows or columns move. No values are published while senders are
 * paused, or without memory: a client that needs one can compute it.
 */
#include "coord/ring.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>

#define VALUES 1024 /* in the table */

/* The seq of the newest value published for a cell. */
typedef struct ComputedValue
{
	uint32_t row, col;
	int64_t seq;
} ComputedValue;

static ComputedValue *
value_slot(Room *room, uint32_t row, uint32_t col)
{
	uint64_t key = (uint64_t) row << 32 | col;

	return &room->values[ring_hash(&key, sizeof(key)) % VALUES];
}

/* Registers the value as published. Returns false if a newer one was, or there is no memory. */
static bool
value_register(Room *room, uint32_t row, uint32_t col, int64_t seq)
{
	ComputedValue *value;

	if (room->values == NULL && (room->values = calloc(VALUES, sizeof(ComputedValue))) == NULL)
		return false;
	value = value_slot(room, row, col);
	if (value->row == row && value->col == col && value->seq > seq)
		return false;
	*value = (ComputedValue){row, col, seq};
	return true;
}

/* Writes the values to publish, for the present cells, and returns their number. */
static uint32_t
calc_select(Session *session, const V2Message *message, Buf *to)
{
	EditWriter writer;
	EditReader reader;
	Edit edit;
	uint32_t count = 0;

	if (!buf_reserve(to, message->edits_len + (size_t) message->count * 10))
		return 0;
	edit_write_edits(&writer, (uint8_t *) to->data);
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		uint32_t rect[4] = {edit.row, edit.col, edit.row, edit.col};

		if (v2_find_range(session, message->base, rect) != V2_FOUND ||
			!value_register(session->room, rect[0], rect[1], (int64_t) message->base))
			continue;
		edit.row = rect[0];
		edit.col = rect[1];
		edit_write(&writer, &edit);
		count++;
	}
	to->len = (size_t) ((char *) writer.pos - to->data);
	return count;
}

void
v2_handle_calc(Session *session, const V2Message *message)
{
	Buf edits = {NULL, 0, 0};
	uint32_t count;

	if (!session->may_edit)
		v2_deny(session, message, V2_REASON_ROLE);
	else if (!v2_knows_base(session, message->base))
		v2_deny(session, message, V2_REASON_BASE);
	else if (session->room->flow < ROOM_PAUSED && (count = calc_select(session, message, &edits)) > 0)
		v2_publish_values(session->room, session->number, message->base, &edits, count);
	buf_free(&edits);
}
