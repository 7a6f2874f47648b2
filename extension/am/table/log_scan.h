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
	BlockNumber done;				  /* blocks begun so far, of a scan that is not parallel */
	bool begun;
	LogSource source; /* the page that the rows are on */
	Page copy;		  /* of it, in recovery */
	BufferAccessStrategy strategy;
	struct ReadStream *bitmap_stream; /* of a bitmap scan, from PostgreSQL 18 on */
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

/* ---- pages, for log_scan.c and log_scan_callbacks.c ---- */

/* Takes over the pinned buffer and locks it. The page before is released. */
extern void log_scan_lock_page(LogScan *scan, Buffer buffer);
/* Unlocks the page. Its bytes stay until it is released. */
extern void log_scan_unlock_page(LogScan *scan);
extern void log_scan_release_page(LogScan *scan);
/* Takes over the pinned buffer, and notes the rows that the snapshot sees. */
extern void log_scan_read_page(LogScan *scan, Buffer buffer);
extern void log_scan_store(LogScan *scan, TupleTableSlot *slot, int number);

/* For index builds: the next page with its rows, forward; false at the end. */
extern bool log_scan_next_page(LogScan *scan);
extern void log_scan_set_limits(LogScan *scan, BlockNumber start, BlockNumber blocks);

/* ---- the callbacks that differ between versions: log_scan_callbacks.c ---- */

/* For log_scan.c, which begins and ends all scans. */
extern void log_scan_bitmap_begin(LogScan *scan);
extern void log_scan_bitmap_restart(LogScan *scan);
extern void log_scan_bitmap_end(LogScan *scan);
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
