/* a1.h - A1 notation: "B7", "$B$7", "A1:C10", "B:B", "3:5" to 0-based rows and columns, and back. */
#ifndef SHEET_A1_H
#define SHEET_A1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct A1Range
{
	uint32_t row0, col0, row1, col1; /* inclusive, 0-based; row0 <= row1, col0 <= col1 */
} A1Range;

#define A1_MAX 32 /* bytes that a1_format_cell can write, with the final NUL */

/* A single cell. False when it is not one or lies outside the limits of sheets. Case-insensitive, $ ignored. */
extern bool a1_parse_cell(const char *text, size_t len, uint32_t *row, uint32_t *col);
/* A cell, a rectangle (corners in any order), whole columns or whole rows. */
extern bool a1_parse_range(const char *text, size_t len, A1Range *range);
extern void a1_format_cell(char *to, uint32_t row, uint32_t col);
extern void a1_format_column(char *to, uint32_t col);
/* As short as possible: B7, B7:C9, B:C for all rows, 3:5 for all columns; 1:16777216 for both. to: A1_RANGE_MAX bytes.
 */
#define A1_RANGE_MAX (2 * A1_MAX)
extern void a1_format_range(char *to, const A1Range *range);

#endif
