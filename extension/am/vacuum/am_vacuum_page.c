/*
 * am_vacuum_page.c - VACUUM's first look at a page; see am_vacuum.c.
 */
#include "postgres.h"

#include "access/transam.h"
#include "am/page/am_standby.h"
#include "am/vacuum/am_vacuum.h"
#include "am/page/am_visibility.h"
#include "support/stoppoint.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"

void
am_vacuum_leave(AmVacuum *vacuum, BlockNumber block)
{
	vacuum->unfinished = Min(vacuum->unfinished, block);
}

/* The table keeps this xid. */
static void
am_vacuum_keep_xid(AmVacuum *vacuum, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) && TransactionIdIsValid(vacuum->new_frozen_xid) &&
		TransactionIdPrecedes(xid, vacuum->new_frozen_xid))
		vacuum->new_frozen_xid = xid;
}

bool
am_vacuum_has_room(Page page)
{
	return am_page_room(page) >= AM_RECYCLE_BYTES && AM_MAX_ROWS - am_page_rows(page) >= AM_RECYCLE_ROWS;
}

void
am_vacuum_record_free(AmVacuum *vacuum, BlockNumber block, Size bytes)
{
	RecordPageWithFreeSpace(vacuum->rel, block, bytes);
	am_vacuum_leave(vacuum, block);
}

void
am_vacuum_free_page(AmVacuum *vacuum, Buffer buffer)
{
	GenericXLogState *state = GenericXLogStart(vacuum->rel);

	am_page_init(GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE), AM_PAGE_FREE);
	GenericXLogFinish(state);
	am_vacuum_record_free(vacuum, BufferGetBlockNumber(buffer), AM_FREE_BYTES);
	vacuum->freed++;
}

/* A reserved page that was never written: a crash or an error has come in between, unless somebody is about to write
 * it. */
static void
am_vacuum_new_page(AmVacuum *vacuum, Buffer buffer)
{
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!ConditionalLockPage(vacuum->rel, 0, ExclusiveLock))
	{
		am_vacuum_leave(vacuum, BufferGetBlockNumber(buffer));
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		return;
	}
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (PageIsNew(BufferGetPage(buffer)))
		am_vacuum_free_page(vacuum, buffer);
	UnlockPage(vacuum->rel, 0, ExclusiveLock);
}

static void
am_vacuum_overflow_page(AmVacuum *vacuum, Buffer buffer)
{
	AmSpecial *special = am_special(BufferGetPage(buffer));
	TransactionId writer = special->overflow.writer;
	GenericXLogState *state;

	if (special->frozen_end != 0)
		return;
	if (TransactionIdIsNormal(writer) && !TransactionIdIsInProgress(writer) && !TransactionIdDidCommit(writer))
	{
		am_vacuum_free_page(vacuum, buffer);
		STOP_POINT("vacuum-failed");
		return;
	}
	if (TransactionIdIsNormal(writer) && !TransactionIdPrecedes(writer, vacuum->freeze_before))
	{
		am_vacuum_keep_xid(vacuum, writer);
		am_vacuum_leave(vacuum, BufferGetBlockNumber(buffer));
		return;
	}
	state = GenericXLogStart(vacuum->rel);
	am_special(GenericXLogRegisterBuffer(state, buffer, 0))->frozen_end = 1;
	GenericXLogFinish(state);
}

/* Counts of VACUUM for a data page. */
typedef struct AmPageFindings
{
	int ndead; /* rows that are dead, marked or not */
	int nmark; /* of them, those that are not marked yet */
	int nlive;
	OffsetNumber dead[AM_MAX_ROWS];
	uint16 mark[AM_MAX_ROWS]; /* positions of their tags */
	int nforsaken;
	uint16 forsaken[AM_MAX_ROWS]; /* of dead rows whose overflow pages are freed by themselves */
	uint16 freezable_end;		  /* runs before it may be frozen */
	TransactionId oldest;		  /* of the xids that stay */
	TransactionId newest;		  /* of the transactions that are frozen, or whose deletions are carried out */
	bool deleter_needed[AM_DELETERS];
} AmPageFindings;

static void
am_find_keep(AmPageFindings *found, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(found->oldest) || TransactionIdPrecedes(xid, found->oldest)))
		found->oldest = xid;
}

static void
am_find_settle(AmPageFindings *found, TransactionId xid)
{
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(found->newest) || TransactionIdFollows(xid, found->newest)))
		found->newest = xid;
}

static void
am_find_row(AmVacuum *vacuum, const AmWalk *walk, AmPageFindings *found, bool *may_freeze)
{
	TransactionId xid;
	AmRowState state = am_row_state(walk, vacuum->oldest_xmin, &xid);
	int deleter = am_row_deleter(walk->row.tag);

	if (state == AM_STATE_DEAD)
	{
		if (deleter != AM_DEAD)
			found->mark[found->nmark++] = walk->row.pos;
		if (deleter != 0 && deleter != AM_DEAD)
			am_find_settle(found, am_row_deleted_by(walk).xid);
		if ((walk->row.tag & AM_ROW_OVERFLOW) && am_run_has_failed(&walk->run))
			found->forsaken[found->nforsaken++] = walk->row.pos;
		found->dead[found->ndead++] = walk->row.offset;
		/* It may stay for a while: until then, the table has its xid. */
		if (!*may_freeze && !walk->run.frozen)
			am_find_keep(found, walk->run.xid);
		return;
	}
	found->nlive++;
	if (!walk->run.frozen && (state == AM_STATE_INSERTING || walk->run.speculative ||
							  !TransactionIdPrecedes(walk->run.xid, vacuum->freeze_before)))
	{
		if (*may_freeze)
			found->freezable_end = walk->run.pos;
		*may_freeze = false;
	}
	if (*may_freeze && !walk->run.frozen)
		am_find_settle(found, walk->run.xid);
	if (!*may_freeze && !walk->run.frozen)
		am_find_keep(found, walk->run.xid);
	if (deleter != 0 && state != AM_STATE_LIVE)
	{
		found->deleter_needed[deleter - 1] = true;
		am_find_keep(found, xid);
	}
}

static bool
am_find_in_page(AmVacuum *vacuum, Buffer buffer, AmPageFindings *found)
{
	Page page = BufferGetPage(buffer);
	bool may_freeze = true;
	AmWalk walk;

	memset(found, 0, sizeof(*found));
	am_walk_begin(&walk, page);
	while (am_walk_next(&walk))
		am_find_row(vacuum, &walk, found, &may_freeze);
	if (may_freeze)
		found->freezable_end = walk.run.pos == 0 ? 0 : ((PageHeader) page)->pd_lower;
	return walk.damage == NULL;
}

/* Clears the deleters that no row needs, and the marks of those that have failed. */
static bool
am_vacuum_deleters(Page page, const AmPageFindings *found)
{
	AmDeleter *deleters = am_special(page)->deleters;
	bool changed = false;
	AmWalk walk;

	for (int i = 0; i < AM_DELETERS; i++)
		if (TransactionIdIsValid(deleters[i].xid) && !found->deleter_needed[i])
		{
			deleters[i] = (AmDeleter){InvalidTransactionId, 0};
			changed = true;
		}
	if (!changed)
		return false;
	am_walk_begin(&walk, page);
	while (am_walk_next(&walk))
	{
		int deleter = am_row_deleter(walk.row.tag);

		if (deleter > 0 && deleter <= AM_DELETERS && !found->deleter_needed[deleter - 1])
			*((uint8 *) page + walk.row.pos) &= ~AM_ROW_DELETER;
	}
	return true;
}

/* Marks, freezes, closes: one WAL record, when there is anything to change. */
static void
am_vacuum_change_page(AmVacuum *vacuum, Buffer buffer, const AmPageFindings *found, bool close)
{
	bool changed = found->nmark > 0 || found->nforsaken > 0;
	GenericXLogState *state;
	Page page;

	if (!TransactionIdIsValid(vacuum->standby_xid) ||
		(TransactionIdIsValid(found->newest) && TransactionIdFollows(found->newest, vacuum->standby_xid)))
	{
		am_standby_conflict(vacuum->rel, found->newest);
		vacuum->standby_xid = found->newest;
	}
	state = GenericXLogStart(vacuum->rel);
	page = GenericXLogRegisterBuffer(state, buffer, 0);
	for (int i = 0; i < found->nmark; i++)
		*((uint8 *) page + found->mark[i]) |= AM_ROW_DELETER;
	for (int i = 0; i < found->nforsaken; i++)
		*((uint8 *) page + found->forsaken[i]) &= ~AM_ROW_OVERFLOW;
	changed |= am_vacuum_deleters(page, found);
	if (found->freezable_end > am_special(page)->frozen_end)
	{
		am_special(page)->frozen_end = found->freezable_end;
		changed = true;
	}
	if (close && !am_special(page)->closed)
	{
		am_special(page)->closed = 1;
		changed = true;
	}
	if (changed)
		GenericXLogFinish(state);
	else
		GenericXLogAbort(state);
}

static void
am_vacuum_remember(AmVacuum *vacuum, BlockNumber block, OffsetNumber offset)
{
	AmDeadRows *dead = vacuum->dead;

	Assert(dead->num_items < dead->max_items);
	ItemPointerSet(&dead->items[dead->num_items], block, offset);
	dead->num_items++;
}

static bool
am_vacuum_all_frozen(Page page, const AmPageFindings *found)
{
	return Max(found->freezable_end, am_special(page)->frozen_end) >= ((PageHeader) page)->pd_lower;
}

static void
am_vacuum_data_page(AmVacuum *vacuum, Buffer buffer)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page page = BufferGetPage(buffer);
	AmPageFindings found;
	bool settled, has_room, close;

	if (!am_find_in_page(vacuum, buffer, &found))
	{
		ereport(WARNING, (errcode(ERRCODE_DATA_CORRUPTED),
						  errmsg("block %u of table \"%s\" is damaged and was left alone", block,
								 RelationGetRelationName(vacuum->rel)),
						  errhint("Check the table with sheet.am_check().")));
		am_vacuum_leave(vacuum, block);
		vacuum->new_frozen_xid = InvalidTransactionId;
		return;
	}
	settled = found.ndead == 0 && !TransactionIdIsValid(found.oldest) && am_vacuum_all_frozen(page, &found);
	has_room = block == vacuum->tail || am_vacuum_has_room(page);
	close = found.nlive == 0 || (settled && !has_room);
	am_vacuum_change_page(vacuum, buffer, &found, close);
	STOP_POINT("vacuum-mark");
	vacuum->live += found.nlive;
	vacuum->page_rows = found.nlive;
	am_vacuum_keep_xid(vacuum, found.oldest);
	if (!settled || block == vacuum->tail)
		am_vacuum_leave(vacuum, block);
	else if (has_room)
		am_vacuum_record_free(vacuum, block, am_page_room(page));
	if (!vacuum->clean_indexes)
	{
		if (found.ndead > 0)
			am_vacuum_leave(vacuum, block);
		return;
	}
	for (int i = 0; i < found.ndead; i++)
		am_vacuum_remember(vacuum, block, found.dead[i]);
	if (found.nlive == 0)
		am_vacuum_remember(vacuum, block, AM_PAGE_OFFSET);
}

/* ---- any page ---- */

void
am_vacuum_page(AmVacuum *vacuum, BlockNumber block)
{
	Buffer buffer = am_space_read(vacuum->rel, block, vacuum->strategy);
	Page page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	vacuum->scanned++;
	if (PageIsNew(page))
		am_vacuum_new_page(vacuum, buffer);
	else
		switch (am_special(page)->kind)
		{
			case AM_PAGE_DATA:
				am_vacuum_data_page(vacuum, buffer);
				break;
			case AM_PAGE_OVERFLOW:
				am_vacuum_overflow_page(vacuum, buffer);
				break;
			case AM_PAGE_FREE:
				am_vacuum_record_free(vacuum, block, AM_FREE_BYTES);
				break;
			default:
				am_space_damaged(vacuum->rel, block, "it is of the wrong kind");
		}
	UnlockReleaseBuffer(buffer);
}
