/*
 * cached_range.h - the cells of a range as one text (GET /v2/sheets/ID/cells, GET /v2/link/cells, GET /s/KEY), cached
 * while they are current; see cached_range.c.
 */
#ifndef CACHED_RANGE_H
#define CACHED_RANGE_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the text is: the answer of GET /v2/sheets/ID/cells, or of GET /v2/link/cells, or the part of a published view
 * that has the cells. */
typedef enum RangeForm
{
	RANGE_CELLS,
	RANGE_PART,
	RANGE_CSV,
	RANGE_TSV,
	RANGE_JSON,
	RANGE_HTML
} RangeForm;

typedef struct RangeKey
{
	int64_t sheet_id;
	uint32_t row, col, to_row, to_col; /* inclusive */
	bool styles;
	bool formulas; /* RANGE_CELLS: the texts of formulas instead of their values */
	RangeForm form;
	int64_t link_id; /* not 0: the rectangle of this link, wherever it is */
} RangeKey;

/* A range at a seq. Constant while pinned. */
typedef struct RangeAnswer
{
	int pins;
	int64_t seq;
	int64_t computed; /* the values of formulas are those of this seq, at least; -1: there are none */
	uint64_t asked;	  /* the clock of cached_range.c at the question */
	uint64_t began;	  /* ns: when the question was sent ... */
	uint64_t ready;	  /* ... and when the answer was encoded */
	size_t len;
	char etag[48];
	char body[];
} RangeAnswer;

typedef enum RangeStatus
{
	RANGE_READY,
	RANGE_FAILED,	 /* the database has refused, or does not answer: see res, which may be NULL */
	RANGE_TOO_LARGE, /* more than RANGE_BYTES_MAX, or than cached_table.h permits */
	RANGE_BUSY		 /* too many questions under way, too many large answers pinned, or no memory */
} RangeStatus;

/* Bytes of a range's cells in the edit codec. */
#define RANGE_BYTES_MAX (16 * 1024 * 1024)

/* answer: only with RANGE_READY; the callee pins it to keep it. res: only with RANGE_FAILED. */
typedef void (*RangeFn)(void *arg, RangeStatus status, RangeAnswer *answer, const PGresult *res);

/* Returns the range, pinned for the caller, if it is cached and current; NULL otherwise. */
extern RangeAnswer *cached_range_find(const RangeKey *key);
/* Reads the range on behalf of an account, and calls fn, perhaps at once. Shares a read under way if that is new
 * enough. */
extern void cached_range_ask(const RangeKey *key, int64_t account, RangeFn fn, void *arg);
extern void cached_range_pin(RangeAnswer *answer);
extern void cached_range_unpin(RangeAnswer *answer); /* answer may be NULL */

/* Edits of the sheet up to seq are committed. */
extern void cached_range_committed(int64_t sheet_id, int64_t seq);
/* The sheet may have changed: answers to questions asked before now are invalid. */
extern void cached_range_invalidate(int64_t sheet_id);
/* The same for all sheets: events have been lost. */
extern void cached_range_invalidate_all(void);

/* For /metrics. */
extern void cached_range_print(Buf *buf);

#endif
