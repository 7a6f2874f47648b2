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

/* Guests of one link have one uid: the client of protocol v2 tells them apart. */
typedef struct Writer
{
	uint64_t uid;
	uint64_t client; /* 0: an account, or a guest whose client is unknown */
} Writer;

/* In a sequence of edits: the client that has made those from `first` on, up to the next run. */
typedef struct WriterRun
{
	uint32_t first;
	uint64_t client;
} WriterRun;

/* Without runs, all clients are 0. */
typedef struct WriterRuns
{
	WriterRun *runs;
	size_t count;
} WriterRuns;

/* Returns the client of edit i. *at is 0 before the first call; i does not decrease from call to call. */
extern uint64_t writer_client_at(const WriterRuns *runs, uint32_t i, size_t *at);

/* A cell that somebody has written, or, of a large batch, the range around all its cells. */
typedef struct Written
{
	int64_t seq; /* of its batch */
	Writer writer;
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
extern void writes_add(Writes *writes, EditReader reader, uint32_t count, const WriterRuns *runs, int64_t seq);
/* Returns an entry that overlaps the rectangle (row, column, last row, last column) and that another than `writer` has
 * written after seq. formulas: also a formula anywhere. NULL: there is none. seq is not below the floor. */
extern const Written *writes_find(const Writes *writes, const Writer *writer, int64_t seq, const uint32_t rect[4],
								  bool formulas);
extern void writes_free(Writes *writes);

/* Makes an entry of an edit of a cell. Returns false for other edits. */
extern bool written_of(const Edit *edit, uint64_t client, int64_t seq, Written *written);
/* Whether the entry concerns an operation of `writer`, as for writes_find(). */
extern bool written_matches(const Written *written, const Writer *writer, const uint32_t rect[4], bool formulas);

static inline bool
writer_is_same(const Writer *a, const Writer *b)
{
	return a->uid == b->uid && a->client == b->client;
}

#endif
