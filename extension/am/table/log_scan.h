/* log_scan.h - scans over a table: sequential, parallel, sample, bitmap, TID range, ANALYZE; see log_scan.c. */
#ifndef LOG_SCAN_H
#define LOG_SCAN_H

#include "postgres.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "am/page/log_row.h"
#include "am/page/log_visibility.h"
#include "storage/bufmgr.h"

struct ReadStream;

typedef struct LogScan
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
	LogSource source; /* the page that the rows are on */
	Page copy;		  /* of it, in recovery */
	BufferAccessStrategy strategy;
	struct ReadStream *stream; /* reads pages ahead; NULL before PostgreSQL 17 (18 for a bitmap) */
	ParallelBlockTableScanWorkerData *worker;
	LogVisibility visibility;
	int nrows;
	int current; /* number of the current row */
	LogRowRef rows[LOG_MAX_ROWS];
	OffsetNumber max_offset; /* of the page's rows */
	double live, dead;		 /* of the page, for ANALYZE */
} LogScan;

extern TableScanDesc log_scan_begin(Relation rel, Snapshot snapshot, int nkeys, ScanKey key,
									ParallelTableScanDesc parallel, uint32 flags);
extern void log_scan_end(TableScanDesc sscan);
extern void log_scan_rescan(TableScanDesc sscan, ScanKey key, bool set_params, bool allow_strat, bool allow_sync,
							bool allow_pagemode);
extern bool log_scan_getnextslot(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot);
extern void log_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid, ItemPointer maxtid);
extern bool log_scan_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot);

extern bool log_scan_sample_next_block(TableScanDesc sscan, struct SampleScanState *state);
extern bool log_scan_sample_next_tuple(TableScanDesc sscan, struct SampleScanState *state, TupleTableSlot *slot);

/* ---- pages, for log_scan.c and log_scan_versions.c ---- */

/* Takes over the pinned buffer and locks it. The page before is released. */
extern void log_scan_lock_page(LogScan *scan, Buffer buffer);
/* Unlocks the page. Its bytes stay until it is released. */
extern void log_scan_unlock_page(LogScan *scan);
extern void log_scan_release_page(LogScan *scan);
/* Takes over the pinned buffer, and notes the rows that the snapshot sees. */
extern void log_scan_read_page(LogScan *scan, Buffer buffer);
extern void log_scan_store(LogScan *scan, TupleTableSlot *slot, int number);

extern void log_scan_set_limits(LogScan *scan, BlockNumber start, BlockNumber blocks);

/* ---- log_scan_versions.c ---- */

/* Begin and end of the pages of a sequential scan, a TID range or a bitmap. */
extern void log_scan_begin_pages(LogScan *scan);
extern void log_scan_end_pages(LogScan *scan);
/* Forgets what was read ahead. */
extern void log_scan_reset_pages(LogScan *scan);
/* The next page that log_scan_next_block() names, pinned; InvalidBuffer at the end. */
extern Buffer log_scan_next_buffer(LogScan *scan);
/* The block that comes next in the scan's direction. Returns false at the end. */
extern bool log_scan_next_block(LogScan *scan, BlockNumber *block);

#if PG_VERSION_NUM >= 180000
extern bool log_scan_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot, bool *recheck, uint64 *lossy_pages,
									   uint64 *exact_pages);
#else
extern bool log_scan_bitmap_next_block(TableScanDesc sscan, struct TBMIterateResult *tbmres);
extern bool log_scan_bitmap_next_tuple(TableScanDesc sscan, struct TBMIterateResult *tbmres, TupleTableSlot *slot);
#endif
#if PG_VERSION_NUM >= 170000
extern bool log_scan_analyze_next_block(TableScanDesc sscan, struct ReadStream *stream);
#else
extern bool log_scan_analyze_next_block(TableScanDesc sscan, BlockNumber block, BufferAccessStrategy strategy);
#endif
extern bool log_scan_analyze_next_tuple(TableScanDesc sscan, TransactionId oldest_xmin, double *live, double *dead,
										TupleTableSlot *slot);

#endif
