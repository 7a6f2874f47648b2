/*
 * am_write.c - rows into pages.
 *
 * Everything that can fail or take long (fetching and compressing values, writing overflow pages) happens before a page
 * is locked. Under the lock a row is encoded against the page's BASE into memory, and copied behind the last one. All
 * rows of a call that fit a page are one WAL record.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "am/page/am_space.h"
#include "am/table/am_write.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "support/stoppoint.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* ---- long rows ---- */

static uint16
am_checksum_parts(const uint8 *front, Size front_size, const uint8 *rest, Size rest_size)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, front, front_size);
	COMP_CRC32C(crc, rest, rest_size);
	FIN_CRC32C(crc);
	return am_checksum_fold(crc);
}

/* How much of a long body stays on the page: what is left over by full overflow pages. */
static Size
am_front_size(Size size)
{
	Size front;

	if (size <= AM_MAX_INLINE - AM_ROW_HEAD_BOUND - sizeof(BlockNumber))
		return size;
	front = (size - AM_MIN_FRONT) % AM_OVERFLOW_BYTES + AM_MIN_FRONT;
	return front <= AM_MAX_INLINE / 2 ? front : AM_MIN_FRONT;
}

/* Encodes a row that may not fit a page, and writes its overflow pages. */
static void
am_encode_long(const AmWriter *writer, AmPrepared *row)
{
	uint8 *whole = MemoryContextAllocHuge(CurrentMemoryContext, row->bound + sizeof(uint64));
	Size size = am_encode_row(RelationGetDescr(writer->rel), row, NULL, 0, -1, whole, &row->flags) - whole;
	Size front = am_front_size(size);
	BlockNumber block = InvalidBlockNumber;
	uint8 *pos;

	if (front < size)
	{
		block = am_space_write_overflow(writer->rel, writer->xid, whole + front, size - front);
		STOP_POINT("am-overflow");
	}
	row->encoded = palloc(4 + 9 + front);
	pos = am_store(row->encoded, block, 4);
	pos = am_write_varint(pos, size);
	memcpy(pos, whole, front);
	row->length = pos + front - row->encoded;
	row->flags |= AM_ROW_OVERFLOW;
	row->check = am_checksum_parts(row->encoded, row->length, whole + front, size - front);
	row->least = row->length;
	pfree(whole);
}

/* ---- rows into a page ---- */

/*
 * The slot that a copied row's deleter gets; 0: none. AM_DEAD when there is no free one: then the row goes to the next
 * page. What is on this one stays as it is, since only what is new is logged.
 */
static uint8
am_copy_deleter(const AmWriter *writer, Page page)
{
	AmDeleter *deleters = am_special(page)->deleters;
	const AmDeleter *by = &writer->deleter;

	if (!TransactionIdIsValid(by->xid))
		return 0;
	for (int i = 0; i < AM_DELETERS; i++)
		if (deleters[i].xid == by->xid && deleters[i].cid == by->cid)
			return i + 1;
	for (int i = 0; i < AM_DELETERS; i++)
		if (!TransactionIdIsValid(deleters[i].xid))
		{
			deleters[i] = *by;
			return i + 1;
		}
	return AM_DEAD;
}

/* False when the page has no room for the row. */
static bool
am_put_row(const AmWriter *writer, AmAppend *append, AmPrepared *row, ItemPointerData *tid, BlockNumber block)
{
	TupleDesc desc = RelationGetDescr(writer->rel);
	uint8 scratch[AM_MAX_INLINE + sizeof(uint64)];
	const uint8 *body = row->encoded;
	uint32 length = row->length;
	uint16 check = row->check;
	uint8 flags = row->flags, deleter;
	bool begin_run = append->run_xid != writer->xid || append->run_cid != writer->cid || writer->token != 0;
	uint8 *end = (uint8 *) append->page + ((PageHeader) append->page)->pd_upper;

	if (append->rows >= AM_MAX_ROWS)
		return false;
	if (append->empty)
	{
		int64 base[AM_BASE_COLUMNS];
		int n = am_base_of(desc, row, base);

		am_append_base(append, writer->xid, row->natts, base, n);
		begin_run = true;
	}
	if (body == NULL)
	{
		length = am_encode_row(desc, row, append->base, append->nbase, append->natts, scratch, &flags) - scratch;
		body = scratch;
		check = am_checksum(body, length);
	}
	if (end - append->next < AM_ROW_HEAD_BOUND + length + (begin_run ? AM_RUN_BOUND : 0))
		return false;
	deleter = am_copy_deleter(writer, append->page);
	if (deleter == AM_DEAD)
		return false;
	if (begin_run)
		am_append_run(append, writer->xid, writer->cid, writer->token);
	ItemPointerSet(tid, block, InvalidOffsetNumber);
	tid->ip_posid = am_append_row(append, flags | deleter << AM_ROW_DELETER_POS, body, length, check);
	return true;
}

static void
am_appended(const AmWriter *writer, Buffer buffer, AmAppend *append)
{
	Page page = BufferGetPage(buffer);
	uint16 lower = ((PageHeader) page)->pd_lower;
	AmFragment fragments[3];
	XLogRecPtr lsn;

	START_CRIT_SECTION();
	am_append_end(append);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(writer->rel))
	{
		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		am_register_fragment(&fragments[0], page, offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex));
		am_register_fragment(&fragments[1], page, lower, ((PageHeader) page)->pd_lower - lower);
		if (TransactionIdIsValid(writer->deleter.xid))
			am_register_fragment(&fragments[2], page, ((PageHeader) page)->pd_special, sizeof(AmSpecial));
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
}

/* As many of the rows as the page takes; returns how many. They are written where nobody looks before pd_lower is
 * moved. */
static int
am_fill_page(const AmWriter *writer, Buffer buffer, AmPrepared *rows, int n, ItemPointerData *tids)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	AmAppend append;
	bool empty;
	int done = 0;

	if (!am_append_begin(&append, BufferGetPage(buffer)))
		am_space_damaged(writer->rel, block, "its records cannot be read");
	empty = append.empty;
	CheckForSerializableConflictIn(writer->rel, NULL, block);
	while (done < n && am_put_row(writer, &append, &rows[done], &tids[done], block))
		done++;
	STOP_POINT_NO_FAIL("am-row");
	if (done > 0)
		am_appended(writer, buffer, &append);
	else if (empty) /* no page ever would: rather an error than a file that grows without end */
		elog(ERROR, "a row of %u bytes does not fit an empty page of \"%s\"", (unsigned) rows->least,
			 RelationGetRelationName(writer->rel));
	return done;
}

void
am_write_rows(const AmWriter *writer, AmPrepared *rows, int n, ItemPointerData *tids)
{
	BlockNumber full = InvalidBlockNumber;
	int done = 0;

	CheckForSerializableConflictIn(writer->rel, NULL, InvalidBlockNumber);
	for (int i = 0; i < n; i++)
		if (rows[i].bound > AM_MAX_INLINE)
			am_encode_long(writer, &rows[i]);
	while (done < n)
	{
		Buffer buffer = am_space_tail(writer->rel, full, rows[done].least + AM_ROW_HEAD_BOUND);
		int written = am_fill_page(writer, buffer, rows + done, n - done, tids + done);

		full = written == 0 ? BufferGetBlockNumber(buffer) : InvalidBlockNumber;
		done += written;
		UnlockReleaseBuffer(buffer);
	}
}

/* ---- speculative insertion ---- */

void
am_settle_speculative(Relation rel, ItemPointer tid, bool stands)
{
	Buffer buffer = am_space_read(rel, ItemPointerGetBlockNumber(tid), NULL);
	GenericXLogState *state;
	Page page;
	AmWalk walk;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(rel);
	page = GenericXLogRegisterBuffer(state, buffer, 0);
	am_walk_begin(&walk, page);
	if (!am_walk_to(&walk, ItemPointerGetOffsetNumber(tid)) || !walk.run.speculative)
		elog(ERROR, "speculative row (%u,%u) is not there", ItemPointerGetBlockNumber(tid),
			 ItemPointerGetOffsetNumber(tid));
	if (stands)
	{
		/* The token is what stands right before the row. */
		memset((char *) page + walk.row.pos - 4, 0, 4);
	}
	else
		*((uint8 *) page + walk.row.pos) |= AM_ROW_DELETER;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}
