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

#define WRITES_REMEMBERED 256 /* entries */

/* A cell that an account has written, or, of a large batch, the range around all its cells. */
typedef struct Written
{
	int64_t seq; /* of its batch */
	uint64_t uid;
	uint32_t rect[4]; /* row, column, last row, last column */
	bool formula;	  /* or one of the cells has one */
} Written;

typedef struct Writes
{
	int64_t floor;	  /* the entries are complete above this seq */
	Written *entries; /* oldest first */
	size_t count;
} Writes;

/* Adds the edits of a published batch, in their order. Structure edits move what is remembered. */
extern void writes_add(Writes *writes, EditReader reader, uint32_t count, int64_t seq);
/* Returns an entry that overlaps the rectangle (row, column, last row, last column) and that another than uid has
 * written after seq. formulas: also a formula anywhere. NULL: there is none. seq is not below the floor. */
extern const Written *writes_find(const Writes *writes, uint64_t uid, int64_t seq, const uint32_t rect[4],
								  bool formulas);
extern void writes_free(Writes *writes);

/* Makes an entry of an edit of a cell. Returns false for other edits. */
extern bool written_of(const Edit *edit, int64_t seq, Written *written);
/* Whether the entry concerns an operation of uid, as for writes_find(). */
extern bool written_matches(const Written *written, uint64_t uid, const uint32_t rect[4], bool formulas);

#endif
