/*
 * fuzz_edit_codec.c - whatever the bytes, the reader stays within them, and what it accepts is written and read back
 * the same.
 */
#include "common/edit_codec.h"

#include "fuzz.h"

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
	FUZZ_CHECK(edit_read_batch(&reader, &batch) == EDIT_OK && edit_read(&reader, &again) == EDIT_OK);
	FUZZ_CHECK(again.kind == edit->kind && again.uid == edit->uid && again.row == edit->row && again.col == edit->col);
	FUZZ_CHECK(fuzz_same_text(again.content, edit->content) && fuzz_same_text(again.style, edit->style) &&
			   fuzz_same_text(again.old, edit->old));
	free(bytes);
}

/* Passing over an edit ends where reading it ends. */
static void
fuzz_pass_over(EditReader passing, const EditReader *behind, const Edit *edit)
{
	EditKind kind;

	FUZZ_CHECK(edit_read_kind(&passing, &kind) == EDIT_OK && kind == edit->kind && passing.pos == behind->pos);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	EditReader reader, before;
	EditError error;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, exact, size);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		for (before = reader; (error = edit_read(&reader, &edit)) == EDIT_OK; before = reader)
		{
			fuzz_pass_over(before, &reader, &edit);
			fuzz_write_back(&edit);
		}
		if (error != EDIT_END)
			break;
	}
	FUZZ_CHECK(edit_error_text(error)[0] != '\0');
	free(exact);
	return 0;
}
