/*
 * formula_shift.h - rewrites the references of a formula when rows or columns are inserted or deleted, or a sheet is
 * renamed. Pure C.
 *
 * A formula is a content that begins with "=". Its references are cells (A1), ranges (A1:B2), whole columns (B:D) and
 * whole rows (3:5), each with or without $, in either case, within the limits of sheets. They are rewritten in place:
 * the rest of the text, spaces, $ and letters' case stay. A reference of which nothing is left becomes #REF!. All
 * rows (columns) of sheets stay all.
 *
 * Not references: texts in double quotes, names, numbers, names before "(", array constants in braces, references to
 * tables in brackets, and the word LOG10 (Univer takes it for the function). A formula in which a quotation mark, a
 * bracket or a brace is not closed stays as it is.
 *
 * A sheet's name qualifies a reference (X!A1, 'a b'!A1:B2, X!A1:X!B2). Without quotation marks it is all the words that
 * follow each other. The caller says whether the name means the sheet that changes. Names of several sheets (A:C!A1)
 * and of other books ([B]A!A1) never do.
 *
 * gateway/web/src/v2/formula.ts does the same to references without a name; tests/vectors/formulas.json and random
 * formulas hold both to it (gateway/web/test/univer.formula.test.ts).
 */
#ifndef FORMULA_SHIFT_H
#define FORMULA_SHIFT_H

#include "common/edit_codec.h"

/*
 * Moves the rows (columns) first to last, first <= last. Returns false if none of them is left. Rows and columns are
 * moved independently of each other.
 */
typedef bool (*FormulaMove)(const void *arg, bool rows, uint32_t *first, uint32_t *last);

/* Whether a name, without quotes, means the sheet that changes. */
typedef bool (*FormulaIsName)(const void *arg, const char *name, size_t len);

#define FORMULA_NAME_MAX 2048 /* bytes; a longer name means no sheet */

/* How a sheet changes: its rows and columns move, or it is renamed, not both. */
typedef struct FormulaChange
{
	FormulaMove move; /* NULL: nothing moves */
	const void *move_arg;
	bool own;			   /* references without a name are of the sheet */
	FormulaIsName is_name; /* NULL: no name means the sheet */
	const void *name_arg;
	const char *new_name; /* in the form of formula_quote_name(); NULL: the name stays */
} FormulaChange;

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
extern FormulaShift formula_shift(EditText content, const FormulaChange *change, char *to, uint32_t *to_len);
/* Whether formula_shift() finds names of sheets in the content. False for contents that are no formulas. */
extern bool formula_has_names(EditText content);
/* Writes a sheet's name as formulas have it before "!": in quotes, unless it has ASCII letters, digits and "_" only,
 * and cannot be taken for something else. to: twice as many bytes as the name has, and 3. */
extern void formula_quote_name(const char *name, char *to);

#endif
