/* clients.h - which operations of protocol v2 are acknowledged; see clients.c. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "journal/journal.h"

/* Whether all operations of the clients are acknowledged already; false: none is. Raises 22023 if only some are. Caller
 * must hold the sheet lock. */
extern bool clients_check(int64 sheet_id, const JournalClient *clients, int nclients);
/* Stores that the operations are acknowledged, if the current transaction commits. */
extern void clients_store(int64 sheet_id, const JournalClient *clients, int nclients);

#endif
