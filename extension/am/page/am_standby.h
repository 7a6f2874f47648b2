/* am_standby.h - what differs on a standby; see am_standby.c. */
#ifndef AM_STANDBY_H
#define AM_STANDBY_H

#include "am/page/am_row.h"

/* How rows are read from a page that is pinned and locked. */
extern AmSource am_standby_source(Buffer buffer);
/* Unlocks the page for further reading. In recovery it is copied to *copy, which is allocated if NULL, and unpinned. */
extern AmSource am_standby_unlock(Buffer buffer, Page *copy, MemoryContext context);

/* Cancels readers of standbys that do not see this transaction and all before it. */
extern void am_standby_conflict(Relation rel, TransactionId newest);

#endif
