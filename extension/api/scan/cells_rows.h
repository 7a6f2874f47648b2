/*
 * cells_rows.h - functions whose rows are made of cells: sheet.range, sheet.at and sheet.read_cells.
 *
 * All rows of a call are of one state of the sheet: they are read before the first one is returned. Queries mostly get
 * the scan of cells_plan.c; a plain call goes the same way.
 */
#ifndef CELLS_ROWS_H
#define CELLS_ROWS_H

#include "postgres.h"
#include "api/scan/call.h"

#define CELLS_MAX_ARGS 6

/* What a caller wants of the rows. */
typedef struct CellsWanted
{
	CallRange row, col; /* of the cells */
	uint32 columns;		/* bit n: the column n, from 1 */
} CellsWanted;

typedef struct CellsFunction
{
	const char *source;				  /* its name in C */
	const char *args[CELLS_MAX_ARGS]; /* their names, shown by EXPLAIN */
	int ncolumns;
	bool places; /* the first columns are the place of a cell, and the rows are in their order */
	/* Checks arguments and permission, and reads. The rows live in the current memory context. */
	void *(*read)(const NullableDatum *args, const CellsWanted *wanted);
	Size (*count)(const void *rows);
	/* A value that was wanted; it is made in the current memory context, or points into the rows. */
	Datum (*value)(const void *rows, Size row, int column, bool *isnull);
} CellsFunction;

#define CELLS_FUNCTIONS 4
extern const CellsFunction cells_functions[CELLS_FUNCTIONS];

/* Columns of sheet.range and sheet.at. */
enum
{
	CELLS_ROW = 1,
	CELLS_COL,
	CELLS_A1,
	CELLS_CONTENT,
	CELLS_STYLE
};

extern int cells_function_nargs(const CellsFunction *function);
/* All rows and columns. */
extern void cells_wanted_init(CellsWanted *wanted);

/* ---- cells_plan.c, cells_scan.c ---- */
/* From _PG_init. */
extern void cells_plan_init(void);
extern const CustomScanMethods cells_scan_methods;
/* A scan's private list: these, then column and strategy of each condition. */
enum
{
	CELLS_PRIVATE_OID, /* of the function */
	CELLS_PRIVATE_FUNCTION,
	CELLS_PRIVATE_CONDS
};

#endif
