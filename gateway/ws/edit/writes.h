/*
 * writes.h - who has written which cells lately, for operations that overwrite nobody; see writes.c. Pure C.
 */
#ifndef WRITES_H
#define WRITES_H

#include "common/edit_codec.h"
#include "ws/edit/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITES_REMEMBERED 256 /* cells */

typedef struct WrittenCell
{
	int64_t seq; /* of its batch */
	uint64_t uid;
	uint32_t row, col;
	bool formula;
} WrittenCell;

typedef struct Writes
{
	int64_t floor;		/* the entries are complete above this seq */
	WrittenCell *cells; /* oldest first */
	size_t count;
} Writes;

/* Adds the edits of a published batch, in their order. Structure edits move what is remembered. */
extern void writes_add(Writes *writes, EditReader reader, uint32_t count, int64_t seq);
/* Returns a cell of the rectangle (row, column, last row, last column) that another than uid has written after seq.
 * formulas: also a formula anywhere. NULL: there is none. seq is not below the floor. */
extern const WrittenCell *writes_find(const Writes *writes, uint64_t uid, int64_t seq, const uint32_t rect[4],
									  bool formulas);
extern void writes_free(Writes *writes);

/* Makes an entry of an edit of a cell. Returns false for other edits. */
extern bool written_cell_of(const Edit *edit, int64_t seq, WrittenCell *cell);
/* Whether the cell concerns an operation of uid, as for writes_find(). */
extern bool written_cell_matches(const WrittenCell *cell, uint64_t uid, const uint32_t rect[4], bool formulas);

#endif
