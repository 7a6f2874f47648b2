/* phases.h - what is measured; each phase adds its figures to the report. */
#ifndef PHASES_H
#define PHASES_H

#include "side.h"

#define LARGE_SHEETS 2
#define MAX_WRITERS	 16
#define ROUNDS		 20

typedef struct Bench
{
	const char *conninfo;
	int64_t edits;	/* into the large sheets, all together, on each side */
	double seconds; /* of a block of single edits */
	Session *monitor;
	Feed large[SIDES][LARGE_SHEETS];
	Feed small[SIDES][MAX_WRITERS];
} Bench;

/* Batches of 1000 edits: CPU, WAL and stored bytes. */
extern void append_run(Bench *bench);
/* All edits of a large sheet in their order, inside the server. */
extern void replay_run(Bench *bench);
extern void queries_run(Bench *bench);
/* Transactions of one edit: one writer, then several. */
extern void single_run(Bench *bench);

/* Bytes of the log with indexes and TOAST. */
extern int64_t stored_bytes(Bench *bench, SideName side);
extern void vacuum(Bench *bench);

#endif
