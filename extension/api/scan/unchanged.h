/* unchanged.h - the precondition if_seq of SQL functions; see unchanged.c. */
#ifndef API_UNCHANGED_H
#define API_UNCHANGED_H

#include "postgres.h"
#include "journal/write/writer.h"

/* Raises SM001 unless the cells of the edits have the contents that they had at the seq; with `any`, unless the sheet
 * has. Rows or columns that have moved since change all cells. Caller must hold the sheet lock. */
extern void unchanged_require(const WriterSheet *ws, int64 since, const Edit *edits, uint32 n, bool any);
/* Raises SM001 if rows or columns have moved since the seq, or may have. Takes the sheet lock. */
extern void unchanged_require_places(int64 sheet_id, int64 since);

#endif
