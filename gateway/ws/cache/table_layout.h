/*
 * table_layout.h - what properties of a sheet say about a table of its cells: sizes, what is hidden, and merges; see
 * table_layout.c.
 */
#ifndef TABLE_LAYOUT_H
#define TABLE_LAYOUT_H

#include "ws/cache/cached_table.h"

/* A row or a column. */
typedef struct TableLine
{
	uint16_t size; /* pixels; 0: as the content needs */
	bool hidden;
} TableLine;

/* Merged cells, of which some are shown. */
typedef struct TableMerge
{
	int64_t row, col; /* of the cell whose content is shown, from the table's first; may be outside of it */
	uint32_t shown_row, shown_col; /* of the first cell that is shown */
	uint32_t rows, cols;		   /* that are shown */
} TableMerge;

typedef struct TableLayout
{
	TableLine *rows, *cols;
	TableMerge *merges;
	uint32_t *owners; /* of each cell its merge, from 1 on; NULL: there are no merges */
	uint32_t width;	  /* columns of the table */
} TableLayout;

/* For a table of the size. Free the layout also when it fails: RANGE_BUSY, no memory; RANGE_FAILED, damaged properties.
 */
extern RangeStatus table_layout_read(TableLayout *layout, const TableSource *source, uint32_t rows, uint32_t cols);
extern void table_layout_free(TableLayout *layout);

/* NULL: the cell is none of a merge. */
static inline const TableMerge *
table_layout_merge(const TableLayout *layout, uint32_t row, uint32_t col)
{
	uint32_t owner = layout->owners != NULL ? layout->owners[(size_t) row * layout->width + col] : 0;

	return owner > 0 ? &layout->merges[owner - 1] : NULL;
}

#endif
