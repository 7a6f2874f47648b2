/*
 * lines.h - maps cells across insertions and deletions of rows and columns ("lines"); see lines.c. Pure C.
 */
#ifndef LINES_H
#define LINES_H

#include "common/edit_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_REMEMBERED 256 /* structure edits in a history */

/* Moves a range (row, column, last row, last column). Returns false if all of it is deleted: it is then the line that
 * is in its place, for a selection. */
extern bool lines_move_range(const LineChange *change, uint32_t rect[4]);

/* ---- an author's lines and the present ones ---- */

/* Adjacent lines. `seen`: the author knows them. `there`: they exist now. */
typedef struct LinesPart
{
	uint64_t n;
	bool seen, there;
	uint64_t seen_before, there_before; /* number of lines of either kind before it */
} LinesPart;

typedef struct LinesMap
{
	uint32_t limit;
	LinesPart *parts; /* NULL: the author knows the present lines */
	bool failed;	  /* there was no memory: it cannot be used */
	size_t count, size;
} LinesMap;

typedef struct LinesView
{
	LinesMap rows, cols;
} LinesView;

extern void lines_view_init(LinesView *view);
/* Returns whether there was no memory for some change or edit. The results since then are wrong. */
extern bool lines_view_failed(const LinesView *view);
extern void lines_view_free(LinesView *view);
/* Adds a change that the author does not know. All changes come before the author's edits. */
extern void lines_view_change(LinesView *view, const LineChange *change);
/* Maps the author's cell to the present one. Returns false if it is deleted. */
extern bool lines_view_find(const LinesView *view, uint32_t *row, uint32_t *col);

typedef void (*LinesEmit)(void *arg, const Edit *edit);
/* Emits the author's next edit as none, one or several edits of present cells. References of formulas are rewritten; an
 * edit whose formula would become too long is dropped. */
extern void lines_transform(LinesView *view, const Edit *edit, LinesEmit emit, void *arg);

/* Calls touch for the cells that the author's next edit touches (a property touches none), as they were before the
 * author's first. touch returns false to stop; so does lines_trace() then. */
typedef bool (*LinesTouch)(void *arg, const uint32_t rect[4]);
extern bool lines_trace(LinesView *view, const Edit *edit, LinesTouch touch, void *arg);

/* ---- the history of a sheet ---- */

typedef struct LinesEntry
{
	int64_t seq; /* of its batch */
	LineChange change;
} LinesEntry;

typedef struct LinesHistory
{
	int64_t floor; /* the history is complete above this seq */
	LinesEntry *entries;
	size_t count, size;
} LinesHistory;

/* Returns false when there is no memory; the change is not added. */
extern bool lines_history_add(LinesHistory *history, const LineChange *change, int64_t seq);
/* Adds older changes, above `floor` and up to the history's floor, which becomes `floor` if all of them fit. Returns
 * false when there is no memory. */
extern bool lines_history_add_older(LinesHistory *history, const LinesEntry *entries, size_t count, int64_t floor);
/* Returns whether there are changes above this seq. */
extern bool lines_history_changed_since(const LinesHistory *history, int64_t seq);
/* Makes the view of an author who knows the sheet at this seq, which is not below the history's floor. */
extern void lines_view_since(LinesView *view, const LinesHistory *history, int64_t seq);
extern void lines_history_free(LinesHistory *history);

#endif
