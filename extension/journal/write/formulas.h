/*
 * formulas.h - rewriting formulas after structure edits; see formulas.c.
 */
#ifndef FORMULAS_H
#define FORMULAS_H

#include "common/formula_shift.h"
#include "journal/write/writer.h"

/* A cell whose formula is rewritten, by its logical row and column. */
typedef struct FormulaCell
{
	uint32 row, col;
	EditText content; /* the new one; lives as long as the subtransaction */
} FormulaCell;

typedef struct Formulas
{
	WriterSheet *ws;
	const LineChange *changes; /* in their order */
	uint32 nchanges;
	FormulaCell *cells;
	Size count, size, done;
	char *texts[2]; /* SHEET_MAX_CONTENT_BYTES each */
} Formulas;

/* Finds the formulas that these structure edits, the last ones of the sheet, change. Allocates in the current memory
 * context. 54000 if a formula would become too long. */
extern void formulas_begin(WriterSheet *ws, const LineChange *changes, uint32 nchanges, Formulas *formulas);
/* The next edits that rewrite formulas; returns their number, 0 at the end. */
extern uint32 formulas_next(Formulas *formulas, uint64 uid, Edit *edits, uint32 most);

#endif
