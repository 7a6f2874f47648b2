/* am_directory.c - see am_directory.h. The B-tree under it is PostgreSQL's, called through its public functions. */
#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/reloptions.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "am/directory/am_directory.h"
#include "am/table/am_fetch.h"
#include "am/page/am_page.h"
#include "am/page/am_row.h"
#include "am/page/am_last.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "nodes/tidbitmap.h"
#include "support/stoppoint.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/index_selfuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

PG_FUNCTION_INFO_V1(sheetlog_directory_handler);

#define DIRECTORY_KEY	   1
#define DIRECTORY_POSITION 2

/* ---- reading entries ---- */

static void
am_directory_rescan(IndexScanDesc scan, int64 key, StrategyNumber strategy, int64 position)
{
	RegProcedure compare = strategy == BTLessEqualStrategyNumber ? F_INT8LE : F_INT8GE;
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], DIRECTORY_KEY, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(key));
	ScanKeyInit(&keys[1], DIRECTORY_POSITION, strategy, compare, Int64GetDatum(position));
	btrescan(scan, keys, 2, NULL, 0);
}

static bool
am_directory_step(IndexScanDesc scan, ScanDirection direction, int64 *position, BlockNumber *block)
{
	bool isnull;

	scan->kill_prior_tuple = false;
	if (!btgettuple(scan, direction))
		return false;
	*position = DatumGetInt64(index_getattr(scan->xs_itup, DIRECTORY_POSITION, scan->xs_itupdesc, &isnull));
	*block = ItemPointerGetBlockNumber(&scan->xs_heaptid);
	return true;
}

static IndexScanDesc
am_directory_open(Relation index, Snapshot snapshot)
{
	IndexScanDesc scan = btbeginscan(index, 2, 0);

	scan->heapRelation = NULL;
	scan->parallel_scan = NULL;
	scan->xs_temp_snap = false;
	scan->xs_snapshot = snapshot;
	scan->xs_want_itup = true;
	return scan;
}

void
am_directory_begin(AmDirectoryScan *scan, Relation index, Snapshot snapshot, int64 key, int64 from,
				   ScanDirection direction)
{
	int64 position;
	BlockNumber block;

	scan->scan = am_directory_open(index, snapshot);
	scan->direction = direction;
	am_directory_rescan(scan->scan, key, BTLessEqualStrategyNumber, from);
	if (ScanDirectionIsBackward(direction))
		return;
	/* The row at `from` may be behind the entry before it. */
	if (am_directory_step(scan->scan, BackwardScanDirection, &position, &block))
		from = position;
	am_directory_rescan(scan->scan, key, BTGreaterEqualStrategyNumber, from);
}

bool
am_directory_next(AmDirectoryScan *scan, int64 *position, BlockNumber *block)
{
	return am_directory_step(scan->scan, scan->direction, position, block);
}

static void
am_directory_close(IndexScanDesc scan)
{
	btendscan(scan);
	IndexScanEnd(scan);
}

void
am_directory_end(AmDirectoryScan *scan)
{
	am_directory_close(scan->scan);
}

/* ---- adding entries ---- */

/*
 * The B-tree's code asserts, where it splits a page, that the index is one of access method btree. So it is for it, in
 * this backend's copy of the index's description, as long as it inserts.
 */
static void
am_directory_add(Relation index, Relation table, int64 key, int64 position, BlockNumber block, IndexInfo *info)
{
	Datum values[2] = {Int64GetDatum(key), Int64GetDatum(position)};
	bool isnull[2] = {false, false};
	ItemPointerData tid;
	Oid am = index->rd_rel->relam;

	ItemPointerSet(&tid, block, AM_PAGE_OFFSET);
	index->rd_rel->relam = BTREE_AM_OID;
	PG_TRY();
	{
		(void) btinsert(index, values, isnull, &tid, table, UNIQUE_CHECK_NO, false, info);
	}
	PG_FINALLY();
	{
		index->rd_rel->relam = am;
	}
	PG_END_TRY();
}

/* The blocks that are looked into for a position: those of the last entry that is not behind it. */
typedef struct DirectoryBlocks
{
	int64 position; /* of the entries */
	bool last;		/* there are no entries behind the position that was looked for */
	int n;
	int room;
	BlockNumber *blocks;
} DirectoryBlocks;

/* The last entry up to the position. The key's last one mostly is it. */
static bool
am_directory_seek(IndexScanDesc scan, int64 key, int64 position, bool *last, int64 *at, BlockNumber *entry)
{
	*last = true;
	am_directory_rescan(scan, key, BTLessEqualStrategyNumber, PG_INT64_MAX);
	if (!am_directory_step(scan, BackwardScanDirection, at, entry))
		return false;
	if (*at <= position)
		return true;
	*last = false;
	am_directory_rescan(scan, key, BTLessEqualStrategyNumber, position);
	return am_directory_step(scan, BackwardScanDirection, at, entry);
}

static bool
am_directory_covers(IndexScanDesc scan, int64 key, int64 position, BlockNumber block, DirectoryBlocks *before)
{
	int64 at;
	BlockNumber entry;
	bool more = am_directory_seek(scan, key, position, &before->last, &at, &entry);

	before->n = 0;
	for (; more; more = am_directory_step(scan, BackwardScanDirection, &at, &entry))
	{
		if (before->n > 0 && at != before->position)
			break;
		before->position = at;
		if (entry == block)
			return true;
		if (before->n == before->room)
		{
			before->room = Max(8, before->room * 2);
			before->blocks = before->blocks == NULL ? palloc(before->room * sizeof(BlockNumber))
													: repalloc(before->blocks, before->room * sizeof(BlockNumber));
		}
		before->blocks[before->n++] = entry;
	}
	return false;
}

bool
am_directory_has(Relation index, int64 key, int64 position, BlockNumber block)
{
	IndexScanDesc scan = am_directory_open(index, SnapshotAny);
	DirectoryBlocks before = {0};
	bool has = am_directory_covers(scan, key, position, block, &before);

	am_directory_close(scan);
	if (before.blocks != NULL)
		pfree(before.blocks);
	return has;
}

/*
 * Has the block a row of the key at or behind the position? Behind the last entry of a key there is nothing but its
 * rows to ask. Of indexes on expressions it is taken for granted: an entry too many does no harm.
 */
static bool
am_directory_reaches(Relation table, BlockNumber block, int64 key, int64 position, IndexInfo *info)
{
	AttrNumber columns[2] = {info->ii_IndexAttrNumbers[0], info->ii_IndexAttrNumbers[1]};

	return columns[0] <= 0 || columns[1] <= 0 || am_fetch_reaches(table, block, columns, key, position);
}

/*
 * Adds what the row needs. Rows mostly come in the order of their positions; one that does not splits the range of the
 * entry before it, whose blocks are then named at the row's position, too. Behind the last entry that is only necessary
 * when one of those blocks has rows of the key at or behind the position.
 */
static void
am_directory_add_row(Relation index, Relation table, int64 key, int64 position, BlockNumber block,
					 const DirectoryBlocks *before, IndexInfo *info)
{
	for (int i = 0; i < before->n && before->position < position; i++)
		if (!before->last || am_directory_reaches(table, before->blocks[i], key, position, info))
			am_directory_add(index, table, key, position, before->blocks[i], info);
	STOP_POINT("am-directory");
	am_directory_add(index, table, key, position, block, info);
}

/* Caches the key's last entry: `position` in `block`, or the one before it that covers it. */
static void
am_directory_set_last(Relation index, Relation table, int64 key, int64 position, BlockNumber block,
					  const DirectoryBlocks *before, bool covered, IndexInfo *info)
{
	bool exceeded = position == PG_INT64_MAX || am_directory_reaches(table, block, key, position + 1, info);

	for (int i = 0; i < before->n && !exceeded; i++)
		exceeded = am_directory_reaches(table, before->blocks[i], key, position + 1, info);
	am_last_set(index, key, covered ? before->position : position, block, exceeded ? PG_INT64_MAX : position);
}

/* Caller must hold the directory's lock on the key. Its last entry is not cached. */
static void
am_directory_look_and_add(Relation index, Relation table, int64 key, int64 position, BlockNumber block, IndexInfo *info)
{
	DirectoryBlocks before = {0};
	IndexScanDesc scan = am_directory_open(index, SnapshotAny);
	bool covered = am_directory_covers(scan, key, position, block, &before);

	am_directory_close(scan);
	if (!covered)
		am_directory_add_row(index, table, key, position, block, &before, info);
	if (before.last)
		am_directory_set_last(index, table, key, position, block, &before, covered, info);
	if (before.blocks != NULL)
		pfree(before.blocks);
}

/*
 * Insertions under one key are serialised by a lock on the key. A row that the cached last entry covers needs no lock:
 * the entry was cached when the row was on its page already, so whoever takes the entry after that finds the row there.
 * A row after all others of its key only needs its entry: rows that are on their pages, and have not been inserted here
 * yet, will be checked by their own insertion.
 */
static bool
am_directory_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation table,
					IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info)
{
	int64 key = DatumGetInt64(values[0]), position = DatumGetInt64(values[1]), max_position;
	BlockNumber block = ItemPointerGetBlockNumber(tid), lock;

	if (isnull[0] || isnull[1])
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("index \"%s\" cannot hold null values", RelationGetRelationName(index))));
	if (am_last_covers(index, key, position, block))
		return false;
	lock = hash_bytes((const unsigned char *) &key, sizeof(key));
	LockPage(index, lock, ExclusiveLock);
	if (am_last_take(index, key, &max_position) && position > max_position)
	{
		STOP_POINT("am-directory");
		am_directory_add(index, table, key, position, block, info);
		am_last_set(index, key, position, block, position);
	}
	else
		am_directory_look_and_add(index, table, key, position, block, info);
	UnlockPage(index, lock, ExclusiveLock);
	return false;
}

/* ---- building ---- */

typedef struct DirectoryBuild
{
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	double rows;
	/* where the rows of the last key were seen last: most rows need not be sorted */
	int64 key;
	BlockNumber block;
	int64 position; /* of the last row */
	int64 entry;	/* of the last entry */
	bool seen;
} DirectoryBuild;

static TupleDesc
am_directory_row_type(void)
{
	TupleDesc desc = CreateTemplateTupleDesc(3);

	TupleDescInitEntry(desc, 1, "key", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 2, "position", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 3, "block", INT8OID, -1, 0);
	return desc;
}

static void
am_directory_collect(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	DirectoryBuild *build = state;

	if (isnull[0] || isnull[1])
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("index \"%s\" cannot hold null values", RelationGetRelationName(index))));
	ExecClearTuple(build->slot);
	build->slot->tts_values[0] = values[0];
	build->slot->tts_values[1] = values[1];
	build->slot->tts_values[2] = Int64GetDatum(ItemPointerGetBlockNumber(tid));
	memset(build->slot->tts_isnull, 0, 3 * sizeof(bool));
	ExecStoreVirtualTuple(build->slot);
	tuplesort_puttupleslot(build->sort, build->slot);
	build->rows += 1;
}

/* An empty B-tree. */
static void
am_directory_make_empty(Relation index)
{
	bool equal_image = _bt_allequalimage(index, false);
	Buffer buffer = ReadBuffer(index, P_NEW);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	Assert(BufferGetBlockNumber(buffer) == BTREE_METAPAGE);
	START_CRIT_SECTION();
	_bt_initmetapage(BufferGetPage(buffer), P_NONE, 0, equal_image);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/* Is the row found through the entry of the one before? */
static bool
am_directory_is_covered(DirectoryBuild *build, int64 key, int64 position, BlockNumber block)
{
	if (!build->seen || build->key != key || build->block != block)
		return false;
	build->position = position;
	return true;
}

/* The sorted rows become entries wherever a key's page changes; when one position is in several pages, for all of them.
 */
static double
am_directory_load(Relation index, Relation table, DirectoryBuild *build, IndexInfo *info)
{
	double entries = 0;

	while (tuplesort_gettupleslot(build->sort, true, false, build->slot, NULL))
	{
		int64 key, position;
		BlockNumber block;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(build->slot);
		key = DatumGetInt64(build->slot->tts_values[0]);
		position = DatumGetInt64(build->slot->tts_values[1]);
		block = (BlockNumber) DatumGetInt64(build->slot->tts_values[2]);
		if (am_directory_is_covered(build, key, position, block))
			continue;
		if (build->seen && build->key == key && build->position == position && build->entry < position)
		{
			am_directory_add(index, table, key, position, build->block, info);
			entries += 1;
		}
		am_directory_add(index, table, key, position, block, info);
		build->key = key;
		build->block = block;
		build->position = build->entry = position;
		build->seen = true;
		entries += 1;
	}
	return entries;
}

/* Refuses an index definition that is not supported, at CREATE INDEX and when the table is rewritten. */
static void
am_directory_check(Relation table, Relation index, const IndexInfo *info)
{
	if (table_slot_callbacks(table) != &AmSlotOps)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("table \"%s\" cannot have index \"%s\"", RelationGetRelationName(table),
							   RelationGetRelationName(index)),
						errdetail("Access method \"sheetlog_directory\" is for tables that use access method "
								  "\"sheetlog\"."),
						errhint("Use a B-tree. A table that is to leave \"sheetlog\" drops this index before.")));
	if (info->ii_NumIndexAttrs != 2 || info->ii_Predicate != NIL)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("index \"%s\" cannot be a directory", RelationGetRelationName(index)),
						errdetail("An index of access method \"sheetlog_directory\" has two columns, a key and a "
								  "position, and all rows of the table.")));
}

static IndexBuildResult *
am_directory_build(Relation table, Relation index, IndexInfo *info)
{
	AttrNumber columns[3] = {1, 2, 3};
	Oid operators[3] = {Int8LessOperator, Int8LessOperator, Int8LessOperator};
	Oid collations[3] = {InvalidOid, InvalidOid, InvalidOid};
	bool nulls_first[3] = {false, false, false};
	TupleDesc desc = am_directory_row_type();
	DirectoryBuild build = {0};
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	am_directory_check(table, index, info);
	am_last_forget_index(index); /* of a file that had this number before */
	am_directory_make_empty(index);
	build.slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	build.sort = tuplesort_begin_heap(desc, 3, columns, operators, collations, nulls_first, maintenance_work_mem, NULL,
									  TUPLESORT_NONE);
	result->heap_tuples = table_index_build_scan(table, index, info, true, true, am_directory_collect, &build, NULL);
	tuplesort_performsort(build.sort);
	ExecDropSingleTupleTableSlot(build.slot);
	build.slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	result->index_tuples = am_directory_load(index, table, &build, info);
	ExecDropSingleTupleTableSlot(build.slot);
	tuplesort_end(build.sort);
	return result;
}

/* ---- VACUUM ---- */

/*
 * A page whose entries are deleted was closed before, so no row is added to it, and no such entry is cached again.
 */
static IndexBulkDeleteResult *
am_directory_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
						 void *callback_state)
{
	am_last_forget_index(info->index);
	return btbulkdelete(info, stats, callback, callback_state);
}

/* ---- scans of SQL ---- */

/*
 * Only conditions on the key count: where a position is, the entry before it decides. Others become one that is always
 * true, since a scan keeps the number of its conditions.
 */
static void
am_directory_rescan_keys(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	ScanKey used = palloc(sizeof(ScanKeyData) * Max(nkeys, 1)); /* queries may have any number of them */

	for (int i = 0; i < nkeys; i++)
		if (keys[i].sk_attno == DIRECTORY_KEY && !(keys[i].sk_flags & SK_ROW_HEADER))
			used[i] = keys[i];
		else
			ScanKeyInit(&used[i], DIRECTORY_KEY, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(PG_INT64_MIN));
	btrescan(scan, used, nkeys, NULL, 0);
	pfree(used);
}

static int64
am_directory_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	BlockNumber last = InvalidBlockNumber;
	int64 pages = 0;

	while (btgettuple(scan, ForwardScanDirection))
	{
		BlockNumber block = ItemPointerGetBlockNumber(&scan->xs_heaptid);

		CHECK_FOR_INTERRUPTS();
		if (block == last)
			continue;
		tbm_add_page(tbm, block);
		last = block;
		pages++;
	}
	return pages;
}

/*
 * The B-tree's estimate. It asks for the direction of the first column as soon as ANALYZE knows how the order of the
 * key and that of the rows agree; the planner tells directions only of indexes whose order it may use.
 */
static void
am_directory_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
					  Selectivity *selectivity, double *correlation, double *pages)
{
	static bool ascending[INDEX_MAX_KEYS];
	IndexOptInfo *index = path->indexinfo;

	Assert(index->reverse_sort == NULL);
	index->reverse_sort = ascending;
	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
	index->reverse_sort = NULL;
}

static bool
am_directory_validate(Oid opclass)
{
	return true;
}

/* ---- the handler ---- */

Datum
sheetlog_directory_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = GetIndexAmRoutine(F_BTHANDLER);

	am->amcanorder = false;
	am->amcanbackward = false;
	am->amcanunique = false;
	am->amoptionalkey = false;
	am->amsearcharray = false;
	am->amsearchnulls = false;
	am->amclusterable = false;
	am->amcanparallel = false;
	am->amcaninclude = false;
	am->ambuild = am_directory_build;
	am->aminsert = am_directory_insert;
	am->ambulkdelete = am_directory_bulk_delete;
	am->amrescan = am_directory_rescan_keys;
	am->amgettuple = NULL;
	am->amgetbitmap = am_directory_getbitmap;
	am->ammarkpos = NULL;
	am->amrestrpos = NULL;
	am->amcanreturn = NULL;
	am->amcostestimate = am_directory_estimate;
	am->amproperty = NULL;
	am->amvalidate = am_directory_validate;
	am->amadjustmembers = NULL;
	am->amestimateparallelscan = NULL;
	am->aminitparallelscan = NULL;
	am->amparallelrescan = NULL;
	PG_RETURN_POINTER(am);
}

bool
am_directory_is(Relation index)
{
	return index->rd_indam != NULL && index->rd_indam->aminsert == am_directory_insert;
}
