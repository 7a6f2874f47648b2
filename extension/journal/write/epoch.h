/* epoch.h - ownership of sheets by gateways; see epoch.c. */
#ifndef EPOCH_H
#define EPOCH_H

#include "journal/write/writer.h"

/* SF001 for an epoch below the highest known one; stores a higher one. 0: none. */
extern void epoch_check(WriterSheet *ws, int64 epoch, const char *holder);
/* The ends of a transaction that may have reset the epochs of all sheets, for edit_life.c. */
extern void epoch_end_transaction(bool commit);
extern void epoch_refuse_prepare(void);

#endif
