/*
 * log_scan_versions.c - what of scans differs between PostgreSQL 15 to 18: read streams, bitmap scans, ANALYZE.
 *
 * A read stream reads several pages at once, ahead of the scan; there are none until 16. Of a bitmap, the executor
 * hands over each page until 17, and prefetches it. In 18 the scan takes the pages from the bitmap's iterator by a read
 * stream. ANALYZE hands over a block number until 16, and a read stream from 17 on.
 */
#include "postgres.h"

#include "am/page/log_space.h"
#include "am/table/log_scan.h"
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
log_scan_stream_block(ReadStream *stream, void *arg, void *page_data)
{
	BlockNumber block;

	return log_scan_next_block(arg, &block) ? block : InvalidBlockNumber;
}

#if PG_VERSION_NUM >= 180000

static BlockNumber
log_scan_bitmap_block(ReadStream *stream, void *arg, void *page_data)
{
	LogScan *scan = arg;
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
log_scan_begin_pages(LogScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->base.rs_flags & (SO_TYPE_SEQSCAN | SO_TYPE_TIDRANGESCAN))
		scan->stream = read_stream_begin_relation(READ_STREAM_SEQUENTIAL | SCAN_STREAM_FLAGS, scan->strategy,
												  scan->base.rs_rd, MAIN_FORKNUM, log_scan_stream_block, scan, 0);
#endif
#if PG_VERSION_NUM >= 180000
	if (scan->base.rs_flags & SO_TYPE_BITMAPSCAN)
		scan->stream =
			read_stream_begin_relation(READ_STREAM_DEFAULT | SCAN_STREAM_FLAGS, scan->strategy, scan->base.rs_rd,
									   MAIN_FORKNUM, log_scan_bitmap_block, scan, sizeof(TBMIterateResult));
#endif
}

void
log_scan_end_pages(LogScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
		read_stream_end(scan->stream);
	scan->stream = NULL;
#endif
}

void
log_scan_reset_pages(LogScan *scan)
{
#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
		read_stream_reset(scan->stream);
#endif
}

Buffer
log_scan_next_buffer(LogScan *scan)
{
	BlockNumber block;

#if PG_VERSION_NUM >= 170000
	if (scan->stream != NULL)
	{
		Buffer buffer = read_stream_next_buffer(scan->stream, NULL);

		return BufferIsValid(buffer) ? log_space_verified(scan->base.rs_rd, buffer) : InvalidBuffer;
	}
#endif
	return log_scan_next_block(scan, &block) ? log_space_read(scan->base.rs_rd, block, scan->strategy) : InvalidBuffer;
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
log_scan_lock_bitmap(TableScanDesc sscan, BlockNumber block, const BitmapRows *rows)
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
log_scan_keep_offsets(LogScan *scan, const BitmapRows *rows)
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
log_scan_read_bitmap(LogScan *scan, Buffer buffer, const BitmapRows *rows)
{
	log_scan_read_page(scan, buffer);
	if (rows->count >= 0)
		log_scan_keep_offsets(scan, rows);
	scan->current = -1;
}

#if PG_VERSION_NUM >= 180000

/* Reads the next page that has rows. Returns false at the end. */
static bool
log_scan_bitmap_next_page(LogScan *scan, bool *recheck, uint64 *lossy_pages, uint64 *exact_pages)
{
	do
	{
		OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE];
		BitmapRows rows = {offsets, -1};
		TBMIterateResult *page;
		void *page_data;
		Buffer buffer = read_stream_next_buffer(scan->stream, &page_data);

		log_scan_release_page(scan);
		if (!BufferIsValid(buffer))
			return false;
		page = page_data;
		if (!page->lossy)
			rows.count = tbm_extract_page_tuple(page, offsets, TBM_MAX_TUPLES_PER_PAGE);
		*recheck = page->recheck;
		*(page->lossy ? lossy_pages : exact_pages) += 1;
		log_scan_lock_bitmap(&scan->base, page->blockno, &rows);
		log_scan_read_bitmap(scan, log_space_verified(scan->base.rs_rd, buffer), &rows);
	} while (scan->nrows == 0);
	scan->current = 0;
	return true;
}

bool
log_scan_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot, bool *recheck, uint64 *lossy_pages,
						   uint64 *exact_pages)
{
	LogScan *scan = (LogScan *) sscan;

	if (++scan->current >= scan->nrows && !log_scan_bitmap_next_page(scan, recheck, lossy_pages, exact_pages))
		return false;
	log_scan_store(scan, slot, scan->current);
	pgstat_count_heap_fetch(sscan->rs_rd);
	return true;
}

#else

bool
log_scan_bitmap_next_block(TableScanDesc sscan, TBMIterateResult *page)
{
	LogScan *scan = (LogScan *) sscan;
	BitmapRows rows = {page->offsets, page->ntuples};

	if (page->blockno >= scan->nblocks)
		return false;
	log_scan_lock_bitmap(sscan, page->blockno, &rows);
	log_scan_read_bitmap(scan, log_space_read(sscan->rs_rd, page->blockno, scan->strategy), &rows);
	return scan->nrows > 0;
}

bool
log_scan_bitmap_next_tuple(TableScanDesc sscan, TBMIterateResult *page, TupleTableSlot *slot)
{
	LogScan *scan = (LogScan *) sscan;

	if (++scan->current >= scan->nrows)
		return false;
	log_scan_store(scan, slot, scan->current);
	pgstat_count_heap_fetch(sscan->rs_rd);
	return true;
}

#endif

/* ---- ANALYZE ---- */

#if PG_VERSION_NUM >= 170000

bool
log_scan_analyze_next_block(TableScanDesc sscan, ReadStream *stream)
{
	LogScan *scan = (LogScan *) sscan;
	Buffer buffer = read_stream_next_buffer(stream, NULL);

	if (!BufferIsValid(buffer))
		return false;
	log_scan_lock_page(scan, log_space_verified(sscan->rs_rd, buffer));
	scan->nrows = -1; /* not looked at yet */
	return true;
}

#else

bool
log_scan_analyze_next_block(TableScanDesc sscan, BlockNumber block, BufferAccessStrategy strategy)
{
	LogScan *scan = (LogScan *) sscan;

	log_scan_lock_page(scan, log_space_read(sscan->rs_rd, block, strategy));
	scan->nrows = -1; /* not looked at yet */
	return true;
}

#endif

/* The page is locked. Notes the rows to sample, and counts; others' rows in progress are left for the transaction to
 * report. */
static void
log_scan_analyze_page(LogScan *scan, TransactionId oldest_xmin)
{
	LogWalk walk;

	scan->nrows = 0;
	scan->current = -1;
	scan->live = scan->dead = 0;
	if (log_space_is(scan->source.buffer, LOG_PAGE_DATA))
	{
		log_walk_begin(&walk, scan->source.page);
		while (log_walk_next(&walk))
		{
			TransactionId xid;
			LogRowState state = log_row_state(&walk, oldest_xmin, &xid);
			bool mine = TransactionIdIsCurrentTransactionId(xid);

			if (state == LOG_STATE_LIVE || (state == LOG_STATE_INSERTING && mine) ||
				(state == LOG_STATE_DELETING && !mine))
			{
				scan->rows[scan->nrows++] = log_row_ref(&walk);
				scan->live += 1;
			}
			else if (state != LOG_STATE_INSERTING)
				scan->dead += 1;
		}
	}
	log_scan_unlock_page(scan);
}

bool
log_scan_analyze_next_tuple(TableScanDesc sscan, TransactionId oldest_xmin, double *live, double *dead,
							TupleTableSlot *slot)
{
	LogScan *scan = (LogScan *) sscan;

	if (scan->nrows < 0)
	{
		log_scan_analyze_page(scan, oldest_xmin);
		*live += scan->live;
		*dead += scan->dead;
	}
	if (++scan->current < scan->nrows)
	{
		log_scan_store(scan, slot, scan->current);
		return true;
	}
	ExecClearTuple(slot);
	log_scan_release_page(scan);
	return false;
}
