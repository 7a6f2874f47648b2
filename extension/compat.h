/* compat.h - what differs between PostgreSQL 15 (the base) and 16 to 18, in one place. */
#ifndef SHEET_COMPAT_H
#define SHEET_COMPAT_H

#include "postgres.h"
#include "access/genam.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "replication/message.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

/* The number of a relation's file: a new one after TRUNCATE or a rewrite. And the first subtransaction of the present
 * transaction that has given it one. */
#if PG_VERSION_NUM >= 160000
#define compat_relfilenode(rel)		 ((rel)->rd_locator.relNumber)
#define compat_first_file_subid(rel) ((rel)->rd_firstRelfilelocatorSubid)
#else
#define compat_relfilenode(rel)		 ((rel)->rd_node.relNode)
#define compat_first_file_subid(rel) ((rel)->rd_firstRelfilenodeSubid)
#endif

#if PG_VERSION_NUM >= 180000
#define compat_index_beginscan(heap, index, snapshot, nkeys) index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define compat_index_beginscan(heap, index, snapshot, nkeys) index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/* May the role execute the function? */
#if PG_VERSION_NUM >= 160000
#define compat_function_aclcheck(function, role) object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE)
#else
#define compat_function_aclcheck(function, role) pg_proc_aclcheck(function, role, ACL_EXECUTE)
#endif

/* What pg_stat_activity says of a process that waits; 15 and 16 have one name for all extensions. */
#if PG_VERSION_NUM >= 170000
#define compat_wait_event(name) WaitEventExtensionNew(name)
#else
#define compat_wait_event(name) PG_WAIT_EXTENSION
#endif

/* What a backend says of itself, by its number in the caller's copy, from 1. */
#if PG_VERSION_NUM >= 160000
#define compat_backend_status(index) pgstat_get_local_beentry_by_index(index)
#else
#define compat_backend_status(index) pgstat_fetch_stat_local_beentry(index)
#endif

/* A record in the WAL that only has its transaction's commit waited for. */
#if PG_VERSION_NUM >= 170000
#define compat_log_message() ((void) LogLogicalMessage("pg_sheet", "", 0, true, false))
#else
#define compat_log_message() ((void) LogLogicalMessage("pg_sheet", "", 0, true))
#endif

#if PG_VERSION_NUM >= 160000
typedef TU_UpdateIndexes CompatUpdateIndexes;
#define compat_must_update_indexes(update) ((update) != TU_None)
#else
typedef bool CompatUpdateIndexes;
#define compat_must_update_indexes(update) (update)
#endif

/* The full id of a transaction id that is on disk, hence at most 2^31 behind the next one. */
static inline uint64
compat_widen_xid(TransactionId xid, FullTransactionId next)
{
	uint32 epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

#endif
