/*
 * log_vacuum_page.c - VACUUM's first look at a page; see log_vacuum.c.
 */
#include "postgres.h"

#include "access/transam.h"
#include "am/page/log_standby.h"
#include "am/vacuum/log_vacuum.h"
#include "am/page/log_visibility.h"
#include "support/stoppoint.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"

void
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

bool
log_vacuum_has_room(Page page)
{
	return log_page_room(page) >= LOG_RECYCLE_BYTES && LOG_MAX_ROWS - log_page_rows(page) >= LOG_RECYCLE_ROWS;
}

void
log_vacuum_record_free(LogVacuum *vacuum, BlockNumber block, Size bytes)
{
	RecordPageWithFreeSpace(vacuum->rel, block, bytes);
	log_vacuum_leave(vacuum, block);
}

void
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
	LogRowState state = log_row_state(walk, vacuum->oldest_xmin, &xid);
	int deleter = log_row_deleter(walk->row.tag);

	if (state == LOG_STATE_DEAD)
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
	if (!walk->run.frozen && (state == LOG_STATE_INSERTING || walk->run.speculative ||
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
	if (deleter != 0 && state != LOG_STATE_LIVE)
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

	if (!TransactionIdIsValid(vacuum->standby_xid) ||
		(TransactionIdIsValid(found->newest) && TransactionIdFollows(found->newest, vacuum->standby_xid)))
	{
		log_standby_conflict(vacuum->rel, found->newest);
		vacuum->standby_xid = found->newest;
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
	LogDeadRows *dead = vacuum->dead;

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
	bool settled, has_room, close;

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
	has_room = block == vacuum->tail || log_vacuum_has_room(page);
	close = found.nlive == 0 || (settled && !has_room);
	log_vacuum_change_page(vacuum, buffer, &found, close);
	STOP_POINT("vacuum-mark");
	vacuum->live += found.nlive;
	vacuum->page_rows = found.nlive;
	log_vacuum_keep_xid(vacuum, found.oldest);
	if (!settled || block == vacuum->tail)
		log_vacuum_leave(vacuum, block);
	else if (has_room)
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

/* ---- any page ---- */

void
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
