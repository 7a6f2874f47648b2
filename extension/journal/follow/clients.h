/*
 * clients.h - which operations of protocol v2 have landed; see clients.c.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "postgres.h"
#include "journal/journal.h"

#define CLIENTS_RETENTION_DAYS 7

typedef enum ClientsState
{
	CLIENTS_NEW,   /* none of the operations has landed */
	CLIENTS_LANDED /* all have */
} ClientsState;

/* Under the sheet lock. Raises 22023 when some have landed and others have not. */
extern ClientsState clients_check(int64 sheet_id, const JournalClient *clients, int nclients);
/* Notes that they land with this transaction. */
extern void clients_store(int64 sheet_id, const JournalClient *clients, int nclients);

#endif
