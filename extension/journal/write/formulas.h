/*
 * formulas.h - formulas follow structure edits and renamings: those of one sheet (formulas.c), and those of the tabs
 * that refer to it by its name (tab_references.c).
 */
#ifndef FORMULAS_H
#define FORMULAS_H

#include "common/formula_shift.h"
#include "journal/write/append.h"
#include "storage/lock.h"
#include "support/tab_name.h"

/* A cell whose formula is rewritten, by its logical row and column. */
typedef struct FormulaCell
{
	uint32 row, col;
	EditText content; /* the new one; lives as long as the subtransaction */
} FormulaCell;

typedef struct Formulas
{
	WriterSheet *ws;
	FormulaChange change;
	const LineChange *changes; /* in their order; none: change.new_name is set */
	uint32 nchanges;
	FormulaCell *cells;
	Size count, size, done;
	char *texts[2]; /* SHEET_MAX_CONTENT_BYTES each */
} Formulas;

/* Finds the formulas of the sheet that these changes of it, its last ones, or of another sheet concern. change: of
 * structure edits, all but what moves. Allocates in the current memory context. 54000 if a formula would become too
 * long. */
extern void formulas_begin(WriterSheet *ws, const FormulaChange *change, const LineChange *changes, uint32 nchanges,
						   Formulas *formulas);
/* The next edits that rewrite formulas; returns their number, 0 at the end. */
extern uint32 formulas_next(Formulas *formulas, uint64 uid, Edit *edits, uint32 most);

/* ---- tabs ---- */

/* Tabs whose formulas have names of sheets, locked, for the change of a sheet. */
typedef struct TabReferences
{
	int64 sheet_id;
	int64 *tabs; /* the sheet may be among them; the transaction holds their sheet locks */
	int ntabs;
	TabName name; /* of the sheet before the change; unset without tabs */
} TabReferences;

/*
 * Before a structure edit, in place of the sheet lock: takes all locks that it needs. Returns 0, or with nowait,
 * and then it has taken none, what another transaction holds: the id of a sheet, or that of a book, negative, for the
 * book's reference lock. Allocates in the current memory context.
 */
extern int64 tab_references_lock(int64 sheet_id, bool nowait, TabReferences *tabs);
/* The tag of a book's reference lock. */
extern void tab_references_lock_tag(int64 book_id, LOCKTAG *tag);
/* After structure edits, `n` of them: appends the edits that rewrite formulas of the sheet and of the tabs. Returns
 * their number; adds those of the sheet to *result. tabs NULL: references by name stay. */
extern uint32 tab_references_follow(TabReferences *tabs, WriterSheet *ws, const AppendCall *call, uint64 uid,
									const LineChange *changes, uint32 n, AppendResult *result);
/* The sheet has a formula with a sheet's name: notes it. Caller must hold the sheet lock, and make the change visible.
 * 55P03: with nowait, if it would have to wait. */
extern void tab_references_mark(int64 sheet_id, bool nowait);

#endif
