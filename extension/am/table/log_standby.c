/* log_standby.c - see log_standby.h. */
#include "postgres.h"

#include "access/nbtxlog.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "am/table/log_standby.h"
#include "compat.h"

void
log_standby_tell(Relation rel, TransactionId newest)
{
	xl_btree_reuse_page record;

	if (!TransactionIdIsNormal(newest) || !XLogStandbyInfoActive() || !RelationNeedsWAL(rel))
		return;
	memset(&record, 0, sizeof(record));
	record.node = rel->rd_node;
	record.block = InvalidBlockNumber;
	record.latestRemovedFullXid = FullTransactionIdFromU64(compat_widen_xid(newest, ReadNextFullTransactionId()));
	XLogBeginInsert();
	XLogRegisterData((char *) &record, SizeOfBtreeReusePage);
	XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}
