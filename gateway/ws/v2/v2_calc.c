/*
 * v2_calc.c - values of formulas that clients of protocol v2 have computed: told to others, never stored.
 *
 * A value is a claim of its sender's, of the cells as of the seq that it names. It goes into the room's streams for the
 * place that its cell has there. A value that is older than one that was told of the same cell is left out; the room
 * remembers that for so many cells as its table has places, and forgets it when rows or columns come or go. Values are
 * the first to be left out while a receiver is behind, or without memory: whoever needs one can compute it.
 */
#include "coord/ring.h"
#include "ws/v2/v2_session.h"

#include <stdlib.h>

static ToldValue *
value_place(Room *room, uint32_t row, uint32_t col)
{
	uint64_t key = (uint64_t) row << 32 | col;

	return &room->values[ring_hash(&key, sizeof(key)) % ROOM_VALUES];
}

/* Notes that the value is told; false: a newer one was, or there is no memory. */
static bool
value_is_news(Room *room, uint32_t row, uint32_t col, int64_t seq)
{
	ToldValue *value;

	if (room->values == NULL && (room->values = calloc(ROOM_VALUES, sizeof(ToldValue))) == NULL)
		return false;
	value = value_place(room, row, col);
	if (value->row == row && value->col == col && value->seq > seq)
		return false;
	*value = (ToldValue){row, col, seq};
	return true;
}

/* Those that are news, for the places of now. */
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
		if (v2_find_place(session, message->base, &edit.row, &edit.col) != V2_PLACE_THERE ||
			!value_is_news(session->room, edit.row, edit.col, (int64_t) message->base))
			continue;
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
		v2_deny(session, message->rect[0], message->rect[1], V2_REASON_ROLE);
	else if (!v2_knows_base(session, message->base))
		v2_deny(session, message->rect[0], message->rect[1], V2_REASON_BASE);
	else if (!session->room->paused && (count = calc_select(session, message, &edits)) > 0)
		v2_tell_values(session->room, session->number, message->base, &edits, count);
	buf_free(&edits);
}
