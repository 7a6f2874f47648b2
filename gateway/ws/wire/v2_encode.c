/*
 * v2_encode.c - messages of the gateway. Each is written once, as a sequence of named fields; a writer makes of it JSON
 * with the names, or the binary form without them.
 */
#include "ws/wire/v2.h"

#include "common/edit_read.h"
#include "common/edit_write.h"
#include "common/properties.h"

#include <string.h>

typedef enum ServerType
{
	SERVER_HELLO = 65,
	SERVER_EDITS,
	SERVER_BLOCK,
	SERVER_ACK,
	SERVER_NACK,
	SERVER_LOCK,
	SERVER_DENIED,
	SERVER_PEER,
	SERVER_CURSORS,
	SERVER_USER,
	SERVER_VERSION,
	SERVER_ROLE,
	SERVER_AUTHED,
	SERVER_CALC,
	SERVER_HELD,
	SERVER_PROPERTIES,
	SERVER_RANGE,
	SERVER_BLOCKED,
	SERVER_CHANGED,
	SERVER_REMINDERS,
	SERVER_BOOK
} ServerType;

static const char *const server_names[] = {
	[SERVER_HELLO] = "hello",	  [SERVER_EDITS] = "edits",
	[SERVER_BLOCK] = "block",	  [SERVER_ACK] = "ack",
	[SERVER_NACK] = "nack",		  [SERVER_LOCK] = "lock",
	[SERVER_DENIED] = "denied",	  [SERVER_PEER] = "peer",
	[SERVER_CURSORS] = "cursors", [SERVER_USER] = "user",
	[SERVER_VERSION] = "version", [SERVER_ROLE] = "role",
	[SERVER_AUTHED] = "authed",	  [SERVER_CALC] = "calc",
	[SERVER_HELD] = "held",		  [SERVER_PROPERTIES] = "properties",
	[SERVER_RANGE] = "range",	  [SERVER_BLOCKED] = "blocked",
	[SERVER_CHANGED] = "changed", [SERVER_REMINDERS] = "reminders",
	[SERVER_BOOK] = "book",
};

const char *const v2_role_names[V2_ROLES] = {"viewer", "commenter", "editor", "owner"};
static const char *const version_names[V2_KINDS] = {"commit", "rollback"};

typedef struct V2Writer
{
	Buf *to;
	V2Encoding encoding;
} V2Writer;

/* ---- values ---- */

static void
put_varint(Buf *to, uint64_t value)
{
	uint8_t bytes[CODEC_NUMBER_MAX];

	buf_put(to, bytes, (size_t) (codec_put_number(bytes, value) - bytes));
}

static void
put_key(const V2Writer *writer, const char *key)
{
	buf_put(writer->to, ",\"", 2);
	buf_puts(writer->to, key);
	buf_put(writer->to, "\":", 2);
}

static void
put_number(const V2Writer *writer, const char *key, uint64_t value)
{
	if (writer->encoding == V2_BINARY)
	{
		put_varint(writer->to, value);
		return;
	}
	put_key(writer, key);
	buf_put_number(writer->to, (int64_t) value);
}

static void
put_text(const V2Writer *writer, const char *key, const char *text, size_t len)
{
	if (writer->encoding == V2_BINARY)
	{
		put_varint(writer->to, len);
		buf_put(writer->to, text, len);
		return;
	}
	put_key(writer, key);
	buf_put_json(writer->to, text, len);
}

static void
put_name(const V2Writer *writer, const char *key, const char *const *names, unsigned value)
{
	if (writer->encoding == V2_BINARY)
		put_varint(writer->to, value);
	else
		put_text(writer, key, names[value], strlen(names[value]));
}

static void
put_bool(const V2Writer *writer, const char *key, bool value)
{
	if (writer->encoding == V2_BINARY)
	{
		put_varint(writer->to, value);
		return;
	}
	put_key(writer, key);
	buf_puts(writer->to, value ? "true" : "false");
}

static V2Writer
put_begin(Buf *to, V2Encoding encoding, ServerType type)
{
	if (encoding == V2_BINARY)
		put_varint(to, type);
	else
	{
		buf_puts(to, "{\"t\":\"");
		buf_puts(to, server_names[type]);
		buf_put(to, "\"", 1);
	}
	return (V2Writer){to, encoding};
}

static void
put_end(const V2Writer *writer)
{
	if (writer->encoding == V2_JSON)
		buf_put(writer->to, "}", 1);
}

/* ---- lists ---- */

static void
put_list(const V2Writer *writer, const char *key, uint32_t count)
{
	if (writer->encoding == V2_BINARY)
	{
		put_varint(writer->to, count);
		return;
	}
	put_key(writer, key);
	buf_put(writer->to, "[", 1);
}

static void
put_list_end(const V2Writer *writer)
{
	if (writer->encoding == V2_JSON)
		buf_put(writer->to, "]", 1);
}

/* An item of numbers, and perhaps a text behind them. */
static void
put_item(const V2Writer *writer, uint32_t index, const uint64_t *numbers, int n, const char *text)
{
	for (int i = 0; i < n; i++)
	{
		if (writer->encoding == V2_JSON)
		{
			buf_puts(writer->to, i > 0 ? "," : index > 0 ? ",[" : "[");
			buf_put_number(writer->to, (int64_t) numbers[i]);
		}
		else
			put_varint(writer->to, numbers[i]);
	}
	if (text != NULL && writer->encoding == V2_JSON)
	{
		buf_put(writer->to, ",", 1);
		buf_puts_json(writer->to, text);
	}
	else if (text != NULL)
	{
		put_varint(writer->to, strlen(text));
		buf_puts(writer->to, text);
	}
	put_list_end(writer);
}

/* ---- edits ---- */

/* A style that is no JSON object (SQL may have stored anything) is none. */
static void
put_style(Buf *to, EditText style)
{
	buf_put(to, ",", 1);
	if (style.len > 0 && v2_is_json_object(style.data, style.len))
		buf_put(to, style.data, style.len);
	else
		buf_puts(to, "null");
}

static void
put_json_property(Buf *to, const Edit *edit)
{
	Property property;

	(void) property_of(edit, &property); /* it was checked when it was stored */
	buf_puts_json(to, v2_property_name);
	buf_printf(to, ",%u,%u,%u,%u,", property.target.row0, property.target.col0, property.target.row1,
			   property.target.col1);
	buf_put_json(to, property.key.data, property.key.len);
	buf_put(to, ",", 1);
	if (property.value.len > 0)
		buf_put(to, property.value.data, property.value.len);
	else
		buf_puts(to, "null");
}

static void
put_json_edit(Buf *to, const Edit *edit, bool with_uid)
{
	if (with_uid)
	{
		buf_put_number(to, (int64_t) edit_uid_to_number(edit->uid));
		buf_put(to, ",", 1);
	}
	if (edit_is_structure(edit->kind))
	{
		buf_puts_json(to, v2_change_names[edit->kind - EDIT_INSERT_ROWS]);
		buf_put(to, ",", 1);
		buf_put_number(to, edit_is_of_rows(edit->kind) ? edit->row : edit->col);
		buf_put(to, ",", 1);
		buf_put(to, edit->content.data, edit->content.len); /* in decimal: line_change_of() */
		return;
	}
	if (edit->kind == EDIT_PROPERTY)
	{
		put_json_property(to, edit);
		return;
	}
	buf_put_number(to, edit->row);
	buf_put(to, ",", 1);
	buf_put_number(to, edit->col);
	if (edit->kind == EDIT_SET)
	{
		buf_put(to, ",", 1);
		buf_put_json(to, edit->content.data, edit->content.len);
	}
	else if (edit->kind == EDIT_STYLE)
		buf_puts(to, ",null");
	if (edit->style.data != NULL)
		put_style(to, edit->style);
}

void
v2_put_cell(Buf *to, const Edit *cell)
{
	buf_put(to, "[", 1);
	put_json_edit(to, cell, false);
	buf_put(to, "]", 1);
}

static void
put_edits(const V2Writer *writer, const char *key, const void *edits, size_t len, uint32_t count, bool with_uid)
{
	EditReader reader;
	Edit edit;

	put_list(writer, key, count);
	if (writer->encoding == V2_BINARY)
	{
		buf_put(writer->to, edits, len);
		return;
	}
	edit_reader_init_edits(&reader, edits, len, count);
	for (bool first = true; edit_read_inline(&reader, &edit) == EDIT_OK; first = false)
	{
		buf_puts(writer->to, first ? "[" : ",[");
		put_json_edit(writer->to, &edit, with_uid);
		buf_put(writer->to, "]", 1);
	}
	put_list_end(writer);
}

void
v2_put_edits(Buf *to, V2Encoding encoding, uint64_t seq, bool more, const void *edits, size_t len, uint32_t count)
{
	V2Writer writer = put_begin(to, encoding, SERVER_EDITS);

	put_number(&writer, "seq", seq);
	put_bool(&writer, "more", more);
	put_edits(&writer, "edits", edits, len, count, true);
	put_end(&writer);
}

void
v2_put_block(Buf *to, V2Encoding encoding, const V2Block *block, const void *edits, size_t len, uint32_t count)
{
	V2Writer writer = put_begin(to, encoding, SERVER_BLOCK);

	put_number(&writer, "id", block->id);
	put_number(&writer, "row", block->row);
	put_number(&writer, "col", block->col);
	put_number(&writer, "toRow", block->to_row);
	put_number(&writer, "toCol", block->to_col);
	put_number(&writer, "seq", block->seq);
	put_bool(&writer, "more", block->more);
	put_edits(&writer, "cells", edits, len, count, false);
	put_end(&writer);
}

void
v2_put_properties(Buf *to, V2Encoding encoding, uint64_t seq, bool more, const void *edits, size_t len, uint32_t count)
{
	V2Writer writer = put_begin(to, encoding, SERVER_PROPERTIES);

	put_number(&writer, "seq", seq);
	put_bool(&writer, "more", more);
	put_edits(&writer, "properties", edits, len, count, false);
	put_end(&writer);
}

/* ---- the others ---- */

/* Those of cells, or those of ranges. */
static void
put_locks(const V2Writer *writer, const char *key, const V2Hello *hello, bool range)
{
	uint32_t count = 0, index = 0;

	for (uint32_t i = 0; i < hello->lock_count; i++)
		count += hello->locks[i].range == range;
	put_list(writer, key, count);
	for (uint32_t i = 0; i < hello->lock_count; i++)
	{
		const V2Lock *lock = &hello->locks[i];
		const uint32_t *rect = lock->rect;
		uint64_t uid = edit_uid_to_number(lock->uid);

		if (lock->range != range)
			continue;
		if (range)
			put_item(writer, index++, (const uint64_t[]){rect[0], rect[1], rect[2], rect[3], lock->session, uid}, 6,
					 NULL);
		else
			put_item(writer, index++, (const uint64_t[]){rect[0], rect[1], lock->session, uid}, 4, NULL);
	}
	put_list_end(writer);
}

void
v2_put_hello(Buf *to, V2Encoding encoding, const V2Hello *hello)
{
	V2Writer writer = put_begin(to, encoding, SERVER_HELLO);

	put_number(&writer, "v", hello->version);
	put_number(&writer, "session", hello->session);
	put_number(&writer, "uid", edit_uid_to_number(hello->uid));
	put_text(&writer, "name", hello->name, strlen(hello->name));
	put_name(&writer, "role", v2_role_names, hello->role);
	put_number(&writer, "seq", hello->seq);
	put_number(&writer, "epoch", hello->epoch);
	put_number(&writer, "rows", hello->rows);
	put_number(&writer, "cols", hello->cols);
	put_number(&writer, "landed", hello->landed);
	put_bool(&writer, "resumed", hello->resumed);
	put_number(&writer, "retention", hello->retention);
	put_number(&writer, "lease", hello->lease);
	put_number(&writer, "maxEdits", V2_MAX_OP_EDITS);
	put_number(&writer, "maxBytes", hello->max_bytes);
	put_list(&writer, "peers", hello->peer_count);
	for (uint32_t i = 0; i < hello->peer_count; i++)
		put_item(&writer, i, (const uint64_t[]){hello->peers[i].session, edit_uid_to_number(hello->peers[i].uid)}, 2,
				 hello->peers[i].name);
	put_list_end(&writer);
	put_locks(&writer, "locks", hello, false);
	if (hello->version >= V2_VERSION_RANGES)
		put_locks(&writer, "ranges", hello, true);
	put_end(&writer);
}

void
v2_put_notice(Buf *to, V2Encoding encoding, V2Notice notice)
{
	V2Writer writer = put_begin(to, encoding, SERVER_CHANGED + notice);

	put_end(&writer);
}

void
v2_put_ack(Buf *to, V2Encoding encoding, uint64_t n, uint64_t seq)
{
	V2Writer writer = put_begin(to, encoding, SERVER_ACK);

	put_number(&writer, "n", n);
	put_number(&writer, "seq", seq);
	put_end(&writer);
}

void
v2_put_nack(Buf *to, V2Encoding encoding, uint64_t n, V2Reason reason, uint32_t row, uint32_t col, bool block)
{
	V2Writer writer = put_begin(to, encoding, SERVER_NACK);

	put_number(&writer, "n", n);
	put_name(&writer, "reason", v2_reason_names, reason);
	put_number(&writer, "row", row);
	put_number(&writer, "col", col);
	put_bool(&writer, "block", block);
	put_end(&writer);
}

void
v2_put_lock(Buf *to, V2Encoding encoding, const V2Lock *lock)
{
	V2Writer writer = put_begin(to, encoding, lock->range ? SERVER_RANGE : SERVER_LOCK);

	put_number(&writer, "row", lock->rect[0]);
	put_number(&writer, "col", lock->rect[1]);
	if (lock->range)
	{
		put_number(&writer, "toRow", lock->rect[2]);
		put_number(&writer, "toCol", lock->rect[3]);
	}
	put_number(&writer, "session", lock->session);
	put_number(&writer, "uid", edit_uid_to_number(lock->uid));
	put_end(&writer);
}

void
v2_put_blocked(Buf *to, V2Encoding encoding, const V2Blocked *blocked)
{
	V2Writer writer = put_begin(to, encoding, SERVER_BLOCKED);

	put_number(&writer, "row", blocked->rect[0]);
	put_number(&writer, "col", blocked->rect[1]);
	put_number(&writer, "toRow", blocked->rect[2]);
	put_number(&writer, "toCol", blocked->rect[3]);
	put_name(&writer, "reason", v2_reason_names, blocked->reason);
	put_bool(&writer, "waits", blocked->waits);
	put_number(&writer, "atRow", blocked->at_row);
	put_number(&writer, "atCol", blocked->at_col);
	put_number(&writer, "session", blocked->session);
	put_number(&writer, "uid", edit_uid_to_number(blocked->uid));
	put_end(&writer);
}

void
v2_put_denied(Buf *to, V2Encoding encoding, uint32_t row, uint32_t col, V2Reason reason)
{
	V2Writer writer = put_begin(to, encoding, SERVER_DENIED);

	put_number(&writer, "row", row);
	put_number(&writer, "col", col);
	put_name(&writer, "reason", v2_reason_names, reason);
	put_end(&writer);
}

void
v2_put_peer(Buf *to, V2Encoding encoding, const V2Peer *peer, bool here)
{
	V2Writer writer = put_begin(to, encoding, SERVER_PEER);

	put_number(&writer, "session", peer->session);
	put_number(&writer, "uid", edit_uid_to_number(peer->uid));
	put_text(&writer, "name", peer->name, strlen(peer->name));
	put_bool(&writer, "here", here);
	put_end(&writer);
}

void
v2_put_cursors(Buf *to, V2Encoding encoding, const V2Cursor *cursors, uint32_t count)
{
	V2Writer writer = put_begin(to, encoding, SERVER_CURSORS);

	put_list(&writer, "cursors", count);
	for (uint32_t i = 0; i < count; i++)
	{
		const V2Cursor *cursor = &cursors[i];

		put_item(&writer, i,
				 (const uint64_t[]){cursor->session, cursor->row, cursor->col, cursor->to_row, cursor->to_col}, 5,
				 NULL);
	}
	put_list_end(&writer);
	put_end(&writer);
}

void
v2_put_user(Buf *to, V2Encoding encoding, uint64_t uid, const char *name)
{
	V2Writer writer = put_begin(to, encoding, SERVER_USER);

	put_number(&writer, "uid", edit_uid_to_number(uid));
	put_text(&writer, "name", name, strlen(name));
	put_end(&writer);
}

void
v2_put_version(Buf *to, V2Encoding encoding, uint64_t seq, uint64_t uid, V2VersionKind kind, uint64_t cid,
			   const char *label, size_t label_len)
{
	V2Writer writer = put_begin(to, encoding, SERVER_VERSION);

	put_number(&writer, "seq", seq);
	put_number(&writer, "uid", edit_uid_to_number(uid));
	put_name(&writer, "kind", version_names, kind);
	put_number(&writer, "cid", cid);
	put_text(&writer, "label", label, label_len);
	put_end(&writer);
}

void
v2_put_role(Buf *to, V2Encoding encoding, V2Role role)
{
	V2Writer writer = put_begin(to, encoding, SERVER_ROLE);

	put_name(&writer, "role", v2_role_names, role);
	put_end(&writer);
}

void
v2_put_calc(Buf *to, V2Encoding encoding, uint64_t session, uint64_t seq, const void *edits, size_t len, uint32_t count)
{
	V2Writer writer = put_begin(to, encoding, SERVER_CALC);

	put_number(&writer, "session", session);
	put_number(&writer, "seq", seq);
	put_edits(&writer, "cells", edits, len, count, false);
	put_end(&writer);
}

void
v2_put_held(Buf *to, V2Encoding encoding, bool held, const char *holder, const char *application, uint64_t ms)
{
	V2Writer writer = put_begin(to, encoding, SERVER_HELD);

	put_bool(&writer, "held", held);
	put_text(&writer, "holder", holder, strlen(holder));
	put_text(&writer, "application", application, strlen(application));
	put_number(&writer, "ms", ms);
	put_end(&writer);
}

void
v2_put_authed(Buf *to, V2Encoding encoding, uint64_t expires)
{
	V2Writer writer = put_begin(to, encoding, SERVER_AUTHED);

	put_number(&writer, "expires", expires);
	put_end(&writer);
}
