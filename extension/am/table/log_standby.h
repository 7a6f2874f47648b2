/*
 * log_standby.h - readers of standbys.
 *
 * Before pages are frozen or lose rows, readers of standbys whose snapshots are older than that must have gone. Generic
 * WAL records do not say so; B-trees have a record that does nothing else.
 */
#ifndef LOG_STANDBY_H
#define LOG_STANDBY_H

#include "postgres.h"
#include "utils/rel.h"

/* Readers that do not see this transaction, and all before it, have to go. */
extern void log_standby_tell(Relation rel, TransactionId newest);

#endif
