/*
 * v2_read.c - messages of clients in JSON: one object, `t` (the type) first, the other members in any order. Members
 * that are unknown, come twice or are missing make it malformed, so that no message means less than its sender thinks.
 *
 * Edits become edit_codec.h's bytes at once. The scratch holds these first (V2_SCRATCH_EDITS); behind them there is
 * room for one text at a time. An edit of JSON has 8 bytes at least ([0,0,""]), and of its codec's form at most 14 are
 * not from its texts or digits.
 */
#include "ws/wire/v2.h"

#include "common/properties.h"
#include "common/utf8.h"
#include "support/json.h"

#include <string.h>

typedef struct Reader
{
	JsonInput input;
	EditWriter writer;
	char *text; /* room for a text */
	V2Message *message;
} Reader;

static const char malformed[] = "not a message of this protocol";

/* ---- edits ---- */

/* What both kinds of edits end with. */
static bool
read_edit_end(Reader *reader, const Edit *edit)
{
	if (!json_take(&reader->input, ']') || !v2_note_edit(reader->message, edit))
		return false;
	edit_write(&reader->writer, edit);
	reader->message->count++;
	return true;
}

static bool
text_is(const Reader *reader, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(name, reader->text, len) == 0;
}

/* The rest of ["property",row,col,toRow,toCol,key,value]. */
static bool
read_property(Reader *reader)
{
	JsonInput *input = &reader->input;
	char text[PROPERTY_TEXT_MAX];
	Property property = {0};
	uint64_t numbers[4];
	size_t len;
	Edit edit;

	for (int i = 0; i < 4; i++)
	{
		if (!json_take(input, ',') || !json_read_number(input, &numbers[i]) || numbers[i] > UINT32_MAX)
			return false;
	}
	property.target =
		(PropertyTarget){(uint32_t) numbers[0], (uint32_t) numbers[1], (uint32_t) numbers[2], (uint32_t) numbers[3]};
	if (!json_take(input, ',') || !json_read_string(input, reader->text, &len) || !json_take(input, ','))
		return false;
	property.key = (EditText){reader->text, (uint32_t) len};
	json_skip_blanks(input);
	property.value.data = input->pos;
	if (!json_take_word(input, "null"))
	{
		if (!json_skip_value(input))
			return false;
		property.value.len = (uint32_t) (input->pos - property.value.data);
	}
	if (!property_is_key(property.key))
		return false;
	edit = property_edit(&property, text);
	return read_edit_end(reader, &edit);
}

/* The rest of ["insertRows",at,n], or of a property. */
static bool
read_change(Reader *reader)
{
	JsonInput *input = &reader->input;
	Edit edit = {.kind = EDIT_INSERT_ROWS};
	uint64_t at, n;
	const char *digits;
	size_t len;

	if (!json_read_string(input, reader->text, &len))
		return false;
	if (text_is(reader, len, v2_property_name))
		return read_property(reader);
	while (!text_is(reader, len, v2_change_names[edit.kind - EDIT_INSERT_ROWS]))
	{
		if (edit.kind++ == EDIT_DELETE_COLUMNS)
			return false;
	}
	if (!json_take(input, ',') || !json_read_number(input, &at) || at > UINT32_MAX || !json_take(input, ','))
		return false;
	*(edit_is_of_rows(edit.kind) ? &edit.row : &edit.col) = (uint32_t) at;
	json_skip_blanks(input);
	digits = input->pos;
	if (!json_read_number(input, &n))
		return false;
	edit.content = (EditText){digits, (uint32_t) (input->pos - digits)};
	return read_edit_end(reader, &edit);
}

/* [row,col] resize; [row,col,content]; [row,col,content,style]; [row,col,null,style] style only. A style null clears.
 */
static bool
read_edit(Reader *reader)
{
	JsonInput *input = &reader->input;
	Edit edit = {.kind = EDIT_RESIZE};
	uint64_t row, col;
	size_t len = 0;

	if (!json_take(input, '['))
		return false;
	json_skip_blanks(input);
	if (input->pos < input->end && *input->pos == '"')
		return read_change(reader);
	if (!json_read_number(input, &row) || !json_take(input, ',') || !json_read_number(input, &col) ||
		row > UINT32_MAX || col > UINT32_MAX)
		return false;
	edit.row = (uint32_t) row;
	edit.col = (uint32_t) col;
	if (json_take(input, ','))
	{
		edit.kind = json_take_word(input, "null") ? EDIT_STYLE : EDIT_SET;
		if (edit.kind == EDIT_SET && !json_read_string(input, reader->text, &len))
			return false;
		edit.content = (EditText){reader->text, (uint32_t) len};
		if (json_take(input, ','))
		{
			json_skip_blanks(input);
			edit.style = (EditText){input->pos, 0};
			if (!json_take_word(input, "null"))
			{
				if (input->pos == input->end || *input->pos != '{' || !json_skip_value(input))
					return false;
				edit.style.len = (uint32_t) (input->pos - edit.style.data);
			}
		}
	}
	return read_edit_end(reader, &edit);
}

static bool
read_edits(Reader *reader)
{
	V2Message *message = reader->message;

	message->edits = reader->writer.pos;
	if (!json_take(&reader->input, '['))
		return false;
	do
	{
		if (!read_edit(reader))
			return false;
	} while (json_take(&reader->input, ','));
	message->edits_len = (size_t) (reader->writer.pos - message->edits);
	return json_take(&reader->input, ']');
}

/* ---- members ---- */

/* A text of the message itself, which has no escapes: tokens have none. */
static bool
read_text(Reader *reader, EditText *text)
{
	const char *from, *end;
	size_t len;

	json_skip_blanks(&reader->input);
	from = reader->input.pos;
	if (!json_read_string(&reader->input, reader->text, &len))
		return false;
	end = reader->input.pos - 1;
	*text = (EditText){from + 1, (uint32_t) len};
	return len <= V2_MAX_TOKEN && (size_t) (end - from - 1) == len;
}

static bool
read_value(Reader *reader, const V2Field *field)
{
	void *to = (char *) reader->message + field->offset;

	switch (field->kind)
	{
		case V2_FIELD_NUMBER:
			return json_read_number(&reader->input, to);
		case V2_FIELD_FLAG:
			*(uint64_t *) to = json_take_word(&reader->input, "true");
			return *(uint64_t *) to == 1 || json_take_word(&reader->input, "false");
		case V2_FIELD_TEXT:
			return read_text(reader, to);
		case V2_FIELD_EDITS:
			return read_edits(reader);
	}
	return false;
}

/* A name is short, and nobody escapes it. */
static int
read_name(Reader *reader, const V2Layout *layout)
{
	size_t len;

	if (!json_read_string(&reader->input, reader->text, &len) || !json_take(&reader->input, ':'))
		return -1;
	for (int i = 0; layout->fields[i].name != NULL; i++)
	{
		if (strlen(layout->fields[i].name) == len && memcmp(layout->fields[i].name, reader->text, len) == 0)
			return i;
	}
	return -1;
}

static bool
read_members(Reader *reader, const V2Layout *layout)
{
	unsigned seen = 0;

	while (json_take(&reader->input, ','))
	{
		int i = read_name(reader, layout);

		if (i < 0 || (seen & 1u << i) || !read_value(reader, &layout->fields[i]))
			return false;
		seen |= 1u << i;
	}
	if (!json_take(&reader->input, '}'))
		return false;
	json_skip_blanks(&reader->input);
	for (int i = 0; layout->fields[i].name != NULL; i++)
	{
		if (!layout->fields[i].optional && !(seen & 1u << i))
			return false;
	}
	return reader->input.pos == reader->input.end;
}

/* `{"t":"..."` */
static const V2Layout *
read_type(Reader *reader)
{
	const V2Layout *layout;
	size_t len;

	if (!json_take(&reader->input, '{') || !json_read_string(&reader->input, reader->text, &len) || len != 1 ||
		reader->text[0] != 't' || !json_take(&reader->input, ':') ||
		!json_read_string(&reader->input, reader->text, &len))
		return NULL;
	for (uint64_t type = V2_HELLO; (layout = v2_layout(type)) != NULL; type++)
	{
		if (strlen(layout->name) == len && memcmp(layout->name, reader->text, len) == 0)
		{
			reader->message->type = (V2Type) type;
			return layout;
		}
	}
	return NULL;
}

const char *
v2_read_json(const char *text, size_t len, char *scratch, V2Message *message)
{
	Reader reader = {.input = {text, text + len}, .text = scratch + V2_SCRATCH_EDITS(len), .message = message};
	const V2Layout *layout;

	memset(message, 0, sizeof(*message));
	edit_write_edits(&reader.writer, (uint8_t *) scratch);
	if (!utf8_check(text, len, NULL))
		return "the message is not UTF-8";
	layout = read_type(&reader);
	if (layout == NULL)
		return "unknown type";
	return read_members(&reader, layout) ? v2_check(message) : malformed;
}
