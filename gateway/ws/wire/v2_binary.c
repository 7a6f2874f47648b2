/*
 * v2_binary.c - messages of clients in the binary form: a byte for the type, then the fields in the order of
 * v2_layout.c; numbers as LEB128, texts with their length before them, edits as their count and edit_codec.h's bytes.
 */
#include "ws/wire/v2.h"

#include "common/edit_read.h"

#include <string.h>

static const char truncated[] = "the message ends too early";
static const char bad_number[] = "a number is out of range";

static const char *
binary_number(CodecInput *input, uint64_t *value)
{
	EditError error;

	*value = 0;
	error = codec_get_number(input, false, value);
	if (error == EDIT_TRUNCATED)
		return truncated;
	return error != EDIT_OK || *value > JSON_MAX_NUMBER ? bad_number : NULL;
}

static const char *
binary_text(CodecInput *input, EditText *text)
{
	switch (codec_get_text(input, false, text))
	{
		case EDIT_OK:
			return text->len > V2_MAX_TOKEN ? "a text is too long" : NULL;
		case EDIT_TRUNCATED:
			return truncated;
		default:
			return bad_number;
	}
}

/* The rest of the message: edits, each looked at once. */
static const char *
binary_edits(CodecInput *input, V2Message *message)
{
	EditReader reader;
	Edit edit;
	EditError error;
	uint64_t count;
	const char *wrong = binary_number(input, &count);

	if (wrong != NULL)
		return wrong;
	if (count > (uint64_t) (input->end - input->pos))
		return truncated;
	message->edits = input->pos;
	edit_reader_init_edits(&reader, input->pos, (size_t) (input->end - input->pos), (uint32_t) count);
	while ((error = edit_read_inline(&reader, &edit)) == EDIT_OK)
	{
		if (!v2_note_edit(message, &edit))
			return "an edit is malformed";
		message->count++;
	}
	if (error != EDIT_END)
		return edit_error_text(error);
	message->edits_len = (size_t) (reader.pos - message->edits);
	input->pos = reader.pos;
	return NULL;
}

const char *
v2_read_binary(const void *bytes, size_t len, V2Message *message)
{
	CodecInput input = {bytes, (const uint8_t *) bytes + len};
	const V2Layout *layout = len > 0 ? v2_layout(*input.pos) : NULL;
	const char *wrong = NULL;

	memset(message, 0, sizeof(*message));
	if (layout == NULL)
		return len > 0 ? "unknown type" : truncated;
	message->type = (V2Type) *input.pos++;
	for (const V2Field *field = layout->fields; wrong == NULL && field->name != NULL; field++)
	{
		void *to = (char *) message + field->offset;

		if (field->kind == V2_FIELD_NUMBER || field->kind == V2_FIELD_FLAG)
			wrong = binary_number(&input, to);
		else if (field->kind == V2_FIELD_TEXT)
			wrong = binary_text(&input, to);
		else
			wrong = binary_edits(&input, message);
		if (wrong == NULL && field->kind == V2_FIELD_FLAG && *(uint64_t *) to > 1)
			wrong = bad_number;
	}
	if (wrong == NULL && input.pos != input.end)
		wrong = "the message goes on behind its end";
	return wrong != NULL ? wrong : v2_check(message);
}
