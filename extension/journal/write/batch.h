/* batch.h - a caller's batch of edits: decoded and checked; see batch.c. */
#ifndef BATCH_H
#define BATCH_H

#include "journal/journal.h"
#include "journal/write/writer.h"

/* 54000 for a batch that is too long. */
extern void batch_check_size(Size len);
/* Checks the edits, and copies their texts, which then live as long as the (sub)transaction. Returns the copy. */
extern char *batch_adopt(Edit *edits, uint32 nedits);
/* Decodes and checks all edits. Their texts point into the bytes; the array is in writer_scratch, or NULL. */
extern Edit *batch_decode(const void *bytes, Size len, uint32 *nedits);
/*
 * Sets what the caller has not seen (result->missed), and returns true if this batch is part of it. nedits: of the
 * batch. 22023, SR001 or SR002 if the batch cannot be applied to the present state.
 */
extern bool batch_look_back(const JournalApply *call, WriterSheet *ws, uint32 nedits, JournalApplied *result);

#endif
