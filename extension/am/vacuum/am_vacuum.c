/*
 * am_vacuum.c - VACUUM.
 *
 * Pages that are all frozen and hold nothing dead are done for ever: the metapage remembers the first block that may
 * not be (work_from), and VACUUM begins there. It goes over the pages once:
 *
 *   - rows that nobody can see any more (aborted, or deleted before the oldest snapshot) are marked dead, and
 *     their TIDs remembered;
 *   - the runs at the beginning of the page that everybody sees are frozen, by moving frozen_end;
 *   - a page with dead rows only is closed, and so is one that is done with and full: they take no more rows, also
 *     from backends that still have it for the tail. A page that is done with and has room is offered again, and
 *     looked at again.
 *
 * Then the index entries of the remembered TIDs are deleted, and after that, with the cleanup lock, the bytes of those
 * rows: only now can their numbers, or the whole page, be used again. Each page is changed by one WAL record, so that
 * VACUUM can end anywhere: what was marked is found again by the next one. A page whose cleanup lock is not to be had
 * is left to the next one, too.
 *
 * Overflow pages are freed with their row, or, when their writer has failed, by themselves: nothing but an aborted row
 * leads to them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/multixact.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "am/table/am_storage.h"
#include "am/vacuum/am_vacuum.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "support/stoppoint.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/memutils.h"

/* The file is cut when at least this many pages at its end, or this part of it, are free. */
#define AM_TRUNCATE_PAGES	 1000
#define AM_TRUNCATE_FRACTION 16
#define AM_RECOUNT_PAGES	 1024
/* Transactions that must have begun since for a row to be frozen by a VACUUM without FREEZE. */
#define AM_FREEZE_LAG 10000

/* ---- over all pages ---- */

static void
am_vacuum_scan(AmVacuum *vacuum)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS, vacuum->used);
	for (BlockNumber block = vacuum->from; block < vacuum->used; block++)
	{
		compat_vacuum_delay_point();
		if (vacuum->dead->max_items - vacuum->dead->num_items <= AM_PAGE_OFFSET)
		{
			am_vacuum_dead(vacuum);
			pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
		}
		vacuum->page_rows = 0;
		am_vacuum_page(vacuum, block);
		if (block < vacuum->unfinished)
		{
			vacuum->settled += vacuum->page_rows;
			vacuum->settled_end = block + 1;
		}
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block + 1);
	}
	am_vacuum_dead(vacuum);
}

/* ---- the metapage ---- */

/* From now on deletions below the end are recorded separately, so that none is missed. */
static void
am_vacuum_start_meta(AmVacuum *vacuum)
{
	AmMeta meta;
	Buffer buffer;
	GenericXLogState *state;

	if (!am_space_meta(vacuum->rel, &meta))
	{
		vacuum->exact = true;
		return;
	}
	buffer = am_space_lock_meta(vacuum->rel);
	meta = *am_meta(BufferGetPage(buffer));
	if (meta.deleted_from != meta.used)
	{
		state = GenericXLogStart(vacuum->rel);
		am_meta(GenericXLogRegisterBuffer(state, buffer, 0))->deleted_from = meta.used;
		GenericXLogFinish(state);
	}
	UnlockReleaseBuffer(buffer);
	vacuum->from = vacuum->params->options & VACOPT_DISABLE_PAGE_SKIPPING ? 1 : Max(meta.work_from, 1);
	vacuum->used = Min(meta.used, RelationGetNumberOfBlocks(vacuum->rel));
	vacuum->tail = meta.tail;
	vacuum->unfinished = vacuum->used;
	vacuum->exact = vacuum->from == 1 || vacuum->from == meta.settled_end;
	vacuum->settled = vacuum->from == 1 ? 0 : meta.settled_rows;
	vacuum->settled_end = vacuum->from;
}

/* Rows that are not dead. */
static int
am_vacuum_count_rows(AmVacuum *vacuum, BlockNumber block)
{
	Buffer buffer = am_space_read(vacuum->rel, block, vacuum->strategy);
	int rows = 0;
	AmWalk walk;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (am_space_is(buffer, AM_PAGE_DATA))
	{
		am_walk_begin(&walk, BufferGetPage(buffer));
		while (am_walk_next(&walk))
			rows += am_row_deleter(walk.row.tag) != AM_DEAD;
	}
	UnlockReleaseBuffer(buffer);
	return rows;
}

/* Pages that were passed, and have to be looked at again after all, are not settled. */
static void
am_vacuum_unsettle(AmVacuum *vacuum)
{
	if (vacuum->settled_end > vacuum->unfinished + AM_RECOUNT_PAGES)
		vacuum->exact = false;
	while (vacuum->exact && vacuum->settled_end > vacuum->unfinished)
		vacuum->settled -= Min(vacuum->settled, am_vacuum_count_rows(vacuum, --vacuum->settled_end));
}

static void
am_vacuum_end_meta(AmVacuum *vacuum)
{
	Buffer buffer;
	GenericXLogState *state;
	AmMeta meta, *image;

	if (vacuum->used == 0)
		return;
	buffer = am_space_lock_meta(vacuum->rel);
	meta = *am_meta(BufferGetPage(buffer));
	meta.work_from = Min(vacuum->unfinished, meta.deleted_from);
	meta.settled_end = vacuum->exact && vacuum->settled_end <= meta.work_from ? vacuum->settled_end : 1;
	meta.settled_rows = meta.settled_end > 1 ? vacuum->settled : 0;
	if (memcmp(&meta, am_meta(BufferGetPage(buffer)), sizeof(meta)) != 0)
	{
		state = GenericXLogStart(vacuum->rel);
		image = am_meta(GenericXLogRegisterBuffer(state, buffer, 0));
		*image = meta;
		GenericXLogFinish(state);
	}
	UnlockReleaseBuffer(buffer);
}

/* Exact when the rows of the blocks that were passed over are known. */
static double
am_vacuum_rows(AmVacuum *vacuum, uint64 rows_before)
{
	if (vacuum->exact)
		return rows_before + vacuum->live;
	return vac_estimate_reltuples(vacuum->rel, vacuum->used, vacuum->scanned, vacuum->live);
}

/* ---- cutting the file ---- */

/* The first block of the free ones at the end. */
static BlockNumber
am_vacuum_used_end(AmVacuum *vacuum)
{
	BlockNumber end = vacuum->used;

	for (; end > 1; end--)
	{
		Buffer buffer = am_space_read(vacuum->rel, end - 1, vacuum->strategy);
		bool free;

		compat_vacuum_delay_point();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		free = am_space_is(buffer, AM_PAGE_FREE);
		UnlockReleaseBuffer(buffer);
		if (!free)
			break;
	}
	return end;
}

static void
am_vacuum_cut_locked(AmVacuum *vacuum)
{
	Buffer buffer = am_space_lock_meta(vacuum->rel);
	GenericXLogState *state;
	BlockNumber end;
	AmMeta *meta;

	vacuum->used = Min(am_meta(BufferGetPage(buffer))->used, RelationGetNumberOfBlocks(vacuum->rel));
	UnlockReleaseBuffer(buffer);
	end = am_vacuum_used_end(vacuum);
	buffer = am_space_lock_meta(vacuum->rel);
	state = GenericXLogStart(vacuum->rel);
	meta = am_meta(GenericXLogRegisterBuffer(state, buffer, 0));
	meta->used = end;
	if (meta->tail != InvalidBlockNumber && meta->tail >= end)
		meta->tail = InvalidBlockNumber;
	meta->work_from = Min(meta->work_from, end);
	meta->deleted_from = Min(meta->deleted_from, end);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
	STOP_POINT("vacuum-cut");
	RelationTruncate(vacuum->rel, end);
	vacuum->used = end;
}

static void
am_vacuum_truncate(AmVacuum *vacuum)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(vacuum->rel), free;

	if (vacuum->params->truncate == VACOPTVALUE_DISABLED || vacuum->used == 0)
		return;
	free = blocks - am_vacuum_used_end(vacuum);
	if (free == 0 || (free < AM_TRUNCATE_PAGES && free < blocks / AM_TRUNCATE_FRACTION))
		return;
	if (!ConditionalLockRelation(vacuum->rel, AccessExclusiveLock))
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_TRUNCATE);
	am_vacuum_cut_locked(vacuum);
	UnlockRelation(vacuum->rel, AccessExclusiveLock);
}

/* ---- beginning and end ---- */

/*
 * PostgreSQL's limits pass over snapshots that are older than old_snapshot_threshold, whose readers heap refuses by the
 * LSN of each page. A log has no such test: it waits for them.
 */
static void
am_vacuum_limits(AmVacuum *vacuum)
{
	TransactionId horizon, freeze_limit;

	compat_vacuum_limits(vacuum->rel, vacuum->params, &vacuum->oldest_xmin, &vacuum->new_min_multi, &freeze_limit);
	horizon = GetOldestNonRemovableTransactionId(vacuum->rel);
	if (TransactionIdPrecedes(horizon, vacuum->oldest_xmin))
		vacuum->oldest_xmin = horizon;
	if (TransactionIdPrecedes(vacuum->oldest_xmin, freeze_limit))
		freeze_limit = vacuum->oldest_xmin;
	vacuum->new_frozen_xid = vacuum->oldest_xmin;
	vacuum->freeze_before = vacuum->oldest_xmin;
	if (vacuum->params->freeze_min_age == 0)
		return;
	/* Early, so that pages are done with, but not so early that standbys have readers that would have to go. */
	vacuum->freeze_before -= AM_FREEZE_LAG;
	if (!TransactionIdIsNormal(vacuum->freeze_before) ||
		TransactionIdPrecedes(vacuum->oldest_xmin, vacuum->freeze_before))
		vacuum->freeze_before = FirstNormalTransactionId;
	if (TransactionIdPrecedes(vacuum->freeze_before, freeze_limit))
		vacuum->freeze_before = freeze_limit;
}

static void
am_vacuum_make_dead(AmVacuum *vacuum)
{
	bool automatic = compat_is_autovacuum_worker() && autovacuum_work_mem != -1;
	Size items = (Size) (automatic ? autovacuum_work_mem : maintenance_work_mem) * 1024 / sizeof(ItemPointerData);
	int max_items;

	items = Min(items, (Size) vacuum->used * (AM_MAX_ROWS + 1));
	max_items = (int) Max(Min(items, MaxAllocSize / sizeof(ItemPointerData) / 2), 2 * (AM_MAX_ROWS + 1));
	vacuum->dead = palloc(offsetof(AmDeadRows, items) + sizeof(ItemPointerData) * max_items);
	vacuum->dead->max_items = max_items;
	vacuum->dead->num_items = 0;
}

IndexVacuumInfo
am_vacuum_index_info(const AmVacuum *vacuum, int index, double tuples, bool estimated)
{
	return (IndexVacuumInfo){.index = vacuum->indexes[index],
							 COMPAT_INDEX_VACUUM_TABLE(vacuum->rel).estimated_count = estimated,
							 .message_level = DEBUG2,
							 .num_heap_tuples = tuples,
							 .strategy = vacuum->strategy};
}

static void
am_vacuum_finish_indexes(AmVacuum *vacuum, double tuples)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	for (int i = 0; i < vacuum->nindexes && vacuum->clean_indexes; i++)
	{
		IndexVacuumInfo info = am_vacuum_index_info(vacuum, i, tuples, !vacuum->exact);

		vacuum->results[i] = vac_cleanup_one_index(&info, vacuum->results[i]);
		if (vacuum->results[i] != NULL && !vacuum->results[i]->estimated_count)
			compat_update_relstats(vacuum->indexes[i], vacuum->results[i]->num_pages,
								   vacuum->results[i]->num_index_tuples, false, InvalidTransactionId,
								   InvalidMultiXactId);
	}
	vac_close_indexes(vacuum->nindexes, vacuum->indexes, NoLock);
}

static void
am_vacuum_report(AmVacuum *vacuum, BlockNumber blocks, double tuples)
{
	if (!(vacuum->params->options & VACOPT_VERBOSE))
		return;
	ereport(
		INFO,
		(errmsg("vacuumed table \"%s\": looked at %u of %u blocks", RelationGetRelationName(vacuum->rel),
				vacuum->scanned, blocks),
		 errdetail("%.0f rows were removed, %.0f remain, %u blocks were freed, %u blocks were in use and are left to "
				   "the next VACUUM; indexes were scanned %d times.",
				   vacuum->removed, tuples, vacuum->freed, vacuum->not_cleaned, vacuum->index_scans)));
}

void
am_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy strategy)
{
	AmVacuum vacuum = {.rel = rel, .params = params, .strategy = strategy, .tail = InvalidBlockNumber};
	BlockNumber blocks;
	uint64 rows_before;
	TimestampTz started = GetCurrentTimestamp();
	double tuples;

	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
	am_vacuum_limits(&vacuum);
	vac_open_indexes(rel, RowExclusiveLock, &vacuum.nindexes, &vacuum.indexes);
	vacuum.results = palloc0(sizeof(IndexBulkDeleteResult *) * (vacuum.nindexes + 1));
	vacuum.clean_indexes = params->index_cleanup != VACOPTVALUE_DISABLED;
	/* Before the size is looked at: pages that come later have younger xids only. */
	am_vacuum_start_meta(&vacuum);
	am_vacuum_make_dead(&vacuum);
	rows_before = vacuum.settled;
	am_vacuum_scan(&vacuum);
	tuples = am_vacuum_rows(&vacuum, rows_before);
	am_vacuum_unsettle(&vacuum);
	am_vacuum_finish_indexes(&vacuum, tuples);
	FreeSpaceMapVacuum(rel);
	CacheInvalidateRelcache(rel); /* others may remember that there is no map: am_space.c */
	STOP_POINT("vacuum-end");
	am_vacuum_end_meta(&vacuum);
	am_vacuum_truncate(&vacuum);

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	blocks = RelationGetNumberOfBlocks(rel);
	compat_update_relstats(rel, blocks, tuples, vacuum.nindexes > 0, vacuum.new_frozen_xid, vacuum.new_min_multi);
	compat_report_vacuum(rel, Max(tuples, 0), started);
	am_vacuum_report(&vacuum, blocks, tuples);
	pgstat_progress_end_command();
}
