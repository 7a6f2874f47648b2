/* small.h - very many sheets of 10 x 10 cells. */
#ifndef SMALL_H
#define SMALL_H

#include "bench.h"

#define SMALL_ROWS 10
#define SMALL_COLS 10

typedef struct SmallSheets
{
	int64_t count;
	int64_t *ids; /* any order */
	double seconds;
} SmallSheets;

extern void small_make(Bench *bench, SmallSheets *small);
/* Bytes that schema sheet has taken for them, with what they are made of, into the report. */
extern void small_report_bytes(Bench *bench, const SmallSheets *small);
/* The sheet as it was made: to be freed. */
extern Model *small_model(int64_t sheet_id);

#endif
