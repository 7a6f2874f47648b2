/*
 * edit_codec.c - the bytes in which edits travel and rest; the format is in edit_codec.h.
 *
 * The reader never looks beyond its end and never trusts a length; the writer trusts its caller for room.
 */
#include "common/edit_codec.h"

#include "common/edit_read.h"
#include "common/edit_write.h"

#include <endian.h>
#include <string.h>

/* ---- numbers ---- */

CodecNumber
codec_long_number(const uint8_t *pos, const uint8_t *end)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 7 * CODEC_NUMBER_MAX; shift += 7)
	{
		uint8_t byte;

		if (pos == end)
			return (CodecNumber){NULL, EDIT_TRUNCATED};
		byte = *pos++;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t) (byte & 0x7F) << shift;
		if (byte < 0x80)
			return (CodecNumber){pos, value};
	}
	return (CodecNumber){NULL, EDIT_BAD_NUMBER};
}

/* ---- reading ---- */

void
edit_reader_init(EditReader *reader, const void *data, size_t len)
{
	reader->pos = data;
	reader->end = reader->pos + len;
	reader->left = 0;
	reader->uid = 0;
	reader->row = 0;
}

void
edit_reader_init_edits(EditReader *reader, const void *data, size_t len, uint32_t count)
{
	edit_reader_init(reader, data, len);
	reader->left = count;
}

EditError
edit_read_batch(EditReader *reader, EditBatch *batch)
{
	CodecInput input = {reader->pos, reader->end};
	EditError error;

	if (input.pos == input.end)
		return EDIT_END;
	if (*input.pos != EDIT_CODEC_VERSION)
		return EDIT_BAD_VERSION;
	input.pos++;
	if ((error = codec_get_number(&input, false, &batch->first_seq)) != EDIT_OK ||
		(error = codec_get_number(&input, false, &batch->at)) != EDIT_OK ||
		(error = codec_get_u32(&input, false, &batch->count)) != EDIT_OK)
		return error;
	if (batch->count > SHEET_MAX_BATCH_EDITS)
		return EDIT_TOO_MANY;
	reader->pos = input.pos;
	reader->left = batch->count;
	reader->uid = 0;
	reader->row = 0;
	return EDIT_OK;
}

EditError
edit_read(EditReader *reader, Edit *edit)
{
	return edit_read_inline(reader, edit);
}

/* Bytes of the number at pos, of which 8 can be read; 0: more than that. */
static inline size_t
codec_number_length(const uint8_t *pos)
{
	uint64_t bytes;

	memcpy(&bytes, pos, sizeof(bytes));
	bytes = ~le64toh(bytes) & UINT64_C(0x8080808080808080);
	return bytes == 0 ? 0 : (size_t) __builtin_ctzll(bytes) / 8 + 1;
}

/* Behind the text at pos; NULL when it is long, or does not end before `end`. */
static inline const uint8_t *
codec_skip_text(const uint8_t *pos, const uint8_t *end)
{
	if (pos >= end || *pos >= 0x80 || *pos >= end - pos)
		return NULL;
	return pos + 1 + *pos;
}

/* uid, row and column, 8 bytes each at most; whether they are there at all is nothing that a branch could predict. */
#define CODEC_NUMBERS_ROOM (1 + 3 * 8)

/* Behind the edit at pos; NULL when something about it is unusual. */
static inline const uint8_t *
codec_skip_edit(const uint8_t *pos, const uint8_t *end)
{
	uint8_t head = *pos++;
	size_t uid, row, col;

	if (end - pos < CODEC_NUMBERS_ROOM)
		return NULL;
	uid = codec_number_length(pos);
	pos += uid & -(size_t) !(head & EDIT_SAME_UID);
	row = codec_number_length(pos);
	pos += row & -(size_t) !(head & EDIT_SAME_ROW);
	col = codec_number_length(pos);
	if (uid == 0 || row == 0 || col == 0)
		return NULL;
	pos = codec_skip_text(pos + col, end);
	if (pos != NULL && (head & EDIT_HAS_STYLE))
		pos = codec_skip_text(pos, end);
	if (pos != NULL && (head & EDIT_HAS_OLD))
		pos = codec_skip_text(pos, end);
	return pos;
}

EditError
edit_read_kind(EditReader *reader, EditKind *kind)
{
	const uint8_t *next;
	EditError error;
	Edit edit;

	if (reader->left > 0 && reader->pos != reader->end)
	{
		*kind = *reader->pos & EDIT_KIND_MASK;
		next = codec_skip_edit(reader->pos, reader->end);
		if (next != NULL && *kind >= EDIT_SET && *kind <= EDIT_KIND_LAST)
		{
			reader->pos = next;
			reader->left--;
			return EDIT_OK;
		}
	}
	error = edit_read(reader, &edit);
	if (error == EDIT_OK)
		*kind = edit.kind;
	return error;
}

const char *
edit_error_text(EditError error)
{
	switch (error)
	{
		case EDIT_OK:
			return "no error";
		case EDIT_END:
			return "end of edits";
		case EDIT_TRUNCATED:
			return "the bytes end inside an edit";
		case EDIT_BAD_VERSION:
			return "not a batch of this version";
		case EDIT_BAD_KIND:
			return "unknown kind of edit";
		case EDIT_BAD_NUMBER:
			return "a number is out of range";
		case EDIT_TOO_MANY:
			return "too many edits in a batch";
	}
	return "unknown error";
}

/* ---- writing ---- */

void
edit_write_edits(EditWriter *writer, uint8_t *to)
{
	*writer = (EditWriter){.pos = to, .first = true};
}

void
edit_write_batch(EditWriter *writer, uint8_t *to, const EditBatch *batch)
{
	*to++ = EDIT_CODEC_VERSION;
	to = codec_put_number(to, batch->first_seq);
	to = codec_put_number(to, batch->at);
	to = codec_put_number(to, batch->count);
	writer->pos = to;
	writer->first = true;
	writer->uid = 0;
	writer->row = 0;
}

void
edit_write(EditWriter *writer, const Edit *edit)
{
	uint8_t *head = writer->pos;
	uint8_t *to = head + 1;

	*head = (uint8_t) edit->kind;
	if (!writer->first && edit->uid == writer->uid)
		*head |= EDIT_SAME_UID;
	else
		to = codec_put_number(to, edit_uid_to_number(edit->uid));
	if (!writer->first && edit->row == writer->row)
		*head |= EDIT_SAME_ROW;
	else
		to = codec_put_number(to, edit->row);
	to = codec_put_number(to, edit->col);
	to = codec_put_text(to, edit->content);
	if (edit->style.data != NULL)
	{
		*head |= EDIT_HAS_STYLE;
		to = codec_put_text(to, edit->style);
	}
	if (edit->old.data != NULL)
	{
		*head |= EDIT_HAS_OLD;
		to = codec_put_text(to, edit->old);
	}
	writer->pos = to;
	writer->first = false;
	writer->uid = edit->uid;
	writer->row = edit->row;
}

static size_t
codec_number_size(uint64_t value)
{
	size_t size = 1;

	while (value >= 0x80)
	{
		value >>= 7;
		size++;
	}
	return size;
}

size_t
edit_batch_head_size(const EditBatch *batch)
{
	return 1 + codec_number_size(batch->first_seq) + codec_number_size(batch->at) + codec_number_size(batch->count);
}

/* ---- structure edits ---- */

/* Reads a number without leading zeros. */
static bool
codec_get_lines(EditText text, uint32_t *n)
{
	*n = 0;
	if (text.len == 0 || text.len >= LINE_CHANGE_TEXT || text.data[0] == '0')
		return false;
	for (uint32_t i = 0; i < text.len; i++)
	{
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		*n = *n * 10 + (uint32_t) (text.data[i] - '0');
	}
	return true;
}

bool
line_change_of(const Edit *edit, LineChange *change)
{
	bool rows = edit_is_of_rows(edit->kind);
	uint32_t limit = line_limit(rows);

	*change = (LineChange){.rows = rows,
						   .insert = edit->kind == EDIT_INSERT_ROWS || edit->kind == EDIT_INSERT_COLUMNS,
						   .at = rows ? edit->row : edit->col};
	return edit_is_structure(edit->kind) && codec_get_lines(edit->content, &change->n) && change->at < limit &&
		   change->n <= limit - change->at && (rows ? edit->col : edit->row) == 0;
}

Edit
line_change_edit(const LineChange *change, uint64_t uid, char *text)
{
	EditKind insert = change->rows ? EDIT_INSERT_ROWS : EDIT_INSERT_COLUMNS;
	EditKind delete = change->rows ? EDIT_DELETE_ROWS : EDIT_DELETE_COLUMNS;
	char *end = text + LINE_CHANGE_TEXT, *to = end;
	uint32_t n = change->n;

	do
		*--to = (char) ('0' + n % 10);
	while ((n /= 10) > 0 && to > text);
	return (Edit){.kind = change->insert ? insert : delete,
				  .uid = uid,
				  .row = change->rows ? change->at : 0,
				  .col = change->rows ? 0 : change->at,
				  .content = {to, (uint32_t) (end - to)}};
}
