/*
 * am_space.c - see am_space.h.
 *
 * All writers of a relation append to one page, its tail, so that rows are stored in the order of their insertion. A
 * writer that finds the tail full opens the next page under the lock of the metapage: a page that VACUUM freed, or else
 * the first page that was never used. The file grows by several pages at a time.
 */
#include "postgres.h"

#include "compat.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "am/page/am_space.h"
#include "miscadmin.h"
#include "support/stoppoint.h"
#include "storage/freespace.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "utils/memutils.h"

#define AM_MAX_EXTENSION 64 /* pages by which the file grows at most at once */

void
am_space_damaged(Relation rel, BlockNumber block, const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("block %u of table \"%s\" is damaged", block, RelationGetRelationName(rel)),
					errdetail("%s.", what), errhint("Check the table with sheet.am_check().")));
}

/* ---- reading ---- */

/* A look without the lock may meet the page half initialised: only what the lock shows counts. */
static void
am_space_check(Relation rel, Buffer buffer)
{
	const char *damage = NULL;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (!PageIsNew(BufferGetPage(buffer)))
		damage = am_page_damage(BufferGetPage(buffer), BufferGetBlockNumber(buffer));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (damage != NULL)
		am_space_damaged(rel, BufferGetBlockNumber(buffer), damage);
}

Buffer
am_space_verified(Relation rel, Buffer buffer)
{
	Page page = BufferGetPage(buffer);

	if (likely(((PageHeader) page)->pd_special == BLCKSZ - MAXALIGN(sizeof(AmSpecial)) &&
			   ((PageHeader) page)->pd_lower <= ((PageHeader) page)->pd_special &&
			   am_special(page)->magic == AM_MAGIC && am_special(page)->version == AM_VERSION))
		return buffer;
	am_space_check(rel, buffer);
	return buffer;
}

Buffer
am_space_read(Relation rel, BlockNumber block, BufferAccessStrategy strategy)
{
	return am_space_verified(rel, ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy));
}

/* A session that remembers the relation's tail does not ask the file system. It forgets the tail when the file is
 * truncated. */
static bool
am_space_is_empty(Relation rel)
{
	return RelationGetTargetBlock(rel) == InvalidBlockNumber && RelationGetNumberOfBlocks(rel) == 0;
}

bool
am_space_meta(Relation rel, AmMeta *meta)
{
	Buffer buffer;
	bool found;

	if (am_space_is_empty(rel))
		return false;
	buffer = am_space_read(rel, 0, NULL);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = am_space_is(buffer, AM_PAGE_META);
	if (found)
		*meta = *am_meta(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return found;
}

/* ---- growing ---- */

/*
 * Extends the relation to `wanted` blocks, unless it has them. New pages are zeros, have their space on the disk, and
 * are not in a buffer yet. On an error it may have grown by a part.
 */
static void
am_extend(Relation rel, BlockNumber wanted)
{
	static const CompatBlock zeros;

	LockRelationForExtension(rel, ExclusiveLock);
	for (BlockNumber block = RelationGetNumberOfBlocks(rel); block < wanted; block++)
		smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, block, (char *) zeros.data, false);
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/* Makes sure that blocks before `end` are there; a large relation grows ahead of its need. */
static void
am_space_grow(Relation rel, BlockNumber end)
{
	BlockNumber ahead = Min(end / 16, AM_MAX_EXTENSION - 1);

	if (end <= RelationGetNumberOfBlocks(rel))
		return;
	if (end > MaxBlockNumber - AM_MAX_EXTENSION)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("table \"%s\" has reached its largest size", RelationGetRelationName(rel))));
	am_extend(rel, end + ahead);
}

/* A page that nobody has used, locked, to be written as a whole: what the file has there is not read. */
static Buffer
am_space_unused(Relation rel, BlockNumber block)
{
	return ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
}

Buffer
am_space_lock_meta(Relation rel)
{
	Buffer buffer;

	if (am_space_is_empty(rel))
		am_extend(rel, 1);
	buffer = am_space_read(rel, 0, NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (PageIsNew(BufferGetPage(buffer)))
	{
		GenericXLogState *state = GenericXLogStart(rel);

		am_page_init(GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE), AM_PAGE_META);
		GenericXLogFinish(state);
	}
	else if (am_special(BufferGetPage(buffer))->kind != AM_PAGE_META)
		am_space_damaged(rel, 0, "it is not a metapage");
	return buffer;
}

/* ---- free pages ---- */

#define AM_MAP_PATIENCE 64

/*
 * Whether the relation has a free space map. While it has none PostgreSQL asks the file system each time, which costs a
 * long row more than its own pages. So that is remembered till VACUUM tells the relation cache that there is a map; a
 * VACUUM that was cancelled does not, so the question is asked again now and then.
 */
static bool
am_space_has_map(Relation rel)
{
	int *asked = rel->rd_amcache;

	if (asked != NULL && ++*asked % AM_MAP_PATIENCE != 0)
		return false;
	if (smgrexists(RelationGetSmgr(rel), FSM_FORKNUM))
		return true;
	if (asked == NULL)
		rel->rd_amcache = MemoryContextAllocZero(CacheMemoryContext, sizeof(int));
	return false;
}

/* ---- the tail ---- */

/* Whether a row number is free as well shows when a row is put in. */
static bool
am_tail_has_room(Page page, Size need)
{
	return !(PageIsNew(page) || am_special(page)->kind != AM_PAGE_DATA || am_special(page)->closed ||
			 am_page_room(page) < need);
}

/* A page that VACUUM has freed, or for the tail one that has room for `need` bytes. Returns it locked, InvalidBuffer if
 * there is none. */
static Buffer
am_space_recycled(Relation rel, BlockNumber used, Size need, bool tail)
{
	BlockNumber block = am_space_has_map(rel) ? GetPageWithFreeSpace(rel, need) : InvalidBlockNumber;

	while (block != InvalidBlockNumber)
	{
		if (block > 0 && block < used)
		{
			Buffer buffer = am_space_read(rel, block, NULL);

			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			if (am_space_is(buffer, AM_PAGE_FREE) || (tail && am_tail_has_room(BufferGetPage(buffer), need)))
			{
				RecordPageWithFreeSpace(rel, block, 0);
				return buffer;
			}
			UnlockReleaseBuffer(buffer);
		}
		block = RecordAndGetPageWithFreeSpace(rel, block, 0, need);
	}
	return InvalidBuffer;
}

/* Makes another page the tail; the metapage is locked. Returns the page, locked. */
static Buffer
am_tail_open(Relation rel, Buffer metabuffer, Size need)
{
	AmMeta *old = am_meta(BufferGetPage(metabuffer));
	Buffer buffer = am_space_recycled(rel, old->used, Max(need, AM_RECYCLE_BYTES), true);
	GenericXLogState *state;
	AmMeta *meta;
	BlockNumber block;

	if (BufferIsInvalid(buffer))
	{
		am_space_grow(rel, old->used + 1);
		buffer = am_space_unused(rel, old->used);
	}
	block = BufferGetBlockNumber(buffer);
	STOP_POINT_NO_FAIL("am-tail");
	state = GenericXLogStart(rel);
	meta = am_meta(GenericXLogRegisterBuffer(state, metabuffer, 0));
	meta->tail = block;
	meta->used = Max(meta->used, block + 1);
	if (!am_space_is(buffer, AM_PAGE_DATA))
		am_page_init(GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE), AM_PAGE_DATA);
	GenericXLogFinish(state);
	return buffer;
}

/* The tail as this backend knows it, or as the metapage says. */
static BlockNumber
am_tail_block(Relation rel, BlockNumber full)
{
	BlockNumber block = RelationGetTargetBlock(rel);
	AmMeta meta;

	if (block != InvalidBlockNumber && block != full)
		return block;
	return am_space_meta(rel, &meta) && meta.tail != full ? meta.tail : InvalidBlockNumber;
}

Buffer
am_space_tail(Relation rel, BlockNumber full, Size need)
{
	for (;;)
	{
		BlockNumber block = am_tail_block(rel, full);
		Buffer meta, buffer;

		if (block != InvalidBlockNumber)
		{
			buffer = am_space_read(rel, block, NULL);
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			RelationSetTargetBlock(rel, block);
			if (am_tail_has_room(BufferGetPage(buffer), need))
				return buffer;
			UnlockReleaseBuffer(buffer);
			full = block;
		}
		meta = am_space_lock_meta(rel);
		block = am_meta(BufferGetPage(meta))->tail;
		if (block == InvalidBlockNumber || block == full)
		{
			buffer = am_tail_open(rel, meta, need);
			RelationSetTargetBlock(rel, BufferGetBlockNumber(buffer));
			UnlockReleaseBuffer(meta);
			return buffer;
		}
		UnlockReleaseBuffer(meta);
		RelationSetTargetBlock(rel, block);
	}
}

Buffer
am_space_lock_for_work(Relation rel, Buffer buffer)
{
	Buffer metabuffer = am_space_lock_meta(rel);
	AmMeta *meta = am_meta(BufferGetPage(metabuffer));
	BlockNumber block = BufferGetBlockNumber(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (block < meta->work_from || block < meta->deleted_from)
		return metabuffer;
	UnlockReleaseBuffer(metabuffer);
	return InvalidBuffer;
}

/* ---- overflow pages ---- */

/* Logged as a whole by PostgreSQL's record for new pages, which copies less than a generic one. */
static void
am_overflow_write(Relation rel, Buffer buffer, TransactionId xid, const uint8 *bytes, Size size, BlockNumber next)
{
	Page page = BufferGetPage(buffer);

	START_CRIT_SECTION();
	am_page_init(page, AM_PAGE_OVERFLOW);
	memcpy(PageGetContents(page), bytes, size);
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData + size;
	am_special(page)->overflow.writer = xid;
	am_special(page)->overflow.next = next;
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
}

/* Notes on the metapage, which is locked, that blocks before `used` are not free any more. */
static void
am_meta_set_used(Relation rel, Buffer buffer, BlockNumber used)
{
	Page page = BufferGetPage(buffer);
	AmMeta *meta = am_meta(page);
	AmFragment fragment;
	XLogRecPtr lsn;

	START_CRIT_SECTION();
	meta->used = used;
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
	{
		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		am_register_fragment(&fragment, page, (char *) &meta->used - (char *) page, sizeof(meta->used));
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
}

/*
 * Makes n blocks that nobody has used ours, and writes the last one; returns the first. The last one is written before
 * the metapage tells of them, so that on a standby, too, the file has all blocks that the metapage names.
 */
static BlockNumber
am_overflow_reserve(Relation rel, uint32 n, TransactionId xid, const uint8 *bytes, Size size, BlockNumber next)
{
	Buffer meta = am_space_lock_meta(rel), last;
	BlockNumber first = am_meta(BufferGetPage(meta))->used;

	am_space_grow(rel, first + n);
	last = am_space_unused(rel, first + n - 1);
	am_overflow_write(rel, last, xid, bytes, size, next);
	UnlockReleaseBuffer(last);
	am_meta_set_used(rel, meta, first + n);
	UnlockReleaseBuffer(meta);
	return first;
}

/*
 * The pages are written from the last to the first, each naming the next. Free pages are used first. New ones are
 * reserved at once and written afterwards: until then they look unused, so VACUUM is kept from them by a lock on block
 * 0.
 */
BlockNumber
am_space_write_overflow(Relation rel, TransactionId xid, const uint8 *bytes, Size size)
{
	uint32 left = (size + AM_OVERFLOW_BYTES - 1) / AM_OVERFLOW_BYTES;
	BlockNumber next = InvalidBlockNumber, reserved = InvalidBlockNumber, used;
	AmMeta meta;

	LockPage(rel, 0, ShareLock);
	/* A file that was about to be cut when the server crashed has free pages behind the used ones. */
	used = am_space_meta(rel, &meta) ? meta.used : 0;
	for (; left > 0; left--)
	{
		Size from = (Size) (left - 1) * AM_OVERFLOW_BYTES, part = Min(size - from, AM_OVERFLOW_BYTES);
		Buffer buffer =
			reserved == InvalidBlockNumber ? am_space_recycled(rel, used, AM_FREE_BYTES, false) : InvalidBuffer;

		CHECK_FOR_INTERRUPTS();
		if (BufferIsInvalid(buffer) && reserved == InvalidBlockNumber)
		{
			reserved = am_overflow_reserve(rel, left, xid, bytes + from, part, next);
			next = reserved + left - 1;
			STOP_POINT("am-reserved");
			continue;
		}
		if (BufferIsInvalid(buffer))
			buffer = am_space_unused(rel, reserved + left - 1);
		am_overflow_write(rel, buffer, xid, bytes + from, part, next);
		next = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	UnlockPage(rel, 0, ShareLock);
	return next;
}

/* Copies what a locked page has of a row. */
static Size
am_overflow_part(Relation rel, Buffer buffer, uint8 *bytes, Size size)
{
	Page page = BufferGetPage(buffer);
	Size part = ((PageHeader) page)->pd_lower - SizeOfPageHeaderData;

	if (!am_space_is(buffer, AM_PAGE_OVERFLOW) || part > size || part == 0)
		am_space_damaged(rel, BufferGetBlockNumber(buffer), "it is not the page of a long row that it should be");
	memcpy(bytes, PageGetContents(page), part);
	return part;
}

void
am_space_read_overflow(Relation rel, BlockNumber block, uint8 *bytes, Size size)
{
	while (size > 0)
	{
		Buffer buffer;
		Size part;

		CHECK_FOR_INTERRUPTS();
		if (block == InvalidBlockNumber)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("a row of table \"%s\" does not end", RelationGetRelationName(rel)),
							errhint("Check the table with sheet.am_check().")));
		buffer = am_space_read(rel, block, NULL);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		part = am_overflow_part(rel, buffer, bytes, size);
		block = am_special(BufferGetPage(buffer))->overflow.next;
		UnlockReleaseBuffer(buffer);
		bytes += part;
		size -= part;
	}
}
