/*
 * fuzz_v2.c - whatever a client sends, the readers of protocol v2 stay within it; what they accept keeps its promises,
 * and what they accept of an operation is written for others and read by them, and names places of sheets still when
 * its own structure edits have come before it, from somebody else.
 *
 * The first byte says in which form the rest is: from '{' on JSON.
 */
#include "ws/edit/lines.h"
#include "common/properties.h"
#include "common/utf8.h"
#include "ws/wire/v2.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void
fuzz_check_property(const V2Message *message, const Edit *edit)
{
	Property property;

	FUZZ_CHECK(property_of(edit, &property));
	FUZZ_CHECK(edit->content.len == 0 || json_check(edit->content.data, edit->content.len));
	if (message->reason != V2_REASON_NONE)
		return;
	FUZZ_CHECK(property.target.row0 <= property.target.row1 && property.target.row1 < SHEET_MAX_ROWS);
	FUZZ_CHECK(property.target.col0 <= property.target.col1 && property.target.col1 < SHEET_MAX_COLS);
	FUZZ_CHECK(edit->content.len <= PROPERTY_MAX_VALUE);
}

static void
fuzz_check_edit(const V2Message *message, const Edit *edit)
{
	size_t chars = 0;

	LineChange lines;

	FUZZ_CHECK(edit->uid == 0 && edit->old.data == NULL);
	if (edit_is_structure(edit->kind))
	{
		FUZZ_CHECK(message->reason != V2_REASON_NONE || line_change_of(edit, &lines));
		FUZZ_CHECK(edit->style.data == NULL);
		return;
	}
	if (edit->kind == EDIT_PROPERTY)
	{
		fuzz_check_property(message, edit);
		return;
	}
	FUZZ_CHECK(edit->kind >= EDIT_SET && edit->kind <= EDIT_RESIZE);
	FUZZ_CHECK(edit->content.len == 0 || utf8_check(edit->content.data, edit->content.len, &chars));
	FUZZ_CHECK(edit->style.len == 0 || v2_is_json_object(edit->style.data, edit->style.len));
	if (message->reason != V2_REASON_NONE)
		return;
	FUZZ_CHECK(edit->row >= message->rect[0] && edit->row <= message->rect[2] && edit->col >= message->rect[1] &&
			   edit->col <= message->rect[3] && edit->row < SHEET_MAX_ROWS && edit->col < SHEET_MAX_COLS);
	FUZZ_CHECK(chars <= SHEET_MAX_CHARS && edit->style.len <= SHEET_MAX_STYLE_BYTES);
}

static void
fuzz_check_operation(const V2Message *message)
{
	EditReader reader;
	Edit edit;
	uint32_t count = 0;
	Buf json = {NULL, 0, 0};

	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		fuzz_check_edit(message, &edit);
		count++;
	}
	FUZZ_CHECK(count == message->count && reader.pos == message->edits + message->edits_len);
	v2_put_edits(&json, V2_JSON, 1, false, message->edits, message->edits_len, message->count);
	FUZZ_CHECK(utf8_check(json.data, json.len, NULL) && v2_is_json_object(json.data, json.len));
	buf_free(&json);
}

static void
fuzz_check_late(void *arg, const Edit *edit)
{
	uint32_t *count = arg;
	LineChange lines;
	Property property;

	FUZZ_CHECK(edit->kind != EDIT_PROPERTY || property_of(edit, &property));
	FUZZ_CHECK(edit->row < SHEET_MAX_ROWS && edit->col < SHEET_MAX_COLS);
	FUZZ_CHECK(!edit_is_structure(edit->kind) || line_change_of(edit, &lines));
	(*count)++;
}

static void
fuzz_transform(const V2Message *message)
{
	EditReader reader;
	LinesView view;
	LineChange change;
	Edit edit;
	uint32_t count = 0;

	lines_view_init(&view);
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		if (line_change_of(&edit, &change))
			lines_view_change(&view, &change);
	}
	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
		lines_transform(&view, &edit, fuzz_check_late, &count);
	FUZZ_CHECK(count <= message->count + message->changes * (message->changes + 1));
	lines_view_free(&view);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	V2Message message;
	char *scratch, *input;
	const char *wrong;

	if (size == 0)
		return 0;
	size--;
	input = fuzz_copy(data + 1, size);
	scratch = malloc(V2_SCRATCH(size));
	if (data[0] >= '{')
		wrong = v2_read_json(input, size, scratch, &message);
	else
		wrong = v2_read_binary(input, size, &message);
	if (wrong == NULL && (message.type == V2_OP || message.type == V2_CALC))
		fuzz_check_operation(&message);
	if (wrong == NULL && message.type == V2_LOCK_RANGE)
		FUZZ_CHECK(message.wait <= 1 && message.row <= message.to_row && message.to_row < SHEET_MAX_ROWS &&
				   message.col <= message.to_col && message.to_col < SHEET_MAX_COLS);
	if (wrong == NULL && message.type == V2_OP && message.reason == V2_REASON_NONE)
		fuzz_transform(&message);
	free(scratch);
	free(input);
	return 0;
}
