/* cells.h - references, lists of cells that are read from the journal, and edits of cells. */
#ifndef CELLS_H
#define CELLS_H

#include "postgres.h"
#include "compat.h"
#include "common/a1.h"
#include "fmgr.h"
#include "journal/journal.h"

typedef struct Cell
{
	uint32 row, col;
	uint32 content_len, style_len;
	char *content; /* bytes of a value of type text, after its varlena header; not terminated */
	char *style;   /* likewise */
} Cell;

/* The value of a formula, or of a cell that an array fills. */
typedef struct CellValue
{
	char *text; /* as Cell.content; NULL: none */
	uint32 len;
} CellValue;

/* Cells in reading order: by row, then by column. */
typedef struct CellList
{
	Cell *cells;
	Size count, room;
	JournalView view;
	CellValue *values;	   /* of each cell; NULL: none has one (cell_values.c) */
	int64 computed;		   /* the state to which the values belong */
	LineMaps *maps;		   /* of the sheet, for the values */
	bool no_texts;		   /* contents and styles are not read */
	MemoryContext context; /* of the cells */
	char *free, *end;	   /* room for texts */
	Size block;			   /* bytes of the next block of it */
} CellList;

/* The value of type text of a content or a style. Not a copy. */
static inline Datum
cells_text(char *bytes, uint32 len)
{
	return PointerGetDatum(bytes - (len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX ? VARHDRSZ_SHORT : VARHDRSZ));
}

/* An empty one. */
extern CellList *cells_make_list(void);
/* rect NULL: all cells. fresh: see journal_read(). */
extern CellList *cells_read(int64 sheet_id, const uint32 rect[4], bool fresh);
/* Not fresh. Without texts, contents and styles are empty. */
extern CellList *cells_read_rect(int64 sheet_id, const uint32 rect[4], bool texts);
/* With the values of formulas. Cells that arrays fill are in the list, too, without a content. */
extern CellList *cells_read_values(int64 sheet_id, const uint32 rect[4], bool fresh);
/* No cells: the maps of the sheet, NULL for the identity, and its seq and size. */
extern LineMaps *cells_read_maps(int64 sheet_id, JournalView *view);
extern CellList *cells_read_version(int64 sheet_id, int64 version_id, const uint32 rect[4]);
extern CellList *cells_read_past(int64 sheet_id, TimestampTz at, const uint32 rect[4]);
/* The row below the last content. fresh: see journal_read(). */
extern uint32 cells_next_row(int64 sheet_id, bool fresh);

/* Bytes of a text in the list, behind room for a varlena header, as cells_text() expects them. */
extern char *cells_put_text(CellList *list, const char *bytes, uint32 len);

/* ---- what cells show (cell_values.c) ---- */

/* A content or a value, and its form. */
typedef struct CellShown
{
	const char *text;
	uint32 len;
	bool error; /* a value such as #DIV/0! */
} CellShown;

/* The value of a formula that was not computed yet. */
#define CELLS_BUSY "#BUSY!"

/* Adds the stored values to a list of the rectangle, whose maps are known. */
extern void cells_add_values(CellList *list, int64 sheet_id, const uint32 rect[4], bool fresh);
/* In the form of a content: the value of a formula, CELLS_BUSY if there is none; the content of others. An empty text
 * that a formula has made is empty here. */
extern CellShown cells_value_content(const CellList *list, Size i);
/* The same without the apostrophe that makes it a text: '12 and '=A1 as 12 and =A1. */
extern CellShown cells_shown(const CellList *list, Size i);
/* Whether it has a value that is not that of the list's state. */
extern bool cells_is_stale(const CellList *list, Size i);

/* References. 22023: not a reference. */
extern void cells_parse_ref(const char *ref, uint32 *row, uint32 *col);
extern void cells_parse_range(Datum ref, uint32 rect[4]);					   /* of type text */
extern Datum cells_a1(uint32 row, uint32 col);								   /* the name of a cell, of type text */
extern bool cells_arg_range(FunctionCallInfo fcinfo, int arg, uint32 rect[4]); /* false: null, that is all */

/* 54000: outside the limits of a sheet; 22023: negative. */
extern void cells_check_place(int64 row, int64 col);
/* The edit that sets a cell. 54000: the content is too long. */
extern Edit cells_edit(uint64 uid, uint32 row, uint32 col, const char *content, Size len);

/* cells_scan.c. Called by _PG_init. */
extern void cells_scan_init(void);

#endif
