/*
 * workload.h - the edits of the benchmark `log`: random cells of a sheet get random texts.
 *
 * Both sides get the same edits, since both make them from the same seed. An edit always changes its cell, as
 * sheet.apply() logs no others, and it knows the cell's former text, which the heap table stores and the client must
 * bring (sheet.apply() looks it up).
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "text.h"

#define WORKLOAD_ROWS  1000
#define WORKLOAD_COLS  100
#define WORKLOAD_USERS 10

typedef struct WorkloadEdit
{
	int64_t uid; /* 1 to WORKLOAD_USERS */
	int32_t row, col;
	Text old, new;
} WorkloadEdit;

/* A sheet as its edits so far have made it. */
typedef struct WorkloadSheet
{
	uint64_t random;
	Text cells[WORKLOAD_ROWS][WORKLOAD_COLS];
} WorkloadSheet;

extern WorkloadSheet *workload_create(uint64_t seed);
extern void workload_next(WorkloadSheet *sheet, WorkloadEdit *edit);

#endif
