/* cells.h - what the functions on cells share: references, cells read from the journal, edits gathered for it. */
#ifndef CELLS_H
#define CELLS_H

#include "postgres.h"
#include "a1.h"
#include "fmgr.h"
#include "journal.h"
#include "lib/stringinfo.h"

typedef struct Cell
{
	uint32 row, col;
	char *content; /* not terminated */
	uint32 content_len;
	char *style;
	uint32 style_len;
} Cell;

/* Cells in reading order: by row, then by column. */
typedef struct CellList
{
	Cell *cells;
	Size count, room;
	JournalView view;
} CellList;

/* rect NULL: all. fresh as in journal_read(). */
extern CellList *cells_read(int64 sheet_id, const uint32 rect[4], bool fresh);
extern CellList *cells_read_version(int64 sheet_id, int64 cid);

/* References; 22023 for a bad one. */
extern void cells_parse_ref(const char *ref, uint32 *row, uint32 *col);
extern bool cells_arg_range(FunctionCallInfo fcinfo, int arg, uint32 rect[4]); /* false: null, that is all */

/* Edits that are gathered and applied, in batches within the limits. */
typedef struct CellWriter
{
	int64 sheet_id;
	uint64 uid;
	StringInfoData body; /* edits without their batch's header */
	EditWriter writer;
	uint32 count;
	int64 last_seq;
} CellWriter;

extern void cells_write_begin(CellWriter *writer, int64 sheet_id, uint64 uid);
extern void cells_write(CellWriter *writer, EditKind kind, uint32 row, uint32 col, const char *content, Size len);
extern int64 cells_write_end(CellWriter *writer); /* the last seq, of the sheet when nothing changed */
/* 54000 outside the limits of sheets, 22023 when negative. */
extern void cells_check_place(int64 row, int64 col);

/* sheets_api.c: sheet.create(name, rows, cols, link_role, as_uid), also called by the CSV import. */
extern PGDLLEXPORT Datum sheet_create(PG_FUNCTION_ARGS);

#endif
