/*
 * whole_sheet.h - answers of protocol v1 that hold every cell of a sheet: /getsheet and /getsheetchkp; see
 * whole_sheet.c.
 */
#ifndef WHOLE_SHEET_H
#define WHOLE_SHEET_H

#include "http/request/request.h"

struct WholeSheet;

/*
 * Answers request->sheet_id, as of now, or as of its version. request->data: the answer's object as far as the caller
 * has it; without a closing brace. Whether the account may see the sheet is the caller's to know.
 */
extern void whole_sheet_answer(Request *request, int64_t version);
extern void whole_sheet_free(struct WholeSheet *sheet); /* NULL: nothing */

#endif
