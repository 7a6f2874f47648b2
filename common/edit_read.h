/*
 * edit_read.h - edit_read() for loops over many edits: inlined, so that the reader stays in the processor's registers.
 *
 * The reader never looks beyond its end and never trusts a length.
 */
#ifndef EDIT_READ_H
#define EDIT_READ_H

#include "common/edit_codec.h"

#define CODEC_NUMBER_MAX 10 /* bytes */

/* Where a reader is, in the processor's registers: the caller stores pos when all has gone well. */
typedef struct CodecInput
{
	const uint8_t *pos;
	const uint8_t *end;
} CodecInput;

/* A number and what follows it; pos NULL: value is an EditError. */
typedef struct CodecNumber
{
	const uint8_t *pos;
	uint64_t value;
} CodecNumber;

extern CodecNumber codec_long_number(const uint8_t *pos, const uint8_t *end);

/* Nearly all numbers have one or two bytes. roomy: two are there. */
static inline __attribute__((always_inline)) EditError
codec_get_number(CodecInput *input, bool roomy, uint64_t *value)
{
	const uint8_t *pos = input->pos;
	CodecNumber number;

	if (roomy || input->end - pos >= 2)
	{
		if (pos[0] < 0x80)
		{
			*value = pos[0];
			input->pos = pos + 1;
			return EDIT_OK;
		}
		if (pos[1] < 0x80)
		{
			*value = (uint64_t) pos[1] << 7 | (pos[0] & 0x7F);
			input->pos = pos + 2;
			return EDIT_OK;
		}
	}
	number = codec_long_number(pos, input->end);
	if (number.pos == NULL)
		return (EditError) number.value;
	*value = number.value;
	input->pos = number.pos;
	return EDIT_OK;
}

static inline __attribute__((always_inline)) EditError
codec_get_u32(CodecInput *input, bool roomy, uint32_t *value)
{
	uint64_t wide = 0;
	EditError error = codec_get_number(input, roomy, &wide);

	if (error == EDIT_OK && wide > UINT32_MAX)
		return EDIT_BAD_NUMBER;
	*value = (uint32_t) wide;
	return error;
}

static inline __attribute__((always_inline)) EditError
codec_get_text(CodecInput *input, bool roomy, EditText *text)
{
	EditError error = codec_get_u32(input, roomy, &text->len);

	if (error != EDIT_OK)
		return error;
	if (text->len > (size_t) (input->end - input->pos))
		return EDIT_TRUNCATED;
	text->data = (const char *) input->pos;
	input->pos += text->len;
	return EDIT_OK;
}

/* uid, row, column and length of the content, and the head before them. */
#define CODEC_ROOMY (1 + 4 * CODEC_NUMBER_MAX)

/* roomy: so many bytes are there, and need not be counted number by number. */
static inline __attribute__((always_inline)) EditError
codec_get_edit(EditReader *reader, bool roomy, Edit *edit)
{
	CodecInput input = {reader->pos, reader->end};
	EditError error;
	uint8_t head = *input.pos++;

	edit->kind = head & EDIT_KIND_MASK;
	if (edit->kind < EDIT_SET || edit->kind > EDIT_KIND_LAST)
		return EDIT_BAD_KIND;
	if (!(head & EDIT_SAME_UID))
	{
		if ((error = codec_get_number(&input, roomy, &reader->uid)) != EDIT_OK)
			return error;
		reader->uid = edit_uid_of_number(reader->uid);
	}
	if (!(head & EDIT_SAME_ROW) && (error = codec_get_u32(&input, roomy, &reader->row)) != EDIT_OK)
		return error;
	edit->uid = reader->uid;
	edit->row = reader->row;
	/* One by one: copied as a struct right after it was written in parts, it would have to wait for the store buffer.
	 */
	edit->style.data = NULL;
	edit->style.len = 0;
	edit->old.data = NULL;
	edit->old.len = 0;
	if ((error = codec_get_u32(&input, roomy, &edit->col)) != EDIT_OK ||
		(error = codec_get_text(&input, roomy, &edit->content)) != EDIT_OK)
		return error;
	if ((head & EDIT_HAS_STYLE) && (error = codec_get_text(&input, false, &edit->style)) != EDIT_OK)
		return error;
	if ((head & EDIT_HAS_OLD) && (error = codec_get_text(&input, false, &edit->old)) != EDIT_OK)
		return error;
	reader->pos = input.pos;
	reader->left--;
	return EDIT_OK;
}

/* The same as edit_read(). */
static inline __attribute__((always_inline)) EditError
edit_read_inline(EditReader *reader, Edit *edit)
{
	if (reader->left == 0)
		return EDIT_END;
	if (reader->end - reader->pos >= CODEC_ROOMY)
		return codec_get_edit(reader, true, edit);
	if (reader->pos == reader->end)
		return EDIT_TRUNCATED;
	return codec_get_edit(reader, false, edit);
}

#endif
