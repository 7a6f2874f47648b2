/* bench.h - the settings, and what is measured; each phase makes its own sheets and adds its figures to the report. */
#ifndef BENCH_H
#define BENCH_H

#include "model.h"
#include "report.h"
#include "session.h"

#define WINDOW_ROWS 20
#define WINDOW_COLS 50
#define ROUNDS		5

typedef struct Bench
{
	int64_t sheets; /* small ones, among which one is opened */
	int64_t cells;	/* of the large sheet */
	double seconds; /* of a block of reads */
	int64_t update_sheets, update_batches;
	int64_t miss_sheets, accesses;
	const char *plot; /* where the picture of the phase `miss` goes; NULL: nowhere */
	Session *monitor; /* opened anew by server_restart() */
	Model *large;	  /* without version, its log as long as it has cells; made when it is first needed */
} Bench;

/* Windows, cells and whole sheets against the heap table, and against the memory's speed. */
extern void read_run(Bench *bench);
/* Edits with caches of several sizes. */
extern void update_run(Bench *bench);
/* 80 % of the accesses on 20 % of the sheets: misses against the cache's size. */
extern void miss_run(Bench *bench);
/* Opening small and large sheets that are not in the cache. */
extern void cold_run(Bench *bench);

extern Model *bench_large(Bench *bench);

#endif
