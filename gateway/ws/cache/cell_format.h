/*
 * cell_format.h - what the grid shows of a content in a number format, for published views; see cell_format.c. Pure C.
 */
#ifndef CELL_FORMAT_H
#define CELL_FORMAT_H

#include "common/edit_codec.h"
#include "support/buf.h"

#include <stdbool.h>

/* As in gateway/web/src/content.ts. */
typedef enum CellKind
{
	CELL_TEXT,
	CELL_NUMBER,
	CELL_BOOLEAN,
	CELL_DATE,
	CELL_TIME
} CellKind;

typedef struct CellValue
{
	CellKind kind;
	EditText text; /* the content, without the apostrophe that makes it a text */
	double number; /* of CELL_NUMBER; of CELL_DATE and CELL_TIME the serial number, in days */
} CellValue;

/* Reads a content, of which formulas are texts here. */
extern CellValue cell_value(EditText content);
/*
 * Appends the number in the format. Returns false, and appends nothing, if the format is one that is not known:
 * fractions, exponents, conditions, digits between other characters.
 */
extern bool cell_format_put(Buf *to, double number, const char *pattern, size_t len);

#endif
