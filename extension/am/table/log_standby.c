/* log_standby.c - see log_standby.h. */
#include "postgres.h"

#include "access/nbtxlog.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "am/table/log_standby.h"

static FullTransactionId
log_full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32 epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return FullTransactionIdFromEpochAndXid(epoch, xid);
}

void
log_standby_tell(Relation rel, TransactionId newest)
{
	xl_btree_reuse_page record;

	if (!TransactionIdIsNormal(newest) || !XLogStandbyInfoActive() || !RelationNeedsWAL(rel))
		return;
	memset(&record, 0, sizeof(record));
	record.node = rel->rd_node;
	record.block = InvalidBlockNumber;
	record.latestRemovedFullXid = log_full_xid(newest);
	XLogBeginInsert();
	XLogRegisterData((char *) &record, SizeOfBtreeReusePage);
	XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}
