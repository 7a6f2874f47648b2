/*
 * structure.h - inserting and deleting rows and columns; see structure.c.
 */
#ifndef STRUCTURE_H
#define STRUCTURE_H

#include "journal/write/append.h"

/*
 * Appends a structure edit, after edits that empty the cells of the lines that it deletes. The edit has been checked
 * (edit_lines); the call tells who appends it, its own edits are not looked at. Adds to *result.
 */
extern void structure_append(WriterSheet *ws, const Edit *edit, const AppendCall *call, AppendResult *result);
/* What two appends of a call have done together. */
extern void structure_add_result(AppendResult *sum, const AppendResult *next);

#endif
