/*
 * log_vacuum_dead.c - VACUUM's second look: taking out what indexes have forgotten; see log_vacuum.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/progress.h"
#include "am/vacuum/log_vacuum.h"
#include "pgstat.h"
#include "support/stoppoint.h"

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

		compat_vacuum_delay_point();
		if (block < vacuum->from)
			log_vacuum_come_back(vacuum, block);
		buffer = log_space_read(vacuum->rel, block, vacuum->strategy);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		/* If the writer failed, the page may belong to another row by now. */
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
		if (block != vacuum->tail && log_vacuum_has_room(page))
			log_vacuum_record_free(vacuum, block, log_page_room(page));
		else
			log_vacuum_leave(vacuum, block);
	}
	UnlockReleaseBuffer(buffer);
	vacuum->removed += ndead;
	/* The row is removed before its pages: a crash in between leaks pages until the next rewrite, and never frees those
	 * of other rows. A cancellation of VACUUM waits. */
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

	compat_vacuum_delay_point();
	if (ConditionalLockBufferForCleanup(buffer))
	{
		log_vacuum_clean_locked(vacuum, buffer, ndead, whole);
		return;
	}
	ReleaseBuffer(buffer);
	log_vacuum_leave(vacuum, block);
	vacuum->not_cleaned++;
}

static int
log_vacuum_compare(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

static bool
log_vacuum_is_dead(ItemPointer tid, void *arg)
{
	const LogDeadRows *dead = arg;

	return bsearch(tid, dead->items, dead->num_items, sizeof(ItemPointerData), log_vacuum_compare) != NULL;
}

void
log_vacuum_dead(LogVacuum *vacuum)
{
	LogDeadRows *dead = vacuum->dead;
	int i = 0;

	if (dead->num_items == 0)
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	for (int index = 0; index < vacuum->nindexes; index++)
	{
		IndexVacuumInfo info = log_vacuum_index_info(vacuum, index, vacuum->rel->rd_rel->reltuples, true);

		vacuum->results[index] = index_bulk_delete(&info, vacuum->results[index], log_vacuum_is_dead, dead);
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
