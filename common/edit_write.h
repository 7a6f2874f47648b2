/*
 * edit_write.h - cells as edits, for loops over many of them: inlined, so that the writer stays in the processor's
 * registers.
 *
 * The writer trusts its caller for room.
 */
#ifndef EDIT_WRITE_H
#define EDIT_WRITE_H

#include "common/edit_codec.h"
#include "common/short_copy.h"

#include <string.h>

static inline uint8_t *
codec_put_number(uint8_t *to, uint64_t value)
{
	while (value >= 0x80)
	{
		*to++ = (uint8_t) value | 0x80;
		value >>= 7;
	}
	*to++ = (uint8_t) value;
	return to;
}

static inline uint8_t *
codec_put_text(uint8_t *to, EditText text)
{
	to = codec_put_number(to, text.len);
	short_copy(to, text.data, text.len);
	return to + text.len;
}

/* Upper bound of the bytes that a cell takes. */
static inline size_t
edit_cell_size_bound(uint32_t content_len, uint32_t style_len)
{
	return 64 + (size_t) content_len + style_len;
}

#define CODEC_MOVE 16

/*
 * The same as edit_write() for a cell: EDIT_SET, uid 0. There must be room for edit_cell_size_bound(). `readable` bytes
 * may be read from the content on: a short content is copied as 16 bytes, without a branch on its length. Reading a
 * whole sheet takes 40 percent more CPU without that.
 */
static inline __attribute__((always_inline)) void
edit_write_cell(EditWriter *writer, uint32_t row, uint32_t col, EditText content, uint32_t readable, EditText style)
{
	uint8_t *head = writer->pos;
	uint8_t *to = head + 1;

	*head = EDIT_SET;
	if (!writer->first && writer->uid == 0)
		*head |= EDIT_SAME_UID;
	else
		*to++ = 0;
	if (!writer->first && row == writer->row)
		*head |= EDIT_SAME_ROW;
	else
		to = codec_put_number(to, row);
	to = codec_put_number(to, col);
	to = codec_put_number(to, content.len);
	if (content.len <= CODEC_MOVE && readable >= CODEC_MOVE)
		memcpy(to, content.data, CODEC_MOVE);
	else
		short_copy(to, content.data, content.len);
	to += content.len;
	if (style.data != NULL)
	{
		*head |= EDIT_HAS_STYLE;
		to = codec_put_text(to, style);
	}
	writer->pos = to;
	writer->first = false;
	writer->uid = 0;
	writer->row = row;
}

#endif
