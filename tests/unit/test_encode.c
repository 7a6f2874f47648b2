/*
 * test_encode.c - what the gateway writes as JSON is read back as it was, and escapes only what JSON requires.
 */
#include "ws/wire/v1_encode.h"

#include "common/edit_codec.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static void
test_strings(void)
{
	bool good = true;
	Buf buf = {NULL, 0, 0};
	char text[64];

	srand(3);
	for (int i = 0; i < 20000 && good; i++)
	{
		size_t len = (size_t) rand() % sizeof(text);
		cJSON *read;

		for (size_t at = 0; at < len; at++)
			text[at] = (char) (rand() % 127 + 1);
		buf.len = 0;
		buf_put_json(&buf, text, len);
		read = cJSON_ParseWithLength(buf.data, buf.len);
		good = cJSON_IsString(read) && strlen(read->valuestring) == len && memcmp(read->valuestring, text, len) == 0;
		cJSON_Delete(read);
	}
	TAP_OK(good, "20,000 random strings come back as they were");
	buf.len = 0;
	buf_puts_json(&buf, "ws://a/b?c=<&>\xc3\xa9");
	buf_put(&buf, "", 1);
	TAP_OK(strcmp(buf.data, "\"ws://a/b?c=<&>\xc3\xa9\"") == 0,
		   "slashes and other plain characters are not escaped: %s", buf.data);
	buf_free(&buf);
}

static void
test_numbers(void)
{
	static const int64_t numbers[] = {0, 1, -1, 9007199254740991, INT64_MAX, INT64_MIN};
	bool good = true;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
	{
		Buf buf = {NULL, 0, 0};
		char text[32];

		buf_put_number(&buf, numbers[i]);
		buf_put(&buf, "", 1);
		snprintf(text, sizeof(text), "%lld", (long long) numbers[i]);
		good = good && strcmp(buf.data, text) == 0;
		buf_free(&buf);
	}
	TAP_OK(good, "numbers to the edges of 64 bits");
}

/* Cells at random places of a rectangle; the array has all of them, in their places. */
static void
test_content(void)
{
	enum
	{
		ROWS = 7,
		COLS = 5
	};
	uint8_t stream[4096];
	EditBatch head = {9, 0, 0};
	EditWriter writer;
	const char *expected[ROWS * COLS];
	Buf content = {NULL, 0, 0}, styles = {NULL, 0, 0}, object = {NULL, 0, 0};
	V1Content encoder = {.rows = ROWS, .cols = COLS, .cells = &content, .styles = &styles};
	cJSON *read, *array;
	bool good = true;

	srand(11);
	for (int i = 0; i < ROWS * COLS; i++)
	{
		expected[i] = rand() % 3 ? "" : "cell \"x\"";
		head.count += expected[i][0] != '\0';
	}
	edit_write_batch(&writer, stream, &head);
	for (int i = 0; i < ROWS * COLS; i++)
	{
		Edit edit = {.kind = EDIT_SET,
					 .row = (uint32_t) (i / COLS),
					 .col = (uint32_t) (i % COLS),
					 .content = {expected[i], (uint32_t) strlen(expected[i])}};

		if (edit.content.len == 0)
			continue;
		if (i % 2)
			edit.style = (EditText){"{\"b\":1}", 7};
		edit_write(&writer, &edit);
	}
	TAP_OK(v1_put_cells(&encoder, (char *) stream, (size_t) (writer.pos - stream)), "a stream of cells is encoded");
	v1_put_cells_end(&encoder);
	buf_puts(&object, "{\"content\":[");
	buf_put(&object, content.data, content.len);
	buf_puts(&object, "],\"styles\":[");
	buf_put(&object, styles.data, styles.len);
	buf_puts(&object, "]}");
	read = cJSON_ParseWithLength(object.data, object.len);
	array = cJSON_GetObjectItem(read, "content");
	good = cJSON_GetArraySize(array) == ROWS * COLS;
	for (int i = 0; i < ROWS * COLS && good; i++)
		good = strcmp(cJSON_GetArrayItem(array, i)->valuestring, expected[i]) == 0;
	TAP_OK(good, "every cell is in its place, row by row");
	TAP_OK(cJSON_IsArray(cJSON_GetObjectItem(read, "styles")), "styles are JSON");
	cJSON_Delete(read);
	TAP_OK(!v1_put_cells(&encoder, (char *) stream, (size_t) (writer.pos - stream)),
		   "cells that come again are an error");
	encoder = (V1Content){.rows = 1, .cols = 1, .cells = &content, .styles = &styles};
	TAP_OK(!v1_put_cells(&encoder, (char *) stream, (size_t) (writer.pos - stream)),
		   "so are cells outside the rectangle");
	encoder = (V1Content){.rows = ROWS, .cols = COLS, .cells = &content, .styles = &styles};
	TAP_OK(!v1_put_cells(&encoder, (char *) stream, (size_t) (writer.pos - stream) - 1), "so are bytes cut short");
	buf_free(&content);
	buf_free(&styles);
	buf_free(&object);
}

typedef struct Emptied
{
	Buf cells, styles;
	size_t len, most;
} Emptied;

static void
empty_cells(void *arg)
{
	Emptied *emptied = arg;

	emptied->len += emptied->cells.len;
	emptied->most = emptied->cells.len > emptied->most ? emptied->cells.len : emptied->most;
	emptied->cells.len = 0;
}

static void
test_content_in_pieces(void)
{
	Emptied emptied = {{NULL, 0, 0}, {NULL, 0, 0}, 0, 0};
	V1Content encoder = {.rows = 1000,
						 .cols = 1000,
						 .cells = &emptied.cells,
						 .styles = &emptied.styles,
						 .full = empty_cells,
						 .arg = &emptied};

	v1_put_cells_end(&encoder);
	empty_cells(&emptied);
	TAP_OK(emptied.len == 3 * 1000000 - 1, "a million empty cells");
	TAP_OK(emptied.most < 2 * V1_CONTENT_BYTES, "come in pieces of bounded size");
	buf_free(&emptied.cells);
}

int
main(void)
{
	test_strings();
	test_numbers();
	test_content();
	test_content_in_pieces();
	return tap_done();
}
