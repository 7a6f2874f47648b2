/* am_write.h - putting rows into pages, and taking them away; see am_write.c and am_delete.c. */
#ifndef AM_WRITE_H
#define AM_WRITE_H

#include "postgres.h"
#include "access/tableam.h"
#include "am/page/am_row.h"
#include "utils/rel.h"

/* The transaction and command that write the rows. */
typedef struct AmWriter
{
	Relation rel;
	TransactionId xid; /* FrozenTransactionId: visible to everybody at once */
	CommandId cid;
	uint32 token;	   /* of a speculative insertion; 0: none */
	AmDeleter deleter; /* for copies of deleted rows; xid InvalidTransactionId: none */
} AmWriter;

/* Writes n rows with as few WAL records as there are pages, and says where they are. */
extern void am_write_rows(const AmWriter *writer, AmPrepared *rows, int n, ItemPointerData *tids);

/* Settles a speculative insertion: it stands, or it never was. */
extern void am_settle_speculative(Relation rel, ItemPointer tid, bool stands);

/* DELETE of a row; see tuple_delete in access/tableam.h. */
extern TM_Result am_delete_row(Relation rel, ItemPointer tid, CommandId cid, Snapshot crosscheck, bool wait,
							   TM_FailureData *failure);

#endif
