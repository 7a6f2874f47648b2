/*
 * v1_encode.h - messages of protocol v1 from the gateway to clients.
 */
#ifndef V1_ENCODE_H
#define V1_ENCODE_H

#include "buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V1_MODIFY_PARTS 160 /* of a modify: keys, brackets, quotes and numbers */

/* name_json: the user's name as a JSON string. */
extern void v1_put_modify(Buf *to, uint32_t row, uint32_t col, const char *content, size_t content_len,
						  const char *info, size_t info_len, const Buf *name_json);
/* type: "acquire" or "release". */
extern void v1_put_lock(Buf *to, const char *type, uint32_t row, uint32_t col, const Buf *name_json);
extern void v1_put_refused(Buf *to, uint32_t row, uint32_t col, const char *reason, const char *content,
						   size_t content_len);

/* For clients that understand `refused`: since `ms` a transaction of `holder` has held the sheet; or it does no more.
 */
extern void v1_put_held(Buf *to, bool held, const char *holder, const char *application, uint64_t ms);

/*
 * `"content":[...]`: every cell of the rectangle, row by row, from sheet.read_cells' bytes; the styles of those that
 * have one go to styles (may be NULL). False: the bytes do not decode.
 */
extern bool v1_put_content(Buf *to, Buf *styles, uint32_t rows, uint32_t cols, const char *cells, size_t len);

#endif
