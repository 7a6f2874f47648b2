/*
 * am_space.h - blocks: the metapage, the page that takes new rows, new and recycled pages, overflow pages.
 *
 * Lock order: heavyweight page lock on block 0 (allocation of overflow pages) -> buffer lock of block 0 -> buffer lock
 * of one other page. Nobody holds buffer locks of two data pages.
 */
#ifndef AM_SPACE_H
#define AM_SPACE_H

#include "postgres.h"
#include "access/generic_xlog.h"
#include "access/xloginsert.h"
#include "am/page/am_page.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* A free page is recorded in the free space map with this size, its highest category, and requested by it. */
#define AM_FREE_BYTES	 MaxHeapTupleSize
#define AM_RECYCLE_BYTES (AM_PAGE_BYTES / 4) /* room that makes a page worth going back to */
#define AM_RECYCLE_ROWS	 (AM_MAX_ROWS / 4)	 /* row numbers that it must have, too */

/* Reads a page and checks that it is one of ours; a page that was never written comes back as it is. Not locked. */
extern Buffer am_space_read(Relation rel, BlockNumber block, BufferAccessStrategy strategy);
/* Checks a page that has been read, in the same way. Returns its buffer. */
extern Buffer am_space_verified(Relation rel, Buffer buffer);
/* Has the page been written? (Of a locked buffer.) */
static inline bool
am_space_is(Buffer buffer, AmPageKind kind)
{
	Page page = BufferGetPage(buffer);

	return !PageIsNew(page) && am_special(page)->kind == kind;
}

/* The metapage's contents; false when the relation is empty. */
extern bool am_space_meta(Relation rel, AmMeta *meta);

/* Locks the metapage exclusively; it is made when the relation is empty. Release with UnlockReleaseBuffer. */
extern Buffer am_space_lock_meta(Relation rel);

/* The page that takes new rows, exclusively locked. full: a page that turned out to have no room; need: bytes of a row
 * with everything around it. */
extern Buffer am_space_tail(Relation rel, BlockNumber full, Size need);

/* Writes bytes to overflow pages; returns the first. The transaction's id is the pages' writer. */
extern BlockNumber am_space_write_overflow(Relation rel, TransactionId xid, const uint8 *bytes, Size size);
/* Reads them from the first on. */
extern void am_space_read_overflow(Relation rel, BlockNumber block, uint8 *bytes, Size size);

/* Locks the page exclusively. Returns the metapage, locked as well, when it has to be changed so that VACUUM comes to
 * the page (am_space_note_work); InvalidBuffer when VACUUM will: it cannot have passed the page since. */
extern Buffer am_space_lock_for_work(Relation rel, Buffer buffer);
/* On the metapage's image. */
static inline void
am_space_note_work(Page meta, BlockNumber block)
{
	am_meta(meta)->work_from = Min(am_meta(meta)->work_from, block);
	am_meta(meta)->deleted_from = Min(am_meta(meta)->deleted_from, block);
}

/* ---- generic WAL records that are built by hand ---- */

/* The caller knows what has changed on a page, so the page need not be copied and compared byte by byte, as
 * GenericXLogFinish() does. Redo is the same. */

/* A part of a page in a record: offset, length, bytes (see access/transam/generic_xlog.c). */
typedef struct AmFragment
{
	OffsetNumber head[2];
} AmFragment;

/* Of the page that is registered as the record's first one; the fragment lives until the record is inserted. */
static inline void
am_register_fragment(AmFragment *fragment, Page page, uint16 offset, uint16 length)
{
	fragment->head[0] = offset;
	fragment->head[1] = length;
	XLogRegisterBufData(0, (char *) fragment->head, sizeof(fragment->head));
	XLogRegisterBufData(0, (char *) page + offset, length);
}

/* Raises ERRCODE_DATA_CORRUPTED with the block's number. */
_Noreturn extern void am_space_damaged(Relation rel, BlockNumber block, const char *what);

#endif
