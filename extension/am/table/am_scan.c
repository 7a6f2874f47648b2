/*
 * am_scan.c - scans over a table.
 *
 * Page by page: under the share lock the rows that the snapshot sees are noted, then the lock is dropped, and the pin
 * keeps their bytes where they are.
 */
#include "postgres.h"

#include "access/skey.h"
#include "access/syncscan.h"
#include "access/tsmapi.h"
#include "am/table/am_scan.h"
#include "am/page/am_space.h"
#include "am/page/am_standby.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

/* ---- one page ---- */

void
am_scan_release_page(AmScan *scan)
{
	if (BufferIsValid(scan->source.buffer))
		ReleaseBuffer(scan->source.buffer);
	scan->source.buffer = InvalidBuffer;
	scan->nrows = 0;
}

void
am_scan_lock_page(AmScan *scan, Buffer buffer)
{
	am_scan_release_page(scan);
	CHECK_FOR_INTERRUPTS();
	scan->source.block = BufferGetBlockNumber(buffer);
	scan->source.buffer = buffer;
	scan->source.page = BufferGetPage(buffer);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
}

void
am_scan_unlock_page(AmScan *scan)
{
	scan->source = am_standby_unlock(scan->source.buffer, &scan->copy, GetMemoryChunkContext(scan));
}

void
am_scan_read_page(AmScan *scan, Buffer buffer)
{
	AmWalk walk;

	am_scan_lock_page(scan, buffer);
	scan->max_offset = 0;
	if (am_space_is(scan->source.buffer, AM_PAGE_DATA))
	{
		am_walk_begin(&walk, scan->source.page);
		am_visibility_page(&scan->visibility);
		while (am_walk_next(&walk))
			if (am_visibility_check(&scan->visibility, &walk))
				scan->rows[scan->nrows++] = am_row_ref(&walk);
		if (walk.damage != NULL)
			am_space_damaged(scan->base.rs_rd, scan->source.block, walk.damage);
		scan->max_offset = walk.offset;
	}
	am_scan_unlock_page(scan);
}

/* ---- the order of pages ---- */

static BlockNumber
am_scan_blocks(const AmScan *scan)
{
	return scan->limit == InvalidBlockNumber ? scan->nblocks : scan->limit;
}

static bool
am_scan_parallel_block(AmScan *scan, BlockNumber *block)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->base.rs_parallel;

	if (!scan->ahead)
		table_block_parallelscan_startblock_init(scan->base.rs_rd, scan->worker, shared);
	*block = table_block_parallelscan_nextpage(scan->base.rs_rd, scan->worker, shared);
	return *block != InvalidBlockNumber;
}

/* The block that is `done` blocks after the start, or before its end. */
static bool
am_scan_serial_block(AmScan *scan, BlockNumber *block)
{
	BlockNumber blocks = am_scan_blocks(scan);
	bool backward = ScanDirectionIsBackward(scan->direction);

	if (!scan->ahead)
	{
		if (blocks == 0)
			return false;
		if (backward)
			scan->base.rs_flags &= ~SO_ALLOW_SYNC;
		scan->done = backward ? blocks - 1 : 0;
	}
	else if (backward)
	{
		if (scan->done == 0)
			return false;
		scan->done--;
	}
	else if (++scan->done >= blocks)
		return false;
	*block = (scan->start + scan->done) % scan->nblocks;
	if (scan->base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->base.rs_rd, *block);
	return true;
}

bool
am_scan_next_block(AmScan *scan, BlockNumber *block)
{
	bool more =
		scan->base.rs_parallel != NULL ? am_scan_parallel_block(scan, block) : am_scan_serial_block(scan, block);

	scan->ahead = true;
	return more;
}

/* Goes on from the current page in the other direction. */
static void
am_scan_turn(AmScan *scan, ScanDirection direction)
{
	if (scan->begun && scan->direction != direction)
	{
		am_scan_reset_pages(scan);
		scan->done = (scan->source.block + scan->nblocks - scan->start) % scan->nblocks;
	}
	scan->direction = direction;
}

static bool
am_scan_advance(AmScan *scan, ScanDirection direction)
{
	Buffer buffer;

	am_scan_turn(scan, direction);
	buffer = am_scan_next_buffer(scan);
	scan->begun = BufferIsValid(buffer);
	if (!scan->begun)
	{
		am_scan_release_page(scan);
		am_scan_reset_pages(scan);
		scan->ahead = false;
		return false;
	}
	am_scan_read_page(scan, buffer);
	scan->current = ScanDirectionIsBackward(direction) ? scan->nrows : -1;
	return true;
}

/* ---- begin and end ---- */

static void
am_scan_init(AmScan *scan, ScanKey key, bool keep_start)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->base.rs_parallel;
	Relation rel = scan->base.rs_rd;
	bool large;

	scan->nblocks = shared != NULL ? shared->phs_nblocks : RelationGetNumberOfBlocks(rel);
	large = !RelationUsesLocalBuffers(rel) && scan->nblocks > NBuffers / 4;
	if (large && (scan->base.rs_flags & SO_ALLOW_STRAT))
	{
		if (scan->strategy == NULL)
			scan->strategy = GetAccessStrategy(BAS_BULKREAD);
	}
	else if (scan->strategy != NULL)
	{
		FreeAccessStrategy(scan->strategy);
		scan->strategy = NULL;
	}
	if (shared != NULL)
		large = shared->base.phs_syncscan;
	else
		large = large && (scan->base.rs_flags & SO_ALLOW_SYNC) && synchronize_seqscans;
	scan->base.rs_flags = large ? scan->base.rs_flags | SO_ALLOW_SYNC : scan->base.rs_flags & ~SO_ALLOW_SYNC;
	if (shared == NULL && !(keep_start && large))
		scan->start = large ? ss_get_location(rel, scan->nblocks) : 0;
	scan->limit = InvalidBlockNumber;
	scan->begun = scan->ahead = false;
	scan->direction = ForwardScanDirection;
	ItemPointerSetInvalid(&scan->min_tid);
	ItemPointerSetInvalid(&scan->max_tid);
	if (key != NULL && scan->base.rs_nkeys > 0)
		memcpy(scan->base.rs_key, key, scan->base.rs_nkeys * sizeof(ScanKeyData));
	if (scan->base.rs_flags & SO_TYPE_SEQSCAN)
		pgstat_count_heap_scan(rel);
}

TableScanDesc
am_scan_begin(Relation rel, Snapshot snapshot, int nkeys, ScanKey key, ParallelTableScanDesc parallel, uint32 flags)
{
	AmScan *scan;

	RelationIncrementReferenceCount(rel);
	scan = palloc0(sizeof(AmScan));
	scan->base.rs_rd = rel;
	scan->base.rs_snapshot = snapshot;
	scan->base.rs_nkeys = nkeys;
	scan->base.rs_flags = flags;
	scan->base.rs_parallel = parallel;
	scan->base.rs_key = nkeys > 0 ? palloc(sizeof(ScanKeyData) * nkeys) : NULL;
	scan->source.buffer = InvalidBuffer;
	scan->source.block = InvalidBlockNumber;
	if (parallel != NULL)
		scan->worker = palloc0(sizeof(ParallelBlockTableScanWorkerData));
	if (flags & (SO_TYPE_SEQSCAN | SO_TYPE_SAMPLESCAN))
		PredicateLockRelation(rel, snapshot);
	am_visibility_begin(&scan->visibility, rel, snapshot);
	am_scan_init(scan, key, false);
	am_scan_begin_pages(scan);
	return (TableScanDesc) scan;
}

void
am_scan_end(TableScanDesc sscan)
{
	AmScan *scan = (AmScan *) sscan;

	am_scan_release_page(scan);
	am_scan_end_pages(scan);
	RelationDecrementReferenceCount(sscan->rs_rd);
	if (sscan->rs_key != NULL)
		pfree(sscan->rs_key);
	if (scan->strategy != NULL)
		FreeAccessStrategy(scan->strategy);
	if (scan->copy != NULL)
		pfree(scan->copy);
	if (scan->worker != NULL)
		pfree(scan->worker);
	if (sscan->rs_flags & SO_TEMP_SNAPSHOT)
		UnregisterSnapshot(sscan->rs_snapshot);
	pfree(scan);
}

void
am_scan_rescan(TableScanDesc sscan, ScanKey key, bool set_params, bool allow_strat, bool allow_sync,
			   bool allow_pagemode)
{
	AmScan *scan = (AmScan *) sscan;

	if (set_params)
	{
		sscan->rs_flags &= ~(SO_ALLOW_STRAT | SO_ALLOW_SYNC | SO_ALLOW_PAGEMODE);
		sscan->rs_flags |= (allow_strat ? SO_ALLOW_STRAT : 0) | (allow_sync ? SO_ALLOW_SYNC : 0) |
						   (allow_pagemode ? SO_ALLOW_PAGEMODE : 0);
	}
	am_scan_release_page(scan);
	am_scan_end_pages(scan);
	am_scan_init(scan, key, true);
	am_scan_begin_pages(scan);
}

void
am_scan_set_limits(AmScan *scan, BlockNumber start, BlockNumber blocks)
{
	Assert(!scan->begun);
	scan->start = scan->nblocks == 0 ? 0 : Min(start, scan->nblocks - 1);
	scan->limit = start >= scan->nblocks ? 0 : Min(blocks, scan->nblocks - start);
}

/* ---- rows ---- */

static bool
am_scan_keys_hold(AmScan *scan, TupleTableSlot *slot)
{
	for (int i = 0; i < scan->base.rs_nkeys; i++)
	{
		ScanKey key = &scan->base.rs_key[i];
		bool isnull;
		Datum value;

		if (key->sk_flags & SK_ISNULL)
			return false;
		value = slot_getattr(slot, key->sk_attno, &isnull);
		if (isnull || !DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, value, key->sk_argument)))
			return false;
	}
	return true;
}

void
am_scan_store(AmScan *scan, TupleTableSlot *slot, int number)
{
	am_slot_store_at(slot, scan->base.rs_rd, &scan->source, &scan->rows[number]);
}

bool
am_scan_getnextslot(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot)
{
	AmScan *scan = (AmScan *) sscan;
	int step = ScanDirectionIsBackward(direction) ? -1 : 1;

	for (;;)
	{
		if (scan->begun)
			scan->current += step;
		if (!scan->begun || scan->current < 0 || scan->current >= scan->nrows)
		{
			if (!am_scan_advance(scan, direction))
			{
				ExecClearTuple(slot);
				return false;
			}
			continue;
		}
		am_scan_store(scan, slot, scan->current);
		if (likely(scan->base.rs_nkeys == 0) || am_scan_keys_hold(scan, slot))
		{
			pgstat_count_heap_getnext(scan->base.rs_rd);
			return true;
		}
	}
}

/* ---- TID ranges ---- */

void
am_scan_set_tidrange(TableScanDesc sscan, ItemPointer mintid, ItemPointer maxtid)
{
	AmScan *scan = (AmScan *) sscan;
	BlockNumber first = ItemPointerGetBlockNumberNoCheck(mintid), last = ItemPointerGetBlockNumberNoCheck(maxtid);

	scan->min_tid = *mintid;
	scan->max_tid = *maxtid;
	if (scan->nblocks == 0 || first >= scan->nblocks || ItemPointerCompare(mintid, maxtid) > 0)
		am_scan_set_limits(scan, 0, 0);
	else
		am_scan_set_limits(scan, first, Min(last, scan->nblocks - 1) - first + 1);
}

bool
am_scan_getnextslot_tidrange(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot)
{
	AmScan *scan = (AmScan *) sscan;

	while (am_scan_getnextslot(sscan, direction, slot))
		if (ItemPointerCompare(&slot->tts_tid, &scan->min_tid) >= 0 &&
			ItemPointerCompare(&slot->tts_tid, &scan->max_tid) <= 0)
			return true;
	return false;
}

/* ---- samples ---- */

bool
am_scan_sample_next_block(TableScanDesc sscan, SampleScanState *state)
{
	AmScan *scan = (AmScan *) sscan;
	TsmRoutine *tsm = state->tsmroutine;
	BlockNumber block;

	if (scan->nblocks == 0)
		return false;
	if (tsm->NextSampleBlock == NULL)
		return am_scan_advance(scan, ForwardScanDirection);
	block = tsm->NextSampleBlock(state, scan->nblocks);
	scan->begun = BlockNumberIsValid(block);
	if (!scan->begun)
	{
		am_scan_release_page(scan);
		return false;
	}
	am_scan_read_page(scan, am_space_read(scan->base.rs_rd, block, scan->strategy));
	return true;
}

bool
am_scan_sample_next_tuple(TableScanDesc sscan, SampleScanState *state, TupleTableSlot *slot)
{
	AmScan *scan = (AmScan *) sscan;
	OffsetNumber offset;

	while ((offset = state->tsmroutine->NextSampleTuple(state, scan->source.block, scan->max_offset)) !=
		   InvalidOffsetNumber)
		for (int i = 0; i < scan->nrows && scan->rows[i].offset <= offset; i++)
			if (scan->rows[i].offset == offset)
			{
				am_scan_store(scan, slot, i);
				pgstat_count_heap_getnext(sscan->rs_rd);
				return true;
			}
	ExecClearTuple(slot);
	return false;
}
