/*
 * formula_shift.h - rewrites the references of a formula when rows or columns are inserted or deleted. Pure C.
 *
 * A formula is a content that begins with "=". Its references are cells (A1), ranges (A1:B2), whole columns (B:D) and
 * whole rows (3:5), each with or without $, in either case, within the limits of sheets. They are rewritten in place:
 * the rest of the text, spaces, $ and letters' case stay. A reference of which nothing is left becomes #REF!. All
 * rows (columns) of sheets stay all.
 *
 * Not references: texts in double quotes, names, numbers, names before "(", array constants in braces, references to
 * tables in brackets, the word LOG10 (Univer takes it for the function), and references that a sheet's name qualifies
 * (Sheet2!A1, 'a b'!A1:B2): a sheet knows no name that formulas could mean it by, so these mean other sheets. A formula
 * in which a quotation mark, a bracket or a brace is not closed stays as it is.
 *
 * gateway/web/src/v2/formula.ts does the same; tests/vectors/formulas.json and random formulas hold both to it
 * (gateway/web/test/univer.formula.test.ts).
 */
#ifndef FORMULA_SHIFT_H
#define FORMULA_SHIFT_H

#include "common/edit_codec.h"

/*
 * Moves the rows (columns) first to last, first <= last. Returns false if none of them is left. Rows and columns are
 * moved independently of each other.
 */
typedef bool (*FormulaMove)(const void *arg, bool rows, uint32_t *first, uint32_t *last);

/* A FormulaMove by a LineChange. Lines that are inserted between first and last are added; what is pushed beyond the
 * end of sheets is lost. */
extern bool formula_move_lines(const void *change, bool rows, uint32_t *first, uint32_t *last);

typedef enum FormulaShift
{
	FORMULA_SAME,	 /* nothing to rewrite; `to` has no meaning */
	FORMULA_SHIFTED, /* `to` has the new text */
	FORMULA_TOO_LONG /* the new text would have more than SHEET_MAX_CHARS characters */
} FormulaShift;

static inline bool
formula_is(EditText content)
{
	return content.len > 0 && content.data[0] == '=';
}

/* Rewrites a content. to: SHEET_MAX_CONTENT_BYTES bytes. Any bytes may be given; UTF-8 stays UTF-8. */
extern FormulaShift formula_shift(EditText content, FormulaMove move, const void *arg, char *to, uint32_t *to_len);

#endif
