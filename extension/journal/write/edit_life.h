/* edit_life.h - the life of an edit; see edit_life.c. */
#ifndef EDIT_LIFE_H
#define EDIT_LIFE_H

#include "journal/write/append.h"

/* Registers the callbacks for the ends of transactions. From _PG_init. */
extern void edit_life_init(void);
/* Steps 4 to 6 for one batch of at most SHEET_MAX_BATCH_EDITS checked edits. A structure edit is a batch of its own. */
extern void edit_life_append(WriterSheet *ws, const AppendCall *call, AppendResult *result);

/* The same for a part of a call: adds what it appends to *result, which begins as zeros. */
extern void edit_life_append_part(WriterSheet *ws, const AppendCall *call, Edit *edits, uint32 nedits,
								  AppendResult *result);

#endif
