/*
 * v1_encode.h - messages of protocol v1 from the gateway to clients.
 */
#ifndef V1_ENCODE_H
#define V1_ENCODE_H

#include "support/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V1_MAX_RECTANGLE 4194304 /* rows * columns: v1 sends a whole sheet at once */

/* name_json: the user's name as a JSON string. */
extern void v1_put_modify(Buf *to, uint32_t row, uint32_t col, const char *content, size_t content_len,
						  const char *info, size_t info_len, const Buf *name_json);
/* type: "acquire" or "release". */
extern void v1_put_lock(Buf *to, const char *type, uint32_t row, uint32_t col, const Buf *name_json);
extern void v1_put_refused(Buf *to, uint32_t row, uint32_t col, const char *reason, const char *content,
						   size_t content_len);

/* For clients that understand `refused`: a transaction of `holder` has held the sheet for `ms`, or holds it no more. */
extern void v1_put_held(Buf *to, bool held, const char *holder, const char *application, uint64_t ms);

/* The cells of a sheet as v1 has them, encoded piece by piece: every cell of the rectangle, row by row, without the
 * brackets; and the styles of those that have one, {"row":..,"col":..,"info":..}. */
#define V1_CONTENT_BYTES 65536
typedef struct V1Content
{
	uint32_t rows, cols;
	Buf *cells, *styles;	 /* the output */
	void (*full)(void *arg); /* empties them; called when one has more than V1_CONTENT_BYTES */
	void *arg;
	uint64_t next; /* the next cell, counted row by row; 0 at first */
	bool styled;   /* a style has been put; false at first */
} V1Content;

/* Puts cells of sheet.read_cells(). Returns false if they are malformed or not behind the last ones. */
extern bool v1_put_cells(V1Content *content, const char *cells, size_t len);
/* Puts the empty cells behind the last one. */
extern void v1_put_cells_end(V1Content *content);

#endif
