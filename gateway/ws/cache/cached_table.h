/*
 * cached_table.h - cells as a table in one of the forms of published views, or as that of GET /v2/link/cells; see
 * cached_table.c.
 */
#ifndef CACHED_TABLE_H
#define CACHED_TABLE_H

#include "support/buf.h"
#include "ws/cache/cached_range.h"

#include <stddef.h>
#include <stdint.h>

#define TABLE_BYTES_MAX (16 * 1024 * 1024)
#define TABLE_CELLS_MAX 500000 /* that have a content or a style */
#define TABLE_HTML_MAX	100000 /* cells of a table in HTML, empty ones included */

typedef struct TableSource
{
	const char *cells; /* batches of edits */
	size_t len;
	uint32_t row, col;		/* of the first cell of the table */
	uint32_t rows, cols;	/* its size; 0: to the last cells that have a content */
	bool hide_formulas;		/* they may name cells outside */
	const char *properties; /* of the sheet (common/properties.h); read for HTML */
	size_t properties_len;
	int64_t seq;
} TableSource;

/*
 * Appends the table. RANGE_BUSY: no memory; RANGE_FAILED: the cells are damaged; RANGE_TOO_LARGE. May run on any
 * thread.
 */
extern RangeStatus cached_table_put(Buf *to, RangeForm form, const TableSource *source);

#endif
