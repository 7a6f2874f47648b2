/*
 * lines.h - rows and columns that come and go: where the places that somebody names are by now; see lines.c. Pure C.
 */
#ifndef LINES_H
#define LINES_H

#include "common/edit_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_REMEMBERED 256 /* structure edits of a sheet */

/* A structure edit: n lines come in front of the one at `at`, or go from there on. */
typedef struct LinesChange
{
	bool rows;
	bool insert;
	uint32_t at;
	uint32_t n;
} LinesChange;

/* False for any other edit. */
extern bool lines_change_of(const Edit *edit, LinesChange *change);
/* The edit that makes the change; text has room for EDIT_LINES_MAX bytes and must outlive it. */
extern Edit lines_edit(const LinesChange *change, uint64_t uid, char *text);
/* How many rows (columns) a sheet has after it that had so many of them before. */
extern uint32_t lines_extent(const LinesChange *change, uint32_t extent);
/* Moves a cell along; false: it is gone. */
extern bool lines_move(const LinesChange *change, uint32_t *row, uint32_t *col);
/* Moves a selection along (row, column, last row, last column); what is left of it, at least one line. */
extern void lines_move_range(const LinesChange *change, uint32_t rect[4]);

/* ---- what an author saw, and what is there ---- */

/* Lines that lie one behind the other. An author's lines may be gone, and others may be there that he has not seen. */
typedef struct LinesPart
{
	uint64_t n;
	bool seen, there;
	uint64_t seen_before, there_before; /* lines of either kind in front of it */
} LinesPart;

typedef struct LinesAxis
{
	uint32_t limit;
	LinesPart *parts; /* NULL: the author sees what is there */
	bool failed;	  /* no memory: it is of no use any more */
	size_t count, size;
} LinesAxis;

typedef struct LinesView
{
	LinesAxis rows, cols;
} LinesView;

extern void lines_view_init(LinesView *view);
/* There was no memory for some change or edit: what came of those since is not to be used. */
extern bool lines_view_failed(const LinesView *view);
extern void lines_view_free(LinesView *view);
/* Somebody else's change that the author has not seen. Changes come before the author's edits. */
extern void lines_view_change(LinesView *view, const LinesChange *change);
/* Where the cell is that the author means; false: it is gone. */
extern bool lines_view_place(const LinesView *view, uint32_t *row, uint32_t *col);

typedef void (*LinesEmit)(void *arg, const Edit *edit);
/* The author's next edit as one for the places that are there, as several, or as none. */
extern void lines_transform(LinesView *view, const Edit *edit, LinesEmit emit, void *arg);

/* The cells that the author's next edit touches, among those that are there before his first: false to stop. */
typedef bool (*LinesTouch)(void *arg, const uint32_t rect[4]);
extern bool lines_trace(LinesView *view, const Edit *edit, LinesTouch touch, void *arg);

/* ---- what is remembered of a sheet ---- */

typedef struct LinesEntry
{
	int64_t seq; /* at which it was told */
	LinesChange change;
} LinesEntry;

typedef struct LinesMemory
{
	int64_t floor; /* all changes above this seq are here */
	LinesEntry *entries;
	size_t count, size;
} LinesMemory;

/* False: no memory, and it is not remembered. */
extern bool lines_remember(LinesMemory *memory, const LinesChange *change, int64_t seq);
/* Older changes, above `floor` and up to the memory's own, which becomes `floor` unless there is no room for all.
 * False: no memory. */
extern bool lines_remember_older(LinesMemory *memory, const LinesEntry *entries, size_t count, int64_t floor);
/* There are changes above this seq. */
extern bool lines_changed_since(const LinesMemory *memory, int64_t seq);
/* What somebody sees who knows the sheet at this seq, which is not below the memory's floor. */
extern void lines_view_since(LinesView *view, const LinesMemory *memory, int64_t seq);
extern void lines_forget(LinesMemory *memory);

#endif
