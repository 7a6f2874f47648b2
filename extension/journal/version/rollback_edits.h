/*
 * rollback_edits.h - the edits of a rollback; see rollback_edits.c.
 */
#ifndef ROLLBACK_EDITS_H
#define ROLLBACK_EDITS_H

#include "journal/store/history.h"
#include "journal/write/writer.h"

/* Appends the edits that turn the present cells, and the sheet's properties, into the version's. Allocates the list in
 * the current memory context. */
extern void rollback_edits(WriterSheet *ws, const HistoryVersion *version, const Grid *present, uint64 uid,
						   int64 epoch);

#endif
