/*
 * am_vacuum_dead.c - VACUUM's second look: taking out what indexes have forgotten; see am_vacuum.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "commands/progress.h"
#include "am/vacuum/am_vacuum.h"
#include "pgstat.h"
#include "support/stoppoint.h"

/* A page before `from` is about to be free: the next VACUUM has to come to it even when this one does not end. */
static void
am_vacuum_come_back(AmVacuum *vacuum, BlockNumber block)
{
	Buffer meta = am_space_lock_meta(vacuum->rel);
	GenericXLogState *state = GenericXLogStart(vacuum->rel);

	am_space_note_work(GenericXLogRegisterBuffer(state, meta, 0), block);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(meta);
	vacuum->from = block;
}

static void
am_vacuum_free_overflow(AmVacuum *vacuum, BlockNumber block, TransactionId writer)
{
	while (block != InvalidBlockNumber)
	{
		Buffer buffer;
		BlockNumber next = InvalidBlockNumber;

		compat_vacuum_delay_point();
		if (block < vacuum->from)
			am_vacuum_come_back(vacuum, block);
		buffer = am_space_read(vacuum->rel, block, vacuum->strategy);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		/* If the writer failed, the page may belong to another row by now. */
		if (am_space_is(buffer, AM_PAGE_OVERFLOW) && am_special(BufferGetPage(buffer))->overflow.writer == writer)
		{
			next = am_special(BufferGetPage(buffer))->overflow.next;
			am_vacuum_free_page(vacuum, buffer);
		}
		UnlockReleaseBuffer(buffer);
		STOP_POINT("vacuum-overflow");
		block = next;
	}
}

/* The dead rows of the page, as long as they are the ones that were remembered: ndead of them. */
static int
am_vacuum_dead_rows(Page page, BlockNumber *overflow, TransactionId *writers, int *noverflow)
{
	int ndead = 0;
	AmWalk walk;

	*noverflow = 0;
	am_walk_begin(&walk, page);
	while (am_walk_next(&walk))
	{
		if (am_row_deleter(walk.row.tag) != AM_DEAD)
			continue;
		ndead++;
		if ((walk.row.tag & AM_ROW_OVERFLOW) && am_load32(walk.row.body) != InvalidBlockNumber)
		{
			writers[*noverflow] = walk.run.xid;
			overflow[(*noverflow)++] = am_load32(walk.row.body);
		}
	}
	return ndead;
}

static void
am_vacuum_clean_locked(AmVacuum *vacuum, Buffer buffer, int ndead, bool whole)
{
	BlockNumber block = BufferGetBlockNumber(buffer), overflow[AM_MAX_ROWS];
	TransactionId writers[AM_MAX_ROWS];
	int noverflow;
	Page page;

	/* Rows may have been marked dead since, whose index entries are there. */
	if (!am_space_is(buffer, AM_PAGE_DATA) ||
		am_vacuum_dead_rows(BufferGetPage(buffer), overflow, writers, &noverflow) != ndead)
	{
		am_vacuum_leave(vacuum, block);
		UnlockReleaseBuffer(buffer);
		return;
	}
	if (whole)
		am_vacuum_free_page(vacuum, buffer);
	else
	{
		GenericXLogState *state = GenericXLogStart(vacuum->rel);

		page = GenericXLogRegisterBuffer(state, buffer, 0);
		am_page_compact(page);
		am_special(page)->closed = 0;
		GenericXLogFinish(state);
		page = BufferGetPage(buffer);
		if (block != vacuum->tail && am_vacuum_has_room(page))
			am_vacuum_record_free(vacuum, block, am_page_room(page));
		else
			am_vacuum_leave(vacuum, block);
	}
	UnlockReleaseBuffer(buffer);
	vacuum->removed += ndead;
	/* The row is removed before its pages: a crash in between leaks pages until the next rewrite, and never frees those
	 * of other rows. A cancellation of VACUUM waits. */
	STOP_POINT("vacuum-clean");
	HOLD_INTERRUPTS();
	for (int i = 0; i < noverflow; i++)
		am_vacuum_free_overflow(vacuum, overflow[i], writers[i]);
	RESUME_INTERRUPTS();
}

static void
am_vacuum_clean_page(AmVacuum *vacuum, BlockNumber block, int ndead, bool whole)
{
	Buffer buffer = am_space_read(vacuum->rel, block, vacuum->strategy);

	compat_vacuum_delay_point();
	if (ConditionalLockBufferForCleanup(buffer))
	{
		am_vacuum_clean_locked(vacuum, buffer, ndead, whole);
		return;
	}
	ReleaseBuffer(buffer);
	am_vacuum_leave(vacuum, block);
	vacuum->not_cleaned++;
}

static int
am_vacuum_compare(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

static bool
am_vacuum_is_dead(ItemPointer tid, void *arg)
{
	const AmDeadRows *dead = arg;

	return bsearch(tid, dead->items, dead->num_items, sizeof(ItemPointerData), am_vacuum_compare) != NULL;
}

void
am_vacuum_dead(AmVacuum *vacuum)
{
	AmDeadRows *dead = vacuum->dead;
	int i = 0;

	if (dead->num_items == 0)
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE, PROGRESS_VACUUM_PHASE_VACUUM_INDEX);
	for (int index = 0; index < vacuum->nindexes; index++)
	{
		IndexVacuumInfo info = am_vacuum_index_info(vacuum, index, vacuum->rel->rd_rel->reltuples, true);

		vacuum->results[index] = index_bulk_delete(&info, vacuum->results[index], am_vacuum_is_dead, dead);
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
			if (ItemPointerGetOffsetNumber(&dead->items[i]) == AM_PAGE_OFFSET)
				whole = true;
			else
				ndead++;
		}
		am_vacuum_clean_page(vacuum, block, ndead, whole);
	}
	dead->num_items = 0;
	vacuum->index_scans++;
}
