/* am_scan.h - scans over a table: sequential, parallel, sample, bitmap, TID range, ANALYZE; see am_scan.c. */
#ifndef AM_SCAN_H
#define AM_SCAN_H

#include "postgres.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "am/page/am_row.h"
#include "am/page/am_visibility.h"
#include "storage/bufmgr.h"

struct ReadStream;

typedef struct AmScan
{
	TableScanDescData base;			  /* must be first */
	BlockNumber nblocks;			  /* when the scan began */
	BlockNumber start;				  /* where a synchronised scan begins, or a range */
	BlockNumber limit;				  /* number of blocks of a range; InvalidBlockNumber: all */
	ItemPointerData min_tid, max_tid; /* of a TID range */
	ScanDirection direction;
	bool ahead;		  /* blocks have been asked for */
	BlockNumber done; /* the last one that was, from the start; of a scan that is not parallel */
	bool begun;		  /* there is a current page */
	AmSource source;  /* the page that the rows are on */
	Page copy;		  /* of it, in recovery */
	BufferAccessStrategy strategy;
	struct ReadStream *stream; /* reads pages ahead; NULL before PostgreSQL 17 (18 for a bitmap) */
	ParallelBlockTableScanWorkerData *worker;
	AmVisibility visibility;
	int nrows;
	int current; /* number of the current row */
	AmRowRef rows[AM_MAX_ROWS];
	OffsetNumber max_offset; /* of the page's rows */
	double live, dead;		 /* of the page, for ANALYZE */
} AmScan;

extern TableScanDesc am_scan_begin(Relation rel, Snapshot snapshot, int nkeys, ScanKey key,
								   ParallelTableScanDesc parallel, uint32 flags);
extern void am_scan_end(TableScanDesc sscan);
extern void am_scan_rescan(TableScanDesc sscan, ScanKey key, bool set_params, bool allow_strat, bool allow_sync,
						   bool allow_pagemode);
extern bool am_scan_getnextslot(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot);
extern void am_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid, ItemPointer maxtid);
extern bool am_scan_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot);

extern bool am_scan_sample_next_block(TableScanDesc sscan, struct SampleScanState *state);
extern bool am_scan_sample_next_tuple(TableScanDesc sscan, struct SampleScanState *state, TupleTableSlot *slot);

/* ---- pages, for am_scan.c and am_scan_versions.c ---- */

/* Takes over the pinned buffer and locks it. The page before is released. */
extern void am_scan_lock_page(AmScan *scan, Buffer buffer);
/* Unlocks the page. Its bytes stay until it is released. */
extern void am_scan_unlock_page(AmScan *scan);
extern void am_scan_release_page(AmScan *scan);
/* Takes over the pinned buffer, and notes the rows that the snapshot sees. */
extern void am_scan_read_page(AmScan *scan, Buffer buffer);
extern void am_scan_store(AmScan *scan, TupleTableSlot *slot, int number);

extern void am_scan_set_limits(AmScan *scan, BlockNumber start, BlockNumber blocks);

/* ---- am_scan_versions.c ---- */

/* Begin and end of the pages of a sequential scan, a TID range or a bitmap. */
extern void am_scan_begin_pages(AmScan *scan);
extern void am_scan_end_pages(AmScan *scan);
/* Forgets what was read ahead. */
extern void am_scan_reset_pages(AmScan *scan);
/* The next page that am_scan_next_block() names, pinned; InvalidBuffer at the end. */
extern Buffer am_scan_next_buffer(AmScan *scan);
/* The block that comes next in the scan's direction. Returns false at the end. */
extern bool am_scan_next_block(AmScan *scan, BlockNumber *block);

#if PG_VERSION_NUM >= 180000
extern bool am_scan_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot, bool *recheck, uint64 *lossy_pages,
									  uint64 *exact_pages);
#else
extern bool am_scan_bitmap_next_block(TableScanDesc sscan, struct TBMIterateResult *tbmres);
extern bool am_scan_bitmap_next_tuple(TableScanDesc sscan, struct TBMIterateResult *tbmres, TupleTableSlot *slot);
#endif
#if PG_VERSION_NUM >= 170000
extern bool am_scan_analyze_next_block(TableScanDesc sscan, struct ReadStream *stream);
#else
extern bool am_scan_analyze_next_block(TableScanDesc sscan, BlockNumber block, BufferAccessStrategy strategy);
#endif
extern bool am_scan_analyze_next_tuple(TableScanDesc sscan, TransactionId oldest_xmin, double *live, double *dead,
									   TupleTableSlot *slot);

#endif
