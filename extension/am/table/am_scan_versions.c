/*
 * am_scan_versions.c - what of scans differs between PostgreSQL 15 to 18: read streams, bitmap scans, ANALYZE.
 *
 * A read stream reads several pages at once, ahead of the scan; there are none until 16. Of a bitmap, the executor
 * hands over each page until 17, and prefetches it. In 18 the scan takes the pages from the bitmap's iterator by a read
 * stream. ANALYZE hands over a block number until 16, and a read stream from 17 on.
 */
#include "postgres.h"

#include "am/page/am_space.h"
#include "am/table/am_scan.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/predicate.h"
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif

/* ---- streams ---- */

#if PG_VERSION_NUM >= 180000
#define SCAN_STREAM_FLAGS READ_STREAM_USE_BATCHING
#else
#define SCAN_STREAM_FLAGS 0
#endif

#if PG_VERSION_NUM >= 170000

static BlockNumber
am_scan_stream_block(ReadStream *stream, void *arg, void *page_data)
{
	BlockNumber block;

	return am_scan_next_block(arg, &block) ? block : InvalidBlockNumber;
}

#if PG_VERSION_NUM >= 180000

static BlockNumber
am_scan_bitmap_block(ReadStream *stream, void *arg, void *page_data)
{
	AmScan *scan = arg;
	TBMIterateResult *page = page_data;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!tbm_iterate(&scan->base.st.rs_tbmiterator, page))
			return InvalidBlockNumber;
	} while (page->blockno >= scan->nblocks);
	return page->blockno;
}

#endif

#endif

void
am_scan_begin_pages(AmScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->base.rs_flags & (SO_TYPE_SEQSCAN | SO_TYPE_TIDRANGESCAN))
		scan->stream = read_stream_begin_relation(READ_STREAM_SEQUENTIAL | SCAN_STREAM_FLAGS, scan->strategy,
												  scan->base.rs_rd, MAIN_FORKNUM, am_scan_stream_block, scan, 0);
#endif
#if PG_VERSION_NUM >= 180000
	if (scan->base.rs_flags & SO_TYPE_BITMAPSCAN)
		scan->stream =
			read_stream_begin_relation(READ_STREAM_DEFAULT | SCAN_STREAM_FLAGS, scan->strategy, scan->base.rs_rd,
									   MAIN_FORKNUM, am_scan_bitmap_block, scan, sizeof(TBMIterateResult));
#endif
}

void
am_scan_end_pages(AmScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
		read_stream_end(scan->stream);
	scan->stream = NULL;
#endif
}

void
am_scan_reset_pages(AmScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
		read_stream_reset(scan->stream);
#endif
}

Buffer
am_scan_next_buffer(AmScan *scan)
{
	BlockNumber block;

#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
	{
		Buffer buffer = read_stream_next_buffer(scan->stream, NULL);

		return BufferIsValid(buffer) ? am_space_verified(scan->base.rs_rd, buffer) : InvalidBuffer;
	}
#endif
	return am_scan_next_block(scan, &block) ? am_space_read(scan->base.rs_rd, block, scan->strategy) : InvalidBuffer;
}

/* ---- bitmaps ---- */

/* The row numbers of a page that the bitmap has; count < 0: all. */
typedef struct BitmapRows
{
	const OffsetNumber *offsets;
	int count;
} BitmapRows;

/* Locks before the page is read, so that no writer comes in between. A directory has no entry for a new row of the
 * page. */
static void
am_scan_lock_bitmap(TableScanDesc sscan, BlockNumber block, const BitmapRows *rows)
{
	ItemPointerData tid;

	if (rows->count < 0)
		PredicateLockPage(sscan->rs_rd, block, sscan->rs_snapshot);
	for (int i = 0; i < rows->count; i++)
	{
		ItemPointerSet(&tid, block, rows->offsets[i]);
		PredicateLockTID(sscan->rs_rd, &tid, sscan->rs_snapshot, InvalidTransactionId);
	}
}

/* Of the visible rows, keeps those that the bitmap has; both are sorted. */
static void
am_scan_keep_offsets(AmScan *scan, const BitmapRows *rows)
{
	int n = 0, t = 0;

	for (int i = 0; i < scan->nrows; i++)
	{
		while (t < rows->count && rows->offsets[t] < scan->rows[i].offset)
			t++;
		if (t < rows->count && rows->offsets[t] == scan->rows[i].offset)
			scan->rows[n++] = scan->rows[i];
	}
	scan->nrows = n;
}

/* Takes over the pinned buffer. */
static void
am_scan_read_bitmap(AmScan *scan, Buffer buffer, const BitmapRows *rows)
{
	am_scan_read_page(scan, buffer);
	if (rows->count >= 0)
		am_scan_keep_offsets(scan, rows);
	scan->current = -1;
}

#if PG_VERSION_NUM >= 180000

/* Reads the next page that has rows. Returns false at the end. */
static bool
am_scan_bitmap_next_page(AmScan *scan, bool *recheck, uint64 *lossy_pages, uint64 *exact_pages)
{
	do
	{
		OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE];
		BitmapRows rows = {offsets, -1};
		TBMIterateResult *page;
		void *page_data;
		Buffer buffer = read_stream_next_buffer(scan->stream, &page_data);

		am_scan_release_page(scan);
		if (!BufferIsValid(buffer))
			return false;
		page = page_data;
		if (!page->lossy)
			rows.count = tbm_extract_page_tuple(page, offsets, TBM_MAX_TUPLES_PER_PAGE);
		*recheck = page->recheck;
		*(page->lossy ? lossy_pages : exact_pages) += 1;
		am_scan_lock_bitmap(&scan->base, page->blockno, &rows);
		am_scan_read_bitmap(scan, am_space_verified(scan->base.rs_rd, buffer), &rows);
	} while (scan->nrows == 0);
	scan->current = 0;
	return true;
}

bool
am_scan_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot, bool *recheck, uint64 *lossy_pages,
						  uint64 *exact_pages)
{
	AmScan *scan = (AmScan *) sscan;

	if (++scan->current >= scan->nrows && !am_scan_bitmap_next_page(scan, recheck, lossy_pages, exact_pages))
		return false;
	am_scan_store(scan, slot, scan->current);
	pgstat_count_heap_fetch(sscan->rs_rd);
	return true;
}

#else

bool
am_scan_bitmap_next_block(TableScanDesc sscan, TBMIterateResult *page)
{
	AmScan *scan = (AmScan *) sscan;
	BitmapRows rows = {page->offsets, page->ntuples};

	if (page->blockno >= scan->nblocks)
		return false;
	am_scan_lock_bitmap(sscan, page->blockno, &rows);
	am_scan_read_bitmap(scan, am_space_read(sscan->rs_rd, page->blockno, scan->strategy), &rows);
	return scan->nrows > 0;
}

bool
am_scan_bitmap_next_tuple(TableScanDesc sscan, TBMIterateResult *page, TupleTableSlot *slot)
{
	AmScan *scan = (AmScan *) sscan;

	if (++scan->current >= scan->nrows)
		return false;
	am_scan_store(scan, slot, scan->current);
	pgstat_count_heap_fetch(sscan->rs_rd);
	return true;
}

#endif

/* ---- ANALYZE ---- */

#if PG_VERSION_NUM >= 170000

bool
am_scan_analyze_next_block(TableScanDesc sscan, ReadStream *stream)
{
	AmScan *scan = (AmScan *) sscan;
	Buffer buffer = read_stream_next_buffer(stream, NULL);

	if (!BufferIsValid(buffer))
		return false;
	am_scan_lock_page(scan, am_space_verified(sscan->rs_rd, buffer));
	scan->nrows = -1; /* not looked at yet */
	return true;
}

#else

bool
am_scan_analyze_next_block(TableScanDesc sscan, BlockNumber block, BufferAccessStrategy strategy)
{
	AmScan *scan = (AmScan *) sscan;

	am_scan_lock_page(scan, am_space_read(sscan->rs_rd, block, strategy));
	scan->nrows = -1; /* not looked at yet */
	return true;
}

#endif

/* The page is locked. Notes the rows to sample, and counts; others' rows in progress are left for the transaction to
 * report. */
static void
am_scan_analyze_page(AmScan *scan, TransactionId oldest_xmin)
{
	AmWalk walk;

	scan->nrows = 0;
	scan->current = -1;
	scan->live = scan->dead = 0;
	if (am_space_is(scan->source.buffer, AM_PAGE_DATA))
	{
		am_walk_begin(&walk, scan->source.page);
		while (am_walk_next(&walk))
		{
			TransactionId xid;
			AmRowState state = am_row_state(&walk, oldest_xmin, &xid);
			bool mine = TransactionIdIsCurrentTransactionId(xid);

			if (state == AM_STATE_LIVE || (state == AM_STATE_INSERTING && mine) ||
				(state == AM_STATE_DELETING && !mine))
			{
				scan->rows[scan->nrows++] = am_row_ref(&walk);
				scan->live += 1;
			}
			else if (state != AM_STATE_INSERTING)
				scan->dead += 1;
		}
	}
	am_scan_unlock_page(scan);
}

bool
am_scan_analyze_next_tuple(TableScanDesc sscan, TransactionId oldest_xmin, double *live, double *dead,
						   TupleTableSlot *slot)
{
	AmScan *scan = (AmScan *) sscan;

	if (scan->nrows < 0)
	{
		am_scan_analyze_page(scan, oldest_xmin);
		*live += scan->live;
		*dead += scan->dead;
	}
	if (++scan->current < scan->nrows)
	{
		am_scan_store(scan, slot, scan->current);
		return true;
	}
	ExecClearTuple(slot);
	am_scan_release_page(scan);
	return false;
}
