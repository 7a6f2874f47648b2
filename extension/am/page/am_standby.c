/*
 * am_standby.c - what differs on a standby, and in recovery in general.
 *
 * Generic WAL records are replayed without waiting for pins, so a pinned page may change while no lock is held:
 * VACUUM's records move the bytes of rows. Hence a scan in recovery copies each page while it is locked, and a single
 * row is copied out of the locked page.
 *
 * Before pages are frozen or lose rows, readers of standbys with older snapshots must be cancelled. Generic WAL records
 * do not resolve such conflicts; B-trees have a record that does nothing else.
 *
 * Writers, VACUUM and whatever they keep in shared memory do not run in recovery.
 */
#include "postgres.h"

#include "access/nbtxlog.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "am/page/am_standby.h"
#include "compat.h"
#include "storage/bufmgr.h"

AmSource
am_standby_source(Buffer buffer)
{
	return (AmSource){BufferGetPage(buffer), BufferGetBlockNumber(buffer),
					  RecoveryInProgress() ? InvalidBuffer : buffer};
}

AmSource
am_standby_unlock(Buffer buffer, Page *copy, MemoryContext context)
{
	AmSource source = am_standby_source(buffer);

	if (likely(BufferIsValid(source.buffer)))
	{
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		return source;
	}
	if (*copy == NULL)
		*copy = MemoryContextAlloc(context, BLCKSZ);
	memcpy(*copy, source.page, BLCKSZ);
	source.page = *copy;
	UnlockReleaseBuffer(buffer);
	return source;
}

void
am_standby_conflict(Relation rel, TransactionId newest)
{
	xl_btree_reuse_page record;

	if (!TransactionIdIsNormal(newest) || !XLogStandbyInfoActive() || !RelationNeedsWAL(rel))
		return;
	memset(&record, 0, sizeof(record));
	record.block = InvalidBlockNumber;
	compat_set_conflict(&record, rel, FullTransactionIdFromU64(compat_widen_xid(newest, ReadNextFullTransactionId())));
	XLogBeginInsert();
	XLogRegisterData((char *) &record, SizeOfBtreeReusePage);
	XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}
