/*
 * am_verify.c - verifies every page and record of a table.
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
#include "am/directory/am_verify.h"
#include "am/directory/am_directory.h"
#include "am/page/am_row.h"
#include "am/page/am_space.h"
#include "am/page/am_visibility.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

typedef struct AmVerify
{
	Relation rel;
	AmReportFn report;
	void *arg;
	BlockNumber blocks;
	AmMeta meta;
	TransactionId oldest_xmin, next_xid;
	Relation directory; /* NULL: the table has none */
	TupleTableSlot *slot;
	bool no_meta;  /* block 0 is new */
	uint8 *met;	   /* bit of each overflow page that a row has */
	uint8 *orphan; /* ... and that some row should have */
	PGAlignedBlock copy;
	BlockNumber block; /* of the page that is copied */
	AmWalk walk;	   /* its rows */
	uint16 run;		   /* position of the run whose transaction id has been checked */
	bool run_is_wrong; /* the run's transaction id is damaged: whether it committed is unknown */
} AmVerify;

static void
am_verify_tell(AmVerify *check, OffsetNumber offset, const char *what)
{
	check->report(check->arg, check->block, offset, what);
}

/* ---- errors ---- */

/* False when work(check, arg) has met damaged data; *why says what. */
static bool
am_verify_try(AmVerify *check, void (*work)(AmVerify *check, void *arg), void *arg, char **why)
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

typedef struct AmCopy
{
	BlockNumber block;
	char *to;
} AmCopy;

static void
am_verify_copy(AmVerify *check, void *arg)
{
	AmCopy *copy = arg;
	Buffer buffer = ReadBuffer(check->rel, copy->block);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy->to, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/* False when the page cannot be read; *why says so. */
static bool
am_verify_read(AmVerify *check, BlockNumber block, char *copy, char **why)
{
	return am_verify_try(check, am_verify_copy, &(AmCopy){block, copy}, why);
}

/* ---- transactions ---- */

/* NULL when the id may stand in the table. */
static const char *
am_verify_xid(AmVerify *check, TransactionId xid)
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
am_verify_overflow(AmVerify *check, OffsetNumber offset, BlockNumber block, Size size, pg_crc32c *crc)
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
			am_verify_tell(check, offset, "the row goes on in a block that does not exist");
			return false;
		}
		if (!am_verify_read(check, block, part.data, &why) || PageIsNew(part.data) ||
			am_page_damage(part.data, block) != NULL || am_special(part.data)->kind != AM_PAGE_OVERFLOW)
		{
			am_verify_tell(check, offset,
						   psprintf("the row goes on in block %u, which is not a page of a long row", block));
			return false;
		}
		bytes = header->pd_lower - SizeOfPageHeaderData;
		if (bytes == 0 || bytes > size || (check->met[block / 8] & (1 << block % 8)))
		{
			am_verify_tell(check, offset, psprintf("the row goes on in block %u, which is another row's", block));
			return false;
		}
		COMP_CRC32C(*crc, PageGetContents(part.data), bytes);
		check->met[block / 8] |= 1 << block % 8;
		block = am_special(part.data)->overflow.next;
		size -= bytes;
	}
	if (block != InvalidBlockNumber)
	{
		am_verify_tell(check, offset, "the row has more pages than bytes");
		return false;
	}
	return true;
}

/* The row's bytes, here and in overflow pages, against its check. */
static bool
am_verify_bytes(AmVerify *check, const AmWalk *walk)
{
	const AmRow *row = &walk->row;
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, row->body, row->length);
	if (row->tag & AM_ROW_OVERFLOW)
	{
		uint64 size;
		const uint8 *front = am_read_varint(row->body + 4, &size);
		Size here = row->body + row->length - front;

		if (front > row->body + row->length || size < here || size > MaxAllocSize)
		{
			am_verify_tell(check, row->offset, "the length of the row is wrong");
			return false;
		}
		if (!am_verify_overflow(check, row->offset, am_load32(row->body), size - here, &crc))
			return false;
	}
	FIN_CRC32C(crc);
	if (am_checksum_fold(crc) != row->check)
	{
		am_verify_tell(check, row->offset, "the bytes of the row have changed");
		return false;
	}
	return true;
}

/* ---- rows ---- */

static void
am_verify_columns(AmVerify *check, const AmWalk *walk)
{
	AmSource source = {check->copy.data, check->block, InvalidBuffer};
	AmSlot *slot = (AmSlot *) check->slot;

	am_slot_store(check->slot, check->rel, &source, walk);
	if (slot->natts > RelationGetDescr(check->rel)->natts)
		am_verify_tell(check, walk->row.offset, "the row has more columns than the table");
	else
	{
		slot_getallattrs(check->slot);
		if (slot->natts == RelationGetDescr(check->rel)->natts && slot->next != slot->end)
			am_verify_tell(check, walk->row.offset, "the row does not end with its last column");
	}
}

static void
am_verify_directory(AmVerify *check, const AmWalk *walk)
{
	TransactionId xid;
	bool isnull[2];
	int64 key, position;

	if (check->directory == NULL || am_row_state(walk, check->oldest_xmin, &xid) != AM_STATE_LIVE)
		return;
	key = DatumGetInt64(slot_getattr(check->slot, check->directory->rd_index->indkey.values[0], &isnull[0]));
	position = DatumGetInt64(slot_getattr(check->slot, check->directory->rd_index->indkey.values[1], &isnull[1]));
	if (isnull[0] || isnull[1] || !am_directory_has(check->directory, key, position, check->block))
		am_verify_tell(check, walk->row.offset,
					   psprintf("index \"%s\" does not lead to the row", RelationGetRelationName(check->directory)));
}

static void
am_verify_row(AmVerify *check, const AmWalk *walk)
{
	int deleter = am_row_deleter(walk->row.tag);
	bool wrong = check->run_is_wrong;
	const char *what;

	/* Nobody reads it, and VACUUM does not follow its pages: it frees them as it meets them, and may have ended before
	 * it came to the row. They can be another row's by now. */
	if ((walk->row.tag & AM_ROW_OVERFLOW) && !wrong && am_run_has_failed(&walk->run))
		return;
	if (deleter == AM_DEAD)
	{
		/* Nobody reads it; VACUUM will follow its pages. */
		if (walk->row.tag & AM_ROW_OVERFLOW)
			(void) am_verify_bytes(check, walk);
		return;
	}
	if (deleter > AM_DELETERS || (deleter > 0 && !TransactionIdIsValid(am_row_deleted_by(walk).xid)))
		am_verify_tell(check, walk->row.offset, "the row names a deleter that is not there");
	else if (deleter > 0 && (what = am_verify_xid(check, am_row_deleted_by(walk).xid)) != NULL)
	{
		am_verify_tell(check, walk->row.offset, what);
		wrong = true;
	}
	if (!am_verify_bytes(check, walk))
		return;
	am_verify_columns(check, walk);
	if (!wrong)
		am_verify_directory(check, walk);
	ExecClearTuple(check->slot);
}

/* ---- pages ---- */

static void
am_verify_run(AmVerify *check, const AmWalk *walk)
{
	const char *what = walk->run.frozen ? NULL : am_verify_xid(check, walk->run.xid);

	if (what != NULL)
		am_verify_tell(check, walk->row.offset, what);
	if (!walk->run.frozen && check->block < check->meta.work_from)
		am_verify_tell(check, walk->row.offset, "VACUUM will not come to the row, which is not frozen");
	check->run_is_wrong = what != NULL;
	check->run = walk->run.pos;
}

/* The rows of the page that have not been looked at. */
static void
am_verify_rows(AmVerify *check, void *unused)
{
	AmWalk *walk = &check->walk;

	while (am_walk_next(walk))
	{
		CHECK_FOR_INTERRUPTS();
		if (walk->run.pos != check->run)
			am_verify_run(check, walk);
		am_verify_row(check, walk);
	}
}

static void
am_verify_data_page(AmVerify *check)
{
	char *why = NULL;

	check->run = 0;
	am_walk_begin(&check->walk, check->copy.data);
	while (!am_verify_try(check, am_verify_rows, NULL, &why))
		am_verify_tell(check, check->walk.row.offset, why);
	if (check->walk.damage != NULL)
		am_verify_tell(check, check->walk.offset + 1, check->walk.damage);
}

static void
am_verify_overflow_page(AmVerify *check)
{
	AmSpecial *special = am_special(check->copy.data);
	bool frozen = special->frozen_end != 0;
	const char *what = frozen ? NULL : am_verify_xid(check, special->overflow.writer);

	if (what != NULL)
		am_verify_tell(check, InvalidOffsetNumber, what);
	else if (frozen || special->overflow.writer == FrozenTransactionId ||
			 (TransactionIdPrecedes(special->overflow.writer, check->oldest_xmin) &&
			  TransactionIdDidCommit(special->overflow.writer)))
		check->orphan[check->block / 8] |= 1 << check->block % 8;
}

static void
am_verify_meta_page(AmVerify *check)
{
	check->meta = *am_meta(check->copy.data);
	if (check->meta.used > RelationGetNumberOfBlocks(check->rel) ||
		(check->meta.tail != InvalidBlockNumber && check->meta.tail >= check->meta.used))
		am_verify_tell(check, InvalidOffsetNumber, "the metapage names blocks that do not exist");
}

static void
am_verify_page(AmVerify *check, BlockNumber block)
{
	const char *what;
	char *why = NULL;

	check->block = block;
	if (!am_verify_read(check, block, check->copy.data, &why))
	{
		am_verify_tell(check, InvalidOffsetNumber, why);
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
	what = am_page_damage(check->copy.data, block);
	if (what != NULL)
	{
		am_verify_tell(check, InvalidOffsetNumber, what);
		return;
	}
	switch (am_special(check->copy.data)->kind)
	{
		case AM_PAGE_META:
			am_verify_meta_page(check);
			break;
		case AM_PAGE_DATA:
			am_verify_data_page(check);
			break;
		case AM_PAGE_OVERFLOW:
			am_verify_overflow_page(check);
			break;
		default:
			break;
	}
}

/* ---- all of it ---- */

static Relation
am_verify_open_directory(Relation rel)
{
	List *list = RelationGetIndexList(rel);
	Relation directory = NULL;
	ListCell *cell;

	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (directory == NULL && am_directory_is(index) && index->rd_index->indisvalid &&
			index->rd_index->indkey.values[0] > 0 && index->rd_index->indkey.values[1] > 0)
			directory = index;
		else
			index_close(index, AccessShareLock);
	}
	list_free(list);
	return directory;
}

void
am_verify(Relation rel, AmReportFn report, void *arg)
{
	AmVerify check = {.rel = rel, .report = report, .arg = arg};

	check.blocks = RelationGetNumberOfBlocks(rel);
	check.oldest_xmin = GetOldestNonRemovableTransactionId(rel);
	check.next_xid = ReadNextTransactionId();
	check.directory = am_verify_open_directory(rel);
	check.slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &AmSlotOps);
	check.met = palloc0(check.blocks / 8 + 1);
	check.orphan = palloc0(check.blocks / 8 + 1);
	for (BlockNumber block = 0; block < check.blocks; block++)
		am_verify_page(&check, block);
	for (BlockNumber block = 0; block < check.blocks; block++)
		if ((check.orphan[block / 8] & ~check.met[block / 8]) & (1 << block % 8))
			report(arg, block, InvalidOffsetNumber, "the page belongs to no row");
	ExecDropSingleTupleTableSlot(check.slot);
	if (check.directory != NULL)
		index_close(check.directory, AccessShareLock);
}
