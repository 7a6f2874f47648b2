/* model.c - see model.h. */
#include "model.h"

#include "common/edit_codec.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

#define UID 1

/* ---- digests ---- */

static uint64_t
cell_hash(int32_t row, int32_t col, const char *content, size_t len)
{
	uint64_t x = ((uint64_t) row << 32 | (uint32_t) col) * 0x9E3779B97F4A7C15u + len;
	uint64_t words[2] = {0};

	if (len > sizeof(words))
		fail("a cell has a text of %zu bytes", len);
	memcpy(words, content, len);
	x = (x ^ words[0]) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 32 ^ words[1]) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

void
answer_add(Answer *answer, int32_t row, int32_t col, const char *content, size_t len)
{
	answer->cells++;
	answer->digest += cell_hash(row, col, content, len);
}

void
answer_check(Answer found, Answer expected, const char *what, int64_t sheet_id)
{
	if (found.cells != expected.cells)
		fail("%s of sheet %ld: %ld cells instead of %ld", what, (long) sheet_id, (long) found.cells,
			 (long) expected.cells);
	if (found.digest != expected.digest)
		fail("%s of sheet %ld: the cells are not those that were written", what, (long) sheet_id);
}

/* ---- edits ---- */

Model *
model_create(int64_t sheet_id, int32_t rows, int32_t cols, uint64_t seed)
{
	Model *model = allocate(sizeof(*model));

	model->sheet_id = sheet_id;
	model->last_seq = 1;
	model->rows = rows;
	model->cols = cols;
	model->random = seed * 0x9E3779B97F4A7C15u;
	model->cells = allocate((size_t) rows * cols * sizeof(Text));
	return model;
}

void
model_free(Model *model)
{
	free(model->cells);
	free(model->sums);
	free(model);
}

/* Another text than before, and never the empty one, so that the sheet stays dense. */
static void
model_set(Model *model, EditWriter *writer, int64_t place)
{
	Text *cell = &model->cells[place], before = *cell;
	int32_t row = place / model->cols, col = place % model->cols;
	Edit edit = {.kind = EDIT_SET, .uid = UID, .row = row, .col = col};

	if (before.len > 0)
	{
		model->all.cells--;
		model->all.digest -= cell_hash(row, col, before.data, before.len);
	}
	do
		text_make(cell, &model->random);
	while (cell->len == 0 || memcmp(cell, &before, sizeof(before)) == 0);
	answer_add(&model->all, row, col, cell->data, cell->len);
	edit.content = (EditText){cell->data, cell->len};
	edit_write(writer, &edit);
	model->last_seq++;
}

int
model_fill(Model *model, uint8_t *to, size_t *len)
{
	int64_t left = (int64_t) model->rows * model->cols - model->filled;
	EditBatch batch = {.count = left < MODEL_MAX_EDITS ? left : MODEL_MAX_EDITS};
	EditWriter writer;

	edit_write_batch(&writer, to, &batch);
	for (uint32_t i = 0; i < batch.count; i++)
		model_set(model, &writer, model->filled++);
	*len = writer.pos - to;
	return batch.count;
}

void
model_edit(Model *model, int count, uint8_t *to, size_t *len)
{
	EditBatch batch = {.count = count};
	EditWriter writer;

	edit_write_batch(&writer, to, &batch);
	for (int i = 0; i < count; i++)
		model_set(model, &writer, random_next(&model->random) % ((uint64_t) model->rows * model->cols));
	*len = writer.pos - to;
}

/* ---- windows ---- */

static uint64_t *
model_sum(const Model *model, int32_t rows, int32_t cols)
{
	return &model->sums[(int64_t) rows * (model->cols + 1) + cols];
}

void
model_index(Model *model)
{
	model->sums = allocate((size_t) (model->rows + 1) * (model->cols + 1) * sizeof(uint64_t));
	for (int32_t row = 0; row < model->rows; row++)
	{
		uint64_t line = 0;

		for (int32_t col = 0; col < model->cols; col++)
		{
			const Text *cell = &model->cells[(int64_t) row * model->cols + col];

			line += cell_hash(row, col, cell->data, cell->len);
			*model_sum(model, row + 1, col + 1) = *model_sum(model, row, col + 1) + line;
		}
	}
}

Window
model_whole(const Model *model)
{
	return (Window){0, 0, model->rows - 1, model->cols - 1};
}

Window
model_random_window(const Model *model, int32_t rows, int32_t cols, uint64_t *random)
{
	int32_t row = random_next(random) % (model->rows - rows + 1);
	int32_t col = random_next(random) % (model->cols - cols + 1);

	return (Window){row, col, row + rows - 1, col + cols - 1};
}

Answer
model_answer(const Model *model, Window window)
{
	Answer answer = {.cells = (int64_t) (window.row1 - window.row0 + 1) * (window.col1 - window.col0 + 1)};

	answer.digest = *model_sum(model, window.row1 + 1, window.col1 + 1) -
					*model_sum(model, window.row0, window.col1 + 1) - *model_sum(model, window.row1 + 1, window.col0) +
					*model_sum(model, window.row0, window.col0);
	return answer;
}
