/* log_write.h - putting rows into pages, and taking them away; see log_write.c and log_delete.c. */
#ifndef LOG_WRITE_H
#define LOG_WRITE_H

#include "postgres.h"
#include "access/tableam.h"
#include "am/page/log_row.h"
#include "utils/rel.h"

/* Who writes the rows. */
typedef struct LogWriter
{
	Relation rel;
	TransactionId xid; /* FrozenTransactionId: visible to everybody at once */
	CommandId cid;
	uint32 token;		/* of a speculative insertion; 0: none */
	LogDeleter deleter; /* for copies of deleted rows; xid InvalidTransactionId: none */
} LogWriter;

/* Writes n rows with as few WAL records as there are pages, and says where they are. */
extern void log_write_rows(const LogWriter *writer, LogPrepared *rows, int n, ItemPointerData *tids);

/* Settles a speculative insertion: it stands, or it never was. */
extern void log_settle_speculative(Relation rel, ItemPointer tid, bool stands);

/* DELETE of a row; see tuple_delete in access/tableam.h. */
extern TM_Result log_delete_row(Relation rel, ItemPointer tid, CommandId cid, Snapshot crosscheck, bool wait,
								TM_FailureData *failure);

#endif
