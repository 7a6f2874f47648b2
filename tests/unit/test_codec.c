/*
 * test_codec.c - the edit codec: what is written is read, every truncation is told, and no bytes whatever make the
 * reader look beyond them (each attempt reads a heap block of exactly its size, under AddressSanitizer).
 */
#include "common/edit_codec.h"
#include "common/edit_write.h"
#include "random.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* Small and large numbers alike: a random number of low bits. */
static uint64_t
random_number(int bits)
{
	return random_next() >> (63 - (random_next() >> 32) % (uint64_t) bits);
}

static bool
texts_equal(EditText a, EditText b)
{
	return (a.data == NULL) == (b.data == NULL) && a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool
edits_equal(const Edit *a, const Edit *b)
{
	return a->kind == b->kind && a->uid == b->uid && a->row == b->row && a->col == b->col &&
		   texts_equal(a->content, b->content) && texts_equal(a->style, b->style) && texts_equal(a->old, b->old);
}

/* Reads everything; how the stream ended. Touches every byte that an edit points to. */
static EditError
stream_read(const void *data, size_t len, uint32_t *edits)
{
	volatile uint8_t sink = 0;
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit edit;

	*edits = 0;
	edit_reader_init(&reader, data, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			EditText texts[] = {edit.content, edit.style, edit.old};

			for (int t = 0; t < 3; t++)
			{
				for (uint32_t i = 0; i < texts[t].len; i++)
					sink ^= (uint8_t) texts[t].data[i];
			}
			++*edits;
		}
		if (error != EDIT_END)
			return error;
	}
	return error;
}

/* Whoever asks for kinds only meets the same edits at the same places, and the same errors, but for uids, rows and
 * columns that are too large. */
static bool
stream_kinds_agree(const void *data, size_t len)
{
	EditReader reader, kinds;
	EditBatch batch;
	EditError error = EDIT_END;
	EditKind kind;
	Edit edit;

	edit_reader_init(&reader, data, len);
	while (error == EDIT_END && edit_read_batch(&reader, &batch) == EDIT_OK)
	{
		kinds = reader;
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
			if (edit_read_kind(&kinds, &kind) != EDIT_OK || kind != edit.kind || kinds.pos != reader.pos)
				return false;
		if (error != EDIT_BAD_NUMBER && edit_read_kind(&kinds, &kind) != error)
			return false;
	}
	return true;
}

static bool kinds_agree = true;

/* The same from a heap block without a byte to spare. */
static EditError
stream_read_tight(const uint8_t *data, size_t len, uint32_t *edits)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	EditError error;

	if (len > 0)
		memcpy(copy, data, len);
	error = stream_read(copy, len, edits);
	kinds_agree &= stream_kinds_agree(copy, len);
	free(copy);
	return error;
}

#define EDITS 40

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

static EditText
random_text(bool may_lack)
{
	if (may_lack && random_next() % 2 == 0)
		return (EditText){NULL, 0};
	return (EditText){letters, (uint32_t) (random_next() >> 40) % sizeof(letters)};
}

static Edit
random_edit(const Edit *before)
{
	Edit edit = {.kind = (EditKind) (1 + (random_next() >> 40) % EDIT_KIND_LAST),
				 .uid = random_number(64),
				 .row = (uint32_t) random_number(32),
				 .col = (uint32_t) random_number(32)};

	if (random_next() % 2 == 0)
		edit.uid = before->uid;
	if (random_next() % 2 == 0)
		edit.row = before->row;
	edit.content = random_text(false);
	edit.style = random_text(true);
	edit.old = random_text(true);
	return edit;
}

/* Two batches of random edits into buf; the bytes used. */
static size_t
stream_write(uint8_t *buf, EditBatch batches[2], Edit edits[2][EDITS], bool *sizes_right)
{
	uint8_t *to = buf;

	for (int b = 0; b < 2; b++)
	{
		EditWriter writer;
		Edit before = {.uid = 0, .row = 0};

		batches[b] = (EditBatch){random_number(64), random_number(64), (uint32_t) (random_next() >> 40) % (EDITS + 1)};
		edit_write_batch(&writer, to, &batches[b]);
		*sizes_right &= (size_t) (writer.pos - to) == edit_batch_head_size(&batches[b]);
		*sizes_right &= edit_batch_head_size(&batches[b]) <= EDIT_BATCH_HEAD_MAX;
		for (uint32_t i = 0; i < batches[b].count; i++)
		{
			uint8_t *start = writer.pos;

			before = edits[b][i] = random_edit(&before);
			edit_write(&writer, &edits[b][i]);
			*sizes_right &= (size_t) (writer.pos - start) <= edit_size_bound(&edits[b][i]);
		}
		to = writer.pos;
	}
	return (size_t) (to - buf);
}

static bool
stream_equals(const uint8_t *data, size_t len, const EditBatch batches[2], Edit edits[2][EDITS])
{
	EditReader reader;
	EditBatch batch;
	Edit edit;

	edit_reader_init(&reader, data, len);
	for (int b = 0; b < 2; b++)
	{
		if (edit_read_batch(&reader, &batch) != EDIT_OK || batch.first_seq != batches[b].first_seq ||
			batch.at != batches[b].at || batch.count != batches[b].count)
			return false;
		for (uint32_t i = 0; i < batch.count; i++)
		{
			if (edit_read(&reader, &edit) != EDIT_OK || !edits_equal(&edit, &edits[b][i]))
				return false;
		}
		if (edit_read(&reader, &edit) != EDIT_END)
			return false;
	}
	return edit_read_batch(&reader, &batch) == EDIT_END;
}

static void
test_round_trip(void)
{
	static uint8_t buf[1 << 16];
	EditBatch batches[2];
	Edit edits[2][EDITS];
	bool equal = true, sizes = true, told = true;

	for (int round = 0; round < 300; round++)
	{
		size_t len = stream_write(buf, batches, edits, &sizes);
		uint32_t all = batches[0].count + batches[1].count;
		size_t first_ends = 0;

		equal &= stream_equals(buf, len, batches, edits);
		kinds_agree &= stream_kinds_agree(buf, len);
		if (round >= 20)
			continue;
		/* A cut is legal only between the batches. */
		for (size_t cut = 1; cut < len; cut++)
		{
			uint32_t seen;
			EditError error = stream_read_tight(buf, cut, &seen);

			if (error == EDIT_END && first_ends == 0 && seen == batches[0].count)
				first_ends = cut;
			else
				told &= error == EDIT_TRUNCATED && seen <= all;
		}
		told &= first_ends > 0;
	}
	TAP_OK(equal, "300 random streams are read as they were written");
	TAP_OK(sizes, "no edit and no head takes more bytes than its bound");
	TAP_OK(kinds_agree, "their kinds are read alone as with everything else");
	TAP_OK(told, "every truncation inside a batch is told as one");
}

static void
test_random_bytes(void)
{
	static uint8_t buf[1 << 16];
	EditBatch batches[2];
	Edit edits[2][EDITS];
	bool sizes = true, known = true;
	uint32_t seen;

	for (int round = 0; round < 100000; round++)
	{
		size_t len = (size_t) (random_next() >> 40) % 64;

		for (size_t i = 0; i < len; i++)
			buf[i] = (uint8_t) (random_next() >> 33);
		if (len > 0 && round % 4 > 0)
			buf[0] = EDIT_CODEC_VERSION;
		known &= stream_read_tight(buf, len, &seen) <= EDIT_TOO_MANY;
	}
	TAP_OK(known, "100000 random byte strings are read or refused within their bounds");
	for (int round = 0; round < 20000; round++)
	{
		size_t len = stream_write(buf, batches, edits, &sizes);

		for (int i = 0; i < 3; i++)
			buf[(random_next() >> 33) % len] ^= (uint8_t) (1 << (random_next() >> 33) % 8);
		known &= stream_read_tight(buf, len, &seen) <= EDIT_TOO_MANY;
	}
	TAP_OK(known, "20000 streams with flipped bits as well");
	TAP_OK(kinds_agree, "kinds are read or refused alone as with everything else");
}

static EditError
read_bytes(const char *bytes, size_t len)
{
	uint32_t seen;

	return stream_read_tight((const uint8_t *) bytes, len, &seen);
}

#define READ(literal) read_bytes(literal, sizeof(literal) - 1)

static void
test_refusals(void)
{
	bool words = true;

	TAP_OK(READ("") == EDIT_END, "nothing is an empty stream");
	TAP_OK(READ("\x02\0\0\0") == EDIT_BAD_VERSION, "another version");
	TAP_OK(READ("\x01\0\0\x01\x00\0\0\0\0") == EDIT_BAD_KIND, "kind 0");
	TAP_OK(READ("\x01\0\0\x01\x0b\0\0\0\0") == EDIT_BAD_KIND, "kind 11");
	TAP_OK(READ("\x01\0\0\x01\x01\0\x80\x80\x80\x80\x10\0\0") == EDIT_BAD_NUMBER, "a row of 2^32");
	TAP_OK(READ("\x01\0\0\x01\x01\0\xff\xff\xff\xff\x0f\0\0") == EDIT_END, "a row of 2^32 - 1 is a number");
	TAP_OK(READ("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0") == EDIT_END, "2^64 - 1 is a number");
	TAP_OK(READ("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0") == EDIT_BAD_NUMBER, "2^64 is not");
	TAP_OK(READ("\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\0\0") == EDIT_BAD_NUMBER, "a number of 11 bytes");
	TAP_OK(READ("\x01\0\0\x80\x80\x04") == EDIT_TRUNCATED, "65536 edits are announced and missing");
	TAP_OK(READ("\x01\0\0\x81\x80\x04") == EDIT_TOO_MANY, "65537 edits are too many");
	TAP_OK(READ("\x01\0\0\x01\x01\0\0\0\xff\xff\xff\xff\x0f"
				"abc") == EDIT_TRUNCATED,
		   "a length of 4 GB with three bytes behind");
	for (int error = EDIT_OK; error <= EDIT_TOO_MANY; error++)
	{
		for (int other = EDIT_OK; other < error; other++)
			words &= strcmp(edit_error_text((EditError) error), edit_error_text((EditError) other)) != 0;
	}
	TAP_OK(words, "each error has words of its own");
}

/* A cell by both ways of writing; its content lies before the end of a block of its own, or of a longer one. */
static bool
cell_is_same(EditWriter *plain, EditWriter *quick, uint32_t row, uint32_t len, uint32_t more, EditText style)
{
	char *text = malloc(len + more);
	Edit edit = {
		.kind = EDIT_SET, .row = row, .col = (uint32_t) random_number(14), .content = {text, len}, .style = style};
	uint8_t *start = plain->pos;
	uint8_t *written;
	size_t bytes;
	bool same;

	memset(text, 'a' + len % 26, len);
	memset(text + len, '!', more);
	edit_write(plain, &edit);
	bytes = (size_t) (plain->pos - start);
	written = malloc(edit_cell_size_bound(len, style.len));
	quick->pos = written;
	edit_write_cell(quick, row, edit.col, edit.content, len + more, style);
	same = (size_t) (quick->pos - written) == bytes && memcmp(start, written, bytes) == 0;
	free(written);
	free(text);
	return same;
}

static void
test_cells(void)
{
	static const char style_text[] = "{\"bold\":true}";
	uint8_t *bytes = malloc(64 * 1024);
	EditBatch batch = {7, 0, 100};
	bool same = true;

	for (int round = 0; round < 200; round++)
	{
		EditWriter plain, quick;
		uint8_t head[EDIT_BATCH_HEAD_MAX];

		edit_write_batch(&plain, bytes, &batch);
		edit_write_batch(&quick, head, &batch);
		for (int i = 0; i < 100; i++)
		{
			EditText style = {i % 7 == 0 ? style_text : NULL, i % 7 == 0 ? sizeof(style_text) - 1 : 0};
			uint32_t len = i % 11 == 0 ? (uint32_t) random_number(8) : (uint32_t) (random_next() % 20);

			same &= cell_is_same(&plain, &quick, (uint32_t) random_number(2), len, 1 + random_next() % 20, style);
		}
	}
	TAP_OK(same, "cells are written as edits of theirs are, and nothing else is touched");
	free(bytes);
}

/* What a structure edit says, 0: nothing that can be. */
static uint32_t
lines_of(EditKind kind, uint32_t row, uint32_t col, const char *content)
{
	Edit edit = {.kind = kind, .row = row, .col = col, .content = {content, (uint32_t) strlen(content)}};
	LineChange change;

	return line_change_of(&edit, &change) ? change.n : 0;
}

static void
test_lines(void)
{
	char text[LINE_CHANGE_TEXT];
	bool same = true;

	for (uint32_t n = 1; n <= SHEET_MAX_ROWS; n = n * 3 + 1)
	{
		LineChange change = {.rows = true, .n = n}, back;
		Edit edit = line_change_edit(&change, 0, text);

		same &= line_change_of(&edit, &back) && memcmp(&back, &change, sizeof(change)) == 0;
	}
	TAP_OK(same, "numbers of lines come back from their text");
	TAP_OK(lines_of(EDIT_INSERT_ROWS, 0, 0, "16777216") == SHEET_MAX_ROWS &&
			   lines_of(EDIT_DELETE_COLUMNS, 0, 16383, "1") == 1,
		   "up to the end of a sheet");
	TAP_OK(lines_of(EDIT_INSERT_ROWS, 1, 0, "16777216") == 0 && lines_of(EDIT_DELETE_COLUMNS, 0, 16384, "1") == 0,
		   "not beyond it");
	TAP_OK(lines_of(EDIT_INSERT_ROWS, 0, 1, "1") == 0 && lines_of(EDIT_INSERT_COLUMNS, 1, 0, "1") == 0,
		   "there is one place");
	TAP_OK(lines_of(EDIT_INSERT_ROWS, 0, 0, "") == 0 && lines_of(EDIT_INSERT_ROWS, 0, 0, "0") == 0 &&
			   lines_of(EDIT_INSERT_ROWS, 0, 0, "07") == 0 && lines_of(EDIT_INSERT_ROWS, 0, 0, "1 ") == 0 &&
			   lines_of(EDIT_INSERT_ROWS, 0, 0, "4294967297") == 0,
		   "other texts are no numbers of lines");
}

/* What is stored is within the limits of sheets, but a rollback may name any version. */
static void
test_limits(void)
{
	Edit edit = {.kind = EDIT_SET,
				 .row = SHEET_MAX_ROWS - 1,
				 .col = SHEET_MAX_COLS - 1,
				 .content = {"", SHEET_MAX_CONTENT_BYTES},
				 .style = {"", SHEET_MAX_STYLE_BYTES}};
	Edit rollback = {.kind = EDIT_ROLLBACK, .row = SHEET_MAX_ROWS}, other;

	TAP_OK(edit_is_within_limits(&edit), "the last cell may have the longest content and style");
	other = edit;
	other.row++;
	TAP_OK(!edit_is_within_limits(&other), "no row is beyond the last one");
	other = edit;
	other.col++;
	TAP_OK(!edit_is_within_limits(&other), "no column is beyond the last one");
	other = edit;
	other.content.len++;
	TAP_OK(!edit_is_within_limits(&other), "no content is longer");
	other = edit;
	other.style.len++;
	TAP_OK(!edit_is_within_limits(&other), "no style is longer");
	TAP_OK(edit_is_within_limits(&rollback), "a rollback names a version above the number of rows");
	rollback.row = UINT32_MAX;
	TAP_OK(edit_is_within_limits(&rollback), "and any other");
}

int
main(void)
{
	test_round_trip();
	test_cells();
	test_random_bytes();
	test_refusals();
	test_lines();
	test_limits();
	return tap_done();
}
