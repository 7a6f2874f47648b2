/*
 * table_html.h - cells as a table in HTML, for cached_table.c; see table_html.c.
 */
#ifndef TABLE_HTML_H
#define TABLE_HTML_H

#include "common/edit_codec.h"
#include "ws/cache/cached_table.h"

typedef struct TableCell
{
	uint32_t row, col; /* in the table */
	EditText content, style;
	bool hidden; /* the content */
} TableCell;

typedef struct Table
{
	Buf *to;
	RangeForm form;
	TableCell *cells; /* in reading order */
	size_t count, room;
	uint32_t rows, cols;
} Table;

/* The order of cells: that of reading. */
extern int table_compare_cells(const void *a, const void *b);
/* Appends the table, and what ends the page. */
extern RangeStatus table_put_html(const Table *table, const TableSource *source);

#endif
