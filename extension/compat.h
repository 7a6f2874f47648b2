/* compat.h - what differs between PostgreSQL 15 to 18. What differs of scans is in am_scan_versions.c. */
#ifndef SHEET_COMPAT_H
#define SHEET_COMPAT_H

#include "postgres.h"
#include "access/genam.h"
#include "access/nbtxlog.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/vacuum.h"
#include "common/scram-common.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "replication/message.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "storage/smgr.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/tuplesort.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#else
#include "commands/explain.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* ---- locks ---- */

#if PG_VERSION_NUM >= 170000
#define compat_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define compat_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode)
#endif

/* ---- files of relations ---- */

/*
 * compat_relfilenode(): the number of a relation's file, a new one after TRUNCATE or a rewrite.
 * compat_first_file_subid(): the first subtransaction of the present transaction that has given it one.
 */
#if PG_VERSION_NUM >= 160000
typedef RelFileLocator CompatFileLocator;
#define compat_relfilenode(rel)		 ((rel)->rd_locator.relNumber)
#define compat_first_file_subid(rel) ((rel)->rd_firstRelfilelocatorSubid)
#define COMPAT_RELATION_SET_NEW_FILE relation_set_new_filelocator
#else
typedef RelFileNode CompatFileLocator;
#define compat_relfilenode(rel)		 ((rel)->rd_node.relNode)
#define compat_first_file_subid(rel) ((rel)->rd_firstRelfilenodeSubid)
#define COMPAT_RELATION_SET_NEW_FILE relation_set_new_filenode
#endif

/* A block that may be passed to smgrextend(). */
#if PG_VERSION_NUM >= 160000
typedef PGIOAlignedBlock CompatBlock;
#else
typedef PGAlignedBlock CompatBlock;
#endif

/* ---- slots ---- */

/* Callers may want bytes before the tuple from 18 on. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_SLOT_EXTRA								, Size extra
#define compat_form_minimal_tuple(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull, extra)
#else
#define COMPAT_SLOT_EXTRA
#define compat_form_minimal_tuple(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull)
#endif

/* ---- indexes ---- */

#if PG_VERSION_NUM >= 180000
#define compat_index_beginscan(heap, index, snapshot, nkeys) index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#define compat_primary_key(rel)								 RelationGetPrimaryKeyIndex(rel, false)
#else
#define compat_index_beginscan(heap, index, snapshot, nkeys) index_beginscan(heap, index, snapshot, nkeys, 0)
#define compat_primary_key(rel)								 RelationGetPrimaryKeyIndex(rel)
#endif

#if PG_VERSION_NUM >= 160000
typedef TU_UpdateIndexes CompatUpdateIndexes;
#define compat_must_update_indexes(update)			   ((update) != TU_None)
#define compat_tuplesort_getdatum(sort, value, isnull) tuplesort_getdatum(sort, true, false, value, isnull, NULL)
#else
typedef bool CompatUpdateIndexes;
#define compat_must_update_indexes(update)			   (update)
#define compat_tuplesort_getdatum(sort, value, isnull) tuplesort_getdatum(sort, true, value, isnull, NULL)
#endif

/* Whether a clause of ORDER BY is descending. */
#if PG_VERSION_NUM >= 180000
#define compat_set_reverse(clause, reverse) ((clause)->reverse_sort = (reverse))
#else
#define compat_set_reverse(clause, reverse) ((void) 0)
#endif

/* ---- permissions ---- */

#if PG_VERSION_NUM >= 160000
#define compat_function_aclcheck(function, role) object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE)
#define compat_is_table_owner(table, role)		 object_ownercheck(RelationRelationId, table, role)
#else
#define compat_function_aclcheck(function, role) pg_proc_aclcheck(function, role, ACL_EXECUTE)
#define compat_is_table_owner(table, role)		 pg_class_ownercheck(table, role)
#endif

/* ---- other processes ---- */

/* The wait event that pg_stat_activity shows. Until 16 there is one name for all extensions. */
#if PG_VERSION_NUM >= 170000
#define compat_wait_event(name) WaitEventExtensionNew(name)
#else
#define compat_wait_event(name) PG_WAIT_EXTENSION
#endif

/* The status of a backend. index: its place in the caller's copy of all statuses, from 1. */
#if PG_VERSION_NUM >= 160000
#define compat_backend_status(index) pgstat_get_local_beentry_by_index(index)
#else
#define compat_backend_status(index) pgstat_fetch_stat_local_beentry(index)
#endif

/* Of the backend that runs a virtual transaction: its number; its PGPROC, NULL if it has ended; its status. */
#if PG_VERSION_NUM >= 170000
#define compat_vxid_backend(vxid)	   ((vxid).procNumber)
#define COMPAT_NO_BACKEND			   INVALID_PROC_NUMBER
#define compat_backend_process(number) ProcNumberGetProc(number)
#define compat_backend_report(number)  pgstat_get_beentry_by_proc_number(number)
#else
#define compat_vxid_backend(vxid)	   ((vxid).backendId)
#define COMPAT_NO_BACKEND			   InvalidBackendId
#define compat_backend_process(number) BackendIdGetProc(number)
#if PG_VERSION_NUM >= 160000
#define compat_backend_report(number) pgstat_get_beentry_by_backend_id(number)
#else
#define compat_backend_report(number) pgstat_fetch_stat_beentry(number)
#endif
#endif

/* ---- VACUUM ---- */

/* The field of IndexVacuumInfo for the index's table. */
#if PG_VERSION_NUM >= 160000
#define COMPAT_INDEX_VACUUM_TABLE(rel) .heaprel = (rel),
#else
#define COMPAT_INDEX_VACUUM_TABLE(rel)
#endif

#if PG_VERSION_NUM >= 170000
#define compat_is_autovacuum_worker() AmAutoVacuumWorkerProcess()
#else
#define compat_is_autovacuum_worker() IsAutoVacuumWorkerProcess()
#endif

#if PG_VERSION_NUM >= 180000
#define compat_vacuum_delay_point() vacuum_delay_point(false)
#define compat_update_relstats(rel, pages, tuples, has_index, frozen_xid, min_multi)                                   \
	vac_update_relstats(rel, pages, tuples, 0, 0, has_index, frozen_xid, min_multi, NULL, NULL, false)
#define compat_report_vacuum(rel, live, start)                                                                         \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, live, 0, start)
#else
#define compat_vacuum_delay_point() vacuum_delay_point()
#define compat_update_relstats(rel, pages, tuples, has_index, frozen_xid, min_multi)                                   \
	vac_update_relstats(rel, pages, tuples, 0, has_index, frozen_xid, min_multi, NULL, NULL, false)
#define compat_report_vacuum(rel, live, start)                                                                         \
	((void) (start), pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, live, 0))
#endif

/* The oldest transactions that somebody may see, and the one before which rows must be frozen. */
static inline void
compat_vacuum_limits(Relation rel, VacuumParams *params, TransactionId *oldest_xmin, MultiXactId *oldest_multi,
					 TransactionId *freeze_limit)
{
#if PG_VERSION_NUM >= 160000
	struct VacuumCutoffs cutoffs;

	(void) vacuum_get_cutoffs(rel, params, &cutoffs);
	*oldest_xmin = cutoffs.OldestXmin;
	*oldest_multi = cutoffs.OldestMxact;
	*freeze_limit = cutoffs.FreezeLimit;
#else
	MultiXactId multi_cutoff;

	(void) vacuum_set_xid_limits(rel, params->freeze_min_age, params->freeze_table_age,
								 params->multixact_freeze_min_age, params->multixact_freeze_table_age, oldest_xmin,
								 oldest_multi, freeze_limit, &multi_cutoff);
#endif
}

/* ---- WAL ---- */

/* A record whose only purpose is that the transaction's commit is waited for. */
#if PG_VERSION_NUM >= 170000
#define compat_log_message() ((void) LogLogicalMessage("pg_sheet", "", 0, true, false))
#else
#define compat_log_message() ((void) LogLogicalMessage("pg_sheet", "", 0, true))
#endif

/* Standbys end the queries that still see transactions up to `horizon`. */
static inline void
compat_set_conflict(xl_btree_reuse_page *record, Relation rel, FullTransactionId horizon)
{
#if PG_VERSION_NUM >= 160000
	record->locator = rel->rd_locator;
	record->snapshotConflictHorizon = horizon;
#else
	record->node = rel->rd_node;
	record->latestRemovedFullXid = horizon;
#endif
}

/* ---- transaction ids ---- */

/* The full id of a transaction id that is on disk, hence at most 2^31 behind the next one. */
static inline uint64
compat_widen_xid(TransactionId xid, FullTransactionId next)
{
	uint32 epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

/* ---- passwords ---- */

/* A SCRAM-SHA-256 secret. The setting scram_iterations of 16 and later is not asked. */
static inline char *
compat_scram_secret(const void *salt, int salt_len, int iterations, const char *password)
{
	const char *problem = NULL;
	char *secret;

#if PG_VERSION_NUM >= 160000
	secret = scram_build_secret(PG_SHA256, SCRAM_SHA_256_KEY_LEN, salt, salt_len, iterations, password, &problem);
#else
	secret = scram_build_secret(salt, salt_len, iterations, password, &problem);
#endif
	if (secret == NULL)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not hash the password: %s", problem)));
	return secret;
}

#endif
