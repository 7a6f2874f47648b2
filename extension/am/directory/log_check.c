/*
 * log_check.c - verifies every page and record of a table.
 *
 * Each page is read once: header, special space, the stream of records, the check of each row with its overflow pages,
 * ids of transactions, and that the row decodes to as many columns as it says. Rows of a directory's table are looked
 * up in it. In the end pages of long rows must all have been met. A page that cannot be read (its checksum is wrong)
 * and a row that cannot be decoded raise errors, which are reported as well: subtransactions survive them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "am/directory/log_check.h"
#include "am/directory/log_directory.h"
#include "am/page/log_row.h"
#include "am/page/log_space.h"
#include "am/page/log_visibility.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

typedef struct LogCheck
{
	Relation rel;
	LogReportFn report;
	void *arg;
	BlockNumber blocks;
	LogMeta meta;
	TransactionId oldest_xmin, next_xid;
	Relation directory; /* NULL: the table has none */
	TupleTableSlot *slot;
	bool no_meta;  /* block 0 is new */
	uint8 *met;	   /* bit of each overflow page that a row has */
	uint8 *orphan; /* ... and that some row should have */
	PGAlignedBlock copy;
	BlockNumber block; /* of the page that is copied */
	LogWalk walk;	   /* its rows */
	uint16 run;		   /* position of the run whose transaction id has been checked */
	bool run_is_wrong; /* the run's transaction id is damaged: whether it committed is unknown */
} LogCheck;

static void
log_check_tell(LogCheck *check, OffsetNumber offset, const char *what)
{
	check->report(check->arg, check->block, offset, what);
}

/* ---- errors ---- */

/* False when work(check, arg) has met damaged data; *why says what. */
static bool
log_check_try(LogCheck *check, void (*work)(LogCheck *check, void *arg), void *arg, char **why)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool ok = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(check, arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (error->sqlerrcode != ERRCODE_DATA_CORRUPTED)
			ReThrowError(error);
		*why = pstrdup(error->message);
		FreeErrorData(error);
		ok = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ok;
}

/* ---- reading ---- */

typedef struct LogCopy
{
	BlockNumber block;
	char *to;
} LogCopy;

static void
log_check_copy(LogCheck *check, void *arg)
{
	LogCopy *copy = arg;
	Buffer buffer = ReadBuffer(check->rel, copy->block);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy->to, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/* False when the page cannot be read; *why says so. */
static bool
log_check_read(LogCheck *check, BlockNumber block, char *copy, char **why)
{
	return log_check_try(check, log_check_copy, &(LogCopy){block, copy}, why);
}

/* ---- transactions ---- */

/* NULL when the id may stand in the table. */
static const char *
log_check_xid(LogCheck *check, TransactionId xid)
{
	if (xid == FrozenTransactionId)
		return NULL;
	if (!TransactionIdIsNormal(xid))
		return "a transaction id is not valid";
	if (TransactionIdFollowsOrEquals(xid, check->next_xid) &&
		TransactionIdFollowsOrEquals(xid, ReadNextTransactionId()))
		return "a transaction id is in the future";
	if (TransactionIdIsNormal(check->rel->rd_rel->relfrozenxid) &&
		TransactionIdPrecedes(xid, check->rel->rd_rel->relfrozenxid))
		return "a transaction id is older than relfrozenxid and is not frozen";
	return NULL;
}

/* ---- long rows ---- */

/* Adds the bytes of the overflow pages to the check sum; false when they are not there. */
static bool
log_check_overflow(LogCheck *check, OffsetNumber offset, BlockNumber block, Size size, pg_crc32c *crc)
{
	PGAlignedBlock part;

	while (size > 0)
	{
		PageHeader header = (PageHeader) part.data;
		char *why = NULL;
		Size bytes;

		CHECK_FOR_INTERRUPTS();
		if (block == 0 || block >= check->blocks)
		{
			log_check_tell(check, offset, "the row goes on in a block that does not exist");
			return false;
		}
		if (!log_check_read(check, block, part.data, &why) || PageIsNew(part.data) ||
			log_page_damage(part.data, block) != NULL || log_special(part.data)->kind != LOG_PAGE_OVERFLOW)
		{
			log_check_tell(check, offset,
						   psprintf("the row goes on in block %u, which is not a page of a long row", block));
			return false;
		}
		bytes = header->pd_lower - SizeOfPageHeaderData;
		if (bytes == 0 || bytes > size || (check->met[block / 8] & (1 << block % 8)))
		{
			log_check_tell(check, offset, psprintf("the row goes on in block %u, which is another row's", block));
			return false;
		}
		COMP_CRC32C(*crc, PageGetContents(part.data), bytes);
		check->met[block / 8] |= 1 << block % 8;
		block = log_special(part.data)->overflow.next;
		size -= bytes;
	}
	if (block != InvalidBlockNumber)
	{
		log_check_tell(check, offset, "the row has more pages than bytes");
		return false;
	}
	return true;
}

/* The row's bytes, here and in overflow pages, against its check. */
static bool
log_check_bytes(LogCheck *check, const LogWalk *walk)
{
	const LogRow *row = &walk->row;
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, row->body, row->length);
	if (row->tag & LOG_ROW_OVERFLOW)
	{
		uint64 size;
		const uint8 *front = log_read_varint(row->body + 4, &size);
		Size here = row->body + row->length - front;

		if (front > row->body + row->length || size < here || size > MaxAllocSize)
		{
			log_check_tell(check, row->offset, "the length of the row is wrong");
			return false;
		}
		if (!log_check_overflow(check, row->offset, log_load32(row->body), size - here, &crc))
			return false;
	}
	FIN_CRC32C(crc);
	if (log_check_fold(crc) != row->check)
	{
		log_check_tell(check, row->offset, "the bytes of the row have changed");
		return false;
	}
	return true;
}

/* ---- rows ---- */

static void
log_check_columns(LogCheck *check, const LogWalk *walk)
{
	LogSource source = {check->copy.data, check->block, InvalidBuffer};
	LogSlot *slot = (LogSlot *) check->slot;

	log_slot_store(check->slot, check->rel, &source, walk);
	if (slot->natts > RelationGetDescr(check->rel)->natts)
		log_check_tell(check, walk->row.offset, "the row has more columns than the table");
	else
	{
		slot_getallattrs(check->slot);
		if (slot->natts == RelationGetDescr(check->rel)->natts && slot->next != slot->end)
			log_check_tell(check, walk->row.offset, "the row does not end with its last column");
	}
}

static void
log_check_directory(LogCheck *check, const LogWalk *walk)
{
	TransactionId xid;
	bool isnull[2];
	int64 key, position;

	if (check->directory == NULL || log_row_state(walk, check->oldest_xmin, &xid) != LOG_STATE_LIVE)
		return;
	key = DatumGetInt64(slot_getattr(check->slot, check->directory->rd_index->indkey.values[0], &isnull[0]));
	position = DatumGetInt64(slot_getattr(check->slot, check->directory->rd_index->indkey.values[1], &isnull[1]));
	if (isnull[0] || isnull[1] || !log_directory_has(check->directory, key, position, check->block))
		log_check_tell(check, walk->row.offset,
					   psprintf("index \"%s\" does not lead to the row", RelationGetRelationName(check->directory)));
}

static void
log_check_row(LogCheck *check, const LogWalk *walk)
{
	int deleter = log_row_deleter(walk->row.tag);
	bool wrong = check->run_is_wrong;
	const char *what;

	/* Nobody reads it, and VACUUM does not follow its pages: it frees them as it meets them, and may have ended before
	 * it came to the row. They can be another row's by now. */
	if ((walk->row.tag & LOG_ROW_OVERFLOW) && !wrong && log_run_has_failed(&walk->run))
		return;
	if (deleter == LOG_DEAD)
	{
		/* Nobody reads it; VACUUM will follow its pages. */
		if (walk->row.tag & LOG_ROW_OVERFLOW)
			(void) log_check_bytes(check, walk);
		return;
	}
	if (deleter > LOG_DELETERS || (deleter > 0 && !TransactionIdIsValid(log_row_deleted_by(walk).xid)))
		log_check_tell(check, walk->row.offset, "the row names a deleter that is not there");
	else if (deleter > 0 && (what = log_check_xid(check, log_row_deleted_by(walk).xid)) != NULL)
	{
		log_check_tell(check, walk->row.offset, what);
		wrong = true;
	}
	if (!log_check_bytes(check, walk))
		return;
	log_check_columns(check, walk);
	if (!wrong)
		log_check_directory(check, walk);
	ExecClearTuple(check->slot);
}

/* ---- pages ---- */

static void
log_check_run(LogCheck *check, const LogWalk *walk)
{
	const char *what = walk->run.frozen ? NULL : log_check_xid(check, walk->run.xid);

	if (what != NULL)
		log_check_tell(check, walk->row.offset, what);
	if (!walk->run.frozen && check->block < check->meta.work_from)
		log_check_tell(check, walk->row.offset, "VACUUM will not come to the row, which is not frozen");
	check->run_is_wrong = what != NULL;
	check->run = walk->run.pos;
}

/* The rows of the page that have not been looked at. */
static void
log_check_rows(LogCheck *check, void *unused)
{
	LogWalk *walk = &check->walk;

	while (log_walk_next(walk))
	{
		CHECK_FOR_INTERRUPTS();
		if (walk->run.pos != check->run)
			log_check_run(check, walk);
		log_check_row(check, walk);
	}
}

static void
log_check_data_page(LogCheck *check)
{
	char *why = NULL;

	check->run = 0;
	log_walk_begin(&check->walk, check->copy.data);
	while (!log_check_try(check, log_check_rows, NULL, &why))
		log_check_tell(check, check->walk.row.offset, why);
	if (check->walk.damage != NULL)
		log_check_tell(check, check->walk.offset + 1, check->walk.damage);
}

static void
log_check_overflow_page(LogCheck *check)
{
	LogSpecial *special = log_special(check->copy.data);
	bool frozen = special->frozen_end != 0;
	const char *what = frozen ? NULL : log_check_xid(check, special->overflow.writer);

	if (what != NULL)
		log_check_tell(check, InvalidOffsetNumber, what);
	else if (frozen || special->overflow.writer == FrozenTransactionId ||
			 (TransactionIdPrecedes(special->overflow.writer, check->oldest_xmin) &&
			  TransactionIdDidCommit(special->overflow.writer)))
		check->orphan[check->block / 8] |= 1 << check->block % 8;
}

static void
log_check_meta_page(LogCheck *check)
{
	check->meta = *log_meta(check->copy.data);
	if (check->meta.used > RelationGetNumberOfBlocks(check->rel) ||
		(check->meta.tail != InvalidBlockNumber && check->meta.tail >= check->meta.used))
		log_check_tell(check, InvalidOffsetNumber, "the metapage names blocks that do not exist");
}

static void
log_check_page(LogCheck *check, BlockNumber block)
{
	const char *what;
	char *why = NULL;

	check->block = block;
	if (!log_check_read(check, block, check->copy.data, &why))
	{
		log_check_tell(check, InvalidOffsetNumber, why);
		return;
	}
	if (PageIsNew(check->copy.data))
	{
		check->no_meta |= block == 0; /* no damage if a crash ended the first writer: all other blocks are new, too */
		return;
	}
	if (check->no_meta)
	{
		check->report(check->arg, 0, InvalidOffsetNumber, "the metapage is missing");
		check->no_meta = false;
	}
	what = log_page_damage(check->copy.data, block);
	if (what != NULL)
	{
		log_check_tell(check, InvalidOffsetNumber, what);
		return;
	}
	switch (log_special(check->copy.data)->kind)
	{
		case LOG_PAGE_META:
			log_check_meta_page(check);
			break;
		case LOG_PAGE_DATA:
			log_check_data_page(check);
			break;
		case LOG_PAGE_OVERFLOW:
			log_check_overflow_page(check);
			break;
		default:
			break;
	}
}

/* ---- all of it ---- */

static Relation
log_check_open_directory(Relation rel)
{
	List *list = RelationGetIndexList(rel);
	Relation directory = NULL;
	ListCell *cell;

	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (directory == NULL && log_directory_is(index) && index->rd_index->indisvalid &&
			index->rd_index->indkey.values[0] > 0 && index->rd_index->indkey.values[1] > 0)
			directory = index;
		else
			index_close(index, AccessShareLock);
	}
	list_free(list);
	return directory;
}

void
log_verify(Relation rel, LogReportFn report, void *arg)
{
	LogCheck check = {.rel = rel, .report = report, .arg = arg};

	check.blocks = RelationGetNumberOfBlocks(rel);
	check.oldest_xmin = GetOldestNonRemovableTransactionId(rel);
	check.next_xid = ReadNextTransactionId();
	check.directory = log_check_open_directory(rel);
	check.slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &LogSlotOps);
	check.met = palloc0(check.blocks / 8 + 1);
	check.orphan = palloc0(check.blocks / 8 + 1);
	for (BlockNumber block = 0; block < check.blocks; block++)
		log_check_page(&check, block);
	for (BlockNumber block = 0; block < check.blocks; block++)
		if ((check.orphan[block / 8] & ~check.met[block / 8]) & (1 << block % 8))
			report(arg, block, InvalidOffsetNumber, "the page belongs to no row");
	ExecDropSingleTupleTableSlot(check.slot);
	if (check.directory != NULL)
		index_close(check.directory, AccessShareLock);
}
