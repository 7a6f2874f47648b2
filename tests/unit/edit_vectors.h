/*
 * edit_vectors.h - for tests of edits: files of test vectors, and the bytes of edits as they are produced.
 */
#ifndef EDIT_VECTORS_H
#define EDIT_VECTORS_H

#include "common/edit_codec.h"
#include "support/buf.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

/* The parsed file, of less than 64 kB. */
static inline cJSON *
read_vectors(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "rb");

	if (file == NULL || fread(text, 1, sizeof(text) - 1, file) == 0)
	{
		perror(path);
		exit(1);
	}
	fclose(file);
	return cJSON_Parse(text);
}

/* Starts with {.writer = {.first = true}}; the bytes are freed by buf_free. */
typedef struct Output
{
	Buf bytes;
	EditWriter writer;
	uint32_t count;
} Output;

/* Appends an edit; arg is an Output. */
static inline void
output_put(void *arg, const Edit *edit)
{
	Output *output = arg;

	buf_reserve(&output->bytes, edit_size_bound(edit));
	output->writer.pos = (uint8_t *) output->bytes.data + output->bytes.len;
	edit_write(&output->writer, edit);
	output->bytes.len = (size_t) ((char *) output->writer.pos - output->bytes.data);
	output->count++;
}

#endif
