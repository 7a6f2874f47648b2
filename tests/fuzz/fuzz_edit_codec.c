/*
 * fuzz_edit_codec.c - whatever the bytes, the reader stays within them, and what it accepts is written and read back
 * the same.
 *
 * See fuzz.h for how it is run.
 */
#include "edit_codec.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* A batch head of 1 edit, edits of each kind, long and overlong numbers. */
static const char *const fuzz_words[] = {"\x01\x01\x01\x01",
										 "\x01\x01\x01\x03",
										 "\x01\x07\x02\x03\x03"
										 "abc",
										 "\xd1\x02\x01"
										 "x"
										 "\x02{}",
										 "\xe1\x02\x01"
										 "x"
										 "\x01"
										 "o",
										 "\x04\x01\x01\x01\x05"
										 "label",
										 "\x80\x80\x04",
										 "\xff\xff\xff\xff\x0f",
										 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
										 "\xf0\x9f\x98\x80",
										 NULL};

static int
fuzz_same_text(EditText a, EditText b)
{
	return (a.data == NULL) == (b.data == NULL) && a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static void
fuzz_write_back(const Edit *edit)
{
	uint8_t *bytes = malloc(EDIT_BATCH_HEAD_MAX + edit_size_bound(edit));
	EditBatch batch = {1, 2, 1};
	EditWriter writer;
	EditReader reader;
	Edit again;

	edit_write_batch(&writer, bytes, &batch);
	edit_write(&writer, edit);
	edit_reader_init(&reader, bytes, (size_t) (writer.pos - bytes));
	if (edit_read_batch(&reader, &batch) != EDIT_OK || edit_read(&reader, &again) != EDIT_OK ||
		again.kind != edit->kind || again.uid != edit->uid || again.row != edit->row || again.col != edit->col ||
		!fuzz_same_text(again.content, edit->content) || !fuzz_same_text(again.style, edit->style) ||
		!fuzz_same_text(again.old, edit->old))
		abort();
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, size);
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		EditError error;

		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			size_t chars;

			utf8_check(edit.content.data, edit.content.len, &chars);
			fuzz_write_back(&edit);
		}
		if (error != EDIT_END)
			break;
	}
	return 0;
}
