/*
 * v1_encode.c - messages of protocol v1 from the gateway to clients. Written by hand: modify is the hot path.
 */
#include "v1_encode.h"

#include <string.h>

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
	v1_put_cell(to, "modify", row, col);
	buf_puts(to, ",\"content\":");
	buf_put_json(to, content, content_len);
	buf_puts(to, ",\"info\":");
	if (info_len > 0)
		buf_put(to, info, info_len);
	else
		buf_puts(to, "null");
	buf_puts(to, ",\"username\":");
	buf_put(to, name_json->data, name_json->len);
	buf_puts(to, "}}");
}

void
v1_put_lock(Buf *to, const char *type, uint32_t row, uint32_t col, const Buf *name_json)
{
	v1_put_cell(to, type, row, col);
	buf_puts(to, ",\"username\":");
	buf_put(to, name_json->data, name_json->len);
	buf_puts(to, "}}");
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
