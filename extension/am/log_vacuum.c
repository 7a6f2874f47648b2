/*
 * log_vacuum.c - VACUUM.
 *
 * Pages that are all frozen and hold nothing dead are done for ever: the metapage remembers the first block that may
 * not be (work_from), and VACUUM begins there. It goes over the pages once:
 *
 *   - rows that nobody can see any more (aborted, or deleted before the oldest snapshot) are marked dead, and their
 * TIDs remembered;
 *   - the runs at the beginning of the page that everybody sees are frozen, by moving frozen_end;
 *   - a page with dead rows only is closed, and so is one that is done with and full: they take no more rows, also from
 * backends that still have it for the tail. A page that is done with and has room is offered again, and looked at
 * again.
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
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "log_space.h"
#include "log_standby.h"
#include "log_storage.h"
#include "log_visibility.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "stoppoint.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The file is cut when at least this many pages at its end, or this part of it, are free. */
#define LOG_TRUNCATE_PAGES	  1000
#define LOG_TRUNCATE_FRACTION 16
#define LOG_RECOUNT_PAGES	  1024
/* Transactions that must have begun since for a row to be frozen by a VACUUM without FREEZE. */
#define LOG_FREEZE_LAG 10000

typedef struct LogVacuum
{
	Relation rel;
	VacuumParams *params;
	BufferAccessStrategy strategy;
	TransactionId oldest_xmin;
	TransactionId freeze_before;  /* rows of older transactions are frozen */
	TransactionId told_standby;	  /* readers of standbys that do not see this transaction have been told to go */
	TransactionId new_frozen_xid; /* oldest xid that stays in the table */
	MultiXactId new_min_multi;
	int nindexes;
	Relation *indexes;
	IndexBulkDeleteResult **results;
	bool clean_indexes;
	VacDeadItems *dead;
	BlockNumber from, used, tail; /* as the metapage had them */
	BlockNumber unfinished;		  /* first block that the next VACUUM has to look at */
	BlockNumber scanned, freed, not_cleaned;
	double live, removed;
	bool exact;		/* all rows before `from` are in `settled` */
	uint64 settled; /* rows in blocks before settled_end */
	BlockNumber settled_end;
	int page_rows; /* of the current page */
	int index_scans;
} LogVacuum;

/* ---- a page ---- */

static void
log_vacuum_leave(LogVacuum *vacuum, BlockNumber block)
{
	vacuum->unfinished = Min(vacuum->unfinished, block);
}

/* The table keeps this xid. */
static void
log_vacuum_keep_xid(LogVacuum *vacuum, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && TransactionIdIsValid(vacuum->new_frozen_xid) &&
		TransactionIdPrecedes(xid, vacuum->new_frozen_xid))
		vacuum->new_frozen_xid = xid;
}

static void
log_vacuum_record_free(LogVacuum *vacuum, BlockNumber block, Size bytes)
{
	RecordPageWithFreeSpace(vacuum->rel, block, bytes);
	log_vacuum_leave(vacuum, block);
}

static void
log_vacuum_free_page(LogVacuum *vacuum, Buffer buffer)
{
	GenericXLogState *state = GenericXLogStart(vacuum->rel);

	log_page_init(GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE), LOG_PAGE_FREE);
	GenericXLogFinish(state);
	log_vacuum_record_free(vacuum, BufferGetBlockNumber(buffer), LOG_FREE_BYTES);
	vacuum->freed++;
}

/* A reserved page that was never written: a crash or an error has come in between, unless somebody is about to write
 * it. */
static void
log_vacuum_new_page(LogVacuum *vacuum, Buffer buffer)
{
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!ConditionalLockPage(vacuum->rel, 0, ExclusiveLock))
	{
		log_vacuum_leave(vacuum, BufferGetBlockNumber(buffer));
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		return;
	}
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (PageIsNew(BufferGetPage(buffer)))
		log_vacuum_free_page(vacuum, buffer);
	UnlockPage(vacuum->rel, 0, ExclusiveLock);
}

static void
log_vacuum_overflow_page(LogVacuum *vacuum, Buffer buffer)
{
	LogSpecial *special = log_special(BufferGetPage(buffer));
	TransactionId writer = special->overflow.writer;
	GenericXLogState *state;

	if (special->frozen_end != 0)
		return;
	if (TransactionIdIsNormal(writer) && !TransactionIdIsInProgress(writer) && !TransactionIdDidCommit(writer))
	{
		log_vacuum_free_page(vacuum, buffer);
		STOP_POINT("vacuum-failed");
		return;
	}
	if (TransactionIdIsNormal(writer) && !TransactionIdPrecedes(writer, vacuum->freeze_before))
	{
		log_vacuum_keep_xid(vacuum, writer);
		log_vacuum_leave(vacuum, BufferGetBlockNumber(buffer));
		return;
	}
	state = GenericXLogStart(vacuum->rel);
	log_special(GenericXLogRegisterBuffer(state, buffer, 0))->frozen_end = 1;
	GenericXLogFinish(state);
}

/* What a look at a data page finds. */
typedef struct LogPageFindings
{
	int ndead; /* rows that are dead, marked or not */
	int nmark; /* of them, those that are not marked yet */
	int nlive;
	OffsetNumber dead[LOG_MAX_ROWS];
	uint16 mark[LOG_MAX_ROWS]; /* positions of their tags */
	int nforsaken;
	uint16 forsaken[LOG_MAX_ROWS]; /* of dead rows whose overflow pages are freed by themselves */
	uint16 freezable_end;		   /* runs before it may be frozen */
	TransactionId oldest;		   /* of the xids that stay */
	TransactionId newest;		   /* of the transactions that are frozen, or whose deletions are carried out */
	bool deleter_needed[LOG_DELETERS];
} LogPageFindings;

static void
log_find_keep(LogPageFindings *found, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(found->oldest) || TransactionIdPrecedes(xid, found->oldest)))
		found->oldest = xid;
}

static void
log_find_settle(LogPageFindings *found, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(found->newest) || TransactionIdFollows(xid, found->newest)))
		found->newest = xid;
}

static void
log_find_row(LogVacuum *vacuum, const LogWalk *walk, LogPageFindings *found, bool *may_freeze)
{
	TransactionId xid;
	LogFate fate = log_row_fate(walk, vacuum->oldest_xmin, &xid);
	int deleter = log_row_deleter(walk->row.tag);

	if (fate == LOG_FATE_DEAD)
	{
		if (deleter != LOG_DEAD)
			found->mark[found->nmark++] = walk->row.pos;
		if (deleter != 0 && deleter != LOG_DEAD)
			log_find_settle(found, log_row_deleted_by(walk).xid);
		if ((walk->row.tag & LOG_ROW_OVERFLOW) && log_run_has_failed(&walk->run))
			found->forsaken[found->nforsaken++] = walk->row.pos;
		found->dead[found->ndead++] = walk->row.offset;
		/* It may stay for a while: until then, the table has its xid. */
		if (!*may_freeze && !walk->run.frozen)
			log_find_keep(found, walk->run.xid);
		return;
	}
	found->nlive++;
	if (!walk->run.frozen && (fate == LOG_FATE_INSERTING || walk->run.speculative ||
							  !TransactionIdPrecedes(walk->run.xid, vacuum->freeze_before)))
	{
		if (*may_freeze)
			found->freezable_end = walk->run.pos;
		*may_freeze = false;
	}
	if (*may_freeze && !walk->run.frozen)
		log_find_settle(found, walk->run.xid);
	if (!*may_freeze && !walk->run.frozen)
		log_find_keep(found, walk->run.xid);
	if (deleter != 0 && fate != LOG_FATE_LIVE)
	{
		found->deleter_needed[deleter - 1] = true;
		log_find_keep(found, xid);
	}
}

static bool
log_find_in_page(LogVacuum *vacuum, Buffer buffer, LogPageFindings *found)
{
	Page page = BufferGetPage(buffer);
	bool may_freeze = true;
	LogWalk walk;

	memset(found, 0, sizeof(*found));
	log_walk_begin(&walk, page);
	while (log_walk_next(&walk))
		log_find_row(vacuum, &walk, found, &may_freeze);
	if (may_freeze)
		found->freezable_end = walk.run.pos == 0 ? 0 : ((PageHeader) page)->pd_lower;
	return walk.damage == NULL;
}

/* Clears the deleters that no row needs, and the marks of those that have failed. */
static bool
log_vacuum_deleters(Page page, const LogPageFindings *found)
{
	LogDeleter *deleters = log_special(page)->deleters;
	bool changed = false;
	LogWalk walk;

	for (int i = 0; i < LOG_DELETERS; i++)
		if (TransactionIdIsValid(deleters[i].xid) && !found->deleter_needed[i])
		{
			deleters[i] = (LogDeleter){InvalidTransactionId, 0};
			changed = true;
		}
	if (!changed)
		return false;
	log_walk_begin(&walk, page);
	while (log_walk_next(&walk))
	{
		int deleter = log_row_deleter(walk.row.tag);

		if (deleter > 0 && deleter <= LOG_DELETERS && !found->deleter_needed[deleter - 1])
			*((uint8 *) page + walk.row.pos) &= ~LOG_ROW_DELETER;
	}
	return true;
}

/* Marks, freezes, closes: one WAL record, when there is anything to change. */
static void
log_vacuum_change_page(LogVacuum *vacuum, Buffer buffer, const LogPageFindings *found, bool close)
{
	bool changed = found->nmark > 0 || found->nforsaken > 0;
	GenericXLogState *state;
	Page page;

	if (!TransactionIdIsValid(vacuum->told_standby) ||
		(TransactionIdIsValid(found->newest) && TransactionIdFollows(found->newest, vacuum->told_standby)))
	{
		log_standby_tell(vacuum->rel, found->newest);
		vacuum->told_standby = found->newest;
	}
	state = GenericXLogStart(vacuum->rel);
	page = GenericXLogRegisterBuffer(state, buffer, 0);
	for (int i = 0; i < found->nmark; i++)
		*((uint8 *) page + found->mark[i]) |= LOG_ROW_DELETER;
	for (int i = 0; i < found->nforsaken; i++)
		*((uint8 *) page + found->forsaken[i]) &= ~LOG_ROW_OVERFLOW;
	changed |= log_vacuum_deleters(page, found);
	if (found->freezable_end > log_special(page)->frozen_end)
	{
		log_special(page)->frozen_end = found->freezable_end;
		changed = true;
	}
	if (close && !log_special(page)->closed)
	{
		log_special(page)->closed = 1;
		changed = true;
	}
	if (changed)
		GenericXLogFinish(state);
	else
		GenericXLogAbort(state);
}

static void
log_vacuum_remember(LogVacuum *vacuum, BlockNumber block, OffsetNumber offset)
{
	VacDeadItems *dead = vacuum->dead;

	Assert(dead->num_items < dead->max_items);
	ItemPointerSet(&dead->items[dead->num_items], block, offset);
	dead->num_items++;
}

static bool
log_vacuum_all_frozen(Page page, const LogPageFindings *found)
{
	return Max(found->freezable_end, log_special(page)->frozen_end) >= ((PageHeader) page)->pd_lower;
}

static void
log_vacuum_data_page(LogVacuum *vacuum, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page page = BufferGetPage(buffer);
	LogPageFindings found;
	bool settled, roomy, close;

	if (!log_find_in_page(vacuum, buffer, &found))
	{
		ereport(WARNING, (errcode(ERRCODE_DATA_CORRUPTED),
						  errmsg("block %u of table \"%s\" is damaged and was left alone", block,
								 RelationGetRelationName(vacuum->rel)),
						  errhint("Check the table with sheet.am_check().")));
		log_vacuum_leave(vacuum, block);
		vacuum->new_frozen_xid = InvalidTransactionId;
		return;
	}
	settled = found.ndead == 0 && !TransactionIdIsValid(found.oldest) && log_vacuum_all_frozen(page, &found);
	roomy = block == vacuum->tail || log_page_room(page) >= LOG_RECYCLE_BYTES;
	close = found.nlive == 0 || (settled && !roomy);
	log_vacuum_change_page(vacuum, buffer, &found, close);
	STOP_POINT("vacuum-mark");
	vacuum->live += found.nlive;
	vacuum->page_rows = found.nlive;
	log_vacuum_keep_xid(vacuum, found.oldest);
	if (!settled || block == vacuum->tail)
		log_vacuum_leave(vacuum, block);
	else if (roomy)
		log_vacuum_record_free(vacuum, block, log_page_room(page));
	if (!vacuum->clean_indexes)
	{
		if (found.ndead > 0)
			log_vacuum_leave(vacuum, block);
		return;
	}
	for (int i = 0; i < found.ndead; i++)
		log_vacuum_remember(vacuum, block, found.dead[i]);
	if (found.nlive == 0)
		log_vacuum_remember(vacuum, block, LOG_PAGE_OFFSET);
}

/* ---- the second look: taking out what indexes have forgotten ---- */

/* A page before `from` is about to be free: the next VACUUM has to come to it even when this one does not end. */
static void
log_vacuum_come_back(LogVacuum *vacuum, BlockNumber block)
{
	Buffer meta = log_space_lock_meta(vacuum->rel);
	GenericXLogState *state = GenericXLogStart(vacuum->rel);

	log_space_note_work(GenericXLogRegisterBuffer(state, meta, 0), block);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(meta);
	vacuum->from = block;
}

static void
log_vacuum_free_overflow(LogVacuum *vacuum, BlockNumber block, TransactionId writer)
{
	while (block != InvalidBlockNumber)
	{
		Buffer buffer;
		BlockNumber next = InvalidBlockNumber;

		vacuum_delay_point();
		if (block < vacuum->from)
			log_vacuum_come_back(vacuum, block);
		buffer = log_space_read(vacuum->rel, block, vacuum->strategy);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		/* Of a writer who has failed since the page may be another row's by now. */
		if (log_space_is(buffer, LOG_PAGE_OVERFLOW) && log_special(BufferGetPage(buffer))->overflow.writer == writer)
		{
			next = log_special(BufferGetPage(buffer))->overflow.next;
			log_vacuum_free_page(vacuum, buffer);
		}
		UnlockReleaseBuffer(buffer);
		STOP_POINT("vacuum-overflow");
		block = next;
	}
}

/* The dead rows of the page, as long as they are the ones that were remembered: ndead of them. */
static int
log_vacuum_dead_rows(Page page, BlockNumber *overflow, TransactionId *writers, int *noverflow)
{
	int ndead = 0;
	LogWalk walk;

	*noverflow = 0;
	log_walk_begin(&walk, page);
	while (log_walk_next(&walk))
	{
		if (log_row_deleter(walk.row.tag) != LOG_DEAD)
			continue;
		ndead++;
		if ((walk.row.tag & LOG_ROW_OVERFLOW) && log_load32(walk.row.body) != InvalidBlockNumber)
		{
			writers[*noverflow] = walk.run.xid;
			overflow[(*noverflow)++] = log_load32(walk.row.body);
		}
	}
	return ndead;
}

static void
log_vacuum_clean_locked(LogVacuum *vacuum, Buffer buffer, int ndead, bool whole)
{
	BlockNumber block = BufferGetBlockNumber(buffer), overflow[LOG_MAX_ROWS];
	TransactionId writers[LOG_MAX_ROWS];
	int noverflow;
	Page page;

	/* Rows may have been marked dead since, whose index entries are there. */
	if (!log_space_is(buffer, LOG_PAGE_DATA) ||
		log_vacuum_dead_rows(BufferGetPage(buffer), overflow, writers, &noverflow) != ndead)
	{
		log_vacuum_leave(vacuum, block);
		UnlockReleaseBuffer(buffer);
		return;
	}
	if (whole)
		log_vacuum_free_page(vacuum, buffer);
	else
	{
		GenericXLogState *state = GenericXLogStart(vacuum->rel);

		page = GenericXLogRegisterBuffer(state, buffer, 0);
		log_page_compact(page);
		log_special(page)->closed = 0;
		GenericXLogFinish(state);
		page = BufferGetPage(buffer);
		if (block != vacuum->tail && log_page_room(page) >= LOG_RECYCLE_BYTES)
			log_vacuum_record_free(vacuum, block, log_page_room(page));
		else
			log_vacuum_leave(vacuum, block);
	}
	UnlockReleaseBuffer(buffer);
	vacuum->removed += ndead;
	/* The row is gone first: a crash in between loses pages until the next rewrite, and never takes others'. Whoever
	 * cancels VACUUM has to wait. */
	STOP_POINT("vacuum-clean");
	HOLD_INTERRUPTS();
	for (int i = 0; i < noverflow; i++)
		log_vacuum_free_overflow(vacuum, overflow[i], writers[i]);
	RESUME_INTERRUPTS();
}

static void
log_vacuum_clean_page(LogVacuum *vacuum, BlockNumber block, int ndead, bool whole)
{
	Buffer buffer = log_space_read(vacuum->rel, block, vacuum->strategy);

	vacuum_delay_point();
	if (ConditionalLockBufferForCleanup(buffer))
	{
		log_vacuum_clean_locked(vacuum, buffer, ndead, whole);
		return;
	}
	ReleaseBuffer(buffer);
	log_vacuum_leave(vacuum, block);
	vacuum->not_cleaned++;
}

/* Deletes the index entries of the remembered TIDs, then the rows themselves. */
static void
log_vacuum_dead(LogVacuum *vacuum)
{
	VacDeadItems *dead = vacuum->dead;
	int i = 0;

	if (dead->num_items == 0)
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	for (int index = 0; index < vacuum->nindexes; index++)
	{
		IndexVacuumInfo info = {.index = vacuum->indexes[index],
								.report_progress = false,
								.estimated_count = true,
								.message_level = DEBUG2,
								.num_heap_tuples = vacuum->rel->rd_rel->reltuples,
								.strategy = vacuum->strategy};

		vacuum->results[index] = vac_bulkdel_one_index(&info, vacuum->results[index], dead);
	}
	STOP_POINT("vacuum-index");
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
	while (i < dead->num_items)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&dead->items[i]);
		bool whole = false;
		int ndead = 0;

		for (; i < dead->num_items && ItemPointerGetBlockNumber(&dead->items[i]) == block; i++)
		{
			if (ItemPointerGetOffsetNumber(&dead->items[i]) == LOG_PAGE_OFFSET)
				whole = true;
			else
				ndead++;
		}
		log_vacuum_clean_page(vacuum, block, ndead, whole);
	}
	dead->num_items = 0;
	vacuum->index_scans++;
}

/* ---- over all pages ---- */

static void
log_vacuum_page(LogVacuum *vacuum, BlockNumber block)
{
	Buffer buffer = log_space_read(vacuum->rel, block, vacuum->strategy);
	Page page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	vacuum->scanned++;
	if (PageIsNew(page))
		log_vacuum_new_page(vacuum, buffer);
	else
		switch (log_special(page)->kind)
		{
			case LOG_PAGE_DATA:
				log_vacuum_data_page(vacuum, buffer);
				break;
			case LOG_PAGE_OVERFLOW:
				log_vacuum_overflow_page(vacuum, buffer);
				break;
			case LOG_PAGE_FREE:
				log_vacuum_record_free(vacuum, block, LOG_FREE_BYTES);
				break;
			default:
				log_space_damaged(vacuum->rel, block, "it is of the wrong kind");
		}
	UnlockReleaseBuffer(buffer);
}

static void
log_vacuum_scan(LogVacuum *vacuum)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_VACUUM_TOTAL_HEAP_BLKS, vacuum->used);
	for (BlockNumber block = vacuum->from; block < vacuum->used; block++)
	{
		vacuum_delay_point();
		if (vacuum->dead->max_items - vacuum->dead->num_items <= LOG_PAGE_OFFSET)
		{
			log_vacuum_dead(vacuum);
			pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_SCAN_HEAP);
		}
		vacuum->page_rows = 0;
		log_vacuum_page(vacuum, block);
		if (block < vacuum->unfinished)
		{
			vacuum->settled += vacuum->page_rows;
			vacuum->settled_end = block + 1;
		}
		pgstat_progress_update_param(PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block + 1);
	}
	log_vacuum_dead(vacuum);
}

/* ---- the metapage ---- */

/* From now on deletions below the end are noted apart, so that none is missed. */
static void
log_vacuum_start_meta(LogVacuum *vacuum)
{
	LogMeta meta;
	Buffer buffer;
	GenericXLogState *state;

	if (!log_space_meta(vacuum->rel, &meta))
	{
		vacuum->exact = true;
		return;
	}
	buffer = log_space_lock_meta(vacuum->rel);
	meta = *log_meta(BufferGetPage(buffer));
	if (meta.deleted_from != meta.used)
	{
		state = GenericXLogStart(vacuum->rel);
		log_meta(GenericXLogRegisterBuffer(state, buffer, 0))->deleted_from = meta.used;
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
log_vacuum_count_rows(LogVacuum *vacuum, BlockNumber block)
{
	Buffer buffer = log_space_read(vacuum->rel, block, vacuum->strategy);
	int rows = 0;
	LogWalk walk;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (log_space_is(buffer, LOG_PAGE_DATA))
	{
		log_walk_begin(&walk, BufferGetPage(buffer));
		while (log_walk_next(&walk))
			rows += log_row_deleter(walk.row.tag) != LOG_DEAD;
	}
	UnlockReleaseBuffer(buffer);
	return rows;
}

/* Pages that were passed, and have to be looked at again after all, are not settled. */
static void
log_vacuum_unsettle(LogVacuum *vacuum)
{
	if (vacuum->settled_end > vacuum->unfinished + LOG_RECOUNT_PAGES)
		vacuum->exact = false;
	while (vacuum->exact && vacuum->settled_end > vacuum->unfinished)
		vacuum->settled -= Min(vacuum->settled, log_vacuum_count_rows(vacuum, --vacuum->settled_end));
}

static void
log_vacuum_end_meta(LogVacuum *vacuum)
{
	Buffer buffer;
	GenericXLogState *state;
	LogMeta meta, *image;

	if (vacuum->used == 0)
		return;
	buffer = log_space_lock_meta(vacuum->rel);
	meta = *log_meta(BufferGetPage(buffer));
	meta.work_from = Min(vacuum->unfinished, meta.deleted_from);
	meta.settled_end = vacuum->exact && vacuum->settled_end <= meta.work_from ? vacuum->settled_end : 1;
	meta.settled_rows = meta.settled_end > 1 ? vacuum->settled : 0;
	if (memcmp(&meta, log_meta(BufferGetPage(buffer)), sizeof(meta)) != 0)
	{
		state = GenericXLogStart(vacuum->rel);
		image = log_meta(GenericXLogRegisterBuffer(state, buffer, 0));
		*image = meta;
		GenericXLogFinish(state);
	}
	UnlockReleaseBuffer(buffer);
}

/* Exact when the rows of the blocks that were passed over are known. */
static double
log_vacuum_rows(LogVacuum *vacuum, uint64 rows_before)
{
	if (vacuum->exact)
		return rows_before + vacuum->live;
	return vac_estimate_reltuples(vacuum->rel, vacuum->used, vacuum->scanned, vacuum->live);
}

/* ---- cutting the file ---- */

/* The first block of the free ones at the end. */
static BlockNumber
log_vacuum_used_end(LogVacuum *vacuum)
{
	BlockNumber end = vacuum->used;

	for (; end > 1; end--)
	{
		Buffer buffer = log_space_read(vacuum->rel, end - 1, vacuum->strategy);
		bool free;

		vacuum_delay_point();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		free = log_space_is(buffer, LOG_PAGE_FREE);
		UnlockReleaseBuffer(buffer);
		if (!free)
			break;
	}
	return end;
}

static void
log_vacuum_cut_locked(LogVacuum *vacuum)
{
	Buffer buffer = log_space_lock_meta(vacuum->rel);
	GenericXLogState *state;
	BlockNumber end;
	LogMeta *meta;

	vacuum->used = Min(log_meta(BufferGetPage(buffer))->used, RelationGetNumberOfBlocks(vacuum->rel));
	UnlockReleaseBuffer(buffer);
	end = log_vacuum_used_end(vacuum);
	buffer = log_space_lock_meta(vacuum->rel);
	state = GenericXLogStart(vacuum->rel);
	meta = log_meta(GenericXLogRegisterBuffer(state, buffer, 0));
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
log_vacuum_truncate(LogVacuum *vacuum)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(vacuum->rel), free;

	if (vacuum->params->truncate == VACOPTVALUE_DISABLED || vacuum->used == 0)
		return;
	free = blocks - log_vacuum_used_end(vacuum);
	if (free == 0 || (free < LOG_TRUNCATE_PAGES && free < blocks / LOG_TRUNCATE_FRACTION))
		return;
	if (!ConditionalLockRelation(vacuum->rel, AccessExclusiveLock))
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_TRUNCATE);
	log_vacuum_cut_locked(vacuum);
	UnlockRelation(vacuum->rel, AccessExclusiveLock);
}

/* ---- beginning and end ---- */

static void
log_vacuum_limits(LogVacuum *vacuum)
{
	TransactionId freeze_limit;
	MultiXactId multi_cutoff;

	(void) vacuum_set_xid_limits(vacuum->rel, vacuum->params->freeze_min_age, vacuum->params->freeze_table_age,
								 vacuum->params->multixact_freeze_min_age, vacuum->params->multixact_freeze_table_age,
								 &vacuum->oldest_xmin, &vacuum->new_min_multi, &freeze_limit, &multi_cutoff);
	vacuum->new_frozen_xid = vacuum->oldest_xmin;
	vacuum->freeze_before = vacuum->oldest_xmin;
	if (vacuum->params->freeze_min_age == 0)
		return;
	/* Early, so that pages are done with, but not so early that standbys have readers that would have to go. */
	vacuum->freeze_before -= LOG_FREEZE_LAG;
	if (!TransactionIdIsNormal(vacuum->freeze_before) ||
		TransactionIdPrecedes(vacuum->oldest_xmin, vacuum->freeze_before))
		vacuum->freeze_before = FirstNormalTransactionId;
	if (TransactionIdPrecedes(vacuum->freeze_before, freeze_limit))
		vacuum->freeze_before = freeze_limit;
}

static void
log_vacuum_make_dead(LogVacuum *vacuum)
{
	Size items = (Size) maintenance_work_mem * 1024 / sizeof(ItemPointerData);
	int max_items;

	items = Min(items, (Size) vacuum->used * (LOG_MAX_ROWS + 1));
	max_items = (int) Max(Min(items, MaxAllocSize / sizeof(ItemPointerData) / 2), 2 * (LOG_MAX_ROWS + 1));
	vacuum->dead = palloc(sizeof(VacDeadItems) + sizeof(ItemPointerData) * max_items);
	vacuum->dead->max_items = max_items;
	vacuum->dead->num_items = 0;
}

static void
log_vacuum_finish_indexes(LogVacuum *vacuum, double tuples)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_INDEX_CLEANUP);
	for (int i = 0; i < vacuum->nindexes && vacuum->clean_indexes; i++)
	{
		IndexVacuumInfo info = {.index = vacuum->indexes[i],
								.report_progress = false,
								.estimated_count = !vacuum->exact,
								.message_level = DEBUG2,
								.num_heap_tuples = tuples,
								.strategy = vacuum->strategy};

		vacuum->results[i] = vac_cleanup_one_index(&info, vacuum->results[i]);
		if (vacuum->results[i] != NULL && !vacuum->results[i]->estimated_count)
			vac_update_relstats(vacuum->indexes[i], vacuum->results[i]->num_pages, vacuum->results[i]->num_index_tuples,
								0, false, InvalidTransactionId, InvalidMultiXactId, NULL, NULL, false);
	}
	vac_close_indexes(vacuum->nindexes, vacuum->indexes, NoLock);
}

static void
log_vacuum_report(LogVacuum *vacuum, BlockNumber blocks, double tuples)
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
log_vacuum(Relation rel, VacuumParams *params, BufferAccessStrategy strategy)
{
	LogVacuum vacuum = {.rel = rel, .params = params, .strategy = strategy, .tail = InvalidBlockNumber};
	BlockNumber blocks;
	uint64 rows_before;
	double tuples;

	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
	log_vacuum_limits(&vacuum);
	vac_open_indexes(rel, RowExclusiveLock, &vacuum.nindexes, &vacuum.indexes);
	vacuum.results = palloc0(sizeof(IndexBulkDeleteResult *) * (vacuum.nindexes + 1));
	vacuum.clean_indexes = params->index_cleanup != VACOPTVALUE_DISABLED;
	/* Before the size is looked at: pages that come later have younger xids only. */
	log_vacuum_start_meta(&vacuum);
	log_vacuum_make_dead(&vacuum);
	rows_before = vacuum.settled;
	log_vacuum_scan(&vacuum);
	tuples = log_vacuum_rows(&vacuum, rows_before);
	log_vacuum_unsettle(&vacuum);
	log_vacuum_finish_indexes(&vacuum, tuples);
	FreeSpaceMapVacuum(rel);
	CacheInvalidateRelcache(rel); /* others may remember that there is no map: log_space.c */
	STOP_POINT("vacuum-end");
	log_vacuum_end_meta(&vacuum);
	log_vacuum_truncate(&vacuum);

	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
	blocks = RelationGetNumberOfBlocks(rel);
	vac_update_relstats(rel, blocks, tuples, 0, vacuum.nindexes > 0, vacuum.new_frozen_xid, vacuum.new_min_multi, NULL,
						NULL, false);
	pgstat_report_vacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, Max(tuples, 0), 0);
	log_vacuum_report(&vacuum, blocks, tuples);
	pgstat_progress_end_command();
}
