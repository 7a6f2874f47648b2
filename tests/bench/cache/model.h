/*
 * model.h - a sheet as the benchmark knows it, against which every answer is checked.
 *
 * The digest of some cells is the sum of a hash of each (place and text), in whatever order they come.
 */
#ifndef MODEL_H
#define MODEL_H

#include "text.h"

#include <stddef.h>
#include <stdint.h>

#define MODEL_MAX_EDITS 1000 /* of a batch */
#define MODEL_MAX_BYTES (32 + MODEL_MAX_EDITS * (64 + TEXT_MAX))

typedef struct Window
{
	int32_t row0, col0, row1, col1; /* inclusive */
} Window;

typedef struct Answer
{
	int64_t cells;
	uint64_t digest;
} Answer;

typedef struct Model
{
	int64_t sheet_id;
	int64_t last_seq;
	int32_t rows, cols;
	uint64_t random;
	int64_t filled; /* cells, from the first one row by row */
	Answer all;
	Text *cells;
	uint64_t *sums; /* digests of the rectangles from the first cell, when model_index() has been called */
} Model;

/* An empty sheet; it has one edit, which gives its size. */
extern Model *model_create(int64_t sheet_id, int32_t rows, int32_t cols, uint64_t seed);
extern void model_free(Model *model);

/* Batches for sheet.apply(), taken into the model: the next cells that are empty (0 at the end); random ones. */
extern int model_fill(Model *model, uint8_t *to, size_t *len);
extern void model_edit(Model *model, int count, uint8_t *to, size_t *len);

/* From here on no more edits. */
extern void model_index(Model *model);
extern Window model_whole(const Model *model);
extern Window model_random_window(const Model *model, int32_t rows, int32_t cols, uint64_t *random);
/* What is in the window of a full sheet that has its index. */
extern Answer model_answer(const Model *model, Window window);

extern void answer_add(Answer *answer, int32_t row, int32_t col, const char *content, size_t len);
/* Ends the program when the answer is another. */
extern void answer_check(Answer found, Answer expected, const char *what, int64_t sheet_id);

#endif
