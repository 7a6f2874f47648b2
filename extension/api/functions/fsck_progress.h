/* fsck_progress.h - how far a check of all sheets has come, for the view sheet.fsck_progress; see fsck_progress.c. */
#ifndef FSCK_PROGRESS_H
#define FSCK_PROGRESS_H

#include "journal/fsck/fsck.h"

/* Begins behind call->sheet_id. */
extern void fsck_progress_begin(const FsckCall *call);
/* The next sheet, which is checked now, into call->sheet_id. False: none. */
extern bool fsck_progress_next(FsckCall *call);
/* The sheet is done; these are the numbers of all so far. */
extern void fsck_progress_add(int64 findings, int64 repaired);
extern void fsck_progress_end(void);

#endif
