/*
 * v1_encode.c - messages of protocol v1 from the gateway to clients. Written by hand: modify is the hot path.
 */
#include "ws/wire/v1_encode.h"

#include "common/edit_codec.h"

#include <string.h>

#define V1_MODIFY_PARTS 160 /* of a modify: keys, brackets, quotes and numbers */

/* Copies a constant, whose size is known to the compiler. */
#define PUT(to, text) (memcpy(to, text, sizeof(text) - 1), (to) + sizeof(text) - 1)

static void
v1_put_cell(Buf *to, const char *type, uint32_t row, uint32_t col)
{
	buf_puts(to, "{\"msgType\":\"");
	buf_puts(to, type);
	buf_puts(to, "\",\"body\":{\"row\":");
	buf_put_number(to, row);
	buf_puts(to, ",\"col\":");
	buf_put_number(to, col);
}

void
v1_put_modify(Buf *to, uint32_t row, uint32_t col, const char *content, size_t content_len, const char *info,
			  size_t info_len, const Buf *name_json)
{
	static const char null_info[] = "null";
	char *at;

	if (info_len == 0)
	{
		info = null_info;
		info_len = sizeof(null_info) - 1;
	}
	if (buf_failed(name_json))
		buf_fail(to);
	if (!buf_reserve(to, V1_MODIFY_PARTS + content_len * JSON_GROWTH + info_len + name_json->len))
		return;
	at = to->data + to->len;
	at = PUT(at, "{\"msgType\":\"modify\",\"body\":{\"row\":");
	at = json_write_number(at, row);
	at = PUT(at, ",\"col\":");
	at = json_write_number(at, col);
	at = PUT(at, ",\"content\":");
	at = json_write_string(at, content, content_len);
	at = PUT(at, ",\"info\":");
	memcpy(at, info, info_len);
	at += info_len;
	at = PUT(at, ",\"username\":");
	memcpy(at, name_json->data, name_json->len);
	at += name_json->len;
	at = PUT(at, "}}");
	to->len = (size_t) (at - to->data);
}

void
v1_put_lock(Buf *to, const char *type, uint32_t row, uint32_t col, const Buf *name_json)
{
	v1_put_cell(to, type, row, col);
	buf_puts(to, ",\"username\":");
	buf_put_buf(to, name_json);
	buf_puts(to, "}}");
}

void
v1_put_held(Buf *to, bool held, const char *holder, const char *application, uint64_t ms)
{
	buf_printf(to, "{\"msgType\":\"held\",\"body\":{\"held\":%s,\"holder\":", held ? "true" : "false");
	buf_puts_json(to, holder);
	buf_puts(to, ",\"application\":");
	buf_puts_json(to, application);
	buf_printf(to, ",\"ms\":%llu}}", (unsigned long long) ms);
}

void
v1_put_refused(Buf *to, uint32_t row, uint32_t col, const char *reason, const char *content, size_t content_len)
{
	v1_put_cell(to, "refused", row, col);
	buf_puts(to, ",\"reason\":");
	buf_puts_json(to, reason);
	buf_puts(to, ",\"content\":");
	buf_put_json(to, content, content_len);
	buf_puts(to, "}}");
}

/* ---- the cells of a sheet ---- */

/* Has the buffers emptied when one of them is full. */
static void
content_check_full(V1Content *content)
{
	if (content->cells->len > V1_CONTENT_BYTES || content->styles->len > V1_CONTENT_BYTES)
		content->full(content->arg);
}

/* The style of a cell, for clients that ask for styles. */
static void
content_put_style(V1Content *content, const Edit *edit)
{
	Buf *to = content->styles;

	if (edit->style.len == 0 || edit->style.data[0] != '{')
		return;
	buf_printf(to, "%s{\"row\":%u,\"col\":%u,\"info\":", content->styled ? "," : "", edit->row, edit->col);
	buf_put(to, edit->style.data, edit->style.len);
	buf_puts(to, "}");
	content->styled = true;
}

/* Puts empty cells up to this one, counted row by row. */
static void
content_put_empty(V1Content *content, uint64_t to)
{
	static const char empty[] = ",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"";
	const uint64_t cells = (sizeof(empty) - 1) / 3;

	if (content->next == 0 && to > 0)
	{
		buf_puts(content->cells, "\"\"");
		content->next = 1;
	}
	while (content->next < to)
	{
		uint64_t count = to - content->next < cells ? to - content->next : cells;

		buf_put(content->cells, empty, 3 * count);
		content->next += count;
		content_check_full(content);
	}
}

bool
v1_put_cells(V1Content *content, const char *cells, size_t len)
{
	uint64_t total = (uint64_t) content->rows * content->cols;
	EditReader reader;
	EditBatch batch;
	Edit edit;
	EditError error;

	edit_reader_init(&reader, cells, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			uint64_t at = (uint64_t) edit.row * content->cols + edit.col;

			if (edit.col >= content->cols || at < content->next || at >= total)
				return false;
			content_put_empty(content, at);
			if (content->next++ > 0)
				buf_put(content->cells, ",", 1);
			buf_put_json(content->cells, edit.content.data, edit.content.len);
			content_put_style(content, &edit);
			content_check_full(content);
		}
		if (error != EDIT_END)
			return false;
	}
	return error == EDIT_END;
}

void
v1_put_cells_end(V1Content *content)
{
	content_put_empty(content, (uint64_t) content->rows * content->cols);
}
