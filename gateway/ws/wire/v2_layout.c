/*
 * v2_layout.c - what messages of clients consist of, and what holds for them in either form.
 */
#include "ws/wire/v2.h"

#include "support/json.h"
#include "common/properties.h"
#include "common/utf8.h"

#include <string.h>

#define NUMBER(field_name, member)                                                                                     \
	{                                                                                                                  \
		field_name, V2_FIELD_NUMBER, false, offsetof(V2Message, member)                                                \
	}
#define OPTIONAL(field_name, member)                                                                                   \
	{                                                                                                                  \
		field_name, V2_FIELD_NUMBER, true, offsetof(V2Message, member)                                                 \
	}
#define FLAG(field_name, member)                                                                                       \
	{                                                                                                                  \
		field_name, V2_FIELD_FLAG, true, offsetof(V2Message, member)                                                   \
	}
#define TEXT(field_name, member)                                                                                       \
	{                                                                                                                  \
		field_name, V2_FIELD_TEXT, false, offsetof(V2Message, member)                                                  \
	}

static const V2Layout layouts[] = {
	[V2_HELLO] = {"hello",
				  {NUMBER("v", version), TEXT("token", token), OPTIONAL("client", client), OPTIONAL("acked", acked),
				   OPTIONAL("since", since)}},
	[V2_AUTH] = {"auth", {TEXT("token", token)}},
	[V2_GET] = {"get",
				{OPTIONAL("id", id), NUMBER("row", row), NUMBER("col", col), NUMBER("toRow", to_row),
				 NUMBER("toCol", to_col)}},
	[V2_OP] = {"op",
			   {NUMBER("n", n),
				OPTIONAL("nacks", nacks),
				OPTIONAL("base", base),
				OPTIONAL("seen", seen),
				{"edits", V2_FIELD_EDITS, false, 0}}},
	[V2_LOCK] = {"lock", {NUMBER("row", row), NUMBER("col", col), OPTIONAL("base", base)}},
	[V2_UNLOCK] = {"unlock", {NUMBER("row", row), NUMBER("col", col), OPTIONAL("base", base)}},
	[V2_CURSOR] = {"cursor",
				   {NUMBER("row", row), NUMBER("col", col), NUMBER("toRow", to_row), NUMBER("toCol", to_col),
					OPTIONAL("base", base)}},
	[V2_WHO] = {"who", {NUMBER("uid", uid)}},
	[V2_CALC] = {"calc", {NUMBER("seq", base), {"cells", V2_FIELD_EDITS, false, 0}}},
	[V2_LOCK_RANGE] = {"lockRange",
					   {NUMBER("row", row), NUMBER("col", col), NUMBER("toRow", to_row), NUMBER("toCol", to_col),
						OPTIONAL("base", base), FLAG("wait", wait)}},
	[V2_UNLOCK_RANGE] = {"unlockRange",
						 {NUMBER("row", row), NUMBER("col", col), NUMBER("toRow", to_row), NUMBER("toCol", to_col),
						  OPTIONAL("base", base)}},
};

const char *const v2_reason_names[V2_REASONS] = {
	[V2_REASON_NONE] = "none", [V2_REASON_ROLE] = "role", [V2_REASON_LOCKED] = "locked", [V2_REASON_RANGE] = "range",
	[V2_REASON_SIZE] = "size", [V2_REASON_BUSY] = "busy", [V2_REASON_BASE] = "base",
};

const char *const v2_change_names[V2_CHANGE_KINDS] = {"insertRows", "deleteRows", "insertColumns", "deleteColumns"};
const char v2_property_name[] = "property";

const V2Layout *
v2_layout(uint64_t type)
{
	return type < sizeof(layouts) / sizeof(layouts[0]) && layouts[type].name != NULL ? &layouts[type] : NULL;
}

/* ---- edits ---- */

bool
v2_is_json_object(const char *text, size_t len)
{
	size_t blanks = 0;

	while (blanks < len && memchr(" \t\r\n", text[blanks], 4) != NULL)
		blanks++;
	return blanks < len && text[blanks] == '{' && json_check(text, len);
}

static void
v2_refuse_edit(V2Message *message, const Edit *edit, V2Reason reason)
{
	if (message->reason != V2_REASON_NONE)
		return;
	message->reason = reason;
	message->bad_row = edit->row < SHEET_MAX_ROWS ? edit->row : SHEET_MAX_ROWS - 1;
	message->bad_col = edit->col < SHEET_MAX_COLS ? edit->col : SHEET_MAX_COLS - 1;
}

void
v2_widen(V2Message *message, const Edit *edit)
{
	uint32_t *rect = message->rect;

	if (!message->bounded)
	{
		rect[0] = rect[2] = edit->row;
		rect[1] = rect[3] = edit->col;
		message->bounded = true;
		return;
	}
	rect[0] = edit->row < rect[0] ? edit->row : rect[0];
	rect[1] = edit->col < rect[1] ? edit->col : rect[1];
	rect[2] = edit->row > rect[2] ? edit->row : rect[2];
	rect[3] = edit->col > rect[3] ? edit->col : rect[3];
}

/* A number from 1 on, as it is written. */
static bool
v2_is_count(EditText text)
{
	if (text.len == 0 || text.len > 16 || text.data[0] == '0')
		return false;
	for (uint32_t i = 0; i < text.len; i++)
	{
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	}
	return true;
}

/* A structure edit: has it the right shape, and is there room for it? */
static bool
v2_note_change(V2Message *message, const Edit *edit)
{
	LineChange change;

	if (edit->style.data != NULL || (edit_is_of_rows(edit->kind) ? edit->col : edit->row) != 0 ||
		!v2_is_count(edit->content))
		return false;
	if (!line_change_of(edit, &change))
		v2_refuse_edit(message, edit, V2_REASON_RANGE);
	else if (message->changes++ >= V2_MAX_OP_CHANGES || message->count >= V2_MAX_OP_EDITS)
		v2_refuse_edit(message, edit, V2_REASON_SIZE);
	return true;
}

/* A value null removes the property: its edit has no content. */
static bool
v2_note_property(V2Message *message, const Edit *edit)
{
	JsonInput value = {edit->content.data, edit->content.data + edit->content.len};
	Property property;
	bool deep;

	if (edit->style.data == NULL || !property_of(edit, &property))
		return false;
	if (edit->content.len > 0 && (!utf8_check(edit->content.data, edit->content.len, NULL) ||
								  !json_check(edit->content.data, edit->content.len) || json_take_word(&value, "null")))
		return false;
	if (edit->row >= SHEET_MAX_ROWS || edit->col >= SHEET_MAX_COLS)
		v2_refuse_edit(message, edit, V2_REASON_RANGE);
	else if (edit->content.len > PROPERTY_MAX_VALUE || message->count >= V2_MAX_OP_EDITS ||
			 !property_value_is_bounded(edit->content, &deep) ||
			 (edit->content.len > 0 &&
			  (property_wanted_value(&property) != NULL || property_merged_cells(&property) > PROPERTY_MAX_MERGE)))
		v2_refuse_edit(message, edit, V2_REASON_SIZE);
	message->properties++;
	return true;
}

bool
v2_note_edit(V2Message *message, const Edit *edit)
{
	size_t chars = 0;

	if (edit->uid != 0 || edit->old.data != NULL)
		return false;
	if (edit_is_structure(edit->kind))
		return v2_note_change(message, edit);
	if (edit->kind == EDIT_PROPERTY)
		return v2_note_property(message, edit);
	if (edit->kind < EDIT_SET || edit->kind > EDIT_RESIZE)
		return false;
	if (edit->kind != EDIT_SET && edit->content.len > 0)
		return false;
	if ((edit->kind == EDIT_STYLE) != (edit->style.data != NULL) && edit->kind != EDIT_SET)
		return false;
	if (edit->content.len > 0 && !utf8_check(edit->content.data, edit->content.len, &chars))
		return false;
	if (edit->style.len > 0 &&
		(!utf8_check(edit->style.data, edit->style.len, NULL) || !v2_is_json_object(edit->style.data, edit->style.len)))
		return false;
	if (edit->row >= SHEET_MAX_ROWS || edit->col >= SHEET_MAX_COLS)
	{
		v2_refuse_edit(message, edit, V2_REASON_RANGE);
		return true;
	}
	v2_widen(message, edit);
	message->plain += edit->kind == EDIT_SET && edit->style.data == NULL;
	if (chars > SHEET_MAX_CHARS || edit->style.len > SHEET_MAX_STYLE_BYTES || message->count >= V2_MAX_OP_EDITS)
		v2_refuse_edit(message, edit, V2_REASON_SIZE);
	return true;
}

/* ---- messages ---- */

static const char *
v2_check_range(const V2Message *message)
{
	if (message->row >= SHEET_MAX_ROWS || message->col >= SHEET_MAX_COLS || message->to_row >= SHEET_MAX_ROWS ||
		message->to_col >= SHEET_MAX_COLS)
		return "no such row or column";
	if (message->to_row < message->row || message->to_col < message->col)
		return "a range must end behind its beginning";
	if (message->type == V2_GET &&
		(message->to_row - message->row + 1) * (message->to_col - message->col + 1) > V2_MAX_BLOCK_CELLS)
		return "a block has at most " TEXT_OF(V2_MAX_BLOCK_CELLS) " cells";
	return NULL;
}

const char *
v2_check(const V2Message *message)
{
	switch (message->type)
	{
		case V2_HELLO:
			if (message->version < V2_VERSION || message->version > V2_VERSION_LAST)
				return "this gateway speaks the versions " TEXT_OF(V2_VERSION) " to " TEXT_OF(V2_VERSION_LAST);
			if (message->acked > 0 && message->client == 0)
				return "operations need a client";
			return message->token.len == 0 ? "a token is needed" : NULL;
		case V2_AUTH:
			return message->token.len == 0 ? "a token is needed" : NULL;
		case V2_GET:
		case V2_CURSOR:
		case V2_LOCK_RANGE:
		case V2_UNLOCK_RANGE:
			return v2_check_range(message);
		case V2_LOCK:
		case V2_UNLOCK:
			return message->row >= SHEET_MAX_ROWS || message->col >= SHEET_MAX_COLS ? "no such row or column" : NULL;
		case V2_OP:
			if (message->n == 0)
				return "operations are numbered from 1";
			return message->count == 0 ? "an operation has at least one edit" : NULL;
		case V2_WHO:
			return NULL;
		case V2_CALC:
			if (message->count == 0 || message->count > V2_MAX_VALUES)
				return "a message has 1 to " TEXT_OF(V2_MAX_VALUES) " values";
			if (message->plain < message->count || message->reason != V2_REASON_NONE)
				return "a computed value is a content of a cell";
			return message->base == 0 ? "values are computed at a seq" : NULL;
	}
	return "unknown type";
}
