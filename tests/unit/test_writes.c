/*
 * test_writes.c - the last writers of cells: who has written where since a seq, also after insertions and deletions.
 */
#include "ws/edit/writes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

/* Edits in the codec's form. */
typedef struct Edits
{
	uint8_t bytes[65536];
	EditWriter writer;
	uint32_t count;
	WriterRuns runs;
} Edits;

static void
put(Edits *edits, const Edit *edit)
{
	if (edits->count++ == 0)
		edit_write_edits(&edits->writer, edits->bytes);
	edit_write(&edits->writer, edit);
}

static void
set(Edits *edits, uint64_t uid, uint32_t row, uint32_t col, const char *content)
{
	put(edits,
		&(Edit){
			.kind = EDIT_SET, .uid = uid, .row = row, .col = col, .content = {content, (uint32_t) strlen(content)}});
}

static void
add(Writes *writes, Edits *edits, int64_t seq)
{
	EditReader reader;

	edit_reader_init_edits(&reader, edits->bytes, (size_t) (edits->writer.pos - edits->bytes), edits->count);
	writes_add(writes, reader, edits->count, &edits->runs, seq);
	memset(edits, 0, sizeof(*edits));
}

static const Writer first_user = {1, 0};

/* Whether another than user 1 has written the cell since. */
static bool
written(const Writes *writes, int64_t seq, uint32_t row, uint32_t col)
{
	return writes_find(writes, &first_user, seq, (const uint32_t[]){row, col, row, col}, false) != NULL;
}

/* Whether another than this client of the guests has written the cell. */
static bool
by_another(const Writes *writes, uint64_t client, uint32_t row)
{
	const Writer writer = {99, client};

	return writes_find(writes, &writer, 0, (const uint32_t[]){row, 0, row, 0}, false) != NULL;
}

/* Guests of one link have one uid. */
static void
test_guests(void)
{
	static Edits edits;
	WriterRun runs[] = {{1, 7}, {2, 7}, {2, 8}, {3, 0}};
	Writes writes = {0};
	size_t at = 0;

	for (uint32_t row = 0; row < 4; row++)
		set(&edits, row == 3 ? 1 : 99, row, 0, "x");
	edits.runs = (WriterRuns){runs, 4};
	add(&writes, &edits, 1);
	TAP_OK(by_another(&writes, 7, 0) && by_another(&writes, 8, 0), "a guest whose client is unknown is another one");
	TAP_OK(!by_another(&writes, 7, 1) && by_another(&writes, 8, 1) && by_another(&writes, 7, 2) &&
			   !by_another(&writes, 8, 2),
		   "each client of the guests is another one");
	TAP_OK(by_another(&writes, 7, 3), "an account is another one");
	TAP_OK(writer_client_at(&(WriterRuns){NULL, 0}, 5, &at) == 0, "without runs there is no client");

	for (uint32_t row = 0; row < 100; row++)
		set(&edits, 99, 200 + row, 0, "x");
	runs[0] = (WriterRun){0, 7};
	runs[1] = (WriterRun){50, 8};
	edits.runs = (WriterRuns){runs, 2};
	add(&writes, &edits, 2);
	TAP_OK(!by_another(&writes, 7, 210) && by_another(&writes, 8, 210) && by_another(&writes, 7, 260) &&
			   !by_another(&writes, 8, 260),
		   "also in a large batch");
	writes_free(&writes);
}

int
main(void)
{
	static Edits edits;
	Writes writes = {.floor = 5};

	set(&edits, 1, 0, 0, "own");
	set(&edits, 2, 4, 1, "theirs");
	add(&writes, &edits, 7);
	TAP_OK(!written(&writes, 5, 0, 0) && written(&writes, 5, 4, 1), "own cells do not count, those of others do");
	TAP_OK(!written(&writes, 7, 4, 1), "what was known does not count");

	put(&edits, &(Edit){.kind = EDIT_INSERT_ROWS, .uid = 2, .row = 1, .content = {"3", 1}});
	set(&edits, 2, 1, 0, "=A1");
	add(&writes, &edits, 9);
	TAP_OK(written(&writes, 5, 7, 1) && !written(&writes, 5, 4, 1), "cells move with their rows");
	TAP_OK(writes_find(&writes, &first_user, 7, (const uint32_t[]){90, 0, 99, 9}, false) == NULL &&
			   writes_find(&writes, &first_user, 7, (const uint32_t[]){90, 0, 99, 9}, true) != NULL,
		   "formulas count everywhere, if they are asked for");
	put(&edits, &(Edit){.kind = EDIT_DELETE_ROWS, .uid = 2, .row = 7, .content = {"1", 1}});
	add(&writes, &edits, 10);
	TAP_OK(!written(&writes, 5, 7, 1), "a deleted cell does not count");

	for (int i = 0; i < WRITES_REMEMBERED; i++)
	{
		set(&edits, 2, (uint32_t) i, 5, "x");
		add(&writes, &edits, 11 + i);
	}
	TAP_OK(writes.floor > 5 && writes.floor < 11 + WRITES_REMEMBERED - 1,
		   "the oldest are forgotten, and the floor says so");
	TAP_OK(written(&writes, writes.floor, WRITES_REMEMBERED - 1, 5) && !written(&writes, writes.floor, 0, 5),
		   "above the floor all are known");
	for (int i = 0; i <= WRITES_REMEMBERED; i++)
		set(&edits, i % 2 ? 1 : 2, i % 2 ? 400 : 10 + (uint32_t) i, 7, i == 4 ? "=A1" : "x");
	add(&writes, &edits, 999);
	TAP_OK(writes.floor < 990 && written(&writes, 998, 10, 7) && written(&writes, 998, 50, 7) &&
			   !written(&writes, 998, 9, 7) && !written(&writes, 998, 50, 8) && !written(&writes, 998, 400, 7),
		   "of a large batch, the range of each author is remembered");
	TAP_OK(writes_find(&writes, &first_user, 998, (const uint32_t[]){0, 0, 0, 0}, true) != NULL,
		   "and whether it has a formula");
	for (int i = 0; i <= WRITES_REMEMBERED; i++)
		set(&edits, 2 + (uint64_t) (i % 20), 0, (uint32_t) i, "x");
	add(&writes, &edits, 1000);
	TAP_OK(writes.floor == 1000 && writes.count == 0, "a large batch of many authors is not remembered");
	for (int i = 0; i <= WRITES_REMEMBERED; i++)
		put(&edits, &(Edit){.kind = EDIT_INSERT_ROWS, .uid = 2, .row = 1, .content = {"1", 1}});
	add(&writes, &edits, 1300);
	TAP_OK(writes.floor == 1300 && writes.count == 0, "nor is one with structure edits");

	test_guests();
	writes_free(&writes);
	return tap_done();
}
